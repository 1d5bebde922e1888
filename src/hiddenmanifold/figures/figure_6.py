"""Figure 6: learning curves of the hidden manifold model, d/p = 0.1.

Square loss on sign labels, features erf(Fᵀc/√d); several λ (full lines) and the optimal one
(dashed, black), against n/p. The level that the optimum reaches for n/p → ∞ is dotted. The paper's
figure has no simulations; here they are, so that the curves can be believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.figures.curves import Axis, Datasets, Size, predicted, simulated
from hiddenmanifold.figures.drawing import COLUMN, GREY, key, line, points, sheet, sizes
from hiddenmanifold.model import Model
from hiddenmanifold.plotting.style import mathematical

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Learning curves of the hidden manifold model, for several regularisations"
PARTS = ("theory", "optimum", "infinite_data", "simulation", "simulated_optimum")
ERROR = ("generalisation_error",)


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "erf"
    projection: str = "gaussian"
    teacher: str = "sign"
    loss: str = "square"
    d_over_p: float = 0.1
    regularisation: tuple[float, ...] = (1e-4, 1e-2, 1e-1, 1.0, 10.0)
    curve: Axis = Axis(0.05, 30.0, 200, logarithmic=True)
    # away from n/p = 1, where at small λ the square loss has errors of no finite variance
    simulated: tuple[float, ...] = (0.1, 0.25, 0.6, 1.5, 3.0)
    size: Size = Size(d=200, seeds=30, seed=6)


FULL = Parameters()
QUICK = replace(FULL, size=Size(d=100, seeds=10, n_test=1000, seed=6))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """Curves and simulated points over n/p, of each λ.

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
    over = ("loss", ERROR)
    lam = parameters.regularisation
    gamma: dict[str, Any] = {"d_over_p": parameters.d_over_p}
    curve: dict[str, Any] = {"n_over_p": parameters.curve.values, **gamma}
    settings: dict[str, Any] = {
        "n_over_p": parameters.simulated,
        "size": parameters.size,
        "progress": progress,
        **gamma,
    }
    data = {
        "theory": predicted(models, *over, regularisation=lam, **curve),
        "optimum": predicted(models, *over, regularisation="optimal", **curve),
        "infinite_data": predicted(
            models, *over, regularisation="optimal", n_over_p=np.inf, **gamma
        ),
        "simulation": simulated(models, *over, regularisation=lam, **settings),
        "simulated_optimum": simulated(models, *over, optimal=True, **settings),
    }
    return {part: ds.isel(loss=0, drop=True) for part, ds in data.items()}


def draw(data: Datasets) -> Figure:
    """The generalisation error over n/p, both on logarithmic scales.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    theory, optimum, infinite, simulation, simulated_optimum = (data[part] for part in PARTS)
    with sheet(COLUMN, 3.0) as figure:
        import matplotlib as mpl

        axis = figure.subplots()
        values = theory.regularisation.values
        shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.88, len(values)))
        for k, colour in enumerate(shades):
            one = {"regularisation": k}
            line(axis, theory.generalisation_error.isel(one), colour)
            points(axis, simulation.isel(one), *ERROR, "n_over_p", colour)
        line(axis, optimum.generalisation_error, "black", "--")
        points(axis, simulated_optimum, *ERROR, "n_over_p", "black", fmt="s")
        level = float(infinite.generalisation_error)
        axis.axhline(level, color=GREY, linewidth=0.8, linestyle=":")
        axis.annotate(
            rf"$n/p\to\infty$: {level:.4f}",
            (0.0, level),
            (4, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=GREY,
            fontsize=7.5,
        )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(*theory.n_over_p.values[[0, -1]])
        axis.set_ylim(0.85 * level, 0.45)
        axis.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
        axis.set_yticks([0.03, 0.05, 0.1, 0.2, 0.4], ["0.03", "0.05", "0.1", "0.2", "0.4"])
        axis.set_yticks([], minor=True)
        axis.set_xlabel(r"samples per dimension, $\alpha=n/p$")
        axis.set_ylabel(r"generalisation error, $\epsilon_g$")
        axis.legend(
            handles=[
                *(
                    key(rf"$\lambda={mathematical(value)}$", colour, marker="o")
                    for value, colour in zip(values, shades, strict=True)
                ),
                key(r"optimal $\lambda$", "black", "--", marker="s"),
            ],
            title=f"points: {sizes(simulation)}",
            title_fontsize=7.5,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
            columnspacing=1.2,
        )
    return figure
