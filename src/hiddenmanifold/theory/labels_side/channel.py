r"""The labels' side of the saddle point: Gaussian averages over the proximal map.

For a label `y` let :math:`\tilde\omega = y\omega \sim N(yb, Q)` be the field along the label and
:math:`u = a - \tilde\omega` its shortfall (`a` the loss's anchor), with proximal point `s`. Three
numbers per point drive the saddle point (see ``docs/theory.md``):

.. math:: e_1 = E[g], \quad e_2 = E[h^2], \quad e_3 = E[h\,\partial \log Z], \qquad
          h = \ell'(s), \quad g = \frac{\ell''(s)}{1 + V\ell''(s)},

plus :math:`e_0 = E[y h]`, which a free intercept sets to zero. Derivatives with respect to the
unknowns come from the same nodes, by :math:`\partial_V h = -h g` and integration by parts: no
third derivative of the loss is needed.

There are three kinds of labels: ±1 that are drawn given the teacher's field, classes ±1 that are
drawn first and displace their samples, and real labels. Every kind is described by unknowns
:math:`(\log V, \log S^2[, \text{tilt}][, \beta])`, with `S` the deviation of the prediction (of the
residual, for real labels) and the intercept :math:`b = b_0 + S\beta`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.compiled import BETA, E0, E1, E3, LOG_Q, LOG_V, TILT
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import CERTAIN, BinaryTeacher, ConstantLaw, Linear, Teacher
from hiddenmanifold.theory.labels_side.averages import (
    Branch,
    ChannelAverages,
    SquareMoments,
    square_averages,
)
from hiddenmanifold.theory.labels_side.proximal_curve import Field

if TYPE_CHECKING:
    from hiddenmanifold.theory.features_side import Overlaps

BATCHES = {"numpy": 1280, "compiled": 5120, "closed form": 8192}
"""Number of points to solve together, which bounds the memory. NumPy keeps all nodes of a batch;
compiled code keeps none, and its calls take less time."""
COLLAPSED = 1e-100
"""A variance below this counts as zero.

