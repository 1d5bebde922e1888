"""Matrices that are applied without being written down, behind one small interface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from hiddenmanifold.arrays import Array, Integers

Kind = Literal["hadamard", "dct"]
FASTER_FROM = {("dct", 1): 256, ("hadamard", 1): 768, ("hadamard", 3): 2048}
"""Size from which a transform beats the dense product, by its kind and number of layers."""
DENSE_HADAMARD = 64
"""Hadamard matrices up to this size are multiplied directly; larger ones are their powers."""


class LinearMap(Protocol):
    """A d × p matrix F."""

    def left(self, rows: Array) -> Array:
        """The product rows @ F of many vectors, (n, d) → (n, p)."""

    def right(self, vector: Array) -> Array:
        """The product F @ vector, (p,) → (d,)."""


@dataclass(frozen=True)
class Dense:
    """A matrix that is stored as an array."""

    F: Array

    def left(self, rows: Array) -> Array:
        return rows @ self.F

    def right(self, vector: Array) -> Array:
        return self.F @ vector


@dataclass(frozen=True)
class FastOrthogonal:
    r"""The rows `places` and the first p columns of :math:`\text{scale}\cdot U`.

    U is orthogonal of size max(d, p): in each layer random signs, the transform, a random
    permutation. Its product with a vector costs O(N log N). The d rows are drawn at random: the
    first rows of a Hadamard matrix would give duplicate columns.
    """

    d: int
    p: int
    scale: float
    kind: Kind
    layers: tuple[tuple[Array, Integers], ...]
    places: Integers

    def left(self, rows: Array) -> Array:
        x = np.zeros((len(rows), max(self.d, self.p)))
        x[:, self.places] = rows
        for signs, permutation in self.layers:
            x = self._transform(x * signs)[:, permutation]
        return self.scale * x[:, : self.p]

    def right(self, vector: Array) -> Array:
        x = np.zeros((1, max(self.d, self.p)))
        x[0, : self.p] = vector
        for signs, permutation in reversed(self.layers):
            back = np.empty_like(x)
            back[:, permutation] = x
            x = self._transform(back, transposed=True) * signs
        out: Array = self.scale * x[0, self.places]
        return out

    def _transform(self, rows: Array, transposed: bool = False) -> Array:
        if self.kind == "hadamard":
            return mixed_hadamard_transform(rows)
        from scipy import fft

        out: Array = (fft.idct if transposed else fft.dct)(rows, norm="ortho")
        return out


def random_orthogonal(d: int, p: int, kind: Kind, rng: np.random.Generator) -> LinearMap:
    """A randomised transform whose columns have squared norm d (p ≤ d) or whose rows have p.

    Hadamard matrices exist for powers of two; for another size, blocks of powers of two are mixed
    by three layers of signs and permutations. Below a size that was measured, the dense product is
    faster than the transform, and the matrix is written down.
    """
    size = max(d, p)
    layers = 1 if kind == "dct" or size & (size - 1) == 0 else 3
    made = tuple(
        (rng.choice([-1.0, 1.0], size), rng.permutation(size).astype(np.intp))
        for _ in range(layers)
    )
    places = rng.permutation(size)[:d].astype(np.intp)
    fast = FastOrthogonal(d, p, np.sqrt(size), kind, made, places)
    return fast if size >= FASTER_FROM[kind, layers] else Dense(fast.left(np.eye(d)))


def haar_orthogonal(d: int, p: int, rng: np.random.Generator) -> Dense:
    """A Haar-distributed matrix with the same normalisation."""
    tall = rng.standard_normal((max(d, p), min(d, p)))
    q, r = np.linalg.qr(tall)
    q *= np.sign(np.diag(r)) * np.sqrt(max(d, p))
    return Dense(q if d >= p else np.ascontiguousarray(q.T))


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
    widths = [1 << bit for bit in reversed(range(size.bit_length())) if size >> bit & 1]
    if len(widths) == 1:
        return hadamard_transform(rows)
    blocks = map(np.ascontiguousarray, np.split(rows, np.cumsum(widths[:-1]), axis=1))
    return np.concatenate([hadamard_transform(block) for block in blocks], axis=1)
