"""Figure 5: Gaussian (blue) against orthogonal (red) projections, n/d = 2.

Left, ridge regression of a linear teacher at λ = 10⁻⁸ (top) and at optimal λ (bottom); right,
logistic classification of sign labels at λ = 10⁻⁴ (top) and at optimal λ (bottom). Sign features.
Lines are the theory, points simulations; of orthogonal projections, dots are Hadamard and diamonds
cosine transforms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.drawing import BLUE, GENERALISATION_ERROR, GREY, PAGE, RED
from hiddenmanifold.figures.figure_data import ERROR, Axis, Datasets, Setting, Size, paper_model
from hiddenmanifold.plotting.style import label

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Gaussian against orthogonal projections, in ridge and in logistic regression"
PARTS = ("theory", "optimum", "simulation", "simulated_optimum")
PROJECTIONS = {"gaussian": BLUE, "orthogonal": RED}
POINTS = {
    "gaussian": ("Gaussian", BLUE, "o", BLUE),
    "hadamard": ("Hadamard", RED, "o", RED),
    "dct": ("DCT", RED, "D", "white"),
}
"""Name, colour, marker and its face."""
TASKS = {
    "ridge": ({"teacher": "linear", "loss": "square"}, 1e-8),
    "logistic": ({"teacher": "sign", "loss": "logistic"}, 1e-4),
}
"""What each panel learns, with which loss, and its small λ."""
FULL = Setting(
    at={"n_over_d": 2.0},
    lines={"p_over_n": Axis(0.02, 4.0, 200)},
    # away from p/n = 1, where at small λ the square loss has errors of no finite variance
    points={"p_over_n": (0.125, 0.25, 0.375, 0.5, 0.625, 1.5, 2.0, 2.75, 3.5)},
    size=Size(d=256, seeds=30, seed=5),
)
QUICK = replace(FULL, size=Size(d=128, seeds=12, n_test=1000, seed=5))


def compute(setting: Setting, **how: Any) -> Datasets:
    """Curves and simulated points over p/n, of each task and projection."""
    panels = {}
    for task, (ingredients, small) in TASKS.items():
        own = replace(setting, at={**setting.at, "regularisation": small})
        shown = {
            name: (paper_model(projection=name, **ingredients), ERROR, own)
            for name in (*PROJECTIONS, *POINTS)
        }
        theory = {name: figure_data.lines(*shown[name]) for name in PROJECTIONS}
        dots = {name: figure_data.points(*shown[name], **how) for name in POINTS}
        panels[task] = {
            **figure_data.stacked(theory, "projection"),
            **figure_data.stacked(dots, "projection"),
        }
    return figure_data.stacked(panels, "panel")


def draw(data: Datasets) -> Figure:
    """Regression on the left, on a logarithmic scale, classification on the right."""
    with drawing.sheet(PAGE, 2.9) as figure:
        left, right = figure.subplots(1, 2)
        for axis, task in zip((left, right), TASKS, strict=True):
            _draw_panel(axis, {part: ds.sel(panel=task) for part, ds in data.items()})
        left.set_yscale("log")
        left.set_yticks([0.2, 0.5, 1.0, 2.0, 5.0], ["0.2", "0.5", "1", "2", "5"])
        left.minorticks_off()
        left.set_ylim(0.15, 9.0)
        drawing.letter(left, "ridge regression")
        drawing.letter(right, "logistic classification")
        drawing.legend(
            right,
            [
                drawing.key("Gaussian, theory", BLUE),
                drawing.key("orthogonal, theory", RED),
                *(
                    drawing.key(name, colour, "none", marker=marker, markerfacecolor=face)
                    for name, colour, marker, face in POINTS.values()
                ),
            ],
            data["simulation"],
        )
    return figure


def _draw_panel(axis: Axes, data: Datasets) -> None:
    """The error at small and at optimal λ, of each projection."""
    for projection, colour in PROJECTIONS.items():
        for part in ("theory", "optimum"):
            drawing.line(axis, data[part].generalisation_error.sel(projection=projection), colour)
    for projection, (_, colour, marker, face) in POINTS.items():
        size, order = (2.9, 4) if face == colour else (3.8, 3)
        style = {"fmt": marker, "markerfacecolor": face, "markersize": size, "zorder": order}
        for part in ("simulation", "simulated_optimum"):
            one = data[part].sel(projection=projection)
            drawing.points(axis, one, ERROR[0], "p_over_n", colour, **style)
    axis.set_xlim(0.0, float(data["theory"].p_over_n.max()))
    axis.set_xlabel(label("p_over_n"))
    axis.set_ylabel(GENERALISATION_ERROR)
    _name(axis, data["theory"], drawing.strength(data["theory"]), (10, 6))
    _name(axis, data["optimum"], r"optimal $\lambda$", (-8, -16))


def _name(axis: Axes, ds: xr.Dataset, text: str, offset: tuple[float, float]) -> None:
    """Write what a pair of curves is beside them."""
    place = {"projection": "gaussian" if offset[1] > 0 else "orthogonal"}
    curve = ds.generalisation_error.sel(place).sel(p_over_n=1.1, method="nearest")
    axis.annotate(
        text,
        (float(curve.p_over_n), float(curve)),
        offset,
        textcoords="offset points",
        color=GREY,
        fontsize=8,
        va="center",
        ha="left" if offset[0] > 0 else "right",
    )
