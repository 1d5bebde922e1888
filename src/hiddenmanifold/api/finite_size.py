"""How far fits of given sizes are, on average, from the limit that `predict` computes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import sizes_of
from hiddenmanifold.api.compare import compare
from hiddenmanifold.api.draws import Plan
from hiddenmanifold.api.simulate import Simulation
from hiddenmanifold.api.standard_scores import COMPARED
from hiddenmanifold.errors import InvalidArgumentError, Status
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import with_schema
from hiddenmanifold.results.observables import DECISIONS
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.simulation.fit import ONLY_SQUARE

if TYPE_CHECKING:
    import xarray as xr

SEEDS = 100
"""Fits of each point: their mean is known within a tenth of their spread."""
BUDGET = 10.0
"""Estimated seconds on one core above which smaller sizes are simulated instead."""
SMALLEST = 16
"""Least number of samples, features and latent dimensions that is simulated instead of more."""
DOUBT = 2.0
"""Difference of two sizes, in standard errors, from which on their law is not trusted."""


class Deviations(NamedTuple):
    """Mean minus limit of each quantity at some sizes, and the standard errors."""

    mean: xr.Dataset
    stderr: xr.Dataset


def with_deviations(
    model: Model,
    ds: xr.Dataset,
    observables: tuple[str, ...],
    execution: dict[str, Any],
    *,
    thresholds: ArrayLike | None = None,
    seeds: int = SEEDS,
    budget: float = BUDGET,
) -> xr.Dataset:
    """A prediction with the mean deviation of each error, observable and decision at its sizes.

    Fits of these sizes are simulated if all of them take less than the budget; otherwise smaller
    ones of the same ratios, from whose deviations those asked for follow by their proportionality
    to 1/d. Points that did not converge have none.
    """
    names = sizes_of(model.features)
    lam = ds["optimal_regularisation" if "optimal_regularisation" in ds else "regularisation"]
    _check(model, ds, names, lam)
    lam = lam.where(ds.status == Status.CONVERGED, 1.0) if "status" in ds else lam
    sizes = {name: _bare(ds[name]) for name in names}
    drawing = {
        "observables": observables,
        "decision_thresholds": thresholds,
        "seeds": seeds,
        **execution,
    }
    began = time.perf_counter()
    scale = _affordable(model, sizes, lam, drawing, budget=budget)
    if scale == 1.0:
        found, method = _measured(model, sizes, lam, drawing), "simulated fits of these sizes"
    else:
        large, small = (
            _measured(model, _scaled(sizes, s), lam, drawing) for s in (scale, 0.5 * scale)
        )
        found = _extrapolated(large, small, scale)
        method = f"simulated fits of {scale:g} and {0.5 * scale:g} times these sizes, and 1/d"
    good = _bare(ds.status == Status.CONVERGED)
    for name in found.mean.data_vars:
        if name in ds:
            ds[f"{name}_finite_size"] = found.mean[name].where(good)
            ds[f"{name}_finite_size_stderr"] = found.stderr[name].where(good)
    ds.attrs |= {
        "finite_size_method": method,
        "finite_size_seeds": seeds,
        "finite_size_seconds": round(time.perf_counter() - began, 3),
    }
    return with_schema(ds, Kind.PREDICTION)


def _check(model: Model, ds: xr.Dataset, names: tuple[str, ...], lam: xr.DataArray) -> None:
    """Raise unless fits of these sizes exist."""
    if any(name not in ds.coords for name in names):
        raise InvalidArgumentError.because(
            "finite_size", "= True needs sizes", f"give {', '.join(names)} instead of ratios"
        )
    if not model.least_squares and not lam.values.all():
        raise InvalidArgumentError("regularisation", 0.0, f"{ONLY_SQUARE}, with finite_size=True")
    if np.isinf(lam.values).any():
        raise InvalidArgumentError("regularisation", np.inf, "finite, with finite_size=True")


def _bare(values: xr.DataArray) -> xr.DataArray:
    """An array without labels and attributes."""
    import xarray as xr

    return xr.DataArray(values.values, dims=values.dims)


def _scaled(sizes: dict[str, xr.DataArray], scale: float) -> dict[str, xr.DataArray]:
    """Sizes of about the same ratios."""
    return {name: (values * scale).round().astype(int) for name, values in sizes.items()}


def _affordable(
    model: Model,
    sizes: dict[str, xr.DataArray],
    lam: xr.DataArray,
    drawing: dict[str, Any],
    *,
    budget: float,
) -> float:
    """One, if fits of these sizes take less than the budget; else the largest fraction that do."""
    scale = 1.0
    while True:
        some = _scaled(sizes, scale)
        if min(int(values.min()) for values in some.values()) < SMALLEST and scale < 1.0:
            raise InvalidArgumentError.because(
                "finite_size",
                "= True would take too long",
                f"fits of these sizes need more than {budget:g} seconds, and smaller ones of these "
                "ratios are too small: ask for fewer points, or call simulate",
            )
        # of a scaled pair the smaller sizes cost little more
        if _seconds(model, some, lam, drawing) < budget:
            return scale
        if model.features.fixed_dimension is not None:
            raise InvalidArgumentError.because(
                "finite_size",
                "= True would take too long",
                "the features fix their sizes, so that no smaller ones can be simulated instead: "
                "ask for fewer points, or call simulate",
            )
        scale *= 0.5


def _seconds(
    model: Model, sizes: dict[str, xr.DataArray], lam: xr.DataArray, drawing: dict[str, Any]
) -> float:
    """Estimated time of all fits on one core."""
    options: Any = {**sizes, **drawing}
    simulation = Simulation.of(model, _bare(lam), options)
    plan = Plan.of(simulation.grid, simulation.d)
    return simulation.seeds * sum(simulation.trial(0, *point).seconds for point in plan.points)


def _measured(
    model: Model, sizes: dict[str, xr.DataArray], lam: xr.DataArray, drawing: dict[str, Any]
) -> Deviations:
    """Deviations of simulated fits from the limit at the ratios of their sizes."""
    import xarray as xr

    options: Any = {**sizes, **drawing}
    both = compare(model, regularisation=_bare(lam), **options)
    names = (*COMPARED, *drawing["observables"], *DECISIONS)
    names = tuple(name for name in names if f"{name}_theory" in both)
    mean = {n: _bare(both[n]) - _bare(both[f"{n}_theory"]) for n in names}
    return Deviations(xr.Dataset(mean), xr.Dataset({n: _bare(both[f"{n}_stderr"]) for n in names}))


def _extrapolated(large: Deviations, small: Deviations, scale: float) -> Deviations:
    """Deviations at the full sizes from those at two scales, each times its scale.

    Both estimate the same number if the deviation falls like 1/d; the weighted mean has a standard
    error that is widened where they differ by more than noise.
    """
    (a, da), (b, db) = (
        (found.mean * s, found.stderr * s) for found, s in ((large, scale), (small, 0.5 * scale))
    )
    noise = (da**2 + db**2) ** 0.5
    share = (db / noise).where(noise > 0.0, 0.5**0.5) ** 2  # of a; alike if neither scatters
    mean = share * a + (1.0 - share) * b
    stderr = da * db / noise.where(noise > 0.0, 1.0)
    apart = abs(a - b)
    stderr = stderr.where(apart <= DOUBT * noise, (stderr**2 + (0.5 * apart) ** 2) ** 0.5)
    return Deviations(mean, stderr)
