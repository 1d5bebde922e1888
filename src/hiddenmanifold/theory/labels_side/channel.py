r"""The labels' side of the saddle point: Gaussian averages over the proximal map.

For a label `y` let :math:`\tilde\omega = y\omega \sim N(yb, Q)` be the field along the label and
:math:`u = a - \tilde\omega` its shortfall (`a` the loss's anchor), with proximal point `s`. Three
numbers per point drive the saddle point (see ``docs/theory.md``):

.. math:: e_1 = E[g], \quad e_2 = E[h^2], \quad e_3 = E[h\,\partial \log Z], \qquad
          h = \rho'(s), \quad g = \frac{\rho''(s)}{1 + V\rho''(s)},

plus :math:`e_0 = E[y h]`, which a free intercept sets to zero. Derivatives with respect to the
unknowns come from the same nodes, by :math:`\partial_V h = -h g` and integration by parts: no
third derivative of the loss is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import BinaryTeacher, Linear, Teacher, binary, real
from hiddenmanifold.theory.labels_side.averages import Branch, Label, RealLabel, label_averages
from hiddenmanifold.theory.labels_side.constant_prediction import best_constant
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.theory.scores.distribution import CONSTANT, Scores
from hiddenmanifold.theory.scores.errors_of_labels import test_error, training_error

if TYPE_CHECKING:
    from hiddenmanifold.theory.features_side import Overlaps

COLLAPSED = 1e-100
"""A variance below this counts as zero.

