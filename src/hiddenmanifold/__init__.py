"""Exact learning curves of generalised linear models on random features.

Build a `Model` out of an activation, a projection, a teacher and a loss, `predict` its test and
training errors in the high-dimensional limit, and `simulate` it at finite size.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import activations, features, losses, projections, teachers
    from .arguments import Optimal
    from .bayes import bayes_optimal
    from .data.curves import learning_curve
    from .data.estimators import GLM, RandomFeatures
    from .data.planning import plan
    from .data.sample import Data
    from .errors import (
        ConvergenceError,
        HiddenManifoldError,
        IncompatibleIngredientsError,
        InvalidArgumentError,
        Status,
        UnusableDataError,
    )
    from .experiments import compare, simulate
    from .margin_law import margins
    from .model import Model, to_ridge_alpha, to_sklearn_C
    from .needs import features_needed
    from .plotting import plot
    from .prediction import predict, sensitivity
    from .results import summary
    from .thresholds import interpolation_peak, separability_threshold

__all__ = [
    "ConvergenceError",
    "Data",
    "GLM",
    "HiddenManifoldError",
    "IncompatibleIngredientsError",
    "InvalidArgumentError",
    "Model",
    "Optimal",
    "RandomFeatures",
    "Status",
    "UnusableDataError",
    "activations",
    "bayes_optimal",
    "compare",
    "features",
    "features_needed",
    "interpolation_peak",
    "learning_curve",
    "losses",
    "margins",
    "plan",
    "plot",
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

# names are imported when they are asked for: the command line answers before scipy is loaded
_HOME = {
    "arguments": ("Optimal",),
    "bayes": ("bayes_optimal",),
    "data.curves": ("learning_curve",),
    "data.estimators": ("GLM", "RandomFeatures"),
    "data.planning": ("plan",),
    "data.sample": ("Data",),
    "errors": (
        "ConvergenceError",
        "HiddenManifoldError",
        "IncompatibleIngredientsError",
        "InvalidArgumentError",
        "Status",
        "UnusableDataError",
    ),
    "experiments": ("compare", "simulate"),
    "margin_law": ("margins",),
    "model": ("Model", "to_ridge_alpha", "to_sklearn_C"),
    "needs": ("features_needed",),
    "plotting": ("plot",),
    "prediction": ("predict", "sensitivity"),
    "results": ("summary",),
    "thresholds": ("interpolation_peak", "separability_threshold"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    if name in __all__:  # the modules of ingredients
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
