r"""The label law of any rule as polynomials in the mean of its field, for compiled code.

An average over the field is smooth on the scale of :math:`\sqrt{V_0}`, however the rule jumps. It
is interpolated once: between some variances, each four times the next, and there in the mean, on
cells that are halved until the interpolant agrees with the law between their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.compiled import CompiledLaw
from hiddenmanifold.numerics.cells import POWERS
from hiddenmanifold.teachers.base import CompiledRows, Law

VARIANCES = 24
"""Variances between which a level interpolates."""
RATIO, LEVELS = 4.0, 10
"""Largest variance of a level over its least one, and how many levels there are."""
FARTHEST = 9.5
"""How far cells reach, in deviations of the field: the mean goes no farther on any node."""
MOST_CELLS = 256
"""Cells that may be tried on a level."""
RESOLVED = 3e-13
"""Largest error, relative to the largest value in a cell, in units of the deviation."""
FLOOR = 5e-15
"""Errors below this, relative to the probability of the label, do not count."""
BLOCK = 128
"""Points whose polynomials are held at once."""


@dataclass(frozen=True)
class LawTable:
    """The law of one label, tabulated level by level on first use.

    Parameters
    ----------
    law : callable
        The label law and its derivatives, of mean and variance.
    rho : float
        Largest variance.
    share : float
        Probability of the label.
    """

    law: Callable[[Array, Array], Law]
    rho: float
    share: float
    _levels: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:  # levels are soon made, and long to send
        return LawTable, (self.law, self.rho, self.share)

    def at(self, V0: Array) -> Iterator[CompiledRows]:
        """Some points, and the law at their variances; those that no level covers are left out."""
        with np.errstate(all="ignore"):
            depth = np.log(self.rho / V0) / np.log(RATIO)
            levels = np.where(depth < LEVELS, np.maximum(np.floor(depth), 0.0), -1.0)
        for level in np.unique(levels[levels >= 0]).astype(int):
            if level not in self._levels:
                self._levels[level] = _tabulated(self, level)
            cells, nodal = self._levels[level]
            rows = np.flatnonzero(levels == level)
            for some in np.split(rows, range(BLOCK, len(rows), BLOCK)):
                shares = _interpolating(2.0 * (depth[some] - level) - 1.0)
                yield some, CompiledLaw(law_cells=cells, law_polynomials=shares @ nodal)


@lru_cache
def _from_values(nodes: int) -> Array:
    """From values in Chebyshev's points to coefficients of his polynomials."""
    values = chebyshev.chebvander(chebyshev.chebpts1(nodes), nodes - 1)
    return np.asarray(np.linalg.inv(values), dtype=float)


def _interpolating(t: Array) -> Array:
    """Interpolation weights of each variance, as t in [-1, 1], on those of its level."""
    weights: Array = chebyshev.chebvander(t, VARIANCES - 1) @ _from_values(VARIANCES)
    return weights


def _tabulated(table: LawTable, level: int) -> tuple[Array, Array]:
    """The cells (cells, 3) of a level, and coefficients (variances, ...) at its variances."""
    edges = np.sqrt(table.rho) * np.linspace(-FARTHEST, FARTHEST, 20)
    left, right, tried = edges[:-1], edges[1:], 0
    ends, found = [], []
    while left.size:
        tried += len(left)
        made = _fitted(table, level, left, right)
        good = _passed(table, level, left, right, made)
        if tried > MOST_CELLS:
            made[:, ~good], good = np.nan, np.ones_like(good)
        ends.append(np.stack([left[good], right[good]]))
        found.append(made[:, good])
        middle = 0.5 * (left[~good] + right[~good])
        left, right = np.append(left[~good], middle), np.append(middle, right[~good])
    low, high = np.concatenate(ends, axis=1)
    order = np.argsort(low)
    cells = np.stack([high, 0.5 * (low + high), 2.0 / (high - low)], axis=1)[order]
    nodal = np.concatenate(found, axis=1)[:, order].reshape(VARIANCES, -1)
    return cells, nodal


def _values(table: LawTable, level: int, x: Array, t: Array) -> tuple[Array, Array]:
    """The law and its derivatives (4, t, *x) at means x and variances given by t, which follow."""
    V0 = table.rho * RATIO ** -(level + 0.5 * (t + 1.0))
    V0 = V0.reshape(-1, *[1] * x.ndim)
    Z, Z1, Z2 = table.law(x[None], V0)
    return np.stack([Z, Z1, Z2, np.zeros_like(Z)]), V0


def _fitted(table: LawTable, level: int, left: Array, right: Array) -> Array:
    """Coefficients (variances, cells, powers, 4) that interpolate in Chebyshev's points."""
    t = chebyshev.chebpts1(POWERS)
    x = 0.5 * (left + right)[:, None] + 0.5 * (right - left)[:, None] * t
    values, _ = _values(table, level, x, chebyshev.chebpts1(VARIANCES))
    powers = np.array(
        [np.pad(chebyshev.cheb2poly(row), (0, POWERS))[:POWERS] for row in np.eye(POWERS)]
    )
    # from the left: the coefficients of Chebyshev's polynomials fall, and keep their digits
    found = values @ _from_values(POWERS).T @ powers
    return np.moveaxis(found, 0, -1)


def _passed(table: LawTable, level: int, left: Array, right: Array, made: Array) -> Booleans:
    """Whether the polynomials of each cell agree with the law between their nodes."""
    t, tau = np.cos(np.pi * np.arange(POWERS + 1) / POWERS), np.linspace(-1.0, 1.0, 6)
    x = 0.5 * (left + right)[:, None] + 0.5 * (right - left)[:, None] * t
    values, V0 = _values(table, level, x, tau)
    said = np.einsum("vu,ucpf,px->fvcx", _interpolating(tau), made, t ** np.arange(POWERS)[:, None])
    units = np.stack([np.ones_like(V0), np.sqrt(V0), V0])
    errors, sizes = ((np.abs(a[:3]) * units).max((0, 1, 3)) for a in (said - values, values))
    passed: Booleans = errors <= RESOLVED * sizes + FLOOR * table.share
    return passed
