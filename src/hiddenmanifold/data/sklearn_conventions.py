r"""The conventions of scikit-learn: λ as its C and alpha, and what its models minimise.

scikit-learn fits :math:`X\cdot v` and penalises :math:`|v|^2`; we fit :math:`x\cdot w/\sqrt p` and
penalise :math:`|w|^2`. With features :math:`X = s\,x` predictions are the same for
:math:`w = s\sqrt p\,v`, so that λ of w is :math:`s^2 p\,\lambda` of v.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, check_number, check_unmasked, finite_matrix
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import ConvexLoss

SCALE_FACTOR = 4.0
"""Largest factor between the root mean square of features and the 1 or 1/√p it is taken for."""
FREE_INTERCEPT_SCALING = 10.0
"""Least `intercept_scaling` at which the penalty of an intercept is neglected."""
SUPPORTED_OPTIONS = {
    "fit_intercept": ((True,), "curves are those of models with an intercept"),
    "positive": ((False,), "weights are free"),
    "penalty": (("l2", "deprecated"), "weights are penalised by their squares"),
    "l1_ratio": ((None, 0, 0.0), "weights are penalised by their squares"),
}
"""Options of scikit-learn: the values that have a counterpart here, and what these mean."""
AVERAGED_LOSSES = {"PoissonRegressor": "poisson", "GammaRegressor": "gamma"}
"""Models of scikit-learn that minimise the mean loss, not the sum, and their losses here."""
RECOGNISED = ("Ridge", "RidgeClassifier", "LogisticRegression", "LinearSVC", *AVERAGED_LOSSES)
"""Models of scikit-learn whose objective is one of ours, beside the linear SVC."""
NOT_PREDICTED = (
    "{} of more than two classes compares pairs of them or has a loss with a kink, which is not "
    "predicted: curves are by default those of ridge regression, and with loss='squared_hinge' "
    "those of LinearSVC; positive=one predicts a single class of it"
)
"""Said of models of several classes that have no counterpart."""


def to_sklearn_C(
    regularisation: Any,
    p: Any = None,
    *,
    features: ArrayLike | None = None,
    scale: float | None = None,
) -> Any:
    """The `C` of scikit-learn's classifiers that fits the same model.

    scikit-learn minimises `C Σ loss(y, X·v) + ½|v|²`; that is ours for C = 1/(λ s² p) with
    X = s x. For logistic and hinge loss; halve it for the squared hinge of `LinearSVC`, which lacks
    our ½. `LinearSVC` also penalises its intercept: with one, use `LogisticRegression` or `SVC`.

    Parameters
    ----------
    regularisation : number, array or DataArray
        Our λ, positive.
    p : whole number, array or DataArray, optional
        Number of features. Without `features` and `scale` these are taken to be the x of the
        model, of order one.
    features : array (n, p), optional
        The features X that scikit-learn is given, instead of p: their size shows whether they are
        the x of the model, or x/√p as those of `RBFSampler` and `Nystroem`.
    scale : float, optional
        The s of X = s x, if it is neither 1 nor 1/√p, or the features do not tell.

    Returns
    -------
    float, array or DataArray
        Like λ and p.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or the features are too few to tell their scale.
    """
    return 1.0 / (_numbers("regularisation", regularisation) * _weight(p, features, scale))


def from_sklearn_C(
    C: Any, p: Any = None, *, features: ArrayLike | None = None, scale: float | None = None
) -> Any:
    """Our λ that fits the same model as scikit-learn's classifiers with their `C`.

    The inverse of `to_sklearn_C`, with its parameters.
    """
    return 1.0 / (_numbers("C", C) * _weight(p, features, scale))


def to_ridge_alpha(
    regularisation: Any,
    p: Any = None,
    *,
    features: ArrayLike | None = None,
    scale: float | None = None,
) -> Any:
    """The `alpha` of scikit-learn's `Ridge` that fits the same model.

    scikit-learn minimises `Σ(y - X·v)² + alpha |v|²`; that is ours for alpha = λ s² p with
    X = s x. The parameters are those of `to_sklearn_C`; λ may be zero.
    """
    return _numbers("regularisation", regularisation, zero=True) * _weight(p, features, scale)


def from_ridge_alpha(
    alpha: Any, p: Any = None, *, features: ArrayLike | None = None, scale: float | None = None
) -> Any:
    """Our λ that fits the same model as scikit-learn's `Ridge` with its `alpha`.

    The inverse of `to_ridge_alpha`, with its parameters.
    """
    return _numbers("alpha", alpha, zero=True) / _weight(p, features, scale)


def to_glm_alpha(
    regularisation: Any,
    p: Any = None,
    *,
    n: Any = None,
    features: ArrayLike | None = None,
    scale: float | None = None,
) -> Any:
    """The `alpha` of scikit-learn's `PoissonRegressor` and `GammaRegressor` for the same model.

    scikit-learn minimises `Σ deviance(y, exp(X·v))/(2n) + ½ alpha |v|²`, whose half deviances are
    our losses up to a constant; that is ours for alpha = λ s² p/n with X = s x.

    Its `HuberRegressor` and `QuantileRegressor` have no counterpart here: the former also fits the
    scale of the residuals, the latter penalises `|v|` instead of `|v|²`.

    Parameters
    ----------
    regularisation, p, features, scale
        As in `to_sklearn_C`; λ may be zero.
    n : whole number, array or DataArray, optional
        Number of samples that are fitted; by default that of `features`.

    Returns
    -------
    float, array or DataArray
        Like λ, p and n.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or the features are too few to tell their scale.
    """
    weight = _weight(p, features, scale) / _samples(n, features)
    return _numbers("regularisation", regularisation, zero=True) * weight


def from_glm_alpha(
    alpha: Any,
    p: Any = None,
    *,
    n: Any = None,
    features: ArrayLike | None = None,
    scale: float | None = None,
) -> Any:
    """Our λ that fits the same model as `PoissonRegressor` or `GammaRegressor` with their `alpha`.

    The inverse of `to_glm_alpha`, with its parameters.
    """
    weight = _weight(p, features, scale) / _samples(n, features)
    return _numbers("alpha", alpha, zero=True) / weight


def _samples(n: Any, features: ArrayLike | None) -> Any:
    """The number of samples, from the features unless it is given."""
    if n is None:
        if features is None:
            raise InvalidArgumentError.because("n", "is missing", "give n or `features`")
        n = len(finite_matrix("features", features))
    return _whole("n", n)


def _whole(name: str, values: Any) -> Any:
    """Positive whole numbers."""
    size = _numbers(name, values)
    if (np.asarray(size) % 1).any():
        raise InvalidArgumentError(name, values, "whole numbers")
    return size


def _weight(p: Any, features: ArrayLike | None, scale: float | None) -> Any:
    """The s²p that turns our λ into that of scikit-learn's weights."""
    if features is not None:
        X = finite_matrix("features", features)
        if p is not None and not np.array_equal(p, X.shape[1]):
            raise InvalidArgumentError("p", p, f"{X.shape[1]} as in `features`, or left out")
        p = X.shape[1]
        scale = _scale_of(X) if scale is None else scale
    elif p is None:
        raise InvalidArgumentError.because("p", "is missing", "give p or `features`")
    size = _whole("p", p)
    if scale is None:
        return size
    check_number("scale", scale, 0.0, open_low=True)
    return scale**2 * size


