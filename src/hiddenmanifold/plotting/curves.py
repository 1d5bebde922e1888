"""Curves on axes.

Predictions are lines, or open squares where they are too few to be joined; simulations are points
with their standard error. A point that failed is a gap in its line. What has no place on an axis (a
limit, or a value far below the others) is a triangle on the edge that it lies beyond. Predictions
for real data have a band of one standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.plotting.style import COLOURS, colours, equation, is_logarithmic, spans_decades

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

LINE: dict[str, Any] = {"linestyle": "-"}
LONE: dict[str, Any] = {
    "linestyle": "none",
    "marker": "s",
    "markersize": 5.5,
    "markerfacecolor": "none",
}
POINT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.5}
LEFT_OUT: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 4.5}
"""How predictions, those that are too few for a line, simulations and leave-one-out errors are
drawn."""
DOUBTFUL: dict[str, Any] = {"linestyle": (0, (2, 1.5))}
FAINT = 0.18
"""How bands are drawn, and lines where they rest on more than the sample."""
SHORT, FLAT = 1000.0, 4.0
"""Ratio of the ends of a logarithmic axis up to which plain numbers are written, evenly if flat."""
FEWEST = 6
"""Fewest points that a line joins: with fewer, it would suggest values not computed."""
DECADES = 8.0
"""Length of the longest vertical axis, below the largest value."""
GREY = "0.3"
TRIANGLE: dict[str, Any] = {"linestyle": "none", "markersize": 4.5}
MOST = 16
"""About as many triangles of one curve are told apart on an edge."""


class Edge(NamedTuple):
    """An axis, its end, and the triangle that points beyond it."""

    side: Literal["x", "y"]
    end: float
    marker: str


EDGES = (Edge("x", 0.0, "<"), Edge("x", 1.0, ">"), Edge("y", 0.0, "v"), Edge("y", 1.0, "^"))


@dataclass(frozen=True)
class Curve:
    """One curve of one panel.

    It has standard errors if it is simulated or measured, and a band, with what of it is doubtful,
    if it extrapolates real data.
    """

    x: Array
    y: Array
    error: Array | None
    colour: Any
    band: tuple[Array, Array] | None = None
    doubtful: Booleans | None = None
    point: dict[str, Any] = field(default_factory=lambda: POINT)

    @property
    def style(self) -> dict[str, Any]:
        """How it is drawn."""
        if self.error is not None:
            return self.point
        enough = self.band is not None or np.isfinite(self.x).sum() >= FEWEST
        return LINE if enough else LONE


def predicted(dataset: xr.Dataset, name: str, x: str, family: str | None) -> Iterator[Curve]:
    """What a dataset predicts of a quantity."""
    source = f"{name}_theory" if f"{name}_stderr" in dataset else name
    if source in dataset:
        for one, colour in members(dataset, x, family):
            band = doubtful = None
            if f"{source}_low" in one:
                band = one[f"{source}_low"].values, one[f"{source}_high"].values
                doubtful = one["status"].values != 0
            yield Curve(one[x].values, one[source].values, None, colour, band, doubtful)


def simulated(dataset: xr.Dataset, name: str, x: str, family: str | None) -> Iterator[Curve]:
    """What a dataset has simulated of a quantity."""
    if f"{name}_stderr" in dataset:
        for one, colour in members(dataset, x, family):
            yield Curve(one[x].values, one[name].values, one[f"{name}_stderr"].values, colour)


def left_out(dataset: xr.Dataset, name: str, x: str, family: str | None) -> Iterator[Curve]:
    """What leave-one-out measures, where the axes have a place for all samples at hand."""
    if f"{name}_leave_one_out" not in dataset or "p" in dataset.coords:
        return
    N = float(dataset.attrs["N"])
    for one, colour in members(dataset, x, family):
        value, error = (one[f"{name}_leave_one_out{end}"].values for end in ("", "_stderr"))
        if x == "n":
            yield Curve(np.array([N]), value[None], error[None], colour, point=LEFT_OUT)
        elif one["n"] == N:
            yield Curve(one[x].values, value, error, colour, point=LEFT_OUT)


def members(dataset: xr.Dataset, x: str, family: str | None) -> Iterator[tuple[xr.Dataset, Any]]:
    """The dataset at each value of the second dimension, with the colour of that value."""
    ordered = dataset.sortby(x)
    rest = {dim: 0 for dim in dataset.dims if dim not in (x, family)}
    if family is None:
        yield ordered.isel(rest), COLOURS[0]
    else:
        for k, colour in enumerate(colours(dataset[family].values)):
            yield ordered.isel({**rest, family: k}), colour


def draw(axis: Axes, curves: Sequence[Curve], x: str, *, bounded: bool = False) -> list[Any]:
    """Draw all curves of one quantity, on axes that suit them; return what explains triangles.

    One that is `bounded`, as a distribution function, is not drawn by its logarithm.
    """
    y = np.concatenate([curve.y for curve in curves])
    floor = top = -np.inf
    extrapolated = any(curve.band is not None for curve in curves)
    if extrapolated or is_logarithmic(np.concatenate([curve.x for curve in curves])):
        axis.set_xscale("log")
    if (extrapolated or spans_decades(y)) and not bounded:
        axis.set_yscale("log")
        top = np.max(y[np.isfinite(y)])
        floor = top * 10.0**-DECADES
    for curve in curves:
        _draw(axis, curve)
    if ((y > 0) & (y < floor)).any():
        least = np.min(y[y >= floor])
        space = (top / least) ** 0.05
        axis.set_ylim(least / space, top * space)
    if extrapolated:
        _number(axis)
    return list(_triangles(axis, curves, x, floor))


def _draw(axis: Axes, curve: Curve) -> None:
    """Draw what has a place on the axes."""
    there = _fits(curve.x, axis.get_xscale())
    x, y = curve.x[there], curve.y[there]
    y = np.where(_fits(y, axis.get_yscale()), y, np.nan)
    if curve.band is not None and curve.doubtful is not None:
        low, high = (end[there] for end in curve.band)
        axis.fill_between(x, low, high, color=curve.colour, alpha=FAINT, linewidth=0)
        if curve.doubtful.any():
            axis.plot(x, y, color=curve.colour, **DOUBTFUL)
            y = np.where(curve.doubtful[there], np.nan, y)
    if curve.error is None:
        axis.plot(x, y, color=curve.colour, **curve.style)
        alone = _alone(y)
        if curve.style is LINE and alone.any():
            axis.plot(x[alone], y[alone], ".", color=curve.colour)
    else:
        bars: dict[str, Any] = {"capsize": 2, "elinewidth": 0.9, "capthick": 0.9, "zorder": 3}
        axis.errorbar(x, y, curve.error[there], color=curve.colour, **curve.point, **bars)


def _number(axis: Axes) -> None:
    """Write plain numbers along logarithmic axes that are too short for powers of ten."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    for one, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        if high <= SHORT * low:
            even = MaxNLocator(5, steps=[1, 2, 5, 10])
            one.set_major_locator(even if high <= FLAT * low else LogLocator(subs=(1, 2, 5)))
            one.set_minor_locator(NullLocator())
            one.set_major_formatter("{x:g}")


