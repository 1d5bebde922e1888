"""Datasets as files: CSV and JSON with one record per point, netCDF as it is."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.results.schema import Role

if TYPE_CHECKING:
    import xarray as xr

STANDARD_OUTPUT = Path("-")


def columns(ds: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Every coordinate and quantity as a flat array over the points, in the order of the grid."""
    import xarray as xr

    first = next(iter(ds.data_vars.values()))
    grid = xr.DataArray(np.empty(first.shape), dims=first.dims)
    names = [*first.dims, *(c for c in ds.coords if c not in first.dims), *ds.data_vars]
    return {
        str(name): ds[name].broadcast_like(grid).transpose(*first.dims).values.ravel()
        for name in names
        if name in ds
    }


def write_csv(ds: xr.Dataset, path: Path) -> None:
    """One line per point, all digits; a status is its word."""
    import pandas as pd

    table = {name: _plain(ds[name], values) for name, values in columns(ds).items()}
    with opened(path) as file:
        pd.DataFrame(table).to_csv(file, index=False, na_rep="nan", lineterminator="\n")


def write_json(ds: xr.Dataset, path: Path) -> None:
    """Attributes, meanings and one object per point.

    What JSON cannot say: NaN becomes null, infinities become the strings "inf" and "-inf".
    """
    table = {name: _plain(ds[name], values) for name, values in columns(ds).items()}
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


def _plain(array: xr.DataArray, values: NDArray[Any]) -> list[Any]:
    if array.attrs.get("role") == Role.STATUS:
        return words(array, values)
    plain: list[Any] = values.tolist()
    return plain


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
