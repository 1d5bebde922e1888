"""What the models of scikit-learn minimise, in the conventions of this package."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from hiddenmanifold.checks import Task
from hiddenmanifold.data.conversions import from_ridge_alpha, from_sklearn_C
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss

FREE = 10.0
"""From this `intercept_scaling` on, an intercept counts as free."""
PLAIN = {
    "fit_intercept": ((True,), "curves are those of models with an intercept"),
    "class_weight": ((None,), "classes count as they come"),
    "positive": ((False,), "weights are free"),
    "penalty": (("l2", "deprecated"), "weights are penalised by their squares"),
    "l1_ratio": ((None, 0, 0.0), "weights are penalised by their squares"),
}
"""Options that must have one of some values, and what that means."""


class Objective(NamedTuple):
    """The loss of a model and its λ; None of one that minimises something else."""

    loss: str | Loss | None
    regularisation: float | None


def objective(model: Any, p: int) -> Objective:
    """The objective of a model on p features.

    Raises
    ------
    InvalidArgumentError
        If the model is a known one, with an option that has no counterpart here.
    """
    name = type(model).__name__.removesuffix("CV")
    if hasattr(model, "regularisation_"):
        return Objective(model.loss, float(model.regularisation_))
    linear = name == "SVC" and model.kernel == "linear"
    if name not in ("Ridge", "RidgeClassifier", "LogisticRegression", "LinearSVC") and not linear:
        return Objective(None, None)
    for option, (allowed, meaning) in PLAIN.items():
        if (given := getattr(model, option, allowed[0])) not in allowed:
            raise InvalidArgumentError(option, given, f"{allowed[0]!r}: {meaning}")
    if name.startswith("Ridge"):
        alpha = _single("alpha", getattr(model, "alpha_", getattr(model, "alpha", None)))
        return Objective("square", float(from_ridge_alpha(alpha, p)))
    lam = float(from_sklearn_C(_single("C", getattr(model, "C_", model.C)), p))
    if name == "LogisticRegression":
        if model.solver == "liblinear":
            _warn_of_intercept(model)
        return Objective("logistic", lam)
    if linear:
        return Objective("hinge", lam)
    _warn_of_intercept(model)
    # its squared hinge lacks our ½
    return Objective("hinge", lam) if model.loss == "hinge" else Objective("squared_hinge", lam / 2)


def task_of(model: Any, y: Any) -> Task | None:
    """The task of a model; None if it says none, or fits numbers to what may be two classes."""
    tags = model.__sklearn_tags__() if hasattr(model, "__sklearn_tags__") else None
    kind = getattr(tags, "estimator_type", None)
    if kind == "classifier":
        return Task.CLASSIFICATION
    several = len(np.unique(np.asarray(y))) > 2
    return Task.REGRESSION if kind == "regressor" and several else None


def _single(name: str, value: Any) -> float:
    numbers = np.ravel(value)
    if len(numbers) != 1:
        raise InvalidArgumentError(name, value, "one number")
    return float(numbers[0])


def _warn_of_intercept(model: Any) -> None:
    if model.intercept_scaling < FREE:
        warnings.warn(
            f"{type(model).__name__} with intercept_scaling={model.intercept_scaling:g} penalises "
            "its intercept, which is free here: predictions differ a little, and are the same with "
            f"intercept_scaling={FREE:g} or more",
            stacklevel=4,
        )
