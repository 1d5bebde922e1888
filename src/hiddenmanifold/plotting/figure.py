"""Datasets as figures.

Predictions are lines, simulations points with their standard error. A point that failed is a gap in
its line. A limit that has no place on an axis (λ = 0 on a logarithmic one, p/n = ∞) is a triangle
on the edge that it lies beyond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError
from hiddenmanifold.plotting.style import (
    COLOURS,
    STYLE,
    colour_scale,
    colours,
    is_logarithmic,
    label,
    mathematical,
    ordinate,
    spans_decades,
    symbol,
)
from hiddenmanifold.points import RATIOS
from hiddenmanifold.results import summary

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FORMATS = (".png", ".pdf", ".svg")
PANELS = (
    ("generalisation_error", "optimal_regularisation"),
    ("generalisation_error", "training_loss"),
    ("generalisation_error",),
)
"""What is drawn unless something else is asked for: the first of these that a dataset has."""
LINE: dict[str, Any] = {"linestyle": "-"}
POINT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.5}
"""How predictions and simulations are drawn."""


@dataclass(frozen=True)
class Curve:
    """One curve of one panel; it has standard errors if it is simulated."""

    x: Array
    y: Array
    error: Array | None
    colour: Any


def plot(
    dataset: xr.Dataset,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    *,
    theory: xr.Dataset | None = None,
) -> Figure:
    """Draw a dataset: a panel per quantity, a curve per value of a second dimension.

    Parameters
    ----------
    dataset : xarray.Dataset
        What `predict`, `simulate`, `summary`, `compare` and the like returned.
    x : str, optional
        Dimension along the horizontal axis; by default the longest, and the first of those.
    y : str or sequence of str, optional
        Quantities, one panel each; by default the generalisation error and, below it, the optimal
        regularisation or the training loss.
    theory : xarray.Dataset, optional
        Predictions on a finer grid, drawn as lines in place of those in `dataset`.

    Returns
    -------
    matplotlib.figure.Figure
        To be changed at will, and saved with `save` or its own ``savefig``.

    Raises
    ------
    InvalidArgumentError
        If nothing varies along `x`, more than two dimensions vary, or a quantity is unknown.
    MissingExtraError
        If matplotlib is not installed.
    """
    check_available()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    if "seed" in dataset.dims:
        dataset = summary(dataset)
    x, family = _dimensions(dataset, x)
    names = _quantities(dataset, y)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.8, 0.9 + 2.3 * len(names)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
        kinds = set()
        for axis, name in zip(axes, names, strict=True):
            curves = list(_lines(dataset if theory is None else theory, name, x, family))
            curves += _points(dataset, name, x, family)
            _panel(axis, curves)
            axis.set_ylabel(ordinate(name))
            kinds |= {curve.error is None for curve in curves}
        figure.align_ylabels(list(axes))
        axes[-1].set_xlabel(label(x))
        axes[0].set_title(_fixed(dataset), loc="left")
        values = dataset[family].values if family else None
        _explain(axes, family, values, predicted=True in kinds, simulated=False in kinds)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, PDF or SVG, by the ending of the name, without a date in it."""
    check_destination(path)
    import matplotlib as mpl

    date = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=200, metadata=date.get(Path(path).suffix.lower()))


def check_available() -> None:
    """Raise unless matplotlib is installed."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("a plot", "matplotlib", "plot") from error


def check_destination(path: str | Path) -> None:
    """Raise unless a figure can be written under a name that ends like this."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InvalidArgumentError("plot", str(path), "a file name ending in " + ", ".join(FORMATS))
    check_available()


def horizontal(dataset: xr.Dataset) -> str:
    """The dimension that `plot` puts on the horizontal axis by default."""
    return _dimensions(dataset, None)[0]


def _dimensions(dataset: xr.Dataset, x: str | None) -> tuple[str, str | None]:
    """The dimension along the horizontal axis, and the one that makes several curves, if any."""
    sizes = {str(dim): n for dim, n in dataset.sizes.items() if n > 1 and dim != "seed"}
    if not sizes:
        raise InvalidArgumentError("dataset", "of a single point", "of at least two, for a plot")
    if x is not None and x not in sizes:
        raise InvalidArgumentError("x", x, "a dimension that varies: " + " or ".join(sizes))
    x = x or max(sizes, key=sizes.__getitem__)
    others = [dim for dim in sizes if dim != x]
    if len(others) > 1:
        raise InvalidArgumentError(
            "dataset", f"of dimensions {', '.join(sizes)}", "of at most two that vary, for a plot"
        )
    return x, others[0] if others else None


def _quantities(dataset: xr.Dataset, y: str | Sequence[str] | None) -> tuple[str, ...]:
    known = [str(name) for name in dataset.data_vars]
    if y is None:
        return next((names for names in PANELS if set(names) <= set(known)), (known[0],))
    names = (y,) if isinstance(y, str) else tuple(y)
    for name in names:
        if name not in known:
            raise InvalidArgumentError("y", name, "among " + ", ".join(known))
    return names


