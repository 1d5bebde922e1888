"""Kernels given by a function, which is checked to be positive definite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev
from scipy import linalg

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
NO_SLOPE, NO_BEND = 1e-12, 1e-9
"""Sizes of the derivatives, relative to h(1), that may be rounding."""
DIMENSIONS, NODES, ORDERS = (2, 3, 10, 30, 100, 300, 1000, 3000), 256, 64
"""Dimensions in which a function must be positive definite, nodes of the quadrature there, and
orders of the polynomials with which the function must not be anticorrelated."""
NEGATIVE = 1e-13
"""Size of a negative coefficient, relative to h(1), that may be rounding."""
DECLARED = 1e-6
"""Relative difference above which a given derivative contradicts the function."""


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
        If the function is not vectorised, not finite or not positive definite (in 2 to 3000
        dimensions), or so nearly linear that its nonlinear part is lost to rounding.
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
        return np.asarray(self.function(t), dtype=float)

    @cached_property
    def coefficients(self) -> Coefficients:
        constant, total = self._sampled(np.array([0.0, 1.0])).tolist()
        if not total > 0.0:
            raise InvalidArgumentError.because(
                "function",
                f"has h(1) = {total:.4g}",
                "it must be positive: it is the kernel of a sample with itself",
            )
        self._check_definite(total)
        linear = self._derivatives[0]
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
        linear = 0.0 if linear < NO_SLOPE * total else linear
        rest = nonlinear_part("function", constant, linear, total)
        return Coefficients(constant, linear, rest)

    @property
    def has_square_term(self) -> bool:
        return bool(self._derivatives[1] > NO_BEND * self._sampled(np.ones(1))[0])

    def _sampled(self, t: Array) -> Array:
        return sampled("function", self.function, t, "a cosine of {:.4g}".format)

    @cached_property
    def _derivatives(self) -> tuple[float, float]:
        """The first two derivatives at zero, from a Chebyshev series around it."""

        def inner(x: Array) -> Array:
            return self._sampled(HALF_WIDTH * x)

        series = chebyshev.chebinterpolate(inner, DEGREE)  # type: ignore[type-var]
        slope, bend = (
            float(chebyshev.chebval(0.0, chebyshev.chebder(series, order))) / HALF_WIDTH**order
            for order in (1, 2)
        )
        return slope, bend

    def _check_definite(self, total: float) -> None:
        """Raise unless the function is positive definite in several dimensions.

        On the sphere in d dimensions it is, if and only if it has no negative coefficient in the
        orthogonal polynomials of the law of cosines between uniform directions.
        """
        for d in DIMENSIONS:
            nodes, vectors = linalg.eigh_tridiagonal(np.zeros(NODES), _recurrence(d))
            weighted = vectors[0] * self._sampled(nodes)
            series = vectors[:ORDERS] @ weighted
            low = int(series.argmin())
            if series[low] < -NEGATIVE * total:
                raise InvalidArgumentError.because(
                    "function",
                    f"is not positive definite in {d} dimensions: its coefficient of order {low} "
                    f"in Gegenbauer polynomials is {series[low]:.3g}",
                    "no coefficient may be negative",
                )


def _recurrence(d: int) -> Array:
    """Off-diagonal elements of the Jacobi matrix of cosines in d dimensions.

    Its eigenvalues are the nodes of a Gauss rule, and the components of its eigenvectors are
    orthonormal polynomials at the nodes, times the roots of the weights.
    """
    k, a = np.arange(1.0, NODES), 0.5 * (d - 2.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = k * (k + 2.0 * a - 1.0) / (4.0 * (k + a) * (k + a - 1.0))
    squares[0] = 1.0 / d
    return np.sqrt(squares)
