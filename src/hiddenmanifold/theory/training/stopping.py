"""The best time to stop training: the global minimum over decades of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.errors import Status
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.training.rules import Descent, Flow
from hiddenmanifold.theory.training.trajectory import curvature_of, trained

EARLIEST, LATEST = 1e-3, 1e8
"""Times between which to search, in units of the inverse of the largest eigenvalue."""
PER_DECADE = 10
"""Times per decade of the scan: errors bend over half a decade at least, since every direction is
learned within one."""
ROUNDS, INSIDE = 5, 9
"""How often the neighbourhood of the best time is searched again, and at how many times: each
narrows it to a quarter, and a parabola follows."""


def best_stopping(
    model: Model,
    points: Points,
    rule: Flow | Descent,
    minimise: str,
    *,
    bounds: tuple[float, float] | None,
    workers: Workers,
) -> tuple[Array, Columns]:
    """The time, or number of steps, of least error, and all that is predicted there.

    Where the error falls to the end of time the answer is infinity, where it only rises zero.
    """
    discrete = isinstance(rule, Descent)
    if bounds is None:
        rate = curvature_of(model, points)
        rate = rate * rule.step if isinstance(rule, Descent) else rate
        low, high = EARLIEST / rate, LATEST / rate
        low = np.ones_like(low) if discrete else low
    else:
        low, high = (np.full(len(points), bound) for bound in bounds)
    decades = float(np.log10(high / low).max())
    log_t = np.linspace(np.log(low), np.log(high), int(np.ceil(PER_DECADE * decades)) + 2, axis=1)

    def predicted(times: Array) -> Columns:
        """Everything at times (points, times), in rows."""
        index = np.repeat(np.arange(len(points)), times.shape[1])
        own = replace(rule, step=rule.step[index]) if isinstance(rule, Descent) else rule
        return trained(model, points[index], times.ravel(), own, workers)

    def errors(times: Array) -> tuple[Array, Array]:
        """The error at times (points, times), and the status."""
        found = predicted(times)
        value, status = (found[name].reshape(times.shape) for name in (minimise, "status"))
        return np.where(np.isnan(value), np.inf, value), status

    def at(log_t: Array) -> Array:
        return np.rint(np.exp(log_t)) if discrete else np.exp(log_t)

    ends = np.broadcast_to([0.0, np.inf], (len(points), 2))
    value, status = errors(np.hstack([ends[:, :1], at(log_t), ends[:, 1:]]))
    best = np.argmin(value[:, 1:-1], axis=1)
    least = np.take_along_axis(value[:, 1:-1], best[:, None], 1)[:, 0]
    time = at(refined(lambda log_t: errors(at(log_t))[0], log_t, best))
    if bounds is None:
        time = np.where(value[:, 0] <= least, 0.0, time)
        time = np.where(value[:, -1] <= least, np.inf, time)
    found = predicted(time[:, None])
    lost = (status[:, 1:-1] != Status.CONVERGED).any(1)
    found["status"][lost & (found["status"] != Status.UNSTABLE)] = Status.SEARCH
    return np.where(lost, np.nan, time), found


def refined(errors: Callable[[Array], Array], log_t: Array, best: Array) -> Array:
    """The minimum between the neighbours of the best of some times."""
    rows, last = np.arange(len(best)), log_t.shape[1] - 1
    low, high = log_t[rows, np.maximum(best - 1, 0)], log_t[rows, np.minimum(best + 1, last)]
    for _ in range(ROUNDS):
        at = np.linspace(low, high, INSIDE, axis=1)
        value = errors(at)
        best = np.argmin(value, axis=1)
        low, high = at[rows, np.maximum(best - 1, 0)], at[rows, np.minimum(best + 1, INSIDE - 1)]
    middle = np.clip(best, 1, INSIDE - 2)
    left, centre, right = (value[rows, middle + shift] for shift in (-1, 0, 1))
    width = at[:, 1] - at[:, 0]
    with np.errstate(all="ignore"):
        bend = left - 2.0 * centre + right
        shift = np.where(bend > 0.0, 0.5 * (left - right) / bend, 0.0)
    inner = (best > 0) & (best < INSIDE - 1)
    found = at[rows, best]
    moved: Array = found + np.where(inner, np.clip(shift, -1.0, 1.0), 0.0) * width
    return moved
