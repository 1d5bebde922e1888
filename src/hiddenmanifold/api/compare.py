"""Simulations and the theory at the same points, and how far apart they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import EarlyStopping, Optimal, free_ratios, sizes_of
from hiddenmanifold.api.compare_training import compare_stopped
from hiddenmanifold.api.ensembles import ensembled
from hiddenmanifold.api.grid import Grid, check_on_failure, checked
from hiddenmanifold.api.predict import check_finite_size, predicted
from hiddenmanifold.api.signatures import Finite, with_options
from hiddenmanifold.api.simulate import Simulation
from hiddenmanifold.api.standard_scores import judge
from hiddenmanifold.errors import ConvergenceError, InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import bare, summary, with_schema
from hiddenmanifold.results.schema import Kind

if TYPE_CHECKING:
    import xarray as xr


@with_options(Finite)
def compare(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray | Optimal | EarlyStopping | Literal["optimal"],
    finite_size: bool = False,
    on_failure: Literal["raise", "keep"] = "keep",
    **options: Unpack[Finite],
) -> xr.Dataset:
    """Simulate and predict the same points, and judge the difference by its standard error.

    Parameters
    ----------
    model : Model
        The learning problem; `backtest` does the same for real data.
    regularisation : array_like, DataArray, Optimal, EarlyStopping or "optimal"
        The λ of the objective, or the one of least predicted error at the given ratios, which is
        then in the dataset as `optimal_regularisation`. An `EarlyStopping` trains without a penalty
        until its time, or the predicted `optimal_time`, by `compare_training`.
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
    if isinstance(regularisation, EarlyStopping):
        asked_for = {**options, "finite_size": finite_size or None}
        return compare_stopped(model, regularisation, asked_for, on_failure)
    simulation = Simulation.of(model, regularisation, options, search=True)
    asked, finite = simulation.grid, check_finite_size(model, finite_size)
    if asked.optimal is not None:
        simulation = replace(simulation, grid=_at_best_regularisation(simulation))
    out = summary(simulation.run())
    used = free_ratios({name: out[name] for name in sizes_of(model.features)}, model.features)
    lam = simulation.grid.coordinates["regularisation"]
    at, ensemble = simulation.grid.at(used, lam), simulation.ensemble
    if simulation.pairing is not None:
        theory = simulation.pairing.predicted(simulation.pairing.beside(at, simulation.grid, out))
    elif ensemble is not None:
        theory = ensembled(at, ensemble, simulation.resampling)
    else:
        theory = predicted(at, simulation.observables, at.counts(out["n"]) if finite else None)
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


def _at_best_regularisation(simulation: Simulation) -> Grid:
    """The grid at the regularisation of least predicted error, if a fit can have it.

    An ensemble has a best regularisation of its own.
    """
    import xarray as xr

    grid, ensemble = simulation.grid, simulation.ensemble
    assert grid.optimal is not None
    if ensemble is None:
        found = predicted(grid).optimal_regularisation
    elif len(ensemble.members) > 1:
        raise InvalidArgumentError.because(
            "members",
            f"= {', '.join(f'{k:g}' for k in ensemble.members)} have different best λ",
            "give one number of members, or numbers as regularisation",
        )
    else:
        answer = ensembled(grid, ensemble, simulation.resampling)
        found = answer.optimal_regularisation.isel(members=0)
    lam = found.values
    limits = lam[np.isinf(lam) | ((lam == 0) & (not grid.model.least_squares))]
    if limits.size:
        raise InvalidArgumentError.because(
            "bounds",
            f"= {grid.optimal.bounds} are too wide",
            f"narrow them, because the best regularisation is the limit {limits[0]:g}, which no "
            "fit can have",
        )
    best = {"regularisation": xr.DataArray(lam, dims=found.dims)}
    return replace(grid, coordinates={**grid.coordinates, **best}, optimal=None)
