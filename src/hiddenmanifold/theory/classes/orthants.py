r"""Probabilities that normal vectors are negative in every component.

The components are conditioned on each other one after another, the least probable first (Genz,
*J. Comput. Graph. Stat.* 1992), which leaves an average over the unit cube of a smooth product of
normal distribution functions. It is taken over Sobol points with independent random shifts, whose
spread is the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array, Integers

SCRAMBLES = 8
"""Independent sets of points. The error is three standard errors of their means."""
LEAST = 1e-12
"""Variance of a component given the ones before, in units of its own, that counts as rounding."""
BITS = 40
"""Binary digits of the points."""
BLOCK = 2**20
"""Numbers of an array that is held at once."""


def orthants(
    mean: Array, covariance: Array, keys: Integers, numbers: Sequence[int], tolerance: float
) -> tuple[Array, Array]:
    """P(x < 0) of normal vectors of means (laws, dim) and covariances, and absolute errors.

    Numbers of points are tried one after another until the error is within the tolerance. Each
    law has its key, by which its points are shifted: the errors of different keys are independent.
    """
    laws, size = mean.shape
    value, error = np.full((2, laws), np.inf)
    shifts = np.array([_shifts(int(key), size - 1) for key in keys]).reshape(laws, SCRAMBLES, -1)
    rows = [_ordered(m, C) for m, C in zip(mean, covariance, strict=True)]
    h, factor = (np.array(part) for part in zip(*rows, strict=True))
    for number in numbers:
        left = np.flatnonzero(error > tolerance)
        most = max(1, BLOCK // (number * size))
        for part in np.array_split(left, -(-len(left) // most)) if left.size else ():
            found = np.array(
                [
                    _means(h[part], factor[part], points_of(size - 1, number, k, shifts[part, k]))
                    for k in range(SCRAMBLES)
                ]
            )
            value[part] = found.mean(0)
            error[part] = 3.0 * found.std(0, ddof=1) / np.sqrt(SCRAMBLES)
    return value, error


def _ordered(m: Array, C: Array) -> tuple[Array, Array]:
    r"""Bounds h and Cholesky's factor in units of its diagonal, the least probable first.

    Component i is negative if :math:`z_i < h_i - \sum_{j<i} l_{ij} z_j`.
    """
    from scipy.special import ndtr, ndtri

    m, C = m.copy(), C.copy()
    size, factor = len(m), np.zeros_like(C)
    scale = np.diag(C).copy()
    expected = np.zeros(size)  # of the components before, given that they are negative
    for i in range(size):
        left = np.maximum(np.diag(C)[i:] - (factor[i:, :i] ** 2).sum(1), LEAST * scale[i:])
        bound = -(m[i:] + factor[i:, :i] @ expected[:i]) / np.sqrt(left)
        k = i + int(bound.argmin())
        swap = np.arange(size)
        swap[[i, k]] = k, i
        m, C, factor, scale = m[swap], C[np.ix_(swap, swap)], factor[swap], scale[swap]
        root = np.sqrt(left[k - i])
        factor[i, i] = root
        factor[i + 1 :, i] = (C[i + 1 :, i] - factor[i + 1 :, :i] @ factor[i, :i]) / root
        b = bound[k - i]
        expected[i] = ndtri(max(0.5 * ndtr(b), 1e-300))
    diagonal = np.diag(factor)
    return -m / diagonal, factor / diagonal[:, None]


def _means(h: Array, factor: Array, points: Array) -> Array:
    """Averages of the product of conditional probabilities over points (laws, number, dim - 1)."""
    from scipy.special import ndtr, ndtri

    laws, size = h.shape
    z = np.empty((size - 1, laws, points.shape[1]))
    total = np.ones(z.shape[1:])
    for i in range(size):
        below = ndtr(h[:, i, None] - np.einsum("lj,jlp->lp", factor[:, i, :i], z[:i]))
        total *= below
        if i < size - 1:
            z[i] = ndtri(np.maximum(points[..., i] * below, 1e-300))
    averages: Array = total.mean(1)
    return averages


def _shifts(key: int, dimensions: int) -> NDArray[np.uint64]:
    """The digits by which the points of a key are shifted, in each of the sets."""
    rng = np.random.default_rng(key)
    return rng.integers(2**BITS, size=(SCRAMBLES, dimensions), dtype=np.uint64)


def points_of(dimensions: int, number: int, scramble: int, shifts: NDArray[np.uint64]) -> Array:
    """Sobol points (laws, number, dimensions) in the open unit cube, of laws with given shifts."""
    digits = _sobol(dimensions, number, scramble) ^ shifts[:, None]
    return (digits.astype(float) + 0.5) * 2.0**-BITS


def sobol_points(dimensions: int, number: int, key: int) -> Array:
    """Points (sets, number, dimensions) of the open unit cube, of a key."""
    shifts = _shifts(key, dimensions)
    sets = range(SCRAMBLES)
    return np.array([points_of(dimensions, number, k, shifts[None, k])[0] for k in sets])


def normal_points(dimensions: int, number: int, key: int) -> Array:
    """Standard normal vectors (sets, number, dimensions) at the points of a key."""
    from scipy.special import ndtri

    found: Array = ndtri(sobol_points(dimensions, number, key))
    return found


@lru_cache(maxsize=64)
def _sobol(dimensions: int, number: int, scramble: int) -> NDArray[np.uint64]:
    """Scrambled Sobol points in units of their last digit, the same at every call."""
    from scipy.stats import qmc  # slow to import

    rng = np.random.default_rng(scramble)
    points = qmc.Sobol(dimensions, scramble=True, bits=BITS, rng=rng).random(number)
    digits: NDArray[np.uint64] = (points * 2.0**BITS).astype(np.uint64)
    return digits


def ranks(mean: Array, covariance: Array, key: int, tops: int, number: int) -> tuple[Array, float]:
    r"""P(k or more components are positive), k = 1, 2, …, of one law from the same points.

    With :math:`C = C' + s^2 11^\top` and :math:`s^2 = 1/(1^\top C^{-1} 1)`, given what belongs to
    C' it is the probability :math:`\Phi(v/s)` of the k-th largest component v.
    """
    from scipy.special import ndtr, ndtri

    size = len(mean)
    C = covariance + LEAST * np.trace(covariance) * np.eye(size)
    common = 1.0 / float(np.linalg.solve(C, np.ones(size)).sum())
    values, vectors = np.linalg.eigh(C - common)
    root = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    shifts, found = _shifts(key, size), []
    for scramble in range(SCRAMBLES):
        points = points_of(size, number, scramble, shifts[None, scramble])[0]
        v = np.sort(mean + ndtri(points) @ root.T, axis=1)[:, ::-1]
        found.append(ndtr(v[:, :tops] / np.sqrt(common)).mean(0))
    spread = np.std(found, axis=0, ddof=1).max() / np.sqrt(SCRAMBLES)
    return np.mean(found, axis=0), 3.0 * float(spread)
