"""What reproduces a view elsewhere: Python, commands, and the numbers themselves."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hiddenmanifold.explorer import compute
from hiddenmanifold.explorer.plots import comparable, names, quantities
from hiddenmanifold.explorer.view import Axis, View
from hiddenmanifold.model import name_of
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import pandas as pd

PLURALS = {
    "activation": "activations",
    "projection": "projections",
    "teacher": "teachers",
    "loss": "losses",
}


def shown(view: View, pins: Sequence[View]) -> list[View]:
    """The view, and the pinned ones that are drawn beside it."""
    return [view, *(pin.beside(view) for pin in pins if comparable(pin, view))]


# ---------------------------------------------------------------- Python


def python(view: View, pins: Sequence[View] = (), *, dots: bool = False) -> str:
    """A program that computes what the view shows."""
    lines = ["import numpy as np", "", "import hiddenmanifold as hm", ""]
    for number, one in enumerate(shown(view, pins)):
        end = f"_{number}" if number else ""
        lines.append(f"model{end} = {_model(one)}")
        search = "interpolation_peak" if one.quantity == "peak" else "predict"
        lines.append(_call(f"ds{end} = hm.{search}(model{end}", one.arguments(), KEEP))
    if "threshold" in view.lines and (held := _of_threshold(view)):
        lines.append(_call("threshold = hm.separability_threshold(model", held))
    if view.y is None and "kernel" in view.lines:
        lines.append(_call("kernel_limit = hm.predict(model", compute.kernel_arguments(view)))
    if view.y is None and "bayes" in view.lines:
        lines.append(_call("bayes = hm.bayes_optimal(model", compute.bayes_arguments(view)))
    if dots:
        size = f", d={view.d}, seeds={view.seeds}"
        lines.append(_call("dots = hm.compare(model", _simulated(view), size))
    if view.y is None:
        what = ", ".join(f'"{name}"' for name in quantities(view))
        lines.append(f'hm.plot(ds, x="{view.x.name}", y=[{what}]).savefig("view.png")')
    return "\n".join(lines) + "\n"


KEEP = ', on_failure="keep"'


def _call(start: str, arguments: compute.Arguments, rest: str = "") -> str:
    given = "".join(f", {name}={_python(value)}" for name, value in arguments)
    return f"{start}{given}{rest})"


def _python(value: Any) -> str:
    if isinstance(value, Axis):
        spaced = "geomspace" if value.logarithmic else "linspace"
        return f"np.{spaced}({value.low!r}, {value.high!r}, {value.count})"
    if isinstance(value, tuple):
        return repr(list(value))
    if isinstance(value, str):
        return f'"{value}"'
    return "np.inf" if value == float("inf") else repr(float(value))


def _model(view: View) -> str:
    parts = [f"{kind}={_ingredient(kind, part)}" for kind, part in view.model.ingredients.items()]
    return f"hm.Model({', '.join([*parts, *['intercept=True'] * view.model.intercept])})"


def _changed(part: Any) -> dict[str, Any]:
    """The parameters that do not have their usual values."""
    return {
        field.name: getattr(part, field.name)
        for field in fields(part)
        if field.init and getattr(part, field.name) != field.default
    }


def _ingredient(kind: str, part: Any) -> str:
    if not (given := _changed(part)):
        return f'"{name_of(kind, part)}"'
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return f"hm.{PLURALS[kind]}.{type(part).__name__}({arguments})"


def _of_threshold(view: View) -> compute.Arguments:
    """The one ratio that fixes the threshold drawn; none if none is drawn."""
    if view.model.task != "classification":
        return ()
    if view.y is not None:
        given = compute.threshold_axis(view)
        return ((given.name, given),) if given is not None else ()
    if view.quantity == "peak":
        return ((view.x.name, view.x),)
    return view.held if view.x.name in RATIOS else ()


def dots_axis(view: View) -> Axis:
    """Where points are simulated."""
    x = view.x
    return Axis(x.name, x.low, x.high, view.dots, x.logarithmic)


def _simulated(view: View) -> compute.Arguments:
    return view.arguments(**{view.x.name: dots_axis(view)})


# ---------------------------------------------------------------- commands


def commands(view: View, pins: Sequence[View] = (), *, dots: bool = False) -> str:
    """Command lines that compute what the view shows."""
    lines = []
    for number, one in enumerate(shown(view, pins)):
        file = f"view_{number}.csv" if number else "view.csv"
        search = "peak" if one.quantity == "peak" else "predict"
        lines.append(_command(search, one, one.arguments(), {"csv": file}))
    if "threshold" in view.lines and (held := _of_threshold(view)):
        lines.append(_command("threshold", view, held))
    if view.y is None and "kernel" in view.lines:
        lines.append(_command("predict", view, compute.kernel_arguments(view)))
    if view.y is None and "bayes" in view.lines:
        lines.append(_command("bayes", view, compute.bayes_arguments(view)))
    if dots:
        size = {"d": str(view.d), "seeds": str(view.seeds), "csv": "dots.csv"}
        lines.append(_command("compare", view, _simulated(view), size))
    return "\n".join(lines) + "\n"


def _command(
    name: str, view: View, arguments: compute.Arguments, more: Mapping[str, str] | None = None
) -> str:
    words = ["hiddenmanifold", name]
    for kind, part in view.model.ingredients.items():
        given = ",".join(f"{key}={value!r}" for key, value in _changed(part).items())
        words += [f"--{kind}", f"{name_of(kind, part)}{':' if given else ''}{given}"]
    words += ["--intercept"] * view.model.intercept
    for argument, value in arguments:
        # a value that starts with a minus sign would be taken for an option: there is none
        words += [f"--{argument.replace('_', '-')}", _typed(value)]
    for option, text in (more or {}).items():
        words += [f"--{option}", text]
    return shlex.join(words)


def _typed(value: Any) -> str:
    if isinstance(value, Axis):
        start = "log:" if value.logarithmic else ""
        return f"{start}{value.low!r}:{value.high!r}:{value.count}"
    if isinstance(value, tuple):
        return ",".join(repr(float(one)) for one in value)
    return value if isinstance(value, str) else repr(float(value))


# ---------------------------------------------------------------- numbers


def csv(view: View, pins: Sequence[View] = (), dots: Mapping[str, Any] | None = None) -> str:
    """All numbers of the view; a line per point, simulated ones last."""
    import pandas as pd

    whole = pd.concat(list(_tables(view, pins, dots or {})), ignore_index=True)
    return str(whole.to_csv(index=False))


def _tables(view: View, pins: Sequence[View], dots: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    views, known = shown(view, pins), set()
    for one, name in zip(views, names(views), strict=True):
        table = compute.result(one).to_dataframe().reset_index()
        known |= set(table.columns)
        yield table.assign(curve=name)
    if points := (dots.get("points") or [])[: view.dots]:
        import pandas as pd

        rows = [_simulated_point(view.x.name, known, **point) for point in points]
        yield pd.DataFrame(rows).assign(curve="simulation")


def _simulated_point(
    axis: str, known: set[str], x: float, values: Mapping[str, float]
) -> dict[str, float]:
    """A line of numbers of known names, whatever else the browser tells."""
    kept = {n: float(v) for n, v in values.items() if n.removesuffix("_stderr") in known}
    return {axis: float(x), **kept}
