"""Gauss–Legendre quadrature on ragged panels: each row of a batch has its own break points."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hiddenmanifold.arrays import Array, Integers


@lru_cache(maxsize=32)
def gauss_legendre(order: int, halvings: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1] of the rule of `order`, repeated on `2**halvings` equal parts."""
    x, w = np.polynomial.legendre.leggauss(order)
    parts = 2**halvings
    nodes = (np.arange(parts)[:, None] + 0.5 * (x + 1.0)).ravel() / parts
    weights = np.tile(0.5 * w / parts, parts)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def sum_by_row(panel_sums: Array, row: Integers, rows: int) -> Array:
    """Add up the last axis of per-panel sums into their rows (`row` ascending)."""
    total = np.zeros((*panel_sums.shape[:-1], rows))
    if row.size:
        first = np.flatnonzero(np.diff(row, prepend=-1))
        total[..., row[first]] = np.add.reduceat(panel_sums, first, axis=-1)
    return total
