"""Figure 5: Gaussian (blue) against orthogonal (red) projections, n/d = 2.

Left, ridge regression of a linear teacher at λ = 10⁻⁸ (top) and at optimal λ (bottom); right,
logistic classification of sign labels at λ = 10⁻⁴ (top) and at optimal λ (bottom). Sign features.
Lines are the theory, points simulations; of orthogonal projections, dots are Hadamard and diamonds
cosine transforms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures.curves import Axis, Datasets, Size, predicted, side_by_side, simulated
from hiddenmanifold.figures.drawing import (
    BLUE,
    GREY,
    PAGE,
    RED,
    key,
    letter,
    line,
    points,
    sheet,
    sizes,
)
from hiddenmanifold.model import Model

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Gaussian against orthogonal projections, in ridge and in logistic regression"
PARTS = ("theory", "optimum", "simulation", "simulated_optimum")
PROJECTIONS = {"gaussian": BLUE, "orthogonal": RED}
POINTS = {"gaussian": (BLUE, "o"), "hadamard": (RED, "o"), "dct": (RED, "D")}
ERROR = ("generalisation_error",)


@dataclass(frozen=True)
class Task:
    """One panel: what is learned, with which loss, and the small λ."""

    teacher: str
    loss: str
    regularisation: float


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "sign"
    ridge: Task = Task("linear", "square", 1e-8)
    logistic: Task = Task("sign", "logistic", 1e-4)
    projections: tuple[str, ...] = tuple(PROJECTIONS)
    simulated_projections: tuple[str, ...] = tuple(POINTS)
    n_over_d: float = 2.0
    curve: Axis = Axis(0.02, 4.0, 200)
    # away from p/n = 1, where at small λ the square loss has errors of no finite variance
    simulated: tuple[float, ...] = (0.125, 0.25, 0.375, 0.5, 0.625, 1.5, 2.0, 2.75, 3.5)
    size: Size = Size(d=256, seeds=30, seed=5)


FULL = Parameters()
QUICK = replace(FULL, size=Size(d=128, seeds=12, n_test=1000, seed=5))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """Curves and simulated points over p/n, of each task and projection.

    Parameters
    ----------
    parameters : Parameters
        Ratios, sizes and seeds.
    progress : bool
        Whether to show a progress bar.
    """
    tasks = {"ridge": parameters.ridge, "logistic": parameters.logistic}
    parts = {name: _panel(parameters, task, progress) for name, task in tasks.items()}
    return {
        part: side_by_side({name: panel[part] for name, panel in parts.items()}, "panel")
        for part in PARTS
    }


def _panel(parameters: Parameters, task: Task, progress: bool) -> Datasets:
    """Everything that one panel shows."""

    def models(projections: tuple[str, ...]) -> dict[str, Model]:
        return {
            projection: Model(
                activation=parameters.activation,
                projection=projection,
                teacher=task.teacher,
                loss=task.loss,
            )
            for projection in projections
        }

    small = task.regularisation
    lines = models(parameters.projections)
    ratios: dict[str, Any] = {
        "n_over_d": parameters.n_over_d,
        "p_over_n": parameters.curve.values,
    }
    dots = models(parameters.simulated_projections)
    settings: dict[str, Any] = {
        "n_over_d": parameters.n_over_d,
        "p_over_n": parameters.simulated,
        "size": parameters.size,
        "progress": progress,
    }
    return {
        "theory": predicted(lines, "projection", ERROR, regularisation=small, **ratios),
        "optimum": predicted(lines, "projection", ERROR, regularisation="optimal", **ratios),
        "simulation": simulated(dots, "projection", ERROR, regularisation=small, **settings),
        "simulated_optimum": simulated(dots, "projection", ERROR, optimal=True, **settings),
    }


def draw(data: Datasets) -> Figure:
    """Regression on the left, on a logarithmic scale, classification on the right.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    with sheet(PAGE, 2.9) as figure:
        left, right = figure.subplots(1, 2)
        _draw_panel(left, {part: ds.sel(panel="ridge") for part, ds in data.items()})
        _draw_panel(right, {part: ds.sel(panel="logistic") for part, ds in data.items()})
        left.set_yscale("log")
        left.set_yticks([0.2, 0.5, 1.0, 2.0, 5.0], ["0.2", "0.5", "1", "2", "5"])
        left.minorticks_off()
        left.set_ylim(0.15, 9.0)
        letter(left, "ridge regression")
        letter(right, "logistic classification")
        markers = {"gaussian": "Gaussian", "hadamard": "Hadamard", "dct": "DCT"}
        right.legend(
            handles=[
                key("Gaussian, theory", BLUE),
                key("orthogonal, theory", RED),
                *(
                    key(
                        label,
                        colour := POINTS[name][0],
                        "none",
                        marker=(marker := POINTS[name][1]),
                        markerfacecolor="white" if marker == "D" else colour,
                    )
                    for name, label in markers.items()
                ),
            ],
            title=f"points: {sizes(data['simulation'])}",
            title_fontsize=7.5,
        )
    return figure


def _draw_panel(axis: Axes, data: Datasets) -> None:
    """The error at small and at optimal λ, of each projection."""
    for projection, colour in PROJECTIONS.items():
        for part in ("theory", "optimum"):
            line(axis, data[part].generalisation_error.sel(projection=projection), colour)
    for projection, (colour, marker) in POINTS.items():
        open_marker = {"markerfacecolor": "white", "markersize": 3.8, "zorder": 3}
        filled = {"markerfacecolor": colour, "markersize": 2.9, "zorder": 4}
        style = {"fmt": marker, **(open_marker if marker == "D" else filled)}
        for part in ("simulation", "simulated_optimum"):
            one = data[part].sel(projection=projection)
            points(axis, one, ERROR[0], "p_over_n", colour, **style)
    axis.set_xlim(0.0, float(data["theory"].p_over_n.max()))
    axis.set_xlabel("features per sample, $p/n$")
    axis.set_ylabel(r"generalisation error, $\epsilon_g$")
    exponent = round(np.log10(float(data["theory"].regularisation.values.flat[0])))
    _name(axis, data["theory"], rf"$\lambda=10^{{{exponent}}}$", (10, 6))
    _name(axis, data["optimum"], r"optimal $\lambda$", (-8, -16))


def _name(axis: Axes, ds: xr.Dataset, text: str, offset: tuple[float, float]) -> None:
    """Write what a pair of curves is beside them."""
    place = {"projection": "gaussian" if offset[1] > 0 else "orthogonal"}
    curve = ds.generalisation_error.sel(place).sel(p_over_n=1.1, method="nearest")
    axis.annotate(
        text,
        (float(curve.p_over_n), float(curve)),
        offset,
        textcoords="offset points",
        color=GREY,
        fontsize=8,
        va="center",
        ha="left" if offset[0] > 0 else "right",
    )
