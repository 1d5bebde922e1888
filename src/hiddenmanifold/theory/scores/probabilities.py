r"""How good the logistic function of a score is as the probability of the label +1.

The score f of a classifier is read as the probability :math:`\sigma(f) = 1/(1+e^{-f})`, whatever
the loss it was fitted by: its mean square distance from the label, its mean distance from the true
probability, the line in f that would be calibrated, and decisions at a threshold of probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.numerics.logistic_line import logistic_line
from hiddenmanifold.numerics.panels import NEAR, Panels, fanned, gauss_legendre, refine
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import binary
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED, edges_along, fan_of
from hiddenmanifold.theory.scores.calibration import LOG_LOSS, sign_changes
from hiddenmanifold.theory.scores.distribution import Scores, settled, test_loss
from hiddenmanifold.theory.scores.errors_of_labels import misclassified

FITTED = 1e-10
"""Change of a fitted line under halving at which it is known."""
OVER_FIELDS = 1e-9
"""Relative change under halving at which an average over fields and scores is known."""
OVER_FIELDS_HALVINGS = 6
"""How often panels of the field are halved, at most; each costs twice as much as the one before."""
BLOCK = 2**21
"""Numbers of an array that is held at once."""


def brier_score(scores: Scores) -> Array:
    """Mean square distance of the logistic function of f from the label, as 0 or 1."""

    def mean(some: Scores, halvings: int) -> tuple[Array, Array]:
        (value,), (size,) = some.averages(LOG_LOSS, halvings, lambda s: scipy.special.expit(s) ** 2)
        return value, SETTLED * size

    return settled(mean, scores)


def r2(scores: Scores) -> Array:
    """One minus the Brier score over the variance of the label, as 0 or 1."""
    plus, minus, _ = binary(scores.teacher).label_marginals
    return 1.0 - brier_score(scores) / (plus * minus)


def nagelkerke_r2(scores: Scores) -> Array:
    """Nagelkerke's R², from the mean log-loss of new samples and that of the best constant."""
    plus, minus, _ = binary(scores.teacher).label_marginals
    constant = -(plus * np.log(plus) + minus * np.log(minus))
    loss = test_loss(replace(scores, loss=LOG_LOSS))
    explained: Array = np.expm1(2.0 * (loss - constant)) / np.expm1(-2.0 * constant)
    return explained


def calibration_slope(scores: Scores) -> Array:
    """The s for which the logistic function of a + s f has the least log-loss, with a."""
    return _recalibration(scores)[:, 1]


def calibration_intercept(scores: Scores) -> Array:
    """The a for which the logistic function of a + s f has the least log-loss, with s."""
    return _recalibration(scores)[:, 0]


def _recalibration(scores: Scores) -> Array:
    """Intercept and slope of the best line in f, (points, 2).

    The panels that resolve the law of labels resolve the logistic function that approximates it.
    """

    def line(some: Scores, halvings: int) -> tuple[Array, Array]:
        edges = np.sort(np.concatenate([some.edges(1), -some.edges(-1)], axis=1), axis=1)
        t, w = gauss_legendre(ORDER, halvings)
        width = np.diff(edges, axis=1)[..., None]
        x = (edges[:, :-1, None] + width * t).reshape(len(some), -1)
        mass = normal_density(x) * (width * w).reshape(len(some), -1)
        teacher, field, V0 = binary(some.teacher), some.slope[:, None] * x, some.V0[:, None]
        plus = teacher.label_weight(1, field, V0)
        minus = np.maximum(teacher.evidence(field, V0) - plus, 0.0)
        found = np.stack(logistic_line(x, mass * plus, mass * minus), axis=1)
        return found, FITTED * (1.0 + np.abs(found).max(1, keepdims=True))

    levels = range(FINEST + 1)
    standard = refine(lambda some, h: line(scores[some], h), (len(scores), 2), levels)
    if len(scores.labels) == 1:  # by symmetry, which rounding breaks
        standard[:, 0] *= 0.0
    # what is independent of the labels is best ignored, also where it is constant
    slope = np.where(scores.slope == 0.0, 0.0 * standard[:, 1], standard[:, 1] / scores.spread)
    return np.stack([standard[:, 0] - slope * scores.centre, slope], axis=1)


