"""What is special about pictures of real data: measured points, and words for what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.plotting.curves import DOUBTFUL, FAINT, GREY, POINT, Curve, members
from hiddenmanifold.plotting.style import COLOURS

if TYPE_CHECKING:
    import xarray as xr

LEFT_OUT: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 4.5}
"""How leave-one-out errors are drawn."""
FOOTINGS = {
    1: "too faint for the sample: an assumed tail",
    2: "the diagnosis speaks against it",
}
"""What a doubtful part of a line rests on, by its status."""


def left_out(dataset: xr.Dataset, name: str, x: str, family: str | None) -> Iterator[Curve]:
    """What leave-one-out measures, where the axes have a place for all samples at hand."""
    if f"{name}_leave_one_out" not in dataset or "p" in dataset.coords:
        return
    N = float(dataset.attrs["N"])
    for one, colour in members(dataset, x, family):
        value, error = (one[f"{name}_leave_one_out{end}"].values for end in ("", "_stderr"))
        if x == "n":
            yield Curve(np.array([N]), value[None], error[None], colour, point=LEFT_OUT)
        elif one["n"] == N:
            yield Curve(one[x].values, value, error, colour, point=LEFT_OUT)


def kinds(
    family: str | None, panels: Sequence[Sequence[Curve]], source: xr.Dataset
) -> Iterator[Any]:
    """Entries of a legend for predictions and measurements, `source` being the predictions."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = GREY if family else COLOURS[0]
    curves = [curve for panel in panels for curve in panel]
    theory = next((curve for curve in curves if curve.error is None), None)
    if theory is not None:
        yield Line2D([], [], color=colour, label="predicted", **theory.style)
    if theory is not None and theory.band is not None:
        yield Patch(color=colour, alpha=FAINT, linewidth=0, label="± one standard deviation")
        for status in FOOTINGS.keys() & np.unique(source["status"]):
            yield Line2D([], [], color=colour, label=FOOTINGS[status], **DOUBTFUL)
    for style, text in ((POINT, "measured on held-out rows"), (LEFT_OUT, "leave-one-out")):
        if any(curve.error is not None and curve.point is style for curve in curves):
            yield Line2D([], [], color=colour, label=text, **style)
