"""Where each of many curves falls to a target: the last crossing, and the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.numerics.minima import (
    Function,
    Samples,
    minima,
    negated,
    sampler,
)
from hiddenmanifold.numerics.roots import increasing_root

ROUNDING = 1e-12
"""Relative distance above the target that counts as none."""
STILL = 1e-9
"""Slope, relative to the value, that counts as none."""
CLOSE = 1e-8
"""Relative distance from the target that a crossing may have, before the last step to it."""
EVEN = 3.0
"""How much steeper or flatter than on average a curve may be at the ends of an interpolation."""


def bridged(samples: Samples, watched: Array) -> Samples:
    """Samples in order, without those that failed in the middle of a steady fall.

    A fall is steady if it is as steep before and after as between, like that of a power, and passes
    none of the `watched` places (places, points), at which curves may turn. Elsewhere failed
    samples stay, because the curve is unknown there.
    """
    samples = samples.ordered()
    lost = np.isnan(samples.value)
    solved, failed = np.flatnonzero(~lost), np.flatnonzero(lost)
    after = np.searchsorted(solved, failed)
    inside = (after > 0) & (after < len(solved))
    failed, after = failed[inside], after[inside]
    left, right = samples[solved[after - 1]], samples[solved[after]]
    place = watched[:, left.point]
    steady = (left.point == right.point) & (left.value > right.value) & _even(left, right)
    steady &= ~((left.t < place) & (place < right.t)).any(0)
    return samples[np.setdiff1d(np.arange(len(samples.t)), failed[steady])]


def with_turns(curve: Function, scan: Samples) -> Samples:
    """Samples and all minima and maxima between them, so that neighbours enclose no other."""
    still = np.abs(scan.slope) <= STILL * np.abs(scan.value)  # noise of a plateau turns nowhere
    scan = replace(scan, slope=np.where(still, 0.0, scan.slope))
    _, low = minima(sampler(curve), scan, plateaus=False)
    _, high = minima(sampler(negated(curve)), _flipped(scan), plateaus=False)
    return scan.extended(low, _flipped(high))


def _flipped(samples: Samples) -> Samples:
    return replace(samples, value=-samples.value, slope=-samples.slope)


def crossings(
    curve: Function, samples: Samples, target: Array, close: float = CLOSE
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The t from which on each curve stays at or below its target, and the first t at which it is.

    A t is minus infinity if the first sample is there already, plus infinity if none is. Each comes
    with the value there (of the first sample, or of the last); both are NaN where a sample that
    matters is, or where no value was found that is as `close` to the target, relative to it.
    """
    samples = samples.ordered()
    most = (target * (1.0 + ROUNDING))[samples.point]
    order, (lasting, first) = np.arange(len(samples.t)), _ends(samples, len(target))
    above, below = ~(samples.value <= most), ~(samples.value > most)  # NaN may be either
    np.maximum.at(lasting, samples.point[above], order[above] + 1)
    np.minimum.at(first, samples.point[below], order[below])
    for_good = _crossing(curve, samples, target, close, lasting)
    again = np.where(first == lasting, _ends(samples, len(target))[0], first)  # is known by now
    at_first = _crossing(curve, samples, target, close, again)
    t, value = (np.where(first == lasting, *both) for both in zip(for_good, at_first, strict=True))
    return for_good, (t, value)


def _ends(samples: Samples, points: int) -> tuple[Integers, Integers]:
    """Index of the first sample of each point, and of the one after its last."""
    start, end = (np.searchsorted(samples.point, np.arange(points), s) for s in ("left", "right"))
    return start, end


def _crossing(
    curve: Function, samples: Samples, target: Array, close: float, after: Integers
) -> tuple[Array, Array]:
    """Place and value of each curve's crossing between the sample `after` and the one before."""
    start, end = _ends(samples, len(target))
    left, right = np.maximum(after - 1, start), np.minimum(after, end - 1)
    t = np.where(after == start, -np.inf, np.inf)
    value = samples.value[right]
    inside = (after > start) & (after < end)
    missed = np.isnan(samples.value[left]) | (inside & np.isnan(value))
    some = np.flatnonzero(inside & ~missed)
    if some.size:
        between = samples[left[some]], samples[right[some]]
        t[some], value[some], missed[some] = _crossing_between(curve, *between, target[some], close)
    return np.where(missed, np.nan, t), np.where(missed, np.nan, value)


def _crossing_between(
    curve: Function, left: Samples, right: Samples, target: Array, close: float
) -> tuple[Array, Array, Booleans]:
    """Places and values of crossings between two samples each, and which were missed.

    The place is known to the square of the last step, and so is the value there.
    """
    last = np.full((3, len(target)), np.nan)

    def fallen(t: Array, which: Integers) -> tuple[Array, Array]:
        here = Samples.of(curve, left.point[which], t)
        last[:, which] = t, here.value, here.slope
        short = target[which] - here.value
        place = _interpolated([left[which], here, right[which]], target[which])
        return short, np.where(np.isnan(place), -here.slope, short / (t - place))

    with np.errstate(all="ignore"):
        start = _interpolated([left, right], target)
        start = np.where(np.isnan(start), 0.5 * (left.t + right.t), start)
        t = increasing_root(fallen, (left.t, right.t), close * target, start)
        at, value, slope = last
        beside = value + np.where(t == at, 0.0, slope * (t - at))
    return t, beside, ~(np.abs(value - target) <= close * target)


def _interpolated(nodes: Sequence[Samples], target: Array) -> Array:
    """Where curves through some nodes, with their slopes, fall to a target; NaN if unknown.

    Since errors fall like powers, t is interpolated as a function of the logarithm of the curve.
    The result is not trusted if a curve is much steeper or flatter at the outer nodes than between.
    """
    t, value, slope = np.array([[n.t, n.value, n.slope] for n in nodes]).swapaxes(0, 1)
    z, tangent = np.log(value / target), value / slope
    twice, place = np.repeat(z, 2, axis=0), np.repeat(t, 2, axis=0)
    for k in range(1, len(twice)):  # Neville's rule at zero, for nodes that count twice
        a, b = twice[:-k], twice[k:]
        place = (b * place[:-1] - a * place[1:]) / (b - a)
        if k == 1:
            place[::2] = t - tangent * z
    even = _even(nodes[0], nodes[-1])
    return np.where(even & np.isfinite(place[0]), place[0], np.nan)


def _even(left: Samples, right: Samples) -> Booleans:
    """Whether curves are about as steep at two samples as between them, on a scale of powers."""
    with np.errstate(all="ignore"):
        mean = np.log(right.value / left.value) / (right.t - left.t)
        bend = np.array([mean * one.value / one.slope for one in (left, right)])
    even: Booleans = np.all((bend > 1.0 / EVEN) & (bend < EVEN), axis=0)
    return even
