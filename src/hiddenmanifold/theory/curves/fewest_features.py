"""How many features bring the error at optimal regularisation close to its kernel limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.crossings import bridged, descents
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.best_lambda.search import ErrorByLambda, optimum
from hiddenmanifold.theory.points import HUGE, Points

MANY = np.log(10.0) * np.arange(0.0, 10.0)
"""Values of log(p/n) between which the number is sought."""
FEW = np.log(10.0) * np.arange(-3.0, 0.0)
"""Tried too where each of those is enough."""
END = np.log(HUGE)
"""The log(p/n) that stands for infinitely many features."""
CLOSE = 1e-7
"""How far from the excess that is sought that of a crossing may be, relative to it."""


@dataclass(frozen=True)
class BestError:
    """The error at optimal λ as a function of t = log(p/n), with n/d held fixed."""

    model: Model
    delta: Array
    workers: Workers

    def __call__(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """The error and its slope by t, which an optimal λ does not change."""
        alpha = np.exp(-t)
        points = Points.of(alpha, alpha / self.delta[point], np.full_like(t, np.nan), t >= END)
        errors = ErrorByLambda(self.model, points, "generalisation_error", self.workers)
        found = optimum(errors, 0.0, np.inf, slopes=("p",))[1]
        return found["generalisation_error"], found["generalisation_error_by_log_p"]

    def scan(self, point: Integers, t: Array) -> Samples:
        """Samples of some points, at all t each."""
        return Samples.of(self, np.tile(point, len(t)), np.repeat(t, len(point)))


def fewest_features(
    model: Model, n_over_d: Array, within: float, workers: Workers
) -> tuple[Columns, Booleans]:
    """Fewest p/n with an error `within` of the kernel limit, both errors, and what was missed."""
    errors, points = BestError(model, n_over_d, workers), np.arange(len(n_over_d))
    scan = errors.scan(points, np.append(MANY, END))
    limit, samples = scan[scan.t == END].value, scan[scan.t < END]
    above = ~(samples.value <= (1.0 + within) * limit[samples.point])
    samples += errors.scan(np.setdiff1d(points, samples.point[above]), FEW)

    def excess(point: Integers, error: Array, slope: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return error / limit[point] - 1.0, slope / limit[point]

    def curve_of_excess(point: Integers, t: Array) -> tuple[Array, Array]:
        return excess(point, *errors(point, t))

    value, slope = excess(samples.point, samples.value, samples.slope)
    samples = bridged(Samples(samples.point, samples.t, value, slope), np.empty((0, len(limit))))
    # errors have ten digits; of these the excess keeps what it is of them, four at least
    noise = min(1e-10, 1e-4 * within) * (1.0 + within) / within
    close = float(np.clip(CLOSE, noise, 100.0 * noise))
    (t, value), _ = descents(curve_of_excess, samples, np.full_like(limit, within), close)
    columns: Columns = {
        "p_over_n": np.exp(np.minimum(t, MANY[-1])),
        "generalisation_error": limit * (1.0 + value),
        "kernel_limit": limit,
    }
    return columns, ~((t < np.inf) | (np.abs(value - within) <= close * within))
