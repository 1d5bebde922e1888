"""Parse the fields of the page into a view, or into a message for each invalid field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import hiddenmanifold as hm
from hiddenmanifold.checks import Task, number
from hiddenmanifold.explorer.controls import (
    CLASSES,
    KERNEL_AXES,
    PEAK_AXES,
    SEVERAL_FITS,
    TIMES,
    USUAL,
    VANISHING,
    Field,
    page_fields,
    parameters,
    short,
)
from hiddenmanifold.explorer.view import (
    Axis,
    View,
    held_names,
    is_kernel,
    is_laborious,
    possible_holds,
    relevant,
    texts_of,
)
from hiddenmanifold.model import REGISTRIES

SMALLEST, LARGEST = 1e-4, 1e4
"""Ratios that the page takes."""
LEAST_LAM, MOST_LAM = 1e-12, 1e6
MOST_COUNT = 1000
"""Largest whole number among the parameters of ingredients, as of trials."""
LINES = ("threshold", "kernel", "bayes")
THESE_FIT = ". These fit: "
MOST_D, MOST_SEEDS, MOST_DOTS = 400, 50, 20


class Points(NamedTuple):
    """Points along an axis: as many as are allowed, and as many as are drawn unless asked for."""

    most: int
    usual: int


POINTS = {"curve": Points(400, 200), "map": Points(60, 40)}
SOUGHT = {"curve": Points(100, 100), "map": Points(20, 20)}
"""The same where each point is a search for the best λ by quadrature."""
LABORIOUS = {"curve": Points(100, 32), "map": Points(20, 8)}
"""The same where each point is a sum over many labels, which takes 5 to 500 ms."""
LABORIOUS_SOUGHT = {"curve": Points(30, 12), "map": Points(6, 4)}
"""The same where it is a search of many such sums."""
PEAKS, LABORIOUS_PEAKS = Points(60, 24), Points(10, 4)
"""The same where each point is a search for a peak."""
PAIRS, LABORIOUS_PAIRS = Points(200, 128), Points(60, 24)
"""The same where each point is a pair of fits, or the whole of their training."""
BY_CLASSES = {"curve": Points(60, 24), "map": Points(10, 6)}
"""The same where each point is integrated over the scores of several classes."""


@dataclass(frozen=True)
class Reading:
    """The view that texts stand for, or for each text that makes no sense what is allowed."""

    view: View | None
    complaints: Mapping[str, str]


def read(texts: Mapping[str, str]) -> Reading:
    """The view that the texts of all fields stand for."""
    reader = _Reader(texts)
    view = reader.view()
    return Reading(None if reader.complaints else view, reader.complaints)


def views_of(query: str) -> tuple[View | None, list[View]]:
    """The view of an address, and those pinned beside it; what makes no sense is left out."""
    texts, queries = texts_of(query)
    pins = (read(texts_of(one)[0]).view for one in queries)
    return read(texts).view, [pin for pin in pins if pin is not None]


def loss_of(query: str) -> hm.losses.ConvexLoss:
    """The loss that an address tells; the usual one if it makes no sense."""
    texts, _ = texts_of(query)
    known = texts["loss"] in CLASSES["loss"]
    found: hm.losses.ConvexLoss | None = _Reader(texts)._ingredient("loss") if known else None
    return found or REGISTRIES["loss"][page_fields()["loss"].default]()


class _Reader:
    """Reads texts one after another, and notes what is allowed where one makes no sense."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = {name: str(text).strip() for name, text in texts.items()}
        self.complaints: dict[str, str] = {}

    def view(self) -> View | None:
        for name, field in page_fields().items():
            if field.options is not None and self.texts[name] not in field.options:
                self.complaints[name] = f"one of {', '.join(field.options)}"
        if self.complaints:
            return None
        model = self._model()
        lam = self._regularisation()
        x, y = self._axes(model, lam)
        held = tuple(
            (name, self._number(name, SMALLEST, LARGEST)) for name in held_names(self.texts)
        )
        d = self._count("d", 8, MOST_D)
        seeds, dots = self._count("seeds", 2, MOST_SEEDS), self._count("dots", 2, MOST_DOTS)
        quantity = self.texts["quantity"]
        time = self._number("time", *TIMES)
        if model is None:
            return None
        if quantity == "training_error" and model.task == "regression":
            self.complaints["quantity"] = "another for labels that are numbers, not classes"
        if quantity == "peak":
            self._check_peak(y, lam)
        if quantity in SEVERAL_FITS:
            self._check_fits(model, y, lam)
        self._check_classes(model, y, lam)
        lines = frozenset(relevant(self.texts) & {n for n in LINES if self._is(n)})
        shown = tuple(self._unusual())
        log_y = self._is("log_y")
        return View(
            model, x, y, held, lam, quantity, time, self.texts["independent"], log_y, lines,
            d, seeds, dots, shown,
        )  # fmt: skip

    def _check_peak(self, y: Axis | None, lam: Any) -> None:
        axes = " or ".join(map(short, PEAK_AXES))
        if is_kernel(self.texts):
            self.complaints["quantity"] = "another: the error of a kernel has no peak along p"
        elif self.texts["x"] not in PEAK_AXES or y is not None:
            self.complaints["quantity"] = f"another, unless curves over {axes} are shown"
        elif lam == "optimal":
            self.complaints["regularisation"] = "0⁺ or a number where a peak is sought"

    def _check_fits(self, model: hm.Model, y: Axis | None, lam: Any) -> None:
        """Several fits are compared along one axis, and at a λ that is given."""
        training = self.texts["quantity"] == "time"
        if y is not None:
            self.complaints["mode"] = "curves: this question has no heat map"
        elif model.task == "classes":
            self.complaints["quantity"] = "another for several classes: see test error and classes"
        elif training and self.texts["loss"] != "square":
            self.complaints["loss"] = "square: only its training is known exactly"
        elif training and is_kernel(self.texts):
            self.complaints["quantity"] = "another: training needs finitely many features"
        elif lam == "optimal":
            self.complaints["regularisation"] = "0⁺ or a number for this question"

    def _check_classes(self, model: hm.Model, y: Axis | None, lam: Any) -> None:
        quantity = self.texts["quantity"]
        if model.task != "classes":
            if quantity == "classes":
                self.complaints["teacher"] = "classes: other labels are not several classes"
        elif quantity == "peak":
            self.complaints["quantity"] = "another for several classes: see test error and classes"
        elif quantity == "classes" and y is not None:
            self.complaints["mode"] = "curves: this question has no heat map"
        elif lam == "optimal":
            self.complaints["regularisation"] = "a number: a search over classes takes minutes"

    def _is(self, name: str) -> bool:
        return self.texts[name] == "yes"

    def _unusual(self) -> Iterator[tuple[str, str]]:
        matters = relevant(self.texts)
        for name, field in page_fields().items():  # one order, whoever asks
            if name in matters and self.texts[name] != field.default:
                yield name, self.texts[name]

    def _model(self) -> hm.Model | None:
        inputs = ["features"] if is_kernel(self.texts) else ["activation", "projection"]
        parts = {kind: self._ingredient(kind) for kind in (*inputs, "teacher", "loss")}
        if None in parts.values():
            return None
        if "features" in parts:
            parts["kernel"] = parts.pop("features")
        if self.texts["prediction"] != USUAL:
            parts["prediction"] = self.texts["prediction"]
        try:
            return _built({**parts, "intercept": self._is("intercept")})
        except hm.IncompatibleIngredientsError as error:
            reason, *_ = str(error).split(";")  # the remedy is an argument of Python
            self.complaints["loss"] = f"another; {reason}{_fitting(parts)}"
        except hm.InvalidArgumentError as error:
            of_loss = error.argument == "loss"
            words = f"another; {error}{_fitting(parts) if of_loss else ''}"
            self.complaints["loss" if of_loss else inputs[0]] = words
        return None

    def _ingredient(self, kind: str) -> Any:
        name = self.texts[kind]
        given = {
            field.name: value
            for field in parameters(kind, name)
            if (value := self._parameter(field)) is not None
        }
        if any(field.name in self.complaints for field in parameters(kind, name)):
            return None
        try:
            return CLASSES[kind][name](**{k.rsplit(".")[-1]: v for k, v in given.items()})
        except hm.InvalidArgumentError as error:
            field = f"{kind}.{name}.{error.argument}"
            self.complaints[field if field in self.texts else kind] = error.remedy
        return None

    def _parameter(self, field: Field) -> Any:
        """The value of a parameter of an ingredient, as its annotation asks for."""
        text = self.texts[field.name]
        if field.annotation == "shares" and text == field.default:
            return None
        if "tuple" in field.annotation or field.annotation == "shares":
            return self._numbers(field.name)
        if "str" in field.annotation.split(" | "):
            try:
                return number(text)
            except ValueError:
                return text
        if field.annotation == "int":
            return self._count(field.name, 1, MOST_COUNT)
        return self._number(field.name)

    def _numbers(self, name: str) -> tuple[float, ...] | None:
        try:
            found = tuple(number(part) for part in self.texts[name].split(","))
            if all(map(math.isfinite, found)):
                return found
        except ValueError:
            pass
        self.complaints[name] = "numbers, separated by commas"
        return None

    def _regularisation(self) -> float | str | None:
        axes = [self.texts["x"], *([self.texts["y"]] if self.texts["mode"] == "map" else [])]
        if "regularisation" in axes:
            return None
        text = self.texts["regularisation"]
        if text in ("optimal", *VANISHING):
            return text if text == "optimal" else 0.0
        words = f"0⁺, optimal, or a number from {LEAST_LAM:g} to {MOST_LAM:g}"
        value: float | None = self._number("regularisation", LEAST_LAM, MOST_LAM, words)
        return value

    def _axes(self, model: hm.Model | None, lam: Any) -> tuple[Any, Axis | None]:
        mode = self.texts["mode"]
        most, count = _points(model, mode, lam, self.texts["quantity"])
        if self.texts["points"] not in ("", "automatic"):
            count = self._count("points", 2, most, " or automatic")
        x = self._axis("x", "low", "high", count, self._is("log_x"))
        if is_kernel(self.texts):
            for axis in ("x", "y") if mode == "map" else ("x",):
                if self.texts[axis] not in KERNEL_AXES:
                    self.complaints[axis] = "n/d or λ: a kernel has infinitely many features"
        if mode == "curve":
            return x, None
        if not possible_holds(self.texts):
            name = short(self.texts["x"])
            self.complaints["y"] = f"an axis that does not follow from {name} along the other"
        return x, self._axis("y", "y_low", "y_high", count, self._is("log_x"))

    def _axis(self, field: str, low: str, high: str, count: int, logarithmic: bool) -> Axis:
        name = self.texts[field]
        ends = (LEAST_LAM, MOST_LAM) if name == "regularisation" else (SMALLEST, LARGEST)
        first, last = self._number(low, *ends), self._number(high, *ends)
        if first is not None and last is not None and not first < last:
            self.complaints[high] = f"above {first:g}"
        return Axis(name, first, last, count, logarithmic)

    def _number(
        self, name: str, low: float = -math.inf, high: float = math.inf, words: str = ""
    ) -> Any:
        return self._read(name, number, low, high, words or _allowed("a number", low, high))

    def _count(self, name: str, low: int, high: int, words: str = "") -> Any:
        return self._read(name, _whole, low, high, _allowed("a whole number", low, high) + words)

    def _read(
        self, name: str, kind: Callable[[str], float], low: float, high: float, words: str
    ) -> float | None:
        try:
            value = kind(self.texts[name])
            if low <= value <= high and math.isfinite(value):
                return value
        except ValueError:
            pass
        self.complaints[name] = words
        return None


