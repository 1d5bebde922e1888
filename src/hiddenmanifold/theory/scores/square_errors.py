r"""Mean square errors of any prediction :math:`\hat f(f)` of any labels.

Given the field the score f is normal, :math:`f \sim N(b + (M/\rho)\nu, S^2)`; with
:math:`F_k = E[\hat f^k|\nu]` and the mean label :math:`\bar y = E[y|\nu]`,

.. math:: E(y - \hat f)^2 = E[y^2 - 2\bar y F_1 + F_2], \qquad
    E(\bar y - \hat f)^2 = E[\bar y^2 - 2\bar y F_1 + F_2].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Columns, Integers, chunks
from hiddenmanifold.losses import predictors
from hiddenmanifold.losses.predictors import Predictor
from hiddenmanifold.numerics.panels import FAR, Panels, fanned, refine
from hiddenmanifold.teachers import BinaryTeacher, RealTeacher
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED
from hiddenmanifold.teachers.real import field_panels
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel

if TYPE_CHECKING:
    from hiddenmanifold.theory.labels_side.channel import Channel

BLOCK = 2**21
"""Numbers of an array that is held at once."""
HALVINGS = 5
"""How often panels of field and score are halved, at most: each costs four times as much, and
averages that have not settled by then, because a kink is not declared, are NaN."""


def square_errors(channel: Channel, x: Array) -> Columns:
    """Mean square errors against new labels and against the mean label, at unknowns `x`."""
    b = channel.intercept(x)
    if isinstance(channel, LinearChannel):
        law = channel.teacher.law
        clean = np.exp(x[:, 1]) - channel.floor + (b - law.mean) ** 2
        return {"generalisation_error": clean + law.variance, "clean_error": clean}
    _, second, explained, _ = _moments(channel.teacher)
    slope, _ = channel.teacher_field(x)
    Q = np.exp(x[:, 1])
    if channel.prediction is None or channel.prediction == predictors.Identity():
        clean = excess_of(channel.teacher, b, slope * np.sqrt(Q), Q)
        return {"generalisation_error": second - explained + clean, "clean_error": clean}
    slope, V0 = channel.teacher_field(x)
    found = settled_products(
        channel.teacher, channel.prediction, b, slope * np.sqrt(Q) / channel.rho, Q, V0=V0
    )
    excess = found[:, 1] - 2.0 * found[:, 0]
    return {"generalisation_error": second + excess, "clean_error": explained + excess}


def excess_of(teacher: RealTeacher | BinaryTeacher, b: Array, M: Array, Q: Array) -> Array:
    """Mean square distance of scores of mean b, covariance M and variance Q from the mean label."""
    mean, _, explained, c = _moments(teacher)
    return explained + b**2 + Q - 2.0 * b * mean - 2.0 * c * M


def _moments(teacher: RealTeacher | BinaryTeacher) -> tuple[float, float, float, float]:
    """E y, E y², the mean square of the mean label, and c."""
    if isinstance(teacher, RealTeacher):
        m = teacher.moments
        return m.mean, m.second, m.explained, m.slope
    plus, minus, slope = teacher.label_marginals

    def squared(_: Integers, halvings: int) -> tuple[Array, float]:
        nu, w = _fields(teacher, halvings)
        return np.array([w @ teacher.label_mean(nu) ** 2]), SETTLED

    return plus - minus, 1.0, float(refine(squared, (1,), range(FINEST))[0]), 2.0 * slope


def _fields(teacher: RealTeacher | BinaryTeacher, halvings: int) -> tuple[Array, Array]:
    """Fields and weights, on panels cut where the rule bends."""
    if isinstance(teacher, RealTeacher):
        return teacher.panels(ORDER, halvings)
    kinks = tuple(np.unique(teacher.landmarks(1, np.zeros(1))).tolist())
    return field_panels(float(teacher.rho), kinks, 9.0, ORDER, halvings)


def settled_products(
    teacher: RealTeacher | BinaryTeacher,
    prediction: Predictor,
    b: Array,
    r: Array,
    Q: Array,
    *,
    V0: Array,
) -> Array:
    """The averages E[ȳ F₁] and E F₂ (points, 2) when panels are halved until they settle.

    Given the field, scores are normal around b + rν; they have the variance Q, and V0 is that of
    the field given the score.
    """
    S2 = Q * V0 / teacher.rho

    def products(some: Integers, halvings: int) -> tuple[Array, Array]:
        nu, w = _fields(teacher, halvings)
        labels = teacher.label_mean(nu)
        found = np.empty((len(some), 2))
        nodes = 1 if closed(prediction) else len(FAR) * ORDER * 2**halvings
        for part in chunks(np.arange(len(some)), max(1, BLOCK // (len(nu) * nodes))):
            at = some[part]
            first, _ = moments(prediction, b[at, None] + r[at, None] * nu, S2[at], halvings)
            _, second = moments(prediction, b[at, None], Q[at], halvings)
            found[part] = np.stack([first @ (w * labels), second[:, 0]], axis=1)
        size = np.sqrt(found[:, 1]) * (1.0 + np.sqrt(w @ labels**2)) + found[:, 1]
        return found, SETTLED * size[:, None]

    with np.errstate(all="ignore"):  # what overflows is infinite, and settles
        return refine(products, (len(b), 2), range(HALVINGS))


def closed(prediction: Predictor) -> bool:
    """Whether the averages of a prediction over normal scores are known in closed form."""
    return isinstance(prediction, predictors.Identity | predictors.Exp | predictors.Sign)


def moments(
    prediction: Predictor, mean: Array, variance: Array, halvings: int
) -> tuple[Array, Array]:
    """First and second moment of a prediction, of normal scores: means (points, N), variances."""
    S2 = variance[:, None]
    if isinstance(prediction, predictors.Identity):
        return mean, mean**2 + S2
    if isinstance(prediction, predictors.Exp):
        return np.exp(mean + 0.5 * S2), np.exp(2.0 * mean + 2.0 * S2)
    if isinstance(prediction, predictors.Sign):
        return 2.0 * scipy.special.ndtr(mean / np.sqrt(S2)) - 1.0, np.ones_like(mean)
    rows = mean.ravel()
    deviation = np.repeat(np.sqrt(variance), mean.shape[1])
    cuts = (np.array([prediction.kinks]) - rows[:, None]) / deviation[:, None]
    panels = Panels.between(fanned(FAR, cuts.reshape(len(rows), -1)), (ORDER, halvings))
    at = panels.row[:, None]
    values = prediction(rows[at] + deviation[at] * panels.nodes)
    first, second = panels.sum(np.stack([values, values**2]))
    return first.reshape(mean.shape), second.reshape(mean.shape)
