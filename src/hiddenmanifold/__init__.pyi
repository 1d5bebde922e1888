from . import estimators, features, losses, teachers
from .api.arguments import Optimal
from .api.bayes_optimal import bayes_optimal
from .api.compare import compare
from .api.needed import features_needed, samples_needed
from .api.predict import margins, predict, sensitivity
from .api.simulate import simulate
from .api.thresholds import existence_threshold, interpolation_peak, separability_threshold
from .data.backtest import backtest
from .data.kernel_conventions import from_kernel_machine, to_kernel_machine
from .data.learning_curve import learning_curve
from .data.planning import plan
from .data.read_table import read_table
from .data.sample import Data
from .data.sklearn_conventions import (
    from_glm_alpha,
    from_ridge_alpha,
    from_sklearn_C,
    to_glm_alpha,
    to_ridge_alpha,
    to_sklearn_C,
)
from .errors import (
    BlindFeaturesWarning,
    ConvergenceError,
    HiddenManifoldError,
    IncompatibleIngredientsError,
    InvalidArgumentError,
    MissingExtraError,
    Status,
    UnusableDataError,
)
from .features import activations, kernels, projections
from .losses import predictors
from .model import Model
from .parallel.workers import LostWorkerError
from .plotting import plot
from .results.datasets import summary
from .storage import StoreError
from .teachers import noises
from .versions import show_versions

__version__: str

__all__ = [
    "BlindFeaturesWarning",
    "ConvergenceError",
    "Data",
    "HiddenManifoldError",
    "IncompatibleIngredientsError",
    "InvalidArgumentError",
    "LostWorkerError",
    "MissingExtraError",
    "Model",
    "Optimal",
    "Status",
    "StoreError",
    "UnusableDataError",
    "__version__",
    "activations",
    "backtest",
    "bayes_optimal",
    "compare",
    "estimators",
    "existence_threshold",
    "features",
    "features_needed",
    "from_glm_alpha",
    "from_kernel_machine",
    "from_ridge_alpha",
    "from_sklearn_C",
    "interpolation_peak",
    "kernels",
    "learning_curve",
    "losses",
    "margins",
    "noises",
    "plan",
    "plot",
    "predict",
    "predictors",
    "projections",
    "read_table",
    "samples_needed",
    "sensitivity",
    "separability_threshold",
    "show_versions",
    "simulate",
    "summary",
    "teachers",
    "to_glm_alpha",
    "to_kernel_machine",
    "to_ridge_alpha",
    "to_sklearn_C",
]
