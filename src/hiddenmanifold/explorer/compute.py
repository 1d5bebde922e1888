"""Datasets of a view, from the public functions; what was computed a moment ago is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer.view import Axis, View, converted
from hiddenmanifold.explorer.worker_pool import waited
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr

Arguments = tuple[tuple[str, Any], ...]
HERE: dict[str, Any] = {"on_failure": "keep", "workers": 1, "progress": False}
COARSE = 60
"""Most points of a line that is drawn beside the curves."""
LATE = 80
"""Points of a curve along training before there are more where its end bends."""
ROUNDS, MOST_MORE = 3, 40
"""How often points are added where a curve bends, and how many at a time."""
TURN, SHORT = 0.12, 0.004
"""Angle in radians, and length of a piece as a part of the axes, above which a bend is seen."""


def spelled_out(arguments: Arguments) -> dict[str, Any]:
    """Arguments with values in place of axes and tuples."""
    return {
        name: value.values
        if isinstance(value, Axis)
        else np.array(value)
        if isinstance(value, tuple)
        else value
        for name, value in arguments
    }


@lru_cache(maxsize=256)
def computed(
    question: Callable[..., xr.Dataset], model: hm.Model, arguments: Arguments
) -> xr.Dataset:
    """The answer of `hm.predict`, or of another function like it, for a model at some arguments."""
    return question(model, **spelled_out(arguments), **HERE)


predicted = partial(computed, hm.predict)


def result(view: View) -> xr.Dataset:
    """The dataset that a view shows; slow results are computed elsewhere."""
    name, others = view.question
    given = getattr(hm, name), view.model, (*view.arguments(), *others)
    return _elsewhere_or_here(*given) if view.slow else computed(*given)


def _elsewhere_or_here(*given: Any) -> xr.Dataset:
    """What takes long, computed by a process of its own unless this is one."""
    return _computed_elsewhere(*given) if parent_process() is None else computed(*given)


def several(view: View) -> tuple[Array, xr.Dataset]:
    """Places and dataset of a question whose answer is several lines."""
    parts = view.quantity == "bias_variance"
    return drawn(view, "mean_square_error" if parts else "generalisation_error")


def drawn(view: View, quantity: str) -> tuple[Array, xr.Dataset]:
    """Places and dataset of curves, with more points where the first of a quantity bends."""
    import xarray as xr

    name, others = view.question
    if view.quantity == "time" and "points" not in dict(view.texts):  # as fine as at its end
        late = replace(view, quantity="generalisation_error", x=view.x.of(LATE))
        x, _ = drawn(late, "generalisation_error")
        given = (*view.arguments(**{view.x.name: tuple(x.tolist())}), *others)
        return x, _elsewhere_or_here(getattr(hm, name), view.model, given)
    x, ds = view.x.values, result(view)
    if not view.adaptive:
        return x, ds
    for _ in range(ROUNDS):
        values = ds[quantity].transpose(view.x.name, ...).values.reshape(len(x), -1)
        more = _between(x, values[:, 0], logarithmic=view.x.logarithmic)
        if not len(more):
            break
        given = (*view.arguments(**{view.x.name: tuple(more.tolist())}), *others)
        added = computed(getattr(hm, name), view.model, given)
        ds = xr.concat([ds, added], view.x.name, data_vars="minimal", coords="minimal")
        ds = ds.sortby(view.x.name)
        x = ds[view.x.name].values
    return x, ds


def _between(x: Array, y: Array, *, logarithmic: bool) -> Array:
    """Midpoints beside the places at which a curve, drawn in a square, turns by a few degrees."""
    if not np.isfinite(y).all() or np.ptp(y) == 0.0:
        return np.empty(0)
    along = np.log(x) if logarithmic else x
    step = np.diff(along) / np.ptp(along)
    slope = np.arctan2(np.diff(y) / np.ptp(y), step)
    long = np.hypot(np.diff(y) / np.ptp(y), step) > SHORT
    turns = np.flatnonzero(np.abs(np.diff(slope)) > TURN)
    where = np.unique([*turns, *(turns + 1)]).astype(int)
    where = where[long[where]][:MOST_MORE]
    middle: Array = (along[where] + along[where + 1]) / 2.0
    return np.exp(middle) if logarithmic else middle


@lru_cache(maxsize=128)
def _computed_elsewhere(*given: Any) -> xr.Dataset:
    return waited(computed, *given)


def threshold(model: hm.Model, held: Arguments) -> xr.DataArray | None:
    """Where data become separable along what one ratio leaves free; None for real labels."""
    if model.task != "classification":
        return None
    found = computed(hm.separability_threshold, model, held)
    return found["p_over_n" if "p_over_n" in found.data_vars else "n_over_d"]


def crosses(view: View) -> bool:
    """Whether the ratio of features to samples varies along the axis."""
    if view.model.features.infinite:
        return False
    return view.x.name in RATIOS and not {"p_over_n", "n_over_p"} & {n for n, _ in view.held}


def as_many(view: View) -> float | None:
    """Place on the axis where there are as many features as samples, if it is on it."""
    if not crosses(view):
        return None
    place = float(converted({"p_over_n": 1.0, **dict(view.held)}, view.x.name))
    return place if view.x.low <= place <= view.x.high else None


def separable_from(view: View) -> float | None:
    """Place on the horizontal axis where the data become separable, if it is on it."""
    if view.y is not None or view.x.name not in RATIOS or view.quantity == "peak":
        return None
    try:
        found = threshold(view.model, view.held)
    except hm.HiddenManifoldError:
        return None
    if found is None or not 0 < float(found) < np.inf:
        return None
    known = {str(found.name): float(found), **dict(view.held)}
    place = converted(known, view.x.name)
    return float(place) if view.x.low <= place <= view.x.high else None


def separable_line(view: View) -> tuple[Array, Array] | None:
    """The line on a heat map over two ratios at which data become separable."""
    if (given := threshold_axis(view)) is None or view.y is None:
        return None
    try:
        found = threshold(view.model, ((given.name, given),))
    except hm.HiddenManifoldError:
        return None
    if found is None:
        return None
    known = {str(found.name): found.values, given.name: given.values}
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (np.broadcast_to(converted(known, a.name), given.count) for a in (view.x, view.y))
    inside = (x >= view.x.low) & (x <= view.x.high) & (y >= view.y.low) & (y <= view.y.high)
    # the ends of the axis that was given survive rounding
    inside |= np.isclose(x, np.clip(x, view.x.low, view.x.high)) & np.isclose(
        y, np.clip(y, view.y.low, view.y.high)
    )
    return x[inside], y[inside]


def threshold_axis(view: View) -> Axis | None:
    """The axis of a heat map along which the threshold is a function, if there is one."""
    if view.y is None or not {view.x.name, view.y.name} <= set(RATIOS):
        return None
    return view.y if view.x.name in ("p_over_n", "n_over_p") else view.x


def coarse(axis: Axis) -> Axis:
    """The same axis with fewer values."""
    return axis.of(min(axis.count, COARSE))


def kernel_arguments(view: View) -> Arguments:
    """The arguments of the kernel limit: p/n is infinite, n/d that of the view."""
    lam = dict(view.arguments()).get("regularisation")
    held = dict(view.held)
    if isinstance(lam, Axis):
        n_over_d: Any = converted(held, "n_over_d")
        return (("n_over_d", n_over_d), ("p_over_n", np.inf), ("regularisation", coarse(lam)))
    x = coarse(view.x)
    if x.name == "n_over_d":
        n_over_d = x
    elif "n_over_d" in held:
        n_over_d = held["n_over_d"]
    else:
        n_over_d = tuple(converted({x.name: x.values, **held}, "n_over_d").tolist())
    return (("n_over_d", n_over_d), ("p_over_n", np.inf), ("regularisation", lam))


def bayes_arguments(view: View) -> Arguments:
    """The ratios of the Bayes-optimal line."""
    axis = {view.x.name: coarse(view.x)} if view.x.name in RATIOS else {}
    return tuple({**axis, **dict(view.held)}.items())
