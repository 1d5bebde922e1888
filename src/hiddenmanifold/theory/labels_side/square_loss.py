r"""The square loss, whose channel averages need no integral (``docs/theory.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.theory.labels_side.channel import BinaryChannel, ChannelAverages, LinearChannel

BATCH = 8192
"""Points to solve together; without nodes they can be more than on panels."""


@dataclass(frozen=True)
class SquareBinaryChannel(BinaryChannel):
    r"""Labels ±1: :math:`e_1 = 1/(1+V)`, :math:`e_2 = r/(1+V)^2`, :math:`e_3 = c/(1+V)`.

    :math:`c = E[\nu y]/\rho` and :math:`r = E(y-b)^2 + Q - 2Mc`; a free intercept is :math:`E y`,
    so it is no unknown.
    """

    @property
    def unknowns(self) -> int:
        return 3

    @property
    def batch(self) -> int:
        return BATCH

    @cached_property
    def label_moments(self) -> tuple[float, float, float]:
        """Mean of the label, its mean square around the intercept, and c."""
        plus, minus, slope = self.teacher.at_rest
        return plus - minus, 4 * plus * minus if self.free_intercept else 1.0, 2 * slope

    def intercept(self, x: Array) -> Array:
        return np.full(len(x), self.label_moments[0] if self.free_intercept else 0.0)

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        _, variance, c = self.label_moments
        rho, V, Q = self.teacher.rho, np.exp(x[:, 0]), np.exp(x[:, 1])
        M = np.sqrt(rho * Q) * np.tanh(x[:, 2])
        dM = np.sqrt(rho * Q) / np.cosh(x[:, 2]) ** 2
        r = variance + Q - 2 * M * c
        return square_averages(V, r, np.array([Q - M * c, -2 * c * dM]), c)


@dataclass(frozen=True)
class SquareLinearChannel(LinearChannel):
    r"""Real labels: the same with :math:`r = \tau^2` and c = 1."""

    @property
    def batch(self) -> int:
        return BATCH

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        tau2 = np.exp(x[:, 1])
        return square_averages(np.exp(x[:, 0]), tau2, tau2[None], 1.0)


def square_averages(
    V: Array, r: Array, dr: Array, c: Array | float, dc: Array | float = 0.0
) -> ChannelAverages:
    """Averages of the square loss; `dr`, `dc` have derivatives by the unknowns after log V."""
    g = 1.0 / (1.0 + V)
    zero = np.zeros_like(V)
    slope = -V * g  # d log g / d log V
    e = np.array([g, r * g**2, c * g, zero])
    by_rest = [
        np.array([zero, d * g**2, slope_c * g, zero])
        for d, slope_c in zip(dr, np.broadcast_to(dc, dr.shape), strict=True)
    ]
    de = np.array([np.array([g * slope, 2 * r * g**2 * slope, c * g * slope, zero]), *by_rest])
    return ChannelAverages(e.T, de.T, 0.5 * r * g**2, np.ones_like(V))
