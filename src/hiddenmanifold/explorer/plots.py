"""Views as figures of plotly, which are plain dictionaries; colours are those of the plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.explorer import compute, several_lines
from hiddenmanifold.explorer.controls import (
    CLASS_OVERLAPS,
    KERNEL_OVERLAPS,
    OVERLAPS,
    SEVERAL_FITS,
    VANISHING,
    page_fields,
    short,
    title_of,
)
from hiddenmanifold.explorer.view import Axis, View
from hiddenmanifold.plotting.style import COLOURS
from hiddenmanifold.results.schema import ERROR_MEASURES
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
GREY = "#7f7f7f"
LAYOUT = {
    "margin": {"l": 64, "r": 20, "t": 44, "b": 52},
    # above the words of a vertical line, which stand above the curves
    "legend": {"orientation": "h", "x": 0, "y": 1.07, "yanchor": "bottom", "traceorder": "normal"},
    "hovermode": "closest",
}
UNNAMED = (
    *("quantity", "log_x", "log_y", "low", "high", "points", "d", "seeds", "dots", "x"),
    *("threshold", "kernel", "bayes", "hold", "time", "independent"),
)
"""Fields that do not tell curves apart."""
LEGIBLE = 4
"""Decades up to which a logarithmic axis has marks between its powers of ten."""
MANY = ("classes", *SEVERAL_FITS)
"""Questions whose answer is several lines, beside which none is pinned."""
NAMES = {"regularisation": "λ"}
"""Fields whose own names are long."""


def figure(view: View, pins: Sequence[View] = ()) -> dict[str, Any]:
    """The curves of a view and of those pinned beside it, or a heat map; and what they are of."""
    views, layout = shown(view, pins), _layout(view)
    others: dict[str, Any] = {}
    if view.y is not None:
        data = [_heat_map(view)]
    elif view.quantity in MANY:
        x, ds = compute.several(view)
        data = [*several_lines.traces(view, x, ds), *_gaps(x, ds, GREY)]
        if view.quantity == "time":
            others["frames"] = several_lines.frames(view, ds)
    else:
        data = []
        for number, (one, name) in enumerate(zip(views, names(views), strict=True)):
            data += _curves(one, number, name, single=len(views) == 1)
    if view.y is None and (view.log_y or "frames" in others):
        drawn = [one["y"] for one in data if one["mode"] == "lines"]
        ends = _span([*drawn, *others.get("frames", {"y": ()})["y"]], logarithmic=view.log_y)
        layout["yaxis"] = axis(layout["yaxis"]["title"]["text"], view.log_y, ends)
    return {
        "data": data,
        "layout": layout,
        "setting": view.setting,
        "quantities": quantities(view),
        "address": address_of(view, pins),
        **others,
    }


def _span(lines: Sequence[Sequence[float | None]], *, logarithmic: bool) -> list[float] | None:
    """A range of the vertical axis that holds all lines, with some room."""
    known = np.array([v for line in lines for v in line if v is not None])
    if logarithmic:
        known = np.log10(known[known > 0.0])
    if not known.size:
        return None
    room = 0.05 * (np.ptp(known) or 1.0)
    return [float(known.min() - room), float(known.max() + room)]


def address_of(view: View, pins: Sequence[View] = ()) -> str:
    """The address of a view and of those pinned beside it, after the question mark."""
    return urlencode([*view.texts, *(("pin", pin.query) for pin in pins)])


def comparable(pin: View, view: View) -> bool:
    """Whether a pinned curve can be drawn beside a view."""
    alike = pin.quantity == view.quantity or not {pin.quantity, view.quantity} & {"peak", *MANY}
    alike &= view.quantity not in MANY
    return view.y is None and pin.y is None and pin.x.name == view.x.name and alike


def shown(view: View, pins: Sequence[View]) -> list[View]:
    """The view, and the pinned ones that are drawn beside it."""
    return [view, *(pin.beside(view) for pin in pins if comparable(pin, view))]


def names(views: Sequence[View]) -> list[str]:
    """What tells views apart, in words."""
    known = page_fields()
    texts = [dict(view.texts) for view in views]
    kinds = [name for name in known if len({t.get(name) for t in texts}) > 1]
    kinds = [name for name in kinds if name not in UNNAMED]
    return [_reasons(kinds, text) or "this view" for text in texts]


def _reasons(kinds: Sequence[str], texts: dict[str, str]) -> str:
    known, said = page_fields(), []
    for name in kinds:
        text, field = texts.get(name, known[name].default), known[name]
        if "." in name:
            kind, owner, parameter = name.split(".")
            if texts.get(kind, known[kind].default) == owner:
                said.append(f"{parameter.replace('_', ' ')} = {text}")
        elif name in RATIOS or name in NAMES:
            said.append(f"{short(name)} {equals(text)}")
        elif name == "prediction":
            said.append(f"{text} prediction")
        elif name == "intercept":
            said.append("intercept" if text == "yes" else "no intercept")
        else:
            said.append((field.options or {}).get(text, text))
    return ", ".join(said)


def equals(text: str) -> str:
    """A value, or the limit or the search that it stands for."""
    if text in VANISHING:
        return "→ 0⁺"
    return text if text == "optimal" else f"= {text}"


def quantities(view: View) -> tuple[str, ...]:
    """What is drawn on a tab."""
    overlaps = KERNEL_OVERLAPS if view.model.features.infinite else OVERLAPS
    several: dict[str, tuple[str, ...]] = {
        "overlaps": CLASS_OVERLAPS if view.model.task == "classes" else overlaps,
        "peak": ("p_over_n",),
        "time": ("generalisation_error",),
        "members": ("generalisation_error",),
        "bias_variance": tuple(several_lines.PARTS),
        "classes": ("class_error",),
    }
    return several.get(view.quantity, (view.quantity,))


def _curves(view: View, number: int, name: str, *, single: bool) -> list[dict[str, Any]]:
    traces = []
    drawn = quantities(view)
    x, ds = compute.drawn(view, drawn[0])
    for k, quantity in enumerate(drawn):
        colour, dash = (number, number) if len(drawn) == 1 else (k, number)
        if view.quantity == "peak":
            dash = 0  # broken lines are the thresholds
        label = _title(view, quantity) if single else name
        if len(drawn) > 1 and not single:
            label = f"{title_of(quantity)}; {name}"
        wide = 3.2 if number == 0 else 2.2
        line = {"color": COLOURS[colour % len(COLOURS)], "width": wide, "simplify": False}
        if view.laborious and view.quantity != "peak":  # few points, and smooth between them
            line["shape"] = "spline"
        trace = scatter(
            x,
            ds[quantity].values,
            label,
            line={**line, "dash": DASHES[dash % len(DASHES)]},
            hovertemplate=f"{short(view.x.name)} = %{{x:.4g}}<br>%{{y:.5g}}",
            meta={"quantity": quantity, "curve": number},
        )
        if "optimal_regularisation" in ds:
            trace["customdata"] = numbers(ds.optimal_regularisation.values)
            trace["hovertemplate"] += "<br>best λ = %{customdata:.3g}"
        traces.append(trace)
    return [*traces, *_gaps(x, ds, COLOURS[number % len(COLOURS)])]


def scatter(x: Array, y: Array, name: str, **others: Any) -> dict[str, Any]:
    """A line through points, or other marks at them."""
    points = {"x": numbers(x), "y": numbers(y), "name": name}
    return {"type": "scatter", "mode": "lines", **points, **others}


def _gaps(x: Array, ds: xr.Dataset, colour: str) -> list[dict[str, Any]]:
    """Crosses at the foot of the plot where points failed, with the reason."""
    status = ds.status.values.reshape(len(x), -1).max(1)
    failed = np.flatnonzero(status != hm.Status.CONVERGED)
    if not failed.size:
        return []
    reasons = [hm.Status(int(status[i])).sentence for i in failed]
    crosses = scatter(
        x[failed],
        np.full(len(failed), 0.02),
        "no value",
        mode="markers",
        yaxis="y2",
        text=[_wrapped(reason) for reason in reasons],
        hovertemplate="%{x:.4g}: %{text}<extra></extra>",
        marker={"symbol": "x", "size": 9, "color": colour},
    )
    return [crosses]


def _wrapped(text: str, width: int = 48) -> str:
    import textwrap

    return "<br>".join(textwrap.wrap(text, width))


def _heat_map(view: View) -> dict[str, Any]:
    assert view.y is not None
    ds = compute.result(view)
    quantity = quantities(view)[0]
    table = ds[quantity].transpose(view.y.name, view.x.name).values
    status = ds.status.transpose(view.y.name, view.x.name).values
    words = [[hm.Status(int(s)).sentence if s else "" for s in row] for row in status]
    return {
        "type": "heatmap",
        "x": view.x.values.tolist(),
        "y": view.y.values.tolist(),
        "z": [numbers(row) for row in table],
        "text": [[_wrapped(word) for word in row] for row in words],
        "colorscale": "Viridis",
        "zsmooth": False,
        "hoverongaps": True,
        "colorbar": {
            "title": {"text": _title(view, quantity), "side": "right"},
            "thickness": 14,
            "outlinewidth": 0,
        },
        "hovertemplate": (
            f"{short(view.x.name)} = %{{x:.4g}}<br>{short(view.y.name)} = %{{y:.4g}}<br>"
            "%{z:.5g} %{text}<extra></extra>"
        ),
    }


def _title(view: View, name: str) -> str:
    if view.quantity == "peak":
        return "position of the peak, p/n"
    if name == "bias_variance":
        return "mean square error of the score"
    if name in ("generalisation_error", *MANY):
        return f"{measure(view.model)}, ε<sub>g</sub>"
    return title_of(name)


def measure(model: hm.Model) -> str:
    """What the generalisation error of a model is."""
    return ERROR_MEASURES[Task.CLASSIFICATION if model.counts_errors else Task.REGRESSION]


def _layout(view: View) -> dict[str, Any]:
    up = _title(view, view.y.name if view.y is not None else view.quantity)
    log_up = view.y.logarithmic if view.y is not None else view.log_y
    # what is zoomed into stays so until the axes change
    kept = f"{view.x}{view.y}{up}{log_up}"
    return LAYOUT | {
        "uirevision": kept,
        "xaxis": axis(title_of(view.x.name), view.x.logarithmic, _range(view.x)),
        "yaxis": axis(up, log_up, _range(view.y) if view.y is not None else None),
        "yaxis2": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        "showlegend": view.y is None,
    }


def _range(axis: Axis) -> list[float]:
    ends = np.array([axis.low, axis.high])
    return (np.log10(ends) if axis.logarithmic else ends).tolist()  # type: ignore[no-any-return]


def axis(title: str, logarithmic: bool, ends: list[float] | None) -> dict[str, Any]:
    """An axis with marks that can be read."""
    made: dict[str, Any] = {
        "title": {"text": title},
        "type": "log" if logarithmic else "linear",
        "exponentformat": "power",
        "zeroline": False,
        "automargin": True,
        "ticks": "outside",
        "showline": True,
    }
    if not ends:
        return made
    if logarithmic and ends[1] - ends[0] <= LEGIBLE:
        decades = range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
        digits = (1, 2, 5) if ends[1] - ends[0] > 1 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
        marks = [digit * 10.0**decade for decade in decades for digit in digits]
        inside = [v for v in marks if ends[0] - 0.01 <= math.log10(v) <= ends[1] + 0.01]
        made |= {"tickvals": inside, "ticktext": [f"{v:g}" for v in inside]}
    elif logarithmic:
        made |= {"dtick": 1}
    return made | {"range": ends}


def references(view: View, pins: Sequence[View] = ()) -> dict[str, Any]:
    """The lines beside the curves: separability, the kernel limit, the Bayes-optimal error."""
    drawn: dict[str, Any] = {"data": [], "shapes": [], "annotations": []}
    if "threshold" in view.lines and view.quantity == "peak":
        drawn["data"] += _thresholds(shown(view, pins))
    elif "threshold" in view.lines:
        _add_threshold(view, drawn)
    if view.y is not None or view.quantity in ("overlaps", "peak", *MANY):
        return drawn
    try:
        if "kernel" in view.lines:
            limit = compute.predicted(view.model, compute.kernel_arguments(view))
            if view.quantity in limit:
                drawn["data"].append(_line(view, limit[view.quantity].values, "p → ∞", "dash"))
        if "bayes" in view.lines and view.quantity == "generalisation_error":
            given = compute.bayes_arguments(view)
            least = compute.computed(hm.bayes_optimal, view.model, given)
            name = "Bayes-optimal"
            drawn["data"].append(_line(view, least.generalisation_error.values, name, "dot"))
    except hm.HiddenManifoldError as error:
        drawn["complaint"] = str(error)
    return drawn


def _line(view: View, values: Array, name: str, dash: str) -> dict[str, Any]:
    x = compute.coarse(view.x).values
    style = {"color": GREY, "width": 1.8, "dash": dash}
    hover = f"{name}: %{{y:.5g}}<extra></extra>"
    return scatter(x, np.broadcast_to(values, x.shape), name, line=style, hovertemplate=hover)


def _thresholds(views: Sequence[View]) -> list[dict[str, Any]]:
    """Where data become separable, beside the places of peaks."""
    lines = []
    for number, view in enumerate(views):
        found = compute.threshold(view.model, ((view.x.name, view.x),))
        if found is not None:
            line = _line(view, found.values, "data become separable", "dash")
            colour = {"color": COLOURS[number % len(COLOURS)]}
            whole = {"x": view.x.values.tolist(), "y": numbers(found.values)}
            lines.append(line | whole | {"line": line["line"] | colour, "showlegend": number == 0})
    return lines


def _add_threshold(view: View, drawn: dict[str, Any]) -> None:
    if view.y is not None:
        if line := compute.separable_line(view):
            name, style = "data become separable", {"color": "white", "width": 2.5}
            hover = f"{name}<extra></extra>"
            drawn["data"].append(scatter(*line, name, line=style, hovertemplate=hover))
    else:
        as_many = view.model.loss.quadratic
        place = compute.as_many(view) if as_many else compute.separable_from(view)
        if place is None:
            return
        anchor = "left" if place < np.median(view.x.values) else "right"  # in sight
        text = f" separable: {short(view.x.name)} = {place:.3g} "
        text = " interpolation: p = n " if as_many else text
        drawn |= vertical_line(place, text, anchor, logarithmic=view.x.logarithmic)


def vertical_line(x: float, text: str, anchor: str, *, logarithmic: bool) -> dict[str, Any]:
    """A line across the plot, with words above it."""
    line = {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": GREY, "width": 1.5, "dash": "dashdot"},
    }
    words = {
        "x": math.log10(x) if logarithmic else x,
        "y": 1.0,
        "yref": "paper",
        "yanchor": "bottom",
        "xanchor": anchor,
        "text": text,
        "showarrow": False,
        "font": {"size": 12, "color": GREY},
    }
    return {"shapes": [line], "annotations": [words]}


def numbers(values: Array) -> list[float | None]:
    """Values as JSON can say them: what is not finite is null."""
    return [float(v) if np.isfinite(v) else None for v in np.asarray(values, dtype=float)]
