r"""The model: four ingredients that fit together, and the conventions that hold everywhere.

This is the one place where normalisations are stated:

* data :math:`c \sim N(0, I_d)`, field :math:`\nu = c\cdot\theta/\sqrt d` with
  :math:`|\theta|^2 = \rho d`, features :math:`x = \sigma(F^\top c/\sqrt d) \in R^p`;
* prediction :math:`f = x\cdot w/\sqrt p + b`;
* objective :math:`\sum_{\mu=1}^n a^\mu \ell(y^\mu, f^\mu) + \tfrac\lambda2 |w|^2`, a sum over the
  samples (not a mean) with weights a that are 1 unless they are given, the intercept b not
  penalised;
* :math:`\alpha = n/p`, :math:`\gamma = d/p`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiddenmanifold import losses, teachers
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import PENALTIES, Task, knows_penalty, resolve
from hiddenmanifold.errors import (
    BlindFeaturesWarning,
    IncompatibleIngredientsError,
    InvalidArgumentError,
    shown,
)
from hiddenmanifold.features import Features, activations, kernels, projections
from hiddenmanifold.features.choice import chosen_features
from hiddenmanifold.features.covariance import check_means
from hiddenmanifold.losses import predictors
from hiddenmanifold.losses.predictors import Predictor
from hiddenmanifold.losses.schemes import check_scheme_name, check_task
from hiddenmanifold.notebooks import table
from hiddenmanifold.weights import EQUAL, WeightLaw, Weights, weights_of

BASES: Mapping[str, type] = {
    "activation": activations.Activation,
    "projection": projections.Projection,
    "teacher": teachers.Teacher,
    "loss": losses.ConvexLoss,
}
REGISTRIES: Mapping[str, Mapping[str, type]] = {
    "activation": activations.REGISTRY,
    "projection": projections.REGISTRY,
    "teacher": teachers.REGISTRY,
    "loss": losses.REGISTRY,
}
"""Base class, and classes by name, of each of `checks.INGREDIENT_KINDS`."""
LATER = "λ is no part of a model: give regularisation= to predict, simulate or compare"
OBJECTIVE = (
    "minimise over w (and b, if free): sum over the n samples of loss(y, f) + (regularisation/2) "
    "|w|², with prediction f = x·w/√p + b; a sum, not a mean; b is not penalised"
)
KERNEL_OBJECTIVE = (
    "minimise over functions g (and b, if free): sum over the n samples of loss(y, f) + "
    "(regularisation/2) |g|², with prediction f = g(c) + b and the norm of the kernel's Hilbert "
    "space; a sum, not a mean; b is not penalised"
)


@dataclass(frozen=True, init=False, repr=False)
class Model:
    """A learning problem: features, labels and the loss that is minimised.

    Parameters
    ----------
    features : Features, optional
        The inputs. ``Model(activation=σ, projection=F, ...)`` is short for
        ``Model(features=RandomFeatures(σ, F), ...)``.
    activation : str, Activation or callable
        The nonlinearity σ of random features.
    projection : str or Projection
        The matrix F of random features.
    kernel : str, KernelFunction or callable
        A kernel in place of random features: ``Model(kernel=h, ...)`` is short for
        ``Model(features=Kernel(h), ...)``.
    teacher : str or Teacher
        The rule that makes labels.
    loss : str or Loss
        The convex loss.
    intercept : bool
        Whether to fit an unpenalised intercept. Features of non-zero mean (κ0 ≠ 0), and kernels
        with h(0) > 0, provide one in any case.
    prediction : str, Predictor or callable, optional
        The function f̂ of the score f by which labels are predicted: "identity", "sign", "exp",
        "logistic" or any other. By default it is the sign for labels ±1, and else what the loss
        estimates the mean by: the exponential for Poisson and Gamma losses, trials times the
        logistic function for the binomial one, otherwise f itself. Errors are those of f̂: the rate
        of errors for labels ±1 and their sign, the mean square error for all others.
    weights : str, mapping, pair or Weights, optional
        How many times the loss of each training sample counts, as `sample_weight` of scikit-learn
        (not normalised: twice all weights are half the λ). For labels ±1 a weight for each class,
        ``{-1: 1.0, 1: 5.0}`` or ``(1.0, 5.0)``, or "balanced", with which both count the same; else
        `hm.weights.Independent`, weights drawn for each sample. Test errors are not weighted.
    scheme : "one-vs-rest", optional
        For several classes, with a loss for labels ±1: K fits, of each class against all others,
        each with the penalty (λ/2)|w_k|²; the class of the highest score is predicted. Losses are
        sums over the K fits.

    Raises
    ------
    InvalidArgumentError
        For an unknown name, an activation that is constant or not finite, a loss that is not
        convex or not what it declares.
    IncompatibleIngredientsError
        If the loss makes no sense for the teacher's labels, or features and teacher disagree about
        the variance of the teacher's field.

    Warns
    -----
    BlindFeaturesWarning
        If the features see nothing of the teacher's field, as those of an even activation.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
    Model(activation=Erf(), projection=Gaussian(), teacher=Sign(...), loss=Logistic(), ...)
    """

    features: Features
    teacher: teachers.Teacher
    loss: losses.ConvexLoss
    intercept: bool
    _prediction: Predictor | None = None
    """The prediction, if it is another than the one that suits labels and loss."""
    weights: Weights | None = None
    scheme: str | None = None

    @knows_penalty(LATER, (*PENALTIES, "regularisation"))
    def __init__(
        self,
        *,
        features: Features | None = None,
        activation: str | activations.Activation | Callable[[Array], Array] | None = None,
        projection: str | projections.Projection | None = None,
        kernel: str | kernels.KernelFunction | Callable[[Array], Array] | None = None,
        teacher: str | teachers.Teacher,
        loss: str | losses.ConvexLoss,
        intercept: bool = False,
        prediction: str | Predictor | Callable[[Array], Array] | None = None,
        weights: str | Mapping[int, float] | tuple[float, float] | Weights | None = None,
        scheme: str | None = None,
    ) -> None:
        chosen = {
            "features": chosen_features(features, activation, projection, kernel),
            "teacher": resolve("teacher", teacher, teachers.Teacher, teachers.REGISTRY),
            "loss": resolve("loss", loss, losses.ConvexLoss, losses.REGISTRY),
        }
        for kind, ingredient in chosen.items():
            object.__setattr__(self, kind, ingredient)
        if not isinstance(intercept, bool | np.bool_):
            raise InvalidArgumentError("intercept", intercept, "True or False")
        object.__setattr__(self, "intercept", bool(intercept))
        if prediction is not None and self.task is Task.CLASSES:
            raise InvalidArgumentError.because(
                "prediction",
                "cannot be chosen for several classes",
                "leave it out: the class of the highest score is predicted",
            )
        if (given := self._predictor(prediction)) != self.prediction:
            object.__setattr__(self, "_prediction", given)
        if (weighting := weights_of(weights)) is not None:  # otherwise stores keep their keys
            object.__setattr__(self, "weights", weighting)
        check_scheme_name(scheme)
        if scheme is not None:
            object.__setattr__(self, "scheme", scheme)
        self._check()
        if self.features.blind and self.teacher.means is None:
            warnings.warn(
                f"{self.features} see nothing of the teacher's field (κ1 = E[zσ(z)] = 0 of an "
                "activation, h'(0) = 0 of a kernel, or features that are not correlated with the "
                "field): in the limit no fit predicts better than a constant",
                BlindFeaturesWarning,
                stacklevel=3,
            )

    def _predictor(self, given: str | Predictor | Callable[[Array], Array] | None) -> Predictor:
        """The prediction that is given, or the one that suits labels and loss."""
        if given is None:
            return self.prediction
        if callable(given) and not isinstance(given, Predictor | type):
            return predictors.Custom(given)
        return resolve("prediction", given, Predictor, predictors.REGISTRY)

    @property
    def prediction(self) -> Predictor:
        """The function of the score by which labels are predicted."""
        if self._prediction is not None:
            return self._prediction
        return predictors.Sign() if self.task is Task.CLASSIFICATION else self.loss.predictor

    @property
    def counts_errors(self) -> bool:
        """Whether errors are rates of wrong labels; else they are mean squares."""
        signs = self.task is Task.CLASSIFICATION and self.prediction == predictors.Sign()
        return signs or self.task is Task.CLASSES

    def _check(self) -> None:
        """Raise unless the ingredients fit together."""
        check_task(self.loss, self.task, self.teacher, self.scheme)
        means = self.teacher.means
        if means is not None:
            check_means(self.features, means)
        elif self.task is Task.CLASSES and self.features.rho is not None:
            raise IncompatibleIngredientsError(
                f"{shown(self.features)} and teacher {self.teacher} do not fit together: these "
                "features know the weights of one field alone; give features of white data"
            )
        if means is None and self.features.rho not in (None, self.teacher.rho):
            raise IncompatibleIngredientsError(
                f"features of a field of variance rho = {self.features.rho} and teacher "
                f"{self.teacher} do not fit together: give the teacher the same rho"
            )
        if isinstance(self.loss, losses.LabelLoss):
            if self.task is Task.REGRESSION and not isinstance(self.teacher, teachers.PointTeacher):
                raise IncompatibleIngredientsError(
                    f"loss {self.loss} of label and score and teacher {self.teacher} do not fit "
                    "together: this loss needs discrete labels, or ones given by a density, as "
                    "teachers.Density"
                )
            losses.check_label_loss(self.loss, self.teacher.typical_labels)
        elif self.loss not in (named() for named in losses.REGISTRY.values()):  # tested as they are
            losses.check_loss(losses.of_shortfall(self.loss))
        if self.weights is not None:
            self.weights.check(self.task)
        self._check_zone()
        self._check_tails()
        self._check_intercept()

    def _check_zone(self) -> None:
        """Raise if all labels lie where the loss is least, so that no weights are fitted."""
        if self.task is not Task.REGRESSION or isinstance(self.loss, losses.LabelLoss):
            return
        low, high = losses.of_shortfall(self.loss).minimisers
        least, largest = teachers.real(self.teacher).label_range
        inside = low < least <= largest < high
        if self.free_intercept:
            inside = largest - least < high - low
        if low < high and inside:
            raise IncompatibleIngredientsError(
                f"loss {self.loss} and teacher {self.teacher} do not fit together: all labels, "
                f"from {least:.4g} to {largest:.4g}, lie where the loss of a constant prediction "
                "is least, and nothing is fitted; choose a smaller width"
            )

    def _check_tails(self) -> None:
        """Raise if labels have no variance and the loss needs one."""
        if self.task is not Task.REGRESSION or isinstance(self.loss, losses.LabelLoss):
            return
        if losses.of_shortfall(self.loss).bounded_slope:
            return
        teacher = teachers.real(self.teacher)
        problem = ""
        if teacher.moments.second == np.inf:
            problem = "the labels have an infinite variance"
        elif not self.loss.quadratic and not teacher.resolves_variance:
            problem = "the tails of the noise are too heavy to resolve its variance"
        if problem:
            raise IncompatibleIngredientsError(
                f"teacher {self.teacher} and loss {self.loss} do not fit together: {problem}, "
                "which this loss needs; a loss of bounded slope, as huber or absolute, does not"
            )

    def _check_intercept(self) -> None:
        """Raise if features provide an intercept that is penalised, and the labels need one."""
        if self.intercept or not self.features.penalised_intercept or self._symmetric:
            return
        raise IncompatibleIngredientsError(
            f"{self.features} and teacher {self.teacher} do not fit together: a kernel with h(0) = "
            "0 and h''(0) > 0 provides an intercept whose penalty does not vanish, and the limit "
            "of such a fit is not known; fit one with intercept=True, or add a constant to the "
            "kernel"
        )

    @property
    def _symmetric(self) -> bool:
        """Whether the problem is the same if fields, labels and scores change their sign."""
        if isinstance(self.loss, losses.LabelLoss) or self.task is Task.CLASSES:
            return False
        even = self.task is Task.CLASSIFICATION or losses.of_shortfall(self.loss).even
        return even and self.teacher.symmetric and self.weight_law.alike

    @property
    def objective(self) -> str:
        """What a fit minimises, in words."""
        text = KERNEL_OBJECTIVE if self.features.infinite else OBJECTIVE
        return text if self.weights is None else text.replace("of loss", "of weight times loss")

    @property
    def least_squares(self) -> bool:
        """Whether fits are those of least squares without weights, which need no penalty."""
        return self.loss.quadratic and self.weights is None

    @property
    def weight_law(self) -> WeightLaw:
        """The law of the weight of a training sample, given its label."""
        return EQUAL if self.weights is None else self.weights.law(self._positive)

    @property
    def mean_weight(self) -> float:
        """The mean weight of a training sample."""
        return 1.0 if self.weights is None else self.weight_law.mean(self._positive)

    @property
    def _positive(self) -> float:
        """The share of the labels +1; of labels that are numbers, all count as one class."""
        if self.task is not Task.CLASSIFICATION:
            return 1.0
        return float(teachers.binary(self.teacher).label_marginals[0])

    @property
    def unweighted(self) -> Model:
        """The same problem, in which every sample counts once."""
        other = copy(self)
        object.__setattr__(other, "weights", None)
        return other

    @property
    def ingredients(self) -> dict[str, object]:
        """The ingredients by argument name: the features, or their activation and projection.

        `name_of` returns the name of each.
        """
        return {**self.features.as_arguments(), "teacher": self.teacher, "loss": self.loss}

    @property
    def unusual(self) -> dict[str, object]:
        """The prediction, if it is another than the one that suits labels and loss, and weights."""
        given = {"prediction": self._prediction, "weights": self.weights}
        return {name: part for name, part in given.items() if part is not None}

    def __repr__(self) -> str:
        parts = {**self.ingredients, "intercept": self.intercept, **self.unusual}
        if self.scheme is not None:
            parts["scheme"] = self.scheme
        return f"Model({', '.join(f'{name}={part!r}' for name, part in parts.items())})"

    def _repr_html_(self) -> str:
        rows = {**self.ingredients, "intercept": "yes" if self.intercept else "no", **self.unusual}
        if self.scheme is not None:
            rows["scheme"] = self.scheme
        return table("Model", rows, f"Objective: {self.objective}.")

    def with_loss(
        self, loss: str | losses.ConvexLoss, prediction: Predictor | None = None
    ) -> Model:
        """The same problem with another loss, and perhaps another prediction."""
        other = copy(self)  # the user was warned of blind features when the original was built
        object.__setattr__(other, "loss", resolve("loss", loss, losses.ConvexLoss, losses.REGISTRY))
        if prediction is not None and prediction != other.prediction:
            object.__setattr__(other, "_prediction", prediction)
        other._check()
        return other

    @property
    def activation(self) -> activations.Activation:
        """The activation of random features."""
        return self._of_random_features("activation")  # type: ignore[no-any-return]

    @property
    def projection(self) -> projections.Projection:
        """The projection of random features."""
        return self._of_random_features("projection")  # type: ignore[no-any-return]

    def _of_random_features(self, name: str) -> Any:
        if name not in (parts := self.features.as_arguments()):
            raise AttributeError(f"{self.features} have no {name} of their own")
        return parts[name]

    @property
    def task(self) -> Task:
        """Regression, classification or several classes."""
        return self.teacher.task

    @property
    def free_intercept(self) -> bool:
        """Whether the prediction has a free intercept, fitted or provided by κ0 ≠ 0."""
        return bool(self.intercept or self.features.mean != 0.0)
