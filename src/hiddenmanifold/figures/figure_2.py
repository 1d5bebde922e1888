"""Figure 2: double descent of the logistic (red) and of the square loss (blue).

Gaussian sign features, sign labels, n/d = 3. Above, the generalisation error at λ = 10⁻⁴ (full) and
at the λ optimal for each p/n (dashed); below, the training loss at λ = 10⁻⁴. The axis reaches
p/n = 10, where the errors are those that the paper quotes; the true limits p/n → ∞ are triangles on
its edge. The paper's figure has no simulations; here they are, so that the curves can be believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures.curves import Axis, Datasets, Size, predicted, simulated
from hiddenmanifold.figures.drawing import (
    BLUE,
    COLUMN,
    GREY,
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
    from matplotlib.figure import Figure

TITLE = "Double descent of logistic and square loss, at small and at optimal regularisation"
PARTS = ("theory", "optimum", "kernel_limit", "simulation", "simulated_optimum")
COLOURS = {"square": BLUE, "logistic": RED}
SIZES = {"square": 4.4, "logistic": 2.6}  # where both losses have the same error, both show


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "sign"
    projection: str = "gaussian"
    teacher: str = "sign"
    losses: tuple[str, ...] = tuple(COLOURS)
    n_over_d: float = 3.0
    regularisation: float = 1e-4
    curve: Axis = Axis(0.03, 10.0, 200, logarithmic=True)
    # away from p/n = 1, where at small λ the square loss has errors of no finite variance
    simulated: tuple[float, ...] = (0.06, 0.12, 0.22, 0.5, 0.65, 1.4, 2.0, 3.2, 5.0, 8.0)
    size: Size = Size(d=200, seeds=30, seed=2)


FULL = Parameters()
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=2))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """Curves and simulated points over p/n, of each loss.

    Parameters
    ----------
    parameters : Parameters
        Ratios, sizes and seeds.
    progress : bool
        Whether to show a progress bar.
    """
    models = {
        loss: Model(
            activation=parameters.activation,
            projection=parameters.projection,
            teacher=parameters.teacher,
            loss=loss,
        )
        for loss in parameters.losses
    }
    both, error = ("generalisation_error", "training_loss"), ("generalisation_error",)
    ratios = {"n_over_d": parameters.n_over_d, "p_over_n": parameters.curve.values}
    kernel = {"n_over_d": parameters.n_over_d, "p_over_n": np.inf}
    small = parameters.regularisation
    settings: dict[str, Any] = {
        "n_over_d": parameters.n_over_d,
        "p_over_n": parameters.simulated,
        "size": parameters.size,
        "progress": progress,
    }
    return {
        "theory": predicted(models, "loss", both, regularisation=small, **ratios),
        "optimum": predicted(models, "loss", error, regularisation="optimal", **ratios),
        "kernel_limit": predicted(models, "loss", error, regularisation="optimal", **kernel),
        "simulation": simulated(models, "loss", both, regularisation=small, **settings),
        "simulated_optimum": simulated(models, "loss", error, optimal=True, **settings),
    }


def draw(data: Datasets) -> Figure:
    """The generalisation error above, the training loss below.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    theory, optimum, limit, simulation, simulated_optimum = (data[part] for part in PARTS)
    with sheet(COLUMN, 4.2) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.7, 1.0))
        for loss, colour in COLOURS.items():
            one = {"loss": loss}
            line(upper, theory.generalisation_error.sel(one), colour)
            line(upper, optimum.generalisation_error.sel(one), colour, "--")
            line(lower, theory.training_loss.sel(one), colour)
            for axis, ds, quantity, marker in (
                (upper, simulation, "generalisation_error", "o"),
                (upper, simulated_optimum, "generalisation_error", "s"),
                (lower, simulation, "training_loss", "o"),
            ):
                style = {"fmt": marker, "markersize": SIZES[loss]}
                points(axis, ds.sel(one), quantity, "p_over_n", colour, **style)
            upper.plot(
                [1.0],
                [float(limit.generalisation_error.sel(one))],
                "<",
                color=colour,
                markersize=5,
                clip_on=False,
                transform=upper.get_yaxis_transform(),
                zorder=5,
            )
        lower.set_xscale("log")
        lower.set_xlim(*theory.p_over_n.values[[0, -1]])
        lower.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
        lower.set_xlabel("features per sample, $p/n$")
        upper.set_ylabel(r"generalisation error, $\epsilon_g$")
        lower.set_ylabel(r"training loss, $\epsilon_t$")
        lower.set_ylim(bottom=-0.01)
        small = float(theory.regularisation.values.flat[0])
        letter(upper, rf"$n/d={float(theory.n_over_d):g}$")
        upper.legend(
            handles=[
                *(key(f"{loss} loss", colour) for loss, colour in COLOURS.items()),
                key(rf"$\lambda=10^{{{round(np.log10(small))}}}$", GREY, marker="o"),
                key(r"optimal $\lambda$", GREY, "--", marker="s"),
                key(r"$p/n\to\infty$", GREY, "none", marker="<", markerfacecolor=GREY),
            ],
            title=f"points: {sizes(simulation)}",
            title_fontsize=7.5,
        )
    return figure
