"""The losses that have a name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import SCALAR_TASKS, Task, check_number, check_scale
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses.base import Loss


@dataclass(frozen=True)
class Square(Loss):
    r"""Square loss :math:`\tfrac12 s^2`; of several classes, the sum over one-hot targets."""

    scale = None
    tasks = frozenset(Task)
    even = True
    quadratic = True

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

    def value(self, s: Array) -> Array:
        return np.logaddexp(0.0, s)

    def derivative(self, s: Array) -> Array:
        decay = np.exp(-np.abs(s))
        return np.where(s > 0.0, 1.0, decay) / (1.0 + decay)

    def second_derivative(self, s: Array) -> Array:
        decay = np.exp(-np.abs(s))
        return decay / (1.0 + decay) ** 2


@dataclass(frozen=True)
class Hinge(Loss):
    r"""Hinge loss :math:`s_+ = (1 - y f)_+`."""

    scale = None
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

    scale = None
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

    scale = None
    delta: float = 1.0

    def __post_init__(self) -> None:
        check_scale("delta", self.delta)

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

    scale = None
    delta: float = 1.0
    tasks = SCALAR_TASKS
    even = True

    def __post_init__(self) -> None:
        check_scale("delta", self.delta)

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

    scale = None
    tasks = SCALAR_TASKS
    even = True

    kinks = (0.0,)

    def value(self, s: Array) -> Array:
        return np.abs(s)

    def derivative(self, s: Array) -> Array:
        return np.sign(s)

    def second_derivative(self, s: Array) -> Array:
        return np.zeros_like(s)


@dataclass(frozen=True)
class LogCosh(Loss):
    r"""Logarithm of the hyperbolic cosine, :math:`\log\cosh s`: square near zero, then absolute."""

    scale = 0.35
    tasks = SCALAR_TASKS
    even = True

    def value(self, s: Array) -> Array:
        t = np.abs(s)
        near = np.log1p(2.0 * np.sinh(0.5 * np.minimum(t, 1.0)) ** 2)  # no cancellation at zero
        return np.where(t < 1.0, near, t + np.log1p(np.exp(-2.0 * t)) - np.log(2.0))

    def derivative(self, s: Array) -> Array:
        return np.tanh(s)

    def second_derivative(self, s: Array) -> Array:
        decay = np.exp(-2.0 * np.abs(s))
        return 4.0 * decay / (1.0 + decay) ** 2


@dataclass(frozen=True)
class _Tilted(Loss):
    """Losses whose two sides have the weights `level` and 1 - `level`."""

    scale = None
    level: float = 0.5
    tasks = frozenset({Task.REGRESSION})
    kinks = (0.0,)

    def __post_init__(self) -> None:
        check_number("level", self.level, 0.0, 1.0)
        if not 0.0 < self.level < 1.0:
            raise InvalidArgumentError("level", self.level, "between 0 and 1, both excluded")

    @property
    def even(self) -> bool:  # type: ignore[override]
        return self.level == 0.5


@dataclass(frozen=True)
class Quantile(_Tilted):
    r"""Pinball loss :math:`\tau s_+ + (1-\tau)(-s)_+`, least at the quantile of level τ."""

    def value(self, s: Array) -> Array:
        return np.where(s > 0.0, self.level * s, (self.level - 1.0) * s)

    def derivative(self, s: Array) -> Array:
        return np.where(s > 0.0, self.level, self.level - 1.0)

    def second_derivative(self, s: Array) -> Array:
        return np.zeros_like(s)


@dataclass(frozen=True)
class Expectile(_Tilted):
    r"""Asymmetric square loss :math:`\tfrac12\tau s_+^2 + \tfrac12(1-\tau)(-s)_+^2`."""

    def value(self, s: Array) -> Array:
        return 0.5 * self.second_derivative(s) * s**2

    def derivative(self, s: Array) -> Array:
        return self.second_derivative(s) * s

    def second_derivative(self, s: Array) -> Array:
        return np.where(s > 0.0, self.level, 1.0 - self.level)


@dataclass(frozen=True)
class Insensitive(Loss):
    r"""Loss :math:`(|s| - \epsilon)_+` of support vector regression: residuals up to ε are free."""

    scale = None
    width: float = 0.1
    tasks = frozenset({Task.REGRESSION})
    even = True

    def __post_init__(self) -> None:
        check_scale("width", self.width)

    @property
    def kinks(self) -> tuple[float, ...]:  # type: ignore[override]
        return (-self.width, self.width)

    def value(self, s: Array) -> Array:
        return np.maximum(np.abs(s) - self.width, 0.0)

    def derivative(self, s: Array) -> Array:
        return np.where(np.abs(s) > self.width, np.sign(s), 0.0)

    def second_derivative(self, s: Array) -> Array:
        return np.zeros_like(s)