def _points(model: hm.Model | None, mode: str, lam: Any, quantity: str) -> Points:
    """How many points an axis may have, by the time that each takes."""
    laborious = model is not None and is_laborious(model)
    if model is not None and model.task == "classes":
        return BY_CLASSES[mode]
    if quantity == "peak":
        return LABORIOUS_PEAKS if laborious else PEAKS
    if quantity in SEVERAL_FITS:
        return LABORIOUS_PAIRS if laborious else PAIRS
    if lam == "optimal" and model is not None and not model.loss.quadratic:
        return (LABORIOUS_SOUGHT if laborious else SOUGHT)[mode]
    return (LABORIOUS if laborious else POINTS)[mode]


def _built(parts: Mapping[str, Any]) -> hm.Model:
    """A model; of normal classes, a loss for labels ±1 is fitted to each against the others."""
    tasks = parts["loss"].tasks
    apart = Task.CLASSIFICATION in tasks and Task.CLASSES not in tasks
    rest = apart and isinstance(parts["teacher"], hm.teachers.Classes)
    return hm.Model(**parts, scheme="one-vs-rest" if rest else None)


def _fitting(parts: Mapping[str, Any]) -> str:
    """The end of a message that names the losses that fit the labels."""
    fitting = []
    for name, loss in REGISTRIES["loss"].items():
        try:
            _built({**parts, "loss": loss()})
            fitting.append(name)
        except hm.HiddenManifoldError:
            pass
    return f"{THESE_FIT}{', '.join(fitting)}"


def fitting_loss(complaint: str) -> str | None:
    """The first of the losses that a message about an unsuitable one names."""
    _, found, names = complaint.partition(THESE_FIT)
    return names.split(", ")[0] if found and names else None


def _allowed(what: str, low: float, high: float) -> str:
    return what if math.isinf(high) else f"{what} from {low:g} to {high:g}"


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return int(text)
