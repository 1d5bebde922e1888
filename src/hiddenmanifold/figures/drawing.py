"""How the figures of the paper look: sizes, colours, lines for theory, points for simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.plotting.figure import check_available
from hiddenmanifold.plotting.style import COLOURS, STYLE, mathematical

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN = COLOURS[:3]
"""The colours that the captions name, in shades that readers of any colour vision tell apart."""
GREY = "0.35"
COLUMN, PAGE = 3.4, 6.8
"""Widths in inches of a figure in one column, and across two."""
GENERALISATION_ERROR = r"generalisation error, $\epsilon_g$"
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
    axis: Axes, ds: xr.Dataset, quantity: str, against: str, colour: Any, **style: Any
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


def legend(axis: Axes, handles: list[Any], simulation: xr.Dataset, **more: Any) -> None:
    """A legend whose title says what was simulated."""
    title = f"points: {sizes(simulation)}"
    axis.legend(handles=handles, title=title, title_fontsize=7.5, **more)


def ring(simulation: xr.Dataset) -> Any:
    """The entry of a legend for simulated values on a map."""
    return key(sizes(simulation), "white", "none", marker="o", markerfacecolor="none")


def strength(ds: xr.Dataset) -> str:
    """The λ of a dataset that has only one, as a formula."""
    return rf"$\lambda={mathematical(float(ds.regularisation.values.flat[0]))}$"


def level(axis: Axes, height: float, text: str, *, right: bool = False) -> None:
    """Draw a dotted level, with its name above its left or its right end."""
    axis.axhline(height, color=GREY, linewidth=0.8, linestyle=":")
    axis.annotate(
        text,
        (float(right), height),
        (-4 if right else 4, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right" if right else "left",
        color=GREY,
        fontsize=7.5,
    )


def error_map(
    axis: Axes,
    theory: xr.Dataset,
    simulation: xr.Dataset,
    ratios: tuple[str, str],
    levels: Array,
    **limits: Any,
) -> None:
    """Draw errors on two ratios as colours, with lines of equal error, which show a ridge better.

    Simulated errors lie on it, in the same colours: where they agree, only rings show.
    """
    x, y = ratios
    error = theory.generalisation_error.transpose(y, x)
    grid = (theory[x].values, theory[y].values, error.values)
    colours: Any = axis.pcolormesh(
        *grid,
        cmap="viridis",
        shading="gouraud",
        rasterized=True,  # thousands of vector triangles would show their seams
        **limits,
    )
    axis.contour(*grid, levels=levels, colors="black", linewidths=0.3)
    axis.scatter(
        used_ratio(simulation, x).values.ravel(),
        used_ratio(simulation, y).values.ravel(),
        c=simulation.generalisation_error.values.ravel(),
        cmap=colours.cmap,
        norm=colours.norm,
        s=26,
        edgecolors="white",
        linewidths=0.9,
        zorder=4,
    )
    axis.set_xlim(*theory[x].values[[0, -1]])
    axis.set_ylim(*theory[y].values[[0, -1]])
    axis.figure.colorbar(colours, ax=axis).set_label(GENERALISATION_ERROR)


def letter(axis: Axes, text: str) -> None:
    """Name a panel, above its upper left corner."""
    axis.set_title(text, loc="left", fontsize=9, pad=4)


def used_ratio(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A ratio of the whole numbers n, p, d that a simulation used."""
    above, separator, below = name.partition("_over_")
    if not separator or not {above, below} <= {"n", "p", "d"}:
        raise InvalidArgumentError("name", name, "a ratio such as p_over_n")
    return ds[above] / ds[below]
