"""One sentence that describes the curve or map of a view."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer import compute
from hiddenmanifold.explorer.controls import QUANTITIES, short, title_of
from hiddenmanifold.explorer.plots import MANY, quantities
from hiddenmanifold.explorer.sentence_of_several import digits, of_several_lines, peak
from hiddenmanifold.explorer.view import Axis, View

NEAR = 0.06
"""Relative distance within which a peak counts as near a threshold."""
FINE, ROUGH = 41, 24
WIDE = 1e4
"""Ratio of errors that a linear axis shows as a spike."""


def sentence(view: View) -> str:
    """Describe a view in one sentence."""
    try:
        apart = " Each class is fitted against the others." if view.model.scheme else ""
        if view.y is not None:
            return _of_map(view) + apart
        if view.quantity in MANY:
            return of_several_lines(view) + apart
        return _of_curve(view) + apart
    except hm.HiddenManifoldError as error:
        return f"{error}."


def _of_curve(view: View) -> str:
    values = _values(view, view.x)
    if not np.isfinite(values).any():
        return "No point of this view could be computed: hover over the crosses for the reason."
    if view.quantity != "generalisation_error":
        first, *_ = title_of(quantities(view)[0]).split(",")  # without its symbol
        several = view.quantity == "overlaps"
        return _course(view, values, first if several else QUANTITIES[view.quantity])
    if view.x.name == "regularisation":
        return _of_regularisation(view)
    return _of_error(view, values)


def _values(view: View, x: Axis, **others: object) -> Array:
    """The quantity along an axis."""
    if view.quantity == "peak":
        return np.asarray(compute.result(view).p_over_n.values)
    ds = compute.predicted(view.model, view.arguments(**{x.name: x}, **others))
    found: Array = ds[quantities(view)[0]].values
    return found


def _of_error(view: View, values: Array) -> str:
    name = short(view.x.name)
    top = peak(values)
    if top is None:
        return _course(view, values, "error") + (_few(view) or _hidden_peak(view))
    if view.laborious:  # a finer grid and a search would take minutes
        near = f"The error peaks near {name} = {view.x.values[top]:.2g}."
        return near + _wide(view, values) + _few(view)
    place = _refined(view, top)
    said = f"The error peaks at {name} = {place:.3g}{_where(view, place)}"
    if view.lam == "optimal":
        return f"{said}, even though λ is optimal at every point."
    there = (*view.held, (view.x.name, place), ("regularisation", "optimal"))
    best = compute.predicted(view.model, there)
    lam = float(best.optimal_regularisation)
    others = _values(view, view.x.of(ROUGH), regularisation="optimal")
    gone = "removes the peak" if peak(others) is None else "leaves a smaller peak"
    return f"{said}; the optimal λ ({digits(lam)} there) {gone}."


def _few(view: View) -> str:
    """Why a curve of labels that are numbers has few points."""
    if not view.laborious or "points" in dict(view.texts):
        return ""
    return f" The curve has {view.x.count} points, because each takes long."


def _wide(view: View, values: Array) -> str:
    """How to see a curve of which a linear axis shows a spike alone."""
    known = values[np.isfinite(values)]
    if view.log_y or known.max() <= WIDE * known.min():
        return ""
    return " To see the rest of the curve, choose a larger λ or a logarithmic vertical axis."


def _refined(view: View, top: int, **others: object) -> float:
    """The position of a peak between the neighbours of a grid point, to the digits shown."""
    x = view.x.values
    for _ in range(2):
        fine = replace(view.x, low=x[top - 1], high=x[top + 1], count=FINE)
        values = _values(view, fine, **others)[1:-1]
        if not np.isfinite(values).any():
            break
        x, top = fine.values, int(np.nanargmax(values)) + 1
    return float(x[top])


def _where(view: View, place: float) -> str:
    """The threshold that coincides with a peak, or is near it."""
    threshold = compute.separable_from(view)
    marks = {
        threshold: "where the data become separable",
        compute.as_many(view): "where there are as many features as samples",
    }
    for mark, words in marks.items():
        if mark and abs(np.log(place / mark)) < 0.006:
            return f", {words}"
        if mark and abs(np.log(place / mark)) < NEAR:
            return f", near {short(view.x.name)} = {mark:.3g}, {words}"
    return ""


def _hidden_peak(view: View) -> str:
    """Whether the same view has a peak at vanishing λ."""
    if view.lam in (0.0, "optimal", None):
        return ""
    top = peak(_values(view, view.x, regularisation=0.0))
    if top is None:
        return " There is no peak as λ → 0⁺ either."
    place = _refined(view, top, regularisation=0.0)
    return (
        f" As λ → 0⁺ the error peaks at {short(view.x.name)} = {place:.3g}{_where(view, place)}; "
        f"λ = {digits(float(view.lam))} removes this peak."
    )


def _course(view: View, values: Array, what: str) -> str:
    """How a quantity changes along the axis."""
    name, x = short(view.x.name), view.x.values
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return f"The {what} could not be computed here."
    first, last = known[0], known[-1]
    a, b = values[first], values[last]
    verb = "falls" if b < a else "rises" if b > a else "stays"
    said = f"The {what} {verb} from {digits(a)} at {name} = {x[first]:.3g} to {digits(b)}"
    said += f" at {name} = {x[last]:.3g}"
    least = known[np.argmin(values[known])]
    least = last if values[least] == b else least
    if what == "error":
        said += " without a peak"
    if least not in (first, last):
        said += f"; its minimum is {digits(values[least])} at {name} = {x[least]:.3g}"
    return said + "."


def _of_regularisation(view: View) -> str:
    best = compute.predicted(view.model, (*view.held, ("regularisation", "optimal")))
    lam, error = float(best.optimal_regularisation), float(best.generalisation_error)
    small = compute.predicted(view.model, (*view.held, ("regularisation", 0.0)))
    limit = float(small.generalisation_error)
    at_zero = f"; as λ → 0⁺ the error is {digits(limit)}" if np.isfinite(limit) else ""
    return f"The smallest error is {digits(error)}, at {_lam(lam)}{at_zero}."


def _lam(lam: float) -> str:
    if lam == 0:
        return "λ → 0⁺"
    return "λ → ∞" if np.isinf(lam) else f"λ = {digits(lam)}"


def _of_map(view: View) -> str:
    assert view.y is not None
    ds = compute.result(view)
    name = quantities(view)[0]
    table = ds[name].transpose(view.y.name, view.x.name).values
    if not np.isfinite(table).any():
        return "No point of this map could be computed."
    row, column = np.unravel_index(np.nanargmin(table), table.shape)
    what = QUANTITIES.get(name, name)
    said = (
        f"The smallest {what} is {digits(table[row, column])}, at {short(view.x.name)} = "
        f"{view.x.values[column]:.3g}, {short(view.y.name)} = {view.y.values[row]:.3g}"
    )
    if failed := int((~np.isfinite(table)).sum()):
        said += f"; {failed} of {table.size} points could not be computed"
    if "threshold" in view.lines and compute.separable_line(view):
        said += "; the data become separable at the white line"
    return said + "."
