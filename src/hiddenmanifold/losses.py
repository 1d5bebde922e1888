r"""Convex losses and their proximal maps.

Every loss is a convex function :math:`\rho(s)` of one scalar, the *shortfall*

* regression: :math:`s = y - f`, the residual;
* classification, :math:`y = \pm 1`: :math:`s = a - y f`, how far the margin :math:`y f` falls short
  of the anchor :math:`a` (1 for square, Huber, absolute and the hinges, so that
  :math:`|y - f| = |1 - y f|`; 0 for the logistic loss).

Writing a loss around its own centre keeps full relative precision where the proximal point is
within :math:`10^{-10}` of the anchor, which happens when :math:`V \sim 10^{10}`.

A loss is its value, two derivatives and its kinks (points where the first or the second derivative
jumps). Everything else, the proximal map included, follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .errors import InvalidArgumentError
from .numerics.roots import increasing_root
from .registry import Task, check_kinks, check_number, sampled

Array = NDArray[np.float64]


class Loss:
    r"""Base of all losses: a convex :math:`\rho(s)` of the shortfall (see the module's docstring).

    Attributes
    ----------
    anchor : float
        The margin at which the shortfall vanishes.
    kinks : tuple of float
        Shortfalls where :math:`\rho'` or :math:`\rho''` jumps, in increasing order.
    scale : float or None
        Length over which :math:`\rho''` bends; None if the loss is quadratic between its kinks.
    tasks : frozenset of Task
        Tasks in which the loss makes sense.
    even : bool
        Whether :math:`\rho(-s) = \rho(s)`.
    """

    anchor: float = 1.0
    kinks: tuple[float, ...] = ()
    scale: float | None = None
    tasks: frozenset[Task] = frozenset({Task.CLASSIFICATION})
    even: bool = False

    def value(self, s: Array) -> Array:
        r""":math:`\rho(s)`."""
        raise NotImplementedError

    def derivative(self, s: Array) -> Array:
        r""":math:`\rho'(s)`, of either side at a kink."""
        raise NotImplementedError

    def second_derivative(self, s: Array) -> Array:
        r""":math:`\rho''(s)`, without the Dirac masses at kinks."""
        raise NotImplementedError

    @cached_property
    def knots(self) -> tuple[Array, Array, Array, Array]:
        r"""Shortfalls that cut the line into pieces, :math:`\rho'` below and above, :math:`\rho''`.

        The kinks, and for a loss that bends smoothly a ladder of step `4 scale` around the
        centre: between two knots the loss is resolved by a dozen Gauss–Legendre nodes.
        """
        s = np.array(sorted({*self.kinks, *self._ladder()} or {0.0}))
        below, above = self.derivative(s), self.derivative(s)
        at = np.isin(s, self.kinks)
        below[at] = self.derivative(np.nextafter(s[at], -np.inf))
        above[at] = self.derivative(np.nextafter(s[at], np.inf))
        above = np.where(
            above - below > 1e-12 * (np.abs(above) + np.abs(below) + 1.0), above, below
        )
        return s, below, above, self.second_derivative(s)

    def _ladder(self) -> tuple[float, ...]:
        if self.scale is None:
            return ()
        return tuple(self.scale * step for step in range(-40, 41, 4))

    def proximal(self, u: Array, V: Array, tolerance: Array | float = 0.0) -> Array:
        r"""Proximal point: the `s` with :math:`s + V \rho'(s) \ni u`.

        Parameters
        ----------
        u, V : arrays that broadcast
            Where to evaluate, and the positive width :math:`V`.
        tolerance : array or float
            Accepted error of :math:`s + V \rho'(s)`; 0 means to rounding.
        """
        s_knot, left, right, _ = self.knots
        u, V = np.asarray(u, dtype=float), np.asarray(V, dtype=float)
        enter, leave = s_knot + V[..., None] * left, s_knot + V[..., None] * right
        V = np.broadcast_to(V, np.broadcast_shapes(u.shape, V.shape))
        # piece j lies between knots j-1 and j; the outer two are bounded by monotonicity of rho'
        piece = (enter <= u[..., None]).sum(-1)
        low = np.where(piece > 0, s_knot[np.maximum(piece - 1, 0)], u - V * left[0])
        last = len(s_knot)
        high = np.where(piece < last, s_knot[np.minimum(piece, last - 1)], u - V * right[-1])
        jumps = np.append(False, right > left)
        on_kink = jumps[piece]
        if on_kink.any():
            leave = np.broadcast_to(leave, (*piece.shape, last))
            on_kink &= (
                u <= np.take_along_axis(leave, np.maximum(piece - 1, 0)[..., None], -1)[..., 0]
            )
        return increasing_root(
            lambda s, v: (s + v * self.derivative(s), 1.0 + v * self.second_derivative(s)),
            np.broadcast_to(u, V.shape),
            (low, np.where(on_kink, low, np.maximum(high, low))),
            V,
            tolerance,
        )


@dataclass(frozen=True)
class Square(Loss):
    r"""Square loss :math:`\tfrac12 s^2`."""

    tasks = frozenset(Task)
    even = True

    def value(self, s: Array) -> Array:
        return 0.5 * s**2

    def derivative(self, s: Array) -> Array:
        return s

    def second_derivative(self, s: Array) -> Array:
        return np.ones_like(s)


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Logistic loss :math:`\log(1 + e^{s})`, :math:`s = -y f`."""

    anchor = 0.0
    scale = 1.0

    def value(self, s: Array) -> Array:
        return np.logaddexp(0.0, s)

    def derivative(self, s: Array) -> Array:
        slope: Array = special.expit(s)
        return slope

    def second_derivative(self, s: Array) -> Array:
        decay = np.exp(-np.abs(s))
        return decay / (1.0 + decay) ** 2


@dataclass(frozen=True)
class Hinge(Loss):
    r"""Hinge loss :math:`s_+ = (1 - y f)_+`."""

    kinks = (0.0,)

    def value(self, s: Array) -> Array:
        return np.maximum(s, 0.0)

    def derivative(self, s: Array) -> Array:
        return np.where(s > 0.0, 1.0, 0.0)

    def second_derivative(self, s: Array) -> Array:
        return np.zeros_like(s)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    r"""Squared hinge loss :math:`\tfrac12 s_+^2`."""

    kinks = (0.0,)

    def value(self, s: Array) -> Array:
        return 0.5 * np.maximum(s, 0.0) ** 2

    def derivative(self, s: Array) -> Array:
        return np.maximum(s, 0.0)

    def second_derivative(self, s: Array) -> Array:
        return np.where(s > 0.0, 1.0, 0.0)


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    r"""Smoothed hinge: :math:`s_+^2/2\delta` up to :math:`s=\delta`, then :math:`s-\delta/2`."""

    delta: float = 1.0

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0.0, open_low=True)

    @property
    def kinks(self) -> tuple[float, ...]:  # type: ignore[override]
        return (0.0, self.delta)

    def value(self, s: Array) -> Array:
        bent = np.clip(s, 0.0, self.delta)
        return bent**2 / (2.0 * self.delta) + np.maximum(s - self.delta, 0.0)

    def derivative(self, s: Array) -> Array:
        return np.clip(s / self.delta, 0.0, 1.0)

    def second_derivative(self, s: Array) -> Array:
        return np.where((s > 0.0) & (s < self.delta), 1.0 / self.delta, 0.0)


