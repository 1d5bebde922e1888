"""Quantities on a grid as maps: two coordinates are axes, and the value is a colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.plotting.selection import axes_of, quantities_of, sizes_of
from hiddenmanifold.plotting.style import (
    NUMBERS,
    is_logarithmic,
    label,
    limits,
    ordinate,
    spans_decades,
)
from hiddenmanifold.results.schema import Role, of_role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

FEWEST = 16
"""Values along each of two dimensions from which on a map shows more than curves."""
DASHES = ("-", "--", ":", "-.")
"""How lines over a map differ: all are white, which no value of it is."""
MISSING = "0.8"
"""The colour of points without a finite value."""


def is_map(
    dataset: xr.Dataset, x: str | None, y: str | Sequence[str] | None, kind: str | None
) -> bool:
    """Whether a map is drawn; by default of predictions on grids that are fine along both axes.

    Raises
    ------
    InvalidArgumentError
        If a map is asked for, and a dataset has no two axes for it.
    """
    if kind == "curves":
        return False
    if kind == "map" or sum(size > 1 for size in sizes_of(dataset, y).values()) == 2:
        x, up = axes_of(sizes_of(dataset, y), x)
        problem = _problem(dataset, x, up)
        if kind == "map" and problem:
            raise InvalidArgumentError.because("dataset", problem, "draw it with kind='curves'")
        names = quantities_of(dataset, x, y)
        laws = of_role(dataset, Role.DISTRIBUTION)
        plain = not any(f"{name}_stderr" in dataset or name in laws for name in names)
        fine = all(dataset.sizes[dim] >= FEWEST for dim in (x, up) if dim)
        on_plane = all(up in dataset[name].dims for name in names)
        return kind == "map" or (not problem and plain and fine and on_plane)
    return False


def _problem(dataset: xr.Dataset, x: str, up: str | None) -> str:
    """Why a dataset cannot be a map; empty if it can."""
    if up is None:
        return f"varies along {x} alone, and a map needs two dimensions"
    for dim in (x, up):
        values = dataset[dim].values
        if values.dtype.kind not in NUMBERS:
            return f"has a dimension {dim}, whose values are no numbers"
        if limits(values):
            return f"has limits along {dim}, for which a map has no place"
    return ""


def draw_map(
    axis: Axes,
    dataset: xr.Dataset,
    name: str,
    plane: tuple[str, str],
    lines: Sequence[tuple[str, Array, Array]],
) -> None:
    """Draw one quantity above a plane of two dimensions, and lines in it.

    Raises
    ------
    InvalidArgumentError
        If the quantity does not vary along both axes.
    """
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Patch

    x, up = plane
    if up not in dataset[name].dims:
        raise InvalidArgumentError("y", name, f"a quantity that varies along {x} and {up}")
    ordered = dataset[name].sortby([x, up])
    rest = {dim: 0 for dim in ordered.dims if dim not in (x, up)}
    values = ordered.isel(rest).transpose(up, x).values
    there = np.isfinite(values)
    for dim, scale in ((x, axis.set_xscale), (up, axis.set_yscale)):
        if is_logarithmic(dataset[dim].values):
            scale("log")
    norm = LogNorm() if spans_decades(values) and (values[there] > 0).all() else Normalize()
    mesh = axis.pcolormesh(
        *(_edges(ordered[dim].values) for dim in (x, up)),
        np.where(there, values, np.nan),
        norm=norm,
        cmap="viridis",
        rasterized=True,  # ten thousand rectangles would make a large file
    )
    bar = axis.figure.colorbar(mesh, ax=axis, aspect=25, pad=0.02)
    bar.set_label(ordinate(dataset, name))
    axis.set_ylabel(label(up))
    axis.set_facecolor(MISSING)
    missing = [] if there.all() else [Patch(color=MISSING, label="no finite value")]
    _legend(axis, [*_lines(axis, lines), *missing])


def _edges(values: Array) -> Array:
    """Where rectangles around sorted coordinates end: halfway, on their own kind of axis."""
    logarithmic = is_logarithmic(values)
    at = np.log(values) if logarithmic else values.astype(float)
    inner = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[at[0]], inner, [at[-1]]])  # half as wide at the ends
    return np.exp(edges) if logarithmic else edges


def _lines(axis: Axes, lines: Sequence[tuple[str, Array, Array]]) -> list[Any]:
    """Draw lines that are seen on every colour, within the map; return them for a legend."""
    from matplotlib.patheffects import withStroke

    ends = axis.get_xlim(), axis.get_ylim()
    drawn = []
    for k, (name, along, across) in enumerate(lines):
        order = np.argsort(along, kind="stable")
        drawn += axis.plot(
            along[order],
            across[order],
            DASHES[k % len(DASHES)],
            color="white",
            linewidth=1.8,
            label=name,
            path_effects=[withStroke(linewidth=3.2, foreground="0.2")],
        )
    axis.set(xlim=ends[0], ylim=ends[1])
    return drawn


def _legend(axis: Axes, entries: Sequence[Any]) -> None:
    if entries:
        axis.legend(handles=entries, frameon=True, facecolor="0.55", framealpha=0.8)
