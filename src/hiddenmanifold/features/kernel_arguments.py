"""The argument of a kernel at which random features of it have a given one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array, Integers, Numbers
from hiddenmanifold.features.pair_sums import PairsBelow, PairSums
from hiddenmanifold.features.spectral_sums import Sums, SumsBelow
from hiddenmanifold.numerics.roots import increasing_root

ROUNDING = 4e-15
"""Relative accuracy of a positive argument."""
FAR = 1e75
"""An argument that is larger than all eigenvalues."""
TURNS, STEPS, LAST = 12, 2, 20
"""Angles between a positive argument and a complex one, Newton steps at each, at most at the last.

With 8 angles none of 9000 arguments was lost either; with 4 last steps one in 200, close to the
edge of a spectrum."""
FLAT = 1e-7
"""Slope at an edge, of which an eigenvalue is a quadratic function."""
CLOSE, BEYOND = 1e-13, 100.0
"""Logarithms of arguments between which an edge is, in units of the kernel's largest eigenvalue."""
ENOUGH, SOLVED = 1e-13, 1e-10
"""Relative distance at which a complex argument is final, and above which it is not found.

Newton's last step squares the distance."""


class Counts(NamedTuple):
    """Numbers of directions of the kernel at an argument; see `Sums`."""

    D1: Numbers
    D11: Numbers
    unlearned: Numbers
    left: Numbers


Stretching = Callable[[Counts, Integers], tuple[Numbers, Numbers]]
"""The ratio of the features' argument to the kernel's, and d log/d log of the former by the latter.

At the kernel's counts, for some of the points."""


class Below(NamedTuple):
    """The sums of the kernel, for some of the points: at one argument, and at two."""

    sums: SumsBelow
    pairs: PairsBelow


def positive_argument(below: SumsBelow, stretching: Stretching, k: Array, p: Array) -> Array:
    """The kernel's argument at which p linear features have the positive k.

    The argument is no smaller than k, and larger by at most the variance of a feature over p; that
    variance, on average, is the limit of the argument below times D1.
    """

    def distance(log_u: Array, index: Integers) -> tuple[Array, Array]:
        """How far the argument is from the one sought: rounding is magnified by the slope."""
        ratio, slope = stretching(counts(below(np.exp(log_u), index)), index)
        stretch = np.log(np.fmax(ratio, 0.0))
        left = (log_u + stretch - log_k[index]) / slope
        return np.where(stretch > -np.inf, left, -np.inf), np.ones_like(slope)

    with np.errstate(all="ignore"):
        log_k, index = np.log(k), np.arange(len(k))
        most = FAR * below(np.full_like(k, FAR), index).D1 / p
        return np.exp(increasing_root(distance, (log_k, np.log(k + most)), ROUNDING))


def of_normal_features(p: Array) -> Stretching:
    """The stretching by p linear features with normal coefficients, or by p normal samples."""

    def stretching(inner: Counts, some: Integers) -> tuple[Numbers, Numbers]:
        left = features_left(inner, p[some])
        return left / p[some], 1.0 + inner.D11 / left

    return stretching


def of_orthogonal_features(d: Array, p: Array) -> Stretching:
    """The stretching by p linear features of d with orthogonal coefficients; none if p ≥ d."""

    def stretching(inner: Counts, some: Integers) -> tuple[Numbers, Numbers]:
        size = np.minimum(p, d)[some]
        left = features_left(inner, size)
        ratio = (left / size) / (inner.unlearned / d[some])
        return ratio, 1.0 + inner.D11 * (1.0 / left - 1.0 / inner.unlearned)

    return stretching


def argument(below: Below, stretching: Stretching, k: Numbers, p: Array, d: Array) -> Numbers:
    """The kernel's argument at which p linear features of d have a k, which may be complex.

    Equal points, as pairs have them, are solved once.
    """
    points = np.stack([k.real, k.imag, p, d], axis=1)
    _, first, same = np.unique(points, axis=0, return_index=True, return_inverse=True)

    def sums(at: Array, some: Integers) -> Sums:
        return below.sums(at, first[some])

    def pairs(at: Numbers, other: Numbers, some: Integers) -> PairSums:
        return below.pairs(at, other, first[some])

    def stretched(inner: Counts, some: Integers) -> tuple[Numbers, Numbers]:
        return stretching(inner, first[some])

    found = _argument(Below(sums, pairs), stretched, k[first], p[first])
    return found[same.ravel()]


