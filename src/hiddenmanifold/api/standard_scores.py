"""How far simulations are from the theory, in standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.checks import Task
from hiddenmanifold.losses import LabelLoss, of_shortfall
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import bare, variable
from hiddenmanifold.results.observables import DECISIONS, MARGIN_LAWS, REGISTRY
from hiddenmanifold.results.schema import CLASS_DIMENSIONS
from hiddenmanifold.teachers import real

if TYPE_CHECKING:
    import xarray as xr

COMPARED = (
    "generalisation_error",
    "clean_error",
    "vote_error",
    "training_loss",
    "training_error",
    "q_s",
    "q_w",
    "m_s",
    "Q",
    "M",
    "overlap",
    "score_correlation",
    "disagreement",
    "probability_difference",
    "score_difference",
    "alignment",
    *CLASS_DIMENSIONS,
    "mean_square_error",
)
ROUNDING = 1e-14
"""Relative spread over seeds up to which it is attributed to rounding."""
SHORTFALL = 1e-13
"""Rounding error of a prediction's distance from its label, relative to the size of both.

Ridgeless fits that interpolate leave 7e-15 at most, those that recover the rule at n = d 4e-14.
"""


def judge(model: Model, out: xr.Dataset, theory: xr.Dataset, exact_to: float = 0.0) -> None:
    """Put the theory of each quantity beside it, and the difference in standard errors.

    No standard error is smaller than the absolute accuracy of the theory.
    """
    intercept = ("intercept",) if model.free_intercept else ()
    rounding = rounding_errors(model, out.q_w.max("fit") if "fit" in out.q_w.dims else out.q_w)
    judged: dict[str, xr.Variable] = {}
    for name in (*COMPARED, *intercept, *REGISTRY, *DECISIONS, *MARGIN_LAWS):
        if name in out and name in theory:
            stderr = out[f"{name}_stderr"]
            expected = bare(theory[name].transpose(*stderr.dims))
            found, error = out[name].values, np.maximum(stderr.values, exact_to)
            if name in rounding:
                least = rounding[name].broadcast_like(stderr).transpose(*stderr.dims)
                error = np.maximum(error, least.values)
            spread = error > ROUNDING * np.abs(found)  # else seeds agree, to rounding
            comparable = spread & np.isfinite(expected.values)
            if name == "train_cdf":  # it jumps where fits stand up to rounding
                loss = of_shortfall(model.loss)
                comparable &= ~np.isin(out.y_f, loss.anchor - np.array(loss.kinks))
            judged[f"{name}_stderr"] = stderr.variable.copy(data=error)
            judged[f"{name}_theory"] = expected
            with np.errstate(all="ignore"):
                z = (found - expected.values) / np.where(comparable, error, np.nan)
            judged[f"{name}_z"] = variable(stderr.dims, z)
    out.update(judged)


def rounding_errors(model: Model, q_w: xr.DataArray) -> dict[str, xr.DataArray]:
    """Values of the quantities if predictions differed from labels by rounding alone.

    Only quantities that are sums over such shortfalls, and only losses that have a minimum.
    """
    if model.task is Task.CLASSES:
        return {}
    regression = model.task is Task.REGRESSION
    label = real(model.teacher).moments.explained if regression else 1.0
    square = SHORTFALL**2 * (label + model.features.variance * q_w)
    found = dict.fromkeys(("generalisation_error", "clean_error"), square) if regression else {}
    if isinstance(model.loss, LabelLoss):
        return found
    loss = of_shortfall(model.loss)
    if minimisers := [s for s in loss.minimisers if np.isfinite(s)]:
        shortfalls = minimisers[-1] + np.append(0.0, np.sqrt(square.values))
        least, *above = loss.value(shortfalls)
        rise = square.copy(data=np.reshape(above, square.shape) - least)
        found |= dict.fromkeys(("training_loss", "test_loss"), rise)
    return found
