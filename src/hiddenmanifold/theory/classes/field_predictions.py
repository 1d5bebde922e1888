r"""Classes that are the largest of K fields: the fit, and every quantity predicted of it.

All matrices are numbers times :math:`I - 11^\top/K`: the covariance q of the scores, their
covariance m with the fields, of variance :math:`\rho`. Given the fields, scores have the mean
:math:`(m/\rho)\nu` and the variance :math:`q - m^2/\rho`. For the square loss, with
:math:`c = E[\nu_y]/(K-1)` and :math:`g = c^2/\rho`,

.. math:: m = cT_1, \qquad r = \frac{1/K - g + gU_2}{1 - D_2/n}, \qquad q = gT_2 + rD_2/n .

For softmax see `softmax_classes`; there :math:`a = (e_3/e_1 + m)/\rho` with :math:`e_3` the mean of
:math:`(y - s)\cdot\nu/(K-1)`, and :math:`\tau = \rho`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.model import Model
from hiddenmanifold.teachers.classes_of_fields import FieldClasses
from hiddenmanifold.theory.classes.field_points import samples_of_fields
from hiddenmanifold.theory.classes.field_rates import FieldScores
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.score_law import TOPS
from hiddenmanifold.theory.classes.softmax_classes import solve_alike
from hiddenmanifold.theory.classes.square_classes import RidgeSolution, certificate_of
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.certificate import stacked


@dataclass(frozen=True)
class FieldFit:
    """The fit at some points, arrays (points,) of numbers of the same names as predictions.

    ``moved`` is how far the own score of a training sample moves; ``m_sets`` and ``q_sets`` are m
    and q for each set of points of the averages, (points, sets); ``common`` is the covariance of
    all scores that the mean of the labels has without an intercept.
    """

    q: Array
    m: Array
    moved: Array
    mean: Array
    q_w: Array
    training_loss: Array
    test_loss: Array
    certificate: Columns
    q_sets: Array | None = None
    m_sets: Array | None = None
    mean_square_error: Array | None = None
    common: Array | float = 0.0


def field_fit(
    model: Model, points: Points, teacher: FieldClasses, *, quick: bool = False
) -> FieldFit:
    """The fit of classes of fields, with numbers in place of limits of λ."""
    if model.loss.quadratic:
        return _square(model, points, teacher)
    shape, most = (teacher.number, teacher.rho), 1 if quick else None
    found = [
        solve_alike(model.features, shape, points, i, islice(samples_of_fields(teacher), most))
        for i in range(len(points))
    ]
    sets = np.array([part for part, _ in found]).transpose(1, 0, 2)
    v, q, m, q_w, training, test, *_ = (part.mean(1) for part in sets)
    certificate = stacked([numbers for _, numbers in found])
    zero = np.zeros_like(v)
    return FieldFit(q, m, v, zero, q_w, training, test, certificate, sets[1], sets[2])


def _square(model: Model, points: Points, teacher: FieldClasses) -> FieldFit:
    """Ridge regression on one-hot targets."""
    K, free = teacher.number, model.free_intercept
    labels = LabelFunctions(teacher.shares, np.zeros((K - 1, K - 1)), np.zeros((K, K - 1)))
    ridge = RidgeSolution.of(model.features, labels, points, intercept=free)
    s, n = model.features.sums(ridge.k, points.gamma), ridge.samples
    c = teacher.advantage / (K - 1.0)
    g = c**2 / teacher.rho
    left = (n - ridge.at.D2) / n
    r = (1.0 / K - g + g * s.T02) / left
    q = g * s.T20 + r * ridge.at.D2 / n
    # without an intercept the mean of the labels is a residual, too
    total = (K - 1.0) * r + (0.0 if free else 1.0 / K) / left
    q_w = (total * ridge.at.D11 / n + (K - 1.0) * g * s.T11) / ridge.k
    kept = points.lam / (ridge.k * n)  # 1 - D1/n, without its cancellation
    return FieldFit(
        q=q,
        m=c * s.T1,
        moved=ridge.at.D1 / n / kept,
        mean=np.full_like(q, free / K),
        q_w=q_w,
        training_loss=0.5 * (kept**2 * total + points.lam * q_w / n),
        test_loss=0.5 * total,
        certificate=certificate_of(ridge, points),
        mean_square_error=total,
        common=(0.0 if free else 1.0 / K**2) * ridge.at.D2 / (n * left),
    )


def field_columns(fit: FieldFit, teacher: FieldClasses) -> Columns:
    """Every predicted quantity of a fit, but those of its certificate."""
    K, rho = teacher.number, teacher.rho
    tops = [_rates(teacher, q, m, 0.0, min(TOPS, K - 1)) for q, m in zip(fit.q, fit.m, strict=True)]
    top = np.array([rates for rates, _ in tops])
    error = np.array([e for _, e in tops]) + _error_of_law(teacher, fit)
    centring = np.eye(K) - 1.0 / K
    shift = (fit.m / rho * teacher.advantage * K / (K - 1.0))[:, None, None] * centring
    within = fit.q[:, None, None] * centring - shift @ shift / K
    within = within + np.broadcast_to(fit.common, fit.q.shape)[:, None, None]
    wrong = top[:, 0]
    off = (wrong / (K - 1.0))[:, None, None]
    found: Columns = {
        "generalisation_error": wrong.copy(),
        "clean_error": field_errors(fit, teacher, "clean_error"),
        "class_error": np.repeat(wrong[:, None], K, axis=1),
        "confusion": np.where(np.eye(K) > 0, 1.0 - wrong[:, None, None], off),
        "top_error": top,
        "integration_error": error.copy(),
        "rates_integration_error": error,
        "training_error": field_errors(fit, teacher, "training_error"),
        "training_loss": fit.training_loss.copy(),
        "test_loss": fit.test_loss.copy(),
        "score_mean": fit.mean[:, None, None] + shift,
        "score_covariance": within,
        "score_intercept": np.repeat(fit.mean[:, None], K, axis=1),
        "Q": np.trace(within, axis1=1, axis2=2),
        "M": shift[:, 0, 0].copy(),
        "q_w": fit.q_w.copy(),
    }
    if fit.mean_square_error is not None:
        found["mean_square_error"] = fit.mean_square_error.copy()
    return found


def field_errors(fit: FieldFit, teacher: FieldClasses, name: str) -> Array:
    """One rate of errors of a fit."""
    cold = name == "clean_error"
    moved = fit.moved if name == "training_error" else np.zeros_like(fit.q)
    rows = zip(fit.q, fit.m, moved, strict=True)
    return np.array([_rates(teacher, q, m, v, 1, cold=cold)[0][0] for q, m, v in rows])


def _rates(
    teacher: FieldClasses, q: float, m: float, moved: float, tops: int, *, cold: bool = False
) -> tuple[Array, float]:
    """Top errors of scores of given overlaps, against labels without noise if `cold`."""
    scale = float(np.sqrt(teacher.rho))
    rest = np.sqrt(max(q - m**2 / teacher.rho, 0.0)) if np.isfinite(q) else np.nan
    temperature = 0.0 if cold else teacher.temperature / scale
    return FieldScores(teacher.number, m / scale, float(rest), temperature).wrong_tops(tops, moved)


def _error_of_law(teacher: FieldClasses, fit: FieldFit) -> Array:
    """Error of the rate of errors due to that of q and m."""
    if fit.q_sets is None or fit.m_sets is None:
        return np.zeros_like(fit.q)
    wrong = np.array(
        [
            [_rates(teacher, q, m, 0.0, 1, cold=True)[0][0] for q, m in zip(*sets, strict=True)]
            for sets in zip(fit.q_sets, fit.m_sets, strict=True)
        ]
    )
    found: Array = 3.0 * wrong.std(1, ddof=1) / np.sqrt(wrong.shape[1])
    return found
