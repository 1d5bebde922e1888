"""What people ask for: test and training errors, from the solution of the saddle point."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import gauss_legendre, sum_by_row
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import BinaryTeacher
from hiddenmanifold.theory.proximal_curve import FAN, REACH

FINEST = 9


def misclassified(teacher: BinaryTeacher, k: Array, V0: Array, cuts: dict[int, Array]) -> Array:
    r"""Probability :math:`\sum_y E_\xi[1(\xi < \text{cut}_y) Z_y(k\xi)]` of the wrong side.

    Panels are halved until they settle if the teacher's landmarks may miss some structure.

    Parameters
    ----------
    teacher : BinaryTeacher
        The rule of the labels.
    k, V0 : arrays (points,)
        Slope and remaining variance of the teacher's field given the prediction.
    cuts : dict
        For each label, the standardised field along it below which a sample counts as wrong.

    Returns
    -------
    array (points,)
        NaN where the integral did not settle.
    """
    total = _misclassified(teacher, k, V0, cuts, 0)
    if teacher.resolved:
        return total
    todo = np.arange(len(k))
    for halvings in range(1, FINEST + 1):
        finer = _misclassified(
            teacher, k[todo], V0[todo], {y: cut[todo] for y, cut in cuts.items()}, halvings
        )
        moved = ~(np.abs(finer - total[todo]) <= 1e-11 * finer)
        total[todo] = finer
        todo = todo[moved]
        if not todo.size:
            return total
    total[todo] = np.nan
    return total


def _misclassified(
    teacher: BinaryTeacher, k: Array, V0: Array, cuts: dict[int, Array], halvings: int
) -> Array:
    total = np.zeros(len(k))
    x, w = gauss_legendre(20, halvings)
    for y, cut in cuts.items():
        high = np.clip(cut, -37.0, REACH)[:, None]
        low = np.minimum(-REACH, high - 6.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            marks = teacher.landmarks(y, V0) / k[:, None]
        marks = np.where(np.isfinite(marks), marks, REACH)
        fan = np.broadcast_to(FAN, (len(k), len(FAN)))
        edges = np.clip(np.concatenate([low, fan, marks, high], axis=1), low, high)
        edges.sort(axis=1)
        width = np.diff(edges, axis=1)
        row, column = np.nonzero(width > 0)
        xi = edges[row, column, None] + width[row, column, None] * x
        Z = teacher.label_law(y, k[row, None] * xi, V0[row, None])[0]
        panel = width[row, column] * ((normal_density(xi) * Z) @ w)
        total += sum_by_row(panel, row, len(k))
    return total


def test_error(teacher: BinaryTeacher, k: Array, V0: Array, bias: Array) -> Array:
    """Probability that the sign of the prediction differs from a fresh label.

    `bias` is the intercept in units of the prediction's deviation.
    """
    closed = teacher.error_without_bias(k, V0) if not np.any(bias) else None
    if closed is not None:
        return closed
    return misclassified(teacher, k, V0, {1: -bias, -1: bias})


def training_error(
    teacher: BinaryTeacher,
    loss: Loss,
    *,
    V: Array,
    deviation: Array,
    k: Array,
    V0: Array,
    intercept: Array,
) -> Array:
    """Fraction of training samples on the wrong side: those with proximal margin below zero."""
    anchor = np.array([np.nextafter(loss.anchor, np.inf)])
    push = V * float(loss.derivative(anchor)[0])
    if teacher.symmetric and not np.any(intercept):
        return 2 * misclassified(teacher, k, V0, {1: -push / deviation})
    cuts = {y: (-push - y * intercept) / deviation for y in (1, -1)}
    return misclassified(teacher, k, V0, cuts)
