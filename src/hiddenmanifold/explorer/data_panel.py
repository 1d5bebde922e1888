"""The learning curve of an uploaded table: predicted, measured, and in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.explorer.plots import axis, numbers
from hiddenmanifold.explorer.upload import CUTS, Sample, sample
from hiddenmanifold.plotting.style import COLOURS

if TYPE_CHECKING:
    import xarray as xr

REACH, POINTS = 8.0, 25
"""The curve runs from 1/8 to 8 times the size of the sample."""
TESTED = 20
"""Smallest number of test rows."""


def learned(name: str, content: bytes, label: str, task: str, gain: float) -> dict[str, Any]:
    """The learning curve of an uploaded file as a figure, a sentence and a program."""
    own = sample(name, content, label, task)
    data = own.data()
    last = data.N * (REACH if data.usable else 1.0)
    sizes = np.geomspace(max(3.0, data.N / REACH), last, POINTS)
    curve = hm.learning_curve(data, n=sizes, on_refusal="keep")
    counts, measured = _measured(data)
    return {
        "data": _traces(curve, measured, data.N),
        "layout": _layout(curve, data.N),
        **_mark(data.N, "left" if last > data.N else "right"),
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
    if not data.usable:
        reasons = "; ".join(f.meaning for f in data.diagnosis.refusals)
        return f"{read}. Predictions for more samples are refused: {reasons}."
    care = "".join(f" Caution: {f.meaning}." for f in data.diagnosis.warnings)
    return f"{read}. {hm.plan(data, target_gain=gain).sentence}{care}"


def _traces(curve: xr.Dataset, measured: xr.Dataset | None, N: int) -> list[dict[str, Any]]:
    x, name = numbers(curve.n.values), "generalisation_error"
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0, "color": COLOURS[0]}}
    quiet = {"hoverinfo": "skip", "showlegend": False}
    traces: list[dict[str, Any]] = [
        {**edge, **quiet, "y": numbers(curve[f"{name}_high"].values)},
        {**edge, **quiet, "y": numbers(curve[f"{name}_low"].values)}
        | {
            "fill": "tonexty",
            "fillcolor": "rgba(0, 114, 178, 0.18)",
            "name": "± one standard deviation",
        },
        {**edge, "y": numbers(curve[name].values), "name": "predicted, ± one standard deviation"}
        | {"line": {"color": COLOURS[0], "width": 2.5}, "hovertemplate": "n = %{x:.4g}: %{y:.4g}"},
    ]
    if measured is not None:
        at = measured.isel(regularisation=0)
        values, errors = at[name].values, at[f"{name}_stderr"].values
        title = "measured on held-out rows"
        traces.append(_dots(at.n.values, values, errors, title, "circle"))
    loo, error = (float(curve[f"{name}_leave_one_out{end}"]) for end in ("", "_stderr"))
    title = "measured, leave-one-out"
    return [*traces, _dots(np.array([N]), np.array([loo]), np.array([error]), title, "diamond")]


def _dots(x: Any, y: Any, error: Any, name: str, symbol: str) -> dict[str, Any]:
    colour = COLOURS[1]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(x),
        "y": numbers(y),
        "error_y": {"type": "data", "array": numbers(error), "visible": True, "color": colour},
        "name": name,
        "cliponaxis": False,
        "marker": {"symbol": symbol, "size": 9, "color": colour},
        "hovertemplate": "n = %{x:.4g}: %{y:.4g}",
    }


def _layout(curve: xr.Dataset, N: int) -> dict[str, Any]:
    # leave room for the first dot, whose size is rounded
    ends = np.log10([0.95 * float(curve.n.min()), max(float(curve.n.max()), 1.1 * N)])
    return {
        "xaxis": axis("number of samples, n", True, ends.tolist()),
        "yaxis": axis(curve.generalisation_error.attrs["long_name"], False, None)
        | {"rangemode": "tozero"},
        "margin": {"l": 64, "r": 16, "t": 36, "b": 52},
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"}
        | {"traceorder": "normal"},
        "hovermode": "closest",
    }


def _mark(N: int, anchor: str) -> dict[str, Any]:
    """A vertical line at the size of the sample, with its label."""
    line = {"color": "#7f7f7f", "width": 1.5, "dash": "dashdot"}
    place = {"yref": "paper", "y0": 0, "y1": 1, "x0": N, "x1": N}
    words = {
        "text": f" sample size: {N} ",
        "showarrow": False,
        "font": {"size": 12, "color": "#7f7f7f"},
    }
    where = {"x": float(np.log10(N)), "y": 0.98, "yref": "paper"}
    sides = {"xanchor": anchor, "yanchor": "top"}
    return {
        "shapes": [{"type": "line", "line": line, **place}],
        "annotations": [{**words, **where, **sides}],
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
