r"""The limits :math:`\lambda \to 0^+` and :math:`\lambda \to \infty`, and infinite ratios.

A limit is computed where the distance from it is far below rounding: :math:`\lambda = 10^{-60}`
for :math:`0^+`, a ratio :math:`10^{40}` for infinity. The unknowns are logarithms and every overlap
is a sum of positive terms, so this costs no precision, and the same equations serve all limits.

The behaviour that is not analytic in :math:`\lambda` is known beforehand. With enough features
every training sample reaches the least value of its loss, and :math:`0^+` selects the shortest such
`w`: it solves :math:`y = f` (losses with one minimum) or :math:`yf \ge 1` (hinges), whatever the
loss and its weights, so the square or the hinge loss is solved in its place. A loss that only
approaches its least value, exponentially as the logistic one, lets `w` grow without bound in the
direction of the latter, that of the largest margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import cast

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import CERTIFICATES, Status
from hiddenmanifold.losses import ConvexLoss, Hinge, LabelLoss, Loss, Square, of_shortfall
from hiddenmanifold.losses.of_label import Interpolation
from hiddenmanifold.model import Model
from hiddenmanifold.teachers import PointTeacher, real
from hiddenmanifold.theory.points import HUGE, Limit, Points
from hiddenmanifold.theory.separability.line import Line

TINY = 1e-60
"""Regularisation that represents the limit 0⁺."""
NEGLIGIBLE = 1e-18
"""In a limit, a number below this is zero, and a number above its inverse is infinite."""
POWERS = {"Q": 2, "overlap": 2, "q_s": 2, "M": 1, "m_s": 1, "intercept": 1}
"""Overlaps that follow the length of w, and how."""
SHRINKING = {"Q": 2, "overlap": 2, "q_s": 2, "q_w": 2, "M": 1, "m_s": 1, "V": 1, "V_s": 1, "V_w": 1}
"""Quantities that fall like a power of 1/λ when λ is huge, and that power."""
FLAT = 1e-12
"""Curvature of a loss at its minimum that counts as none."""
ON_THE_LINE = 1e-9
"""Relative distance from a threshold that cannot be distinguished from zero."""


class Phase(Enum):
    """State of the training samples at the minimum, which decides the loss to solve with."""

    GENERIC = "own loss"
    INTERPOLATING = "every sample at the one minimum of its loss"
    SEPARATED = "every sample beyond its margin"
    DIVERGING = "every sample on its side, and w grows without bound"
    THRESHOLD = "between two phases"
    ESCAPING = "some labels are fitted ever better as w grows without bound"
    UNKNOWN = "every sample fitted, in a way that no other loss stands in for"
    UNDECIDED = "the threshold could not be computed"


@dataclass(frozen=True)
class Part:
    """Points of a batch whose limits follow from one stand-in model at finite parameters."""

    index: Integers
    model: Model
    points: Points
    loss: ConvexLoss
    """The loss of the requested model; its stand-in may have another."""
    phase: Phase = Phase.GENERIC
    scale: float = 1.0
    """Ratio of the model's predictions to those of the stand-in."""
    least: float = 0.0
    """Least value of the model's loss; that of a stand-in is zero."""
    shrinkage: Array | float = 1.0
    """Ratio of w and its responses to those of the stand-in."""

    def finished(self, found: Columns) -> Columns:
        """Results of the stand-in as those of the limit; NaN where there is no answer."""
        fitted = self.phase in STAND_INS
        if fitted:
            found["training_loss"] = np.full_like(found["training_loss"], self.least)
        norm = np.sqrt(found["q_w"])
        powers = {name: power for name, power in POWERS.items() if name in found}
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, power in powers.items():
                found[f"{name}_normalised"] = found[name] / norm**power
            if self.model.task is Task.CLASSIFICATION:
                found["margin"] = 1.0 / norm if fitted else np.full_like(norm, np.nan)
            for name, power in (*powers.items(), ("q_w", 2)):
                values = found[name]
                found[name] = np.where(values == 0.0, 0.0, values * self.scale**power)
        for name, power in SHRINKING.items():
            if name in found:
                found[name] = found[name] * self.shrinkage**power
        if self.phase in REFUSED:
            found["status"][:] = REFUSED[self.phase]
        failed, (low, high) = found["status"] != Status.CONVERGED, self._negligible
        for name in set(found).difference(CERTIFICATES):
            found[name][failed] = np.nan
            if low.any():
                values = found[name].T  # points come last, also of an observable that is a vector
                size = np.abs(values)
                values[size < low] = 0.0
                values[size * high > 1.0] *= np.inf
        return found

    @property
    def _negligible(self) -> tuple[Array, Array]:
        """Thresholds at limit points: values below the first are zero, above 1/the second infinite.

        They are larger if λ is the limit than if a ratio is, and depend on the units of real
        labels. With infinite data some errors vanish only like n^(-2/3); with finite data, a large
        λ leaves small overlaps.
        """
        points, teacher = self.points, self.model.teacher
        far = np.where(points.alpha > 1.0, 1e16, 1e10) / HUGE
        far = np.where(points.has(Limit.RATIO), far, 0.0)
        at_end = points.has(Limit.VANISHING | Limit.UNBOUNDED)
        unit = teacher.rho
        if self.model.task is Task.REGRESSION and isinstance(self.model.loss, Loss):
            moments = real(teacher).moments
            unit = moments.second if moments.second < np.inf else moments.explained
        low, high = (np.where(at_end, NEGLIGIBLE * min(1.0, u), far) for u in (unit, 1.0 / unit))
        return low, high


