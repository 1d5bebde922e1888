"""Labels ±1: drawn given the teacher's field, or classes that are drawn first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.compiled import E0, TILT
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import BinaryTeacher, ConstantLaw
from hiddenmanifold.theory.labels_side.averages import Branch, ChannelAverages, SquareMoments
from hiddenmanifold.theory.labels_side.channel import FieldChannel

EXPONENTIAL = ConstantLaw((1.0, 1.0, 1.0))
"""The law of a class that displaces its samples, in units of itself: it is its own derivative."""

EQUAL = 1e-9
"""Relative difference of the shares of both labels up to which they count as equal."""


@dataclass(frozen=True)
class BinaryChannel(FieldChannel):
    """Labels ±1 given the teacher's field: two branches, or one that represents both."""

    teacher: BinaryTeacher
    loss: Loss

    @property
    def skipped_levels(self) -> int:
        return self.teacher.skipped_levels

    @property
    def has_compiled_law(self) -> bool:
        return self.teacher.probits(1) is not None

    @property
    def centred(self) -> bool:
        return self.teacher.symmetric and self.weights.alike

    @property
    def class_shares(self) -> tuple[float, float]:
        """The parts of the labels +1 and -1 in the mean weight of a sample."""
        plus, minus, _ = self.teacher.label_marginals
        return plus * self.weights.positive, minus * self.weights.negative

    @property
    def balanced(self) -> bool:
        if self.unknowns == self.overlap_unknowns:
            return False
        plus, minus = self.class_shares
        return abs(plus - minus) < EQUAL * (plus + minus)

    @cached_property
    def shares(self) -> dict[int, float]:
        """Weight of each label's averages; if labels are symmetric, one represents both."""
        alike = self.centred and not self.free_intercept
        return {1: 2.0} if alike else {1: 1.0, -1: 1.0}

    def branches(self, x: Array) -> list[Branch]:
        field, constant, found = self.field(x), self.constant_prediction or 0.0, []
        for y, share in self.shares.items():
            margin = (self.loss.anchor - y * constant) - y * field.deviation * field.beta
            weight = self.weights.of_class(y)
            moved = replace(field, mean=margin, V=weight * field.V)
            found.append(
                Branch(y, share, self.teacher, moved, margin, field.slope, field.mean, weight)
            )
        return found

    def in_unknowns(self, found: ChannelAverages, branches: list[Branch]) -> ChannelAverages:
        if len(branches) == 1:  # both labels balance
            found.e[:, E0], found.de[:, E0] = 0.0, 0.0
        found.de[..., TILT] *= (branches[0].field.V0 / np.sqrt(self.teacher.rho))[:, None]
        return replace(found, de=found.de[..., : self.unknowns])

    @property
    def label_noise(self) -> float:
        return float(self.teacher.label_variance(np.zeros(1), np.full(1, self.rho))[0])

    @property
    def best_constant(self) -> float:
        return self.loss.best_constant(*self.class_shares)

    @property
    def label_moments(self) -> tuple[float, float, float, float]:
        plus, minus, slope = self.teacher.label_marginals
        return plus - minus, 1.0, 4 * plus * minus, 2 * slope


@dataclass(frozen=True)
class ClassChannel(BinaryChannel):
    r"""Classes that displace their samples, in the unknowns of `BinaryChannel`.

    A sample of the class y has the field :math:`\omega = yM + b + \sqrt Q\,\xi`: along its label it
    is a residual of mean :math:`M + yb`, and :math:`e_3 = E[h]`.
    """

    @cached_property
    def shares(self) -> dict[int, float]:
        plus, minus, _ = self.teacher.label_marginals
        both = self.free_intercept or not self.weights.alike
        return {1: plus, -1: minus} if both else {1: 1.0}

    def branches(self, x: Array) -> list[Branch]:
        found = []
        for branch in super().branches(x):
            field, slope = branch.field, branch.slope
            moved = replace(
                field,
                mean=branch.margin - field.deviation * slope,
                slope=branch.displacement,
                beta=field.beta + branch.y * slope,
            )
            found.append(replace(branch, law=EXPONENTIAL, field=moved, displacement=slope))
        return found

    def square_moments(self, x: Array) -> SquareMoments:
        r""":math:`c = (1-M)u` and :math:`r = (1-M)c + Q`.

        u is 1, or the variance of the label if the intercept is free; that is :math:`(1-M)\,E y`.
        """
        plus, minus, _ = self.teacher.label_marginals
        u = 4.0 * plus * minus if self.free_intercept else 1.0
        length, Q = np.sqrt(self.teacher.rho) * np.exp(0.5 * x[:, 1]), np.exp(x[:, 1])
        mean = 1.0 - length * np.tanh(x[:, 2])  # of a residual along its label
        dM = length * np.array([0.5 * np.tanh(x[:, 2]), np.cosh(x[:, 2]) ** -2.0])
        dr = -2.0 * u * mean * dM + np.array([Q, np.zeros_like(Q)])
        b = (plus - minus) * self.free_intercept * mean
        return SquareMoments(b, u * mean**2 + Q, dr, u * mean, -u * dM)

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 1] -= np.log1p(self.teacher.rho)  # margins of far classes are not too large
        return x
