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
from hiddenmanifold.results.observables import MARGIN_LAWS, OBSERVABLES

if TYPE_CHECKING:
    import xarray as xr


class Kind(StrEnum):
    """The question that a dataset answers."""

    PREDICTION = "prediction"
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
    LEARNING_CURVE = "learning_curve"
    BACKTEST = "backtest"


REAL_DATA = frozenset({Kind.LEARNING_CURVE, Kind.BACKTEST})
"""Datasets about a sample of real data instead of a model."""
UNFITTED = frozenset({Kind.THRESHOLD, Kind.BAYES_OPTIMAL})
"""Datasets in which the loss and the intercept of the model play no role."""
ERROR_MEASURES = {
    Task.REGRESSION: "mean square error",
    Task.CLASSIFICATION: "misclassification rate",
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
        "seed": "index of the random draw of features, teacher and samples",
        "y_f": "margin y f of a sample",
    },
    Role.ANSWER: {
        "optimal_regularisation": "the regularisation with the smallest test error; 0 and inf "
        "mean the limits",
    },
    Role.ERROR: {
        "generalisation_error": "test error against new labels drawn by the same noisy rule",
        "clean_error": "test error against the noiseless rule",
        "training_error": "fraction of training samples that are misclassified",
    },
    Role.LOSS: {
        "training_loss": "(sum of losses + regularisation/2 |w|²)/n at the minimum",
    },
    Role.OBSERVABLE: {observable.name: observable.long_name for observable in OBSERVABLES},
    Role.DISTRIBUTION: {name: meaning for name, (meaning, _) in MARGIN_LAWS.items()},
    Role.OVERLAP: {
        "V": "width of the proximal map, κ1² V_s + κ⋆² V_w",
        "Q": "variance of the prediction, κ1² q_s + κ⋆² q_w",
        "M": "covariance of the prediction with the teacher's field, κ1 m_s",
        "alignment": "correlation of the prediction with the teacher's field, M/√(ρQ); NaN if "
        "the prediction is constant",
        "overlap": "variance of the posterior mean of the teacher's field; rho if the teacher "
        "is known exactly",
        "margin": "smallest y f √p/|w| of the training samples at λ → 0⁺, for a kernel "
        "y f √d/|g|; NaN if they are not all fitted",
        "q_s": "|F w/√p|²/d",
        "q_w": "|w|²/p; for a kernel |g|²/d, with the norm of its Hilbert space",
        "m_s": "(F w/√p)·θ/d",
        "V_s": "part of V that is due to F w/√p",
        "V_w": "part of V that is due to w",
        "intercept": "the intercept b of the prediction",
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
        "optimality": "bound on the fit's relative distance from its minimum",
    },
    Role.TIME: {"seconds": "time spent on the fit, its data and its test"},
    Role.COUNT: {
        "seeds": "number of seeds in the mean",
        "dropped": "number of seeds whose fit did not reach its minimum",
    },
}
"""Names that mean the same in every dataset, by their role."""
SPECIFIC: Mapping[Kind, Mapping[Role, Mapping[str, str]]] = {
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


VARIABLES = _by_name(GENERAL)
OF_KIND = {kind: _by_name(table) for kind, table in SPECIFIC.items()}
SUFFIXES: Mapping[str, Variable] = {
    "_by_log_regularisation": Variable("derivative of {} with respect to log λ", Role.DERIVATIVE),
    "_by_log_n": Variable("derivative of {} with respect to log n", Role.DERIVATIVE),
    "_by_log_p": Variable("derivative of {} with respect to log p", Role.DERIVATIVE),
    "_leave_one_out": Variable("{}, measured by leave-one-out at n = N", Role.MEASUREMENT),
    "_measured": Variable("{}, measured", Role.MEASUREMENT),
    "_theory": Variable("{}, predicted by the theory", Role.THEORY),
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
