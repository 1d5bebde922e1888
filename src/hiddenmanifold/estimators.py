"""The models of this package as estimators of scikit-learn, fitted exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, check_count, check_number, knows_penalty, resolve
from hiddenmanifold.data.class_heads import best_of_classes
from hiddenmanifold.data.leave_one_out import best
from hiddenmanifold.data.misclassification import classes_of
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.errors import InvalidArgumentError, plural
from hiddenmanifold.features.activations import Activation
from hiddenmanifold.features.activations import resolved as resolved_activation
from hiddenmanifold.features.projections import REGISTRY as PROJECTIONS
from hiddenmanifold.features.projections import Projection
from hiddenmanifold.losses import REGISTRY as LOSSES
from hiddenmanifold.losses import ConvexLoss, LabelLoss
from hiddenmanifold.simulation.class_fits import fit_classes
from hiddenmanifold.simulation.fit import check_labels, fit_path

try:
    from sklearn import base
    from sklearn.utils import check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError(
        "hm.estimators needs scikit-learn 1.6 or newer: pip install 'hiddenmanifold[data]' (in a "
        "folder of its sources: '.[data]')"
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
        self.regularisation_ = float(lam)
        self._predictor = loss.predictor
        lams = np.array([lam], dtype=float)
        self._intercept: float | Array
        if task is Task.CLASSES:
            (fit,) = fit_classes(loss, X, classes_of(y), y.shape[1], lams, intercept=True)
            weights, self._intercept, self.optimality_ = fit.W, fit.b, fit.optimality
        else:
            (one,) = fit_path(loss, task, X, y, lams, intercept=True)
            weights, self._intercept, self.optimality_ = one.w, one.b, one.optimality
        self._weights = weights / np.sqrt(X.shape[1])

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


def _has_probabilities(estimator: Any) -> bool:
    return _is(estimator, "logistic") or _is(estimator, "softmax")


def _is(estimator: Any, name: str) -> bool:
    return estimator.loss == name or type(estimator.loss) is LOSSES[name]


class GLMClassifier(base.ClassifierMixin, _Linear):
    """Classification; parameters and attributes are those of `GLMRegressor`.

    More than two classes are fitted together, a score for each, of which the highest is predicted:
    with the square loss on columns of 0 and 1, as by `RidgeClassifier`, or with "softmax", as by
    `LogisticRegression`. Of two classes, softmax is the logistic loss with half of λ. Other losses
    are for two classes; scikit-learn's `OneVsRestClassifier` makes several of these.
    """

    def fit(self, X: Any, y: Any) -> GLMClassifier:
        """Fit weights and intercept."""
        X, y = validate_data(self, X, y, dtype=float)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        K = len(self.classes_)
        if K < 2 or (K > 2 and not self._several):
            remedy = "give two"
            if K > 2:  # the words that scikit-learn looks for
                remedy += (
                    ", or loss='square' or 'softmax'. Only binary classification is supported by "
                    f"loss={self.loss!r}. The type of the target is {type_of_target(y)}"
                )
            found = f"has {plural(K, 'class', 'classes')}"
            raise InvalidArgumentError.because("y", found, remedy)
        if K > 2 or _is(self, "softmax"):
            self._fit(X, np.eye(K)[which], Task.CLASSES)
        else:
            self._fit(X, np.where(which == 1, 1.0, -1.0), Task.CLASSIFICATION)
        if self._weights.ndim == 2 and K == 2:  # as all binary classifiers have one score
            both = self._weights, np.asarray(self._intercept)
            self._weights, self._intercept = (a[..., 1] - a[..., 0] for a in both)
        self.coef_, self.intercept_ = np.atleast_2d(self._weights.T), np.ravel(self._intercept)
        return self

    @property
    def _several(self) -> bool:
        """Whether the loss is of any number of classes."""
        return _is(self, "square") or _is(self, "softmax")

    def decision_function(self, X: Any) -> Array:
        """Scores: of two classes one, positive for the second; of more one for each."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """Predicted classes."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(1) if scores.ndim == 2 else (scores > 0).astype(int)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; only with the logistic loss and softmax."""
        scores = self._scores(X)
        if scores.ndim == 2:
            return np.asarray(special.softmax(scores, axis=1))
        return np.column_stack([special.expit(-scores), special.expit(scores)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._several
        return tags


def _best(loss: ConvexLoss, task: Task, X: Array, y: Array) -> float:
    """The regularisation of least leave-one-out loss; 1 if the sample is too small or constant."""
    if len(y) < 3 or not np.ptp(X, axis=0).any():
        return 1.0
    if task is Task.CLASSES and not loss.quadratic:
        return best_of_classes(loss, Ridge.of(X, y), y)
    return best(loss, task, Ridge.of(X, y), y)
