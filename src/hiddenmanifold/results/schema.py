"""The schema of every dataset: its kind, and the name, meaning and role of each variable.

A dataset says in its attribute ``kind`` which question it answers, and in attributes such as
``teacher`` and ``teacher_noise`` for which model. Every variable has a ``long_name``, its meaning
for people, and a ``role``, its meaning for programs: plots, tables and the explorer read kinds and
roles, never sentences. `datasets.with_schema` writes them, for all functions that return datasets.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from hiddenmanifold.checks import Task
from hiddenmanifold.results.observables import DECISIONS, MARGIN_LAWS, OBSERVABLES

if TYPE_CHECKING:
    import xarray as xr


class Kind(StrEnum):
    """The question that a dataset answers."""

    PREDICTION = "prediction"
    ENSEMBLE = "ensemble"
    BIAS_VARIANCE = "bias_variance"
    INSTABILITY = "instability"
    PAIR = "pair"
    SENSITIVITY = "sensitivity"
    MARGINS = "margins"
    SIMULATION = "simulation"
    SUMMARY = "summary"
    COMPARISON = "comparison"
    THRESHOLD = "threshold"
    PEAK = "peak"
    FEATURES_NEEDED = "features_needed"
    SAMPLES_NEEDED = "samples_needed"
    BAYES_OPTIMAL = "bayes_optimal"
    TRAINING = "training"
    LEARNING_CURVE = "learning_curve"
    BACKTEST = "backtest"


REAL_DATA = frozenset({Kind.LEARNING_CURVE, Kind.BACKTEST})
"""Datasets about a sample of real data instead of a model."""
UNFITTED = frozenset({Kind.THRESHOLD, Kind.BAYES_OPTIMAL})
"""Datasets in which the loss and the intercept of the model play no role."""
ERROR_MEASURES = {
    Task.REGRESSION: "mean square error",
    Task.CLASSIFICATION: "misclassification rate",
    Task.CLASSES: "misclassification rate",
}
"""What the generalisation error is, by the attribute ``task``."""


class Role(StrEnum):
    """What a variable is to a program."""

    COORDINATE = "coordinate"
    ANSWER = "answer"
    """The ratio or regularisation that was sought."""
    ERROR = "error"
    LOSS = "loss"
    OBSERVABLE = "observable"
    DISTRIBUTION = "distribution"
    OVERLAP = "overlap"
    """An order parameter of the theory, and what follows from these alone."""
    DERIVATIVE = "derivative"
    THEORY = "theory"
    """A prediction beside its simulation or measurement."""
    MEASUREMENT = "measurement"
    """A measurement beside its prediction."""
    STANDARD_ERROR = "standard_error"
    LOWER_BOUND = "lower_bound"
    UPPER_BOUND = "upper_bound"
    Z_SCORE = "z_score"
    STATUS = "status"
    """Integers that stand for words, which are the attribute ``flag_meanings``."""
    CERTIFICATE = "certificate"
    """Error estimates of a number, or its basis."""
    COUNT = "count"
    TIME = "time"


class Variable(NamedTuple):
    """The schema's entry for a variable."""

    meaning: str
    role: Role


