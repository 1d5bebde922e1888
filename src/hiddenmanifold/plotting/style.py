"""How plots look: labels, symbols, colours, and which axes are logarithmic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import COUNTS
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.results.schema import ERROR_MEASURES, Kind, Role, is_real_data
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr

LABELS = {
    "n_over_d": "samples per latent dimension, $n/d$",
    "d_over_n": "latent dimensions per sample, $d/n$",
    "p_over_n": "features per sample, $p/n$",
    "n_over_p": "samples per feature, $n/p$",
    "p_over_d": "features per latent dimension, $p/d$",
    "d_over_p": "latent dimensions per feature, $d/p$",
    "n": "number of samples, $n$",
    "p": "number of features, $p$",
    "d": "number of latent dimensions, $d$",
    "regularisation": r"regularisation, $\lambda$",
    "optimal_regularisation": r"optimal regularisation, $\lambda_{\mathrm{opt}}$",
    "time": "training time, $t$",
    "steps": "steps of gradient descent",
    "step": r"step, $\eta$",
    "optimal_steps": "optimal number of steps",
    "optimal_time": r"optimal time, $t_{\mathrm{opt}}$",
    "mean_square_error": "mean square error",
    "generalisation_error": r"generalisation error, $\varepsilon_g$",
    "clean_error": "error against noiseless labels",
    "vote_error": "error of the majority vote",
    "irreducible_error": "noise of new labels",
    "bias": "bias",
    "samples_variance": "variance due to samples",
    "features_variance": "variance due to features",
    "noise_variance": "variance due to label noise",
    "disagreement": "different predicted labels",
    "probability_difference": "difference of probabilities",
    "score_difference": "difference of scores",
    "training_loss": r"training loss, $\varepsilon_t$",
    "training_error": "training error",
    "auc": "area under the ROC curve",
    "coverage": r"coverage, $P(y \leq \hat f)$",
    "r2": "$R^2$",
    "test_cdf": "cdf of new samples",
    "train_cdf": "cdf of training samples",
    "y_f": "margin, $y f$",
    "alignment": r"alignment, $M/\sqrt{\rho Q}$",
    "q_s": "$q_s$",
    "q_w": "$q_w$",
    "m_s": "$m_s$",
    "V_s": "$V_s$",
    "V_w": "$V_w$",
    "Q": "$Q$",
    "M": "$M$",
    "V": "$V$",
    **{
        f"{error}_by_log_{parameter}": rf"$\partial\,{symbol}\,/\,\partial\log {of}$"
        for error, symbol in (
            ("generalisation_error", r"\varepsilon_g"),
            ("clean_error", r"\varepsilon_{\mathrm{clean}}"),
        )
        for parameter, of in (("regularisation", r"\lambda"), ("n", "n"), ("p", "p"))
    },
}
SOUGHT: dict[tuple[str | None, str | None], str] = {
    (Kind.PEAK, Role.ANSWER): "peak",
    (Kind.PEAK, Role.ERROR): "peak",
    (Kind.FEATURES_NEEDED, Role.ANSWER): "needed",
    (Kind.SAMPLES_NEEDED, Role.ANSWER): "needed",
    (Kind.THRESHOLD, Role.ANSWER): "threshold",
    (Kind.BAYES_OPTIMAL, Role.ERROR): "Bayes-optimal",
}
"""The word for what was sought, by the kind of a dataset and the role of a variable."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000")
"""Distinguishable with any colour vision (Okabe and Ito 2008)."""
NUMBERS = "iuf"
"""Kinds of dtypes that have a place on an axis."""
WIDE_SPAN = 50.0
"""Ratio of the largest to the smallest value from which an axis may be logarithmic."""
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "legend.fontsize": 8,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters stay letters
    "svg.fonttype": "none",
    "svg.hashsalt": "hiddenmanifold",  # the same picture is the same file
}


def label(name: str) -> str:
    """What is written along an axis."""
    return LABELS.get(name, name.replace("_", " "))


def sought(dataset: xr.Dataset, name: str) -> str:
    """The word for a ratio or an error that was sought; empty if it was not."""
    return SOUGHT.get((dataset.attrs.get("kind"), dataset[name].attrs.get("role")), "")


def ordinate(dataset: xr.Dataset, name: str) -> str:
    """What is written along a vertical axis, where a ratio is the answer to a question."""
    if is_real_data(dataset) and name == "generalisation_error":
        return ERROR_MEASURES[Task(dataset.attrs["task"])]
    if name in RATIOS:
        return ", ".join(filter(None, (sought(dataset, name), f"${symbol(name)}$")))
    return f"{sought(dataset, name)} {label(name)}".lstrip()


def symbol(name: str) -> str:
    """The mathematical symbol of a coordinate, without dollar signs."""
    if name in RATIOS:
        return name.replace("_over_", "/")
    words = name.replace("_", r"\ ")
    known = {"regularisation": r"\lambda", "y_f": "y f", "time": "t", "step": r"\eta"}
    return known.get(name, name if name in COUNTS else rf"\mathrm{{{words}}}")


def equation(name: str, value: float) -> str:
    """A coordinate and its value, or the limit that it stands for, without dollar signs."""
    if np.isinf(value) or (value == 0 and name in ("regularisation", "time", *RATIOS)):
        return rf"{symbol(name)} \to {mathematical(value) if value else '0^+'}"
    return f"{symbol(name)} = {mathematical(value)}"


def mathematical(value: float) -> str:
    """A number as it is printed in a formula, without dollar signs."""
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    plain = f"{value:.4g}"
    if value == 0 or (abs(value) >= 1e-3 and "e" not in plain):
        return plain
    mantissa, exponent = f"{value:.3e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\times{power}"


def is_logarithmic(values: ArrayLike) -> bool:
    """Whether coordinates belong on a logarithmic axis: over decades, even in their logarithms."""
    finite = np.unique(np.asarray(values, dtype=float))
    finite = finite[np.isfinite(finite) & (finite > 0)]
    if not spans_decades(finite):
        return False
    uneven = [np.diff(v).std() / np.diff(v).mean() for v in (np.log(finite), finite)]
    return len(finite) == 2 or bool(uneven[0] < uneven[1])


def spans_decades(values: Array) -> bool:
    """Whether the values, those that are finite and not zero, are positive and far apart."""
    finite = values[np.isfinite(values) & (values != 0)]
    return len(finite) > 1 and finite.min() > 0 and bool(finite.max() >= WIDE_SPAN * finite.min())


def colours(values: Array) -> list[Any]:
    """One colour per value: distinct ones for a few, a scale for many."""
    if len(values) <= len(COLOURS):
        return list(COLOURS[: len(values)])
    if values.dtype.kind not in NUMBERS:  # names have an order
        values = np.arange(1.0, len(values) + 1.0)
    scale = colour_scale(values)
    ends = {0.0: COLOURS[1], np.inf: COLOURS[5]}  # which the scale lacks
    beyond = limits(values)
    return [ends.get(v) if v in beyond else scale.to_rgba(v) for v in values.tolist()]


def limits(values: Array) -> list[float]:
    """The values that a scale of these has no place for."""
    off = ~np.isfinite(values) | ((values <= 0) & is_logarithmic(values))
    beyond: list[float] = values[off].tolist()
    return beyond


def colour_scale(values: Array) -> Any:
    """The scale of colours of many values, for their lines and the bar that explains them."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    inside = values[~np.isin(values, limits(values))]
    norm = (LogNorm if is_logarithmic(values) else Normalize)(inside.min(), inside.max())
    return ScalarMappable(norm, "viridis")
