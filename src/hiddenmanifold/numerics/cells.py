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
PER_SCALE = 2
"""Cells to the length over which the functions bend."""
FARTHEST = 480
"""How far cells reach, in units of that length: there, exponentials have become negligible."""
RESOLVED = 5e-14
"""Largest error of a polynomial, relative to the largest value in its cell."""
SMALLEST = 1e-140
"""Errors below this do not count."""


@dataclass(frozen=True)
class Cells:
    """Where which polynomials apply.

    Attributes
    ----------
    table : array (cells, 3 + 3 powers)
        Right end, origin and inverse unit of each cell, then the coefficients in powers of
        (s - origin)/unit, by pairs of powers: those of the two derivatives side by side, then those
        of the function; NaN where none will do.
    first : array (bins, 1)
        The cell in which each of many bins of equal width begins.
    low, per_bin : float
        Left end of the bins, and their inverse width.
    """

    table: Array
    first: Array
    low: float
    per_bin: float


def cells(functions: Functions, kinks: Sequence[float], scale: float | None, rest: float) -> Cells:
    """Cells that the kinks divide, and polynomials that have passed their test.

    Parameters
    ----------
    functions : three callables
        First derivative, second derivative, and the function itself.
    kinks : sequence of float
        Where the first or second derivative jumps.
    scale : float or None
        Length over which they bend; None promises parabolas between kinks.
    rest : float
        Where the first derivative vanishes, and must have its relative precision.
    """
    kinks = np.array(sorted(kinks))
    grid, count, low, per_bin = np.empty(0), 0, 0.0, 0.0
    if scale is not None:  # powers of two, so that nodes are where they are said to be
        half = 2.0 ** np.floor(np.log2(0.5 * scale / PER_SCALE))
        count = int(FARTHEST * scale / (2.0 * half))
        grid = half * np.arange(-2 * count - 1, 2 * count + 2, 2)
        low, per_bin = grid[0] - 2.0 * half, 0.5 / half
        grid = grid[np.abs(grid[:, None] - np.append(kinks, np.inf)).min(1) > 1e-3 * half]
    edges = np.unique(np.concatenate([[-np.inf], grid, kinks, [np.inf]]))
    left, right = edges[:-1], edges[1:]
    curved = np.isfinite(left) & np.isfinite(right) & (scale is not None)
    unit = np.where(curved, 0.5 * (right - left), 1.0)
    table = np.zeros((len(left), 3, POWERS if curved.any() else 4))
    with np.errstate(all="ignore"):  # what is not finite passes no test
        origin = _origins(left, right, kinks, rest)
        slope, bend, value = (f(origin) for f in functions)
        table[:, 0, 1], table[:, 2, 1], table[:, 2, 2] = bend, slope, 0.5 * bend
        if curved.any():
            table[curved] = _fitted(functions, left[curved], right[curved], origin[curved])
        table[:, :, 0] = np.stack([slope, bend, value], axis=1)
        at_rest = (left < rest) & (rest < right)
        table[at_rest, 2, 1] = (slope * unit)[at_rest]
        table[(np.abs(table) < SMALLEST) & ~curved[:, None, None]] = 0.0
        table[~_passed(functions, table, left, right, origin, unit)] = np.nan
    bins = low + np.arange(2 * count + 3) / per_bin if per_bin else np.zeros(1)
    first = np.searchsorted(edges, bins, side="right") - 1.0
    first[0] = 0.0
    header = np.stack([right, origin, 1.0 / unit], axis=1)
    pairs = table.reshape(len(left), 3, -1, 2)
    slopes, values = (a.reshape(len(left), -1) for a in (pairs[:, :2].swapaxes(1, 2), pairs[:, 2]))
    return Cells(np.hstack([header, slopes, values]), first[:, None], low, per_bin)


def _origins(left: Array, right: Array, kinks: Array, rest: float) -> Array:
    """The middle of each cell; beside a kink and of unbounded cells, the end nearest to rest."""
    aside = np.isfinite(left) & np.isfinite(right) & ~np.isin(left, kinks) & ~np.isin(right, kinks)
    end = np.where(rest < right, np.nextafter(left, np.inf), np.nextafter(right, -np.inf))
    origin = np.where(aside, 0.5 * left + 0.5 * right, end)
    return np.where((left < rest) & (rest < right), rest, origin)


def _fitted(functions: Functions, left: Array, right: Array, origin: Array) -> Array:
    """Interpolating polynomials, (cells, functions, powers), around their origins."""
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    t = np.round(chebyshev.chebpts1(POWERS) * 2.0**20) / 2.0**20
    at = middle[:, None] + half[:, None] * t
    values = np.stack([f(at) for f in functions], axis=1)
    to_powers = np.array(
        [np.pad(chebyshev.cheb2poly(row), (0, POWERS))[:POWERS] for row in np.eye(POWERS)]
    )
    found = values @ np.linalg.inv(chebyshev.chebvander(t, POWERS - 1)).T @ to_powers
    shift = (origin - middle) / half
    for cell in np.flatnonzero(shift):  # (t + d)^i = sum_j C(i, j) d^(i-j) t^j
        row = range(POWERS)
        found[cell] @= np.array([[comb(i, j) * shift[cell] ** max(i - j, 0) for j in row] for i in row])
    return found


def _passed(
    functions: Functions, table: Array, left: Array, right: Array, origin: Array, unit: Array
) -> Booleans:
    """Whether the polynomials of a cell agree with the functions between their nodes."""
    share = 0.5 + 0.4999 * np.cos(np.pi * np.arange(POWERS + 1) / POWERS)
    far = unit[:, None] * np.geomspace(1e-3, 1e9, len(share))
    a, b, o = left[:, None], right[:, None], origin[:, None]
    at = np.where(np.isfinite(a), np.where(np.isfinite(b), a + (b - a) * share, o + far), o - far)
    t = (at - o) / unit[:, None]
    values = np.stack([f(at) for f in functions], axis=1)
    found = np.zeros_like(values)
    for column in np.moveaxis(table, 2, 0)[::-1]:
        found = found * t[:, None] + column[..., None]
    size = np.abs(values)
    if table.shape[2] == POWERS:
        bounded = (np.isfinite(left) & np.isfinite(right))[:, None, None]
        size = np.where(bounded, size.max(2, keepdims=True), size)
    # the function may have lost digits where it is small because it is least: they do not matter
    size[:, 2] += (2.0 * PER_SCALE * unit[:, None]) ** 2 * size[:, 1]
    close = np.abs(found - values) <= RESOLVED * size + SMALLEST
    passed: Booleans = (close & np.isfinite(values)).all((1, 2))
    return passed
