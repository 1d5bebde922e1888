"""Figure 3: generalisation error of the logistic loss at λ = 10⁻⁴, over n/d and p/n.

Gaussian sign features, sign labels. As a surface and as a heat map, both with the exact line on
which data become linearly separable. A few simulated values lie on the heat map.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.api.thresholds import separability_threshold
from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.figure_data import ERROR, Axis, Datasets, Setting, Size, paper_model
from hiddenmanifold.plotting.style import label

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

TITLE = "Generalisation error of logistic regression over n/d and p/n, and where data separate"
PARTS = ("theory", "threshold", "simulation")

FULL = Setting(
    at={"regularisation": 1e-4},
    lines={"n_over_d": Axis(0.1, 8.0, 100), "p_over_n": Axis(0.02, 1.2, 120)},
    # away from the line, where at finite size some draws of the data are separable, others not
    points={"n_over_d": (1.0, 2.5, 4.0, 6.0), "p_over_n": (0.08, 0.18, 0.6, 0.85)},
    size=Size(d=200, seeds=30, seed=3),
)
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=3))


def compute(setting: Setting, **how: Any) -> Datasets:
    """The error on a grid, and on the line of separability; a small grid of simulations."""
    shown = (paper_model(), ERROR)
    n_over_d = setting.lines["n_over_d"].values
    places = separability_threshold(paper_model(), n_over_d=n_over_d).p_over_n
    places = places.drop_vars("n_over_d")
    on_line = {"n_over_d": places.copy(data=n_over_d), "p_over_n": places}
    return {
        "theory": figure_data.predicted(*shown, **setting.theory),
        "threshold": figure_data.predicted(*shown, **setting.theory | on_line),
        "simulation": figure_data.simulated(*shown, **setting.simulation | how),
    }


def draw(data: Datasets) -> Figure:
    """A surface on the left, a heat map on the right."""
    theory, threshold, simulation = data.values()
    with drawing.sheet(drawing.PAGE, 2.9) as figure:
        grid = figure.add_gridspec(1, 2, width_ratios=(1.15, 1.0))
        left = figure.add_subplot(grid[0], projection="3d", computed_zorder=False)
        _surface(left, theory.generalisation_error, threshold)
        axis = figure.add_subplot(grid[1])
        ratios = ("n_over_d", "p_over_n")
        drawing.error_map(axis, theory, simulation, ratios, np.arange(0.1, 0.5, 0.02))
        axis.plot(threshold.n_over_d, threshold.p_over_n, color="white", linewidth=1.6)
        axis.set_xlabel(label("n_over_d"))
        axis.set_ylabel(label("p_over_n"))
        handles = [
            drawing.key("linearly separable above", "white"),
            drawing.ring(simulation),
        ]
        axis.legend(handles=handles, labelcolor="white", loc="upper right")
        drawing.letter(axis, "(b)")
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
    drawing.letter(axis, r"(a) generalisation error, $\epsilon_g$")
