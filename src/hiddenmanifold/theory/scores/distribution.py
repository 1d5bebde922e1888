r"""The joint distribution of scores and labels, and the observables that are averages over it.

Along its label a new prediction is :math:`y f = y b + \sqrt Q\,\xi`, and the label has probability
:math:`Z_y(x)` (`teachers`) where the teacher's field is x = slope ξ on average. Every observable is
an integral over that law, on panels that are halved until it settles; where it does not, it is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.losses import Loss
from hiddenmanifold.losses.predictors import Predictor
from hiddenmanifold.numerics.panels import FAR, Panels, refine, sum_by_row
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.teachers import LabelLaw, Teacher, binary
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED, edges_along
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.points import HUGE
from hiddenmanifold.theory.scores.errors_of_labels import CONSTANT, Predictions, misclassified
from hiddenmanifold.weights import EQUAL, WeightLaw

BLOCK = 256
"""Points whose nodes are handled together."""

Observed = Callable[["Scores"], Array]
"""From the law of scores at each point to the value of an observable, a number or a vector."""


@dataclass(frozen=True)
class Scores:
    r"""Law of predictions and labels at each point, on new and on training samples.

    Linear labels are known by their residual: `deviation` is its own, without what noise has more
    than its least variance, and the slope plays no role.

    Attributes
    ----------
    teacher, loss : Teacher, ConvexLoss
        The teacher and the loss of the requested model.
    fitted : ConvexLoss
        The loss whose proximal map, of width `V`, training samples obey: another in some limits.
    scale : float
        The predictions are this times those of the fitted loss.
    V, deviation, intercept, slope, V0 : arrays (points,)
        The `Predictions` of the fitted loss.
    """

    teacher: Teacher
    loss: Any
    fitted: Any
    scale: float
    V: Array
    deviation: Array
    intercept: Array
    slope: Array
    V0: Array
    prediction: Predictor | None = None
    """The function of the score by which labels are predicted, unless it is the usual one."""
    residual: bool = False
    """Whether labels are linear, and known by their residual."""
    counts: Copies = ONCE
    """How many times training samples count, beside the weights of their classes."""
    weights: WeightLaw = EQUAL

    @classmethod
    def of(cls, channel: Channel, x: Array) -> Scores:
        """The law of a loss's own predictions; a constant one is independent of the field."""
        teacher, loss, at = channel.teacher, channel.loss, Predictions.of(channel, x)
        constant = at.deviation < CONSTANT
        slope, V0 = np.where(constant, 0.0, at.slope), np.where(constant, teacher.rho, at.V0)
        return cls(
            teacher,
            loss,
            loss,
            1.0,
            at.V,
            at.deviation,
            at.intercept,
            slope,
            V0,
            channel.prediction,
            isinstance(channel, LinearChannel),
            channel.counts,
            channel.weights,
        )

    def __getitem__(self, some: slice | Integers | Booleans) -> Scores:
        arrays = ("V", "deviation", "intercept", "slope", "V0")
        return replace(self, **{name: getattr(self, name)[some] for name in arrays})

    def __len__(self) -> int:
        return len(self.V)

    @property
    def spread(self) -> Array:
        """Standard deviation of the prediction (of the residual, for real labels)."""
        return self.scale * self.deviation

    @property
    def centre(self) -> Array:
        """Mean of the prediction."""
        return self.scale * self.intercept

    @cached_property
    def labels(self) -> tuple[tuple[int, float], ...]:
        """The labels to sum over, and how many labels each represents."""
        alike = binary(self.teacher).symmetric and not np.any(self.intercept)
        return ((1, 2.0),) if alike else ((1, 1.0), (-1, 1.0))

    @property
    def label_law(self) -> LabelLaw:
        """The law of a label given the teacher's field."""
        return binary(self.teacher)

    def edges(self, y: int, *marks: Array) -> Array:
        """Panel boundaries in ξ along the label y: where its law bends, and further marks."""
        return edges_along(self.label_law, y, self.slope, self.V0, FAR, *marks)

    def law(self, y: int, panels: Panels, sign: int = 1) -> Array:
        """Probability of the label y at the nodes, which run along it (against it if -1)."""
        at = panels.row[:, None]
        return binary(self.teacher).label_weight(
            y, sign * self.slope[at] * panels.nodes, self.V0[at]
        )

    def averages(
        self, loss: Loss, halvings: int, *functions: Callable[[Array], Array]
    ) -> tuple[Array, Array]:
        """Means over new samples of functions of the loss's shortfall, and of their absolute value.

        NaN where the far end of the normal law still counts or a function overflows there, as
        losses do that grow too fast. Panels are cut where the loss bends.
        """
        total, size, beyond = np.zeros((3, len(functions), len(self)))
        for y, share in self.labels:
            mean = loss.anchor - y * self.centre
            cuts = (mean[:, None] - loss.knots[0]) / self.spread[:, None]
            panels = Panels.between(self.edges(y, cuts), (ORDER, halvings))
            row, law = panels.row, share * self.law(y, panels)
            first, last = (np.searchsorted(row, np.arange(len(self)), s) for s in ("left", "right"))
            s = mean[row, None] - self.spread[row, None] * panels.nodes
            for i, function in enumerate(functions):
                values = law * function(s)
                total[i] += panels.sum(values)
                size[i] += panels.sum(np.abs(values))
                for at in ((first, 0), (last - 1, -1)):
                    beyond[i] += normal_density(panels.nodes[at]) * np.abs(values[at])
        total[~(beyond <= SETTLED * size) | ~np.isfinite(size)] = np.nan
        return total, size