Two phases have no regular saddle point: the best predictor is a constant (hinge with a free
intercept on weak, unbalanced labels: Q = 0), or noiseless labels are recovered exactly (absolute
loss: no residual). There V/sqrt(Q) is finite while both vanish; adding this to the variance
stops the fall where it no longer matters.
"""
LONGEST_STEP = 3.0
"""Longest Newton step in the logarithm of an unknown."""
EXPONENTIAL = ConstantLaw((1.0, 1.0, 1.0))
"""The law of a class that displaces its samples, in units of itself: it is its own derivative."""


@dataclass(frozen=True)
class Channel:
    """Labels of some kind, and a loss; a subclass for each kind of labels.

    Parameters
    ----------
    teacher : Teacher
        The rule of the labels.
    loss : Loss
        The loss that is minimised.
    free_intercept : bool
        Whether the predictor has an intercept that symmetry does not leave at zero.
    closed_form : bool
        Whether averages are those of the square loss in closed form, instead of sums over branches.
        The intercept is then no unknown.
    """

    teacher: Any
    loss: Loss
    free_intercept: bool = False
    closed_form: bool = False

    overlap_unknowns: ClassVar[int]
    """Number of unknowns that are overlaps; the intercept may be one more."""
    longest_steps: ClassVar[tuple[float, ...]]
    """Longest Newton step in each unknown."""

    @classmethod
    def of(cls, teacher: Teacher, loss: Loss, free_intercept: bool) -> Channel:
        """The channel of a teacher and a loss, in closed form if there is one."""
        channel = kind_of(teacher)(teacher, loss, free_intercept, closed_form=loss.quadratic)
        return replace(channel, free_intercept=free_intercept and not channel.centred)

    @cached_property
    def rho(self) -> float:
        """Variance of the teacher's field."""
        return float(self.teacher.rho)

    @property
    def batch(self) -> int:
        """Points to solve together."""
        if self.closed_form:
            return BATCHES["closed form"]
        return BATCHES[compiled.engine() if self.has_compiled_law else "numpy"]

    @property
    def has_compiled_law(self) -> bool:
        """Whether compiled code has the label law without a table of it."""
        return True

    @property
    def skipped_levels(self) -> int:
        """Number of the finest quadrature levels to skip, because values of the law are costly."""
        return 0

    @property
    def cost(self) -> int:
        """How many times longer than usual an evaluation takes: twice for each skipped level."""
        return int(2**self.skipped_levels)

    @property
    def centred(self) -> bool:
        """Whether symmetry leaves a free intercept at zero."""
        raise NotImplementedError

    @cached_property
    def unknowns(self) -> int:
        """Number of unknowns per point."""
        return self.overlap_unknowns + (self.free_intercept and not self.closed_form)

    @cached_property
    def longest(self) -> Array:
        """Longest Newton step in each unknown."""
        return np.array(self.longest_steps[: self.unknowns])

    @cached_property
    def constant_prediction(self) -> float | None:
        """Where the intercept is measured from, or None if it is not free.

        This is the best constant prediction :math:`b_0`, to which the intercept tends when Q
        vanishes; in closed form, and for real labels, it is zero, whichever constant is best.
        """
        if not self.free_intercept:
            return None
        if self.closed_form or self.teacher.task is Task.REGRESSION:
            return 0.0
        plus, minus, _ = self.teacher.label_marginals
        return self.loss.best_constant(plus, minus)

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        """Averages over labels and fields at the unknowns `x` (points, unknowns)."""
        if self.closed_form:
            return square_averages(np.exp(x[:, 0]), self.square_moments(x))
        branches = self.branches(x)
        first, *others = [branch.averages(self.loss, level, with_loss) for branch in branches]
        return self.in_unknowns(first.add(others), branches)

    def field(self, x: Array) -> Field:
        """The law of predictions at the unknowns, around zero."""
        slope, V0 = self.teacher_field(x)
        beta = zero = np.zeros(len(x))
        deviation = np.exp(0.5 * x[:, 1])
        if self.free_intercept:
            beta = self.intercept(x) / deviation if self.closed_form else x[:, -1]
        return Field(np.exp(x[:, 0]), zero, deviation, slope, V0, beta)

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        """Slope and variance of the teacher's field given the standardised prediction."""
        raise NotImplementedError

    def branches(self, x: Array) -> list[Branch]:
        """The labels to average over, at the unknowns `x`."""
        raise NotImplementedError

    def in_unknowns(self, found: ChannelAverages, branches: list[Branch]) -> ChannelAverages:
        """Averages of all branches together, with derivatives by the unknowns of the channel."""
        raise NotImplementedError

    def square_moments(self, x: Array) -> SquareMoments:
        """Moments that enter the closed form of the square loss."""
        raise NotImplementedError

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        """Unknowns (without the intercept) of given overlaps, and their derivatives by e."""
        raise NotImplementedError

    def start(self, V: Array) -> Array:
        """Where to start the solve, given a first guess of V."""
        x = np.zeros((len(V), self.unknowns))
        x[:, 0] = np.log(V)
        return x

    def collapsed(self, alpha: Array) -> Array:
        """Where to start if there is no regular saddle point (see `COLLAPSED`)."""
        x = self.start(np.sqrt(COLLAPSED) / np.maximum(alpha, 1.0))
        x[:, 1] = np.log(COLLAPSED)
        return x

    def intercept(self, x: Array) -> Array:
        """The intercept b at the unknowns `x`."""
        if self.closed_form:
            return self.square_moments(x).intercept
        if self.constant_prediction is None:
            return np.zeros(len(x))
        return self.constant_prediction + np.exp(0.5 * x[:, 1]) * x[:, -1]


def kind_of(teacher: Teacher) -> type[Channel]:
    """The kind of channel that the labels of a teacher have."""
    if teacher.task is Task.REGRESSION:
        return RealChannel
    return ClassChannel if teacher.displaces else BinaryChannel


