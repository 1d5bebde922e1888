"""Kernels in closed form: functions of the distance between two inputs, or of their product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_count, check_number, check_scale
from hiddenmanifold.features.kernels.base import Coefficients, KernelFunction


@dataclass(frozen=True)
class RBF(KernelFunction):
    r"""The Gaussian kernel :math:`\exp(-|x-x'|^2/2s^2) = \exp(-(1-t)/s^2)` of inputs of norm 1.

    Parameters
    ----------
    scale : float
        The length s, in units of the norm of an input.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale("scale", self.scale)

    def __call__(self, t: Array) -> Array:
        return np.exp((t - 1.0) / self.scale**2)

    @cached_property
    def coefficients(self) -> Coefficients:
        x = self.scale**-2.0
        constant = float(np.exp(-x))
        # 1 - exp(-x) (1 + x), without cancellation
        return Coefficients(constant, x * constant, float(scipy.special.gammainc(2.0, x)))


@dataclass(frozen=True)
class Laplace(KernelFunction):
    r"""The exponential kernel :math:`\exp(-|x-x'|/s) = \exp(-\sqrt{2(1-t)}/s)` of inputs of norm 1.

    Parameters
    ----------
    scale : float
        The length s, in units of the norm of an input.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale("scale", self.scale)

    def __call__(self, t: Array) -> Array:
        return np.exp(-np.sqrt(2.0 * (1.0 - t)) / self.scale)

    @cached_property
    def coefficients(self) -> Coefficients:
        a = float(np.sqrt(2.0)) / self.scale
        constant = float(np.exp(-a))
        linear = 0.5 * a * constant
        return Coefficients(constant, linear, float(-np.expm1(-a)) - linear)


@dataclass(frozen=True)
class Polynomial(KernelFunction):
    r"""The polynomial kernel :math:`(c + t/s^2)^m`.

    Parameters
    ----------
    degree : int
        The degree m.
    offset : float
        The constant c, not negative.
    scale : float
        The length s, in units of the norm of an input.
    """

    degree: int = 3
    offset: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_count("degree", self.degree))
        check_number("offset", self.offset, 0.0)
        check_scale("scale", self.scale)

    def __call__(self, t: Array) -> Array:
        value: Array = (self.offset + t / self.scale**2) ** self.degree
        return value

    @cached_property
    def coefficients(self) -> Coefficients:
        constant, linear, *others = self._terms.tolist()
        return Coefficients(constant, linear, float(np.sum(others)))

    @property
    def has_square_term(self) -> bool:
        return bool((self._terms[2:3] > 0.0).any())

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def _terms(self) -> Array:
        """The coefficients of all powers of the cosine."""
        k = np.arange(self.degree + 1.0)
        powers = np.float64(self.offset) ** (self.degree - k) * np.float64(self.scale) ** (-2 * k)
        terms: Array = scipy.special.binom(self.degree, k) * powers
        return terms
