"""Fast orthogonal transforms of any size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DENSE_HADAMARD = 64
"""Hadamard matrices up to this size are multiplied as they are; larger ones are their powers."""


@lru_cache(maxsize=8)
def _hadamard(size: int) -> Array:
    from scipy import linalg

    matrix: Array = linalg.hadamard(size) / np.sqrt(size)
    matrix.flags.writeable = False
    return matrix


def hadamard_transform(rows: Array) -> Array:
    """Orthonormal Walsh–Hadamard transform of each row; their length is a power of two.

    The matrix of size 64^k m is the Kronecker power of small ones, so the transform is a few
    products with matrices of size at most 64, which run at full speed.
    """
    count, size = rows.shape
    inner = 1
    while inner < size:
        radix = min(DENSE_HADAMARD, size // inner)
        blocks = rows.reshape(count * (size // (inner * radix)), radix, inner)
        rows = np.matmul(_hadamard(radix), blocks)
        inner *= radix
    return rows.reshape(count, size)


def mixed_hadamard_transform(rows: Array) -> Array:
    """The same for rows of any length, in blocks of the powers of two that add up to it."""
    size = rows.shape[1]
    if size & (size - 1) == 0:
        return hadamard_transform(rows)
    parts, start = [], 0
    while start < size:
        width = 1 << ((size - start).bit_length() - 1)
        parts.append(hadamard_transform(np.ascontiguousarray(rows[:, start : start + width])))
        start += width
    return np.concatenate(parts, axis=1)