def _alone(y: Array) -> Booleans:
    """Which values have no finite neighbour, so that no line would show them."""
    there = np.concatenate([[False], np.isfinite(y), [False]])
    alone: Booleans = there[1:-1] & ~there[:-2] & ~there[2:]
    return alone


def _fits(values: Array, scale: str) -> Booleans:
    """Which values have a place on an axis."""
    return np.isfinite(values) & ((values > 0) | (scale != "log"))


def _ends(values: Array, scale: str, floor: float = -np.inf) -> Array:
    """The end of an axis that each value lies beyond, 0 or 1; NaN if it has a place."""
    off = np.where(values == np.inf, 1.0, 0.0)
    return np.where(_fits(values, scale) & (values >= floor), np.nan, off)


def _triangles(axis: Axes, curves: Sequence[Curve], x: str, floor: float) -> Iterator[Any]:
    """Draw what lies beyond the ends of the axes, and yield the legend's entries for it."""
    from matplotlib.lines import Line2D

    for edge in EDGES:
        beyond = np.concatenate([_beyond(axis, curve, edge, floor) for curve in curves])
        if beyond.size:
            words = f"${equation(x, beyond[0])}$" if edge.side == "x" else _off_the_axis(beyond)
            yield Line2D([], [], color=GREY, label=words, marker=edge.marker, **TRIANGLE)


def _beyond(axis: Axes, curve: Curve, edge: Edge, floor: float) -> Array:
    """Draw the triangles of a curve on one edge; return the values that they stand for."""
    x_end = _ends(curve.x, axis.get_xscale())
    y_end = _ends(curve.y, axis.get_yscale(), floor)
    x_fits, y_fits = np.isnan(x_end), np.isnan(y_end)

    def mark(some: Booleans, x: Array, y: Array, frame: Any) -> None:
        if some.any():
            style = {"color": curve.colour, "clip_on": False, "transform": frame, **TRIANGLE}
            every = -(-int(some.sum()) // MOST)
            axis.plot(x[some], y[some], marker=edge.marker, markevery=every, **style)

    off, values = (y_end, curve.y) if edge.side == "y" else (x_end, curve.x)
    lost = ~np.isnan(curve.y) & (off == edge.end)
    if edge.side == "y":
        mark(lost & x_fits, curve.x, y_end, axis.get_xaxis_transform())
    else:
        mark(lost & y_fits, x_end, curve.y, axis.get_yaxis_transform())
        mark(lost & ~y_fits, x_end, y_end, axis.transAxes)  # in a corner
    beyond: Array = values[lost]
    return beyond


def _off_the_axis(values: Array) -> str:
    """What triangles on the lower or upper edge stand for."""
    if np.isinf(values).all():
        return "infinite"
    kinds = (("0", values == 0), ("below the axis", values != 0))
    return " or ".join(words for words, some in kinds if some.any())
