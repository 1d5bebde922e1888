r"""Kinds of labels: the unknowns of a channel, and the branches that its averages are made of.

There are three kinds: labels ±1 that are drawn given the teacher's field, classes ±1 that are drawn
first and displace their samples, and real labels. Every kind is described by unknowns
:math:`(\log V, \log S^2[, \text{tilt}][, \beta])`, with `S` the deviation of the prediction (of the
residual, for real labels) and the intercept :math:`b = b_0 + S\beta`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.checks import Task
from hiddenmanifold.compiled import BETA, E0, E1, E3, LOG_Q, LOG_V, TILT
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import CERTAIN, BinaryTeacher, ConstantLaw, Linear, Teacher
from hiddenmanifold.teachers import binary as binary_teacher
from hiddenmanifold.teachers import real as real_teacher
from hiddenmanifold.theory.labels_side.averages import Branch, ChannelAverages
from hiddenmanifold.theory.labels_side.constant_prediction import best_constant
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.theory.labels_side.square_loss import SquareMoments
from hiddenmanifold.theory.scores.errors_of_labels import Predictions, test_error, training_error

if TYPE_CHECKING:
    from hiddenmanifold.theory.features_side import Overlaps

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
class Labels:
    """What a channel asks of its labels, whatever the loss."""

    teacher: Any

    overlap_unknowns: ClassVar[int]
    """How many unknowns are overlaps; one more may be the intercept."""
    longest_steps: ClassVar[tuple[float, ...]]
    """Longest Newton step in each unknown."""

    @property
    def skipped_levels(self) -> int:
        """How many of the finest quadratures to do without: each value of the law is costly."""
        return 0

    @property
    def compiled(self) -> bool:
        """Whether compiled code has the label law without a table of it."""
        return True

    def centred(self, loss: Loss) -> bool:
        """Whether symmetry leaves a free intercept at zero."""
        raise NotImplementedError

    def constant_prediction(self, loss: Loss) -> float:
        """The best prediction :math:`b_0` that ignores x."""
        raise NotImplementedError

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        """Slope and variance of the teacher's field given the standardised prediction."""
        raise NotImplementedError

    def branches(self, field: Field, loss: Loss, constant: float | None) -> list[Branch]:
        """The labels to average over.

        Parameters
        ----------
        field : Field
            The law of predictions around zero; the branches have means of their own.
        loss : Loss
            What is minimised.
        constant : float or None
            :math:`b_0`, or None if there is no intercept.
        """
        raise NotImplementedError

    def in_unknowns(self, found: ChannelAverages, field: Field, unknowns: int) -> ChannelAverages:
        """Averages of all branches together, with derivatives by the unknowns of the channel."""
        raise NotImplementedError

    def square_moments(self, x: Array, free_intercept: bool) -> SquareMoments:
        """What the closed form of the square loss is made of."""
        raise NotImplementedError

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        """Unknowns (without the intercept) of given overlaps, and their derivatives by e."""
        raise NotImplementedError

    def start(self, V: Array) -> Array:
        """Where to start the solve, given a first guess of V; without the intercept."""
        raise NotImplementedError

    def test_errors(self, x: Array, at: Predictions) -> Columns:
        """Test errors against noisy and clean labels, at unknowns and the law that they imply."""
        raise NotImplementedError

    def errors(self, x: Array, at: Predictions, loss: Loss, overlaps: Overlaps) -> Columns:
        """The same with all digits that the overlaps have, and errors on the training set."""
        raise NotImplementedError


def labels_of(teacher: Teacher) -> Labels:
    """The labels of a teacher."""
    if teacher.task is Task.REGRESSION:
        return RealLabels(real_teacher(teacher))
    return (ClassLabels if teacher.displaces else BinaryLabels)(binary_teacher(teacher))


