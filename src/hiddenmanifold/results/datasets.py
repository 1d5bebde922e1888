"""Labelled results: xarray datasets with named axes, provenance and status."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError, Status
from hiddenmanifold.model import Model
from hiddenmanifold.results.ingredients import model_attributes
from hiddenmanifold.results.observables import Observable
from hiddenmanifold.results.schema import CLASS_DIMENSIONS, VARIABLES, Kind, Role, described
from hiddenmanifold.versions import version

if TYPE_CHECKING:
    import xarray as xr

ACCEPTED = 1e-7
"""The largest distance of a fit from its minimum that counts as exact.

Rounding allows no better when λ makes the objective tiny.
"""


def dataset(
    kind: Kind,
    model: Model,
    coordinates: Mapping[str, xr.DataArray],
    template: xr.DataArray,
    columns: Mapping[str, NDArray[Any]],
    *,
    source: Mapping[str, Any],
    observables: Sequence[Observable] = (),
    last: tuple[str, Array] | None = None,
    of_fits: Collection[str] = (),
) -> xr.Dataset:
    """Flat columns as a dataset shaped like `template`, with coordinates and provenance.

    Columns of values that are no numbers, as a rate for each class, have more dimensions: those of
    the observable of their name, the dimension `fit` for the names `of_fits`, or else the one given
    with its labels as `last`.
    """
    import xarray as xr

    vectors = {o.name: o for o in observables if o.at is not None}
    own = {**CLASS_DIMENSIONS, **{name: (o.dimension,) for name, o in vectors.items()}}
    own |= {name: ("fit",) for name in of_fits}
    dims, shape = template.dims, template.shape
    if last is not None:
        own = {n: (last[0],) for n, v in columns.items() if v.ndim > 1} | own
    data = {
        name: variable((*dims, *own.get(name, ())), values.reshape((*shape, *values.shape[1:])))
        for name, values in columns.items()
    }
    labels = [(o.dimension, np.array(o.at)) for o in vectors.values()] + ([last] if last else [])
    lengths = {dim: n for array in data.values() for dim, n in array.sizes.items()}
    for dim in dict.fromkeys(dim for some in CLASS_DIMENSIONS.values() for dim in some):
        if dim in lengths:
            labels.append((dim, np.arange(lengths[dim]) + (dim == "top")))
    labels += [("fit", np.array([1, 2]))] if of_fits else []
    further = [(name, xr.DataArray(values, dims=name)) for name, values in labels]
    given = [*template.coords.items(), *coordinates.items(), *further]
    coords = {name: _coordinate(name, array) for name, array in given}
    attrs = {
        **model_attributes(model),
        "objective": model.objective,
        "hiddenmanifold_version": version("hiddenmanifold"),
        **source,
    }
    return with_schema(xr.Dataset(data, coords=coords, attrs=attrs), kind)


def variable(dims: tuple[Hashable, ...], values: NDArray[Any]) -> xr.Variable:
    """An array in memory, with the names of its axes."""
    import xarray as xr

    # fastpath: else xarray imports dask to ask whether it is one of its arrays, in 0.2 s
    return xr.Variable(dims, values, fastpath=True)


def bare(array: xr.DataArray) -> xr.Variable:
    """The values of an array and the names of its axes, without coordinates or attributes.

    To put it into a dataset is quick: there are no coordinates to compare.
    """
    return variable(array.dims, array.data)


def _coordinate(name: Hashable, array: xr.DataArray) -> xr.DataArray | xr.Variable:
    """A coordinate that keeps its attributes; one without labels of its own is made quickly."""
    import pandas as pd
    import xarray as xr

    if array.coords:
        return array
    if array.dims == (name,):
        # xarray makes the same index, but imports dask before
        return xr.IndexVariable(name, pd.Index(array.values), array.attrs)  # type: ignore[no-untyped-call]
    return xr.Variable(array.dims, array.values, array.attrs, fastpath=True)


def with_schema(ds: xr.Dataset, kind: Kind) -> xr.Dataset:
    """The dataset with its kind, and with meaning and role of every variable.

    A meaning that a variable has already stays: its coordinates may be a user's own, and have
    other names.
    """
    ds.attrs = {**ds.attrs, "kind": str(kind)}
    coordinates = set(ds.coords)
    for name, variable in ds.variables.items():
        own = _attributes(str(name), kind, name in coordinates)
        variable.attrs = {**own, **variable.attrs, "role": own["role"]}
    return ds


@cache
def _attributes(name: str, kind: Kind, coordinate: bool) -> Mapping[str, Any]:
    """The schema's attributes of a variable, or of a coordinate, which may be a user's own."""
    if coordinate:
        known = {"long_name": VARIABLES[name].meaning} if name in VARIABLES else {}
        return {**known, "role": str(Role.COORDINATE)}
    meaning, role = described(name, kind)
    words = flags(Status) if role is Role.STATUS else {}
    return {"long_name": meaning, **words, "role": str(role)}


def flags(statuses: Iterable[Any]) -> dict[str, Any]:
    """The attributes that say in words what the integers of a status stand for."""
    return {
        "flag_values": [int(status) for status in statuses],
        "flag_meanings": " ".join(status.name.lower() for status in statuses),
        "sentences": "; ".join(f"{int(status)}: {status.sentence}" for status in statuses),
    }


def summary(ds: xr.Dataset) -> xr.Dataset:
    """Mean and standard error over the seeds of every simulated quantity.

    Fits that are farther than 1e-7 from their optimum are left out, and counted in `dropped`. The
    standard error includes the sampling error of the finite test set in every seed.

    Parameters
    ----------
    ds : xarray.Dataset
        The dataset that `simulate` returned.
    """
    if "seed" not in getattr(ds, "dims", ()) or "optimality" not in ds:
        raise InvalidArgumentError("ds", ds, "a dataset returned by simulate")
    good = ds.optimality <= ACCEPTED
    # the standard error of a test within one seed is not that of the mean
    own = [name for name in ds.data_vars if str(name).endswith("_test_stderr")]
    used = ds.where(good).drop_vars(["optimality", "seconds", *own])
    out = used.mean("seed", keep_attrs=True)
    # a quantity that is undefined in some seeds (the alignment of a constant) averages fewer
    count = used.count("seed")
    squares = ((used - out) ** 2).sum("seed")
    spread = (squares / (count - 1).where(count > 1) / count) ** 0.5  # `std` warns of a single one
    # a trial that a Ctrl-C left undone took no time, and is no fit to leave out
    dropped = (~good & ds.seconds.notnull()).sum("seed")
    added = {f"{name}_stderr": bare(spread[name]) for name in used.data_vars}
    added |= {"seeds": bare(count.generalisation_error), "dropped": bare(dropped)}
    return with_schema(out.assign(added), Kind.SUMMARY)
