"""Simulations and the theory at the same points, and how far apart they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import Optimal, free_ratios, sizes_of
from hiddenmanifold.api.ensembles import ensembled
from hiddenmanifold.api.grid import Grid, check_on_failure, checked
from hiddenmanifold.api.predict import check_finite_size, predicted
from hiddenmanifold.api.signatures import Finite, with_options
from hiddenmanifold.api.simulate import Simulation
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import ConvergenceError, InvalidArgumentError
from hiddenmanifold.losses import LabelLoss, of_shortfall
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import bare, summary, variable, with_schema
from hiddenmanifold.results.observables import DECISIONS, MARGIN_LAWS, REGISTRY
from hiddenmanifold.results.schema import CLASS_DIMENSIONS, Kind
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


@with_options(Finite)
def compare(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray | Optimal | Literal["optimal"],
    finite_size: bool = False,
    on_failure: Literal["raise", "keep"] = "keep",
    **options: Unpack[Finite],
) -> xr.Dataset:
    """Simulate and predict the same points, and judge the difference by its standard error.

    Parameters
    ----------
    model : Model
        The learning problem; `backtest` does the same for real data.
    regularisation : array_like, DataArray, Optimal or "optimal"
        The λ of the objective, or the one of least predicted error at the given ratios, which is
        then in the dataset as `optimal_regularisation`.
    finite_size : bool
        Whether the theory has the largest terms of order 1/n, as in `predict`.
    on_failure : {"raise", "keep"}
        Whether a point at which the theory does not converge raises, with the simulation in the
        exception's ``partial``, or is kept, its theory NaN.
    **options
        The ratios, and any option of `simulate`.

    Returns
    -------
    xarray.Dataset
        For each quantity q: `q` (mean over seeds), `q_stderr`, `q_theory` (at the ratios of the
        whole numbers actually used) and `q_z` = (q - q_theory)/q_stderr; `theory_status` says how
        the theory's solve ended. The standard error of a loss, or of a squared error, is at least
        the value that rounding of the predictions gives to an exact zero. `q_z` is NaN where all
        seeds agree and where q is not defined or infinite. The z-score of `train_cdf` is also NaN
        at the kinks of the loss, which training margins reach only up to rounding. The attributes
        are those of `simulate`.

    Raises
    ------
    ConvergenceError
        If the theory fails at a point and `on_failure` is "raise".
    """
    check_on_failure(on_failure)
    simulation = Simulation.of(model, regularisation, options, search=True)
    asked, finite = simulation.grid, check_finite_size(model, finite_size)
    if asked.optimal is not None:
        simulation = replace(simulation, grid=_at_best_regularisation(asked))
    out = summary(simulation.run())
    used = free_ratios({name: out[name] for name in sizes_of(model.features)}, model.features)
    lam = simulation.grid.coordinates["regularisation"]
    at, ensemble = simulation.grid.at(used, lam), simulation.ensemble
    theory = (
        predicted(at, simulation.observables, at.counts(out["n"]) if finite else None)
        if ensemble is None
        else ensembled(at, ensemble, simulation.resampling)
    )
    judge(model, out, theory)
    out["theory_status"] = theory["status"].variable
    if asked.optimal is not None:
        out = out.reset_coords("regularisation").rename(regularisation="optimal_regularisation")
        out["optimal_regularisation"] = bare(out.optimal_regularisation)
    out = with_schema(out, Kind.COMPARISON)
    try:
        checked(theory, on_failure)
    except ConvergenceError as error:
        error.partial = out
        raise
    return out


def judge(model: Model, out: xr.Dataset, theory: xr.Dataset, exact_to: float = 0.0) -> None:
    """Put the theory of each quantity beside it, and the difference in standard errors.

    No standard error is smaller than the absolute accuracy of the theory.
    """
    intercept = ("intercept",) if model.free_intercept else ()
    rounding = _rounding(model, out.q_w)
    judged: dict[str, xr.Variable] = {}
    for name in (*COMPARED, *intercept, *REGISTRY, *DECISIONS, *MARGIN_LAWS):
        if name in out and name in theory:
            stderr = out[f"{name}_stderr"]
            expected = bare(theory[name].transpose(*stderr.dims))
            found, error = out[name].values, np.maximum(stderr.values, exact_to)
            if name in rounding:
                error = np.maximum(error, rounding[name].values)
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


def _rounding(model: Model, q_w: xr.DataArray) -> dict[str, xr.DataArray]:
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


def _at_best_regularisation(grid: Grid) -> Grid:
    """The grid at the regularisation of least predicted error, if a fit can have it."""
    import xarray as xr

    assert grid.optimal is not None
    found = predicted(grid).optimal_regularisation
    lam = found.values
    limits = lam[np.isinf(lam) | ((lam == 0) & (not grid.model.loss.quadratic))]
    if limits.size:
        raise InvalidArgumentError.because(
            "bounds",
            f"= {grid.optimal.bounds} are too wide",
            f"narrow them, because the best regularisation is the limit {limits[0]:g}, which no "
            "fit can have",
        )
    best = {"regularisation": xr.DataArray(lam, dims=found.dims)}
    return replace(grid, coordinates={**grid.coordinates, **best}, optimal=None)
