"""The models of this package as estimators of scikit-learn, fitted exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, check_count, check_number, knows_penalty, resolve
from hiddenmanifold.data.leave_one_out import best
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.errors import InvalidArgumentError, plural
from hiddenmanifold.features.activations import Activation
from hiddenmanifold.features.activations import resolved as resolved_activation
from hiddenmanifold.features.projections import REGISTRY as PROJECTIONS
from hiddenmanifold.features.projections import Projection
from hiddenmanifold.losses import REGISTRY as LOSSES
from hiddenmanifold.losses import ConvexLoss, LabelLoss
from hiddenmanifold.simulation.fit import check_labels, fit_path

try:
    from sklearn import base
    from sklearn.utils import check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError(
        "hm.estimators needs scikit-learn 1.6 or newer: pip install 'hiddenmanifold[data]'"
    ) from error


class RandomFeaturesTransformer(
    base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, base.BaseEstimator
):
    r"""Random features :math:`\sigma(F^\top c/\sqrt d)` of the columns c, as a transformer.

    Hadamard and cosine projections are fast transforms, of cost :math:`O(p\log p)` per sample.

    Parameters
    ----------
    n_features : int
        Number p of features.
    activation : str, Activation or callable
        The function σ, as in `hm.Model`.
    projection : str or Projection
        The law of F, as in `hm.Model`.
    scale : "common", "standard" or None
        "common" centres the columns and divides them all by one number, so that the variance of
        what σ receives is 1 on average; "standard" centres them and divides each by its own
        standard deviation; None leaves them as they are. `fit` computes means and divisors.
    random_state : int, RandomState or None
        The seed of F.
    """

    def __init__(
        self,
        n_features: int = 100,
        activation: str | Activation | Callable[[Array], Array] = "relu",
        projection: str | Projection = "gaussian",
        *,
        scale: Literal["common", "standard"] | None = "common",
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.activation = activation
        self.projection = projection
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomFeaturesTransformer:
        """Draw F, and find the scale."""
        p = check_count("n_features", self.n_features)
        self._activation = resolved_activation(self.activation)
        projection = resolve("projection", self.projection, Projection, PROJECTIONS)
        if self.scale not in ("common", "standard", None):
            raise InvalidArgumentError("scale", self.scale, "'common', 'standard' or None")
        X = validate_data(self, X, dtype=float)
        d = X.shape[1]
        self.mean_, self.scale_ = np.zeros(d), np.ones(d)
        if self.scale is not None:
            self.mean_, unit = X.mean(0), X.std(0)
            if self.scale == "common":
                unit = np.full(d, np.sqrt(np.mean(unit**2)))
            self.scale_ = np.where(unit > 0, unit, 1.0)
        seed = check_random_state(self.random_state).randint(2**31)
        self._map = projection.sample(d, p, np.random.default_rng(seed))
        self._n_features_out = p
        return self

    def transform(self, X: Any) -> Array:
        """The features of some samples."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        rows = (X - self.mean_) / self.scale_
        return self._activation(self._map.left(rows) / np.sqrt(X.shape[1]))


class _Linear(base.BaseEstimator):
    """What classifier and regressor share: an exact fit, at a given λ or the one it chooses."""

    @knows_penalty()
    def __init__(
        self, loss: str | ConvexLoss = "square", regularisation: float | Literal["loo"] = "loo"
    ) -> None:
        self.loss = loss
        self.regularisation = regularisation

    def _fit(self, X: Array, y: Array, task: Task) -> None:
        loss = resolve("loss", self.loss, ConvexLoss, LOSSES)
        if task not in loss.tasks:
            raise InvalidArgumentError("loss", self.loss, f"a loss for {task}")
        if isinstance(loss, LabelLoss):
            check_labels(loss, y)
        lam = self.regularisation
        if isinstance(lam, str):
            if lam != "loo":
                raise InvalidArgumentError("regularisation", lam, "a number or 'loo'")
            lam = _best(loss, task, X, y)
        check_number("regularisation", lam, 0.0, open_low=not loss.quadratic)
        (fit,) = fit_path(loss, task, X, y, np.array([lam], dtype=float), intercept=True)
        self.regularisation_ = float(lam)
        self.optimality_ = fit.optimality
        self._predictor = loss.predictor
        self._weights, self._intercept = fit.w / np.sqrt(X.shape[1]), fit.b

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        out: Array = validate_data(self, X, dtype=float, reset=False) @ self._weights
        return out + self._intercept


class GLMRegressor(base.RegressorMixin, _Linear):
    r"""A linear model :math:`f = x\cdot w/\sqrt p + b`, fitted exactly with a convex loss.

    Labels are predicted by f itself; with Poisson and Gamma losses by its exponential, and with the
    binomial loss by the number of trials times its logistic function.

    Parameters
    ----------
    loss : str or Loss
        As in `hm.Model`.
    regularisation : float or "loo"
        The λ of the objective; "loo" takes the one of least leave-one-out loss: exact for the
        square loss, to one Newton step for smooth losses, and over ten folds for losses whose
        slope jumps.

    Attributes
    ----------
    coef_, intercept_ : array, float
        w/√p and b, as scikit-learn has them.
    regularisation_ : float
        The λ that was used.
    optimality_ : float
        A bound on the fit's relative distance from its minimum.
    """

    def fit(self, X: Any, y: Any) -> GLMRegressor:
        """Fit weights and intercept."""
        X, y = validate_data(self, X, y, dtype=float, y_numeric=True)
        self._fit(X, np.asarray(y, dtype=float), Task.REGRESSION)
        self.coef_, self.intercept_ = self._weights, self._intercept
        return self

    def predict(self, X: Any) -> Array:
        """Predicted labels."""
        scores = self._scores(X)
        return self._predictor(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        loss = LOSSES.get(self.loss, ConvexLoss)() if isinstance(self.loss, str) else self.loss
        if isinstance(loss, LabelLoss):
            tags.target_tags.positive_only = not loss.allows(np.array([-1.0])).any()
        return tags


def _is_logistic(estimator: Any) -> bool:
    return estimator.loss == "logistic" or type(estimator.loss) is LOSSES["logistic"]


class GLMClassifier(base.ClassifierMixin, _Linear):
    """Classification of two classes; parameters and attributes are those of `GLMRegressor`."""

    def fit(self, X: Any, y: Any) -> GLMClassifier:
        """Fit weights and intercept."""
        X, y = validate_data(self, X, y, dtype=float)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            kind = type_of_target(y)
            raise InvalidArgumentError.because(
                "y",
                f"has {plural(len(self.classes_), 'class', 'classes')}",
                "give two. Only binary classification is supported. The type of the target is "
                f"{kind}",
            )
        self._fit(X, np.where(which == 1, 1.0, -1.0), Task.CLASSIFICATION)
        self.coef_, self.intercept_ = self._weights[None], np.array([self._intercept])
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores, positive for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """Predicted classes."""
        second = self._scores(X) > 0
        return self.classes_[second.astype(int)]

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of both classes; only with the logistic loss."""
        score = self._scores(X)
        return np.column_stack([special.expit(-score), special.expit(score)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _best(loss: ConvexLoss, task: Task, X: Array, y: Array) -> float:
    """The regularisation of least leave-one-out loss; 1 if the sample is too small or constant."""
    if len(y) < 3 or not np.ptp(X, axis=0).any():
        return 1.0
    return best(loss, task, Ridge.of(X, y), y)
