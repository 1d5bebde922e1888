"""The straight line whose logistic function predicts labels best, for a batch of weighted points.

It minimises the mean log-loss of g = intercept + slope x over weighted points x, of which `plus`
are the weights with the label +1 and `minus` those with the label -1.
"""

from __future__ import annotations

import numpy as np
import scipy

from hiddenmanifold.arrays import Array

STEPS = 100
"""Newton steps before a line is given up: a dozen suffice unless labels are separated."""
CLOSE = 1e-10
"""Relative length of a step after which the next one, whose length is its square, is rounding."""
FLAT = 1e-12
"""Relative change of a loss that is attributed to rounding."""


def logistic_line(x: Array, plus: Array, minus: Array) -> tuple[Array, Array]:
    """Intercepts and slopes of the best lines, (rows,), of points and weights (rows, points).

    NaN where the labels of a row are separated by x, or are all the same: no line is best there.
    """
    total = plus.sum(1) + minus.sum(1)
    with np.errstate(all="ignore"):
        line = np.stack([np.log(plus.sum(1) / minus.sum(1)), np.zeros(len(x))], axis=1)
    found = np.full_like(line, np.nan)
    todo = np.flatnonzero(np.isfinite(line[:, 0]) & np.isfinite(x).all(1) & (total > 0))
    for _ in range(STEPS):
        if not todo.size:
            break
        some = x[todo], plus[todo], minus[todo]
        loss, step = _newton(line[todo], *some)
        length = np.ones(len(todo))
        for _ in range(30):
            worse = _loss(line[todo] + length[:, None] * step, *some) > loss * (1.0 + FLAT)
            if not worse.any():
                break
            length[worse] *= 0.5
        line[todo] += length[:, None] * step
        size = np.abs(step).max(1) / (1.0 + np.abs(line[todo]).max(1))
        done = (size <= CLOSE) & (length == 1.0)
        found[todo[done]] = line[todo[done]]
        todo = todo[~done & np.isfinite(line[todo]).all(1)]
    return found[:, 0], found[:, 1]


def _loss(line: Array, x: Array, plus: Array, minus: Array) -> Array:
    """Sum of the log-loss over the points of each row."""
    g = line[:, :1] + line[:, 1:] * x
    loss: Array = (plus * np.logaddexp(0.0, -g) + minus * np.logaddexp(0.0, g)).sum(1)
    return loss


def _newton(line: Array, x: Array, plus: Array, minus: Array) -> tuple[Array, Array]:
    """The loss of each row, and Newton's step towards its minimum."""
    g = line[:, :1] + line[:, 1:] * x
    p, q = scipy.special.expit(g), scipy.special.expit(-g)
    pull, weight = plus * q - minus * p, (plus + minus) * p * q
    a, w = pull.sum(1), weight.sum(1)
    with np.errstate(all="ignore"):
        centre = (weight * x).sum(1) / w
        away = x - centre[:, None]
        slope = (pull * away).sum(1) / (weight * away**2).sum(1)
        step = np.stack([a / w - slope * centre, slope], axis=1)
    return _loss(line, x, plus, minus), step
