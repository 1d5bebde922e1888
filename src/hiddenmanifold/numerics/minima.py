"""Minima of many functions of one variable at once, given their slopes.

Every interval between samples in which the slope turns from negative to positive holds a minimum,
and one whose cubic interpolant turns inside may. All of them are refined together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from hiddenmanifold.arrays import Array, Integers, Rows

Function = Callable[[Integers, Array], tuple[Array, Array]]
"""From points and a value t for each to the function and its slope by t, NaN where it fails."""

ACCURATE = 1e-7
"""Distance from a minimum, estimated by slope and mean curvature, at which it is accepted."""
NOISE = 1e-10
"""Slope, relative to the value, whose sign is not trusted."""
GAIN = 1e-9
"""Relative gain that may be left elsewhere in the bracket of a minimum that is called found."""
NARROW = 1e-9
"""Width of a bracket that is not narrowed further."""
SHORT = 0.02
"""Width of the end of a fall onto a plateau that is not searched further."""
TURNS = 120
"""Most evaluations spent on one minimum; brackets that shrink slowly are halved."""


@dataclass(frozen=True)
class Samples(Rows):
    """Values of t at some points, with the function and its slope there."""

    point: Integers
    t: Array
    value: Array
    slope: Array

    @classmethod
    def of(cls, function: Function, point: Integers, t: Array) -> Samples:
        """Evaluate the function, unless there is nothing to evaluate."""
        empty = np.empty(0), np.empty(0)
        return cls(point, t, *(function(point, t) if point.size else empty))

    @property
    def trend(self) -> Array:
        """Sign of the slope, 0 where it is noise."""
        sign: Array = np.sign(self.slope) * (np.abs(self.slope) > NOISE * np.abs(self.value))
        return sign

    def ordered(self) -> Self:
        """By point, then by t."""
        return self[np.lexsort((self.t, self.point))]

    def pairs(self) -> tuple[Self, Self]:
        """Neighbours in t of the same point, lower and upper."""
        same = np.flatnonzero(self.point[1:] == self.point[:-1])
        return self[same], self[same + 1]


S = TypeVar("S", bound=Samples)
Sampler = Callable[[S, S, Array], S]
"""From pairs of samples, lower and upper, and a t between each pair to the samples at these t.

A sampler may use everything known about the pairs, for instance to start an iterative solution."""


def sampler(function: Function) -> Sampler[Samples]:
    """Samples of a function that can be evaluated anywhere."""
    return lambda left, _, t: Samples.of(function, left.point, t)


def negated(function: Function) -> Function:
    """Minus a function, whose minima are the maxima of the function."""

    def minus(point: Integers, t: Array) -> tuple[Array, Array]:
        value, slope = function(point, t)
        return -value, -slope

    return minus


def least_of_each(point: Integers, value: Array) -> Integers:
    """Where the least value of each point stands, NaN being larger than any."""
    order = np.lexsort((value, point))
    least: Integers = order[np.unique(point[order], return_index=True)[1]]
    return least


def hidden_turns(between: Sampler[S], scan: S) -> S:
    """Samples inside intervals that may hide a minimum: both slopes agree, the cubic's does not.

    Intervals whose cubic stays far above the least sample of their point are left out.
    """
    left, right = scan.pairs()
    width = right.t - left.t
    mean = (right.value - left.value) / width
    # slope of the cubic at the fraction f of the interval: a f² + b f + left.slope
    a = 3.0 * (left.slope + right.slope - 2.0 * mean)
    b = 6.0 * mean - 4.0 * left.slope - 2.0 * right.slope
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        f = -0.5 * b / a
        turns = (left.slope - 0.25 * b**2 / a) * (left.slope + right.slope) < 0
        cubic = left.value + width * (a * f**3 / 3 + b * f**2 / 2 + left.slope * f)
    least = np.full(int(scan.point.max(initial=0)) + 1, np.inf)
    np.fmin.at(least, scan.point, scan.value)
    low = cubic <= least[left.point] + np.abs(right.value - left.value)
    hidden = turns & low & (left.trend * right.trend >= 0) & (f > 0) & (f < 1)
    return between(left[hidden], right[hidden], (left.t + f * width)[hidden])


def minima(between: Sampler[S], scan: S, *, plateaus: bool = True) -> tuple[S, S]:
    """Samples in order, with those in intervals that may hide a minimum, and all minima between.

    If `plateaus`, the ends of falls onto plateaus count as minima too.
    """
    scan = scan.ordered()
    scan = scan.extended(hidden_turns(between, scan)).ordered()
    left, right = scan.pairs()
    turning = (left.trend < 0) & ((right.trend >= 0) if plateaus else (right.trend > 0))
    return scan, refined_minima(between, left[turning], right[turning])


def refined_minima(between: Sampler[S], left: S, right: S) -> S:
    """Minima between samples of negative and positive slope, by the rule of Anderson and Björck.

    A fall that ends on a plateau may undershoot it: such intervals are halved until the slope
    turns, or until they are too short to matter.
    """
    found = left[np.zeros(0, dtype=np.intp)]
    low, high = left.slope, right.slope  # reduced at an end that stays twice in a row
    was_rising, plateau = np.full(len(left.t), np.nan), right.trend == 0
    before = np.full(len(left.t), np.inf)
    for turn in range(TURNS):
        if not left.t.size:
            break
        width = right.t - left.t
        slow = (width > 0.5 * before) if turn % 3 == 0 else np.zeros(len(width), dtype=bool)
        before = width if turn % 3 == 0 else before
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(plateau | slow, 0.5, low / (low - high))
        middle = between(left, right, left.t + share * width)
        bend = (right.slope - left.slope) / width
        rising = (middle.slope > 0) | (plateau & (middle.trend == 0))
        replaced = np.where(rising, high, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            reduction = 1.0 - middle.slope / replaced
        reduction = np.where(reduction > 0, reduction, 0.5)
        kept = np.where(rising, low, high) * np.where(rising == was_rising, reduction, 1.0)
        low, high = np.where(rising, kept, middle.slope), np.where(rising, middle.slope, kept)
        left[~rising], right[rising] = middle[~rising], middle[rising]
        plateau &= middle.trend <= 0
        failed = np.isnan(middle.slope)
        width = right.t - left.t
        close = ~plateau & (np.abs(middle.slope) <= ACCURATE * bend)
        # a corner may mislead, and so may a slope that vanishes on a plateau beside the dip
        close &= np.abs(middle.slope) * width <= GAIN * np.abs(middle.value)
        close &= middle.value - lowest(left, right) <= GAIN * np.abs(middle.value)
        done = close | (width < np.where(plateau, SHORT, NARROW)) | failed
        found = found.extended(middle[done & ~failed])
        left, right = left[~done], right[~done]
        low, high, was_rising = low[~done], high[~done], rising[~done].astype(float)
        plateau, before = plateau[~done], before[~done]
    return found


def lowest(left: Samples, right: Samples) -> Array:
    """Least value between samples of the cubic through both and their slopes."""
    width = right.t - left.t
    mean = right.value - left.value
    a, b = width * left.slope, width * right.slope
    # value at the fraction f of the interval: left.value + f (a + f (c + f d))
    c, d = 3.0 * mean - 2.0 * a - b, a + b - 2.0 * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(c**2 - 3.0 * a * d)
        f = np.where(c > 0, -a / (c + root), (root - c) / (3.0 * d))
    f = np.where((f > 0) & (f < 1), f, 0.0)
    inside = left.value + f * (a + f * (c + f * d))
    return np.minimum(np.minimum(left.value, right.value), inside)