def observe(observed: Observed, scores: Scores) -> Array:
    """The values of an observable, few points at a time."""
    with np.errstate(all="ignore"):  # what is not finite cuts no panel, or is found in the result
        parts = [observed(scores[i : i + BLOCK]) for i in range(0, len(scores), BLOCK)]
    return np.concatenate(parts)


def settled(function: Callable[[Scores, int], tuple[Array, Array]], scores: Scores) -> Array:
    """A function of the law and of halvings, as values and accepted changes, when it settles."""
    return refine(lambda some, h: function(scores[some], h), (len(scores),), range(FINEST + 1))


def test_loss(scores: Scores) -> Array:
    """Mean loss of new samples with labels ±1."""
    if scores.scale >= HUGE:  # without bound in the scores, and so in the loss where they err
        error = MarginLaw((0.0,), training=False)(scores)[:, 0]
        return np.where(error > 0, np.inf, error)

    def mean(some: Scores, halvings: int) -> tuple[Array, Array]:
        (value,), (size,) = some.averages(some.loss, halvings, some.loss.value)
        return value, SETTLED * size

    return settled(mean, scores)


@lru_cache(maxsize=1)
def _below() -> Array:
    """Share of node k that lies below node j, for interpolants of masses at the nodes of a panel.

    If the masses m are nodal values times Gauss–Legendre weights, the integral up to node j is
    ``(_below() @ m)[j]``.
    """
    x, _ = legendre.leggauss(ORDER)
    P = legendre.legvander(x, ORDER)
    integrals = 0.5 * (P[:, 1:] - np.concatenate([-np.ones((ORDER, 1)), P[:, : ORDER - 1]], axis=1))
    share: Array = integrals @ P[:, :ORDER].T
    return share


def auc(scores: Scores) -> Array:
    """Probability that a random positive scores above a random negative; ties count one half."""

    def area(some: Scores, halvings: int) -> tuple[Array, Array]:
        edges = np.sort(np.concatenate([some.edges(1), -some.edges(-1)], axis=1), axis=1)
        panels = Panels.between(edges, (ORDER, halvings))

        def by_row(values: Array) -> Array:
            return sum_by_row(values, panels.row, panels.rows)

        plus, minus = (panels.weights * some.law(y, panels, y) for y in (1, -1))
        plus, minus = (m / by_row(m.sum(1))[panels.row, None] for m in (plus, minus))
        # negatives below each node: in this part of its panel, in earlier parts of the row
        parts = minus.reshape(-1, ORDER)
        row = np.repeat(panels.row, len(parts) // len(minus))
        place = np.arange(len(row)) - np.searchsorted(row, row)
        table = np.zeros((panels.rows, place.max() + 1))
        table[row, place] = parts.sum(1)
        earlier = (np.cumsum(table, axis=1) - table)[row, place]
        below = parts @ _below().T + earlier[:, None]
        value = by_row((plus * below.reshape(plus.shape)).sum(1))
        return value, np.full(len(value), SETTLED)

    return settled(area, scores)


@dataclass(frozen=True)
class MarginLaw:
    """Probability that the margin y f of a new sample, or a training one, is at most each value.

    It is an array (points, values).
    """

    at: tuple[float, ...]
    training: bool

    def __call__(self, scores: Scores) -> Array:
        return np.stack([self._below(scores, value) for value in self.at], axis=-1)

    def _below(self, scores: Scores, most: float) -> Array:
        margin = np.nextafter(most / scores.scale, np.inf)  # a mass at the value is counted
        push, counts = np.zeros(len(scores)), ONCE
        if self.training:
            anchor, counts = scores.fitted.anchor, scores.counts
            short = np.array([np.nextafter(anchor - margin, -np.inf)])
            push = scores.V * float(scores.fitted.derivative(short)[0])
        below = np.zeros(len(scores))
        for weight, probability in zip(*counts, strict=True):
            fields = {y: margin - weight * scores.weights.of_class(y) * push for y in (1, -1)}
            cuts = {y: (f - y * scores.intercept) / scores.deviation for y, f in fields.items()}
            wrong = misclassified(binary(scores.teacher), scores.slope, scores.V0, cuts)
            below += probability * wrong
        return below
