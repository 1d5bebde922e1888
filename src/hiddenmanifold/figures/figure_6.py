"""Figure 6: learning curves of the hidden manifold model, d/p = 0.1.

Square loss on sign labels, features erf(Fᵀc/√d); several λ (full lines) and the optimal one
(dashed, black), against n/p. The level that the optimum reaches for n/p → ∞ is dotted. The paper's
figure has no simulations; here they are added as a check.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.drawing import COLUMN, GENERALISATION_ERROR
from hiddenmanifold.figures.figure_data import ERROR, Axis, Datasets, Setting, Size, hidden_manifold
from hiddenmanifold.plotting.style import mathematical

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Learning curves of the hidden manifold model, for several regularisations"
PARTS = ("theory", "optimum", "simulation", "simulated_optimum", "infinite_data")

FULL = Setting(
    at={"d_over_p": 0.1, "regularisation": (1e-4, 1e-2, 1e-1, 1.0, 10.0)},
    lines={"n_over_p": Axis(0.05, 30.0, 200, logarithmic=True)},
    # away from n/p = 1, where at small λ the square loss has errors of no finite variance
    points={"n_over_p": (0.1, 0.25, 0.6, 1.5, 3.0)},
    size=Size(d=200, seeds=30, seed=6),
)
QUICK = replace(FULL, size=Size(d=100, seeds=10, n_test=1000, seed=6))


def compute(setting: Setting, **how: Any) -> Datasets:
    """Curves and simulated points over n/p, of each λ."""
    shown = (hidden_manifold(), ERROR)
    at_infinity = setting.theory | figure_data.OPTIMAL | {"n_over_p": np.inf}
    return {
        **figure_data.lines(*shown, setting),
        **figure_data.points(*shown, setting, **how),
        "infinite_data": figure_data.predicted(*shown, **at_infinity),
    }


def draw(data: Datasets) -> Figure:
    """The generalisation error over n/p, both on logarithmic scales."""
    theory, optimum, simulation, simulated_optimum, infinite = data.values()
    with drawing.sheet(COLUMN, 3.0) as figure:
        import matplotlib as mpl

        axis = figure.subplots()
        values = theory.regularisation.values
        shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.88, len(values)))
        for k, colour in enumerate(shades):
            one = {"regularisation": k}
            drawing.line(axis, theory.generalisation_error.isel(one), colour)
            drawing.points(axis, simulation.isel(one), *ERROR, "n_over_p", colour)
        drawing.line(axis, optimum.generalisation_error, "black", "--")
        drawing.points(axis, simulated_optimum, *ERROR, "n_over_p", "black", fmt="s")
        least = float(infinite.generalisation_error)
        drawing.level(axis, least, rf"$n/p\to\infty$: {least:.4f}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(*theory.n_over_p.values[[0, -1]])
        axis.set_ylim(0.85 * least, 0.45)
        axis.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
        axis.set_yticks([0.03, 0.05, 0.1, 0.2, 0.4], ["0.03", "0.05", "0.1", "0.2", "0.4"])
        axis.set_yticks([], minor=True)
        axis.set_xlabel(r"samples per dimension, $\alpha=n/p$")
        axis.set_ylabel(GENERALISATION_ERROR)
        drawing.legend(
            axis,
            [
                *(
                    drawing.key(rf"$\lambda={mathematical(value)}$", colour, marker="o")
                    for value, colour in zip(values, shades, strict=True)
                ),
                drawing.key(r"optimal $\lambda$", "black", "--", marker="s"),
            ],
            simulation,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
            columnspacing=1.2,
        )
    return figure
