"""Figure 1: theory against simulations of the model and of its Gaussian equivalent.

Logistic loss on sign features and sign labels, λ = 10⁻³, n/d = 3; the generalisation error in blue,
the training loss in green, dots for the model, crosses for the equivalent one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hiddenmanifold.figures.curves import Axis, Datasets, Size, predicted, side_by_side, simulated
from hiddenmanifold.figures.drawing import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    key,
    line,
    points,
    sheet,
    sizes,
)
from hiddenmanifold.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Theory, simulation and Gaussian-equivalent simulation of logistic regression"
PARTS = ("theory", "simulation")
QUANTITIES = {"generalisation_error": BLUE, "training_loss": GREEN}


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "sign"
    projection: str = "gaussian"
    teacher: str = "sign"
    loss: str = "logistic"
    n_over_d: float = 3.0
    regularisation: float = 1e-3
    curve: Axis = Axis(0.02, 3.0, 150)
    simulated: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 1.8, 2.3, 2.8)
    size: Size = Size(d=200, seeds=30, seed=1)


FULL = Parameters()
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=1))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """Curves over p/n, and simulated points of both kinds of data.

    Parameters
    ----------
    parameters : Parameters
        Ratios, sizes and seeds.
    progress : bool
        Whether to show a progress bar.
    """
    at: dict[str, Any] = {
        "n_over_d": parameters.n_over_d,
        "regularisation": parameters.regularisation,
    }
    models = {
        parameters.loss: Model(
            activation=parameters.activation,
            projection=parameters.projection,
            teacher=parameters.teacher,
            loss=parameters.loss,
        )
    }
    quantities = tuple(QUANTITIES)
    kinds = {
        kind: simulated(
            models,
            "loss",
            quantities,
            p_over_n=parameters.simulated,
            size=parameters.size,
            data=kind,
            progress=progress,
            **at,
        ).isel(loss=0, drop=True)
        for kind in ("original", "equivalent")
    }
    theory = predicted(models, "loss", quantities, p_over_n=parameters.curve.values, **at)
    return {
        "theory": theory.isel(loss=0, drop=True),
        "simulation": side_by_side(kinds, "data"),
    }


def draw(data: Datasets) -> Figure:
    """Both quantities over p/n, in one panel.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    theory, simulation = (data[part] for part in PARTS)
    with sheet(COLUMN, 2.7) as figure:
        axis = figure.subplots()
        for quantity, colour in QUANTITIES.items():
            line(axis, theory[quantity], colour)
            points(axis, simulation.sel(data="original"), quantity, "p_over_n", colour)
            twin = simulation.sel(data="equivalent")
            points(axis, twin, quantity, "p_over_n", colour, fmt="x", markersize=4.0)
        axis.set_xlabel("features per sample, $p/n$")
        axis.set_ylabel("generalisation error, training loss")
        axis.set_xlim(0.0, float(theory.p_over_n.max()))
        axis.set_ylim(bottom=0.0)
        axis.legend(
            handles=[
                key(r"generalisation error $\epsilon_g$", BLUE),
                key(r"training loss $\epsilon_t$", GREEN),
                key(f"simulation, {sizes(simulation)}", GREY, "none", marker="o"),
                key("Gaussian equivalent", GREY, "none", marker="x"),
            ]
        )
    return figure