def _scale_of(X: Array) -> float:
    """The scale of features, 1 or 1/√p: the one that their root mean square is near."""
    spread, small = float(np.sqrt(np.mean(X**2))), float(X.shape[1] ** -0.5)
    near = [s for s in (1.0, small) if s / SCALE_FACTOR < spread < s * SCALE_FACTOR]
    if len(near) != 1:
        raise InvalidArgumentError.because(
            "features",
            f"have a root mean square of {spread:.3g}, which does not tell whether they are of "
            f"order 1 or of order 1/√p = {small:.3g}",
            "give the number that multiplied the model's features: scale=1, scale=p**-0.5 or "
            "another",
        )
    return near[0]


def _numbers(name: str, values: Any, *, zero: bool = False) -> Any:
    """A number as a float, sequences as arrays; raise unless all are finite and positive.

    With `zero` they may be zero. A DataArray stays one.
    """
    check_unmasked(name, values)
    plain = np.asarray(values)
    allowed = f"a finite number {'of at least' if zero else 'above'} 0, or an array of such"
    if plain.dtype.kind not in "iuf" or not plain.size:
        raise InvalidArgumentError(name, values, allowed)
    good = np.isfinite(plain) & ((plain > 0) | ((plain == 0) & zero))
    if not good.all():
        raise InvalidArgumentError(name, float(plain[~good][0]), allowed)
    if hasattr(values, "dims"):
        return values
    return plain.astype(float) if plain.ndim else float(plain)


class Objective(NamedTuple):
    """The loss and the λ that a model minimises; both None if it minimises something else."""

    loss: str | ConvexLoss | None
    regularisation: float | None


