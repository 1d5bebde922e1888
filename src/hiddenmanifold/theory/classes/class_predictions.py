"""Every predicted quantity of a model of several classes at given points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, chunks, joined
from hiddenmanifold.errors import Status
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.teachers import Classes, FieldClasses, several
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.field_predictions import (
    FieldFit,
    field_columns,
    field_errors,
    field_fit,
)
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.one_vs_rest_fits import one_vs_rest
from hiddenmanifold.theory.classes.score_law import FittedScores, error_rates, misclassified
from hiddenmanifold.theory.classes.softmax_classes import softmax_fit
from hiddenmanifold.theory.classes.softmax_fits import softmax_of_classes
from hiddenmanifold.theory.classes.square_classes import RidgeSolution, square_fit
from hiddenmanifold.theory.points import HUGE, Limit, Points

VANISHING = 1e-60
"""Regularisation that represents the limit 0⁺."""
FAR, NEGLIGIBLE = 1e-20, 1e-18
"""In a limit of a ratio, or of λ, numbers below are zero and above the inverse infinite."""
TOGETHER = 8
"""Points of one job of a worker: those of many classes take a second each."""


@dataclass(frozen=True)
class ClassBatch:
    """Points to predict together: one job of a worker."""

    model: Model
    points: Points
    counts: Counts | None

    def run(self) -> Columns:
        """Every predicted quantity at each point."""
        return _predicted(self.model, self.points, self.counts)


def class_asymptotics(
    model: Model,
    points: Points,
    workers: Workers | None = None,
    counts: Counts | None = None,
) -> Columns:
    """Every predicted quantity at each of some points, limits included.

    If the numbers of samples and features are given, terms of the order of their inverse are added.
    """
    parts = chunks(np.arange(len(points)), TOGETHER)
    batches = [ClassBatch(model, points[part], counts and counts[part]) for part in parts]
    return joined((workers or Workers()).run(batches))


def fitted(
    model: Model, points: Points, counts: Counts | None, *, quick: bool = False
) -> FittedScores:
    """The fit at some points, with numbers in place of limits of λ.

    A quick one takes the fewest points of averages, and leaves out errors of training samples.
    """
    teacher = model.teacher
    assert isinstance(teacher, Classes)
    finite, features = _finite(points), model.features
    labels, free = LabelFunctions.of(teacher, features), model.free_intercept
    with np.errstate(all="ignore"):
        if model.scheme is not None:
            return one_vs_rest(model, labels, finite, counts, alike=teacher.alike, quick=quick)
        if not model.loss.quadratic and teacher.alike:
            return softmax_fit(features, labels, finite, counts, quick=quick)
        if not model.loss.quadratic:
            return softmax_of_classes(features, labels, finite, counts, intercept=free, quick=quick)
        ridge = RidgeSolution.of(features, labels, finite, counts, intercept=free)
        return square_fit(labels, finite, ridge, counts, intercept=free)


def _finite(points: Points) -> Points:
    """The points with numbers in place of limits of λ."""
    lam = np.where(points.lam == 0.0, VANISHING, np.minimum(points.lam, HUGE))
    return replace(points, lam=lam)


def fitted_to_fields(model: Model, points: Points, *, quick: bool = False) -> FieldFit:
    """The fit of classes of fields at some points."""
    assert isinstance(model.teacher, FieldClasses)
    with np.errstate(all="ignore"):
        return field_fit(model, _finite(points), model.teacher, quick=quick)


def class_errors(model: Model, points: Points, target: str, counts: Counts | None = None) -> Array:
    """An error alone, as a smooth function of the points; NaN where it is not known."""
    if isinstance(model.teacher, FieldClasses):
        of_fields = fitted_to_fields(model, points, quick=True)
        known = of_fields.certificate["status"] == Status.CONVERGED
        if target == "test_loss":
            return np.where(known, of_fields.test_loss, np.nan)
        return np.where(known, field_errors(of_fields, model.teacher, target), np.nan)
    fit = fitted(model, points, counts, quick=True)
    known = fit.certificate["status"] == Status.CONVERGED
    if target == "test_loss":
        return np.where(known, fit.test_loss, np.nan)
    return np.where(known, misclassified(fit.law, several(model.teacher)), np.nan)


def _predicted(model: Model, points: Points, counts: Counts | None) -> Columns:
    if isinstance(model.teacher, FieldClasses):
        of_fields = fitted_to_fields(model, points)
        columns = field_columns(of_fields, model.teacher)
        failed = of_fields.certificate["status"] != Status.CONVERGED
        return {**_tidied(columns, failed, points), **of_fields.certificate}
    fit, teacher = fitted(model, points, counts), several(model.teacher)
    law = fit.law
    found: Columns = {
        **error_rates(law, teacher),
        "training_error": (
            misclassified(fit.training_law, teacher)
            if fit.training_error is None
            else fit.training_error
        ),
        "training_loss": fit.training_loss,
        "test_loss": fit.test_loss,
        "score_mean": law.mean,
        "score_covariance": fit.covariance,
        "score_intercept": np.array(law.intercept),
        "Q": np.trace(fit.covariance, axis1=1, axis2=2),
        "M": np.einsum("pcc,c->p", law.shift, teacher.shares),
        "q_w": fit.q_w,
    }
    for name in ("integration_error", "rates_integration_error"):
        found[name] = found[name] + fit.error
    found["rates_integration_error"] = np.maximum(
        found["rates_integration_error"], fit.training_error_error
    )
    if fit.mean_square_error is not None:
        found["mean_square_error"] = fit.mean_square_error
    failed = fit.certificate["status"] != Status.CONVERGED
    return {**_tidied(found, failed, points), **fit.certificate}


def _tidied(found: Columns, failed: Booleans, points: Points) -> Columns:
    """The columns with NaN where a solve failed, and zeros and infinities in limits."""
    least = np.where(points.has(Limit.RATIO), FAR, 0.0)
    least[points.has(Limit.VANISHING | Limit.UNBOUNDED)] = NEGLIGIBLE
    for values in found.values():
        values[failed] = np.nan
        if least.any():
            turned = values.T  # points come last
            size = np.abs(turned)
            turned[size < least] = 0.0
            turned[size * least > 1.0] *= np.inf
    return found
