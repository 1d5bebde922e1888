from . import estimators, features, losses, resampling, teachers, weights
from .api.arguments import EarlyStopping, Optimal
from .api.bayes_optimal import bayes_optimal
from .api.best_time import best_time
from .api.compare import compare
from .api.compare_training import compare_training
from .api.ensembles import ensemble
from .api.needed import features_needed, samples_needed
from .api.pair_of_models import pair
from .api.pairs_of_fits import bias_variance, instability
from .api.predict import margins, predict, sensitivity
from .api.simulate import simulate
from .api.thresholds import existence_threshold, interpolation_peak, separability_threshold
from .api.training import training
from .data.backtest import backtest
from .data.kernel_conventions import from_kernel_machine, to_kernel_machine
from .data.learning_curve import learning_curve
from .data.planning import plan
from .data.read_table import read_table
from .data.report import report
from .data.sample import Data
from .data.sklearn_conventions import (
    from_glm_alpha,
    from_ridge_alpha,
    from_sklearn_C,
    to_glm_alpha,
    to_ridge_alpha,
    to_sklearn_C,
)
from .data.training_curve import training_curve
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
from .studies.population import Population
from .studies.sample_size import sample_size
from .teachers import noises
from .versions import show_versions

__version__: str

__all__ = [
    "BlindFeaturesWarning",
    "ConvergenceError",
    "Data",
    "EarlyStopping",
    "HiddenManifoldError",
    "IncompatibleIngredientsError",
    "InvalidArgumentError",
    "LostWorkerError",
    "MissingExtraError",
    "Model",
    "Optimal",
    "Population",
    "Status",
    "StoreError",
    "UnusableDataError",
    "__version__",
    "activations",
    "backtest",
    "bayes_optimal",
    "best_time",
    "bias_variance",
    "compare",
    "compare_training",
    "ensemble",
    "estimators",
    "existence_threshold",
    "features",
    "features_needed",
    "from_glm_alpha",
    "from_kernel_machine",
    "from_ridge_alpha",
    "from_sklearn_C",
    "instability",
    "interpolation_peak",
    "kernels",
    "learning_curve",
    "losses",
    "margins",
    "noises",
    "pair",
    "plan",
    "plot",
    "predict",
    "predictors",
    "projections",
    "read_table",
    "report",
    "resampling",
    "sample_size",
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
    "training",
    "training_curve",
    "weights",
]
