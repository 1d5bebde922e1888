"""Figure 4: where the interpolation peak of logistic regression stands, against n/d.

Sign features and labels; Gaussian projections in red, orthogonal ones in blue. Full lines: the peak
at λ = 10⁻⁴. Dashed lines: the exact threshold of linear separability, where the peak of λ → 0⁺ is.
The step of the blue line near n/d = 3 is real: where p = d the error of orthogonal features has a
kink, on either side of which there is a maximum, and from there on the other one is higher.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.figures.curves import Axis, Datasets, side_by_side
from hiddenmanifold.figures.drawing import BLUE, COLUMN, GREY, RED, key, line, sheet
from hiddenmanifold.model import Model
from hiddenmanifold.optima import interpolation_peak
from hiddenmanifold.thresholds import separability_threshold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Position of the interpolation peak and threshold of linear separability against n/d"
PARTS = ("peak", "threshold")
COLOURS = {"gaussian": RED, "orthogonal": BLUE}
COVER = 0.5
"""Threshold p/n of labels that carry no information (Cover 1965)."""


@dataclass(frozen=True)
class Parameters:
    """What determines the data of the figure."""

    activation: str = "sign"
    projections: tuple[str, ...] = tuple(COLOURS)
    teacher: str = "sign"
    loss: str = "logistic"
    regularisation: float = 1e-4
    n_over_d: Axis = Axis(0.05, 8.0, 240)


FULL = Parameters()
QUICK = replace(FULL, n_over_d=replace(FULL.n_over_d, count=80))


def compute(parameters: Parameters = FULL, *, progress: bool = False) -> Datasets:
    """Peaks and thresholds of each projection.

    Parameters
    ----------
    parameters : Parameters
        Ratios and regularisation.
    progress : bool
        Unused: nothing is simulated here.
    """
    models = {
        projection: Model(
            activation=parameters.activation,
            projection=projection,
            teacher=parameters.teacher,
            loss=parameters.loss,
        )
        for projection in parameters.projections
    }
    n_over_d = parameters.n_over_d.values
    peaks = {
        name: interpolation_peak(model, n_over_d=n_over_d, regularisation=parameters.regularisation)
        for name, model in models.items()
    }
    thresholds = {}
    for name, model in models.items():
        found = separability_threshold(model, n_over_d=n_over_d)
        thresholds[name] = found.to_dataset().assign_attrs(found.attrs)
    return {
        "peak": side_by_side(peaks, "projection"),
        "threshold": side_by_side(thresholds, "projection"),
    }


def draw(data: Datasets) -> Figure:
    """Both positions over n/d.

    Parameters
    ----------
    data : dict of Dataset
        What `compute` returned.
    """
    peak, threshold = (data[part] for part in PARTS)
    with sheet(COLUMN, 2.6) as figure:
        axis = figure.subplots()
        for projection, colour in COLOURS.items():
            line(axis, peak.p_over_n.sel(projection=projection), colour)
            line(axis, threshold.p_over_n.sel(projection=projection), colour, "--")
        axis.axhline(COVER, color=GREY, linewidth=0.8, linestyle=":")
        axis.annotate(
            r"$\alpha^*=2$ (Cover)",
            (1.0, COVER),
            (-4, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            color=GREY,
            fontsize=7.5,
        )
        axis.set_xlabel("samples per latent dimension, $n/d$")
        axis.set_ylabel(r"position of the peak, $p/n=1/\alpha^*$")
        axis.set_xlim(0.0, float(peak.n_over_d.max()))
        exponent = round(np.log10(float(peak.regularisation.values.flat[0])))
        axis.legend(
            handles=[
                key("Gaussian features", RED),
                key("orthogonal features", BLUE),
                key(rf"peak at $\lambda=10^{{{exponent}}}$", GREY),
                key("exact separability threshold", GREY, "--"),
            ],
            loc="upper right",
            bbox_to_anchor=(1.0, 0.93),
        )
    return figure
