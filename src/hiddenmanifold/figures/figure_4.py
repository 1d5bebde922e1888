"""Figure 4: where the interpolation peak of logistic regression stands, against n/d.

Sign features and labels; Gaussian projections in red, orthogonal ones in blue. Full lines: the peak
at λ = 10⁻⁴. Dashed lines: the exact threshold of linear separability, where the peak of λ → 0⁺ is.
The step of the blue line near n/d = 3 is real: where p = d the error of orthogonal features has a
kink, on either side of which there is a maximum, and from there on the other one is higher.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiddenmanifold.api.thresholds import interpolation_peak, separability_threshold
from hiddenmanifold.figures import drawing, figure_data
from hiddenmanifold.figures.drawing import BLUE, COLUMN, GREY, RED
from hiddenmanifold.figures.figure_data import Axis, Datasets, Setting, paper_model
from hiddenmanifold.plotting.style import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Position of the interpolation peak and threshold of linear separability against n/d"
PARTS = ("peak", "threshold")
COLOURS = {"gaussian": RED, "orthogonal": BLUE}
COVER = 0.5
"""Threshold p/n of labels that carry no information (Cover 1965)."""

FULL = Setting(at={"regularisation": 1e-4}, lines={"n_over_d": Axis(0.05, 8.0, 240)})
QUICK = replace(FULL, lines={"n_over_d": Axis(0.05, 8.0, 80)})


def compute(setting: Setting, **how: Any) -> Datasets:
    """Peaks and thresholds of each projection; as nothing is simulated, there is no progress."""
    data = {}
    for projection in COLOURS:
        model = paper_model(projection=projection)
        peak = interpolation_peak(model, **setting.theory)
        threshold = separability_threshold(model, n_over_d=setting.lines["n_over_d"].values)
        data[projection] = {"peak": peak, "threshold": threshold}
    return figure_data.stacked(data, "projection")


def draw(data: Datasets) -> Figure:
    """Both positions over n/d."""
    peak, threshold = data.values()
    with drawing.sheet(COLUMN, 2.6) as figure:
        axis = figure.subplots()
        for projection, colour in COLOURS.items():
            drawing.line(axis, peak.p_over_n.sel(projection=projection), colour)
            drawing.line(axis, threshold.p_over_n.sel(projection=projection), colour, "--")
        drawing.level(axis, COVER, r"$\alpha^*=2$ (Cover)", right=True)
        axis.set_xlabel(label("n_over_d"))
        axis.set_ylabel(r"position of the peak, $p/n=1/\alpha^*$")
        axis.set_xlim(0.0, float(peak.n_over_d.max()))
        axis.legend(
            handles=[
                drawing.key("Gaussian features", RED),
                drawing.key("orthogonal features", BLUE),
                drawing.key(f"peak at {drawing.strength(peak)}", GREY),
                drawing.key("exact separability threshold", GREY, "--"),
            ],
            loc="upper right",
            bbox_to_anchor=(1.0, 0.93),
        )
    return figure
