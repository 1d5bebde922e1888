"""The least number of samples from which on the limit meets a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.studies.best_penalty import FEWEST, FINER, ROUNDS
from hiddenmanifold.studies.targets import Target, met

if TYPE_CHECKING:
    import xarray as xr

Curve = Callable[[Array, tuple[str, ...]], "xr.Dataset"]
"""From sizes and names to quantities along n."""
MOST = 1e5
"""Largest number of samples per predictor that is considered."""
SCAN = 21
"""Sizes of the first scan."""


def least_size(predictors: int, curve: Curve, name: str, goal: Target) -> int:
    """The least n from which on a quantity meets its target, among all that are considered.

    Raises
    ------
    InvalidArgumentError
        If the largest one does not.
    """
    most = MOST * predictors

    def meets(sizes: Array) -> Booleans:
        return met(name, goal, curve(sizes, (name,))[name].values)

    sizes = np.unique(np.round(np.geomspace(FEWEST, most, SCAN)))
    good = meets(sizes)
    if not good[-1]:
        reached = float(curve(np.array([most]), (name,))[name][0])
        raise InvalidArgumentError.because(
            f"target[{name!r}]",
            f"= {shown(goal)} cannot be reached",
            f"with {MOST:g} samples per predictor it is {reached:.4g}; choose one between this and "
            "what fewer samples reach",
        )
    for _ in range(ROUNDS):
        if good.all():
            break
        last = np.flatnonzero(~good)[-1]
        if sizes[last + 1] - sizes[last] <= 1:
            break
        sizes = np.unique(np.round(np.geomspace(sizes[last], sizes[last + 1], FINER)))
        good = np.concatenate([[False], meets(sizes[1:-1]), [True]])
    return int(sizes[0] if good.all() else sizes[np.flatnonzero(~good)[-1] + 1])


def is_least(n: int, curve: Curve, name: str, goal: Target) -> bool:
    """Whether n meets the target, and one less does not."""
    good = met(name, goal, curve(np.array([n - 1.0, float(n)]), (name,))[name].values)
    return bool(good[1] and not good[0])
