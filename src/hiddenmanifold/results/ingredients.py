"""The ingredients of a model by name, and as attributes of a dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from hiddenmanifold import teachers
from hiddenmanifold.checks import Task
from hiddenmanifold.features import kernels
from hiddenmanifold.losses import predictors
from hiddenmanifold.model import REGISTRIES, Model

NAMED: Mapping[str, Mapping[str, type]] = {
    **REGISTRIES,
    "kernel": kernels.REGISTRY,
    "prediction": predictors.REGISTRY,
}
"""The same, with what a model may also be given."""


def name_of(kind: str, ingredient: object) -> str:
    """The registered name of an ingredient of this kind, or that of its class in small letters."""
    registered = {cls: name for name, cls in NAMED.get(kind, {}).items()}
    return registered.get(type(ingredient), type(ingredient).__name__.lower())


def model_attributes(model: Model) -> dict[str, str | int | float]:
    """A model as attributes that every file format can hold: names and parameters of ingredients.

    A parameter that is not a number is given as it is printed.
    """
    out: dict[str, str | int | float] = {"model": repr(model), "task": str(model.task)}
    for kind, ingredient in {**model.ingredients, **model.unusual}.items():
        out |= ingredient_attributes(kind, ingredient)
    if model.task is Task.REGRESSION and teachers.real(model.teacher).moments.second == np.inf:
        out["note"] = "labels of infinite variance: generalisation_error is infinite, too"
    if model.scheme is not None:
        out["scheme"] = model.scheme
    return {**out, "intercept": int(model.intercept)}


def ingredient_attributes(kind: str, ingredient: object) -> dict[str, str | int | float]:
    """Name and parameters of an ingredient, as ``loss`` and ``loss_delta``."""
    out: dict[str, str | int | float] = {kind: name_of(kind, ingredient)}
    for field in fields(ingredient) if is_dataclass(ingredient) else ():
        if field.init:
            value = getattr(ingredient, field.name)
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            # without its address in memory
            printed = re.sub(r" at 0x\w+", "", repr(value))
            out[f"{kind}_{field.name}"] = value if plain else printed
    return out
