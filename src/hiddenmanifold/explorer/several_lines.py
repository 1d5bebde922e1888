"""Questions whose answer is more than one line: ensembles, parts of an error, classes, training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer.controls import short
from hiddenmanifold.explorer.view import View
from hiddenmanifold.plotting.style import COLOURS

if TYPE_CHECKING:
    import xarray as xr

PARTS = {
    "irreducible_error": ("noise of new labels", "#9aa3ad"),
    "bias": ("bias", COLOURS[0]),
    "noise_variance": ("variance: noise of training labels", COLOURS[3]),
    "samples_variance": ("variance: samples", COLOURS[2]),
    "features_variance": ("variance: random features", COLOURS[1]),
}
"""Parts of the mean square error, from the bottom of the stack: in words, and their colours."""
INK = "#000000"
"""What the browser draws in the colour of the letters."""
SHADES = ("#56b4e9", "#0072b2", "#009e73", "#cc79a7", "#d55e00")
MOST_OTHERS = 4
"""Classes for which a class is taken, at most, beside its curve."""
EARLY, LATE = "stopped at the best time", "trained to the end, t = 10⁵"


def traces(view: View, x: Array, ds: xr.Dataset) -> list[dict[str, Any]]:
    """The lines of such a question, at places along the axis."""
    drawn = {
        "members": _members,
        "bias_variance": _stack,
        "classes": _classes,
        "time": _training,
    }
    lines = drawn[view.quantity](view, ds)
    return [line | {"x": x.tolist()} for line in lines]


def frames(view: View, ds: xr.Dataset) -> dict[str, Any]:
    """The curve at all times, for the browser to play."""
    table = ds.generalisation_error.transpose("time", view.x.name).values
    return {
        "times": np.log10(ds.time.values).tolist(),
        "y": [[float(v) if np.isfinite(v) else None for v in row] for row in table],
    }


def at_time(view: View, ds: xr.Dataset) -> Array:
    """The curve at the time of a view, between those that were computed as the browser does."""
    table = ds.generalisation_error.transpose(view.x.name, "time").values
    times, now = np.log(ds.time.values), np.log(view.time)
    return np.array([np.interp(now, times, row) for row in table])


def _line(view: View, y: Array, name: str, colour: str, **others: Any) -> dict[str, Any]:
    width = others.pop("width", 2.5)
    style = {"color": colour, "width": width, "dash": others.pop("dash", "solid")}
    if view.laborious:  # few points, and smooth between them
        style["shape"] = "spline"
    return {
        "type": "scatter",
        "mode": "lines",
        "y": [float(v) if np.isfinite(v) else None for v in y],
        "name": name,
        "line": {**style, "simplify": False},
        "hovertemplate": f"{short(view.x.name)} = %{{x:.4g}}<br>{name}: %{{y:.5g}}<extra></extra>",
        **others,
    }


def _members(view: View, ds: xr.Dataset) -> list[dict[str, Any]]:
    drawn = []
    for shade, K in zip(SHADES, ds.members.values, strict=True):
        name = "one fit" if K == 1 else "many fits" if np.isinf(K) else f"mean of {K:.0f} fits"
        values = ds.generalisation_error.sel(members=K).values
        drawn.append(_line(view, values, name, shade, width=3.0 if K in (1, np.inf) else 1.8))
    return drawn


def _stack(view: View, ds: xr.Dataset) -> list[dict[str, Any]]:
    drawn = []
    for quantity, (name, colour) in PARTS.items():
        values = ds[quantity].values
        if np.nanmax(values, initial=0.0) > 0.0:  # a part that the model does not have
            drawn.append(_line(view, values, name, colour, width=0.5, stackgroup="parts"))
    total = _line(view, ds.mean_square_error.values, "mean square error", INK, width=2.5)
    return [*drawn, total]


def _classes(view: View, ds: xr.Dataset) -> list[dict[str, Any]]:
    shares = view.model.teacher.shares  # type: ignore[attr-defined]
    drawn = [_line(view, ds.generalisation_error.values, "all classes", INK, width=3.0)]
    if np.ptp(shares) > 0.0 or view.model.teacher.alike is False:  # type: ignore[attr-defined]
        for k, share in enumerate(shares):
            values = ds.class_error.isel({"class": k}).values
            name, colour = f"class {k} ({share:.0%} of the samples)", COLOURS[k % 5]
            drawn.append(_line(view, values, name, colour) | _confusion(view, ds, k, name))
    if "top" in ds.sizes and ds.sizes["top"] > 1:
        values = ds.top_error.isel(top=1).values
        drawn.append(_line(view, values, "not among the best two", "#7f7f7f", dash="dot"))
    return drawn


def _confusion(view: View, ds: xr.Dataset, k: int, name: str) -> dict[str, Any]:
    """For which other classes the samples of a class are taken, to be read along its curve."""
    words = []
    for row in ds.confusion.isel({"class": k}).transpose(view.x.name, "predicted").values:
        others = [j for j in np.argsort(-row).tolist() if j != k and np.isfinite(row[j])]
        words.append(
            "<br>".join(f"taken for class {j}: {row[j]:.1%}" for j in others[:MOST_OTHERS])
        )
    hover = f"{short(view.x.name)} = %{{x:.4g}}<br>{name}: %{{y:.5g}}<br>%{{text}}<extra></extra>"
    return {"text": words, "hovertemplate": hover}


def _training(view: View, ds: xr.Dataset) -> list[dict[str, Any]]:
    table = ds.generalisation_error.transpose(view.x.name, "time").values
    now = _line(
        view, at_time(view, ds), f"at t = {float(f'{view.time:.3g}'):g}", COLOURS[0], width=3.5
    )
    late = _line(view, table[:, -1], LATE, "#7f7f7f", width=1.5, dash="dot")
    with np.errstate(invalid="ignore"):
        least = np.fmin.reduce(table, axis=1)
    return [now, _line(view, least, EARLY, COLOURS[2], dash="dash"), late]
