"""Functions of the teacher's field that have a name: means, rates and probabilities of labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_number, did_you_mean
from hiddenmanifold.errors import InvalidArgumentError

Function = Callable[[Array], Array]


def _logistic(x: Array) -> Array:
    """The logistic function, of which small values keep their digits."""
    value: Array = scipy.special.expit(x)
    return value


NAMED: dict[str, Function] = {
    "identity": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "absolute": np.abs,
    "square": np.square,
    "cube": lambda x: x**3,
    "sine": np.sin,
    "exp": np.exp,
    "softplus": lambda x: np.logaddexp(0.0, x),
    "logistic": _logistic,
}
"""Functions by the name under which a label rule takes them."""
KINKS = {"relu": 0.0, "absolute": 0.0}
"""Where those with a corner have it."""


@dataclass(frozen=True)
class OfField:
    r"""A named function g of the field, :math:`g(a + b\nu)`, or a function as it is given.

    Parameters
    ----------
    argument : str
        The argument of the label rule, for error messages.
    function : str or callable
        A name, or a vectorised function of the field.
    intercept, slope : float
        The a and b of a named function.
    """

    argument: str
    function: str | Function
    intercept: float = 0.0
    slope: float = 1.0

    def __post_init__(self) -> None:
        check_number("intercept", self.intercept, -1e6, 1e6)
        check_number("slope", self.slope, -1e6, 1e6)
        if isinstance(self.function, str):
            if self.function not in NAMED:
                names = ", ".join(map(repr, NAMED))
                hint = did_you_mean(self.function, NAMED)
                allowed = f"one of {names}, or a function of the field{hint}"
                raise InvalidArgumentError(self.argument, self.function, allowed)
        elif not callable(self.function):
            raise InvalidArgumentError(self.argument, self.function, "a name or a function")
        elif (self.intercept, self.slope) != (0.0, 1.0):
            raise InvalidArgumentError.because(
                "intercept and slope",
                "belong to a function that is given by name",
                f"write them into the function {self.argument} itself",
            )

    def __call__(self, nu: Array) -> Array:
        if isinstance(self.function, str):
            return NAMED[self.function](self.intercept + self.slope * nu)
        return np.asarray(self.function(nu), dtype=float)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Fields at which a named function has a corner."""
        if self.slope and isinstance(self.function, str) and self.function in KINKS:
            return ((KINKS[self.function] - self.intercept) / self.slope,)
        return ()
