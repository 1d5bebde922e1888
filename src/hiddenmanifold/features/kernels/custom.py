"""Kernels given by a function, which is checked to be positive definite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_number, sampled
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features.kernels.base import (
    ROUNDING,
    Coefficients,
    KernelFunction,
    nonlinear_part,
)

HALF_WIDTH = 0.5
"""The power series around zero is found from cosines up to this one.

Of a series that converges up to 1, Chebyshev coefficients there fall by a factor of 3.7 from one to
the next, so that 28 of them exhaust double precision."""
DEGREE = 40
SMOOTH, CHOPPED = 1e-12, 1e-14
"""Largest relative size of the last Chebyshev coefficients, and of those that are left out."""
LOWEST_POWERS, COSINES = 5, 256
"""Coefficients of the power series, and of the cosine series on the circle, that are checked."""
NEGATIVE = {"power": 1e-7, "cosine": 1e-9}
"""Relative size of a negative coefficient that may be rounding; those of powers lose digits."""
DECLARED = 1e-6
"""Relative error of a declared derivative from which on it contradicts the function."""


@dataclass(frozen=True)
class Custom(KernelFunction):
    """Any positive definite function of the cosine.

    Parameters
    ----------
    function : callable
        Vectorised h(t) on [-1, 1].
    derivative_at_zero : float, optional
        h'(0), if it is known more precisely than from the values of the function.

    Raises
    ------
    InvalidArgumentError
        If the function is not vectorised or not finite, not a power series around zero, not
        positive definite, or so nearly linear that its nonlinear part is lost to rounding.
    """

    function: Callable[[Array], Array]
    derivative_at_zero: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidArgumentError("function", self.function, "callable")
        if self.derivative_at_zero is not None:
            check_number("derivative_at_zero", self.derivative_at_zero, 0.0)
        _ = self.coefficients

    def __call__(self, t: Array) -> Array:
        return self.function(t)

    @cached_property
    def coefficients(self) -> Coefficients:
        constant, total = self._sampled(np.array([0.0, 1.0])).tolist()
        if not total > 0.0:
            raise InvalidArgumentError.because(
                "function",
                f"has h(1) = {total:.4g}",
                "it must be positive: it is the kernel of a sample with itself",
            )
        linear, square = self._slopes(total)
        given = self.derivative_at_zero
        if given is not None:
            if abs(given - linear) > DECLARED * total:
                raise InvalidArgumentError.because(
                    "derivative_at_zero",
                    f"= {given:.6g} contradicts the function, whose values give {linear:.6g}",
                    "leave it out, or correct it",
                )
            linear = float(given)
        constant = 0.0 if constant < ROUNDING * total else constant
        linear = 0.0 if linear < SMOOTH * total else linear
        rest = nonlinear_part("function", constant, linear, total)
        return Coefficients(constant, linear, rest, bool(square > NEGATIVE["power"] * total))

    def _sampled(self, t: Array) -> Array:
        return sampled("function", self.function, t, "a cosine of {:.4g}".format)

    def _slopes(self, total: float) -> tuple[float, float]:
        """The coefficients of t and t² in the power series, of which none may be negative."""
        inner = _chebyshev(lambda x: self._sampled(HALF_WIDTH * x), DEGREE)
        if np.abs(inner[-4:]).max() > SMOOTH * total:
            raise InvalidArgumentError.because(
                "function",
                f"is not smooth at cosines from -{HALF_WIDTH} to {HALF_WIDTH}",
                "a positive definite kernel is a power series of the cosine",
            )
        series = chebyshev.cheb2poly(chebyshev.chebtrim(inner, CHOPPED * total))
        powers = np.zeros(LOWEST_POWERS)
        powers[: len(series)] = series[:LOWEST_POWERS]
        powers /= HALF_WIDTH ** np.arange(LOWEST_POWERS)
        cosines = _chebyshev(self._sampled, COSINES - 1)
        for kind, values in {"power": powers, "cosine": cosines}.items():
            low = int(values.argmin())
            if values[low] < -NEGATIVE[kind] * total:
                raise InvalidArgumentError.because(
                    "function",
                    f"is not positive definite: its {kind} series has the coefficient "
                    f"{values[low]:.3g} at order {low}",
                    "no coefficient may be negative",
                )
        linear = chebyshev.chebval(0.0, chebyshev.chebder(inner)) / HALF_WIDTH
        return float(linear), float(powers[2])


def _chebyshev(function: Callable[[Array], Array], degree: int) -> Array:
    """Coefficients of the Chebyshev series of a function on [-1, 1]."""
    found: Array = chebyshev.chebinterpolate(function, degree)  # type: ignore[arg-type]
    return found
