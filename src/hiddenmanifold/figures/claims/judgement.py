"""What a claim of the text is, and how it is judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hiddenmanifold.api.predict import predict
from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.model import Model

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


def contest(
    models: Iterable[Model], p_over_n: Array, **arguments: Any
) -> tuple[Array, Array, Booleans, str]:
    """Errors of two models along p/n, where the first is worse, and the same in words."""
    own, others = (error(model, p_over_n=p_over_n, **arguments) for model in models)
    worse = ~(own <= others * (1 + 1e-9))  # what could not be solved does not count as won
    where = p_over_n[worse]
    words = f"worse for p/n in [{where.min():.2f}, {where.max():.2f}]" if where.size else ""
    return own, others, worse, words


def strength(regularisation: float | str) -> str:
    """The λ of a claim in words."""
    return "optimal λ" if isinstance(regularisation, str) else f"λ = {regularisation:g}"


def verdict(holds: bool, remark: bool = False) -> str:
    """How a claim fares."""
    return DIFFERS if not holds else REMARK if remark else HOLDS
