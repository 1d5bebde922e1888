"""Many small symmetric systems at once: arrays whose last axis counts the systems.

LAPACK solves one matrix per call. For matrices of some ten rows, arithmetic on rows of thousands of
systems is ten times faster.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array


def factors(A: Array) -> Array:
    """Lower Cholesky factors (m, m, systems) of positive definite matrices."""
    m = len(A)
    L = np.zeros_like(A)
    for j in range(m):
        column = A[j:, j] - np.einsum("ikn,kn->in", L[j:, :j], L[j, :j])
        L[j:, j] = column / np.sqrt(column[0])
    return L


def solutions(L: Array, right: Array) -> Array:
    """The solutions (m, columns, systems) for right sides of that shape, given the factors."""
    X = right.copy()
    for i in range(len(L)):
        X[i] = (X[i] - np.einsum("jn,jcn->cn", L[i, :i], X[:i])) / L[i, i]
    for i in reversed(range(len(L))):
        X[i] = (X[i] - np.einsum("jn,jcn->cn", L[i + 1 :, i], X[i + 1 :])) / L[i, i]
    return X
