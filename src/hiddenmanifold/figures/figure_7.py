"""Figure 7: generalisation error of the hidden manifold model at optimal λ, over n/p and d/p.

Square loss on sign labels, features erf(Fᵀc/√d). Dashed: n = d; below it the error is low
even where n < p, left of the dotted n = p. A few simulated values lie on the heat map.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.figure_data import ERROR, Axis, Datasets, Setting, Size, hidden_manifold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Generalisation error of the hidden manifold model over n/p and d/p, at optimal λ"
PARTS = ("theory", "simulation")

FULL = Setting(
    at={"regularisation": "optimal"},
    lines={
        "n_over_p": Axis(0.05, 10.0, 120, logarithmic=True),
        "d_over_p": Axis(0.02, 5.0, 120, logarithmic=True),
    },
    points={"n_over_p": (0.1, 0.4, 1.5, 4.0), "d_over_p": (0.15, 0.5, 1.5)},
    size=Size(d=200, seeds=30, seed=7),
)
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=7))


def compute(setting: Setting, **how: Any) -> Datasets:
    """The error on a grid, and a small grid of simulations."""
    shown = (hidden_manifold(), ERROR)
    return {
        "theory": figure_data.predicted(*shown, **setting.theory),
        "simulation": figure_data.simulated(*shown, **setting.simulation | how),
    }


def draw(data: Datasets) -> Figure:
    """A heat map on logarithmic axes."""
    theory, simulation = data.values()
    with drawing.sheet(drawing.COLUMN, 3.0) as figure:
        axis = figure.subplots()
        axis.set_xscale("log")
        axis.set_yscale("log")
        ratios, levels = ("n_over_p", "d_over_p"), np.arange(0.05, 0.5, 0.05)
        drawing.error_map(axis, theory, simulation, ratios, levels, vmin=0.0, vmax=0.5)
        x, y = theory.n_over_p.values, theory.d_over_p.values
        ends = np.array([max(x[0], y[0]), min(x[-1], y[-1])])
        axis.plot(ends, ends, "--", color="white", linewidth=1.1)
        axis.axvline(1.0, linestyle=":", color="white", linewidth=1.1)
        axis.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
        axis.set_yticks([0.1, 1.0], ["0.1", "1"])
        axis.set_xlabel("samples per dimension, $n/p$")
        axis.set_ylabel("latent per data dimension, $d/p$")
        style: dict[str, Any] = {"textcoords": "offset points", "color": "white"}
        axis.annotate("$n=d$", (3.4, 3.4), (-5, 0), ha="right", **style)
        axis.annotate("$n=p$", (1.0, 0.03), (4, 0), ha="left", **style)
        axis.legend(
            handles=[drawing.ring(simulation)],
            labelcolor="white",
            loc="lower left",
            handlelength=1.0,
            handletextpad=0.4,
        )
    return figure
