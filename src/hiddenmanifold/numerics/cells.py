"""A smooth function and its derivatives as polynomials on cells, for compiled code to evaluate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.polynomial import chebyshev

from hiddenmanifold.arrays import Array, Booleans

Functions = Sequence[Callable[[Array], Array]]

POWERS = 12
"""Coefficients of a polynomial."""
PER_SCALE = (2, 4, 8)
"""Cells to the length over which the functions bend: as few as resolve them."""
FARTHEST = 480
"""Extent of the cells, in units of that length: beyond it exponentials are negligible."""
RESOLVED = 5e-14
"""Largest error of a polynomial, relative to the largest value in its cell."""
SMALLEST = 1e-140
"""Errors below this do not count."""


@dataclass(frozen=True)
class Cells:
    """Polynomials, and the intervals on which each applies.

    Attributes
    ----------
    table : array (cells, 3 + 3 powers)
        Right end, origin and inverse unit of each cell, then the coefficients in powers of
        (s - origin)/unit, by pairs of powers: those of the two derivatives side by side, then those
        of the function; NaN where no polynomial is accurate enough.
    first : array (bins, 1)
        The cell in which each of many bins of equal width begins.
    low, per_bin : float
        Left end of the bins, and their inverse width.
    """

    table: Array
    first: Array
    low: float
    per_bin: float

    @property
    def resolved(self) -> bool:
        """Whether all cells but the unbounded ones, to which few points come, have polynomials."""
        return bool(np.isfinite(self.table[1:-1]).all())


@dataclass(frozen=True)
class _Division:
    """Cells by their ends; a cell with both ends finite is curved, the others are parabolas."""

    left: Array
    right: Array
    origin: Array
    unit: Array
    curved: Booleans

    def samples(self) -> Array:
        """Places in each cell to test polynomials at, far out if it has no end."""
        share = 0.5 + 0.4999 * np.cos(np.pi * np.arange(POWERS + 1) / POWERS)
        far = np.geomspace(1e-3, 1e9, len(share))
        a, b, o = self.left[:, None], self.right[:, None], self.origin[:, None]
        inside = np.where(np.isfinite(b), a + (b - a) * share, o + far)
        return np.where(np.isfinite(a), inside, o - far)


def cells(
    functions: Functions, kinks: Sequence[float], scale: float | None, minimiser: float
) -> Cells:
    """Cells that the kinks divide, and polynomials that have passed their test.

    Parameters
    ----------
    functions : three callables
        First derivative, second derivative, and the function itself.
    kinks : sequence of float
        Where the first or second derivative jumps.
    scale : float or None
        Length over which they bend; None promises parabolas between kinks.
    minimiser : float
        Where the first derivative vanishes, and must have its relative precision.
    """
    tried = (_cells(functions, kinks, scale, minimiser, per_scale) for per_scale in PER_SCALE)
    widest = next(tried)
    if scale is None or widest.resolved:
        return widest
    return next((finer for finer in tried if finer.resolved), widest)


def _cells(
    functions: Functions,
    kinks: Sequence[float],
    scale: float | None,
    minimiser: float,
    per_scale: int,
) -> Cells:
    """The same with a given number of cells to the scale."""
    corners = np.array(sorted(kinks))
    bins = np.empty(0)
    if scale is not None:  # powers of two, so that nodes are where they are said to be
        half = 2.0 ** np.floor(np.log2(0.5 * scale / per_scale))
        count = int(FARTHEST * scale / (2.0 * half))
        bins = half * np.arange(-2 * count - 1, 2 * count + 2, 2)
    grid = bins[np.abs(bins[:, None] - np.append(corners, np.inf)).min(1) > 1e-3 * (scale or 1.0)]
    edges = np.unique(np.concatenate([[-np.inf], grid, corners, [np.inf]]))
    with np.errstate(all="ignore"):  # what is not finite passes no test
        division = _divided(edges, corners, minimiser, scale is not None)
        table = _polynomials(functions, division, minimiser)
        table[~_passed(functions, division, table, per_scale)] = np.nan
    header = np.stack([division.right, division.origin, 1.0 / division.unit], axis=1)
    pairs = table.reshape(len(table), 3, -1, 2)
    slopes, values = (a.reshape(len(table), -1) for a in (pairs[:, :2].swapaxes(1, 2), pairs[:, 2]))
    first = np.append(0, np.searchsorted(edges, bins, side="right") - 1)
    low, per_bin = (2.0 * bins[0] - bins[1], 0.5 / half) if len(bins) else (0.0, 0.0)
    return Cells(np.hstack([header, slopes, values]), first[:, None].astype(float), low, per_bin)


def _divided(edges: Array, kinks: Array, minimiser: float, bent: bool) -> _Division:
    """The cells between edges.

    The origin of a cell is its middle; that of one beside a kink, or of an unbounded one, is the
    end nearest to minimiser; that of the cell around minimiser is minimiser.
    """
    left, right = edges[:-1], edges[1:]
    bounded = np.isfinite(left) & np.isfinite(right)
    aside = bounded & ~np.isin(left, kinks) & ~np.isin(right, kinks)
    end = np.where(minimiser < right, np.nextafter(left, np.inf), np.nextafter(right, -np.inf))
    origin = np.where(aside, 0.5 * (left + right), end)
    origin = np.where((left < minimiser) & (minimiser < right), minimiser, origin)
    curved = bounded & bent
    return _Division(left, right, origin, np.where(curved, 0.5 * (right - left), 1.0), curved)


def _polynomials(functions: Functions, division: _Division, minimiser: float) -> Array:
    """Coefficients (cells, functions, powers), which are still to be tested."""
    d, curved = division, division.curved
    table = np.zeros((len(d.left), 3, POWERS if curved.any() else 4))
    slope, bend, value = (f(d.origin) for f in functions)
    table[:, 0, 1], table[:, 2, 1], table[:, 2, 2] = bend, slope, 0.5 * bend
    if curved.any():
        table[curved] = _fitted(functions, d.left[curved], d.right[curved], d.origin[curved])
    table[:, :, 0] = np.stack([slope, bend, value], axis=1)
    around = (d.left < minimiser) & (minimiser < d.right)
    table[around, 2, 1] = (slope * d.unit)[around]
    table[(np.abs(table) < SMALLEST) & ~curved[:, None, None]] = 0.0
    return table


def _fitted(functions: Functions, left: Array, right: Array, origin: Array) -> Array:
    """Polynomials that interpolate in Chebyshev's points, in powers of (s - origin)/unit."""
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    t = np.round(chebyshev.chebpts1(POWERS) * 2.0**20) / 2.0**20
    at = middle[:, None] + half[:, None] * t
    values = np.stack([f(at) for f in functions], axis=1)
    to_powers = np.array(
        [np.pad(chebyshev.cheb2poly(row), (0, POWERS))[:POWERS] for row in np.eye(POWERS)]
    )
    found: Array = values @ np.linalg.inv(chebyshev.chebvander(t, POWERS - 1)).T @ to_powers
    i, j = np.indices((POWERS, POWERS))
    binomial = np.vectorize(comb)(i, j).astype(float)
    shift = (origin - middle) / half
    for cell in np.flatnonzero(shift):  # (t + d)^i = sum_j C(i, j) d^(i-j) t^j
        found[cell] = found[cell] @ (binomial * shift[cell] ** np.maximum(i - j, 0))
    return found


def _passed(functions: Functions, division: _Division, table: Array, per_scale: int) -> Booleans:
    """Whether the polynomials of a cell agree with the functions between their nodes."""
    at = division.samples()
    t = ((at - division.origin[:, None]) / division.unit[:, None])[:, None]
    values = np.stack([f(at) for f in functions], axis=1)
    found = np.zeros_like(values)
    for column in np.moveaxis(table, 2, 0)[::-1]:
        found = found * t + column[..., None]
    size = np.abs(values)
    size = np.where(division.curved[:, None, None], size.max(2, keepdims=True), size)
    # a function that is small because it is least may have lost digits, which do not matter
    size[:, 2] += (2.0 * per_scale * division.unit[:, None]) ** 2 * size[:, 1]
    close = (np.abs(found - values) <= RESOLVED * size + SMALLEST) & np.isfinite(values)
    passed: Booleans = np.all(close, axis=(1, 2))
    return passed
