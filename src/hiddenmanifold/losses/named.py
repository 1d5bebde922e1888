"""The losses that have a name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, check_scale
from hiddenmanifold.losses.base import Loss


@dataclass(frozen=True)
class Square(Loss):
    r"""Square loss :math:`\tfrac12 s^2`."""

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
    tasks = frozenset(Task)
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
    tasks = frozenset(Task)
    even = True

    kinks = (0.0,)

    def value(self, s: Array) -> Array:
        return np.abs(s)

    def derivative(self, s: Array) -> Array:
        return np.sign(s)

    def second_derivative(self, s: Array) -> Array:
        return np.zeros_like(s)
