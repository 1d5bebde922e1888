"""The interface of kernels, and the coefficients through which they enter the theory."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import finite_matrix
from hiddenmanifold.errors import InvalidArgumentError

ROUNDING = 1e-14
"""Relative rounding of h(0), h'(0) and the difference h(1) - h(0) - h'(0)."""
PARALLEL = 1e-14
"""Distance of a cosine from 1 that is rounding: the inputs are parallel."""
NEARLY_LINEAR = 1e-6
"""Relative size below which this difference lacks the ten digits that results promise."""


class Coefficients(NamedTuple):
    r"""The numbers that determine the limit: h(0), h'(0) and :math:`h(1) - h(0) - h'(0)`."""

    constant: float
    linear: float
    nonlinear: float


class KernelFunction:
    """Base of all kernels: a function of the cosine, and its coefficients."""

    @property
    def has_square_term(self) -> bool:
        """Whether h''(0) > 0; it is asked only of kernels with h(0) = 0."""
        return True

    def __call__(self, t: Array) -> Array:
        """The kernel h(t) at cosines t in [-1, 1], element by element."""
        raise NotImplementedError

    def gram(self, X: Array, Y: Array | None = None) -> Array:
        """The kernel of each row of X (rows, d) with each row of Y; by default with those of X.

        The lengths of rows play no role.

        Raises
        ------
        InvalidArgumentError
            If X or Y is not a matrix of finite numbers or has a row of zeros, or if they differ in
            their numbers of columns.
        """
        left = _directions("X", X)
        right = left if Y is None else _directions("Y", Y)
        if left.shape[1] != right.shape[1]:
            raise InvalidArgumentError.because(
                "Y",
                f"has {right.shape[1]} columns",
                f"give as many as X has, {left.shape[1]}",
            )
        t = np.maximum(left @ right.T, -1.0)
        t[t > 1.0 - PARALLEL] = 1.0  # exactly: kernels may be steep there
        return self(t)

    @cached_property
    def coefficients(self) -> Coefficients:
        """Its coefficients in the limit n, d → ∞."""
        raise NotImplementedError


def _directions(name: str, rows: Array) -> Array:
    """Rows divided by their lengths."""
    X = finite_matrix(name, rows)
    largest = np.abs(X).max(1, keepdims=True)
    if not largest.all():
        raise InvalidArgumentError.because(
            name, "has a row of zeros", "leave it out: it has no direction"
        )
    X = X / largest  # no square overflows
    directions: Array = X / np.linalg.norm(X, axis=1, keepdims=True)
    return directions


def nonlinear_part(argument: str, constant: float, linear: float, total: float) -> float:
    """The difference h(1) - h(0) - h'(0); zero if it is only rounding.

    Raises
    ------
    InvalidArgumentError
        If the difference has lost too many digits.
    """
    rest = total - constant - linear
    if rest <= ROUNDING * total:
        return 0.0
    if rest < NEARLY_LINEAR * total:
        raise InvalidArgumentError.because(
            argument,
            f"gives a kernel whose nonlinear part, a fraction {rest / total:.1e}, is lost to "
            "rounding",
            "choose a linear kernel, or one that is less nearly linear",
        )
    return float(rest)
