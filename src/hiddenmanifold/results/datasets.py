"""Labelled results: xarray datasets with named axes, provenance and status."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.errors import InvalidArgumentError, Status
from hiddenmanifold.model import OBJECTIVE, Model
from hiddenmanifold.results.observables import OBSERVABLES
from hiddenmanifold.versions import version

if TYPE_CHECKING:
    import xarray as xr

ACCEPTED = 1e-7
"""The largest distance of a fit from its minimum that counts as exact.

Rounding allows no better when λ makes the objective tiny.
"""
MEANINGS = {
    "generalisation_error": "test error against new labels drawn by the same noisy rule",
    "clean_error": "test error against the noiseless rule",
    "training_loss": "(sum of losses + regularisation/2 |w|²)/n at the minimum",
    "training_error": "fraction of training samples that are misclassified",
    "V": "κ1² V_s + κ⋆² V_w",
    "Q": "variance of the prediction, κ1² q_s + κ⋆² q_w",
    "M": "covariance of the prediction with the teacher's field, κ1 m_s",
    "alignment": "correlation of the prediction with the teacher's field, M/√(ρQ); NaN, not a "
    "failure, if the prediction is constant",
    "overlap": "variance of the posterior mean of the teacher's field; rho if all is learned",
    "margin": "smallest distance y f √p/|w| of a training sample, NaN if they are not all fitted",
    "Q_normalised": "Q/q_w, finite where w grows without bound",
    "M_normalised": "M/√q_w, finite where w grows without bound",
    "q_s_normalised": "q_s/q_w, finite where w grows without bound",
    "m_s_normalised": "m_s/√q_w, finite where w grows without bound",
    "intercept_normalised": "b/√q_w, finite where w grows without bound",
    "test_cdf": "fraction of new samples whose margin y f is at most the value",
    "train_cdf": "fraction of training samples whose margin y f is at most the value",
    "optimal_regularisation": "the regularisation of least error; 0 and inf mean the limits",
    **{observable.name: observable.long_name for observable in OBSERVABLES},
    **{
        f"{name}_by_log_{parameter}": f"derivative of {name} by log {symbol}"
        for name in ("generalisation_error", "clean_error", *(o.name for o in OBSERVABLES))
        for parameter, symbol in (("regularisation", "λ"), ("n", "n"), ("p", "p"))
    },
    "q_s": "|F w/√p|²/d",
    "q_w": "|w|²/p",
    "m_s": "(F w/√p)·θ/d",
    "V_s": "response of F w/√p",
    "V_w": "response of w",
    "intercept": "the intercept b of the prediction",
    "status": "how the solve of the point ended",
    "residual": "largest relative change under one more undamped turn of the equations",
    "quadrature_error": "estimated relative error of (V, Q, M) left by the quadrature",
    "conditioning_error": "estimated relative error of (V, Q, M) left by magnified rounding",
    "iterations": "evaluations of the equations",
    "optimality": "bound on the fit's relative distance from its minimum",
    "seconds": "time spent on the fit, its data and its test",
    "generalisation_error_test_stderr": "standard error left by the finite number of test samples",
    "clean_error_test_stderr": "standard error left by the finite number of test samples",
}
COUNTED = {"n": "samples", "p": "features", "d": "latent dimensions"}
COORDINATES = {
    **{f"{a}_over_{b}": f"{COUNTED[a]} per {COUNTED[b][:-1]}" for a, b in permutations(COUNTED, 2)},
    **{name: f"number of {counted}" for name, counted in COUNTED.items()},
    "regularisation": "regularisation λ of the objective; 0 and inf mean the limits",
    "target_error": "generalisation error to reach",
    "seed": "number of the draw of features, teacher and samples",
}


def dataset(
    model: Model,
    coordinates: Mapping[str, xr.DataArray],
    template: xr.DataArray,
    columns: Mapping[str, NDArray[Any]],
    *,
    source: Mapping[str, Any],
    meanings: Mapping[str, str] = MEANINGS,
) -> xr.Dataset:
    """Flat columns as a dataset shaped like `template`, with coordinates and provenance.

    `meanings` are those of names that mean something else, or nothing, elsewhere.
    """
    import xarray as xr

    meanings, dims, shape = {**MEANINGS, **meanings}, template.dims, template.shape
    data = {
        name: variable(dims, values.reshape(shape), {"long_name": meanings[name]})
        for name, values in columns.items()
    }
    if "status" in data:
        data["status"].attrs.update(
            flag_values=[int(s) for s in Status],
            flag_meanings=" ".join(s.name.lower() for s in Status),
            sentences="; ".join(f"{int(s)}: {s.sentence}" for s in Status),
        )
    coords = explained({**template.coords, **coordinates})
    return xr.Dataset(data, coords=coords, attrs=provenance(model, source))


def variable(
    dims: tuple[Hashable, ...], values: NDArray[Any], attrs: Mapping[str, Any] | None = None
) -> xr.Variable:
    """An array in memory, with the names of its axes."""
    import xarray as xr

    # fastpath: else xarray imports dask to ask whether it is one of its arrays, in 0.2 s
    return xr.Variable(dims, values, attrs, fastpath=True)


def with_margins(
    ds: xr.Dataset,
    template: xr.DataArray,
    laws: Mapping[str, Sequence[NDArray[Any]]],
    at: Sequence[float],
) -> xr.Dataset:
    """A dataset with laws of margins, given as a flat column for each of some values."""
    import xarray as xr

    for name, columns in laws.items():
        table = np.stack(columns, axis=-1).reshape(*template.shape, len(at))
        ds[name] = ((*template.dims, "y_f"), table, {"long_name": MEANINGS[name]})
    values = xr.DataArray(np.array(at), dims="y_f", attrs={"long_name": "margin y f of a sample"})
    return ds.assign_coords(y_f=values)


def explained(coordinates: Mapping[Any, xr.DataArray]) -> dict[Any, xr.DataArray | xr.Variable]:
    """Coordinates with their meaning, unless who gave one said what it means."""
    known = {name: {"long_name": COORDINATES[name]} for name in coordinates if name in COORDINATES}
    attrs = {name: {**known.get(name, {}), **a.attrs} for name, a in coordinates.items()}
    return {
        name: a.assign_attrs(attrs[name]) if a.coords else _coordinate(name, a, attrs[name])
        for name, a in coordinates.items()
    }


def _coordinate(name: str, array: xr.DataArray, attrs: Mapping[str, Any]) -> xr.Variable:
    import pandas as pd
    import xarray as xr

    if array.dims == (name,):
        # xarray makes the same index, but imports dask before
        return xr.IndexVariable(name, pd.Index(array.values), attrs)  # type: ignore[no-untyped-call]
    return variable(array.dims, array.values, attrs)


def provenance(model: Model, source: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that say where a dataset comes from."""
    return {
        "model": repr(model),
        "task": str(model.task),
        "objective": OBJECTIVE,
        "hiddenmanifold_version": version("hiddenmanifold"),
        **source,
    }


