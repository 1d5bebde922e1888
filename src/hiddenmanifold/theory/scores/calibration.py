r"""How far a score is from a probability, and the temperature that brings it closest.

The score f of a classifier is read as the probability :math:`1/(1+e^{-f})` of the label +1,
whatever the loss it was fitted by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.losses import Logistic
from hiddenmanifold.numerics.panels import Panels, refine
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.teachers import binary
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED
from hiddenmanifold.theory.scores.distribution import Scores, settled

ROUNDING = 1e-14
"""Difference of two probabilities whose sign is not trusted."""
STEEPEST = 1e60
"""Inverse temperature, in units of the scores, beyond which they are called certain."""
LOG_LOSS = Logistic()


def calibration_error(scores: Scores) -> Array:
    """Mean distance of the logistic function of f from the probability of +1 given f."""

    def mean(some: Scores, halvings: int) -> tuple[Array, Array]:
        bends = (LOG_LOSS.knots[0] - some.centre[:, None]) / some.spread[:, None]

        def excess(nodes: Array, row: Integers) -> Array:
            f = some.centre[row, None] + some.spread[row, None] * nodes
            x, V0 = some.slope[row, None] * nodes, some.V0[row, None]
            teacher = binary(some.teacher)
            known, total = teacher.label_weight(1, x, V0), teacher.evidence(x, V0)
            return np.asarray(scipy.special.expit(f) * total - known)

        rough = Panels.between(some.edges(1, bends), (ORDER, halvings))
        roots = sign_changes(excess, rough)
        panels = Panels.between(some.edges(1, bends, roots), (ORDER, halvings))
        value = panels.sum(np.abs(excess(panels.nodes, panels.row)))
        return value, SETTLED * value + 10.0 * ROUNDING

    return settled(mean, scores)


def sign_changes(function: Callable[[Array, Integers], Array], panels: Panels) -> Array:
    """Where a function changes sign between two nodes of a row, (rows, most), filled up by NaN."""
    values = function(panels.nodes, panels.row)
    sure = np.abs(values) > ROUNDING
    row = np.broadcast_to(panels.row[:, None], values.shape)[sure]
    x, positive = panels.nodes[sure], values[sure] > 0
    at = np.flatnonzero((row[1:] == row[:-1]) & (positive[1:] != positive[:-1]))
    low, high, sign, row = x[at], x[at + 1], positive[at], row[at]
    for _ in range(40):  # the width of the bracket that is left enters squared
        middle = 0.5 * (low + high)
        same = (function(middle[:, None], row)[:, 0] > 0) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    place = np.arange(len(row)) - np.searchsorted(row, row)
    roots = np.full((panels.rows, int(place.max(initial=-1)) + 1), np.nan)
    roots[row, place] = 0.5 * (low + high)
    return roots


def best_temperature(scores: Scores) -> Array:
    """The T for which the logistic function of f/T has the least log-loss on new samples.

    It is infinite where scores carry no information about the label or point to the opposite one,
    and zero where they separate the labels.
    """
    size = np.hypot(scores.centre, scores.spread)
    centre, spread = scores.centre / size, scores.spread / size
    unit = replace(scores, scale=1.0, intercept=centre, deviation=spread)
    sharpness = np.zeros(len(unit))

    def best(some: Integers, halvings: int) -> tuple[Array, Array]:
        if halvings == 0:
            sharpness[some] = _best_sharpness(unit[some])
        else:
            slope, bend = _log_loss_slope(unit[some], sharpness[some], halvings)
            step = np.exp(-slope / bend)
            sharpness[some] *= np.where(sharpness[some] > 0, step, 1.0)
        return sharpness[some], SETTLED * sharpness[some]

    return size / refine(best, unit.V.shape, range(FINEST + 1))


def _log_loss_slope(scores: Scores, t: Array, halvings: int = 0) -> tuple[Array, Array]:
    """Slope by t of the mean log-loss of t f, and that of the slope by log t, in a natural unit."""
    sharper = replace(scores, intercept=t * scores.intercept, deviation=t * scores.deviation)
    (slope, bend), (unit, _) = sharper.averages(
        LOG_LOSS,
        halvings,
        lambda s: s * LOG_LOSS.derivative(s),
        lambda s: s * s * LOG_LOSS.second_derivative(s),
    )
    return slope / unit, bend / unit


def _best_sharpness(scores: Scores) -> Array:
    """The t for which t f has the least mean log-loss, f being of the size of one."""
    (margin, square), _ = scores.averages(LOG_LOSS, 0, np.negative, np.square)
    found = np.where(np.isnan(margin), np.nan, 0.0)
    index = np.flatnonzero(margin > ROUNDING)
    low = (2.0 * margin / square)[index]  # no curvature exceeds 1/4: the slope is below zero there
    high, climbing = low.copy(), np.arange(len(index))
    while climbing.size:
        high[climbing] *= 4.0
        slope, _ = _log_loss_slope(scores[index[climbing]], high[climbing])
        climbing = climbing[(slope < 0) & (high[climbing] < STEEPEST)]

    def curve(log_t: Array, which: Integers) -> tuple[Array, Array]:
        return _log_loss_slope(scores[index[which]], np.exp(log_t))

    root = increasing_root(curve, (np.log(low), np.log(high)), 1e-13)
    found[index] = np.where(high < STEEPEST, np.exp(root), np.inf)
    return found