def _argument(below: Below, stretching: Stretching, k: Numbers, p: Array) -> Numbers:
    """The same for different points, and for negative k beyond the spectrum.

    A complex k is approached from the positive number of its modulus, along the circle. In either
    half plane the equation has one solution there, so that a small distance from a solution on the
    right side is proof; where that fails the argument is NaN. Beyond the spectrum Newton's steps
    from k come closer from one side.
    """
    index = np.arange(len(k))

    def newton(u: Numbers, target: Numbers) -> tuple[Numbers, Array]:
        """The next argument, and the relative distance to it."""
        at = below.pairs(u, u, index)
        inner = Counts(at.D1, at.D_rs, at.unlearned, at.unlearned)
        ratio, slope = stretching(inner, index)
        step = (1.0 - target / (u * ratio)) / slope
        return u * (1.0 - step), np.abs(step)

    with np.errstate(all="ignore"):
        if np.iscomplexobj(k):
            modulus, angle = np.abs(k), np.angle(k)
            u: Numbers = positive_argument(below.sums, stretching, modulus, p).astype(complex)
            for turn in range(1, TURNS):
                for _ in range(STEPS):
                    u, _ = newton(u, modulus * np.exp(1j * angle * turn / TURNS))
        elif not (k < 0.0).any():
            return positive_argument(below.sums, stretching, k, p)
        else:
            u = k
        for _ in range(LAST):
            u, distance = newton(u, k)
            if (distance < ENOUGH).all():
                break
        found = (distance < SOLVED) & (u.imag * k.imag >= 0.0)
    return np.where(found, u, np.nan)


def counts(sums: Sums) -> Counts:
    """The numbers of directions at a positive argument."""
    return Counts(sums.D1, sums.D11, sums.unlearned, sums.left)


def features_left(inner: Counts, p: Array) -> Numbers:
    """How many of p features are left, p - D1.

    Where D1 is almost p this difference cancels; the features left below give it accurately.
    """
    more = p - (inner.D1 + inner.left)
    more = np.where(np.abs(more) < 1e-14 * p, 0.0, more)  # rounding is no feature
    return np.where(np.abs(inner.left) < np.abs(inner.D1), more + inner.left, p - inner.D1)


def largest_eigenvalue(below: PairsBelow, stretching: Stretching, largest: Array) -> Array:
    """The largest eigenvalue of linear features, given that of their kernel."""
    with np.errstate(all="ignore"):
        at = edge(below, stretching, largest)
        return at * stretched(below, stretching, -at, np.arange(len(at)))[0]


def edge(below: PairsBelow, stretching: Stretching, largest: Array) -> Array:
    """The kernel's argument, without its sign, at the edge of the spectrum of linear features.

    Beyond the spectra all arguments are negative, and that of the features falls with the kernel's
    as far as the edge, where the stretching has no slope.
    """

    def slope(log_u: Array, index: Integers) -> tuple[Array, Array]:
        _, found = stretched(below, stretching, -np.exp(log_u), index)
        found = np.where(np.isnan(found), -1.0, found)  # at the kernel's edge, to rounding
        return found, np.full_like(found, np.nan)

    log = np.log(largest)
    with np.errstate(all="ignore"):
        return np.exp(increasing_root(slope, (log + CLOSE, log + BEYOND), FLAT))


def stretched(
    below: PairsBelow, stretching: Stretching, u: Array, index: Integers
) -> tuple[Numbers, Numbers]:
    """The stretching of the kernel's arguments, and its slope."""
    at = below(u, u, index)
    return stretching(Counts(at.D1, at.D_rs, at.unlearned, at.unlearned), index)
