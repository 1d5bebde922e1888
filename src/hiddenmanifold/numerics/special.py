"""Special functions that scipy does not have."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hiddenmanifold.arrays import Array

Pair = tuple[Array | float, Array | float]
"""Values at the left end and at the right end."""


def normal_density(x: Array) -> Array:
    """Density of the standard normal law."""
    return np.exp(-0.5 * x * x) * 0.3989422804014327


def positive_root(a: Array | float, b: Array, c: Array | float) -> Array:
    """The positive root of ax² + bx = c for positive a and c, without cancellation."""
    root = np.sqrt(b**2 + 4.0 * a * c)
    near = b > 0.0
    return np.where(near, 2.0 * c, root - b) / np.where(near, b + root, 2.0 * a)


def hermite(t: Array, ends: Pair, values: Pair, slopes: Pair) -> Array:
    """The cubic that has given values and slopes at two ends, at t."""
    (left, right), (a, b), (da, db) = ends, values, slopes
    u, v, h = t - left, t - right, right - left
    mean = (b - a) / h
    return a + u * (da + u * ((mean - da) / h + (da + db - 2.0 * mean) / h**2 * v))


@lru_cache(maxsize=1)
def logistic_as_probits() -> tuple[Array, Array]:
    r"""Weights and deviations of :math:`1/(1+e^{-x}) = \sum_k w_k \Phi(x/\delta_k)`, to 1e-14.

    If :math:`\psi` has the Kolmogorov–Smirnov law, a normal variable of deviation
    :math:`2\psi` has the logistic law. The trapezoidal rule in :math:`\log\psi` converges
    exponentially, since the density of that law falls off faster than any power at both ends.
    """
    step = 0.12
    psi = np.exp(np.arange(np.log(0.16), np.log(4.5), step))
    k = np.arange(1, 40)[:, None]
    odd = (np.pi * (2 * k - 1)) ** 2 / 8
    # the two series of the density converge fast on either side of psi = 1
    small = np.sqrt(2 * np.pi) * (np.exp(-odd / psi**2) * (2 * odd / psi**4 - 1 / psi**2)).sum(0)
    large = 8 * psi * ((-1.0) ** (k + 1) * k**2 * np.exp(-2 * k**2 * psi**2)).sum(0)
    weights = psi * np.where(psi < 1, small, large)
    return weights / weights.sum(), 2 * psi
