"""The entries of legends: what colours stand for, and what was predicted or measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array
from hiddenmanifold.plotting.curves import DOUBTFUL, FAINT, GREY, LEFT_OUT, POINT, Curve
from hiddenmanifold.plotting.style import (
    COLOURS,
    NUMBERS,
    colour_scale,
    colours,
    equation,
    label,
    limits,
)
from hiddenmanifold.results.schema import is_real_data

if TYPE_CHECKING:
    import xarray as xr

SUPPORTS = {
    1: "not resolved by the sample: its last value",
    2: "refused by the diagnosis",
    5: "few errors to count: known roughly",
}
"""The basis of a doubtful part of a curve for real data, by its status."""


def values_of(
    axes: NDArray[Any], family: str | None, dataset: xr.Dataset, panels: Sequence[Sequence[Curve]]
) -> list[Any]:
    """Entries of a legend for the colours; for many of them there is a bar, but for limits."""
    from matplotlib.lines import Line2D

    if family is None:
        return []
    values: Array = dataset[family].values
    shown, numeric = values.tolist(), values.dtype.kind in NUMBERS
    if numeric and len(values) > len(COLOURS):
        bar = axes[0].figure.colorbar(colour_scale(values), ax=list(axes), aspect=40)
        bar.set_label(label(family))
        shown = limits(values)
    style = next(curve.style for panel in panels for curve in panel)
    pairs = dict(zip(values.tolist(), colours(values), strict=True))
    texts = [f"${equation(family, v)}$" if numeric else str(v) for v in shown]
    return [
        Line2D([], [], color=pairs[v], label=text, **style)
        for v, text in zip(shown, texts, strict=True)
    ]


def columns_for(texts: Sequence[str]) -> int:
    """How wide a legend is: many short entries in one column would cover the curves."""
    return 2 if len(texts) > 4 and max(map(len, texts)) < 24 else 1


def kinds_of(
    panels: Sequence[Sequence[Curve]], predictions: xr.Dataset, *, single: bool
) -> Iterator[Any]:
    """Entries of a legend for predictions and measurements, unless a model only predicts.

    They have the colour of the curves if these have a `single` one.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    real = is_real_data(predictions)
    colour = COLOURS[0] if single else GREY
    curves = [curve for panel in panels for curve in panel]
    points = [curve.point for curve in curves if curve.error is not None]
    theory = next((curve for curve in curves if curve.error is None), None)
    if theory is not None and (real or points):
        text = "predicted" if real else "theory"
        yield Line2D([], [], color=colour, label=text, **theory.style)
    if theory is not None and theory.band is not None:
        yield Patch(color=colour, alpha=FAINT, linewidth=0, label="± one standard deviation")
        for status in SUPPORTS.keys() & np.unique(predictions["status"]):
            yield Line2D([], [], color=colour, label=SUPPORTS[status], **DOUBTFUL)
    measured = "measured on held-out rows" if real else "simulation, mean ± standard error"
    for style, text in ((POINT, measured), (LEFT_OUT, "leave-one-out")):
        if style in points:
            yield Line2D([], [], color=colour, label=text, **style)
