"""Numbers as they are typed: ``3``, ``inf``, ``0.5,1,2``, ``0.05:3:60``, ``log:1e-4:1e2:40``.

The functions are parsers of options: each turns a text into numbers or says why it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import typer

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import number

SYNTAX = (
    "numbers, separated by commas; low:high:count stands for count equally spaced ones, "
    "log:low:high:count for as many in a geometric series"
)
MOST = 1_000_000
"""Most values that one range may have: more is a typing error."""


def values(text: str) -> float | Array:
    """The number, or the vector of numbers, that a text stands for.

    Parameters
    ----------
    text : str
        Pieces separated by commas: numbers (``inf`` is one), ``low:high:count`` or
        ``log:low:high:count``, ends included.

    Raises
    ------
    typer.BadParameter
        If a piece cannot be read.
    """
    pieces = [piece.strip() for piece in text.split(",")]
    if len(pieces) == 1 and ":" not in text:
        return _number(text)
    return np.concatenate([_range(piece) if ":" in piece else [_number(piece)] for piece in pieces])


def values_or(word: str) -> Callable[[str], float | Array | str]:
    """A parser of values that also takes a word, as ``optimal``."""

    def parse(text: str) -> float | Array | str:
        if text.strip() == word:
            return word
        try:
            return values(text)
        except typer.BadParameter as error:
            raise typer.BadParameter(f"{error.message}; or the word {word}") from None

    return parse


def bounds(text: str) -> tuple[float, float]:
    """The two ends of ``low:high``."""
    low, colon, high = text.partition(":")
    try:
        if colon:
            return number(low), number(high)
    except ValueError:
        pass
    raise _bad(text, "two numbers, low:high")


def names(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas."""
    return tuple(name.strip() for name in text.split(","))


def _bad(text: str, allowed: str) -> typer.BadParameter:
    return typer.BadParameter(f"{text!r} is not allowed: it must be {allowed}")


def _number(text: str) -> float:
    try:
        return number(text)
    except ValueError:
        raise _bad(text, SYNTAX) from None


def _range(text: str) -> Array:
    logarithmic = text.startswith("log:")
    parts = text.removeprefix("log:").split(":")
    try:
        low, high = (number(part) for part in parts[:2])
        (count,) = (int(part) for part in parts[2:])
    except ValueError:
        raise _bad(text, SYNTAX) from None
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        raise _bad(text, "a range between two different finite numbers")
    if not 2 <= count <= MOST:
        raise _bad(text, f"a range of 2 to {MOST} values")
    if logarithmic and not min(low, high) > 0:
        raise _bad(text, "a geometric series between two positive numbers")
    return np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)
