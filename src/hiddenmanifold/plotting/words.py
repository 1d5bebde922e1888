"""The words in a plot of a dataset: the model, the values held fixed, and the limits."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.api.arguments import COUNTS
from hiddenmanifold.plotting.style import equation
from hiddenmanifold.results.ingredients import NAMED, ingredient_attributes
from hiddenmanifold.results.schema import REAL_DATA, UNFITTED
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr

LONGEST = 48
"""Most letters that the parameters of one ingredient may take."""
WIDTH = 90
"""Letters in a line across the figure."""


def caption(attributes: Mapping[str, Any]) -> str:
    """The model of a dataset in few words, without what has its default value; or its data."""
    kind = attributes.get("kind")
    if kind in REAL_DATA:
        return textwrap.fill(str(attributes.get("data", "")), WIDTH)
    return joined(ingredient_words(attributes))


def joined(words: Sequence[str], some: Collection[str] | None = None) -> str:
    """Words in the line above a figure, or `some` of them."""
    return textwrap.fill(" · ".join(w for w in words if some is None or w in some), WIDTH)


def ingredient_words(attributes: Mapping[str, Any]) -> list[str]:
    """Each ingredient of the model of a dataset in few words."""
    kind = attributes.get("kind")
    of_inputs = ("features", "kernel", "activation", "projection", "teacher")
    of_fit = () if kind in UNFITTED else ("loss", "prediction")
    words = [
        _in_words(ingredient, attributes)
        for ingredient in (*of_inputs, *of_fit)
        if ingredient in attributes
    ]
    words += _of_second(attributes)
    with_intercept = kind not in UNFITTED and bool(attributes.get("intercept"))
    return [*words, *["intercept"] * with_intercept]


def _of_second(attributes: Mapping[str, Any]) -> list[str]:
    """What the second model of a pair has in place of the first one's."""
    start = "second_"
    second = {n.removeprefix(start): v for n, v in attributes.items() if n.startswith(start)}
    kinds = ("features", "kernel", "activation", "projection", "loss")
    told = [_in_words(kind, second) for kind in kinds if kind in second]
    own = [_in_words(kind, attributes) for kind in kinds if kind in attributes]
    different = [words for words in told if words not in own]
    return ["second fit: " + ", ".join(different)] if different else []


def fixed(dataset: xr.Dataset) -> str:
    """The coordinates that do not vary, as a line of formulas."""
    return ", ".join(fixed_parts(dataset))


def fixed_parts(dataset: xr.Dataset) -> list[str]:
    """The coordinates that do not vary, a formula for each."""
    ratios = [name for name in RATIOS if name in dataset.coords]
    sizes = ("d",) if ratios else COUNTS  # with ratios, one tells the others
    known = [*ratios, "regularisation", "time", "steps", "step", *sizes, "target_error"]
    given = dataset.coords
    unique = {name: np.unique(given[name].values) for name in known if name in given}
    found = [
        f"${equation(name, float(values[0]))}$"
        for name, values in unique.items()
        if len(values) == 1
    ]
    if "training" in dataset.attrs:  # whose λ is zero, and no limit
        found = [text.replace(r"\lambda \to 0^+", r"\lambda = 0") for text in found]
    return found


def _in_words(kind: str, attributes: Mapping[str, Any]) -> str:
    """An ingredient by its name and the parameters that are not the usual ones."""
    name = str(attributes[kind])
    registered = NAMED.get(kind, {}).get(name)
    usual = ingredient_attributes(kind, registered()) if registered else {}
    given = {
        attribute.removeprefix(f"{kind}_"): value
        for attribute, value in attributes.items()
        if attribute.startswith(f"{kind}_") and usual.get(attribute) != value
    }
    plain = {parameter: str(value).strip("'") for parameter, value in given.items()}
    parameters = ", ".join(f"{parameter}={value}" for parameter, value in plain.items())
    if parameters:
        name += f"({parameters if len(parameters) <= LONGEST else '…'})"
    return f"{name} {kind}"