Two phases have no regular saddle point: the best predictor is a constant (hinge with a free
intercept on weak, unbalanced labels: Q = 0), or noiseless labels are recovered exactly (absolute
loss: no residual). There V/sqrt(Q) is finite while both vanish; adding this to the variance
stops the fall where it no longer matters.
"""
BATCHES = {"numpy": 1280, "compiled": 5120}
"""Points to solve together; compiled code keeps no nodes, and its calls are over sooner."""
LONGEST_STEP = 3.0
"""Longest Newton step in the logarithm of an unknown."""


@dataclass(frozen=True)
class ChannelAverages:
    """Channel averages of a batch of points.

    Attributes
    ----------
    e : array (points, 4)
        :math:`e_1, e_2, e_3, e_0`.
    de : array (points, 4, unknowns)
        Their derivatives with respect to the unknowns of the channel.
    data_loss : array (points,)
        Mean loss of the training samples, without the penalty; NaN unless asked for.
    norm : array (points,)
        Sum of the probabilities of all labels and fields, on the same nodes: 1 if nothing is lost.
    """

    e: Array
    de: Array
    data_loss: Array
    norm: Array

    @classmethod
    def of(cls, averages: Array, unknowns: list[int] | slice) -> ChannelAverages:
        """From rows of `label_averages`, of whose derivatives some are by unknowns."""
        de = averages[:, 4:20].reshape(-1, 4, 4)[..., unknowns]
        return cls(averages[:, :4], de, averages[:, 20], averages[:, 21])


@dataclass(frozen=True)
class Channel:
    """What the solver asks of a channel; the members are `BinaryChannel` and `LinearChannel`."""

    teacher: Any
    loss: Loss
    free_intercept: bool = False

    overlap_unknowns: ClassVar[int]
    """How many unknowns are overlaps; the rest is the intercept."""
    longest_steps: ClassVar[tuple[float, ...]]

    @classmethod
    def of(cls, teacher: Teacher, loss: Loss, free_intercept: bool) -> Channel:
        """The channel of labels and a loss; symmetry may leave a free intercept at zero."""
        raise NotImplementedError

    def test_errors(self, x: Array) -> Columns:
        """Test errors against noisy and clean labels, as functions of the unknowns alone."""
        raise NotImplementedError

    def errors(self, x: Array, overlaps: Overlaps) -> Columns:
        """The same with all digits that the overlaps have, and errors on the training set."""
        raise NotImplementedError

    def scores(self, x: Array) -> Scores:
        """Law of predictions and labels, as a function of the unknowns alone."""
        raise NotImplementedError

    @property
    def batch(self) -> int:
        """Points to solve together; this bounds the memory."""
        return BATCHES[compiled.engine()]

    @property
    def unknowns(self) -> int:
        """Number of unknowns per point."""
        return self.overlap_unknowns + self.free_intercept

    @property
    def longest(self) -> Array:
        """Longest Newton step in each unknown."""
        return np.array(self.longest_steps[: self.unknowns])

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        """Averages over labels and fields at the unknowns `x` (points, unknowns)."""
        raise NotImplementedError

    def branches(self, x: Array) -> list[Branch]:
        """The labels at the unknowns `x`, for averages that `averages` does not have."""
        raise NotImplementedError

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        """Unknowns (without the intercept) of given overlaps, and their derivatives by e."""
        raise NotImplementedError

    def start(self, V: Array) -> Array:
        """Where to start the solve, given a first guess of V."""
        raise NotImplementedError

    def collapsed(self, alpha: Array) -> Array:
        """Where to start if there is no regular saddle point (see `COLLAPSED`)."""
        x = self.start(np.sqrt(COLLAPSED) / np.maximum(alpha, 1.0))
        x[:, 1] = np.log(COLLAPSED)
        return x

    def intercept(self, x: Array) -> Array:
        """The intercept b at the unknowns `x`."""
        raise NotImplementedError

    @property
    def spared(self) -> int:
        """How many halvings of panels to do without, because a value of the label law is costly."""
        return 0


@dataclass(frozen=True)
class BinaryChannel(Channel):
    r"""Labels :math:`y = \pm 1`, in the unknowns :math:`(\log V, \log Q, a[, \beta])`.

    :math:`M = \sqrt{\rho Q}\tanh a`, so that :math:`V_0 = \rho/\cosh^2 a` keeps its digits when
    the teacher is almost learned; the intercept is :math:`b = b_0 + \sqrt Q\,\beta`, with
    :math:`b_0` the best constant prediction, where it rests when Q vanishes.
    """

    teacher: BinaryTeacher
    overlap_unknowns = 3
    longest_steps = (LONGEST_STEP, LONGEST_STEP, 1.0, LONGEST_STEP)

    @classmethod
    def of(cls, teacher: Teacher, loss: Loss, free_intercept: bool) -> Channel:
        rule = binary(teacher)
        return cls(rule, loss, free_intercept and not rule.symmetric)

    def _standardised(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Slope and variance of the field given the prediction, and its deviation and mean."""
        rho = self.teacher.rho
        k, V0 = np.sqrt(rho) * np.tanh(x[:, 2]), rho / np.cosh(x[:, 2]) ** 2
        return k, V0, np.exp(0.5 * x[:, 1]), self.intercept(x)

    def _law(self, x: Array) -> dict[str, Array]:
        """Law of a solution's predictions; one that is zero everywhere guesses like a coin."""
        k, V0, deviation, b = self._standardised(x)
        law = {"V": np.exp(x[:, 0]), "deviation": deviation, "k": k, "V0": V0, "intercept": b}
        if len(self.loss.slopes_at_zero) > 1 and self.resting_intercept == 0.0:
            zero = deviation < CONSTANT  # held by the corner: of w no direction is left
            law |= {name: np.where(zero, 0.0, law[name]) for name in ("V", "k", "intercept")}
            law["V0"] = np.where(zero, self.teacher.rho, V0)
        return law

    def test_errors(self, x: Array) -> Columns:
        law = self._law(x)
        k, V0, deviation, b = (law[name] for name in ("k", "V0", "deviation", "intercept"))
        error, clean = test_error(self.teacher, k, V0, b / deviation), self.teacher.clean
        return {
            "generalisation_error": error,
            "clean_error": error.copy()
            if clean == self.teacher
            else test_error(clean, k, V0, b / deviation),
        }

    def errors(self, x: Array, overlaps: Overlaps) -> Columns:
        training = training_error(self.teacher, self.loss, **self._law(x))
        return {**self.test_errors(x), "training_error": training}

    def scores(self, x: Array) -> Scores:
        k, V0, deviation, b = self._standardised(x)
        law = {"deviation": deviation, "intercept": b, "k": k, "V0": V0}
        return Scores.of(self.teacher, self.loss, V=np.exp(x[:, 0]), **law)

    @property
    def spared(self) -> int:
        return self.teacher.spared

    @property
    def batch(self) -> int:
        return super().batch if self.teacher.probits(1) else BATCHES["numpy"]

    @cached_property
    def resting_intercept(self) -> float:
        """Best constant prediction :math:`b_0`; 0 without a free intercept."""
        return best_constant(self.loss, self.teacher) if self.free_intercept else 0.0

    @property
    def labels(self) -> tuple[int, ...]:
        """The labels to average over: one stands for both if nothing tells them apart."""
        return (1,) if self.teacher.symmetric and not self.free_intercept else (1, -1)

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        rho = self.teacher.rho
        V, (k, V0, deviation, _) = np.exp(x[:, 0]), self._standardised(x)
        beta = x[:, 3] if self.free_intercept else np.zeros_like(V)
        parts = []
        for y in self.labels:
            mean = (self.loss.anchor - y * self.resting_intercept) - y * deviation * beta
            field = Field(V, mean, deviation, k, beta)
            label = Label(self.teacher, y, V0)
            parts.append(label_averages(self.loss, field, label, level, with_loss))
        found = parts[0]
        found += parts[-1]  # one label may stand for both
        averages = ChannelAverages.of(found, slice(self.unknowns))
        if len(parts) == 1:
            averages.e[:, 3], averages.de[:, 3] = 0.0, 0.0
        averages.de[..., 2] *= (V0 / np.sqrt(rho))[:, None]
        return averages

    def branches(self, x: Array) -> list[Branch]:
        k, V0, deviation, b = self._standardised(x)
        V, zero = np.exp(x[:, 0]), np.zeros(len(x))
        found = []
        for y in self.labels:
            margin = self.loss.anchor - y * b
            field, label = Field(V, margin, deviation, k, zero), Label(self.teacher, y, V0)
            found.append(Branch(y, 2.0 / len(self.labels), field, label, margin, k, zero))
        return found

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
        x = np.zeros((len(V), self.unknowns))
        x[:, 0], x[:, 2] = np.log(V), 0.5
        return x

    def intercept(self, x: Array) -> Array:
        shift = np.exp(0.5 * x[:, 1]) * x[:, 3] if self.free_intercept else np.zeros(len(x))
        return self.resting_intercept + shift


