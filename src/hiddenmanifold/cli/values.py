"""Numbers as they are typed: ``3``, ``inf``, ``0.5,1,2``, ``0.05:3:60``, ``log:1e-4:1e2:40``."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError

SYNTAX = (
    "numbers, separated by commas; low:high:count stands for count equally spaced ones, "
    "log:low:high:count for as many in a geometric series"
)
MOST = 1_000_000
"""Most values that one range may have: more is a typing error."""


def number(text: str) -> float:
    """One number; raise ValueError unless the text is one."""
    if "_" in text:  # Python's own grouping of digits would hide a slip of the shift key
        raise ValueError(text)
    return float(text)


def values(option: str, text: str) -> float | Array:
    """The number, or the vector of numbers, that a text stands for.

    Parameters
    ----------
    option : str
        The option that it was given to, for the error message.
    text : str
        Pieces separated by commas: numbers (``inf`` is one), ``low:high:count`` or
        ``log:low:high:count``, ends included.

    Raises
    ------
    InvalidArgumentError
        If a piece cannot be read.
    """
    pieces = [piece.strip() for piece in text.split(",")]
    if len(pieces) == 1 and ":" not in text:
        return _number(option, text)
    return np.concatenate(
        [_range(option, piece) if ":" in piece else [_number(option, piece)] for piece in pieces]
    )


def regularisation(option: str, text: str) -> float | Array | Literal["optimal"]:
    """The λ that a text stands for: values, or the word ``optimal``."""
    if text.strip() == "optimal":
        return "optimal"
    try:
        return values(option, text)
    except InvalidArgumentError as error:
        remedy = f"{error.remedy}; or 'optimal'"
        raise InvalidArgumentError.because(option, error.problem, remedy) from None


def bounds(option: str, text: str) -> tuple[float, float]:
    """The two ends of ``low:high``."""
    low, colon, high = text.partition(":")
    try:
        if colon:
            return number(low), number(high)
    except ValueError:
        pass
    raise InvalidArgumentError(option, text, "two numbers, low:high")


def _number(option: str, text: str) -> float:
    try:
        return number(text)
    except ValueError:
        raise InvalidArgumentError(option, text, SYNTAX) from None


def _range(option: str, text: str) -> Array:
    logarithmic = text.startswith("log:")
    parts = text.removeprefix("log:").split(":")
    try:
        low, high = (number(part) for part in parts[:2])
        (count,) = (int(part) for part in parts[2:])
    except ValueError:
        raise InvalidArgumentError(option, text, SYNTAX) from None
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        raise InvalidArgumentError(option, text, "a range between two different finite numbers")
    if not 2 <= count <= MOST:
        raise InvalidArgumentError(option, text, f"a range of 2 to {MOST} values")
    if logarithmic and not min(low, high) > 0:
        raise InvalidArgumentError(option, text, "a geometric series between two positive numbers")
    return np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)
