"""The least number of samples from which on the limit meets a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.studies.best_penalty import FEWEST
from hiddenmanifold.studies.targets import Target, met, missed_by

if TYPE_CHECKING:
    import xarray as xr

Curve = Callable[[Array, tuple[str, ...]], "xr.Dataset"]
"""From sizes and names to quantities along n."""
MOST = 1e5
"""Largest number of samples per predictor that is considered."""
SCAN, TOGETHER = 21, 7
"""Sizes of the first scan, and how many of them are tried at once where few may be enough."""
ROUNDS = 60
"""Rounds in which the gap between two sizes is narrowed, at most: each at least halves it."""
ASIDE = 0.03
"""How far to both sides of an estimated size others are tried, in units of the gap."""


def least_size(
    predictors: int,
    curve: Curve,
    name: str,
    goal: Target,
    ideal: Mapping[str, float] | None = None,
) -> int:
    """The least n from which on a quantity meets its target, among all that are considered.

    The `ideal` are the quantities of infinitely many samples, if more samples never do harm: then
    no size is tried that is much larger than one that meets the target.

    Raises
    ------
    InvalidArgumentError
        If the largest one does not.
    """
    if ideal is not None and not met(name, goal, np.array(ideal[name])):
        raise _out_of_reach(name, goal, f"with infinitely many samples it is {ideal[name]:.4g}")

    def missing(sizes: Array) -> Array:
        return missed_by(name, goal, curve(sizes, (name,))[name].values)

    sizes = np.unique(np.round(np.geomspace(FEWEST, MOST * predictors, SCAN)))
    missed = np.empty(0)
    while len(missed) < len(sizes):
        some = sizes[len(missed) :][: SCAN if ideal is None else TOGETHER]
        missed = np.concatenate([missed, missing(some)])
        if ideal is not None and missed[-1] <= 0.0:
            break
    if missed[-1] > 0.0:
        reached = float(curve(sizes[-1:], (name,))[name][0])
        most = f"with {MOST:g} samples per predictor it is {reached:.4g}"
        raise _out_of_reach(name, goal, most)
    bad = np.flatnonzero(missed > 0.0)
    if not bad.size:
        return int(sizes[0])
    at = slice(bad[-1], bad[-1] + 2)
    return _between(missing, sizes[at], missed[at])


def _between(missing: Callable[[Array], Array], gap: Array, missed: Array) -> int:
    """The least size that meets a target, between one that does not and a larger one that does."""
    for _ in range(ROUNDS):
        if gap[1] - gap[0] <= 1:
            break
        (low, high), width = np.log(gap), np.log(gap[1] / gap[0])
        share = missed[0] / (missed[0] - missed[1]) if np.isfinite(missed[0]) else 0.5
        guess = low + share * width
        tried = np.exp([guess - ASIDE * width, guess, guess + ASIDE * width, 0.5 * (low + high)])
        tried = np.unique(np.round(tried))
        tried = tried[(tried > gap[0]) & (tried < gap[1])]
        if not tried.size:
            tried = np.array([np.floor(0.5 * gap.sum())])
        sizes = np.concatenate([gap[:1], tried, gap[1:]])
        values = np.concatenate([missed[:1], missing(tried), missed[1:]])
        last = int(np.flatnonzero(values > 0.0)[-1])
        gap, missed = sizes[last : last + 2], values[last : last + 2]
    return int(gap[1])


def _out_of_reach(name: str, goal: Target, reached: str) -> InvalidArgumentError:
    argument, problem = f"target[{name!r}]", f"= {shown(goal)} cannot be reached"
    remedy = f"{reached}; choose one between this and what fewer samples reach"
    return InvalidArgumentError.because(argument, problem, remedy)


def is_least(n: int, curve: Curve, name: str, goal: Target) -> bool:
    """Whether n meets the target, and one less does not."""
    good = met(name, goal, curve(np.array([n - 1.0, float(n)]), (name,))[name].values)
    return bool(good[1] and not good[0])
