"""Convex losses of margin or residual, given by their functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import SCALAR_TASKS, Task, check_kinks, check_scale
from hiddenmanifold.compiled import CompiledLoss
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses.base import Loss, check_loss, compiled

_SIGNS = {"margin": -1.0, "residual": 1.0}


@dataclass(frozen=True, init=False)
class Custom(Loss):
    r"""A convex loss of margin or residual, given by vectorised functions.

    Parameters
    ----------
    value, derivative, second_derivative : callable
        The loss and its derivatives.
    of : {"margin", "residual"}
        Their argument: the margin :math:`y f` (classification only), or the residual
        :math:`y - f` (in classification taken at :math:`1 - y f`).
    kinks : tuple of float
        Margins or residuals where the first or second derivative jumps.
    scale : float
        Length over which the second derivative bends.

    Raises
    ------
    InvalidArgumentError
        If the functions are not finite, do not match one another, or are not convex.
    """

    functions: tuple[Callable[[Array], Array], ...]
    of: str
    kinks: tuple[float, ...]
    scale: float

    def __init__(
        self,
        value: Callable[[Array], Array],
        derivative: Callable[[Array], Array],
        second_derivative: Callable[[Array], Array],
        *,
        of: Literal["margin", "residual"] = "margin",
        kinks: tuple[float, ...] = (),
        scale: float = 1.0,
    ) -> None:
        if of not in _SIGNS:
            raise InvalidArgumentError("of", of, "'margin' or 'residual'")
        check_scale("scale", scale)
        for name, content in {
            "functions": (value, derivative, second_derivative),
            "of": of,
            "kinks": tuple(sorted(_SIGNS[of] * kink for kink in check_kinks(kinks))),
            "scale": float(scale),
            "anchor": 0.0 if of == "margin" else 1.0,
            "tasks": SCALAR_TASKS if of == "residual" else frozenset({Task.CLASSIFICATION}),
        }.items():
            object.__setattr__(self, name, content)
        check_loss(self)

    def described(self, s: float) -> str:
        return f"{self.of} {self.sign * s + 0.0:.4g}"

    @cached_property
    def compiled(self) -> CompiledLoss:
        return compiled.__wrapped__(self)  # the same functions may mean something else by now

    @property
    def sign(self) -> float:
        """-1 if the functions are of the margin, which falls as the shortfall grows; else 1."""
        return _SIGNS[self.of]

    def value(self, s: Array) -> Array:
        return self.functions[0](self.sign * s)

    def derivative(self, s: Array) -> Array:
        return self.sign * self.functions[1](self.sign * s)

    def second_derivative(self, s: Array) -> Array:
        return self.functions[2](self.sign * s)
