"""What a picture says of its dataset in words: the model, what is held fixed, limits."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold import losses, teachers
from hiddenmanifold.api.counts import COUNTS
from hiddenmanifold.features import activations, projections
from hiddenmanifold.plotting.style import equation
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr

REGISTRIES: Mapping[str, Mapping[str, type]] = {
    "activation": activations.REGISTRY,
    "projection": projections.REGISTRY,
    "teacher": teachers.REGISTRY,
    "loss": losses.REGISTRY,
}
LONGEST = 48
"""Most letters that the parameters of one ingredient may take."""
UNFITTED = ("none", "separability")
"""How the objective or the method begins where the loss plays no role."""
WIDTH = 90
"""Letters in a line across the figure."""


def caption(attributes: Mapping[Any, Any]) -> str:
    """The model of a dataset in few words, without what has its default value; or its data."""
    if "model" not in attributes:
        data = str(attributes.get("data", "")).removeprefix("Data(").removesuffix(")")
        return textwrap.fill(data, WIDTH)
    kinds = _arguments(str(attributes.get("model", "")))
    if any(str(attributes.get(name, "")).startswith(UNFITTED) for name in ("objective", "method")):
        kinds = {kind: text for kind, text in kinds.items() if kind not in ("loss", "intercept")}
    with_intercept = kinds.pop("intercept", "False") == "True"
    words = [_in_words(kind, printed) for kind, printed in kinds.items()]
    return textwrap.fill(" · ".join([*words, *["intercept"] * with_intercept]), WIDTH)


def fixed(dataset: xr.Dataset) -> str:
    """The coordinates that do not vary, as a line of formulas."""
    ratios = [name for name in RATIOS if name in dataset.coords]
    sizes = ("d",) if ratios else COUNTS  # with ratios, one tells the others
    known = [*ratios, "regularisation", *sizes, "target_error"]
    given = dataset.coords
    unique = {name: np.unique(given[name].values) for name in known if name in given}
    return ", ".join(
        f"${equation(name, float(values[0]))}$"
        for name, values in unique.items()
        if len(values) == 1
    )


def _in_words(kind: str, printed: str) -> str:
    """An ingredient by its registered name and the parameters that are not the usual ones."""
    usual = {cls.__name__.lower(): (name, cls) for name, cls in REGISTRIES.get(kind, {}).items()}
    name = printed.partition("(")[0].lower()
    default: Mapping[str, str] = {}
    if name in usual:
        name, cls = usual[name]
        default = _arguments(repr(cls()))
    given = [f"{k}={v}" for k, v in _arguments(printed).items() if default.get(k) != v]
    parameters = re.sub(r" at 0x\w+", "", ", ".join(given))
    if parameters:
        name += f"({parameters if len(parameters) <= LONGEST else '…'})"
    return f"{name} {kind}"


def _arguments(printed: str) -> dict[str, str]:
    """The arguments of a printed object; commas inside of their brackets belong to them."""
    depth, pieces = 0, [""]
    for letter in printed.partition("(")[2].removesuffix(")"):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    pairs = (piece.strip().partition("=") for piece in pieces if "=" in piece)
    return {name: value for name, _, value in pairs}
