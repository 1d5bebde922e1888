"""Exact learning curves of generalised linear models on random features.

Build a `Model` out of an activation, a projection, a teacher and a loss, `predict` its test and
training errors in the high-dimensional limit, and `simulate` it at finite size.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hiddenmanifold import features, losses, teachers
    from hiddenmanifold.api.arguments import Optimal
    from hiddenmanifold.api.bayes_optimal import bayes_optimal
    from hiddenmanifold.api.compare import compare
    from hiddenmanifold.api.margins import margins
    from hiddenmanifold.api.needed import features_needed, samples_needed
    from hiddenmanifold.api.predict import predict, sensitivity
    from hiddenmanifold.api.simulate import simulate
    from hiddenmanifold.api.thresholds import interpolation_peak, separability_threshold
    from hiddenmanifold.data.learning_curve import learning_curve
    from hiddenmanifold.data.planning import plan
    from hiddenmanifold.data.read_table import read_table
    from hiddenmanifold.data.sample import Data
    from hiddenmanifold.errors import (
        BlindFeaturesWarning,
        ConvergenceError,
        HiddenManifoldError,
        IncompatibleIngredientsError,
        InvalidArgumentError,
        MissingExtraError,
        Status,
        UnusableDataError,
    )
    from hiddenmanifold.estimators.conversions import (
        from_ridge_alpha,
        from_sklearn_C,
        to_ridge_alpha,
        to_sklearn_C,
    )
    from hiddenmanifold.estimators.models import GLM, RandomFeatures
    from hiddenmanifold.features import activations, projections
    from hiddenmanifold.model import Model
    from hiddenmanifold.parallel.workers import LostWorkerError
    from hiddenmanifold.plotting import plot
    from hiddenmanifold.results.datasets import summary
    from hiddenmanifold.storage import StoreError
    from hiddenmanifold.versions import show_versions

    __version__: str

__all__ = [
    "BlindFeaturesWarning",
    "ConvergenceError",
    "Data",
    "GLM",
    "HiddenManifoldError",
    "IncompatibleIngredientsError",
    "InvalidArgumentError",
    "LostWorkerError",
    "MissingExtraError",
    "Model",
    "Optimal",
    "RandomFeatures",
    "Status",
    "StoreError",
    "__version__",
    "UnusableDataError",
    "activations",
    "bayes_optimal",
    "compare",
    "features",
    "features_needed",
    "from_ridge_alpha",
    "from_sklearn_C",
    "interpolation_peak",
    "learning_curve",
    "losses",
    "margins",
    "plan",
    "plot",
    "predict",
    "projections",
    "read_table",
    "samples_needed",
    "sensitivity",
    "separability_threshold",
    "show_versions",
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
    "comparison": ("compare",),
    "conversions": ("from_ridge_alpha", "from_sklearn_C", "to_ridge_alpha", "to_sklearn_C"),
    "data.curves": ("learning_curve",),
    "data.estimators": ("GLM", "RandomFeatures"),
    "data.files": ("read_table",),
    "data.planning": ("plan",),
    "data.sample": ("Data",),
    "errors": (
        "BlindFeaturesWarning",
        "ConvergenceError",
        "HiddenManifoldError",
        "IncompatibleIngredientsError",
        "InvalidArgumentError",
        "MissingExtraError",
        "Status",
        "UnusableDataError",
    ),
    "execution": ("LostWorkerError",),
    "experiments": ("simulate",),
    "margin_law": ("margins",),
    "model": ("Model",),
    "needs": ("features_needed", "samples_needed"),
    "plotting": ("plot",),
    "prediction": ("predict", "sensitivity"),
    "results": ("summary",),
    "storage": ("StoreError",),
    "thresholds": ("interpolation_peak", "separability_threshold"),
    "versions": ("show_versions",),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    for home, names in _HOME.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    if name in __all__:  # the modules of ingredients
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
