r"""The labels' side of two normal classes.

A sample of the class y has the field :math:`\omega = yM + b + \sqrt Q\,\xi`: along its label it is
a residual of mean :math:`M + yb`, whose averages are those of real labels, and :math:`e_3 = E[h]`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.theory.labels_side.averages import Branch, ClassLabel, RealLabel, label_averages
from hiddenmanifold.theory.labels_side.channel import BinaryChannel, ChannelAverages
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.theory.labels_side.square_loss import BATCH, square_averages


@dataclass(frozen=True)
class MixtureChannel(BinaryChannel):
    """Two classes, in the unknowns of `BinaryChannel`; `teacher` is one that displaces samples."""

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 1] -= np.log1p(self.teacher.rho)  # margins of far classes are not too large
        return x

    @property
    def classes(self) -> tuple[tuple[int, float], ...]:
        """Labels and their shares; without an intercept nothing tells them apart: 0 is both."""
        plus, minus, _ = self.teacher.at_rest
        return ((1, plus), (-1, minus)) if self.free_intercept else ((0, 1.0),)

    def branches(self, x: Array) -> list[Branch]:
        k, V0, deviation, b = self._standardised(x)
        V, zero = np.exp(x[:, 0]), np.zeros(len(x))
        found = []
        for y, share in self.classes:
            margin = self.loss.anchor - y * b
            field, label = Field(V, margin - deviation * k, deviation, zero, zero), ClassLabel(V0)
            found.append(Branch(y, share, field, label, margin, k, k))
        return found

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        V, (k, V0, deviation, _) = np.exp(x[:, 0]), self._standardised(x)
        beta = x[:, 3] if self.free_intercept else np.zeros_like(V)
        parts = []
        for y, share in self.classes:
            shift = k + y * beta
            mean = (self.loss.anchor - y * self.resting_intercept) - deviation * shift
            field = Field(V, mean, deviation, np.zeros_like(V), shift)
            rows = label_averages(self.loss, field, RealLabel(V0), level, with_loss)
            e, de, *rest = rows[:, :4].T, rows[:, 4:20].T.reshape(4, 4, -1), *rows[:, 20:22].T
            e[2], de[2] = e[3], de[3]
            de[:, 2] = de[:, 3] * V0 / np.sqrt(self.teacher.rho)
            e[3], de[3] = y * e[3], y * de[3]
            de[:, 3] *= y
            parts.append([share * part for part in (e, de, *rest)])
        e, de, data_loss, norm = (sum(part) for part in zip(*parts, strict=True))
        return ChannelAverages(e.T, np.moveaxis(de, -1, 0)[..., : self.unknowns], data_loss, norm)


@dataclass(frozen=True)
class SquareMixtureChannel(MixtureChannel):
    r"""The square loss: :math:`e_3 = c/(1+V)` with :math:`c = (1-M)u`, and :math:`r = (1-M)c + Q`.

    u is 1, or the variance of the label if the intercept is free; that is :math:`(1-M)\,E y`.
    """

    batch = BATCH

    @property
    def unknowns(self) -> int:
        return 3

    def _residual(self, x: Array) -> tuple[Array, Array]:
        """The mean 1 - M of a residual along its label, and sqrt(rho Q)."""
        length = np.sqrt(self.teacher.rho) * np.exp(0.5 * x[:, 1])
        return 1.0 - length * np.tanh(x[:, 2]), length

    def intercept(self, x: Array) -> Array:
        plus, minus, _ = self.teacher.at_rest
        return (plus - minus) * self.free_intercept * self._residual(x)[0]

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        plus, minus, _ = self.teacher.at_rest
        u = 4.0 * plus * minus if self.free_intercept else 1.0
        (mean, length), Q = self._residual(x), np.exp(x[:, 1])
        dM = length * np.array([0.5 * np.tanh(x[:, 2]), np.cosh(x[:, 2]) ** -2.0])
        dr = -2.0 * u * mean * dM + np.array([Q, np.zeros_like(Q)])
        return square_averages(np.exp(x[:, 0]), u * mean**2 + Q, dr, u * mean, -u * dM)