def probability_error(scores: Scores) -> Array:
    """Mean distance of the logistic function of f from the probability of +1 given the field."""

    def mean(some: Scores, halvings: int) -> tuple[Array, Array]:
        value = np.concatenate([_distance(some[i : i + 1], halvings) for i in range(len(some))])
        return value, OVER_FIELDS * value + SETTLED

    levels = range(OVER_FIELDS_HALVINGS + 1)
    return refine(lambda some, h: mean(scores[some], h), (len(scores),), levels)


def _distance(scores: Scores, halvings: int) -> Array:
    """The same for one point: given the field f is normal, and panels are cut where σ(f) = P."""
    teacher, rho = binary(scores.teacher), scores.teacher.rho
    unit, none = np.full(1, np.sqrt(rho)), np.zeros(1)
    tilt = float((scores.slope * scores.spread)[0]) / unit[0]

    def excess(t: Array, row: Integers) -> Array:
        """How far the probability of the mean score exceeds the true one, at a field."""
        known: Array = teacher.probability(unit[0] * t)
        return np.asarray(scipy.special.expit(scores.centre[0] + tilt * t)) - known

    bends = np.empty((1, 0))
    if teacher.displaces:  # P(+|ν) = σ(2(ν - pivot))
        bends = (0.5 * LOG_LOSS.knots[0][None] + (teacher.pivot or 0.0)) / unit
    edges = edges_along(teacher, 1, unit, none, fan_of(teacher), bends)
    roots = sign_changes(excess, Panels.between(edges, (ORDER, 0)))
    edges = np.sort(np.concatenate([edges, np.nan_to_num(roots)], axis=1), axis=1)
    fields = Panels.between(edges, (ORDER, halvings))
    nu = unit[0] * fields.nodes.ravel()
    weights = fields.weights.ravel() * teacher.evidence(nu, np.zeros(len(nu)))
    S = float((scores.spread * np.sqrt(scores.V0 / rho))[0])
    mean, known = scores.centre + tilt / unit[0] * nu, teacher.probability(nu)
    total, most = 0.0, BLOCK // (ORDER * (len(NEAR) + len(LOG_LOSS.knots[0])))
    for start in range(0, len(nu), most):
        part = slice(start, start + most)
        total += float(weights[part] @ _given_mean(mean[part], S, known[part]))
    return np.array([total])


def _given_mean(mean: Array, S: float, known: Array) -> Array:
    """Mean distance of σ(f) from known probabilities, of normal scores f of deviation S."""
    bends = np.broadcast_to(LOG_LOSS.knots[0], (len(mean), len(LOG_LOSS.knots[0])))
    cuts = np.concatenate([scipy.special.logit(known)[:, None], bends], axis=1)
    panels = Panels.between(fanned(NEAR, (cuts - mean[:, None]) / S), (ORDER, 0))
    f = mean[panels.row, None] + S * panels.nodes
    return panels.sum(np.abs(scipy.special.expit(f) - known[panels.row, None]))


@dataclass(frozen=True)
class Decision:
    r"""A quantity of the decision for +1 where :math:`\sigma(f)` is at least a threshold t.

    It is an array (points, thresholds). `quantity` computes it from the probabilities that a sample
    of the label +1 is missed, and that one of the label -1 is not, from P(+), and from t.
    """

    quantity: Callable[..., Array]
    at: tuple[float, ...]

    def __call__(self, scores: Scores) -> Array:
        return np.stack([self._at(scores, t) for t in self.at], axis=-1)

    def _at(self, scores: Scores, t: float) -> Array:
        teacher = binary(scores.teacher)
        cut = (scipy.special.logit(t) - scores.centre) / scores.spread
        missed, alarms = (
            misclassified(teacher, scores.slope, scores.V0, {y: y * cut}) for y in (1, -1)
        )
        return self.quantity(missed, alarms, teacher.label_marginals[0], t)
