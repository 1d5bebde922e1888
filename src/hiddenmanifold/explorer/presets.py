"""Preset views: the figures of the paper, three reasons for a missing peak, and kernels."""

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


MANIFOLD = {"activation": "erf", "loss": "square"}
RIDGE = {"teacher": "linear", "loss": "square"}
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

PRESETS = (
    Preset(
        "Figure 1",
        "test error of the logistic loss at λ = 10⁻³; press Simulate for the dots",
        {"low": "0.02", "high": "3", "log_x": "no", "regularisation": "1e-3"},
    ),
    Preset(
        "Figure 2",
        "double descent of logistic and square loss, at λ = 10⁻⁴ and at the optimal λ",
        {"low": "0.03", "high": "10"},
        (
            {"loss": "square"},
            *_lam("optimal"),
            *_lam("optimal", loss="square"),
        ),
    ),
    Preset(
        "Figure 3",
        "test error over n/d and p/n, with the separability threshold",
        {"mode": "map", "x": "n_over_d", "low": "0.1", "high": "8", "log_x": "no"}
        | {"y": "p_over_n", "y_low": "0.02", "y_high": "1.2"},
    ),
    Preset(
        "Figure 4",
        "position of the peak and separability threshold, Gaussian and orthogonal projections",
        PEAKS,
        ({**PEAKS, "projection": "orthogonal"},),
    ),
    Preset(
        "Figure 5, ridge",
        "Gaussian and orthogonal projections compared: ridge regression",
        {**FIGURE_5, **RIDGE, "regularisation": "1e-8", "log_y": "yes"},
        (
            {**RIDGE, "n_over_d": "2", "regularisation": "1e-8", "projection": "orthogonal"},
            *_lam("optimal", **RIDGE, n_over_d="2"),
            *_lam("optimal", **RIDGE, n_over_d="2", projection="orthogonal"),
        ),
    ),
    Preset(
        "Figure 5, logistic",
        "Gaussian and orthogonal projections compared: logistic regression",
        FIGURE_5,
        (
            {"n_over_d": "2", "projection": "orthogonal"},
            *_lam("optimal", n_over_d="2"),
            *_lam("optimal", n_over_d="2", projection="orthogonal"),
        ),
    ),
    Preset(
        "Figure 6",
        "learning curves of the hidden manifold model",
        {**LEARNING, "log_y": "yes"},
        _lam("1e-2", "0.1", "1", "10", "optimal", **LEARNING),
    ),
    Preset(
        "Figure 7",
        "test error of the hidden manifold model over n/p and d/p at the optimal λ",
        {**MANIFOLD, "mode": "map", "x": "n_over_p", "low": "0.05", "high": "10"}
        | {"y": "d_over_p", "y_low": "0.02", "y_high": "5", "regularisation": "optimal"},
    ),
    Preset(
        "Why is my peak missing? Regularisation",
        "regularisation lowers the peak: curves from λ → 0⁺ to the optimal λ",
        {"regularisation": "0.1"},
        _lam("0⁺", "1e-3", "1e-2", "optimal"),
    ),
    Preset(
        "Why is my peak missing? Noise",
        "ridge regression peaks less with less label noise",
        {"loss": "square", "teacher": "linear", "regularisation": "1e-2", "log_y": "yes"},
        tuple(
            {**RIDGE, "regularisation": "1e-2", "teacher.linear.noise": noise}
            for noise in ("0.1", "1")
        ),
    ),
    Preset(
        "Why is my peak missing? Tolerance",
        "a solver that stops early behaves roughly as if λ were larger: compare the curves of "
        "λ → 0⁺ and λ = 10⁻²",
        {"regularisation": "0⁺"},
        _lam("1e-6", "1e-4", "1e-2"),
    ),
    Preset(
        "Lazy networks: depth",
        "neural tangent kernels of one, three and five hidden layers, beside a Laplace kernel",
        {**TANGENT, "features": "ntk"},
        (
            *({**TANGENT, "features": "ntk", "features.ntk.hidden_layers": k} for k in "35"),
            {**TANGENT, "features": "laplace"},
        ),
    ),
)
