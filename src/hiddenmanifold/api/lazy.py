"""Datasets that are computed when they are asked for, chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError

if TYPE_CHECKING:
    import xarray as xr

Chunks = Mapping[str, int] | Literal["auto"]
AUTOMATIC = 2**14
"""Points in a chunk by default: a second or two of work."""
MOST = 10**6
"""Most chunks of one dataset, each of which is one task in memory before it is computed."""


def chunked(
    function: Callable[..., xr.Dataset], coordinates: Mapping[str, xr.DataArray], chunks: Chunks
) -> xr.Dataset:
    """The results of a function on a grid, as a dataset of dask arrays.

    The function takes the coordinates, or parts of them along each dimension, by name. It is called
    at once for a single point, the first, to learn which columns there are.

    Raises
    ------
    InvalidArgumentError
        If chunks are not sizes of dimensions that the grid has.
    MissingExtraError
        If dask is not installed.
    """
    import xarray as xr

    try:
        import dask.array as da
    except ImportError:
        raise MissingExtraError("chunks=", "dask", "cluster") from None

    sizes = {d: n for a in coordinates.values() for d, n in zip(a.dims, a.shape, strict=True)}
    dims = tuple(sizes)
    cuts = dict(zip(dims, _cuts(sizes, chunks), strict=True))
    one = {name: array.isel(dict.fromkeys(array.dims, [0])) for name, array in coordinates.items()}
    first = function(**one, on_failure="keep")
    parts: list[Any] = []
    for array in coordinates.values():
        pieces = tuple(cuts[dim] for dim in array.dims)
        parts += [da.from_array(array.values, chunks=pieces), array.dims]
    columns = [str(name) for name in first.data_vars]
    computed = da.blockwise(
        partial(_block, function, {n: a.dims for n, a in coordinates.items()}, columns, dims),
        ("column", *dims),
        *parts,
        new_axes={"column": len(columns)},
        concatenate=True,
        align_arrays=False,
        dtype=float,
        meta=np.empty((0,) * (len(dims) + 1)),
        token=f"hiddenmanifold-{uuid4().hex}",
    )
    data = {
        name: (dims, computed[i].astype(first[name].dtype), first[name].attrs)
        for i, name in enumerate(columns)
    }
    attrs = {name: value for name, value in first.attrs.items() if name != "workers"}
    coords = {name: a.assign_attrs(first[name].attrs) for name, a in coordinates.items()}
    return xr.Dataset(data, coords=coords, attrs=attrs)


def _block(
    function: Callable[..., xr.Dataset],
    own: Mapping[str, tuple[Hashable, ...]],
    columns: list[str],
    dims: tuple[Hashable, ...],
    *blocks: Array,
) -> Array:
    """All columns of one chunk."""
    import xarray as xr

    given = zip(own.items(), blocks, strict=True)
    ds = function(**{name: xr.DataArray(block, dims=some) for (name, some), block in given})
    return np.stack([ds[name].transpose(*dims).values.astype(float) for name in columns])


def _cuts(sizes: Mapping[Any, int], chunks: object) -> tuple[tuple[int, ...], ...]:
    """The lengths of chunks along each dimension."""
    import dask.array as da

    if chunks == "auto":
        wanted: Any = dict.fromkeys(range(len(sizes)), "auto")
    elif isinstance(chunks, Mapping) and set(chunks) <= set(sizes) and _whole(chunks.values()):
        wanted = {i: min(chunks.get(dim, n), n) for i, (dim, n) in enumerate(sizes.items())}
    else:
        allowed = "'auto', or whole positive numbers for dimensions among " + ", ".join(sizes)
        raise InvalidArgumentError("chunks", chunks, allowed)
    shape = tuple(sizes.values())
    together = AUTOMATIC if chunks == "auto" else math.prod(wanted.values())
    if (number := math.prod(shape) / together) > MOST:
        raise InvalidArgumentError.because(
            "chunks",
            f"cut the points into {number:.2g} pieces",
            f"make them larger: at most {MOST:g} are allowed",
        )
    cuts: tuple[tuple[int, ...], ...] = da.core.normalize_chunks(
        wanted, shape, 8 * AUTOMATIC, np.dtype(float)
    )
    return cuts


def _whole(values: Iterable[object]) -> bool:
    return all(isinstance(v, int | np.integer) and v is not True and v > 0 for v in values)