@dataclass(frozen=True)
class Huber(Loss):
    r"""Huber loss: :math:`s^2/2` up to :math:`|s| = \delta`, then :math:`\delta(|s|-\delta/2)`."""

    delta: float = 1.0
    tasks = frozenset(Task)
    even = True

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0.0, open_low=True)

    @property
    def kinks(self) -> tuple[float, ...]:  # type: ignore[override]
        return (-self.delta, self.delta)

    def value(self, s: Array) -> Array:
        bent = np.minimum(np.abs(s), self.delta)
        return 0.5 * bent**2 + self.delta * np.maximum(np.abs(s) - self.delta, 0.0)

    def derivative(self, s: Array) -> Array:
        return np.clip(s, -self.delta, self.delta)

    def second_derivative(self, s: Array) -> Array:
        return np.where(np.abs(s) < self.delta, 1.0, 0.0)


@dataclass(frozen=True)
class Absolute(Loss):
    r"""Absolute loss :math:`|s|`."""

    tasks = frozenset(Task)
    even = True

    kinks = (0.0,)

    def value(self, s: Array) -> Array:
        return np.abs(s)

    def derivative(self, s: Array) -> Array:
        return np.sign(s)

    def second_derivative(self, s: Array) -> Array:
        return np.zeros_like(s)


