r"""The regularisation of least error of several classes, per point of a batch.

The error is computed at some λ per point with its slope by :math:`t = \log\lambda`, by differences:
the integration over scores uses the same points at every λ, so that its error is smooth, too. All
minima between are refined, and compared with the limits 0⁺ and ∞.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers, chunks, joined
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples, least_of_each, minima, sampler
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.class_predictions import class_asymptotics, class_errors
from hiddenmanifold.theory.points import Points

BOTTOM, TOP, NODES = 1e-9, 1e5, 29
"""Range of λ in units of the variance of features times max(1, n/p), and the nodes in it.

Two a decade: the error of ridge regression varies over more than a decade. Beyond the range it
follows its limits."""
STEP = 0.02
"""Step of the differences in log λ; of fourth order, they are off by some 1e-8 of the slope."""
STENCIL = ((1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Multiples of the step, and their weights."""
TIE = 1e-9
"""Relative difference of two errors that is no evidence against a limit."""
LEAST, FEW = 1e-5, 11
"""For losses without closed form, the lowest λ, below which solutions take long and errors hardly
change, and the nodes up to `TOP`, one a decade."""
UNKNOWN = 1e9
"""An error that stands for one that is not known."""
FOUND = 2e-3
"""Accuracy of their best log λ: the error is off by its square."""
TOGETHER = 4
"""Points searched together, as one job of a worker."""


@dataclass(frozen=True)
class ClassSearch:
    """The search at some points, which a worker can run; `target` names the error to minimise."""

    model: Model
    points: Points
    target: str
    bounds: tuple[float, float]
    counts: Counts | None = None

    def run(self) -> Columns:
        """The `optimal_regularisation` and all that is predicted there."""
        if not self.model.loss.quadratic:
            lam = self._searched()
            found = class_asymptotics(self.model, self.points.at(lam), counts=self.counts)
            return {"optimal_regularisation": lam, **found}
        nodes = self._with_limits(Samples.joined(minima(sampler(self._slopes), self._scan())))
        value = nodes.value - np.isinf(nodes.t) * TIE * np.abs(nodes.value)
        best = nodes[least_of_each(nodes.point, value)]
        lam = np.clip(np.exp(best.t), *self.bounds)
        found = class_asymptotics(self.model, self.points.at(lam), counts=self.counts)
        return {"optimal_regularisation": np.where(np.isnan(best.value), np.nan, lam), **found}

    def _error(self, point: Integers, t: Array) -> Array:
        """The error of some points at some λ."""
        points, counts = self.points[point].at(np.exp(t)), self.counts and self.counts[point]
        return class_errors(self.model, points, self.target, counts)

    def _searched(self) -> Array:
        """The best λ of losses without closed form, by a coarse scan and values alone."""
        from scipy.optimize import minimize_scalar

        unit = self.model.features.variance * np.maximum(1.0, self.points.alpha)
        low, high = np.log([LEAST * unit, TOP * unit]).clip(*self._limits)
        t = np.array([low + share * (high - low) for share in np.linspace(0.0, 1.0, FEW)])
        point = np.arange(len(unit))
        value = self._error(np.tile(point, FEW), t.ravel()).reshape(t.shape)
        value = np.where(np.isfinite(value), value, np.inf)
        best = np.empty(len(unit))
        for i, k in enumerate(value.argmin(0).tolist()):

            def error(at: float, i: int = i) -> float:
                found = float(self._error(point[[i]], np.array([at]))[0])
                return found if np.isfinite(found) else UNKNOWN

            around = t[max(k - 1, 0), i], t[min(k + 1, FEW - 1), i]
            options = {"xatol": FOUND}
            found = minimize_scalar(error, bounds=around, method="bounded", options=options)
            best[i] = found.x if found.fun < value[k, i] else t[k, i]
            if np.isinf(value[k, i]):
                best[i] = np.nan
            elif k in (0, FEW - 1) and np.isinf(end := self._limits[int(k > 0)]):
                enough = min(found.fun, value[k, i]) * (1.0 + TIE)
                best[i] = end if error(end) <= enough else best[i]
        return np.clip(np.exp(best), *self.bounds)

    def _slopes(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """The error and its slope by t."""
        moves = [0.0, *(sign * k * STEP for k, _ in STENCIL for sign in (1.0, -1.0))]
        places = (t + np.array(moves)[:, None]).ravel()
        error, *moved = self._error(np.tile(point, len(moves)), places).reshape(len(moves), -1)
        pairs = zip(STENCIL, moved[::2], moved[1::2], strict=True)
        slope: Array = sum(w * (up - down) for (_, w), up, down in pairs) / STEP  # type: ignore[assignment]
        return error, slope

    def _scan(self) -> Samples:
        """The error at all nodes within the bounds."""
        unit = self.model.features.variance * np.maximum(1.0, self.points.alpha)
        low = np.clip(np.log(BOTTOM * unit), *self._limits)
        high = np.clip(np.log(TOP * unit), *self._limits)
        t = np.linspace(low, high, NODES)
        point = np.tile(np.arange(len(unit)), NODES)
        return Samples.of(self._slopes, point, t.ravel())

    @property
    def _limits(self) -> tuple[float, float]:
        """Logarithms of the bounds."""
        with np.errstate(divide="ignore"):
            low, high = np.log(self.bounds)
        return float(low), float(high)

    def _with_limits(self, nodes: Samples) -> Samples:
        """The samples and those at the limits 0⁺ and ∞, where these are within the bounds."""
        point = np.arange(len(self.points))
        for end in self._limits:
            if np.isinf(end):
                t = np.full(len(point), end)
                value = self._error(point, t)
                nodes = nodes.extended(Samples(point, t, value, np.zeros_like(value)))
        return nodes


def best_class_regularisation(search: ClassSearch, workers: Workers) -> Columns:
    """The λ of least error within bounds at every point, and all that is predicted there."""
    parts = chunks(np.arange(len(search.points)), TOGETHER)
    searches = [
        replace(search, points=search.points[part], counts=search.counts and search.counts[part])
        for part in parts
    ]
    return joined(workers.run(searches))
