"""Fixed points of a map that is known by its values alone.

The iteration is Anderson's (*J. ACM* 1965): the next point is the combination of the last ones
whose residuals cancel best, moved along what is left of these. It needs no derivatives, and it
takes a third of the steps of plain iteration, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array

RELAXATION = 0.7
"""Share of a residual by which a point moves."""
MEMORY = 8
"""Points that are combined: between 5 and 12 the number of steps hardly depends on it."""
LONGEST = 2.0
"""Longest step of any unknown."""
WORSE = 10.0
"""Growth of the residual after which the points before are forgotten."""
FLAT = 1e-10
"""Singular value of the differences of residuals, in units of the largest, that is rounding."""


@dataclass(frozen=True)
class FixedPoint:
    """Where the iteration ended, and the residual there."""

    x: Array
    residual: float
    iterations: int


def fixed_point(
    turn: Callable[[Array], Array], x: Array, tolerance: float, most: int
) -> FixedPoint:
    """Iterate until no component of ``turn(x) - x`` exceeds the tolerance, or `most` times.

    A residual that is not finite counts as infinite, and ends the iteration.
    """
    points: list[Array] = []
    residuals: list[Array] = []
    best = FixedPoint(x, np.inf, 0)
    for iterations in range(1, most + 1):
        r = turn(x) - x
        size = float(np.abs(r).max())
        if not np.isfinite(size):
            return FixedPoint(best.x, best.residual, iterations)
        if size > WORSE * best.residual:
            points, residuals = points[-1:], residuals[-1:]
        best = FixedPoint(
            x if size < best.residual else best.x, min(size, best.residual), iterations
        )
        if size <= tolerance:
            return FixedPoint(x, size, iterations)
        points, residuals = [*points[-MEMORY:], x], [*residuals[-MEMORY:], r]
        x = x + np.clip(_step(points, residuals), -LONGEST, LONGEST)
    return best


def _step(points: list[Array], residuals: list[Array]) -> Array:
    """The step from the last point to the next one."""
    r = residuals[-1]
    if len(points) == 1:
        return RELAXATION * r
    dr, dx = np.diff(residuals, axis=0).T, np.diff(points, axis=0).T
    weights = np.linalg.lstsq(dr, r, rcond=FLAT)[0]
    step: Array = RELAXATION * r - (dx + RELAXATION * dr) @ weights
    return step
