"""The argument of a kernel at which random features of it have a given positive one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array, Integers, Numbers
from hiddenmanifold.features.spectral_sums import Sums, SumsBelow
from hiddenmanifold.numerics.roots import increasing_root

ROUNDING = 4e-15
"""Relative accuracy of a positive argument."""
FAR = 1e75
"""An argument that is larger than all eigenvalues."""


class Counts(NamedTuple):
    """Numbers of directions of the kernel at an argument; see `Sums`."""

    D1: Numbers
    D11: Numbers
    unlearned: Numbers
    left: Numbers


Stretching = Callable[[Counts, Integers], tuple[Numbers, Numbers]]
"""The ratio of the features' argument to the kernel's, and d log/d log of the former by the latter.

At the kernel's counts, for some of the points."""


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
