"""Datasets as files: CSV and JSON with one record per point, netCDF as it is."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.results.schema import Role, of_role

if TYPE_CHECKING:
    import xarray as xr

STANDARD_OUTPUT = Path("-")


def columns(ds: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Every coordinate and quantity as a flat array over the points, in the order of the grid.

    Quantities that are no number at a point, as the rates of several classes, have a column for
    each of their numbers, such as class_error_0.
    """
    import xarray as xr

    first = next(iter(ds.data_vars.values()))
    grid = xr.DataArray(np.empty(first.shape), dims=first.dims)
    own = set(ds.dims).difference(first.dims)
    names = [*first.dims, *(c for c in ds.coords if c not in first.dims), *ds.data_vars]
    found: dict[str, NDArray[Any]] = {}
    for name in (n for n in names if n in ds and n not in own):
        more = [dim for dim in ds[name].dims if dim in own]
        for place in product(*(ds[dim].values.tolist() for dim in more)):
            one = ds[name].sel(dict(zip(more, place, strict=True)), drop=True)
            column = "_".join(map(str, (name, *place)))
            found[column] = one.broadcast_like(grid).transpose(*first.dims).values.ravel()
    return found


def write_csv(ds: xr.Dataset, path: Path) -> None:
    """One line per point, all digits; a status is its word."""
    import pandas as pd

    table = _table(ds)
    with opened(path) as file:
        pd.DataFrame(table).to_csv(file, index=False, na_rep="nan", lineterminator="\n")


def write_json(ds: xr.Dataset, path: Path) -> None:
    """Attributes, meanings and one object per point.

    What JSON cannot say: NaN becomes null, infinities become the strings "inf" and "-inf".
    """
    table = _table(ds)
    content = {
        "attributes": {name: str(value) for name, value in ds.attrs.items()},
        "meanings": {n: a.attrs["long_name"] for n, a in ds.items() if "long_name" in a.attrs},
        "points": [
            {name: in_json(value) for name, value in zip(table, row, strict=True)}
            for row in zip(*table.values(), strict=True)
        ],
    }
    with opened(path) as file:
        json.dump(content, file, indent=1, allow_nan=False)
        file.write("\n")


def write_nc(ds: xr.Dataset, path: Path) -> None:
    """The dataset itself, for `xarray.open_dataset`."""
    ds.to_netcdf(path)


def words(status: xr.DataArray, values: NDArray[Any]) -> list[str]:
    """What the numbers of a status stand for."""
    known = str(status.attrs["flag_meanings"]).split()
    return [known[int(value)] for value in values]


def _table(ds: xr.Dataset) -> dict[str, list[Any]]:
    """All columns as plain values, those of a status as its words."""
    statuses = of_role(ds, Role.STATUS)
    return {
        name: words(ds[name], values) if name in statuses else values.tolist()
        for name, values in columns(ds).items()
    }


def in_json(value: Any) -> Any:
    """A value as JSON can say it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A file to write text into, or standard output."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
