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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import sum_by_row
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import BinaryTeacher, Law, Linear, Teacher, binary, real
from hiddenmanifold.theory.best_constant import best_constant
from hiddenmanifold.theory.observables import test_error, training_error
from hiddenmanifold.theory.proximal_curve import REACH, Field, ProximalNodes, proximal_curve
from hiddenmanifold.theory.scores import Scores

if TYPE_CHECKING:
    from hiddenmanifold.theory.overlaps import Overlaps

COLLAPSED = 1e-100
"""A variance below this counts as zero.

Two phases have no regular saddle point: the best predictor is a constant (hinge with a free
intercept on weak, unbalanced labels: Q = 0), or noiseless labels are recovered exactly (absolute
loss: no residual). There V/sqrt(Q) is finite while both vanish; adding this to the variance
stops the fall where it no longer matters.
"""
BLOCK = 512
"""Points whose nodes are handled together."""
LONGEST_STEP = 3.0
"""Longest Newton step in the logarithm of an unknown."""


@dataclass(frozen=True)
class Hats:
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


def averages(
    loss: Loss,
    curve: ProximalNodes,
    field: Field,
    y: int,
    law: Callable[[Array, Integers], Law] | None,
    *,
    with_loss: bool,
) -> tuple[Array, Array, Array, Array]:
    """Averages over one label, and their derivatives by (log V, log Q, a, beta).

    Returns `e` (4, rows), `de` (4, 4, rows), data loss and norm (rows,). The derivative by `a` is
    left without its factor V0/sqrt(rho). Without a `law` the labels are real and Z = 1.
    """
    row, h, xi = curve.row, curve.h, curve.xi
    density = normal_density(xi)
    mass, bend = curve.mass * density, curve.bend * density

    def dot(left: Array, right: Array) -> Array:
        product: Array = np.einsum("ij,ij->i", left, right)
        return product

    if law is None:
        mass_Z, bend_Z, from_law = mass, bend, np.zeros((5, len(row)))
    else:
        Z, Z1, Z2 = law(field.k[row, None] * xi, row)
        mass_Z, bend_Z, bend_Z1 = mass * Z, bend * Z, bend * Z1
        from_law = np.array(
            [dot(mass * Z1, h), bend_Z1.sum(1), dot(bend_Z1, xi), dot(bend, Z2), dot(bend_Z1, h)]
        )
    data_loss = dot(mass_Z, loss.value(curve.s)) if with_loss else np.full(len(row), np.nan)
    mass_Zh, bend_Zh, bend_Zx = mass_Z * h, bend_Z * h, bend_Z * xi
    sums = np.array(
        [
            bend_Z.sum(1),
            dot(mass_Zh, h),
            mass_Zh.sum(1),
            data_loss,
            mass_Z.sum(1),
            bend_Zx.sum(1),
            dot(bend_Zx, xi),
            bend_Zh.sum(1),
            dot(bend_Zh, xi),
            dot(bend_Zh, h),
            *from_law,
        ]
    )
    e1, e2, e0, data_loss, norm, gx, gxx, gh, ghx, ghh, e3, g1, g1x, g2, g1h = sum_by_row(
        sums, row, len(field.V)
    )

    V, sd, k = field.V, field.deviation, field.k
    to_V = V * np.array([(ghx - k * g1h) / sd, -2 * ghh, -g1h, -y * gh])
    to_Q = 0.5 * np.array([gxx - e1 - k * g1x, -2 * sd * ghx, -sd * g1x, -y * sd * gx])
    to_a = np.array([g1x - k * g2, -2 * sd * g1h, -sd * g2, -y * sd * g1])
    to_beta = y * np.array([gx - k * g1, -2 * sd * gh, -sd * g1, -y * sd * e1])
    de = np.stack([to_V, to_Q + 0.5 * field.beta * to_beta, to_a, to_beta], axis=1)
    return np.array([e1, e2, e3, y * e0]), de, data_loss, norm


