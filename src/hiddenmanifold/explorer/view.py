"""A view of the page: what its texts stand for, and the address that brings it back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer.fields import (
    HELD,
    REGISTRIES,
    page_fields,
    parameters,
    short,
)
from hiddenmanifold.points import RATIOS, exponents

SMALLEST, LARGEST = 1e-4, 1e4
"""Ratios that the page takes."""
LEAST_LAM, MOST_LAM = 1e-12, 1e6
VANISHING = ("0", "0+", "0⁺")
MOST = {"curve": 400, "map": 60}
"""Most points along an axis."""
MOST_SOUGHT = {"curve": 100, "map": 20}
"""The same where each is a search for the best λ by quadrature."""
USUAL = {"curve": 200, "map": 40}
MOST_D, MOST_SEEDS, MOST_DOTS, MOST_PINS = 400, 50, 20, 8
LONGEST = 40
"""Letters of a typed value."""


@dataclass(frozen=True)
class Axis:
    """Values along an axis."""

    name: str
    low: float
    high: float
    count: int
    logarithmic: bool

    @property
    def values(self) -> Array:
        """The values, both ends included."""
        spaced = np.geomspace if self.logarithmic else np.linspace
        return spaced(self.low, self.high, self.count, dtype=float)


@dataclass(frozen=True)
class View:
    """What is computed and drawn.

    Parameters
    ----------
    model : Model
        What is learned.
    x, y : Axis
        What varies; `y` in a heat map only.
    held : tuple of pairs
        Names and values of the ratios that do not vary.
    lam : float or "optimal" or None
        The regularisation; None where it varies.
    d, seeds, dots : int
        Latent dimension, seeds and points of a simulation.
    texts : tuple of pairs
        What of the page's fields differs from the usual.
    """

    model: hm.Model
    x: Axis
    y: Axis | None
    held: tuple[tuple[str, float], ...]
    lam: float | str | None
    quantity: str
    log_y: bool
    lines: frozenset[str]
    d: int
    seeds: int
    dots: int
    texts: tuple[tuple[str, str], ...]

    @property
    def query(self) -> str:
        """The address of the view, after the question mark."""
        return urlencode(self.texts)

    @property
    def setting(self) -> str:
        """What determines simulated points, whatever is shown of them."""
        about = ("quantity", "log_y", "threshold", "kernel", "bayes", "points")
        return urlencode([(name, text) for name, text in self.texts if name not in about])

    def arguments(self, **others: Any) -> tuple[tuple[str, Any], ...]:
        """The arguments of `predict`, an `Axis` for the values along it; `others` replace some."""
        axes = {axis.name: axis for axis in (self.x, self.y) if axis is not None}
        lam = {} if self.lam is None else {"regularisation": self.lam}
        return tuple({**axes, **dict(self.held), **lam, **others}.items())

    def beside(self, other: View) -> View:
        """The view along the axis of another, for both to be drawn in one plot."""
        count = min(self.x.count, other.x.count)
        return replace(self, x=replace(other.x, count=count), quantity=other.quantity)


@dataclass(frozen=True)
class Reading:
    """The view that texts stand for, or for each text that makes no sense what is allowed."""

    view: View | None
    complaints: Mapping[str, str]


def texts_of(query: str) -> tuple[dict[str, str], list[str]]:
    """The texts of all fields and the pinned views that the query of an address stands for."""
    known = page_fields()
    texts = {name: field.default for name, field in known.items()}
    pins: list[str] = []
    for name, text in parse_qsl(query.lstrip("?"), keep_blank_values=True):
        if name == "pin" and len(pins) < MOST_PINS:
            pins.append(text)
        elif name in known:
            texts[name] = text[:LONGEST]
    return texts, pins


def holds(x: str, y: str | None) -> list[str]:
    """What can be held fixed while axes vary: names of ratios, joined by commas."""
    free = [name for name in (x, y) if name in RATIOS]
    if len(free) == 2:
        return [""] if _independent(*free) else []
    if free:
        return [name for name in HELD if _independent(free[0], name)]
    return [f"{a},{b}" for a in HELD for b in HELD if a < b]


def _independent(*names: str | None) -> bool:
    try:
        exponents(tuple(name for name in names if name is not None), None)
    except hm.InvalidArgumentError:
        return False
    return True


def converted(known: Mapping[str, Any], wanted: str) -> Any:
    """A ratio by its name, from two others."""
    powers = exponents(tuple(known), None)
    alpha, gamma = (
        math.prod(value**k for value, k in zip(known.values(), some, strict=True))
        for some in powers
    )
    a, c = RATIOS[wanted]
    return alpha**a * gamma**c


def relevant(texts: Mapping[str, str]) -> set[str]:
    """Names of the fields that play a role beside the others."""
    chosen = {p.name for kind in REGISTRIES for p in _parameters_of(kind, texts[kind])}
    off = {name for name in texts if "." in name and name not in chosen}
    x, y = texts["x"], texts["y"] if texts["mode"] == "map" else None
    off |= set() if y else {"y", "y_low", "y_high"}
    off |= {"log_y", "kernel", "bayes", "d", "seeds", "dots"} if y else set()
    held = _held_names(texts)
    off |= set(HELD).difference(held)
    off |= {"hold"} if len(holds(x, y)) < 2 else set()
    off |= {"regularisation"} if "regularisation" in (x, y) else set()
    return set(texts).difference(off)


def _parameters_of(kind: str, name: str) -> list[Any]:
    return parameters(kind, name) if name in REGISTRIES[kind] else []


def _held_names(texts: Mapping[str, str]) -> list[str]:
    possible = holds(texts["x"], texts["y"] if texts["mode"] == "map" else None)
    if not possible:
        return []
    chosen = texts["hold"] if texts["hold"] in possible else possible[0]
    return chosen.split(",") if chosen else []


def read(texts: Mapping[str, str]) -> Reading:
    """The view that the texts of all fields stand for."""
    reader = _Reader(texts)
    view = reader.view()
    return Reading(None if reader.complaints else view, reader.complaints)


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
            (name, self._number(name, SMALLEST, LARGEST)) for name in _held_names(self.texts)
        )
        d, seeds, dots = (
            self._count(name, low, most)
            for name, low, most in (
                ("d", 8, MOST_D),
                ("seeds", 2, MOST_SEEDS),
                ("dots", 2, MOST_DOTS),
            )
        )
        quantity = self.texts["quantity"]
        if model is None:
            return None
        if quantity == "training_error" and model.task == "regression":
            self.complaints["quantity"] = "another for real labels, which are never just right"
        lines = frozenset(n for n in ("threshold", "kernel", "bayes") if self._is(n))
        shown = tuple(self._unusual())
        log_y = self._is("log_y")
        return View(
            model, x, y, held, lam, quantity, log_y, lines, d, seeds, dots, shown
        )  # fmt: skip

    def _is(self, name: str) -> bool:
        return self.texts[name] == "yes"

    def _unusual(self) -> Iterator[tuple[str, str]]:
        matters = relevant(self.texts)
        for name, field in page_fields().items():  # one order, whoever asks
            if name in matters and self.texts[name] != field.default:
                yield name, self.texts[name]

    def _model(self) -> hm.Model | None:
        parts = {kind: self._ingredient(kind) for kind in REGISTRIES}
        if None in parts.values():
            return None
        try:
            return hm.Model(**parts, intercept=self._is("intercept"))
        except hm.IncompatibleIngredientsError as error:
            self.complaints["loss"] = str(error)
        except hm.HiddenManifoldError as error:
            self.complaints["activation"] = str(error)
        return None

    def _ingredient(self, kind: str) -> Any:
        name = self.texts[kind]
        given = {
            field.name: number
            for field in parameters(kind, name)
            if (number := self._number(field.name)) is not None
        }
        if any(field.name in self.complaints for field in parameters(kind, name)):
            return None
        try:
            return REGISTRIES[kind][name](**{k.rsplit(".")[-1]: v for k, v in given.items()})
        except hm.InvalidArgumentError as error:
            field = f"{kind}.{name}.{error.argument}"
            self.complaints[field if field in self.texts else kind] = error.allowed
        return None

    def _regularisation(self) -> float | str | None:
        axes = [self.texts["x"], *([self.texts["y"]] if self.texts["mode"] == "map" else [])]
        if "regularisation" in axes:
            return None
        text = self.texts["regularisation"]
        if text in ("optimal", *VANISHING):
            return text if text == "optimal" else 0.0
        words = f"0⁺, optimal, or a number from {LEAST_LAM:g} to {MOST_LAM:g}"
        number: float | None = self._number("regularisation", LEAST_LAM, MOST_LAM, words)
        return number

    def _axes(self, model: hm.Model | None, lam: Any) -> tuple[Any, Axis | None]:
        mode = self.texts["mode"]
        sought = lam == "optimal" and model is not None and not model.loss.quadratic
        most = (MOST_SOUGHT if sought else MOST)[mode]
        count = min(most, USUAL[mode])
        if self.texts["points"] not in ("", "automatic"):
            count = self._count("points", 2, most, " or automatic")
        x = self._axis("x", "low", "high", count, self._is("log_x"))
        if mode == "curve":
            return x, None
        if not holds(self.texts["x"], self.texts["y"]):
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
        return self._read(name, _number, low, high, words or _allowed("a number", low, high))

    def _count(self, name: str, low: int, high: int, words: str = "") -> Any:
        return self._read(name, _whole, low, high, _allowed("a whole number", low, high) + words)

    def _read(
        self, name: str, kind: Callable[[str], float], low: float, high: float, words: str
    ) -> float | None:
        try:
            number = kind(self.texts[name])
            if low <= number <= high:
                return number
        except ValueError:
            pass
        self.complaints[name] = words
        return None


def _allowed(what: str, low: float, high: float) -> str:
    return what if math.isinf(high) else f"{what} from {low:g} to {high:g}"


def _number(text: str) -> float:
    number = math.nan if "_" in text else float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return int(text)
