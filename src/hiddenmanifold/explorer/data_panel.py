"""The learning curve of an uploaded table: predicted, measured, and in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer.plots import LAYOUT, axis, numbers, scatter, vertical_line
from hiddenmanifold.explorer.upload import CUTS, Sample, sample
from hiddenmanifold.plotting.style import COLOURS

if TYPE_CHECKING:
    import xarray as xr

REACH, POINTS = 8.0, 25
"""The curve runs from 1/8 to 8 times the size of the sample."""
TESTED = 20
"""Smallest number of test rows."""
HOVER = "n = %{x:.4g}: %{y:.4g}"


def learned(name: str, content: bytes, label: str, task: str, gain: float) -> dict[str, Any]:
    """The learning curve of an uploaded file as a figure, a sentence and a program."""
    own = sample(name, content, label, task)
    data = own.data()
    last = data.N * (REACH if data.usable else 1.0)
    sizes = np.geomspace(max(3.0, data.N / REACH), last, POINTS)
    curve = hm.learning_curve(data, n=sizes, on_refusal="keep")
    counts, measured = _measured(data)
    anchor = "left" if last > data.N else "right"
    return {
        "data": _traces(curve, measured, data.N),
        "layout": _layout(curve, data.N),
        **vertical_line(data.N, f" sample size: {data.N} ", anchor, logarithmic=True),
        "sentence": _sentence(own, data, gain),
        "python": _program(own, sizes, counts, gain),
    }


def _measured(data: hm.Data) -> tuple[list[int], xr.Dataset | None]:
    """Backtest at a few sample sizes; none if too few rows are left for testing."""
    N = data.N
    most = min(N // 2, N - data.own_rows - TESTED)
    least = max(3, round(N / REACH))
    if most <= least:
        return [], None
    counts = sorted({round(n) for n in np.geomspace(least, most, 4)})
    try:
        return counts, hm.backtest(data, n=counts, seeds=CUTS)
    except hm.InvalidArgumentError:  # half of the rows hold too few of a rare class
        return [], None


def _sentence(own: Sample, data: hm.Data, gain: float) -> str:
    read = f"{data.N} samples of {data.p} features; labels: {own.label}"
    if data.classes:
        read += f", classes {data.classes[0]} and {data.classes[1]}"
    if data.notes:
        read += f". Of the table we {'; '.join(data.notes)}"
    if not data.usable:
        reasons = "; ".join(f.meaning for f in data.diagnosis.refusals)
        return f"{read}. Predictions for more samples are refused: {reasons}."
    care = "".join(f" Caution: {f.meaning}." for f in data.diagnosis.warnings)
    return f"{read}. {hm.plan(data, target_gain=gain).sentence}{care}"


def _traces(curve: xr.Dataset, measured: xr.Dataset | None, N: int) -> list[dict[str, Any]]:
    n, name = curve.n.values, "generalisation_error"
    edge = {"line": {"width": 0, "color": COLOURS[0]}, "hoverinfo": "skip", "showlegend": False}
    band = {"fill": "tonexty", "fillcolor": "rgba(0, 114, 178, 0.18)"}
    line = {"line": {"color": COLOURS[0], "width": 2.5}, "hovertemplate": HOVER}
    traces = [
        scatter(n, curve[f"{name}_high"].values, "", **edge),
        scatter(n, curve[f"{name}_low"].values, "± one standard deviation", **edge, **band),
        scatter(n, curve[name].values, "predicted, ± one standard deviation", **line),
    ]
    if measured is not None:
        at = measured.isel(regularisation=0)
        values = at.n.values, at[name].values, at[f"{name}_stderr"].values
        traces.append(_dots(*values, "measured on held-out rows", "circle"))
    loo, error = (curve[f"{name}_leave_one_out{end}"].values[None] for end in ("", "_stderr"))
    return [*traces, _dots(np.array([N]), loo, error, "measured, leave-one-out", "diamond")]


def _dots(x: Array, y: Array, error: Array, name: str, symbol: str) -> dict[str, Any]:
    colour = COLOURS[1]
    return scatter(
        x,
        y,
        name,
        mode="markers",
        error_y={"type": "data", "array": numbers(error), "visible": True, "color": colour},
        cliponaxis=False,
        marker={"symbol": symbol, "size": 9, "color": colour},
        hovertemplate=HOVER,
    )


def _layout(curve: xr.Dataset, N: int) -> dict[str, Any]:
    # leave room for the first dot, whose size is rounded
    ends = np.log10([0.95 * float(curve.n.min()), max(float(curve.n.max()), 1.1 * N)])
    up = axis(curve.generalisation_error.attrs["long_name"], False, None)
    return LAYOUT | {
        "xaxis": axis("number of samples, n", True, ends.tolist()),
        "yaxis": up | {"rangemode": "tozero"},
    }


def _program(own: Sample, sizes: Any, counts: list[int], gain: float) -> str:
    """A Python program that computes the same curve from the file."""
    spaced = f"np.geomspace({float(sizes[0])!r}, {float(sizes[-1])!r}, {len(sizes)})"
    lines = ["import numpy as np", "", "import hiddenmanifold as hm", ""]
    lines += [own.program]
    lines += [f'curve = hm.learning_curve(data, n={spaced}, on_refusal="keep")']
    lines += [f"measured = hm.backtest(data, n={counts}, seeds={CUTS})"] if counts else []
    lines += ["if data.usable:", f"    print(hm.plan(data, target_gain={gain!r}))"]
    return "\n".join(lines) + "\n"
