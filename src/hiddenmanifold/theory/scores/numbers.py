r"""Observables of labels that are numbers: averages over labels and scores.

If the label is predicted by the score itself the residual is a mixture of normals, and its absolute
mean and distribution are known in closed form. Other predictions are averaged over labels and
scores, on panels of the score; those of labels at points are cut where predictions meet labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.losses import LabelLoss
from hiddenmanifold.losses.predictors import Predictor
from hiddenmanifold.numerics.panels import FAR, gauss_legendre, refine
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import Linear, PointTeacher, RealTeacher, real
from hiddenmanifold.teachers.averaging import ORDER, SETTLED
from hiddenmanifold.teachers.noises import NormalMixture
from hiddenmanifold.theory.labels_side.linear_labels import row_averages
from hiddenmanifold.theory.scores.distribution import Scores
from hiddenmanifold.theory.scores.square_errors import HALVINGS, settled_products

ROUGHEST, FINEST = 2, 8
"""Levels of the laws of labels to begin and to end with."""
OVER_SCORES = 1e-9
"""Relative change at which an average over fields and scores is known: each halving costs four
times as much, and changes it by a thousandth of the one before."""
OVER_SCORES_HALVINGS = 4
"""How often panels are tried for such an average, before it is given up as NaN."""
NO_WIDTH = 1e-200
"""Width of a proximal map that moves nothing: the loss is that of new samples."""
GRID = 2001
"""Scores among which places are sought where a prediction meets a label."""
BLOCK = 2**22
"""Numbers of an array that is held at once."""

OfNormal = Callable[[Array, Array], Array]
"""From mean and variance of a normal residual to the mean of something."""


class Rows(NamedTuple):
    """Weights (rows,), means and variances (points, rows) of normal residuals."""

    weights: Array
    means: Array
    variances: Array


def _field_law(scores: Scores, halvings: int) -> tuple[Array, Array, NormalMixture]:
    """Fields, their weights, and the law of labels given these."""
    teacher = real(scores.teacher)
    nu, w = teacher.panels(ORDER, halvings + teacher.halvings)
    # one sum more, over scores, smooths what fine components resolve
    level = ROUGHEST if scores.prediction is not None else min(ROUGHEST + halvings, FINEST)
    return nu, w, teacher.components(nu, level)


def _given_field(scores: Scores) -> tuple[Array, Array]:
    """Slope and variance of the score given the field, columns (points, 1)."""
    rho = scores.teacher.rho
    r: Array = scores.slope * scores.deviation / rho
    S2: Array = scores.deviation**2 * scores.V0 / rho
    return r[:, None], S2[:, None]


def residual_rows(scores: Scores, halvings: int) -> Rows:
    """The law of the residual y - f of new samples."""
    b = scores.centre[:, None]
    if scores.residual:
        assert isinstance(scores.teacher, Linear)
        law = scores.teacher.law
        mixture = law.components(min(ROUGHEST + halvings, FINEST))
        variances = mixture.variances - law.components(0).variances.min()  # as in LinearChannel
        return Rows(mixture.weights, mixture.means - b, scores.spread[:, None] ** 2 + variances)
    nu, w, mixture = _field_law(scores, halvings)
    r, S2 = _given_field(scores)
    weights = (mixture.weights * w).ravel()
    kept = weights > 1e-24
    fields = np.broadcast_to(nu, mixture.means.shape).ravel()[kept]
    means, variances = mixture.means.ravel()[kept], mixture.variances.ravel()[kept]
    return Rows(weights[kept], means - b - r * fields, S2 + variances)


def _absolute(mean: Array, variance: Array) -> Array:
    """Mean modulus of a normal variable."""
    s = np.sqrt(variance)
    t = mean / s
    value: Array = 2.0 * s * normal_density(t) + mean * (2.0 * scipy.special.ndtr(t) - 1.0)
    return np.where(s > 0.0, value, np.abs(mean))


def _not_positive(mean: Array, variance: Array) -> Array:
    """Probability that a normal variable is at most zero."""
    s = np.sqrt(variance)
    return np.where(s > 0.0, scipy.special.ndtr(-mean / s), (mean <= 0.0).astype(float))


def _settled(function: Callable[[Scores, int], tuple[Array, Array]], scores: Scores) -> Array:
    """A function of the law and of halvings, as values and accepted changes, when it settles."""
    most = HALVINGS if scores.prediction is None else OVER_SCORES_HALVINGS
    return refine(lambda some, h: function(scores[some], h), (len(scores),), range(most))


def _average(scores: Scores, of_normal: OfNormal, size: float) -> Array:
    """Average over labels and predictions of a function of the residual, as it settles."""

    def mean(some: Scores, halvings: int) -> tuple[Array, Array]:
        if some.prediction is None:
            rows = residual_rows(some, halvings)
            value: Array = of_normal(rows.means, rows.variances) @ rows.weights
        elif isinstance(some.teacher, PointTeacher):
            value = np.array(
                [_at_points(some[i : i + 1], of_normal, halvings) for i in range(len(some))]
            )
        else:
            value = np.array(
                [_over_scores(some[i : i + 1], of_normal, halvings) for i in range(len(some))]
            )
        accepted = SETTLED if some.prediction is None else OVER_SCORES
        return value, accepted * (np.abs(value) + size)

    return _settled(mean, scores)


def _standard_scores(halvings: int, cuts: Array | None = None) -> tuple[Array, Array]:
    """Standardised scores and their lengths, panels cut at some places (rows, k) of each row."""
    edges = (
        np.array([FAR])
        if cuts is None
        else np.sort(
            np.concatenate([np.broadcast_to(FAR, (len(cuts), len(FAR))), cuts], axis=1), axis=1
        )
    )
    t, w = gauss_legendre(ORDER, halvings)
    width = np.diff(edges, axis=1)[..., None]
    nodes = (edges[:, :-1, None] + width * t).reshape(len(edges), -1)
    return nodes, (width * w).reshape(len(edges), -1)


def _over_scores(scores: Scores, of_normal: OfNormal, halvings: int) -> float:
    """Average of one point over fields, scores and components of the labels."""
    assert scores.prediction is not None
    nu, w, mixture = _field_law(scores, halvings)
    (r,), (S2,) = (part[0] for part in _given_field(scores))
    centre = scores.centre + r * nu[:, None]
    cuts = (np.array([scores.prediction.kinks]) - centre) / np.sqrt(S2)
    t, lengths = _standard_scores(halvings, np.clip(cuts, FAR[0], FAR[-1]))
    predicted, mass = scores.prediction(centre + np.sqrt(S2) * t), normal_density(t) * lengths
    total = 0.0
    for weights, means, variances in zip(*mixture, strict=True):
        inner = of_normal(means[:, None] - predicted, variances[:, None]) * mass
        total += float((w * weights) @ inner.sum(1))
    return total


def _at_points(scores: Scores, of_normal: OfNormal, halvings: int) -> float:
    """The same for labels at points: panels of the score are cut where it meets a label."""
    teacher, prediction = scores.teacher, scores.prediction
    assert isinstance(teacher, PointTeacher) and prediction is not None
    y, nu, T = teacher.table(min(ROUGHEST + halvings, FINEST), extra=0)
    (r,), (S2,) = (part[0] for part in _given_field(scores))
    b, sd = float(scores.centre[0]), float(scores.spread[0])
    cuts = (_meeting(prediction, y, b, sd) - b) / sd
    total, some = 0.0, max(1, BLOCK // (len(nu) * len(FAR) * ORDER * 2**halvings))
    for i in range(0, len(y), some):
        t, lengths = _standard_scores(halvings, cuts[i : i + some])
        f = b + sd * t
        away = (sd * t[:, None, :] - r * nu[:, None]) / np.sqrt(S2)
        law = np.einsum("jn,jnl->jl", T[i : i + some], normal_density(away)) * lengths * sd
        values = of_normal(y[i : i + some, None] - prediction(f), np.zeros(1))
        total += float((law * values).sum() / np.sqrt(S2))
    return total


def _meeting(prediction: Predictor, y: Array, b: float, sd: float) -> Array:
    """Scores at which a prediction meets each label, or has a kink: (labels, k), far if none."""
    grid = b + sd * np.linspace(FAR[0], FAR[-1], GRID)
    above = prediction(grid) > y[:, None]
    label, place = np.nonzero(above[:, 1:] != above[:, :-1])
    low, high = grid[place], grid[place + 1]
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = (prediction(middle) > y[label]) == above[label, place]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    order = np.arange(len(label)) - np.searchsorted(label, label)
    found = np.full((len(y), int(order.max(initial=-1)) + 1), grid[-1])
    found[label, order] = low
    kinks = np.broadcast_to(prediction.kinks, (len(y), len(prediction.kinks)))
    both: Array = np.concatenate([found, kinks], axis=1)
    return np.clip(both, grid[0], grid[-1])


def mean_absolute_error(scores: Scores) -> Array:
    """Mean distance of the prediction from a new label."""
    teacher = real(scores.teacher)
    if not teacher.has_mean:
        return np.full(len(scores), np.inf)
    return _average(scores, _absolute, np.sqrt(teacher.moments.explained))


def coverage(scores: Scores) -> Array:
    """Probability that a new label is at most its prediction."""
    return _average(scores, _not_positive, 1.0)


def r2(scores: Scores) -> Array:
    """One minus the mean square error of the prediction over the variance of a label."""
    m = real(scores.teacher).moments
    share: Array = _square_error(scores) / (m.second - m.mean**2)
    return 1.0 - share


def _square_error(scores: Scores) -> Array:
    """Mean square error of the prediction of a new label."""
    m, b = real(scores.teacher).moments, scores.centre
    if scores.residual:
        assert isinstance(scores.teacher, Linear)
        law = scores.teacher.law
        floor = float(law.components(0).variances.min())
        clean: Array = scores.spread**2 - floor + (b - law.mean) ** 2
        return clean + law.variance
    Q, covariance = scores.spread**2, scores.slope * scores.spread
    if scores.prediction is None:
        excess: Array = b**2 + Q - 2.0 * b * m.mean - 2.0 * m.slope * covariance
        return m.second + excess
    teacher = real(scores.teacher)
    found = settled_products(
        teacher, scores.prediction, b, covariance / teacher.rho, Q, V0=scores.V0
    )
    return m.second + found[:, 1] - 2.0 * found[:, 0]


def test_loss(scores: Scores) -> Array:
    """Mean loss of new samples; infinite if labels have no mean."""
    teacher = real(scores.teacher)
    if isinstance(scores.loss, LabelLoss):
        return _settled(_mean_label_loss, scores)
    if not teacher.has_mean:
        return np.full(len(scores), np.inf)

    def mean(some: Scores, halvings: int) -> tuple[Array, Array]:
        rows = residual_rows(some, halvings)
        width, level = np.full(len(some), NO_WIDTH), min(ROUGHEST + halvings, FINEST)
        found = row_averages(
            some.loss, width, rows.means, rows.variances, level, with_loss=True
        ).data_loss
        return found @ rows.weights, SETTLED * (np.abs(found) @ rows.weights)

    return _settled(mean, scores)


def _mean_label_loss(scores: Scores, halvings: int) -> tuple[Array, Array]:
    """Mean of a loss of label and score, and the change of it that is accepted."""
    teacher = scores.teacher
    assert isinstance(teacher, PointTeacher)
    y, nu, T = teacher.table(min(ROUGHEST + halvings, FINEST), extra=halvings)
    r, S2 = _given_field(scores)
    (t,), (lengths,) = _standard_scores(halvings)
    value, size = np.empty((2, len(scores)))
    for i in range(len(scores)):
        sd, S = scores.spread[i], np.sqrt(S2[i])
        law = T @ (normal_density((sd * t - r[i] * nu[:, None]) / S) * (lengths * sd / S))
        f = np.broadcast_to(scores.centre[i] + sd * t, law.shape)
        losses = np.where(
            law > 0.0, scores.loss.value(np.broadcast_to(y[:, None], f.shape), f), 0.0
        )
        value[i], size[i] = (law * losses).sum(), (law * np.abs(losses)).sum()
    return value, SETTLED * size


def deviance(scores: Scores) -> Array:
    """Twice the mean loss of new samples above the least loss of each label."""
    return 2.0 * (test_loss(scores) - least_mean(scores.loss, real(scores.teacher)))


def least_mean(loss: object, teacher: RealTeacher) -> float:
    """Mean over labels of the least loss of each."""
    if isinstance(loss, LabelLoss):
        assert isinstance(teacher, PointTeacher)
        y, _, table = teacher.table(3)
        return float(table.sum(1) @ loss.least(y))
    return loss.least  # type: ignore[attr-defined, no-any-return]
