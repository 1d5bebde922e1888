"""Quantities beside the errors, each with its value in the theory and in a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import SCALAR_TASKS, Task, did_you_mean, finite_vector
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.simulation import test_scores
from hiddenmanifold.teachers import real
from hiddenmanifold.theory.scores import calibration, distribution, numbers, probabilities

TWO_CLASSES = frozenset({Task.CLASSIFICATION})
NUMBERS = frozenset({Task.REGRESSION})
GIVEN = {
    Task.REGRESSION: "real labels",
    Task.CLASSIFICATION: "labels ±1",
    Task.CLASSES: "the numbers of several classes",
}
"""What the labels of each task are."""


def _r2(scores: distribution.Scores) -> Array:
    """R² of new samples, of classes or numbers."""
    classes = scores.teacher.task is Task.CLASSIFICATION
    return probabilities.r2(scores) if classes else numbers.r2(scores)


def _test_loss(scores: distribution.Scores) -> Array:
    """The mean loss of new samples, of classes or numbers."""
    classes = scores.teacher.task is Task.CLASSIFICATION
    return distribution.test_loss(scores) if classes else numbers.test_loss(scores)


@dataclass(frozen=True)
class Observable:
    """A quantity that follows from the scores and labels of samples.

    Attributes
    ----------
    name, long_name : str
        What it is called in a dataset, and what it means.
    expected : callable
        Its value in the limit, from the law of the scores: an array (points,), or (points, values)
        if that is a vector.
    measured : callable
        Its value at finite size, from the scores of a fit: a number, or an array (values,).
    tasks : frozenset of Task
        The kinds of labels for which it makes sense.
    less_is_better : bool
        Whether a regularisation can be chosen that makes it least.
    at : tuple of float, optional
        The margins or thresholds to which the parts of a value that is a vector belong.
    dimension : str
        The dimension of such a value.
    """

    name: str
    long_name: str
    expected: distribution.Observed
    measured: test_scores.Measure
    tasks: frozenset[Task] = TWO_CLASSES
    less_is_better: bool = False
    at: tuple[float, ...] | None = None
    dimension: str = "y_f"


OBSERVABLES = (
    Observable(
        "test_loss",
        "mean loss of new samples, without the penalty",
        _test_loss,
        test_scores.test_loss,
        tasks=SCALAR_TASKS,
        less_is_better=True,
    ),
    Observable(
        "deviance",
        "twice the mean over new samples of the loss above the least loss of the label",
        numbers.deviance,
        test_scores.deviance,
        tasks=NUMBERS,
        less_is_better=True,
    ),
    Observable(
        "mean_absolute_error",
        "mean distance of the prediction from the label of a new sample",
        numbers.mean_absolute_error,
        test_scores.mean_absolute_error,
        tasks=NUMBERS,
        less_is_better=True,
    ),
    Observable(
        "r2",
        "R²: 1 - (mean square error of the prediction)/(variance of the label), of new samples; "
        "labels ±1 count as 1 and 0, and 1/(1 + exp(-f)) predicts them",
        _r2,
        test_scores.r2,
        tasks=SCALAR_TASKS,
    ),
    Observable(
        "coverage",
        "probability that the label of a new sample is at most its prediction",
        numbers.coverage,
        test_scores.coverage,
        tasks=NUMBERS,
    ),
    Observable(
        "auc",
        "area under the ROC curve: probability that a random new sample of label +1 scores above "
        "one of label -1, ties ½",
        distribution.auc,
        test_scores.auc,
    ),
    Observable(
        "calibration_error",
        "mean over new samples of |1/(1 + exp(-f)) - P(y = +1 | f)|",
        calibration.calibration_error,
        test_scores.calibration_error,
        less_is_better=True,
    ),
    Observable(
        "probability_error",
        "mean over new samples of |1/(1 + exp(-f)) - P(y = +1 | field)|",
        probabilities.probability_error,
        test_scores.probability_error,
        less_is_better=True,
    ),
    Observable(
        "brier_score",
        "mean square distance of 1/(1 + exp(-f)) from the label, as 0 or 1, of new samples",
        probabilities.brier_score,
        test_scores.brier_score,
        less_is_better=True,
    ),
    Observable(
        "nagelkerke_r2",
        "Nagelkerke's R² of new samples: 1 - exp(2 (L - L0)) over 1 - exp(-2 L0), with the mean "
        "log-loss L of f and that of the best constant, L0",
        probabilities.nagelkerke_r2,
        test_scores.nagelkerke_r2,
    ),
    Observable(
        "calibration_slope",
        "the s of the line a + s f with the smallest mean log-loss log(1 + exp(-y (a + s f))) of "
        "new samples; below 1 if predictions are too extreme",
        probabilities.calibration_slope,
        test_scores.calibration_slope,
    ),
    Observable(
        "calibration_intercept",
        "the a of that line a + s f",
        probabilities.calibration_intercept,
        test_scores.calibration_intercept,
    ),
    Observable(
        "best_temperature",
        "the T with the smallest mean log-loss log(1 + exp(-y f/T)) of new samples; inf if the "
        "scores carry no information about the labels",
        calibration.best_temperature,
        test_scores.best_temperature,
    ),
)
REGISTRY = {observable.name: observable for observable in OBSERVABLES}
"""The observables that can be requested by name alone."""
OTHER_NAMES = {
    "c_statistic": "auc",
    "c_index": "auc",
    "brier": "brier_score",
    "log_loss": "test_loss",
}
"""What some observables are called elsewhere."""
ALONG = "predict it along numbers λ, and choose"
BEST_BY = {
    "auc": f"more of it is better, and no λ is sought for it; {ALONG}, or minimise 'test_loss'",
    "r2": "more of it is better; minimise 'brier_score' for labels ±1, and 'generalisation_error' "
    "for numbers, which are best at the same λ",
    "nagelkerke_r2": "more of it is better; minimise 'test_loss', which is best at the same λ if "
    "the loss is logistic",
    "calibration_slope": "it is best at 1, wherever that is; minimise 'calibration_error'",
    "calibration_intercept": "it is best at 0, wherever that is; minimise 'calibration_error'",
    "best_temperature": "it is best at 1, wherever that is; minimise 'calibration_error'",
    "coverage": f"it is best at the quantile that is wanted; {ALONG}",
    "sensitivity": f"it depends on a threshold; {ALONG}",
    "specificity": f"it depends on a threshold; {ALONG}",
    "net_benefit": f"it depends on a threshold; {ALONG}",
}
"""Why no λ is sought for some quantities, and what to do instead."""


def true_positive_rate(missed: Any, alarms: Any, plus: Any, t: float) -> Any:
    """Share of the samples of label +1 that are not missed."""
    return 1.0 - missed / plus


def true_negative_rate(missed: Any, alarms: Any, plus: Any, t: float) -> Any:
    """Share of the samples of label -1 that raise no false alarm."""
    return 1.0 - alarms / (1.0 - plus)


def net_benefit(missed: Any, alarms: Any, plus: Any, t: float) -> Any:
    """Share of true alarms minus that of false ones, at the odds that the threshold t implies."""
    return plus - missed - alarms * t / (1.0 - t)


MARGIN_LAWS = {
    "test_cdf": ("fraction of new samples whose margin y f is at most the value", False),
    "train_cdf": ("fraction of training samples whose margin y f is at most the value", True),
}
"""The laws of margins: what each means, and whether it is that of training samples."""


@dataclass(frozen=True)
class Quantity:
    """A quantity of decisions: its meaning, and how it follows from counts.

    The counts are the probabilities of +1 that is missed and of -1 that is not, and of +1.
    """

    meaning: str
    of_counts: Callable[..., Any]


DECISIONS = {
    "true_positive_rate": Quantity(
        "sensitivity: probability that a new sample of label +1 is decided to be +1",
        true_positive_rate,
    ),
    "true_negative_rate": Quantity(
        "specificity: probability that a new sample of label -1 is decided to be -1",
        true_negative_rate,
    ),
    "net_benefit": Quantity(
        "probability of a true +1, minus t/(1 - t) times that of a false +1, at the threshold t",
        net_benefit,
    ),
}
"""What is known of decisions at thresholds of the probability 1/(1 + exp(-f))."""
OF_DECISIONS = {
    "sensitivity": "true_positive_rate",
    "recall": "true_positive_rate",
    "specificity": "true_negative_rate",
    **{name: name for name in DECISIONS},
}
"""Their names, and those that they have elsewhere."""


def decisions(model: Model, argument: str, at: ArrayLike) -> tuple[Observable, ...]:
    """The quantities of decisions at some thresholds of probability.

    Raises
    ------
    InvalidArgumentError
        If the values of the `argument` are not between 0 and 1, or labels are not ±1.
    """
    values = tuple(finite_vector(argument, at).tolist())
    if outside := [t for t in values if not 0.0 < t < 1.0]:
        raise InvalidArgumentError(argument, outside[0], "probabilities above 0 and below 1")
    if model.task is not Task.CLASSIFICATION:
        raise InvalidArgumentError(
            "model", model, "one whose labels are ±1: only these are decided at a threshold"
        )
    return tuple(
        Observable(
            name,
            quantity.meaning,
            probabilities.Decision(quantity.of_counts, values),
            test_scores.Decisions(quantity.of_counts, values),
            at=values,
            dimension="decision_threshold",
        )
        for name, quantity in DECISIONS.items()
    )


def _unknown(name: object) -> InvalidArgumentError:
    """The error for a name that is no observable."""
    if name in OF_DECISIONS:
        return InvalidArgumentError.because(
            "observables",
            f"= {name!r} depends on a threshold",
            f"give decision_thresholds=[…] and read {OF_DECISIONS[str(name)]!r}",
        )
    known, given = ", ".join(map(repr, REGISTRY)), str(name).lower()
    near = did_you_mean(OTHER_NAMES.get(given, given), REGISTRY)
    return InvalidArgumentError("observables", name, f"one of {known}{near}")


def margin_laws(model: Model, argument: str, at: ArrayLike) -> tuple[Observable, ...]:
    """The distribution functions of the margins of new and of training samples, at some values.

    Raises
    ------
    InvalidArgumentError
        If the values of the `argument` are not numbers, or the model has real labels.
    """
    values = tuple(finite_vector(argument, at).tolist())
    if model.task is not Task.CLASSIFICATION:
        raise InvalidArgumentError(
            "model", model, "one whose labels are ±1: real labels have no margins"
        )
    return tuple(
        Observable(
            name,
            meaning,
            distribution.MarginLaw(values, training=training),
            test_scores.MarginFractions(values, training=training),
            at=values,
        )
        for name, (meaning, training) in MARGIN_LAWS.items()
    )


def chosen(model: Model, names: str | Iterable[str]) -> tuple[Observable, ...]:
    """The observables of some names, one or many, each once.

    Raises
    ------
    InvalidArgumentError
        For a name that is unknown, or that makes no sense for the model's labels.
    """
    try:
        found = dict.fromkeys([names] if isinstance(names, str) else names)
    except TypeError:
        raise InvalidArgumentError("observables", names, "a sequence of names") from None
    if model.task is Task.CLASSES:
        found.pop("test_loss", None)  # it is always predicted
    for name in found:
        if name not in REGISTRY:
            raise _unknown(name)
        if model.task not in REGISTRY[name].tasks:
            numbers_asked = REGISTRY[name].tasks == NUMBERS
            raise InvalidArgumentError.because(
                "observables",
                f"= {name!r} needs {'labels that are numbers' if numbers_asked else 'two classes'}",
                f"{model.teacher} gives {GIVEN[model.task]}",
            )
        numbers_given = model.task is Task.REGRESSION
        if name == "r2" and numbers_given and not np.isfinite(real(model.teacher).moments.second):
            raise InvalidArgumentError.because(
                "observables",
                "= 'r2' needs labels of finite variance",
                f"{model.teacher} has none; clean_error and mean_absolute_error may exist",
            )
    return tuple(REGISTRY[name] for name in found)