@dataclass(frozen=True)
class LinearChannel(Channel):
    r"""Real labels, in the unknowns :math:`(\log V, \log\tau^2[, \beta])`.

    A new residual is :math:`N(-b, \tau^2)` with :math:`\tau^2 = \rho + \Delta + Q - 2M` and
    :math:`b = \tau\beta`; the channel knows the overlaps through it alone, and :math:`e_3 = e_1`.
    """

    teacher: Linear
    overlap_unknowns = 2
    longest_steps = (LONGEST_STEP, LONGEST_STEP, LONGEST_STEP)

    @classmethod
    def of(cls, teacher: Teacher, loss: Loss, free_intercept: bool) -> Channel:
        # an even loss on centred labels leaves the intercept at zero
        return cls(real(teacher), loss, free_intercept and not loss.even)

    def test_errors(self, x: Array) -> Columns:
        error = np.exp(x[:, 1]) + self.intercept(x) ** 2
        return {"generalisation_error": error, "clean_error": error - self.teacher.noise}

    def errors(self, x: Array, overlaps: Overlaps) -> Columns:
        # the overlaps know the excess below rounding of the noise
        clean = overlaps.excess + self.intercept(x) ** 2
        return {"generalisation_error": clean + self.teacher.noise, "clean_error": clean}

    def scores(self, x: Array) -> Scores:
        nothing = np.zeros(len(x))
        law = {"intercept": self.intercept(x), "k": nothing, "V0": nothing}
        deviation = np.exp(0.5 * x[:, 1])
        return Scores.of(self.teacher, self.loss, V=np.exp(x[:, 0]), deviation=deviation, **law)

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        V, deviation = np.exp(x[:, 0]), np.exp(0.5 * x[:, 1])
        beta = x[:, 2] if self.free_intercept else np.zeros_like(V)
        field = Field(V, -deviation * beta, deviation, np.zeros_like(V), beta)
        label = RealLabel(np.ones_like(V))
        found = label_averages(self.loss, field, label, level, with_loss)
        averages = ChannelAverages.of(found, [0, 1, 3][: self.unknowns])
        averages.e[:, 2], averages.de[:, 2] = averages.e[:, 0], averages.de[:, 0]
        return averages

    def branches(self, x: Array) -> list[Branch]:
        zero, margin = np.zeros(len(x)), -self.intercept(x)
        field = Field(np.exp(x[:, 0]), margin, np.exp(0.5 * x[:, 1]), zero, zero)
        return [Branch(1, 1.0, field, RealLabel(zero), margin, zero, zero)]

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        o = overlaps
        tau2 = o.excess + self.teacher.noise + COLLAPSED
        y = np.stack([np.log(o.V), np.log(tau2)], axis=1)
        return y, np.stack([o.dV / o.V[:, None], o.dexcess / tau2[:, None]], axis=1)

    def start(self, V: Array) -> Array:
        x = np.zeros((len(V), self.unknowns))
        x[:, 0], x[:, 1] = np.log(V), np.log(self.teacher.rho + self.teacher.noise)
        return x

    def intercept(self, x: Array) -> Array:
        return np.exp(0.5 * x[:, 1]) * x[:, 2] if self.free_intercept else np.zeros(len(x))
