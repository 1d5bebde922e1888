r"""The labels' side of the saddle point: Gaussian averages over the proximal map.

For a label `y` let :math:`\tilde\omega = y\omega \sim N(yb, Q)` be the field along the label and
:math:`u = a - \tilde\omega` its shortfall (`a` the loss's anchor), with proximal point `s`. Three
numbers per point drive the saddle point (see ``docs/theory.md``):

.. math:: e_1 = E[g], \quad e_2 = E[h^2], \quad e_3 = E[h\,\partial \log Z], \qquad
          h = \ell'(s), \quad g = \frac{\ell''(s)}{1 + V\ell''(s)},

plus :math:`e_0 = E[y h]`, which a free intercept sets to zero. Derivatives with respect to the
unknowns come from the same nodes, by :math:`\partial_V h = -h g` and integration by parts: no
third derivative of the loss is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import Teacher
from hiddenmanifold.theory.labels_side.averages import Branch, ChannelAverages
from hiddenmanifold.theory.labels_side.labels import COLLAPSED, Labels, labels_of
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.theory.labels_side.square_loss import square_averages
from hiddenmanifold.theory.scores.distribution import CONSTANT, Scores
from hiddenmanifold.theory.scores.errors_of_labels import Predictions

if TYPE_CHECKING:
    from hiddenmanifold.theory.features_side import Overlaps

BATCHES = {"numpy": 1280, "compiled": 5120, "closed form": 8192}
"""Points to solve together, which bounds the memory: NumPy keeps all nodes of a batch, compiled
code none, and its calls are over sooner."""


@dataclass(frozen=True)
class Channel:
    """Labels and a loss.

    Parameters
    ----------
    labels : Labels
        The kind of labels, with their teacher.
    loss : Loss
        What is minimised.
    free_intercept : bool
        Whether the predictor has an intercept that symmetry does not leave at zero.
    closed_form : bool
        Whether averages are those of the square loss in closed form, instead of sums over branches.
        The intercept is then no unknown.
    """

    labels: Labels
    loss: Loss
    free_intercept: bool = False
    closed_form: bool = False

    @classmethod
    def of(cls, teacher: Teacher, loss: Loss, free_intercept: bool) -> Channel:
        """The channel of a teacher and a loss, in closed form if there is one."""
        labels = labels_of(teacher)
        free = free_intercept and not labels.centred(loss)
        return cls(labels, loss, free, closed_form=loss.quadratic)

    @property
    def rho(self) -> float:
        """Variance of the teacher's field."""
        return float(self.labels.teacher.rho)

    @property
    def batch(self) -> int:
        """Points to solve together."""
        if self.closed_form:
            return BATCHES["closed form"]
        return BATCHES[compiled.engine() if self.labels.compiled else "numpy"]

    @property
    def overlap_unknowns(self) -> int:
        """How many unknowns are overlaps; the other one is the intercept."""
        return self.labels.overlap_unknowns

    @property
    def unknowns(self) -> int:
        """Number of unknowns per point."""
        return self.overlap_unknowns + (self.free_intercept and not self.closed_form)

    @property
    def longest(self) -> Array:
        """Longest Newton step in each unknown."""
        return np.array(self.labels.longest_steps[: self.unknowns])

    @property
    def skipped_levels(self) -> int:
        """How many of the finest quadratures to do without."""
        return self.labels.skipped_levels

    @property
    def cost(self) -> int:
        """How many times longer than usual an evaluation takes: twice for each skipped level."""
        return int(2**self.skipped_levels)

    @cached_property
    def constant_prediction(self) -> float | None:
        """Where the intercept is measured from, or None if it is not free.

        This is the best constant prediction :math:`b_0`, to which the intercept tends when Q
        vanishes; in closed form it is zero.
        """
        if not self.free_intercept:
            return None
        return 0.0 if self.closed_form else self.labels.constant_prediction(self.loss)

    def _field(self, x: Array) -> Field:
        """The law of predictions at the unknowns, around zero."""
        slope, V0 = self.labels.teacher_field(x)
        beta = zero = np.zeros(len(x))
        deviation = np.exp(0.5 * x[:, 1])
        if self.free_intercept:
            beta = self.intercept(x) / deviation if self.closed_form else x[:, -1]
        return Field(np.exp(x[:, 0]), zero, deviation, slope, V0, beta)

    def averages(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        """Averages over labels and fields at the unknowns `x` (points, unknowns)."""
        if self.closed_form:
            return square_averages(
                np.exp(x[:, 0]), self.labels.square_moments(x, self.free_intercept)
            )
        field = self._field(x)
        branches = self.labels.branches(field, self.loss, self.constant_prediction)
        first, *others = [branch.averages(self.loss, level, with_loss) for branch in branches]
        found = first.add(others)
        return self.labels.in_unknowns(found, field, self.unknowns)

    def branches(self, x: Array) -> list[Branch]:
        """The labels at the unknowns `x`, for averages that `averages` does not have."""
        return self.labels.branches(self._field(x), self.loss, self.constant_prediction)

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        """Unknowns (without the intercept) of given overlaps, and their derivatives by e."""
        return self.labels.coordinates(overlaps)

    def start(self, V: Array) -> Array:
        """Where to start the solve, given a first guess of V."""
        x = np.zeros((len(V), self.unknowns))
        x[:, : self.overlap_unknowns] = self.labels.start(V)
        return x

    def collapsed(self, alpha: Array) -> Array:
        """Where to start if there is no regular saddle point (see `COLLAPSED`)."""
        x = self.start(np.sqrt(COLLAPSED) / np.maximum(alpha, 1.0))
        x[:, 1] = np.log(COLLAPSED)
        return x

    def intercept(self, x: Array) -> Array:
        """The intercept b at the unknowns `x`."""
        if self.closed_form:
            return self.labels.square_moments(x, self.free_intercept).intercept
        if self.constant_prediction is None:
            return np.zeros(len(x))
        return self.constant_prediction + np.exp(0.5 * x[:, 1]) * x[:, -1]

    def predictions(self, x: Array) -> Predictions:
        """The law of predictions at the unknowns `x`."""
        slope, V0 = self.labels.teacher_field(x)
        return Predictions(np.exp(x[:, 0]), np.exp(0.5 * x[:, 1]), self.intercept(x), slope, V0)

    def test_errors(self, x: Array) -> Columns:
        """Test errors against noisy and clean labels, as functions of the unknowns alone."""
        return self.labels.test_errors(x, self._guessing(self.predictions(x)))

    def errors(self, x: Array, overlaps: Overlaps) -> Columns:
        """The same with all digits that the overlaps have, and errors on the training set."""
        at = self._guessing(self.predictions(x))
        return self.labels.errors(x, at, loss=self.loss, overlaps=overlaps)

    def scores(self, x: Array) -> Scores:
        """Law of predictions and labels, as a function of the unknowns alone."""
        return Scores.of(self.labels.teacher, self.loss, self.predictions(x))

    def _guessing(self, at: Predictions) -> Predictions:
        """Predictions of which those that are zero everywhere guess the label like a coin."""
        regression = self.labels.teacher.task is Task.REGRESSION
        if regression or len(self.loss.slopes_at_zero) < 2 or self.constant_prediction:
            return at
        held = at.deviation < CONSTANT  # by the corner of the loss: of w no direction is left
        return replace(
            at,
            V=np.where(held, 0.0, at.V),
            intercept=np.where(held, 0.0, at.intercept),
            slope=np.where(held, 0.0, at.slope),
            V0=np.where(held, self.rho, at.V0),
        )
