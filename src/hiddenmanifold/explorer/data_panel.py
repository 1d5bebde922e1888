"""The report of an uploaded table on the page: its curve as a figure, its words as components."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer.elements import element, listed, table
from hiddenmanifold.explorer.exports import ingredient
from hiddenmanifold.explorer.plots import LAYOUT, axis, numbers, scatter, vertical_line
from hiddenmanifold.explorer.upload import CUTS, MOST_SECONDS, Sample, sample
from hiddenmanifold.explorer.upload_loss import loss_of_file
from hiddenmanifold.plotting.style import COLOURS

if TYPE_CHECKING:
    import xarray as xr

HOVER = "n = %{x:.4g}: %{y:.4g}"


def learned(
    name: str,
    content: bytes | Path,
    label: str,
    task: str,
    gain: float,
    *,
    positive: str = "",
    loss: str = "",
    page: str = "",
) -> dict[str, Any]:
    """The report of an uploaded file: a number, a figure, what stands below it, and a program.

    The content is that of the file, or where it is: what is written meanwhile is beside it. The
    loss is that of the query of the page if none is given.
    """
    began = time.monotonic()
    folder = content.parent if isinstance(content, Path) else None
    file = content.read_bytes() if isinstance(content, Path) else content
    own = sample(name, file, label, task, positive, folder=folder)
    data = own.data()
    fitted, told = loss_of_file(data, loss, page)
    report = hm.report(
        data,
        loss=fitted,
        target_gain=gain,
        seeds=CUTS,
        deadline=max(0.0, MOST_SECONDS - (time.monotonic() - began)),
        title=f"{name}: {own.label}",
    )
    curve = report.curve
    anchor = "left" if float(curve.n.max()) > data.N else "right"
    return {
        "data": _traces(curve, report.backtest, data.N),
        "layout": _layout(curve, report.backtest, data.N),
        **vertical_line(data.N, f" sample size: {data.N} ", anchor, logarithmic=True),
        **_number(report, data),
        "headline": report.headline,
        "loss": told,
        "report": _below(report),
        "page": report.to_html(),
        "python": _program(own, report, gain, fitted),
    }


def _number(report: Any, data: hm.Data) -> dict[str, str]:
    """The answer as one number, and what it is: the change with twice the rows, or the error."""
    error = report.curve.generalisation_error
    what = error.attrs["long_name"]
    now, twice = (error.sel(n=n, method="nearest") for n in (data.N, 2 * data.N))
    if float(twice.n) < 1.9 * data.N:
        return {"number": f"{float(now):.3g}", "words": f"{what} now; more rows are not predicted"}
    change = f"{100.0 * float(twice / now - 1.0):+.0f} %".replace("-", "−")
    with_bar = re.search(r"\(([^()]+ %)\)", report.headline)
    number = with_bar.group(1) if with_bar else change
    return {"number": number, "words": f"{what} with twice the rows"}


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


def _layout(curve: xr.Dataset, measured: xr.Dataset | None, N: int) -> dict[str, Any]:
    sizes = [*curve.n.values, *([] if measured is None else measured.n.values), 1.1 * N]
    ends = np.log10([0.95 * min(sizes), max(sizes)])  # with room for the first dot
    up = axis(curve.generalisation_error.attrs["long_name"], False, None)
    return LAYOUT | {
        "xaxis": axis("number of samples, n", True, ends.tolist()),
        "yaxis": up | {"rangemode": "tozero"},
    }


def _below(report: Any) -> list[Any]:
    """The words of a report as components of the page, which are text to a browser."""
    parts = [element("P", sentence) for sentence in report.outlook]
    if cautions := [*report.refusals, *report.warnings]:
        parts.append(element("Div", listed(cautions), className="caution"))
    for one in report.tables:
        parts += [element("H2", one.title), table(one.header, one.rows, one.here)]
    for part in report.remarks:
        parts += [element("H2", part.title), listed(part.sentences)]
    return parts


def _program(own: Sample, report: Any, gain: float, loss: hm.losses.ConvexLoss) -> str:
    """A Python program that makes the same report from the file."""
    other = "" if loss == hm.losses.Square() else f", loss={ingredient('loss', loss)}"
    held = "" if report.backtest is None else f", seeds={report.backtest.attrs['seeds']}"
    lines = ["import hiddenmanifold as hm", "", own.program]
    lines += [
        f"report = hm.report(data, target_gain={gain!r}{other}{held}, title={report.title!r})"
    ]
    lines += ["print(report)", 'report.to_html("report.html")']
    return "\n".join(lines) + "\n"
