"""What a study is to reach: values of quantities of its performance, or intervals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import check_number, did_you_mean
from hiddenmanifold.errors import InvalidArgumentError

Target = float | tuple[float, float]
"""The value to reach, or an interval to be in."""
QUANTITIES: Mapping[str, tuple[str, ...]] = {
    "binary": (
        "calibration_slope",
        "auc",
        "brier_score",
        "probability_error",
        "r2",
        "nagelkerke_r2",
        "test_loss",
    ),
    "continuous": ("calibration_slope", "r2", "generalisation_error"),
    "count": ("calibration_slope", "r2", "generalisation_error"),
}
"""What may be a target, for each kind of outcome."""
LESS_IS_BETTER = frozenset(
    {"brier_score", "probability_error", "test_loss", "generalisation_error"}
)


POSSIBLE = {"auc": (0.5, 1.0), "brier_score": (0.0, 1.0), "probability_error": (0.0, 1.0)}
"""Open intervals of quantities of useful models."""


def checked_targets(outcome: str, target: object) -> dict[str, Target]:
    """The targets as numbers and pairs of numbers.

    Raises
    ------
    InvalidArgumentError
        If a quantity is unknown for this kind of outcome, or its value makes no sense.
    """
    known = QUANTITIES[outcome]
    if not isinstance(target, Mapping) or not target:
        raise InvalidArgumentError(
            "target", target, 'a mapping as {"calibration_slope": 0.9}, with one target at least'
        )
    found: dict[str, Target] = {}
    for name, goal in target.items():
        if name not in known:
            allowed = f"one of {', '.join(map(repr, known))}{did_you_mean(name, known)}"
            raise InvalidArgumentError("target", name, allowed)
        argument = f"target[{name!r}]"
        if isinstance(goal, tuple | list) and len(goal) == 2:
            low, high = goal
            check_number(argument, low, -np.inf)
            check_number(argument, high, -np.inf)
            if not low < high:
                raise InvalidArgumentError(argument, goal, "an interval (low, high)")
            found[name] = (float(low), float(high))
        else:
            check_number(argument, goal, -1e9)
            found[name] = float(goal)
            low, high = POSSIBLE.get(name, (-np.inf, np.inf))
            if not low < found[name] < high:  # type: ignore[operator]
                raise InvalidArgumentError(argument, goal, f"above {low:g} and below {high:g}")
            if name == "calibration_slope" and not 0.0 < found[name] < 1.0:  # type: ignore[operator]
                raise InvalidArgumentError(
                    argument,
                    goal,
                    "above 0 and below 1, or an interval around 1: at 1 predictions would be as "
                    "extreme as they should, which takes infinitely many samples",
                )
    return found


def missed_by(name: str, goal: Target, values: Array) -> Array:
    """How far values are from a target: positive where they miss it, infinite where there is none.

    Continuous in the values, and at most zero where they meet it.
    """
    if isinstance(goal, tuple):
        far = np.maximum(goal[0] - values, values - goal[1])
    else:
        far = values - goal if name in LESS_IS_BETTER else goal - values
    return np.nan_to_num(far, nan=np.inf, posinf=np.inf, neginf=-np.inf)


def met(name: str, goal: Target, values: Array) -> Booleans:
    """Whether values meet a target; NaN never does."""
    found: Booleans = missed_by(name, goal, values) <= 0.0
    return found