@dataclass(frozen=True)
class BinaryChannel(Channel):
    r"""Labels ±1 given the teacher's field, in the unknowns (log V, log Q, tilt[, β]).

    :math:`M = \sqrt{\rho Q}\tanh(\text{tilt})`, so that :math:`V_0 = \rho/\cosh^2(\text{tilt})`
    keeps its digits when the teacher is almost learned.
    """

    teacher: BinaryTeacher
    overlap_unknowns = 3
    longest_steps = (LONGEST_STEP, LONGEST_STEP, 1.0, LONGEST_STEP)

    @property
    def skipped_levels(self) -> int:
        return self.teacher.skipped_levels

    @property
    def has_compiled_law(self) -> bool:
        return self.teacher.probits(1) is not None

    @property
    def centred(self) -> bool:
        return self.teacher.symmetric

    @cached_property
    def shares(self) -> dict[int, float]:
        """Weight of each label's averages; if labels are symmetric, one represents both."""
        alike = self.teacher.symmetric and not self.free_intercept
        return {1: 2.0} if alike else {1: 1.0, -1: 1.0}

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        rho = self.teacher.rho
        return np.sqrt(rho) * np.tanh(x[:, 2]), rho / np.cosh(x[:, 2]) ** 2

    def branches(self, x: Array) -> list[Branch]:
        field, constant, found = self.field(x), self.constant_prediction or 0.0, []
        for y, share in self.shares.items():
            margin = (self.loss.anchor - y * constant) - y * field.deviation * field.beta
            moved = replace(field, mean=margin)
            found.append(Branch(y, share, self.teacher, moved, margin, field.slope, field.mean))
        return found

    def in_unknowns(self, found: ChannelAverages, branches: list[Branch]) -> ChannelAverages:
        if len(branches) == 1:  # both labels balance
            found.e[:, E0], found.de[:, E0] = 0.0, 0.0
        found.de[..., TILT] *= (branches[0].field.V0 / np.sqrt(self.teacher.rho))[:, None]
        return replace(found, de=found.de[..., : self.unknowns])

    def square_moments(self, x: Array) -> SquareMoments:
        r""":math:`c = E[\nu y]/\rho` and :math:`r = E(y-b)^2 + Q - 2Mc`, with :math:`b = E y`."""
        plus, minus, slope = self.teacher.label_marginals
        rho, Q, c = self.teacher.rho, np.exp(x[:, 1]), 2 * slope
        M = np.sqrt(rho * Q) * np.tanh(x[:, 2])
        dM = np.sqrt(rho * Q) / np.cosh(x[:, 2]) ** 2
        variance = 4 * plus * minus if self.free_intercept else 1.0
        dr = np.array([Q - M * c, -2 * c * dM])
        b = np.full(len(x), plus - minus if self.free_intercept else 0.0)
        return SquareMoments(b, variance + Q - 2 * M * c, dr, c)

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        o = overlaps
        length = np.sqrt(o.deficit + o.M**2)
        Q = o.Q + COLLAPSED
        y = np.stack([np.log(o.V), np.log(Q), np.arcsinh(o.M / np.sqrt(o.deficit))], axis=1)
        half = 0.5 * (o.M / o.deficit)[:, None] * o.ddeficit
        dy = np.stack(
            [o.dV / o.V[:, None], o.dQ / Q[:, None], (o.dM - half) / length[:, None]], axis=1
        )
        return y, dy

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 2] = 0.5
        return x


@dataclass(frozen=True)
class ClassChannel(BinaryChannel):
    r"""Classes that displace their samples, in the unknowns of `BinaryChannel`.

    A sample of the class y has the field :math:`\omega = yM + b + \sqrt Q\,\xi`: along its label it
    is a residual of mean :math:`M + yb`, and :math:`e_3 = E[h]`.
    """

    @cached_property
    def shares(self) -> dict[int, float]:
        plus, minus, _ = self.teacher.label_marginals
        return {1: plus, -1: minus} if self.free_intercept else {1: 1.0}

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


@dataclass(frozen=True)
class RealChannel(Channel):
    r"""Real labels, in the unknowns :math:`(\log V, \log\tau^2[, \beta])`.

    A new residual is :math:`N(-b, \tau^2)` with :math:`\tau^2 = \rho + \Delta + Q - 2M` and
    :math:`b = \tau\beta`; the channel depends on Q and M through τ alone, and :math:`e_3 = e_1`.
    """

    teacher: Linear
    overlap_unknowns = 2
    longest_steps = (LONGEST_STEP, LONGEST_STEP, LONGEST_STEP)

    @property
    def centred(self) -> bool:
        return self.loss.even

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        return np.zeros(len(x)), np.zeros(len(x))

    def branches(self, x: Array) -> list[Branch]:
        field = self.field(x)
        margin, zero = -field.deviation * field.beta, field.mean
        return [Branch(1, 1.0, CERTAIN, replace(field, mean=margin), margin, zero, zero)]

    def in_unknowns(self, found: ChannelAverages, branches: list[Branch]) -> ChannelAverages:
        found.e[:, E3], found.de[:, E3] = found.e[:, E1], found.de[:, E1]
        return replace(found, de=found.de[..., [LOG_V, LOG_Q, BETA][: self.unknowns]])

    def square_moments(self, x: Array) -> SquareMoments:
        r""":math:`r = \tau^2` and c = 1."""
        tau2 = np.exp(x[:, 1])
        return SquareMoments(np.zeros(len(x)), tau2, tau2[None], 1.0)

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        o = overlaps
        tau2 = o.excess + self.teacher.noise + COLLAPSED
        y = np.stack([np.log(o.V), np.log(tau2)], axis=1)
        return y, np.stack([o.dV / o.V[:, None], o.dexcess / tau2[:, None]], axis=1)

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 1] = np.log(self.teacher.rho + self.teacher.noise)
        return x
