r"""Where samples of several classes become separable: K scores that give each the highest own one.

Of classes that are alike, with label functions :math:`T(1 - 11^\top/K)` where features show all
that they can, samples are separable from

.. math:: (K - 1)\frac pn = \min_a E\,\mathrm{dist}^2\big(aTe_1 + \sqrt{1 + a^2T}\,\xi,\ C\big),
    \qquad C = \{h: h_1 \ge h_k\},

on, with independent standard normal :math:`\xi`. The nearest point of the cone has the mean of the
own number and of those above it in place of these. Averages are over Sobol points, whose spread is
the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import Status
from hiddenmanifold.model import Model
from hiddenmanifold.teachers import Classes
from hiddenmanifold.theory.classes.orthants import normal_points
from hiddenmanifold.theory.separability.direction import Direction
from hiddenmanifold.theory.separability.line import Line

POINTS = 2**13
"""Sobol points of each set: an error of some 3e-4 of the threshold."""
STEP = 1e-3
"""Step of differences in log-odds."""
FAINT = 1e-12
"""Signal that is none."""
CLOSE = 1e-5
"""Accuracy of the best a relative to its scale; the threshold is off by its square."""


@dataclass(frozen=True)
class ClassLine(Line):
    """The line of classes that are all alike."""

    number: int = 2
    tau: float = 1.0

    @classmethod
    def of_classes(cls, model: Model) -> ClassLine:
        """The line of a model of normal classes that are all alike."""
        teacher = model.teacher
        assert isinstance(teacher, Classes)
        assert teacher.separation is not None
        tau = 0.5 * teacher.separation**2
        return cls(teacher, model.features, model.free_intercept, number=teacher.number, tau=tau)

    def direction(self, seen: Array, hidden: Array) -> Direction:
        """The threshold of p/n given what features show of the means."""
        value, a, error = np.array([self._threshold(chi) for chi in seen]).T
        with np.errstate(all="ignore"):
            odds = np.exp(STEP) * hidden / seen
            moved = np.array([self._threshold(1.0 / (1.0 + o))[0] for o in odds])
            elasticity = np.where(seen * hidden > 0.0, np.log(moved / value) / STEP, 0.0)
        nothing = np.zeros_like(value)
        status = np.full(len(seen), Status.CONVERGED, dtype=np.intp)
        return Direction(value, a, nothing, nothing, nothing, elasticity, error / value, status)

    def _threshold(self, seen: float) -> tuple[float, float, float]:
        """The threshold at a part of the means that is seen, the best a, and the error."""
        T = self.tau * seen
        normal = normal_points(self.number, POINTS, key=self.number)
        own, z = normal[..., :1], -np.sort(-normal[..., 1:], axis=-1)

        def distances(a: float) -> Array:
            """Mean squared distance from the cone, of each set of points."""
            scale = np.sqrt(1.0 + a**2 * T)
            x = np.concatenate([own + a * T / scale, z], axis=-1)
            sums, count = np.cumsum(x, axis=-1), np.arange(1.0, self.number + 1.0)
            above = np.concatenate(
                [np.ones_like(own, dtype=bool), x[..., 1:] > (sums / count)[..., :-1]], axis=-1
            )
            above = np.logical_and.accumulate(above, axis=-1)
            pooled = above.sum(-1)
            mean = np.where(above, x, 0.0).sum(-1) / pooled
            squares = np.where(above, (x - mean[..., None]) ** 2, 0.0).sum(-1)
            found: Array = scale**2 * squares.mean(-1)
            return found

        a = _best(distances) if T > FAINT else 0.0
        sets = distances(a) / (self.number - 1.0)
        return float(sets.mean()), a, float(3.0 * sets.std(ddof=1) / np.sqrt(len(sets)))


def _best(distances: Callable[[float], Array]) -> float:
    """The a of least distance."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log_a: float(distances(float(np.exp(log_a))).mean()),
        bounds=(-8.0, 8.0),
        method="bounded",
        options={"xatol": CLOSE},
    )
    return float(np.exp(found.x))
