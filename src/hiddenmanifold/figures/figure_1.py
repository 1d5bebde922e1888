"""Figure 1: theory against simulations of the model and of its Gaussian equivalent.

Logistic loss on sign features and sign labels, λ = 10⁻³, n/d = 3; the generalisation error in blue,
the training loss in green, dots for the model, crosses for the equivalent one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.drawing import BLUE, COLUMN, GREEN, GREY
from hiddenmanifold.figures.figure_data import Axis, Datasets, Setting, Size, paper_model
from hiddenmanifold.plotting.style import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Theory, simulation and Gaussian-equivalent simulation of logistic regression"
PARTS = ("theory", "simulation")
QUANTITIES = {"generalisation_error": BLUE, "training_loss": GREEN}

FULL = Setting(
    at={"n_over_d": 3.0, "regularisation": 1e-3},
    lines={"p_over_n": Axis(0.02, 3.0, 150)},
    points={"p_over_n": (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 1.8, 2.3, 2.8)},
    size=Size(d=200, seeds=30, seed=1),
)
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=1))


def compute(setting: Setting, **how: Any) -> Datasets:
    """Curves over p/n, and simulated points of both kinds of data."""
    shown = (paper_model(), tuple(QUANTITIES))
    kinds = {
        kind: figure_data.simulated(*shown, **setting.simulation | how, data=kind)
        for kind in ("original", "equivalent")
    }
    theory = figure_data.predicted(*shown, **setting.theory)
    return {"theory": theory, "simulation": figure_data.side_by_side(kinds, "data")}


def draw(data: Datasets) -> Figure:
    """Both quantities over p/n, in one panel."""
    theory, simulation = data.values()
    with drawing.sheet(COLUMN, 2.7) as figure:
        axis = figure.subplots()
        for quantity, colour in QUANTITIES.items():
            drawing.line(axis, theory[quantity], colour)
            drawing.points(axis, simulation.sel(data="original"), quantity, "p_over_n", colour)
            twin = simulation.sel(data="equivalent")
            drawing.points(axis, twin, quantity, "p_over_n", colour, fmt="x", markersize=4.0)
        axis.set_xlabel(label("p_over_n"))
        axis.set_ylabel("generalisation error, training loss")
        axis.set_xlim(0.0, float(theory.p_over_n.max()))
        axis.set_ylim(bottom=0.0)
        axis.legend(
            handles=[
                drawing.key(r"generalisation error $\epsilon_g$", BLUE),
                drawing.key(r"training loss $\epsilon_t$", GREEN),
                drawing.key(f"simulation, {drawing.sizes(simulation)}", GREY, "none", marker="o"),
                drawing.key("Gaussian equivalent", GREY, "none", marker="x"),
            ]
        )
    return figure
