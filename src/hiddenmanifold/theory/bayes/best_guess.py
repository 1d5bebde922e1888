"""The error of the best guess of a label, when its field is known up to a Gaussian posterior."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Integers, chunks
from hiddenmanifold.numerics.panels import Panels, refine
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.teachers import BinaryTeacher
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED, edges_along, fan_of
from hiddenmanifold.theory.scores.errors_of_labels import test_error

BLOCK = 512
"""Points whose nodes are handled together."""
LEVEL = 1e-9
"""Difference of two probabilities that makes the labels as good as equally probable."""


def rounding(teacher: BinaryTeacher, V0: Array) -> Array:
    """Relative rounding error of nodes where the label changes within a short interval."""
    marks = teacher.landmarks(1, V0)
    if marks.shape[1] < 2:
        return np.zeros(len(V0))
    with np.errstate(divide="ignore"):
        relative: Array = np.finfo(float).eps * np.abs(marks).max(1) / (marks[:, 1] - marks[:, 0])
    return relative


def least_error(teacher: BinaryTeacher, slope: Array, V0: Array) -> Array:
    r"""Error :math:`E_\omega \min(Z_+, Z_-)` of predicting the more probable label.

    Parameters
    ----------
    teacher : BinaryTeacher
        The rule of the labels.
    slope, V0 : arrays (points,)
        Deviation of the posterior's mean, and the posterior's variance.

    Returns
    -------
    array (points,)
        NaN where the integral did not settle.
    """
    if teacher.pivot is not None:  # the side of it decides
        with np.errstate(divide="ignore"):
            bias = -teacher.pivot / slope if teacher.pivot else np.zeros_like(slope)
        return test_error(teacher, slope, V0, bias)

    def error(some: Integers, halvings: int) -> tuple[Array, Array]:
        parts = [_least_error(teacher, slope[i], V0[i], halvings) for i in chunks(some, BLOCK)]
        found = np.concatenate(parts)
        return found, SETTLED * found + np.finfo(float).eps

    return refine(error, slope.shape, range(FINEST + 1))


def _least_error(teacher: BinaryTeacher, slope: Array, V0: Array, halvings: int) -> Array:
    """The same on panels that are halved, and cut where the more probable label changes."""

    def both(xi: Array, row: Integers) -> tuple[Array, Array, Array]:
        """Z of both labels, and the slope of their difference in the deviation xi."""
        (plus, up, _), (minus, down, _) = (
            teacher.label_law(y, y * slope[row, None] * xi, V0[row, None]) for y in (1, -1)
        )
        return plus, minus, slope[row, None] * (up + down)

    cuts = edges_along(teacher, 1, slope, V0, fan_of(teacher))
    inner = np.linspace(0.0, 1.0, 2**halvings, endpoint=False)
    split = cuts[:, :-1, None] + np.diff(cuts)[..., None] * inner
    cuts = np.concatenate([split.reshape(len(slope), -1), cuts[:, -1:]], axis=1)
    plus, minus, _ = both(cuts, np.arange(len(slope)))
    ahead = np.sign(plus - minus)
    row, column = np.nonzero(ahead[:, :-1] * ahead[:, 1:] < 0)
    direction = ahead[row, column + 1]

    def lead(xi: Array, i: Integers) -> tuple[Array, Array]:
        plus, minus, rise = (law[:, 0] for law in both(xi[:, None], row[i]))
        return direction[i] * (plus - minus), direction[i] * rise

    bracket = cuts[row, column], cuts[row, column + 1]
    changes = cuts[:, :-1].copy()  # the same cuts again, where the label does not change
    changes[row, column] = increasing_root(lead, bracket, LEVEL)
    panels = Panels.between(np.sort(np.concatenate([cuts, changes], axis=1)), (ORDER, 0))
    plus, minus, _ = both(panels.nodes, panels.row)
    return panels.sum(np.minimum(plus, minus))
