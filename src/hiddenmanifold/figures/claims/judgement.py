"""What a claim of the text is, and how it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hiddenmanifold.arrays import Array
from hiddenmanifold.model import Model
from hiddenmanifold.prediction import predict

HOLDS, REMARK, DIFFERS = "holds", "holds, with a remark", "differs"
COLOURS = {HOLDS: "green", REMARK: "yellow", DIFFERS: "red"}
WORST = 4.0
"""Standard errors that a simulation may be away from the theory."""


@dataclass(frozen=True)
class Row:
    """A claim of the text, what is computed instead of read off a plot, and the verdict."""

    claim: str
    expected: str
    computed: str
    verdict: str
    note: str = ""


def error(model: Model, **arguments: Any) -> Array:
    """Test errors, NaN at a point that has none (exactly at a threshold)."""
    found: Array = predict(model, **arguments, on_failure="keep").generalisation_error.values
    return found


def verdict(holds: bool, remark: bool = False) -> str:
    """How a claim fares."""
    return DIFFERS if not holds else REMARK if remark else HOLDS
