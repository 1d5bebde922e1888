"""A view of the page: what its texts stand for, and the address that brings it back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.arrays import Array
from hiddenmanifold.explorer.controls import (
    CLASSES,
    HELD,
    MEMBERS,
    RANDOM,
    SEVERAL_FITS,
    TIMES,
    page_fields,
    parameters,
)
from hiddenmanifold.theory.labels_side.kinds import channel_of
from hiddenmanifold.theory.labels_side.number_channel import NumberChannel
from hiddenmanifold.theory.points import RATIOS, exponents

MOST_PINS = 8
FRAMES = 41
"""Times along training that are computed; between them the page interpolates."""
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

    def of(self, count: int) -> Axis:
        """The same axis with another number of values."""
        return replace(self, count=count)


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
    time : float
        The time of gradient flow that is shown.
    independent : str
        What the members of an ensemble draw for themselves.
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
    time: float
    independent: str
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
    def dots_axis(self) -> Axis:
        """Where points are simulated."""
        return self.x.of(self.dots)

    @property
    def setting(self) -> str:
        """What determines simulated points, whatever is shown of them."""
        about = ("quantity", "log_y", "threshold", "kernel", "bayes", "points")
        return urlencode([(name, text) for name, text in self.texts if name not in about])

    @property
    def simulable(self) -> bool:
        """Whether finite samples can be drawn at its points."""
        return self.y is None and self.quantity not in ("peak", "classes", *SEVERAL_FITS)

    @property
    def slow(self) -> bool:
        """Whether each point is a search of its own, a pair of fits, or sums over many labels."""
        searched = self.lam == "optimal" or self.quantity in SEVERAL_FITS
        sought = searched and not self.model.loss.quadratic
        return sought or self.quantity in ("peak", "time") or self.laborious

    @property
    def laborious(self) -> bool:
        """Whether the averages of a point are sums over many labels and fields."""
        return is_laborious(self.model)

    @property
    def adaptive(self) -> bool:
        """Whether a curve has more points where it bends."""
        return self.y is None and not self.slow and "points" not in dict(self.texts)

    @property
    def question(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        """The public function that answers what is asked, and its arguments besides the ratios."""
        if self.quantity == "members":
            drawn: tuple[tuple[str, str], ...] = (("independent", self.independent),)
            if self.independent == "bootstrap":
                drawn = (("independent", "none"), ("resampling", "bootstrap"))
            return "ensemble", (("members", MEMBERS), *drawn)
        if self.quantity == "time":
            return "training", (("times", Axis("times", *TIMES, FRAMES, True)),)
        names = {"peak": "interpolation_peak", "bias_variance": "bias_variance"}
        return names.get(self.quantity, "predict"), ()

    def arguments(self, **others: Any) -> tuple[tuple[str, Any], ...]:
        """The arguments of `predict`, an `Axis` for the values along it; `others` replace some."""
        axes = {axis.name: axis for axis in (self.x, self.y) if axis is not None}
        lam = {} if self.lam is None else {"regularisation": self.lam}
        return tuple({**axes, **dict(self.held), **lam, **others}.items())

    def beside(self, other: View) -> View:
        """The view along the axis of another, for both to be drawn in one plot."""
        x = other.x.of(min(self.x.count, other.x.count))
        return replace(self, x=x, quantity=other.quantity)


def is_laborious(model: hm.Model) -> bool:
    """Whether a point takes milliseconds: of several classes, or of numbers and another loss."""
    if model.task == "classes":
        return True
    return isinstance(channel_of(model), NumberChannel) and not model.loss.quadratic


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


def is_kernel(texts: Mapping[str, str]) -> bool:
    """Whether a kernel takes the place of random features."""
    return texts["features"] != RANDOM


def possible_holds(texts: Mapping[str, str]) -> list[str]:
    """What can be held fixed beside the axes that are chosen."""
    y = texts["y"] if texts["mode"] == "map" else None
    return holds(texts["x"], y, kernel=is_kernel(texts))


def holds(x: str, y: str | None, *, kernel: bool = False) -> list[str]:
    """What can be held fixed while axes vary: names of ratios, joined by commas.

    A kernel has one ratio only, n/d.
    """
    free = [name for name in (x, y) if name in RATIOS]
    if kernel:
        return ["" if free else "n_over_d"] if free in ([], ["n_over_d"]) else []
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
    chosen = {p.name for kind in CLASSES for p in _parameters_of(kind, texts[kind])}
    off = {name for name in texts if "." in name and name not in chosen}
    x, y = texts["x"], texts["y"] if texts["mode"] == "map" else None
    off |= set() if y else {"y", "y_low", "y_high"}
    off |= {"log_y", "kernel", "bayes", "d", "seeds", "dots"} if y else set()
    rule: Any = CLASSES["teacher"].get(texts["teacher"])
    if rule is not None and rule.task != "classification":
        # of the square loss the threshold is where there are as many features as samples
        off |= set() if texts["loss"] == "square" and not y else {"threshold"}
        off |= set() if texts["teacher"] == "linear" else {"bayes"}
        off |= {"prediction"} if rule.task == "classes" else set()
    if is_kernel(texts):
        parts = ("activation", "projection")
        off |= {*parts, "threshold", "kernel"} | {n for n in texts if n.split(".")[0] in parts}
    question = texts["quantity"]
    if question in ("peak", "classes", *SEVERAL_FITS):
        off |= {"kernel", "bayes", "d", "seeds", "dots"}
    off |= {"hold"} if question == "peak" else set()
    off |= {"log_y"} if question == "bias_variance" else set()
    off |= {"time"} if question != "time" else set()
    off |= {"independent"} if question != "members" else set()
    held = held_names(texts)
    off |= set(HELD).difference(held)
    off |= {"hold"} if len(possible_holds(texts)) < 2 else set()
    off |= {"regularisation"} if "regularisation" in (x, y) else set()
    return set(texts).difference(off)


def _parameters_of(kind: str, name: str) -> list[Any]:
    return parameters(kind, name) if name in CLASSES[kind] else []


def held_names(texts: Mapping[str, str]) -> list[str]:
    """Ratios that are held fixed beside the axes."""
    possible = possible_holds(texts)
    if not possible or texts["quantity"] == "peak":
        return []
    chosen = texts["hold"] if texts["hold"] in possible else possible[0]
    return chosen.split(",") if chosen else []