COUNTED = {"n": "samples", "p": "features", "d": "latent dimensions"}
GENERAL: Mapping[Role, Mapping[str, str]] = {
    Role.COORDINATE: {
        **{
            f"{a}_over_{b}": f"{COUNTED[a]} per {COUNTED[b][:-1]}"
            for a, b in permutations(COUNTED, 2)
        },
        **{name: f"number of {counted}" for name, counted in COUNTED.items()},
        "regularisation": "regularisation λ of the objective; 0 and inf mean the limits",
        "target_error": "generalisation error to reach",
        "time": "time t of gradient flow on the sum of losses; on their mean it is n t",
        "steps": "number of steps of gradient descent on the sum of losses",
        "step": "step of gradient descent on the sum of losses; on their mean it is n times as "
        "large",
        "seed": "index of the random draw of features, teacher and samples",
        "y_f": "margin y f of a sample",
        "decision_threshold": "probability 1/(1 + exp(-f)) from which on a sample is decided to be "
        "+1",
        "class": "number of the class of a sample",
        "predicted": "number of the class that is predicted, that of the highest score",
        "score": "number of the class to which a score belongs",
        "other_score": "number of the class to which another score belongs",
        "top": "number k of the highest scores",
        "members": "number of fits in the ensemble; inf means the limit",
        "regularisation_2": "regularisation λ of the second fit; 0 means the limit",
        "p_2_over_d": "features of the second fit per latent dimension",
        "p_2": "number of features of the second fit",
        "share": "share of the first fit in the mean of both predictions",
        "fit": "number of the fit, 1 or 2",
    },
    Role.ANSWER: {
        "optimal_regularisation": "the regularisation with the smallest test error; 0 and inf "
        "mean the limits",
        "optimal_time": "the time of gradient flow with the smallest test error; 0 and inf mean "
        "the limits",
        "optimal_steps": "the number of steps of gradient descent with the smallest test error; 0 "
        "and inf mean the limits",
    },
    Role.ERROR: {
        "generalisation_error": "test error against new labels drawn by the same noisy rule",
        "clean_error": "test error against the noiseless rule",
        "training_error": "fraction of training samples that are misclassified",
        "class_error": "test error of the samples of one class",
        "confusion": "probability of each predicted class, for new samples of one class",
        "top_error": "probability that the class of a new sample is not among those of the k "
        "highest scores",
        "mean_square_error": "mean over new samples of |y - f|², with the label of several "
        "classes as a vector of zeros and a one",
        "vote_error": "test error of the majority vote of the members, ties ½",
        "irreducible_error": "mean variance of the label given the teacher's field",
        "bias": "mean square distance of the mean score from the mean label",
        "samples_variance": "variance of the score due to the inputs of the training samples",
        "features_variance": "variance of the score due to the random features, at given samples",
        "noise_variance": "variance of the score due to the noise of the training labels, at given "
        "features and inputs",
        "error_of_mean_over_features": "test error of the mean score over draws of the features",
        "error_of_mean_over_features_and_noise": "test error of the mean score over draws of the "
        "features and of the noise of the training labels",
        "error_of_mean_over_all": "test error of the mean score over draws of features and samples",
        "disagreement": "probability that the labels that two fits predict for a new sample differ",
        "probability_difference": "mean distance of the probabilities 1/(1 + exp(-f)) of two fits",
        "score_difference": "mean distance of the scores of two fits",
    },
    Role.LOSS: {
        "training_loss": "(sum of losses + regularisation/2 |w|²)/n at the minimum",
    },
    Role.OBSERVABLE: {
        **{observable.name: observable.long_name for observable in OBSERVABLES},
        **{name: quantity.meaning for name, quantity in DECISIONS.items()},
    },
    Role.DISTRIBUTION: {name: meaning for name, (meaning, _) in MARGIN_LAWS.items()},
    Role.OVERLAP: {
        "V": "width of the proximal map, κ1² V_s + κ⋆² V_w",
        "Q": "variance of the prediction, κ1² q_s + κ⋆² q_w; of several classes the sum over "
        "scores, within a class",
        "M": "covariance of the prediction with the teacher's field, κ1 m_s; of several classes "
        "the mean of the own score without its intercept",
        "score_mean": "mean of each score in a class",
        "score_covariance": "covariance of the scores within a class, on average",
        "score_intercept": "intercept of each score",
        "alignment": "correlation of the prediction with the teacher's field, M/√(ρQ); NaN if "
        "the prediction is constant",
        "overlap": "variance of the posterior mean of the teacher's field; rho if the teacher "
        "is known exactly",
        "margin": "smallest y f √p/|w| of the training samples at λ → 0⁺, for a kernel "
        "y f √d/|g|; NaN if they are not all fitted",
        "q_s": "|F w/√p|²/d",
        "q_w": "|w|²/p, of several classes with the weights of all scores; for a kernel |g|²/d, "
        "with the norm of its Hilbert space",
        "m_s": "(F w/√p)·θ/d",
        "V_s": "part of V that is due to F w/√p",
        "V_w": "part of V that is due to w",
        "intercept": "the intercept b of the prediction",
        "score_correlation": "correlation of the scores of two fits",
        "variance_F": "variance of the score due to the features alone",
        "variance_X": "variance of the score due to the inputs of the training samples alone",
        "variance_FX": "variance of the score due to features and inputs together",
        "variance_Xe": "variance of the score due to inputs and noise of the labels together",
        "variance_FXe": "variance of the score due to features, inputs and noise together",
        "overlap_normalised": "overlap/q_w, finite where w grows without bound",
        "Q_normalised": "Q/q_w, finite where w grows without bound",
        "M_normalised": "M/√q_w, finite where w grows without bound",
        "q_s_normalised": "q_s/q_w, finite where w grows without bound",
        "m_s_normalised": "m_s/√q_w, finite where w grows without bound",
        "intercept_normalised": "b/√q_w, finite where w grows without bound",
    },
    Role.STATUS: {
        "status": "outcome of the solver",
        "theory_status": "outcome of the solver for the theory",
    },
    Role.CERTIFICATE: {
        "residual": "largest relative residual of the undamped equations",
        "quadrature_error": "estimated relative error of (V, Q, M) due to the quadrature",
        "conditioning_error": "estimated relative error of (V, Q, M) due to rounding",
        "iterations": "evaluations of the equations",
        "integration_error": "estimated absolute error of generalisation_error due to the "
        "integration over scores",
        "rates_integration_error": "the same for the least accurate of class_error, confusion, "
        "top_error and training_error",
        "optimality": "bound on the fit's relative distance from its minimum",
    },
    Role.TIME: {"seconds": "time spent on the fit, its data and its test"},
    Role.COUNT: {
        "seeds": "number of seeds in the mean",
        "dropped": "number of seeds whose fit did not reach its minimum",
    },
}
"""Names that mean the same in every dataset, by their role."""
OF_ENSEMBLES: Mapping[Role, Mapping[str, str]] = {
    Role.OVERLAP: {"overlap": "covariance of the predictions of two fits"},
}
"""Names in datasets of fits that may be members of an ensemble."""
OF_MEANS: Mapping[Role, Mapping[str, str]] = {
    Role.ERROR: {
        "generalisation_error": "test error of the mean of the predictions, against new labels "
        "drawn by the same noisy rule",
        "clean_error": "test error of the mean of the predictions, against the noiseless rule",
    },
    **OF_ENSEMBLES,
}
"""Names in datasets of fits whose predictions are averaged."""
SPECIFIC: Mapping[Kind, Mapping[Role, Mapping[str, str]]] = {
    Kind.BIAS_VARIANCE: {
        Role.ERROR: {
            "mean_square_error": "mean square distance of the score from the label of a new "
            "sample: the sum of irreducible_error, bias and the variances of samples, features and "
            "noise",
        },
    },
    **dict.fromkeys((Kind.ENSEMBLE, Kind.PAIR), OF_MEANS),
    **dict.fromkeys(
        (Kind.INSTABILITY, Kind.SIMULATION, Kind.SUMMARY, Kind.COMPARISON), OF_ENSEMBLES
    ),
    Kind.THRESHOLD: {
        Role.ANSWER: {
            "p_over_n": "features per sample above which the training data are linearly separable, "
            "or the estimator without a penalty does not exist",
            "n_over_d": "samples per latent dimension above which the training data are linearly "
            "separable, or the estimator without a penalty does not exist",
        },
    },
    Kind.PEAK: {
        Role.ANSWER: {"p_over_n": "features per sample at the peak"},
        Role.ERROR: {"generalisation_error": "height of the peak"},
    },
    Kind.FEATURES_NEEDED: {
        Role.ANSWER: {"p_over_n": "fewest features per sample; 0 if none are needed"},
        Role.ERROR: {
            "generalisation_error": "error with this number of features, at optimal regularisation",
            "kernel_limit": "error with infinitely many features, at optimal regularisation",
        },
    },
    Kind.SAMPLES_NEEDED: {
        Role.ANSWER: {
            "n_over_d": "fewest samples per latent dimension from which on the error stays at "
            "or below the target; 0 if hardly any are needed, inf if the target cannot be "
            "reached",
            "first_n_over_d": "fewest samples per latent dimension at which the error reaches "
            "the target, above which it may rise again; 0 if hardly any are needed, inf if the "
            "target cannot be reached",
        },
        Role.ERROR: {
            "generalisation_error": "error with n_over_d samples per latent dimension",
            "infinite_data_limit": "error with infinitely many samples; NaN if it could not be "
            "computed",
        },
    },
    Kind.BAYES_OPTIMAL: {
        Role.ERROR: {
            "generalisation_error": "smallest test error against new labels drawn by the same "
            "noisy rule",
            "clean_error": "smallest test error against the noiseless rule",
        },
        Role.CERTIFICATE: {
            "residual": "residual of the equation for log(q/(rho - q)), where q is the overlap",
            "quadrature_error": "estimated relative error of q and rho - q due to the quadrature",
            "conditioning_error": "estimated relative error of q and rho - q due to rounding",
        },
    },
    Kind.TRAINING: {
        Role.LOSS: {
            "training_loss": "(sum of losses + regularisation/2 |w|²)/n; of one pass the mean loss "
            "of samples just before they are used",
        },
        Role.CERTIFICATE: {
            "largest_eigenvalue": "largest eigenvalue of XXᵀ/p of the training samples, centred if "
            "an intercept is fitted",
            "largest_step": "step above which the weights grow without bound",
            "conditioning_error": "estimated error of overlaps and errors due to rounding, "
            "relative to them or to 1e-5 of the largest they may be",
        },
    },
    Kind.LEARNING_CURVE: {
        Role.STATUS: {"status": "basis of the prediction"},
        Role.CERTIFICATE: {
            "resolved": "whether the sample resolves the spectrum that matters",
            "kappa": "effective ridge penalty of the population",
        },
    },
    Kind.BACKTEST: {
        Role.CERTIFICATE: {
            "deviation": "predicted standard deviation",
            "inside_1": "fraction of measurements within one standard deviation",
            "inside_2": "fraction of measurements within two standard deviations",
        },
    },
}
"""Names of one kind of dataset, and those that mean something else there."""


