"""Figure 7: generalisation error of the hidden manifold model at optimal λ, over n/p and d/p.

Square loss on sign labels, features erf(Fᵀc/√d). Dashed: n = d; below it the error is low
even where n < p, left of the dotted n = p. A few simulated values lie on the heat map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures.curves import Axis, Datasets, Size, predicted, simulated
from hiddenmanifold.figures.drawing import COLUMN, contours, heat_map, key, sheet, sizes, spots
from hiddenmanifold.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Generalisation error of the hidden manifold model over n/p and d/p, at optimal λ"
PARTS = ("theory", "simulation")
ERROR = ("generalisation_error",)


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "erf"
    projection: str = "gaussian"
    teacher: str = "sign"
    loss: str = "square"
    n_over_p: Axis = Axis(0.05, 10.0, 120, logarithmic=True)
    d_over_p: Axis = Axis(0.02, 5.0, 120, logarithmic=True)
    simulated_n_over_p: tuple[float, ...] = (0.1, 0.4, 1.5, 4.0)
    simulated_d_over_p: tuple[float, ...] = (0.15, 0.5, 1.5)
    size: Size = Size(d=200, seeds=30, seed=7)


FULL = Parameters()
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=7))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """The error on a grid, and a small grid of simulations.

    Parameters
    ----------
    parameters : Parameters
        Ratios, sizes and seeds.
    progress : bool
        Whether to show a progress bar.
    """
    models = {
        parameters.loss: Model(
            activation=parameters.activation,
            projection=parameters.projection,
            teacher=parameters.teacher,
            loss=parameters.loss,
        )
    }
    theory = predicted(
        models,
        "loss",
        ERROR,
        regularisation="optimal",
        n_over_p=parameters.n_over_p.values,
        d_over_p=parameters.d_over_p.values,
    )
    simulation = simulated(
        models,
        "loss",
        ERROR,
        optimal=True,
        n_over_p=parameters.simulated_n_over_p,
        d_over_p=parameters.simulated_d_over_p,
        size=parameters.size,
        progress=progress,
    )
    data = {"theory": theory, "simulation": simulation}
    return {part: ds.isel(loss=0, drop=True) for part, ds in data.items()}


def draw(data: Datasets) -> Figure:
    """A heat map on logarithmic axes.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    theory, simulation = (data[part] for part in PARTS)
    with sheet(COLUMN, 3.0) as figure:
        axis = figure.subplots()
        axis.set_xscale("log")
        axis.set_yscale("log")
        colours = heat_map(
            axis, theory.generalisation_error, "n_over_p", "d_over_p", vmin=0.0, vmax=0.5
        )
        levels = np.arange(0.05, 0.5, 0.05)
        contours(axis, theory.generalisation_error, "n_over_p", "d_over_p", levels)
        spots(axis, colours, simulation, "n_over_p", "d_over_p")
        x, y = theory.n_over_p.values, theory.d_over_p.values
        ends = np.array([max(x[0], y[0]), min(x[-1], y[-1])])
        axis.plot(ends, ends, "--", color="white", linewidth=1.1)
        axis.axvline(1.0, linestyle=":", color="white", linewidth=1.1)
        axis.set_xlim(x[0], x[-1])
        axis.set_ylim(y[0], y[-1])
        axis.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
        axis.set_yticks([0.1, 1.0], ["0.1", "1"])
        axis.set_xlabel("samples per dimension, $n/p$")
        axis.set_ylabel("latent per data dimension, $d/p$")
        style: dict[str, Any] = {"textcoords": "offset points", "color": "white"}
        axis.annotate("$n=d$", (3.4, 3.4), (-5, 0), ha="right", **style)
        axis.annotate("$n=p$", (1.0, 0.03), (4, 0), ha="left", **style)
        ring = key(sizes(simulation), "white", "none", marker="o", markerfacecolor="none")
        axis.legend(
            handles=[ring],
            labelcolor="white",
            loc="lower left",
            handlelength=1.0,
            handletextpad=0.4,
        )
        bar = figure.colorbar(colours, ax=axis)
        bar.set_label(r"generalisation error, $\epsilon_g$")
    return figure
