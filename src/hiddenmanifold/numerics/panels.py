"""Averages over the normal law on Gauss–Legendre panels, which may differ from row to row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.numerics.special import normal_density

REACH = 9.0
"""Where the normal law is cut, in standard deviations (density 1e-18)."""
FAN = (-4.5, -1.5, 0.0, 1.5, 4.5)
"""Panel boundaries within it: a panel is resolved by 15 nodes."""
NEAR = (-REACH, *FAN, REACH)
FAR = (-38.0, -20.0, *NEAR, 20.0, 38.0)
"""Panel boundaries out to where the density underflows, for rare labels and steep losses."""
Function = Callable[[Integers, int], tuple[Array, Array | float]]
"""From some points and a level of fineness to their values, and the change that is accepted."""


@lru_cache(maxsize=32)
def gauss_legendre(order: int, halvings: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1] of the rule of `order`, repeated on `2**halvings` equal parts."""
    x, w = np.polynomial.legendre.leggauss(order)
    parts = 2**halvings
    nodes = (np.arange(parts)[:, None] + 0.5 * (x + 1.0)).ravel() / parts
    weights = np.tile(0.5 * w / parts, parts)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=32)
def stacked_rule(order: int, halvings: int) -> Array:
    """The nodes and weights of `gauss_legendre`, as compiled code takes them: (2, nodes)."""
    return np.array(gauss_legendre(order, halvings))


def sum_by_row(panel_sums: Array, row: Integers, rows: int) -> Array:
    """Add up the last axis of per-panel sums into their rows (`row` ascending)."""
    total = np.zeros((*panel_sums.shape[:-1], rows))
    if row.size:
        first = np.flatnonzero(np.diff(row, prepend=-1))
        total[..., row[first]] = np.add.reduceat(panel_sums, first, axis=-1)
    return total


def fanned(fan: Sequence[float] | Array, marks: Array) -> Array:
    """Edges of each row in increasing order: the fan, and the row's own marks within it.

    Marks (rows, k) beyond the fan, or NaN, cut nothing.
    """
    inside = np.fmax(np.fmin(marks, fan[-1]), fan[0])
    edges = np.concatenate([np.broadcast_to(fan, (len(marks), len(fan))), inside], axis=1)
    edges.sort(axis=1)
    return edges


@dataclass(frozen=True)
class Panels:
    """Nodes and weights of the normal law, in panels that belong to rows.

    ``row`` (panels,) is ascending; ``nodes`` and ``weights`` are (panels, nodes).
    """

    rows: int
    row: Integers
    nodes: Array
    weights: Array

    @classmethod
    def between(cls, edges: Array, rule: tuple[int, int]) -> Panels:
        """Panels between the sorted edges (rows, k), by a rule of (order, halvings)."""
        x, w = gauss_legendre(*rule)
        width = np.diff(edges, axis=1)
        row, column = np.nonzero(width > 0)
        width = width[row, column, None]
        nodes = edges[row, column, None] + width * x
        return cls(len(edges), row, nodes, width * w * normal_density(nodes))

    def sum(self, values: Array) -> Array:
        """Integral of `values` (..., panels, nodes) over the normal law, in each row."""
        return sum_by_row(np.einsum("ij,...ij->...i", self.weights, values), self.row, self.rows)


def refine(function: Function, shape: tuple[int, ...], levels: Iterable[int]) -> Array:
    """Values on ever finer levels, until they no longer change.

    The first axis of `shape` counts points, which leave when they have settled or are not finite;
    those that never settle are NaN.
    """
    values, todo = np.full(shape, np.nan), np.arange(shape[0])
    for level in levels:
        if not todo.size:
            break
        finer, accepted = function(todo, level)
        within = (np.abs(finer - values[todo]) <= accepted) | ~np.isfinite(finer)
        values[todo] = finer
        todo = todo[~within.reshape(len(todo), -1).all(1)]
    values[todo] = np.nan
    return values
