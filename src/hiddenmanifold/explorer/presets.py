"""Preset views, grouped by what they show; the first one opens the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode


@dataclass(frozen=True)
class Preset:
    """A view with its pinned curves and a description."""

    title: str
    about: str
    texts: Mapping[str, str]
    pins: tuple[Mapping[str, str], ...] = ()

    @property
    def query(self) -> str:
        """The address of the view, after the question mark."""
        return urlencode([*self.texts.items(), *(("pin", urlencode(pin)) for pin in self.pins)])


def _lam(*values: str, **common: str) -> tuple[dict[str, str], ...]:
    return tuple({**common, "regularisation": value} for value in values)


SQUARE = {"loss": "square"}
MANIFOLD = {"activation": "erf", "loss": "square"}
RIDGE = {"teacher": "linear", "loss": "square"}
NOISY = {**RIDGE, "activation": "relu", "teacher.linear.noise": "0.3", "n_over_d": "2"}
FIGURE_5 = {"n_over_d": "2", "low": "0.02", "high": "4", "log_x": "no"}
PEAKS = {"quantity": "peak", "x": "n_over_d", "low": "0.05", "high": "8", "log_x": "no"}
TANGENT = {
    "x": "n_over_d",
    "low": "0.1",
    "high": "30",
    "regularisation": "1e-2",
    "loss": "hinge",
}
LEARNING = {**MANIFOLD, "x": "n_over_p", "hold": "d_over_p", "low": "0.05", "high": "30"}
HEAVY = {
    "activation": "relu",
    "teacher": "linear",
    "teacher.linear.noise": "student(3,1)",
    "loss": "huber",
    "regularisation": "1e-2",
    "log_y": "yes",
}
CLASSES = {"activation": "erf", "teacher": "classes", "regularisation": "1e-2"}

OPENING = Preset(
    "Double descent, and the penalty that removes it",
    "the error peaks where there are as many features as samples; the optimal λ has no peak",
    SQUARE,
    _lam("optimal", "1e-2", "0.1", **SQUARE),
)
PAPER = "Figures of Gerace et al., “Generalisation error in learning with random features and the \
hidden manifold model” (arXiv:2002.09339)"

GROUPS: Mapping[str, tuple[Preset, ...]] = {
    "Peaks, and what removes them": (
        OPENING,
        Preset(
            "Less regularisation, higher peak",
            "five penalties of the logistic loss, from λ → 0⁺ to the optimal λ",
            {"regularisation": "0⁺"},
            _lam("1e-3", "1e-2", "0.1", "optimal"),
        ),
        Preset(
            "Less label noise, lower peak",
            "ridge regression with label noise of three variances",
            {"loss": "square", "teacher": "linear", "regularisation": "1e-2", "log_y": "yes"},
            tuple(
                {**RIDGE, "regularisation": "1e-2", "teacher.linear.noise": noise}
                for noise in ("0.1", "1")
            ),
        ),
        Preset(
            "A loose tolerance hides the peak",
            "a solver that stops early behaves roughly as if λ were larger: compare the curves of "
            "λ → 0⁺ and λ = 10⁻²",
            {"regularisation": "0⁺"},
            _lam("1e-6", "1e-4", "1e-2"),
        ),
    ),
    "Training, ensembles, bias and variance": (
        Preset(
            "The peak grows while training runs",
            "gradient flow on the square loss: press Play; at the best time there is no peak",
            {"quantity": "time", **NOISY, "regularisation": "0⁺", "log_y": "yes"},
        ),
        Preset(
            "Averaging many fits removes the peak",
            "ensembles of 1 to infinitely many fits with random features of their own",
            {"quantity": "members", **SQUARE},
        ),
        Preset(
            "The peak is variance, not bias",
            "the mean square error over p/n as a stack of bias and variances",
            {"quantity": "bias_variance", **NOISY, "regularisation": "1e-3"},
        ),
    ),
    "Labels and losses": (
        Preset(
            "Outliers: robust losses against least squares",
            "heavy-tailed label noise of three degrees of freedom: Huber, absolute, and square",
            HEAVY,
            tuple({**HEAVY, "loss": loss} for loss in ("absolute", "square")),
        ),
        Preset(
            "Many classes: the rarest is predicted worst",
            "three classes with 60, 30 and 10 % of the samples",
            {
                **CLASSES,
                "quantity": "classes",
                "loss": "square",
                "intercept": "yes",
                "teacher.classes.priors": "0.6,0.3,0.1",
            },
        ),
        Preset(
            "Counts: a Poisson loss against least squares",
            "labels that are counts, at λ = 1",
            {
                "teacher": "poisson",
                "teacher.poisson.slope": "0.5",
                "loss": "poisson",
                "regularisation": "1",
            },
            (
                {
                    "teacher": "poisson",
                    "teacher.poisson.slope": "0.5",
                    "loss": "square",
                    "regularisation": "1",
                },
            ),
        ),
    ),
    "Kernels": (
        Preset(
            "Lazy networks: deeper kernels learn slower",
            "neural tangent kernels of one, three and five hidden layers, beside a Laplace kernel",
            {**TANGENT, "features": "ntk"},
            (
                *({**TANGENT, "features": "ntk", "features.ntk.hidden_layers": k} for k in "35"),
                {**TANGENT, "features": "laplace"},
            ),
        ),
    ),
    PAPER: (
        Preset(
            "Figure 1: theory and simulation agree",
            "test error of the logistic loss at λ = 10⁻³; press Simulate for the dots",
            {"low": "0.02", "high": "3", "log_x": "no", "regularisation": "1e-3"},
        ),
        Preset(
            "Figure 2: logistic and square loss peak at different places",
            "double descent of both at λ = 10⁻⁴, and at the optimal λ",
            {"low": "0.03", "high": "10"},
            (SQUARE, *_lam("optimal"), *_lam("optimal", **SQUARE)),
        ),
        Preset(
            "Figure 3: the ridge of peaks follows the separability threshold",
            "test error over n/d and p/n",
            {"mode": "map", "x": "n_over_d", "low": "0.1", "high": "8", "log_x": "no"}
            | {"y": "p_over_n", "y_low": "0.02", "y_high": "1.2"},
        ),
        Preset(
            "Figure 4: orthogonal features move the peak",
            "position of the peak and separability threshold, Gaussian and orthogonal projections",
            PEAKS,
            ({**PEAKS, "projection": "orthogonal"},),
        ),
        Preset(
            "Figure 5, ridge: orthogonal features beat Gaussian ones",
            "Gaussian and orthogonal projections compared: ridge regression",
            {**FIGURE_5, **RIDGE, "regularisation": "1e-8", "log_y": "yes"},
            (
                {**RIDGE, "n_over_d": "2", "regularisation": "1e-8", "projection": "orthogonal"},
                *_lam("optimal", **RIDGE, n_over_d="2"),
                *_lam("optimal", **RIDGE, n_over_d="2", projection="orthogonal"),
            ),
        ),
        Preset(
            "Figure 5, logistic: so they do in classification",
            "Gaussian and orthogonal projections compared: logistic regression",
            FIGURE_5,
            (
                {"n_over_d": "2", "projection": "orthogonal"},
                *_lam("optimal", n_over_d="2"),
                *_lam("optimal", n_over_d="2", projection="orthogonal"),
            ),
        ),
        Preset(
            "Figure 6: learning curves peak at n = p",
            "learning curves of the hidden manifold model",
            {**LEARNING, "log_y": "yes"},
            _lam("1e-2", "0.1", "1", "10", "optimal", **LEARNING),
        ),
        Preset(
            "Figure 7: the optimal λ leaves no peak anywhere",
            "test error of the hidden manifold model over n/p and d/p at the optimal λ",
            {**MANIFOLD, "mode": "map", "x": "n_over_p", "low": "0.05", "high": "10"}
            | {"y": "d_over_p", "y_low": "0.02", "y_high": "5", "regularisation": "optimal"},
        ),
    ),
}
PRESETS = tuple(preset for presets in GROUPS.values() for preset in presets)
