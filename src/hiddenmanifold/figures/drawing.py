"""How the figures of the paper look: sizes, colours, lines for theory, points for simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiddenmanifold.figures.curves import Array, used_ratio
from hiddenmanifold.plotting.figure import check_available
from hiddenmanifold.plotting.style import COLOURS, STYLE

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN = COLOURS[:3]
"""The colours that the captions name, in shades that readers of any colour vision tell apart."""
GREY = "0.35"
COLUMN, PAGE = 3.4, 6.8
"""Widths in inches of a figure in one column, and across two."""
OWN_STYLE: dict[Any, Any] = {
    **STYLE,
    "axes.spines.top": True,
    "axes.spines.right": True,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 7.5,
    "legend.handlelength": 1.8,
    "legend.labelspacing": 0.35,
    "legend.borderaxespad": 0.6,
    "lines.linewidth": 1.3,
}


@contextmanager
def sheet(width: float, height: float) -> Iterator[Figure]:
    """An empty figure, in the style of all of them while it is drawn on."""
    check_available()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(OWN_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def write(figure: Figure, directory: Path, stem: str) -> list[Path]:
    """Write a figure as PNG, for the screen, and as PDF and SVG, for print."""
    import matplotlib as mpl

    undated: dict[str, Any] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    files = [directory / f"{stem}{end}" for end in (".png", ".pdf", ".svg")]
    with mpl.rc_context(OWN_STYLE):
        for path in files:
            figure.savefig(path, dpi=300, metadata=undated.get(path.suffix))
    return files


def line(axis: Axes, curve: xr.DataArray, colour: Any, style: str = "-") -> None:
    """Draw a predicted curve along its only dimension; a point that failed is a gap."""
    (dim,) = curve.dims
    axis.plot(curve[dim].values, curve.values, style, color=colour)


def points(
    axis: Axes,
    ds: xr.Dataset,
    quantity: str,
    against: str,
    colour: Any,
    **style: Any,
) -> None:
    """Draw simulated means with their standard errors, at the ratios of the sizes used."""
    axis.errorbar(
        used_ratio(ds, against).values,
        ds[quantity].values,
        ds[f"{quantity}_stderr"].values,
        color=colour,
        **{
            "fmt": "o",
            "markersize": 3.4,
            "markeredgewidth": 0.8,
            "markerfacecolor": "white",
            "capsize": 1.6,
            "elinewidth": 0.8,
            "capthick": 0.8,
            "zorder": 3,
            **style,
        },
    )


def key(label: str, colour: Any = GREY, style: Any = "-", **more: Any) -> Any:
    """An entry of a legend: a line, or with `style` "none" a marker."""
    from matplotlib.lines import Line2D

    if "marker" in more:
        more = {"markersize": 3.8, "markeredgewidth": 0.8, "markerfacecolor": "white", **more}
    return Line2D([], [], color=colour, linestyle=style, label=label, **more)


def sizes(ds: xr.Dataset) -> str:
    """The latent dimension and number of seeds of a simulation, for a legend."""
    return rf"$d={int(ds.d.max())}$, {int(ds.seeds.max())} seeds"


def heat_map(axis: Axes, values: xr.DataArray, x: str, y: str, **limits: Any) -> Any:
    """Draw a quantity on two ratios as colours; returns the scale of colours."""
    ordered = values.transpose(y, x)
    return axis.pcolormesh(
        ordered[x].values,
        ordered[y].values,
        ordered.values,
        cmap="viridis",
        shading="gouraud",
        rasterized=True,  # thousands of vector triangles would show their seams
        **limits,
    )


def contours(axis: Axes, values: xr.DataArray, x: str, y: str, levels: Array) -> None:
    """Draw lines of equal values, which show a ridge better than colours do."""
    ordered = values.transpose(y, x)
    axis.contour(
        ordered[x].values,
        ordered[y].values,
        ordered.values,
        levels=levels,
        colors="black",
        linewidths=0.3,
    )


def spots(axis: Axes, colours: Any, ds: xr.Dataset, x: str, y: str) -> None:
    """Draw simulated errors on a heat map, in its colours: where they agree, only rings show."""
    axis.scatter(
        used_ratio(ds, x).values.ravel(),
        used_ratio(ds, y).values.ravel(),
        c=ds.generalisation_error.values.ravel(),
        cmap=colours.cmap,
        norm=colours.norm,
        s=26,
        edgecolors="white",
        linewidths=0.9,
        zorder=4,
    )


def letter(axis: Axes, text: str) -> None:
    """Name a panel, above its upper left corner."""
    axis.set_title(text, loc="left", fontsize=9, pad=4)
