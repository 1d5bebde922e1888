r"""The mean of :math:`h = \rho'(s)` over a normal shortfall, for many means at once.

Two fits that see a sample of a given label, and a given shared part of the prediction, differ by
private parts of variance :math:`Q - Q_{12}`, which are independent. So their h are independent,
and each has the mean that this module computes.

For losses made of parabolas and lines h is a broken line in the shortfall u, with slopes
:math:`a_j`, that vanishes at some :math:`u_0`. Then

.. math:: E h = \sum_j a_j \left[\int_{j,\,u > u_0} P(U > u)\,du
    - \int_{j,\,u < u_0} P(U < u)\,du\right],

which has no differences of large numbers if short pieces are integrated by nodes. Other losses take
the averages of a row of `labels_side`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.compiled import E0, E1
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import gauss_legendre
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import CERTAIN
from hiddenmanifold.theory.labels_side.averages import Branch
from hiddenmanifold.theory.labels_side.proximal_curve import Field

SHORT = 0.5
"""Length of a piece, in deviations, up to which nodes are more exact than differences."""
NODES = 10
"""Gauss–Legendre nodes of a short piece: exact to rounding."""


FARTHEST = 40.0
"""Deviations beyond which nothing of the normal law is left."""


def private_means(
    loss: Loss, V: Array, mean: Array, deviation: Array, level: int
) -> tuple[Array, Array]:
    """E h and its derivative by the mean of the shortfall, all arrays (rows,)."""
    if loss.scale is None and np.isfinite(loss.minimisers).any():
        return _broken_line(loss, V, mean, deviation)
    zero = np.zeros_like(V)
    field = Field(V, mean, deviation, zero, zero, zero)
    found = Branch(1, 1.0, CERTAIN, field, mean, zero, zero).averages(loss, level, False)
    return found.e[:, E0], found.e[:, E1]


def _broken_line(loss: Loss, V: Array, mean: Array, deviation: Array) -> tuple[Array, Array]:
    """The same if the curvature of the loss is constant between its knots."""
    root = next(end for end in loss.minimisers[::-1] if np.isfinite(end))
    value, slope = np.zeros_like(mean), np.zeros_like(mean)
    for steepness, first, last in _pieces(loss, V):
        low, high = np.maximum(first, root), np.minimum(last, root)
        z_first, z_low, z_high, z_last = (
            (end - mean) / deviation for end in (first, low, high, last)
        )
        if np.any(low < last):
            value += steepness * deviation * _exceeding(z_low, z_last)
        if np.any(first < high):  # the same, seen from the other side
            value -= steepness * deviation * _exceeding(-z_high, -z_first)
        slope += steepness * (scipy.special.ndtr(z_last) - scipy.special.ndtr(z_first))
    return value, slope


def _pieces(loss: Loss, V: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Slopes of h, where they are not zero, with the shortfalls between which they hold."""
    s, below, above, _ = loss.knots
    middle = np.concatenate([[s[0] - 1.0], 0.5 * (s[1:] + s[:-1]), [s[-1] + 1.0]])
    enter = [*(s[:, None] + V * below[:, None]), np.full_like(V, np.inf)]
    leave = [np.full_like(V, -np.inf), *(s[:, None] + V * above[:, None])]
    for bend, first, last in zip(loss.second_derivative(middle), leave, enter, strict=True):
        if bend > 0.0:
            yield bend / (1.0 + V * bend), first, last
    for k in np.flatnonzero(above > below):
        yield 1.0 / V, enter[k], leave[k + 1]


def _exceeding(low: Array, high: Array) -> Array:
    """The integral of P(z > t) over t from low to high, zero if there is nothing between."""
    low = np.minimum(low, high)
    found = _beyond(low) - _beyond(high)
    short = np.flatnonzero(high - low < SHORT)
    if short.size:
        x, w = gauss_legendre(NODES, 0)
        start, length = low[short, None], (high - low)[short, None]
        found[short] = (length * w * scipy.special.ndtr(-(start + length * x))).sum(1)
    return found


def _beyond(t: Array) -> Array:
    """The mean of (z - t)_+ for a standard normal z."""
    finite = np.minimum(t, FARTHEST)
    mean: Array = normal_density(finite) - finite * scipy.special.ndtr(-finite)
    return mean
