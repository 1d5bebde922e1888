"""Observables of a fit, computed from its scores, beyond the rate of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import LabelLoss, of_shortfall
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.logistic_line import logistic_line
from hiddenmanifold.teachers import binary


@dataclass(frozen=True)
class Scored:
    """Scores f and labels y of fresh and of training samples, and what is known of their fit.

    `intercept` is the mean of f, `Q` its variance and `M` its covariance with the teacher's field,
    of the Gaussian-equivalent features. `nu` are the teacher's fields of the fresh samples.
    """

    model: Model
    f: Array
    y: Array
    f_train: Array
    y_train: Array
    intercept: float
    Q: float
    M: float
    nu: Array = field(default_factory=lambda: np.empty(0))

    @property
    def predicted(self) -> Array:
        """The predictions of the fresh labels."""
        with np.errstate(over="ignore"):
            return self.model.prediction(self.f)


Measure = Callable[[Scored], float | Array]
"""From the scores of a fit to the value of an observable, a number or a vector."""


def test_loss(scored: Scored) -> float:
    """Mean loss."""
    loss, y, f = scored.model.loss, scored.y, scored.f
    if isinstance(loss, LabelLoss):
        with np.errstate(over="ignore"):
            return float(loss.value(y, f).mean())
    return float(of_shortfall(loss).value(loss.shortfall(scored.model.task, y, f)).mean())


def deviance(scored: Scored) -> float:
    """Twice the mean of the loss above the least loss of each label."""
    loss = scored.model.loss
    if isinstance(loss, LabelLoss):
        above = loss.of_labels(scored.y).value(-scored.f)
        return 2.0 * float(above.mean())
    return 2.0 * (test_loss(scored) - of_shortfall(loss).least)


def mean_absolute_error(scored: Scored) -> float:
    """Mean distance of the prediction from the label."""
    return float(np.abs(scored.y - scored.predicted).mean())


def r2(scored: Scored) -> float:
    """One minus the mean square error of the prediction over the variance of the labels.

    Labels ±1 are predicted by probabilities. NaN if all labels are equal.
    """
    variance = float(scored.y.var())
    if scored.model.task is Task.CLASSIFICATION:
        error = 4.0 * brier_score(scored)  # of labels 0 and 1, whose variance is a quarter
    else:
        with np.errstate(over="ignore"):
            error = float(np.square(scored.y - scored.predicted).mean())
    return 1.0 - error / variance if variance > 0 else np.nan


def coverage(scored: Scored) -> float:
    """Fraction of the labels that are at most the prediction."""
    return float((scored.y <= scored.predicted).mean())


def auc(scored: Scored) -> float:
    """Fraction of pairs whose positive scores above their negative; NaN if there is one class."""
    from scipy import stats  # slow to import, and not asked for by the theory

    positive = scored.y > 0
    count, others = int(positive.sum()), int((~positive).sum())
    if not count or not others:
        return np.nan
    above = stats.rankdata(scored.f)[positive].sum() - 0.5 * count * (count + 1)
    return float(above / (count * others))


def calibration_error(scored: Scored) -> float:
    """Mean distance of the logistic function of f from the probability of +1 given f.

    That probability is the one of a teacher's field which is normal given f, as it is for large d.
    """
    teacher = binary(scored.model.teacher)
    slope = scored.M / scored.Q if scored.Q > 0 else 0.0
    V0 = np.array(max(teacher.rho - slope * scored.M, np.finfo(float).tiny))
    x = slope * (scored.f - scored.intercept)
    known = teacher.label_weight(1, x, V0) / teacher.evidence(x, V0)
    return float(np.abs(scipy.special.expit(scored.f) - known).mean())


def brier_score(scored: Scored) -> float:
    """Mean square distance of the logistic function of f from the label, as 0 or 1."""
    return float((scipy.special.expit(-scored.y * scored.f) ** 2).mean())


def nagelkerke_r2(scored: Scored) -> float:
    """Nagelkerke's R², from the log-losses of f and of the share of +1; NaN if it is 0 or 1."""
    plus = float((scored.y > 0).mean())
    if not 0.0 < plus < 1.0:
        return np.nan
    constant = -(plus * np.log(plus) + (1.0 - plus) * np.log1p(-plus))
    loss = float(np.logaddexp(0.0, -scored.y * scored.f).mean())
    with np.errstate(over="ignore"):
        return float(np.expm1(2.0 * (loss - constant)) / np.expm1(-2.0 * constant))


def calibration_slope(scored: Scored) -> float:
    """The s for which the logistic function of a + s f has the least log-loss; see `line`."""
    return line(scored)[1]


def calibration_intercept(scored: Scored) -> float:
    """The a for which the logistic function of a + s f has the least log-loss; see `line`."""
    return line(scored)[0]


def line(scored: Scored) -> tuple[float, float]:
    """Intercept and slope of the line in f that predicts the labels best.

    NaN if f separates them, is constant, or if they are all the same.
    """
    centre, spread = float(scored.f.mean()), float(scored.f.std())
    if not spread > 0.0:
        return np.nan, np.nan
    positive = (scored.y > 0)[None].astype(float)
    x = (scored.f - centre)[None] / spread
    (a,), (b,) = logistic_line(x, positive, 1.0 - positive)
    return float(a - b * centre / spread), float(b / spread)


def probability_error(scored: Scored) -> float:
    """Mean distance of the logistic function of f from the probability of +1 given the field."""
    known = binary(scored.model.teacher).probability(scored.nu)
    return float(np.abs(scipy.special.expit(scored.f) - known).mean())


def best_temperature(scored: Scored) -> float:
    """The T of least mean log-loss of f/T: inf if scores mislead, 0 if they separate the labels."""
    from scipy import optimize

    margin = scored.y * scored.f
    if margin.sum() <= 0:
        return np.inf
    if margin.min() >= 0:
        return 0.0

    def slope(log_t: float) -> float:
        return -float((margin * scipy.special.expit(-np.exp(log_t) * margin)).mean())

    low = float(np.log(2.0 * margin.mean() / (margin**2).mean()))  # where the slope is below zero
    high = low + 1.0
    while slope(high) < 0:
        high += 1.0
    return float(np.exp(-optimize.brentq(slope, low, high, xtol=1e-13)))


@dataclass(frozen=True)
class MarginFractions:
    """Fractions of new samples, or of training samples, whose margin y f is at most each value."""

    at: tuple[float, ...]
    training: bool

    def __call__(self, scored: Scored) -> Array:
        f, y = (scored.f_train, scored.y_train) if self.training else (scored.f, scored.y)
        return np.array([float((y * f <= value).mean()) for value in self.at])


@dataclass(frozen=True)
class Decisions:
    """A quantity of the decision for +1 where the logistic function of f is at least a threshold.

    `quantity` computes it from the shares of samples that are positive and missed, and that are
    negative and not, from the share of positives, and from the threshold.
    """

    quantity: Callable[..., float]
    at: tuple[float, ...]

    def __call__(self, scored: Scored) -> Array:
        positive, values = scored.y > 0, []
        for t in self.at:
            chosen = scored.f >= scipy.special.logit(t)
            missed, alarms = (positive & ~chosen).mean(), (~positive & chosen).mean()
            with np.errstate(invalid="ignore", divide="ignore"):  # of a single class
                values.append(self.quantity(missed, alarms, positive.mean(), t))
        return np.array(values)
