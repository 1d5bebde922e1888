"""Exact learning curves of generalised linear models on random features.

Build a `Model` out of an activation, a projection, a teacher and a loss, and `predict` its test and
training errors in the high-dimensional limit.
"""

from . import activations, losses, projections, teachers
from .errors import (
    ConvergenceError,
    HiddenManifoldError,
    IncompatibleIngredientsError,
    InvalidArgumentError,
)
from .experiments import compare, simulate, summary
from .model import Model, to_ridge_alpha, to_sklearn_C
from .numerics.newton import Status
from .optima import features_needed, interpolation_peak
from .prediction import predict, sensitivity
from .thresholds import separability_threshold

__all__ = [
    "ConvergenceError",
    "HiddenManifoldError",
    "IncompatibleIngredientsError",
    "InvalidArgumentError",
    "Model",
    "Status",
    "activations",
    "compare",
    "features_needed",
    "interpolation_peak",
    "losses",
    "predict",
    "projections",
    "sensitivity",
    "separability_threshold",
    "simulate",
    "summary",
    "teachers",
    "to_ridge_alpha",
    "to_sklearn_C",
]
