r"""The labels' side of the saddle point: Gaussian averages over the proximal map.

For a label `y` let :math:`\tilde\omega = y\omega \sim N(yb, Q)` be the field along the label and
:math:`u = a - \tilde\omega` its shortfall (`a` the loss's anchor), with proximal point `s`. Three
numbers per point drive the saddle point (see ``docs/theory.md``):

.. math:: e_1 = E[g], \quad e_2 = E[h^2], \quad e_3 = E[h\,\partial \log Z], \qquad
          h = \ell'(s), \quad g = \frac{\ell''(s)}{1 + V\ell''(s)},

plus :math:`e_0 = E[y h]`, which a free intercept sets to zero. Derivatives with respect to the
unknowns come from the same nodes, by :math:`\partial_V h = -h g` and integration by parts: no
third derivative of the loss is needed.

Every kind of labels (`kinds`) is described by unknowns
:math:`(\log V, \log S^2[, \text{tilt}][, \beta])`, with `S` the deviation of the prediction (of the
residual, for linear labels) and the intercept :math:`b = b_0 + \beta` in units of S, or of the
labels where S may vanish but b does not tend to :math:`b_0`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array
from hiddenmanifold.losses.predictors import Predictor
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.theory.labels_side.averages import (
    Branch,
    ChannelAverages,
    SquareMoments,
    square_averages,
)
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.weights import EQUAL, WeightLaw

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


@dataclass(frozen=True)
class Channel:
    """Labels of some kind, and a loss; a subclass for each kind of labels.

    Parameters
    ----------
    teacher : Teacher
        The rule of the labels.
    loss : ConvexLoss
        The loss that is minimised.
    free_intercept : bool
        Whether the predictor has an intercept that symmetry does not leave at zero.
    closed_form : bool
        Whether averages are those of the square loss in closed form, instead of sums over branches.
        The intercept is then no unknown.
    prediction : Predictor, optional
        The function of the score by which labels are predicted, unless it is the usual one: the
        sign for labels ±1, the score itself for others.
    copies : Copies
        How often the fit draws each sample.
    weights : WeightLaw
        The weight of each sample, which it has in every fit.
    """

    teacher: Any
    loss: Any
    free_intercept: bool = False
    closed_form: bool = False
    prediction: Predictor | None = None
    copies: Copies = ONCE
    weights: WeightLaw = EQUAL

    overlap_unknowns: ClassVar[int]
    """Number of unknowns that are overlaps; the intercept may be one more."""
    longest_steps: ClassVar[tuple[float, ...]]
    """Longest Newton step in each unknown."""

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
    def has_branches(self) -> bool:
        """Whether points are sums over few branches, and can be solved without cancellation."""
        return True

    @cached_property
    def counts(self) -> Copies:
        """How many times a sample counts in a fit, if its class does not matter."""
        pairs = [
            (a * b, p * q)
            for a, p in zip(*self.copies, strict=True)
            for b, q in zip(*self.weights.values, strict=True)
        ]
        return Copies(*zip(*pairs, strict=True))

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

    @property
    def balanced(self) -> bool:
        """Whether an intercept is an unknown, and both labels ±1 weigh the same."""
        return False

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

        In closed form it is zero, whichever constant is best.
        """
        if not self.free_intercept:
            return None
        return 0.0 if self.closed_form else self.best_constant

    @property
    def best_constant(self) -> float:
        """The constant prediction of least mean loss, or a number near it."""
        raise NotImplementedError

    @property
    def label_noise(self) -> float:
        """Mean variance of a label given the field."""
        raise NotImplementedError

    def intercept_unit(self, x: Array) -> Array:
        """The unit in which the intercept is unknown: the deviation S."""
        unit: Array = np.exp(0.5 * x[:, 1])
        return unit

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        """Averages over labels, fields and weights at the unknowns `x` (points, unknowns).

        A sample that is drawn twice has the weight two.
        """
        if self.counts == ONCE:
            return self.averages_of_one(x, level, with_loss)
        shapes = (len(x), 4), (len(x), 4, self.unknowns), len(x), len(x)
        total = ChannelAverages(*(np.zeros(shape) for shape in shapes))
        for weight, probability in zip(*self.counts, strict=True):
            if weight == 0.0:
                total.norm[:] += probability
                continue
            part = self.averages_of_one(widened(x, weight), level, with_loss).weighted(weight)
            for name, values in vars(part).items():
                getattr(total, name)[:] += probability * values
        return total

    def averages_of_one(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        """The averages if every sample counts once, or as its class does."""
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
        return self.constant_prediction + self.intercept_unit(x) * x[:, -1]


def widened(x: Array, weight: float) -> Array:
    """The unknowns at which the proximal map is that of samples of a weight."""
    wider = x.copy()
    wider[:, 0] += np.log(weight)
    return wider


@dataclass(frozen=True)
class FieldChannel(Channel):
    r"""Labels given the teacher's field, in the unknowns (log V, log Q, tilt[, β]).

    :math:`M = \sqrt{\rho Q}\tanh(\text{tilt})`, so that :math:`V_0 = \rho/\cosh^2(\text{tilt})`
    keeps its digits when the teacher is almost learned.
    """

    overlap_unknowns = 3
    longest_steps = (LONGEST_STEP, LONGEST_STEP, 1.0, LONGEST_STEP)

    @property
    def label_moments(self) -> tuple[float, float, float, float]:
        r""":math:`E y`, :math:`E y^2`, the variance of y, and :math:`c = E[y\nu]/\rho`.

        A square loss sees nothing else of the labels.
        """
        raise NotImplementedError

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        rho = self.teacher.rho
        return np.sqrt(rho) * np.tanh(x[:, 2]), rho / np.cosh(x[:, 2]) ** 2

    def square_moments(self, x: Array) -> SquareMoments:
        r""":math:`c = E[\nu y]/\rho` and :math:`r = E(y-b)^2 + Q - 2Mc`, with :math:`b = E y`."""
        mean, second, variance, c = self.label_moments
        rho, Q = self.teacher.rho, np.exp(x[:, 1])
        M = np.sqrt(rho * Q) * np.tanh(x[:, 2])
        dM = np.sqrt(rho * Q) / np.cosh(x[:, 2]) ** 2
        size = variance if self.free_intercept else second
        dr = np.array([Q - M * c, -2 * c * dM])
        b = np.full(len(x), mean if self.free_intercept else 0.0)
        return SquareMoments(b, size + Q - 2 * M * c, dr, c)

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
