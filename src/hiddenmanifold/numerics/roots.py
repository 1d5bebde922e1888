"""Batched root of an increasing function by Newton steps kept inside a bracket that must shrink."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array, Integers

PATIENCE = 4
"""Number of evaluations within which a bracket should lose half of its floating-point numbers."""
CLOSE = 4
"""Largest distance, in floating-point numbers, of the ends of a bracket that counts as a root."""
MINUS_ZERO = np.iinfo(np.int64).min
"""The bits of -0.0, read as an integer."""


def increasing_root(
    function: Callable[[Array, Integers], tuple[Array, Array]],
    bracket: tuple[Array, Array],
    tolerance: Array | float = 0.0,
    start: Array | None = None,
) -> Array:
    """Where an increasing function vanishes, element by element.

    The search cannot end unconverged: a bracket that Newton's steps leave wide is cut in two,
    halfway or so that half of the floating-point numbers inside are left, of which there are fewer
    than 2⁶⁴ to begin with.

    Parameters
    ----------
    function : callable
        ``function(x, index)`` returns the values at `x` of the elements `index`, and the slopes of
        the lines that lead to their roots (NaN where none is known).
    bracket : pair of arrays
        Where the root is sought; equal ends state it.
    tolerance : array or float
        Modulus of a value after which one last step is taken; 0 means to rounding.
    start : array, optional
        Where to begin, or at the nearest end; the middle of the bracket by default.

    Returns
    -------
    array
        The roots: an end of the bracket where there is none inside, NaN where the function is.
    """
    shape = bracket[0].shape
    low, high = (np.ravel(end).astype(float) for end in bracket)
    tolerance = np.broadcast_to(tolerance, shape).ravel()
    seen = np.zeros((2, len(low)), dtype=bool)  # whether the function is known at the ends
    x = np.clip(_middle(low, high) if start is None else np.ravel(start), low, high)
    width, todo = _numbers(low, high), np.flatnonzero(high > low)
    for turn in count(1):
        if not todo.size:
            break
        at = x[todo]
        value, slope = function(at, todo)
        below, above = value < 0, value >= 0
        low[todo[below]], high[todo[above]] = at[below], at[above]
        seen[:, todo] |= below, above
        lo, hi = low[todo], high[todo]
        left = _numbers(lo, hi)
        judged = turn % PATIENCE == 0
        wide = judged & (left > width[todo] // 2)
        width[todo] = left if judged else width[todo]
        with np.errstate(all="ignore"):
            step = value / slope
            root = at - step
            # a little too far, so that the other end follows; or twice as far, before it is forced
            beyond = 0.5 * CLOSE * np.copysign(np.spacing(np.abs(at)), value)
            trial = np.clip(root - np.where(wide, step + beyond, beyond), lo, hi)
        known = (trial == lo) & seen[0, todo] | (trial == hi) & seen[1, todo]
        cut = wide & (turn % (2 * PATIENCE) == 0) | known | np.isnan(trial)
        done = (np.abs(value) <= tolerance[todo]) | (left <= CLOSE) | np.isnan(value)
        final = np.where(((root >= lo) & (root <= hi)) | np.isnan(value), root, at)
        if cut.any():
            middle = _middle(lo, hi) if turn % 3 else _halfway(lo, hi)
            trial = np.where(cut, middle, trial)
        x[todo] = np.where(done, final, trial)
        todo = todo[~done]
    return x.reshape(shape)


def _middle(low: Array, high: Array) -> Array:
    """The mean of both ends, if they are finite."""
    with np.errstate(invalid="ignore"):
        mean = 0.5 * low + 0.5 * high
    finite = np.isfinite(mean)
    return mean if finite.all() else np.where(finite, mean, _halfway(low, high))


def _ordinal(x: Array) -> NDArray[np.int64]:
    """Place of a number among all floating-point numbers; zero has 0."""
    bits = x.view(np.int64)
    return np.where(bits < 0, MINUS_ZERO - bits, bits)


def _numbers(low: Array, high: Array) -> NDArray[np.uint64]:
    """Number of floating-point steps from one number to the other."""
    return (_ordinal(high) - _ordinal(low)).view(np.uint64)  # which may exceed the signed ones


def _halfway(low: Array, high: Array) -> Array:
    """The number with as many others towards one end as towards the other."""
    a, b = _ordinal(low), _ordinal(high)
    middle = (a & b) + ((a ^ b) >> 1)
    return np.where(middle < 0, MINUS_ZERO - middle, middle).view(np.float64)