def objective(
    model: Any, p: int, n: int | None = None, *, task: Task = Task.CLASSIFICATION
) -> Objective:
    """The objective of a model on p features of n samples.

    n matters only to scikit-learn's models of counts and of positive labels, which average losses;
    without it they have a loss and no λ. The task is that of the labels to predict: they may be one
    class of the model against all others.

    Raises
    ------
    InvalidArgumentError
        If the model is a known one, with an option that has no counterpart here.
    """
    name = type(model).__name__.removesuffix("CV")
    if hasattr(model, "regularisation_"):
        return Objective(model.loss, float(model.regularisation_))
    if name == "OneVsRestClassifier":
        return objective(getattr(model, "estimators_", [model.estimator])[0], p, n)
    linear = name == "SVC" and model.kernel == "linear"
    if name not in RECOGNISED and not linear:
        return Objective(None, None)
    for option, (allowed, meaning) in SUPPORTED_OPTIONS.items():
        if (given := getattr(model, option, allowed[0])) not in allowed:
            raise InvalidArgumentError(option, given, f"{allowed[0]!r}: {meaning}")
    if name.startswith("Ridge"):
        alpha = _single("alpha", getattr(model, "alpha_", getattr(model, "alpha", None)))
        return Objective("square", float(from_ridge_alpha(alpha, p)))
    if name in AVERAGED_LOSSES:
        averaged = None if n is None else float(from_glm_alpha(model.alpha, p, n=n))
        return Objective(AVERAGED_LOSSES[name], averaged)
    C = _single("C", model.C_ if hasattr(model, "C_") else model.C)
    lam = float(from_sklearn_C(C, p))
    return _of_classifier(model, name, lam, several=task is Task.CLASSES)


def _of_classifier(model: Any, name: str, lam: float, *, several: bool) -> Objective:
    """The objective of a classifier whose C is that of our λ."""
    apart = (
        getattr(model, "solver", "") == "liblinear" or getattr(model, "multi_class", "") == "ovr"
    )
    if several and (name == "SVC" or getattr(model, "loss", "") == "hinge"):
        warnings.warn(NOT_PREDICTED.format(type(model).__name__), stacklevel=4)
        return Objective(None, None)
    if name == "LogisticRegression":
        if model.solver == "liblinear":
            _warn_of_intercept(model)
        return Objective("softmax" if several and not apart else "logistic", lam)
    if name == "SVC":
        return Objective("hinge", lam)
    _warn_of_intercept(model)
    # its squared hinge lacks our ½
    return Objective("hinge", lam) if model.loss == "hinge" else Objective("squared_hinge", lam / 2)


def counterpart(loss: str, task: Task, lam: float, p: int) -> str:
    """scikit-learn's model of a loss and a λ on p features, as code; empty if there is none."""
    if loss == "square":
        name = "Ridge" if task is Task.REGRESSION else "RidgeClassifier"
        return f"{name}(alpha={to_ridge_alpha(lam, p):.4g})"
    if task is Task.CLASSES and loss == "logistic":
        return f"OneVsRestClassifier(LogisticRegression(C={to_sklearn_C(lam, p):.4g}))"
    if loss == "squared_hinge":  # which lacks our ½ there, and penalises the intercept
        return f"LinearSVC(C={0.5 * to_sklearn_C(lam, p):.4g}, intercept_scaling=1000)"
    models = {
        "logistic": "LogisticRegression(",
        "softmax": "LogisticRegression(",
        "hinge": "SVC(kernel='linear', ",
    }
    return f"{models[loss]}C={to_sklearn_C(lam, p):.4g})" if loss in models else ""


def task_of(model: Any, y: Any) -> Task | None:
    """The task of a model; None if it has none, or is a regression on labels of only two values."""
    tags = model.__sklearn_tags__() if hasattr(model, "__sklearn_tags__") else None
    kind = getattr(tags, "estimator_type", None)
    if kind == "classifier":
        return Task.CLASSIFICATION
    several = len(np.unique(np.asarray(y))) > 2
    return Task.REGRESSION if kind == "regressor" and several else None


def _single(name: str, value: Any) -> float:
    numbers = np.unique(np.ravel(value))  # a C chosen for all classes is repeated for each
    if len(numbers) != 1:
        raise InvalidArgumentError(name, value, "one number")
    return float(numbers[0])


def _warn_of_intercept(model: Any) -> None:
    if model.intercept_scaling < FREE_INTERCEPT_SCALING:
        warnings.warn(
            f"{type(model).__name__} with intercept_scaling={model.intercept_scaling:g} penalises "
            "its intercept, which is free here: predictions differ a little, and are the same with "
            f"intercept_scaling={FREE_INTERCEPT_SCALING:g} or more",
            stacklevel=5,
        )
