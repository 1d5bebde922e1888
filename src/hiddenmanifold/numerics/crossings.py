"""Where many curves come down to a target: for good, and for the first time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.numerics.minima import Function, Samples, hidden_turns, refined_minima
from hiddenmanifold.numerics.roots import increasing_root

ROUNDING = 1e-12
"""Relative distance above the target that counts as none."""
STILL = 1e-9
"""Slope, relative to the value, that counts as none."""
CLOSE = 1e-8
"""Relative distance from the target that a crossing may have."""


def with_turns(curve: Function, scan: Samples) -> Samples:
    """Samples and all minima and maxima between them, so that neighbours enclose no other."""

    def upside_down(point: Integers, t: Array) -> tuple[Array, Array]:
        value, slope = curve(point, t)
        return -value, -slope

    still = np.abs(scan.slope) <= STILL * np.abs(scan.value)  # noise of a plateau turns nowhere
    scan = replace(scan, slope=np.where(still, 0.0, scan.slope))
    minima, maxima = _minima(curve, scan), _minima(upside_down, _flipped(scan))
    return scan + minima + _flipped(maxima)


def _minima(curve: Function, scan: Samples) -> Samples:
    scan = scan.ordered()
    left, right = (scan + hidden_turns(curve, scan)).ordered().pairs()
    rising = right.trend > 0
    return refined_minima(curve, left[rising], right[rising])


def _flipped(samples: Samples) -> Samples:
    return replace(samples, value=-samples.value, slope=-samples.slope)


def descents(
    curve: Function, samples: Samples, target: Array
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The t from which on each curve stays at its target or below, and the first where it is.

    Minus infinity if it is there from the first sample on, plus infinity if it never is. Each comes
    with the value there (of the first sample, or of the last); both are NaN where a sample that
    matters is.
    """
    samples = samples.ordered()
    most = (target * (1.0 + ROUNDING))[samples.point]
    order, (lasting, first) = np.arange(len(samples.t)), _ends(samples, len(target))
    above, below = ~(samples.value <= most), ~(samples.value > most)  # NaN may be either
    np.maximum.at(lasting, samples.point[above], order[above] + 1)
    np.minimum.at(first, samples.point[below], order[below])
    for_good = _crossing(curve, samples, target, lasting)
    again = np.where(first == lasting, _ends(samples, len(target))[0], first)  # is known by now
    at_first = _crossing(curve, samples, target, again)
    t, value = (np.where(first == lasting, *both) for both in zip(for_good, at_first, strict=True))
    return for_good, (t, value)


def _ends(samples: Samples, points: int) -> tuple[Integers, Integers]:
    """Index of the first sample of each point, and of the one after its last."""
    start, end = (np.searchsorted(samples.point, np.arange(points), s) for s in ("left", "right"))
    return start, end


def _crossing(
    curve: Function, samples: Samples, target: Array, after: Integers
) -> tuple[Array, Array]:
    """Where each curve comes down between the sample `after` and the one before it, and to what."""
    start, end = _ends(samples, len(target))
    left, right = np.maximum(after - 1, start), np.minimum(after, end - 1)
    t = np.where(after == start, -np.inf, np.inf)
    value = samples.value[right]
    inside = (after > start) & (after < end)

    some = np.flatnonzero(inside & ~np.isnan(samples.value[left] + value))

    def fallen(t: Array, which: Integers) -> tuple[Array, Array]:
        value, slope = curve(some[which], t)
        return target[some[which]] - value, -slope

    if some.size:
        bracket = samples.t[left[some]], samples.t[right[some]]
        t[some] = increasing_root(fallen, bracket, 0.01 * CLOSE * target[some])
        value[some] = curve(some, t[some])[0]
    missed = np.isnan(samples.value[left]) | (inside & ~(np.abs(value - target) <= CLOSE * target))
    return np.where(missed, np.nan, t), np.where(missed, np.nan, value)
