"""How many features bring the error at optimal regularisation close to its kernel limit."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.execution import Crew
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.points import HUGE, Points
from hiddenmanifold.theory.optimal import ErrorByLambda, optimum

SCAN = np.log(10.0) * np.arange(-3.0, 10.0)
"""Values of log(p/n) between which the number is sought."""


def fewest_features(
    model: Model, n_over_d: Array, within: float, crew: Crew
) -> tuple[Columns, Booleans]:
    """Fewest p/n with an error `within` of the kernel limit, both errors, and what was missed."""
    infinite = np.full(len(n_over_d), np.log(HUGE))
    limit = _best(model, infinite, n_over_d, crew)[0]
    target, close = limit + np.log1p(within), min(1e-10, 1e-4 * within)

    def reached(t: Array, index: Integers) -> tuple[Array, Array]:
        error, slope = _best(model, t, n_over_d[index], crew)
        return target[index] - error, -slope

    bracket = _bracket(model, n_over_d, target, crew)
    t = increasing_root(reached, bracket, close)
    error = _best(model, t, n_over_d, crew)[0]
    columns: Columns = {
        "p_over_n": np.where(t > SCAN[0], np.exp(t), 0.0),
        "generalisation_error": np.exp(error),
        "kernel_limit": np.exp(limit),
    }
    return columns, ~((np.abs(error - target) <= 1e2 * close) | (t == SCAN[0]))


def _best(model: Model, t: Array, delta: Array, crew: Crew) -> tuple[Array, Array]:
    """Logarithm of the error at optimal λ and p/n = exp(t), and its slope by t.

    At an optimum the error does not depend on λ, so the slope is that at fixed λ.
    """
    alpha = np.exp(-t)
    points = Points.of(alpha, alpha / delta, np.full_like(alpha, np.nan), t >= np.log(HUGE))
    errors = ErrorByLambda(model, points, "generalisation_error", crew)
    found = optimum(errors, 0.0, np.inf, slopes=("p",))[1]
    error = found["generalisation_error"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(error), found["generalisation_error_by_log_p"] / error


def _bracket(model: Model, delta: Array, target: Array, crew: Crew) -> tuple[Array, Array]:
    """The last interval of the scan in which the error comes down to its target."""
    t, points = np.repeat(SCAN, len(delta)), np.tile(delta, len(SCAN))
    above = ~(_best(model, t, points, crew)[0].reshape(len(SCAN), -1) <= target)
    last = np.where(above.any(0), len(SCAN) - 1 - np.argmax(above[::-1], axis=0), -1)
    low, high = np.maximum(last, 0), np.minimum(last + 1, len(SCAN) - 1)
    return SCAN[low], SCAN[high]
