"""Figure 2: double descent of the logistic (red) and of the square loss (blue).

Gaussian sign features, sign labels, n/d = 3. Above, the generalisation error at λ = 10⁻⁴ (full) and
at the λ optimal for each p/n (dashed); below, the training loss at λ = 10⁻⁴. The axis reaches
p/n = 10, where the errors are those that the paper quotes; the true limits p/n → ∞ are triangles on
its edge. The paper's figure has no simulations; here they are added as a check.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.drawing import BLUE, COLUMN, GENERALISATION_ERROR, GREY, RED
from hiddenmanifold.figures.figure_data import ERROR, Axis, Datasets, Setting, Size, paper_model
from hiddenmanifold.plotting.style import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Double descent of logistic and square loss, at small and at optimal regularisation"
PARTS = ("theory", "optimum", "simulation", "simulated_optimum", "kernel_limit")
COLOURS = {"square": BLUE, "logistic": RED}
SIZES = {"square": 4.4, "logistic": 2.6}  # where both losses have the same error, both show

FULL = Setting(
    at={"n_over_d": 3.0, "regularisation": 1e-4},
    lines={"p_over_n": Axis(0.03, 10.0, 200, logarithmic=True)},
    # away from p/n = 1, where at small λ the square loss has errors of no finite variance
    points={"p_over_n": (0.06, 0.12, 0.22, 0.5, 0.65, 1.4, 2.0, 3.2, 5.0, 8.0)},
    size=Size(d=200, seeds=30, seed=2),
)
QUICK = replace(FULL, size=Size(d=100, seeds=12, n_test=1000, seed=2))


def compute(setting: Setting, **how: Any) -> Datasets:
    """Curves and simulated points over p/n, of each loss."""
    data = {}
    for loss in COLOURS:
        shown = (paper_model(loss=loss), (*ERROR, "training_loss"), setting)
        at_infinity = setting.theory | figure_data.OPTIMAL | {"p_over_n": np.inf}
        data[loss] = {
            **figure_data.lines(*shown),
            **figure_data.points(*shown, **how),
            "kernel_limit": figure_data.predicted(shown[0], ERROR, **at_infinity),
        }
    return figure_data.stacked(data, "loss")


def draw(data: Datasets) -> Figure:
    """The generalisation error above, the training loss below."""
    theory, optimum, simulation, simulated_optimum, limit = data.values()
    with drawing.sheet(COLUMN, 4.2) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.7, 1.0))
        for loss, colour in COLOURS.items():
            one = {"loss": loss}
            drawing.line(upper, theory.generalisation_error.sel(one), colour)
            drawing.line(upper, optimum.generalisation_error.sel(one), colour, "--")
            drawing.line(lower, theory.training_loss.sel(one), colour)
            for axis, ds, quantity, marker in (
                (upper, simulation, "generalisation_error", "o"),
                (upper, simulated_optimum, "generalisation_error", "s"),
                (lower, simulation, "training_loss", "o"),
            ):
                style = {"fmt": marker, "markersize": SIZES[loss]}
                drawing.points(axis, ds.sel(one), quantity, "p_over_n", colour, **style)
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
        lower.set_xlabel(label("p_over_n"))
        upper.set_ylabel(GENERALISATION_ERROR)
        lower.set_ylabel(r"training loss, $\epsilon_t$")
        lower.set_ylim(bottom=-0.01)
        drawing.letter(upper, rf"$n/d={float(theory.n_over_d):g}$")
        drawing.legend(
            upper,
            [
                *(drawing.key(f"{loss} loss", colour) for loss, colour in COLOURS.items()),
                drawing.key(drawing.strength(theory), GREY, marker="o"),
                drawing.key(r"optimal $\lambda$", GREY, "--", marker="s"),
                drawing.key(r"$p/n\to\infty$", GREY, "none", marker="<", markerfacecolor=GREY),
            ],
            simulation,
        )
    return figure