def summary(ds: xr.Dataset) -> xr.Dataset:
    """Mean and standard error over the seeds of every simulated quantity.

    Fits that are farther than 1e-7 from their optimum are left out, and counted in `dropped`. The
    standard error contains what the finite number of test samples leaves in every seed.

    Parameters
    ----------
    ds : xarray.Dataset
        What `simulate` returned.
    """
    if "seed" not in getattr(ds, "dims", ()) or "optimality" not in ds:
        raise InvalidArgumentError("ds", ds, "a dataset returned by simulate")
    good = ds.optimality <= ACCEPTED
    # the error that a test leaves in one seed is not one of the mean
    own = [name for name in ds.data_vars if str(name).endswith("_test_stderr")]
    used = ds.where(good).drop_vars(["optimality", "seconds", *own])
    out = used.mean("seed", keep_attrs=True)
    # what is not defined in one seed, as the alignment of a constant prediction, has fewer of them
    count = used.count("seed")
    squares = ((used - out) ** 2).sum("seed")
    spread = (squares / (count - 1).where(count > 1) / count) ** 0.5  # `std` warns of a single one
    for name in used.data_vars:
        meaning = {"long_name": f"standard error over seeds of the mean of {name}"}
        out[f"{name}_stderr"] = spread[name].assign_attrs(meaning)
    out["seeds"] = count.generalisation_error.assign_attrs(long_name="number of seeds in the mean")
    # a trial that a Ctrl-C left undone took no time, and is no fit to leave out
    out["dropped"] = (~good & ds.seconds.notnull()).sum("seed")
    out["dropped"].attrs["long_name"] = "number of seeds left out, whose fit is not at its optimum"
    return out