@dataclass(frozen=True)
class Channel:
    """What the solver asks of a channel; the members are `BinaryChannel` and `LinearChannel`."""

    teacher: Any
    loss: Loss
    free_intercept: bool = False

    overlap_unknowns: ClassVar[int]
    """How many unknowns are overlaps; the rest is the intercept."""
    longest_steps: ClassVar[tuple[float, ...]]
    batch: ClassVar[int] = 1280
    """Points to solve together; this bounds the memory."""

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
    def unknowns(self) -> int:
        """Number of unknowns per point."""
        return self.overlap_unknowns + self.free_intercept

    @property
    def longest(self) -> Array:
        """Longest Newton step in each unknown."""
        return np.array(self.longest_steps[: self.unknowns])

    def hats(self, x: Array, level: int = 0, with_loss: bool = False) -> Hats:
        """Averages over labels and fields at the unknowns `x` (points, unknowns)."""
        if len(x) <= BLOCK:
            return self._hats(x, level, with_loss)
        # few points at a time, so that the arrays of nodes stay in the cache
        blocks = [
            vars(self._hats(x[i : i + BLOCK], level, with_loss)).values()
            for i in range(0, len(x), BLOCK)
        ]
        return Hats(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _hats(self, x: Array, level: int, with_loss: bool) -> Hats:
        raise NotImplementedError

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        """Unknowns (without the intercept) of given overlaps, and their derivatives by e."""
        raise NotImplementedError

    def start(self, V: Array) -> Array:
        """Where to start the solve, given a first guess of V."""
        raise NotImplementedError

    def collapsed(self, points: int) -> Array:
        """Where to start if there is no regular saddle point (see `COLLAPSED`)."""
        x = self.start(np.full(points, np.sqrt(COLLAPSED)))
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

    def test_errors(self, x: Array) -> Columns:
        k, V0, deviation, b = self._standardised(x)
        return {
            "generalisation_error": test_error(self.teacher, k, V0, b / deviation),
            "clean_error": test_error(self.teacher.clean, k, V0, b / deviation),
        }

    def errors(self, x: Array, overlaps: Overlaps) -> Columns:
        k, V0, deviation, b = self._standardised(x)
        training = training_error(
            self.teacher, self.loss, V=np.exp(x[:, 0]), deviation=deviation, k=k, V0=V0, intercept=b
        )
        return {**self.test_errors(x), "training_error": training}

    def scores(self, x: Array) -> Scores:
        k, V0, deviation, b = self._standardised(x)
        law = {"deviation": deviation, "intercept": b, "k": k, "V0": V0}
        return Scores.of(self.teacher, self.loss, V=np.exp(x[:, 0]), **law)

    @property
    def spared(self) -> int:
        return self.teacher.spared

    @cached_property
    def resting_intercept(self) -> float:
        """Best constant prediction :math:`b_0`; 0 without a free intercept."""
        return best_constant(self.loss, self.teacher) if self.free_intercept else 0.0

    @property
    def labels(self) -> tuple[int, ...]:
        """The labels to average over: one stands for both if nothing tells them apart."""
        return (1,) if self.teacher.symmetric and not self.free_intercept else (1, -1)

    def _hats(self, x: Array, level: int, with_loss: bool) -> Hats:
        rho = self.teacher.rho
        V, (k, V0, deviation, _) = np.exp(x[:, 0]), self._standardised(x)
        beta = x[:, 3] if self.free_intercept else np.zeros_like(V)
        parts = []
        for y in self.labels:
            mean = (self.loss.anchor - y * self.resting_intercept) - y * deviation * beta
            field = Field(V, mean, deviation, k, beta)
            breaks = _breaks(self.teacher.landmarks(y, V0), k)
            curve = proximal_curve(self.loss, field, breaks, level)

            def law(t: Array, row: Integers, y: int = y) -> Law:
                return self.teacher.label_law(y, t, V0[row, None])

            parts.append(averages(self.loss, curve, field, y, law, with_loss=with_loss))
        share = 2 if len(parts) == 1 else 1  # one label stands for both
        e, de, data_loss, norm = (share * sum(part) for part in zip(*parts, strict=True))
        if len(parts) == 1:
            e[3], de[3] = 0.0, 0.0
        de[:, 2] *= V0 / np.sqrt(rho)
        return Hats(e.T, np.moveaxis(de, -1, 0)[..., : self.unknowns], data_loss, norm)

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

    def _hats(self, x: Array, level: int, with_loss: bool) -> Hats:
        V, deviation = np.exp(x[:, 0]), np.exp(0.5 * x[:, 1])
        beta = x[:, 2] if self.free_intercept else np.zeros_like(V)
        field = Field(V, -deviation * beta, deviation, np.zeros_like(V), beta)
        curve = proximal_curve(self.loss, field, np.empty((len(V), 0)), level)
        e, de, data_loss, norm = averages(self.loss, curve, field, 1, None, with_loss=with_loss)
        e[2], de[2] = e[0], de[0]
        columns = [0, 1, 3][: self.unknowns]
        return Hats(e.T, np.moveaxis(de, -1, 0)[..., columns], data_loss, norm)

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


def _breaks(marks: Array, k: Array) -> Array:
    """Cuts, in deviations of the shortfall, where the label law bends more than the Gaussian."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cuts = -marks / k[:, None]
    sharp = np.ptp(cuts, axis=1, keepdims=True) < REACH * 2 if cuts.size else True
    cuts = np.where(sharp & np.isfinite(cuts), cuts, REACH)
    return cuts[:, (np.abs(cuts) < REACH).any(0)]