@dataclass(frozen=True)
class BinaryLabels(Labels):
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
    def compiled(self) -> bool:
        return self.teacher.probits(1) is not None

    def centred(self, loss: Loss) -> bool:
        return self.teacher.symmetric

    def constant_prediction(self, loss: Loss) -> float:
        return best_constant(loss, self.teacher)

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        rho = self.teacher.rho
        return np.sqrt(rho) * np.tanh(x[:, 2]), rho / np.cosh(x[:, 2]) ** 2

    def shares(self, free_intercept: bool) -> dict[int, float]:
        """How much the averages of each label count; one may stand for both."""
        alike = self.teacher.symmetric and not free_intercept
        return {1: 2.0} if alike else {1: 1.0, -1: 1.0}

    def branches(self, field: Field, loss: Loss, constant: float | None) -> list[Branch]:
        found = []
        for y, share in self.shares(constant is not None).items():
            margin = (loss.anchor - y * (constant or 0.0)) - y * field.deviation * field.beta
            moved = field.around(margin)
            found.append(Branch(y, share, self.teacher, moved, margin, field.slope, field.mean))
        return found

    def in_unknowns(self, found: ChannelAverages, field: Field, unknowns: int) -> ChannelAverages:
        if len(self.shares(unknowns > self.overlap_unknowns)) == 1:  # both labels balance
            found.e[:, E0], found.de[:, E0] = 0.0, 0.0
        found.de[..., TILT] *= (field.V0 / np.sqrt(self.teacher.rho))[:, None]
        return ChannelAverages(found.e, found.de[..., :unknowns], found.data_loss, found.norm)

    def square_moments(self, x: Array, free_intercept: bool) -> SquareMoments:
        r""":math:`c = E[\nu y]/\rho` and :math:`r = E(y-b)^2 + Q - 2Mc`, with :math:`b = E y`."""
        plus, minus, slope = self.teacher.label_marginals
        rho, Q, c = self.teacher.rho, np.exp(x[:, 1]), 2 * slope
        M = np.sqrt(rho * Q) * np.tanh(x[:, 2])
        dM = np.sqrt(rho * Q) / np.cosh(x[:, 2]) ** 2
        variance = 4 * plus * minus if free_intercept else 1.0
        dr = np.array([Q - M * c, -2 * c * dM])
        b = np.full(len(x), plus - minus if free_intercept else 0.0)
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
        return np.stack([np.log(V), np.zeros_like(V), np.full_like(V, 0.5)], axis=1)

    def test_errors(self, x: Array, at: Predictions) -> Columns:
        bias, clean = at.intercept / at.deviation, self.teacher.clean
        error = test_error(self.teacher, at.slope, at.V0, bias)
        return {
            "generalisation_error": error,
            "clean_error": error.copy()
            if clean == self.teacher
            else test_error(clean, at.slope, at.V0, bias),
        }

    def errors(self, x: Array, at: Predictions, loss: Loss, overlaps: Overlaps) -> Columns:
        training = training_error(self.teacher, loss, at)
        return {**self.test_errors(x, at), "training_error": training}


