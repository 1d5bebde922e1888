"""Exports that reproduce a view elsewhere: Python, commands, and the numbers themselves."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import hiddenmanifold as hm
from hiddenmanifold.explorer import compute
from hiddenmanifold.explorer.controls import USUAL
from hiddenmanifold.explorer.plots import names, quantities, shown
from hiddenmanifold.explorer.view import Axis, View
from hiddenmanifold.results.ingredients import NAMED, name_of
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import pandas as pd

PLURALS = {
    "kernel": "kernels",
    "activation": "activations",
    "projection": "projections",
    "teacher": "teachers",
    "loss": "losses",
}
COMMANDS = {
    "predict": "predict",
    "interpolation_peak": "peak",
    "separability_threshold": "threshold",
    "bayes_optimal": "bayes",
    "compare": "compare",
    "training": "training",
    "ensemble": "ensemble",
    "bias_variance": "bias-variance",
}
KEEP = ', on_failure="keep"'


class Call(NamedTuple):
    """A call of the library that a view takes, as a line of Python and as a command.

    `given` is what Python is given beside the arguments, and `options` what the command is.
    """

    variable: str
    function: str
    model: str
    view: View
    arguments: compute.Arguments
    given: str = ""
    options: Mapping[str, str] = {}


def _calls(view: View, pins: Sequence[View], *, dots: bool) -> Iterator[Call]:
    for number, one in enumerate(shown(view, pins)):
        end = f"_{number}" if number else ""
        question, others = one.question
        file = {"csv": f"view{end}.csv"}
        arguments = (*one.arguments(), *others)
        yield Call(f"ds{end}", question, f"model{end}", one, arguments, KEEP, file)
    if "threshold" in view.lines and (held := _of_threshold(view)):
        yield Call("threshold", "separability_threshold", "model", view, held)
    if view.y is None and "kernel" in view.lines:
        yield Call("kernel_limit", "predict", "model", view, compute.kernel_arguments(view))
    if view.y is None and "bayes" in view.lines:
        yield Call("bayes", "bayes_optimal", "model", view, compute.bayes_arguments(view))
    if dots:
        simulated = view.arguments(**{view.x.name: view.dots_axis})
        given = f", d={view.d}, seeds={view.seeds}"
        options = {"d": str(view.d), "seeds": str(view.seeds), "csv": "dots.csv"}
        yield Call("dots", "compare", "model", view, simulated, given, options)


# ---------------------------------------------------------------- Python


def python(view: View, pins: Sequence[View] = (), *, dots: bool = False) -> str:
    """A program that computes what the view shows."""
    lines = ["import numpy as np", "", "import hiddenmanifold as hm", ""]
    for call in _calls(view, pins, dots=dots):
        if call.variable.startswith("ds"):
            lines.append(f"{call.model} = {_model(call.view)}")
        arguments = "".join(f", {name}={_python(value)}" for name, value in call.arguments)
        start = f"{call.variable} = hm.{call.function}({call.model}"
        lines.append(f"{start}{arguments}{call.given})")
    if view.y is None:
        what = ", ".join(f'"{name}"' for name in quantities(view))
        lines.append(f'hm.plot(ds, x="{view.x.name}", y=[{what}]).savefig("view.png")')
    return "\n".join(lines) + "\n"


def _python(value: Any) -> str:
    if isinstance(value, Axis):
        spaced = "geomspace" if value.logarithmic else "linspace"
        return f"np.{spaced}({value.low!r}, {value.high!r}, {value.count})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_python, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return "np.inf" if value == float("inf") else repr(float(value))


def _model(view: View) -> str:
    parts = [f"{kind}={ingredient(kind, part)}" for kind, part in view.model.ingredients.items()]
    parts += ["intercept=True"] * view.model.intercept
    parts += [f'prediction="{name}"' for name in _prediction(view)]
    parts += [f'scheme="{view.model.scheme}"'] * (view.model.scheme is not None)
    return f"hm.Model({', '.join(parts)})"


def _prediction(view: View) -> list[str]:
    """The name of the prediction, if it is not the usual one."""
    return [text for name, text in view.texts if name == "prediction" and text != USUAL]


def _changed(part: Any) -> dict[str, Any]:
    """The parameters that do not have their usual values."""
    given = {field: _named(getattr(part, field.name)) for field in fields(part) if field.init}
    return {field.name: value for field, value in given.items() if value != field.default}


def _named(value: Any) -> Any:
    """A parameter, by its name if it is an activation."""
    return name_of("activation", value) if isinstance(value, hm.activations.Activation) else value


def ingredient(kind: str, part: Any) -> str:
    """An ingredient as Python takes it: its name, or its class with what is not as usual."""
    given = _changed(part)
    if not given and name_of(kind, part) in NAMED[kind]:
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
    # of the square loss it is where there are as many features as samples
    return view.held if view.x.name in RATIOS and not view.model.loss.quadratic else ()


# ---------------------------------------------------------------- commands


def commands(view: View, pins: Sequence[View] = (), *, dots: bool = False) -> str:
    """Command lines that compute what the view shows."""
    calls = _calls(view, pins, dots=dots)
    return "\n".join(shlex.join(_words(call)) for call in calls) + "\n"


def _words(call: Call) -> Iterator[str]:
    yield from ("hiddenmanifold", COMMANDS[call.function])
    model = call.view.model
    for kind, part in model.ingredients.items():
        given = ",".join(f"{key}={_listed(value)}" for key, value in _changed(part).items())
        yield from (f"--{kind}", f"{name_of(kind, part)}{':' if given else ''}{given}")
    yield from ["--intercept"] * model.intercept
    for name in _prediction(call.view):
        yield from ("--prediction", name)
    if model.scheme is not None:
        yield from ("--scheme", model.scheme)
    for argument, value in call.arguments:
        # a value that starts with a minus sign would be taken for an option: there is none
        yield from (f"--{argument.replace('_', '-')}", _typed(value))
    for option, text in call.options.items():
        yield from (f"--{option}", text)


def _listed(value: Any) -> str:
    """The value of a parameter as a command takes it."""
    if isinstance(value, tuple):
        return ",".join(map(repr, value))
    return value if isinstance(value, str) else repr(value)


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
    return str(whole.to_csv(index=False, lineterminator="\n"))


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