_SIGNS = {"margin": -1.0, "residual": 1.0}


@dataclass(frozen=True, init=False)
class Custom(Loss):
    r"""Any convex loss, given by vectorised functions.

    Parameters
    ----------
    value, derivative, second_derivative : callable
        The loss and its derivatives.
    of : {"margin", "residual"}
        What they are functions of: the margin :math:`y f` (classification only), or the residual
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
        if of not in ("margin", "residual"):
            raise InvalidArgumentError("of", of, "'margin' or 'residual'")
        check_number("scale", scale, 0.0, open_low=True)
        for name, content in {
            "functions": (value, derivative, second_derivative),
            "of": of,
            "kinks": tuple(sorted(_SIGNS[of] * kink for kink in check_kinks(kinks))),
            "scale": float(scale),
            "anchor": 0.0 if of == "margin" else 1.0,
            "tasks": frozenset(Task) if of == "residual" else frozenset({Task.CLASSIFICATION}),
        }.items():
            object.__setattr__(self, name, content)
        self._check()

    @property
    def sign(self) -> float:
        """-1 if the functions are of the margin, which the shortfall runs against."""
        return _SIGNS[self.of]

    def value(self, s: Array) -> Array:
        return self.functions[0](self.sign * s)

    def derivative(self, s: Array) -> Array:
        return self.sign * self.functions[1](self.sign * s)

    def second_derivative(self, s: Array) -> Array:
        return self.functions[2](self.sign * s)

    def _check(self) -> None:
        """Refuse functions that are not finite, not consistent or not convex."""
        s = self.scale * np.linspace(-30.0, 30.0, 2401)
        step = 1e-4 * self.scale
        near = np.abs(s[:, None] - np.array([*self.kinks, np.inf])).min(1) < 2 * step
        s = s[~near]
        names = ("value", "derivative", "second_derivative")
        x = self.sign * s
        values = {
            name: sampled(name, function, x)
            for name, function in zip(names, self.functions, strict=True)
        }
        values["derivative"] *= self.sign
        if values["second_derivative"].min() < 0 or np.diff(values["derivative"]).min() < -1e-12:
            worst = s[np.argmin(values["second_derivative"])]
            raise InvalidArgumentError(
                "second_derivative",
                f"{values['second_derivative'].min():g} at {self.sign * worst:g}",
                "non-negative everywhere: the theory needs a convex loss",
            )
        for name, slope in (("value", "derivative"), ("derivative", "second_derivative")):
            function = getattr(self, name)
            difference = (function(s + step) - function(s - step)) / (2 * step)
            error = np.abs(difference - values[slope])
            allowed = 1e-4 * (1.0 + np.abs(values[slope])) / min(1.0, self.scale)
            if (error > allowed).any():
                worst = s[np.argmax(error - allowed)]
                raise InvalidArgumentError(
                    slope,
                    f"off by {error.max():.3g} at {self.sign * worst:g}",
                    f"the derivative of {name} (declare kinks, if there are any)",
                )


REGISTRY: dict[str, type[Loss]] = {
    "square": Square,
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "smoothed_hinge": SmoothedHinge,
    "huber": Huber,
    "absolute": Absolute,
}