def parts(model: Model, points: Points, drawn: float = 1.0) -> Iterator[Part]:
    """Split a batch into parts of one phase, each with its stand-in model.

    Only a part of the samples may be `drawn`.
    """
    vanishing = points.has(Limit.VANISHING)
    positive, zero = np.flatnonzero(~vanishing), np.flatnonzero(vanishing)
    if positive.size:
        some = points[positive]
        # beyond, w falls like n/λ: the numbers would underflow long before the last finite λ
        samples = np.maximum(some.alpha, some.alpha / some.gamma)
        ratio = np.where(some.has(Limit.RATIO), 1.0, np.maximum(samples, 1.0))
        lam = np.minimum(some.lam, HUGE * ratio)
        shrinkage = np.where(some.has(Limit.UNBOUNDED), 1.0, lam / some.lam)
        yield Part(positive, model, some.standing_in(lam), model.loss, shrinkage=shrinkage)
    if not zero.size:
        return
    fitted, scale = fitted_phase(model)
    distance = _distance(model, points[zero], fitted, drawn)
    choices = (
        (distance > ON_THE_LINE, fitted),
        (distance < -ON_THE_LINE, Phase.GENERIC),
        (np.abs(distance) <= ON_THE_LINE, Phase.THRESHOLD),
        (np.isnan(distance), Phase.UNDECIDED),
    )
    for chosen, phase in choices:
        if chosen.any():
            index, some = zero[chosen], points[zero[chosen]]
            if loss := STAND_INS.get(phase):
                if isinstance(model.loss, LabelLoss):
                    loss = Interpolation(model.loss)
                some = some.standing_in(TINY, Limit.FITTED)
                stand_in = model.with_loss(loss, model.prediction).unweighted
                yield Part(index, stand_in, some, model.loss, phase, scale, least_loss(model))
            else:  # what is refused is not worth a search
                some = some.standing_in(1.0 if phase in REFUSED else TINY)
                yield Part(index, model, some, model.loss, phase)


def fitted_phase(model: Model) -> tuple[Phase, float]:
    """The phase of a model with enough features for its samples, and the margin all then have."""
    if isinstance(model.loss, LabelLoss):
        return _fitted_labels(model.loss, cast("PointTeacher", model.teacher)), 1.0
    loss = of_shortfall(model.loss)
    low, high = loss.minimisers
    if high == -np.inf:
        return (Phase.DIVERGING if _exponential(loss) else Phase.UNKNOWN), np.inf
    margin = loss.anchor - high
    if model.task is Task.REGRESSION:
        if low == high:
            finite = real(model.teacher).moments.second < np.inf
            return (Phase.INTERPOLATING if low == 0 and finite else Phase.UNKNOWN), 1.0
    elif margin > 0 and low in (-np.inf, high):
        return (Phase.SEPARATED if low == -np.inf else Phase.INTERPOLATING), margin
    return Phase.GENERIC, 1.0


def _fitted_labels(loss: LabelLoss, teacher: PointTeacher) -> Phase:
    """The phase of labels that can all be fitted: each by its own minimiser, if that is finite.

    A minimum without curvature may be flat, and then no prediction is singled out.
    """
    y, _ = teacher.points(2)
    best = loss.minimiser(y)
    if not np.isfinite(best).all():
        return Phase.ESCAPING
    sharp = loss.second_derivative(y, best) > FLAT
    return Phase.INTERPOLATING if sharp.all() else Phase.UNKNOWN


def least_loss(model: Model) -> float:
    """The mean of the least loss of each label, times its weight."""
    if isinstance(model.loss, LabelLoss):
        y, _, table = cast("PointTeacher", model.teacher).table(3)
        return model.mean_weight * float(table.sum(1) @ model.loss.least(y))
    return model.mean_weight * of_shortfall(model.loss).least


def _exponential(loss: Loss) -> bool:
    """Whether the slope decays exponentially, or faster, as the shortfall goes to minus infinity.

    When t doubles, so does then the logarithm of the decay from t to 2t; powers keep theirs.
    """
    t = 20.0 * (loss.scale or 1.0) * np.exp2(-np.arange(60.0))
    positive = loss.derivative(-4.0 * t) > 0  # where it does not underflow
    if not positive.any():
        return False
    slopes = np.log(loss.derivative(-t[np.argmax(positive)] * np.array([1.0, 2.0, 4.0])))
    return bool(slopes[1] - slopes[2] > 1.5 * (slopes[0] - slopes[1]))


def _distance(model: Model, points: Points, fitted: Phase, drawn: float) -> Array:
    """Logarithm of the number of features over that at the threshold; -inf if there is none."""
    visible, regression = model.features.visible(points.gamma), model.task is Task.REGRESSION
    with np.errstate(divide="ignore"):
        available: Array = np.log(visible.rank / (points.alpha * drawn))
        if fitted is Phase.INTERPOLATING or (regression and fitted is Phase.UNKNOWN):
            return available
        if fitted is Phase.GENERIC or (regression and fitted is not Phase.ESCAPING):
            return np.full_like(available, -np.inf)
        needed = Line.of(model).direction(visible.fraction, visible.hidden).value
        return available - np.log(needed)


STAND_INS: dict[Phase, ConvexLoss] = {
    Phase.INTERPOLATING: Square(),
    Phase.SEPARATED: Hinge(),
    Phase.DIVERGING: Hinge(),
}
"""The loss that selects the shortest solution of a phase in which every sample is fitted."""
REFUSED = {
    Phase.THRESHOLD: Status.THRESHOLD,
    Phase.UNKNOWN: Status.NO_LIMIT,
    Phase.ESCAPING: Status.NO_LIMIT,
    Phase.UNDECIDED: Status.QUADRATURE,
}
"""Phases that have no answer, and the status that reports it."""
