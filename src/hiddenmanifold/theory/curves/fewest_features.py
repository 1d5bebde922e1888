"""How many features bring the error at optimal regularisation close to its kernel limit."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.numerics.crossings import bridged, crossings
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.theory.curves.error_curve import END, ERROR, ErrorCurve

MANY = np.log(10.0) * np.arange(0.0, 10.0)
"""Values of log(p/n) between which the number of features is sought."""
FEW = np.log(10.0) * np.arange(-3.0, 0.0)
"""Tried too where each of those is enough."""
CLOSE = 1e-7
"""Largest relative distance of the excess at a crossing from the one that is sought."""


def fewest_features(curve: ErrorCurve, within: float) -> tuple[Columns, Booleans]:
    """Fewest p/n with an error `within` of the kernel limit, both errors, and what was missed."""
    scan = curve.scan(np.add.outer(np.append(MANY, END), 0.0 * curve.held))
    limit, samples = scan[scan.t == END].value, scan[scan.t < END]
    enough = np.ones(len(curve), dtype=bool)
    enough[samples.point[~(samples.value <= (1.0 + within) * limit[samples.point])]] = False
    few = curve.scan(np.add.outer(FEW, np.where(enough, 0.0, np.nan)))
    samples = samples.extended(few)

    def excess(point: Integers, error: Array, slope: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return error / limit[point] - 1.0, slope / limit[point]

    def curve_of_excess(point: Integers, t: Array) -> tuple[Array, Array]:
        return excess(point, *curve(point, t))

    value, slope = excess(samples.point, samples.value, samples.slope)
    samples = bridged(Samples(samples.point, samples.t, value, slope), np.empty((0, len(limit))))
    # errors have ten digits; the excess, a small part of the error, keeps at least four of them
    noise = min(1e-10, 1e-4 * within) * (1.0 + within) / within
    close = float(np.clip(CLOSE, noise, 100.0 * noise))
    (t, value), _ = crossings(curve_of_excess, samples, np.full_like(limit, within), close)
    columns: Columns = {
        "p_over_n": np.exp(np.minimum(t, MANY[-1])),
        ERROR: limit * (1.0 + value),
        "kernel_limit": limit,
    }
    return columns, ~((t < np.inf) | (np.abs(value - within) <= close * within))
