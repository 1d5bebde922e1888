"""Batched root of an increasing function by Newton steps kept inside a shrinking bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hiddenmanifold.arrays import Array

MAX_ITERATIONS = 200


def increasing_root(
    function: Callable[[Array, Array], tuple[Array, Array]],
    target: Array,
    bracket: tuple[Array, Array],
    parameter: Array,
    tolerance: Array | float = 0.0,
) -> Array:
    """Solve ``function(x, parameter)[0] == target`` element by element.

    Parameters
    ----------
    function : callable
        Returns the values of an increasing function and its slope (at least 1 in this package).
    target, parameter : arrays of one shape
        The value sought, and what the function is given.
    bracket : pair of arrays
        Where the root is sought; equal ends state it.
    tolerance : array or float
        Accepted distance from the target; 0 means to rounding.
    """
    shape = target.shape
    target, low, high, parameter = (np.ravel(a).copy() for a in (target, *bracket, parameter))
    tolerance = np.broadcast_to(np.asarray(tolerance, dtype=float), shape).ravel()
    x = 0.5 * (low + high)
    todo = np.flatnonzero(high > low)
    for _ in range(MAX_ITERATIONS):
        if not todo.size:
            break
        at = x[todo]
        value, slope = function(at, parameter[todo])
        excess = value - target[todo]
        below = excess < 0
        low[todo[below]] = at[below]
        high[todo[~below]] = at[~below]
        trial = at - excess / slope
        lo, hi = low[todo], high[todo]
        # a root at the very end of its bracket may be overshot by rounding: not a failed step
        slack = 1e-14 * (np.abs(lo) + np.abs(hi))
        inside = (trial >= lo - slack) & (trial <= hi + slack)
        x[todo] = new = np.where(inside, np.clip(trial, lo, hi), 0.5 * (lo + hi))
        settled = (np.abs(excess) <= tolerance[todo]) | (
            np.abs(new - at) <= 4e-16 * np.maximum(np.abs(at), np.abs(new))
        )
        todo = todo[~settled]
    return x.reshape(shape)
