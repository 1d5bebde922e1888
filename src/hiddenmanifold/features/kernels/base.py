"""The interface of kernels, and the coefficients through which they enter the theory."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError

ROUNDING = 1e-14
"""Relative rounding of h(0), h'(0) and the difference h(1) - h(0) - h'(0)."""
NEARLY_LINEAR = 1e-6
"""Relative size below which this difference lacks the ten digits that results promise."""


class Coefficients(NamedTuple):
    r"""What the limit knows of a kernel: h(0), h'(0), and :math:`\kappa_\star^2` of the rest.

    ``quadratic`` states whether :math:`h''(0) > 0`.
    """

    constant: float
    linear: float
    nonlinear: float
    quadratic: bool


class KernelFunction:
    """Base of all kernels: a function of the cosine, and its coefficients."""

    def __call__(self, t: Array) -> Array:
        """The kernel h(t) at cosines t in [-1, 1], element by element."""
        raise NotImplementedError

    def gram(self, X: Array, Y: Array | None = None) -> Array:
        """The kernel of each row of X (rows, d) with each row of Y; by default with those of X.

        The lengths of rows play no role.

        Raises
        ------
        InvalidArgumentError
            If X or Y is not a matrix of finite numbers, has a row of zeros, or both have different
            numbers of columns.
        """
        left = _directions("X", X)
        right = left if Y is None else _directions("Y", Y)
        if left.shape[1] != right.shape[1]:
            raise InvalidArgumentError.because(
                "Y",
                f"has {right.shape[1]} columns",
                f"give as many as X has, {left.shape[1]}",
            )
        t = left @ right.T
        np.clip(t, -1.0, 1.0, out=t)
        if Y is None:
            np.fill_diagonal(t, 1.0)
        return self(t)

    @cached_property
    def coefficients(self) -> Coefficients:
        """Its coefficients in the limit n, d → ∞."""
        raise NotImplementedError


def _directions(name: str, rows: Array) -> Array:
    """Rows divided by their lengths."""
    X = np.asarray(rows, dtype=float)
    if X.ndim != 2 or not np.isfinite(X).all():
        raise InvalidArgumentError(name, rows, "a matrix of finite numbers, one row per sample")
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    if not lengths.all():
        raise InvalidArgumentError.because(
            name, "has a row of zeros", "leave it out: it has no direction"
        )
    directions: Array = X / lengths
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
            f"makes a kernel whose nonlinear part, {rest / total:.1e} of it, is lost to rounding",
            "choose one that is linear, or farther from linear",
        )
    return float(rest)
