"""Run a long computation in pieces, with a bar that shows the time left."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.parallel.progress import Progress

if TYPE_CHECKING:
    import xarray as xr

T = TypeVar("T")


def in_pieces(
    call: Callable[..., xr.Dataset], ratios: Mapping[str, float | Array], points: int
) -> xr.Dataset:
    """Call with the longest of the vectors cut into pieces; Ctrl-C keeps what is done.

    Then the attribute `interrupted` is 1, as in what `simulate` returns. A piece has about so many
    points of the ratios' grid: a fixed number, so that results do not depend on the machine.
    """
    import xarray as xr

    lengths = {name: np.size(values) for name, values in ratios.items() if np.ndim(values)}
    total = math.prod(lengths.values())
    dim = max(lengths, key=lengths.__getitem__, default=None)
    if dim is None or total <= points:
        return call(**ratios)
    pieces = np.array_split(ratios[dim], min(lengths[dim], math.ceil(total / points)))
    done: list[xr.Dataset] = []
    try:
        with Progress().of([1.0] * len(pieces)) as shown:
            for piece in pieces:
                done.append(call(**{**ratios, dim: piece}))
                shown.advance()
    except KeyboardInterrupt:
        if not done:
            raise
    whole = xr.concat(
        done,
        dim,
        data_vars="minimal",
        coords="minimal",
        compat="override",
        combine_attrs="override",
    )
    return whole.assign_attrs(interrupted=int(len(done) < len(pieces)))


def with_bar(call: Callable[..., T]) -> T:
    """Call what has a progress bar of its own, and keep that out of the results."""
    with redirect_stdout(sys.stderr):
        return call(progress=sys.stderr.isatty())


def undivided(call: Callable[..., T]) -> T:
    """The same for work that is useless unless complete, of which a Ctrl-C keeps nothing."""
    try:
        return with_bar(call)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted") from None