@dataclass(frozen=True)
class ClassLabels(BinaryLabels):
    r"""Classes that displace their samples, in the unknowns of `BinaryLabels`.

    A sample of the class y has the field :math:`\omega = yM + b + \sqrt Q\,\xi`: along its label it
    is a residual of mean :math:`M + yb`, and :math:`e_3 = E[h]`.
    """

    def shares(self, free_intercept: bool) -> dict[int, float]:
        plus, minus, _ = self.teacher.label_marginals
        return {1: plus, -1: minus} if free_intercept else {1: 1.0}

    def branches(self, field: Field, loss: Loss, constant: float | None) -> list[Branch]:
        found = []
        for branch in super().branches(field, loss, constant):
            slope = branch.slope
            moved = Field(
                V=field.V,
                mean=branch.margin - field.deviation * slope,
                deviation=field.deviation,
                slope=branch.displacement,
                V0=field.V0,
                beta=field.beta + branch.y * slope,
            )
            found.append(replace(branch, law=EXPONENTIAL, field=moved, displacement=slope))
        return found

    def square_moments(self, x: Array, free_intercept: bool) -> SquareMoments:
        r""":math:`c = (1-M)u` and :math:`r = (1-M)c + Q`.

        u is 1, or the variance of the label if the intercept is free; that is :math:`(1-M)\,E y`.
        """
        plus, minus, _ = self.teacher.label_marginals
        u = 4.0 * plus * minus if free_intercept else 1.0
        length, Q = np.sqrt(self.teacher.rho) * np.exp(0.5 * x[:, 1]), np.exp(x[:, 1])
        mean = 1.0 - length * np.tanh(x[:, 2])  # of a residual along its label
        dM = length * np.array([0.5 * np.tanh(x[:, 2]), np.cosh(x[:, 2]) ** -2.0])
        dr = -2.0 * u * mean * dM + np.array([Q, np.zeros_like(Q)])
        b = (plus - minus) * free_intercept * mean
        return SquareMoments(b, u * mean**2 + Q, dr, u * mean, -u * dM)

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 1] -= np.log1p(self.teacher.rho)  # margins of far classes are not too large
        return x


@dataclass(frozen=True)
class RealLabels(Labels):
    r"""Real labels, in the unknowns :math:`(\log V, \log\tau^2[, \beta])`.

    A new residual is :math:`N(-b, \tau^2)` with :math:`\tau^2 = \rho + \Delta + Q - 2M` and
    :math:`b = \tau\beta`; the channel knows the overlaps through it alone, and :math:`e_3 = e_1`.
    """

    teacher: Linear
    overlap_unknowns = 2
    longest_steps = (LONGEST_STEP, LONGEST_STEP, LONGEST_STEP)

    def centred(self, loss: Loss) -> bool:
        return loss.even

    def constant_prediction(self, loss: Loss) -> float:
        return 0.0  # β is measured from it, whichever constant is best

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        return np.zeros(len(x)), np.zeros(len(x))

    def branches(self, field: Field, loss: Loss, constant: float | None) -> list[Branch]:
        margin, zero = -field.deviation * field.beta, field.mean
        return [Branch(1, 1.0, CERTAIN, field.around(margin), margin, zero, zero)]

    def in_unknowns(self, found: ChannelAverages, field: Field, unknowns: int) -> ChannelAverages:
        found.e[:, E3], found.de[:, E3] = found.e[:, E1], found.de[:, E1]
        de = found.de[..., [LOG_V, LOG_Q, BETA][:unknowns]]
        return ChannelAverages(found.e, de, found.data_loss, found.norm)

    def square_moments(self, x: Array, free_intercept: bool) -> SquareMoments:
        r""":math:`r = \tau^2` and c = 1."""
        tau2 = np.exp(x[:, 1])
        return SquareMoments(np.zeros(len(x)), tau2, tau2[None], 1.0)

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        o = overlaps
        tau2 = o.excess + self.teacher.noise + COLLAPSED
        y = np.stack([np.log(o.V), np.log(tau2)], axis=1)
        return y, np.stack([o.dV / o.V[:, None], o.dexcess / tau2[:, None]], axis=1)

    def start(self, V: Array) -> Array:
        spread = np.full_like(V, np.log(self.teacher.rho + self.teacher.noise))
        return np.stack([np.log(V), spread], axis=1)

    def test_errors(self, x: Array, at: Predictions) -> Columns:
        error = np.exp(x[:, 1]) + at.intercept**2
        return {"generalisation_error": error, "clean_error": error - self.teacher.noise}

    def errors(self, x: Array, at: Predictions, loss: Loss, overlaps: Overlaps) -> Columns:
        # the overlaps know the excess below rounding of the noise
        clean = overlaps.excess + at.intercept**2
        return {"generalisation_error": clean + self.teacher.noise, "clean_error": clean}
