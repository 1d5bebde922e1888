"""Figure 3: generalisation error of the logistic loss at λ = 10⁻⁴, over n/d and p/n.

Gaussian sign features, sign labels. As a surface and as a heat map, both with the exact line on
which data become linearly separable. A few simulated values lie on the heat map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures.curves import Axis, Datasets, Size, predicted, simulated
from hiddenmanifold.figures.drawing import (
    PAGE,
    contours,
    heat_map,
    key,
    letter,
    sheet,
    sizes,
    spots,
)
from hiddenmanifold.model import Model
from hiddenmanifold.thresholds import separability_threshold

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

TITLE = "Generalisation error of logistic regression over n/d and p/n, and where data separate"
PARTS = ("theory", "threshold", "simulation")


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "sign"
    projection: str = "gaussian"
    teacher: str = "sign"
    loss: str = "logistic"
    regularisation: float = 1e-4
    n_over_d: Axis = Axis(0.1, 8.0, 100)
    p_over_n: Axis = Axis(0.02, 1.2, 120)
    # away from the line, where at finite size some draws of the data are separable, others not
    simulated_n_over_d: tuple[float, ...] = (1.0, 2.5, 4.0, 6.0)
    simulated_p_over_n: tuple[float, ...] = (0.08, 0.18, 0.6, 0.85)
    size: Size = Size(d=200, seeds=30, seed=3)


FULL = Parameters()
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=3))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """The error on a grid, and on the line of separability; a small grid of simulations.

    Parameters
    ----------
    parameters : Parameters
        Ratios, sizes and seeds.
    progress : bool
        Whether to show a progress bar.
    """
    model = Model(
        activation=parameters.activation,
        projection=parameters.projection,
        teacher=parameters.teacher,
        loss=parameters.loss,
    )
    models, error = {parameters.loss: model}, ("generalisation_error",)
    n_over_d, small = parameters.n_over_d.values, parameters.regularisation
    places = separability_threshold(model, n_over_d=n_over_d).drop_vars("n_over_d")
    on_line = {"n_over_d": places.copy(data=n_over_d), "p_over_n": places}
    grid = {"n_over_d": n_over_d, "p_over_n": parameters.p_over_n.values}
    data = {
        "theory": predicted(models, "loss", error, regularisation=small, **grid),
        "threshold": predicted(models, "loss", error, regularisation=small, **on_line),
        "simulation": simulated(
            models,
            "loss",
            error,
            regularisation=small,
            n_over_d=parameters.simulated_n_over_d,
            p_over_n=parameters.simulated_p_over_n,
            size=parameters.size,
            progress=progress,
        ),
    }
    return {part: ds.isel(loss=0, drop=True) for part, ds in data.items()}


def draw(data: Datasets) -> Figure:
    """A surface on the left, a heat map on the right.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    theory, threshold, simulation = (data[part] for part in PARTS)
    with sheet(PAGE, 2.9) as figure:
        grid = figure.add_gridspec(1, 2, width_ratios=(1.15, 1.0))
        left = figure.add_subplot(grid[0], projection="3d", computed_zorder=False)
        _surface(left, theory.generalisation_error, threshold)
        axis = figure.add_subplot(grid[1])
        colours = heat_map(axis, theory.generalisation_error, "n_over_d", "p_over_n")
        levels = np.arange(0.1, 0.5, 0.02)
        contours(axis, theory.generalisation_error, "n_over_d", "p_over_n", levels)
        axis.plot(threshold.n_over_d, threshold.p_over_n, color="white", linewidth=1.6)
        spots(axis, colours, simulation, "n_over_d", "p_over_n")
        axis.set_xlabel("samples per latent dimension, $n/d$")
        axis.set_ylabel("features per sample, $p/n$")
        axis.set_xlim(*theory.n_over_d.values[[0, -1]])
        axis.set_ylim(*theory.p_over_n.values[[0, -1]])
        handles = [
            key("linearly separable above", "white"),
            key(sizes(simulation), "white", "none", marker="o", markerfacecolor="none"),
        ]
        axis.legend(handles=handles, labelcolor="white", loc="upper right")
        letter(axis, "(b)")
        bar = figure.colorbar(colours, ax=axis)
        bar.set_label(r"generalisation error, $\epsilon_g$")
    return figure


def _surface(axis: Any, error: xr.DataArray, threshold: xr.Dataset) -> None:
    """The error as a surface, with the line on it."""
    ordered = error.transpose("p_over_n", "n_over_d")
    x, y = np.meshgrid(ordered.n_over_d, ordered.p_over_n)
    axis.plot_surface(
        x, y, ordered.values, cmap="viridis", rstride=1, cstride=1, rasterized=True, linewidth=0
    )
    axis.plot(
        threshold.n_over_d.values,
        threshold.p_over_n.values,
        threshold.generalisation_error.values + 0.004,  # not half below the surface
        color="white",
        linewidth=1.6,
    )
    axis.view_init(elev=28, azim=35)
    axis.set_xlabel("$n/d$", labelpad=-2)
    axis.set_ylabel("$p/n$", labelpad=-2)
    axis.set_box_aspect(None, zoom=0.97)
    axis.tick_params(pad=-1, labelsize=7)
    # as a title, because beside its axis it would be cut off
    letter(axis, r"(a) generalisation error, $\epsilon_g$")