def _by_name(table: Mapping[Role, Mapping[str, str]]) -> dict[str, Variable]:
    return {n: Variable(text, role) for role, names in table.items() for n, text in names.items()}


CLASS_DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "class_error": ("class",),
    "confusion": ("class", "predicted"),
    "top_error": ("top",),
    "score_mean": ("class", "score"),
    "score_covariance": ("score", "other_score"),
    "score_intercept": ("score",),
}
"""Quantities of several classes that are not a number, and their last dimensions."""
VARIABLES = _by_name(GENERAL)
OF_KIND = {kind: _by_name(table) for kind, table in SPECIFIC.items()}
SUFFIXES: Mapping[str, Variable] = {
    "_by_log_regularisation": Variable("derivative of {} with respect to log λ", Role.DERIVATIVE),
    "_by_log_n": Variable("derivative of {} with respect to log n", Role.DERIVATIVE),
    "_by_log_p": Variable("derivative of {} with respect to log p", Role.DERIVATIVE),
    "_fall": Variable("ratio of {} to that at n = N", Role.OBSERVABLE),
    "_leave_one_out": Variable("{}, measured by leave-one-out at n = N", Role.MEASUREMENT),
    "_measured": Variable("{}, measured", Role.MEASUREMENT),
    "_theory": Variable("{}, predicted by the theory", Role.THEORY),
    "_finite_size": Variable(
        "mean deviation of {} from its limit at these sizes", Role.MEASUREMENT
    ),
    "_z": Variable("({0} - {0}_theory)/{0}_stderr", Role.Z_SCORE),
    "_test_stderr": Variable(
        "standard error of {} due to the finite number of test samples", Role.STANDARD_ERROR
    ),
    "_stderr": Variable("standard error of the mean of {}", Role.STANDARD_ERROR),
    "_low": Variable("one standard deviation below {}", Role.LOWER_BOUND),
    "_high": Variable("one standard deviation above {}", Role.UPPER_BOUND),
}
"""Names derived from that of another variable, which replaces the braces."""


@cache
def described(name: str, kind: Kind) -> Variable:
    """The schema's entry for a variable in a kind of dataset.

    Raises
    ------
    KeyError
        If it is not part of the schema.
    """
    if (own := OF_KIND.get(kind, {}).get(name) or VARIABLES.get(name)) is not None:
        return own
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        raise KeyError(name)
    base = name.removesuffix(suffix)
    described(base, kind)
    return SUFFIXES[suffix]._replace(meaning=SUFFIXES[suffix].meaning.format(base))


def is_result(name: str) -> bool:
    """Whether a name is reserved for a result, so that a user's dimension may not have it."""
    try:
        return described(name, Kind.PREDICTION).role is not Role.COORDINATE
    except KeyError:
        return False


def is_real_data(ds: xr.Dataset) -> bool:
    """Whether a dataset is about a sample of real data."""
    return ds.attrs.get("kind") in REAL_DATA


def of_role(ds: xr.Dataset, role: Role) -> tuple[str, ...]:
    """Names of the variables that have a role."""
    return tuple(str(name) for name, array in ds.items() if array.attrs.get("role") == role)
