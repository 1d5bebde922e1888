"""One sentence that describes an answer of several lines, and where a curve peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import signal

from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer import compute
from hiddenmanifold.explorer.controls import INDEPENDENT, short
from hiddenmanifold.explorer.several_lines import PARTS
from hiddenmanifold.explorer.view import View

if TYPE_CHECKING:
    import xarray as xr

PROMINENCE = 1e-3
"""Smallest prominence of a peak, as a fraction of its value."""
ALIKE = 0.02
"""Relative difference below which two errors are called about the same."""


def of_several_lines(view: View) -> str:
    """Describe ensembles, the parts of an error, the errors of classes, or training."""
    x, ds = compute.several(view)
    if not np.isfinite(ds.generalisation_error).any():
        return "No point of this view could be computed: hover over the crosses for the reason."
    described = {
        "members": _of_members,
        "bias_variance": _of_parts,
        "classes": _of_classes,
        "time": _of_training,
    }
    return described[view.quantity](view, x, ds)


def peak(values: Array) -> int | None:
    """Index of the most prominent inner maximum, if there is one."""
    known = np.flatnonzero(np.isfinite(values))
    places, found = signal.find_peaks(values[known], prominence=0.0)
    rises = found["prominences"]
    rises = rises[high := rises > PROMINENCE * np.abs(values[known[places]])]
    return int(known[places[high][rises.argmax()]]) if rises.size else None


def digits(value: float) -> str:
    """A number to three digits."""
    return f"{value:.3g}"


def _place(values: Array) -> tuple[int, bool]:
    """The index at which a curve is described, and whether it has a peak there."""
    top = peak(values)
    return (int(np.flatnonzero(np.isfinite(values))[-1]), False) if top is None else (top, True)


def _at(view: View, x: float, peaked: bool) -> str:
    return f"At {'the peak, ' * peaked}{short(view.x.name)} = {digits(x)}"


def _of_members(view: View, x: Array, ds: xr.Dataset) -> str:
    one, many = (ds.generalisation_error.sel(members=K).values for K in (1.0, np.inf))
    index, peaked = _place(one)
    own = INDEPENDENT[view.independent]
    said = (
        f"{_at(view, x[index], peaked)}, one fit has the error {digits(one[index])}, the mean of "
        f"many that differ by their {own} {digits(many[index])}"
    )
    if view.lam is None:
        return f"{said}."
    there = (*view.held, (view.x.name, float(x[index])), ("regularisation", "optimal"))
    best = float(compute.predicted(view.model, there).generalisation_error)
    return f"{said}, and one fit at its optimal λ {digits(best)}."


def _of_parts(view: View, x: Array, ds: xr.Dataset) -> str:
    total = ds.mean_square_error.values
    index, peaked = _place(total)
    parts = {name: float(ds[name].values[index]) for name in PARTS}
    largest = max(parts, key=parts.__getitem__)
    share = parts[largest] / total[index]
    words = PARTS[largest][0].replace("variance:", "variance due to")
    said = (
        f"{_at(view, x[index], peaked)}, {share:.0%} of the mean square error of "
        f"{digits(total[index])} is {words}"
    )
    if largest != "bias":
        said += f"; the bias is {digits(parts['bias'])}"
    if total[index] > 50.0 * np.nanmin(total):
        said += ". To see the rest of the stack, choose a larger λ"
    return f"{said}."


def _of_classes(view: View, x: Array, ds: xr.Dataset) -> str:
    errors = ds.generalisation_error.values
    index, peaked = _place(errors)
    shares = view.model.teacher.shares  # type: ignore[attr-defined]
    said = f"{_at(view, x[index], peaked)}, the error is {digits(errors[index])}"
    each = ds.class_error.values[index]
    worst, best = int(each.argmax()), int(each.argmin())
    if each[worst] > (1.0 + ALIKE) * each[best]:
        taken = ds.confusion.isel({view.x.name: index, "class": worst}).values.copy()
        taken[worst] = 0.0
        return (
            f"{said}: {digits(each[worst])} for samples of class {worst}, {shares[worst]:.0%} of "
            f"all, which are taken most often for class {taken.argmax()}, and "
            f"{digits(each[best])} for those of class {best}, {shares[best]:.0%}."
        )
    chance = 1.0 - 1.0 / len(shares)
    return f"{said} in every one of the {len(shares)} classes; guessing has {digits(chance)}."


def _of_training(view: View, x: Array, ds: xr.Dataset) -> str:
    table = ds.generalisation_error.transpose(view.x.name, "time").values
    late, least = table[:, -1], np.fmin.reduce(table, axis=1)
    index, peaked = _place(late)
    when = float(ds.time.values[int(np.nanargmin(table[index]))])
    said = (
        f"{_at(view, x[index], peaked)}, the error is smallest, {digits(least[index])}, at t = "
        f"{digits(when)}, and {digits(late[index])} at the end"
    )
    if not peaked:
        return f"{said}; there is no peak."
    gone = "there is no peak" if peak(least) is None else "a smaller peak is left"
    return f"The peak grows with time. {said}: if training stops at the best time, {gone}."