def _lines(dataset: xr.Dataset, name: str, x: str, family: str | None) -> Iterator[Curve]:
    """What a dataset predicts of a quantity."""
    source = f"{name}_theory" if f"{name}_stderr" in dataset else name
    if source in dataset:
        for one, colour in _members(dataset, x, family):
            yield Curve(one[x].values, one[source].values, None, colour)


def _points(dataset: xr.Dataset, name: str, x: str, family: str | None) -> Iterator[Curve]:
    """What a dataset has simulated of a quantity."""
    if f"{name}_stderr" in dataset:
        for one, colour in _members(dataset, x, family):
            yield Curve(one[x].values, one[name].values, one[f"{name}_stderr"].values, colour)


def _members(dataset: xr.Dataset, x: str, family: str | None) -> Iterator[tuple[xr.Dataset, Any]]:
    """The dataset at each value of the second dimension, with the colour of that value."""
    ordered = dataset.sortby(x)
    rest = {dim: 0 for dim in dataset.dims if dim not in (x, family)}
    if family is None:
        yield ordered.isel(rest), COLOURS[0]
    else:
        for k, colour in enumerate(colours(dataset[family].values)):
            yield ordered.isel({**rest, family: k}), colour


def _panel(axis: Axes, curves: list[Curve]) -> None:
    """Draw all curves of one quantity, on axes that suit them."""
    if is_logarithmic(np.concatenate([curve.x for curve in curves])):
        axis.set_xscale("log")
    if spans_decades(np.concatenate([curve.y for curve in curves])):
        axis.set_yscale("log")
    for curve in curves:
        x_fits, y_fits = _fits(curve.x, axis.get_xscale()), _fits(curve.y, axis.get_yscale())
        y = np.where(y_fits, curve.y, np.nan)
        if curve.error is None:
            axis.plot(curve.x[x_fits], y[x_fits], color=curve.colour)
            alone = _alone(y[x_fits])
            if alone.any():
                axis.plot(curve.x[x_fits][alone], y[x_fits][alone], ".", color=curve.colour)
        else:
            axis.errorbar(
                curve.x[x_fits],
                y[x_fits],
                curve.error[x_fits],
                color=curve.colour,
                **POINT,
                capsize=2,
                elinewidth=0.9,
                capthick=0.9,
                zorder=3,
            )
        _on_the_edge(axis, curve, x_fits, y_fits)


def _alone(y: Array) -> Booleans:
    """Which values have no finite neighbour, so that no line would show them."""
    there = np.concatenate([[False], np.isfinite(y), [False]])
    alone: Booleans = there[1:-1] & ~there[:-2] & ~there[2:]
    return alone


def _fits(values: Array, scale: str) -> Booleans:
    """Which values have a place on an axis."""
    return np.isfinite(values) & ((values > 0) | (scale != "log"))


def _on_the_edge(axis: Axes, curve: Curve, x_fits: Booleans, y_fits: Booleans) -> None:
    """Draw limits that lie beyond the ends of an axis."""
    style: dict[str, Any] = {"color": curve.colour, "markersize": 4.5, "clip_on": False}
    along_y, along_x = axis.get_yaxis_transform(), axis.get_xaxis_transform()
    for end, sideways, upright in ((0.0, "<", "v"), (1.0, ">", "^")):
        x_off, y_off = ((v > 0 if end else v <= 0) for v in (curve.x, curve.y))  # NaN is neither
        lost = x_off & ~x_fits & y_fits
        if lost.any():
            axis.plot(end + 0 * curve.y[lost], curve.y[lost], sideways, transform=along_y, **style)
        lost = y_off & ~y_fits & x_fits
        if lost.any():
            axis.plot(curve.x[lost], end + 0 * curve.x[lost], upright, transform=along_x, **style)


def _fixed(dataset: xr.Dataset) -> str:
    """The coordinates that do not vary, as a line of formulas."""
    known = [name for name in (*RATIOS, "regularisation", "d") if name in dataset.coords]
    unique = {name: np.unique(dataset[name].values) for name in known}
    return ", ".join(
        f"${symbol(name) if name != 'd' else 'd'} = {mathematical(float(values[0]))}$"
        for name, values in unique.items()
        if len(values) == 1
    )


def _explain(
    axes: NDArray[Any],
    family: str | None,
    values: Array | None,
    *,
    predicted: bool,
    simulated: bool,
) -> None:
    """A legend of what lines, points and colours mean; for many colours, a bar."""
    from matplotlib.lines import Line2D

    handles = []
    if family and values is not None:
        if len(values) > len(COLOURS):
            bar = axes[0].figure.colorbar(colour_scale(values), ax=list(axes), aspect=40)
            bar.set_label(label(family))
        else:
            texts = [f"${symbol(family)} = {mathematical(value)}$" for value in values]
            pairs = zip(colours(values), texts, strict=True)
            line_or_point = LINE if predicted else POINT
            handles = [
                Line2D([], [], color=colour, label=text, **line_or_point) for colour, text in pairs
            ]
    if simulated:
        colour = "0.3" if family else COLOURS[0]
        if predicted:
            handles.append(Line2D([], [], color=colour, label="theory"))
        text = "simulation, mean ± standard error"
        handles.append(Line2D([], [], color=colour, label=text, **POINT))
    if handles:
        axes[0].legend(handles=handles)
