r"""How differently two fits predict: labels, scores and probabilities.

The scores of two fits are jointly normal, of mean b, variance Q and covariance :math:`Q_{12}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.numerics.panels import NEAR, Panels, fanned, refine
from hiddenmanifold.teachers.averaging import ORDER, SETTLED
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.pairs.shared_overlaps import Shared, SharedOverlaps, shared_overlaps
from hiddenmanifold.theory.points import HUGE
from hiddenmanifold.theory.predictions import Request
from hiddenmanifold.theory.solver.certificate import Solved

HALVINGS = 5
"""How often panels of both scores are halved, at most: each costs four times as much."""
SCALES = np.array([-16.0, -8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 16.0])
"""Scores at which panels are cut, because the logistic function bends there."""


@dataclass(frozen=True)
class Instability:
    """How two fits that share something differ, at each point."""

    shared: Shared

    def __call__(self, solved: Solved, request: Request) -> Columns:
        """Correlation of scores, and mean differences of labels and probabilities, or scores."""
        channel, pair = solved.problem.channel, shared_overlaps(solved, self.shared)
        pair.certify(solved)
        with np.errstate(all="ignore"):
            found = differences(channel, pair)
            if channel.teacher.task is Task.CLASSIFICATION:
                found["probability_difference"] = probability_difference(
                    channel, pair, request.scale
                )
            else:
                spread = np.where(pair.law.Q < pair.own.Q, pair.private, 0.0)
                found["score_difference"] = request.scale * np.sqrt(4.0 * spread / np.pi)
        return {**found, "overlap": pair.law.Q}


def differences(channel: Channel, pair: SharedOverlaps) -> Columns:
    """Correlation of the scores of two fits, and the probability that labels ±1 differ."""
    Q, shared = pair.own.Q, pair.law.Q
    found = {"score_correlation": np.minimum(shared / Q, 1.0)}
    if channel.teacher.task is Task.CLASSIFICATION:
        steepness = np.where(shared < Q, np.sqrt(pair.private / (Q + shared)), 0.0)
        found["disagreement"] = sum(
            4.0 * probability * scipy.special.owens_t(mean / np.sqrt(Q), steepness)
            for probability, mean in centres(channel, pair)
        )
    return found


def centres(channel: Channel, pair: SharedOverlaps) -> list[tuple[float, Array]]:
    """Means of the scores with their probabilities: one, or those of classes that displace them."""
    b, M = channel.intercept(pair.x), pair.own.M
    if not channel.teacher.displaces:
        return [(1.0, b)]
    plus, minus, _ = channel.teacher.label_marginals
    return [(plus, b + M), (minus, b - M)]


def probability_difference(channel: Channel, pair: SharedOverlaps, scale: float) -> Array:
    """Mean distance of the logistic functions of two scores."""
    if scale >= HUGE:
        return np.asarray(differences(channel, pair)["disagreement"])
    middle = scale * np.sqrt(0.5 * (pair.own.Q + pair.law.Q))
    half = scale * np.sqrt(np.where(pair.law.Q < pair.own.Q, 0.5 * pair.private, 0.0))
    parts = (
        probability * _apart(scale * mean, middle, half)
        for probability, mean in centres(channel, pair)
    )
    total: Array = np.sum(list(parts), axis=0)
    return total


def _apart(b: Array, middle: Array, half: Array) -> Array:
    """Mean distance of the logistic functions of two normal scores of mean b.

    Their mean and half their difference have the given deviations.
    """

    def mean(some: Integers, halvings: int) -> tuple[Array, Array]:
        rule, found = (ORDER, halvings), np.empty(len(some))
        for k, point in enumerate(some):
            m = Panels.between(fanned(NEAR, (SCALES[None] - b[point]) / middle[point]), rule)
            cuts = np.abs(SCALES[None]) / max(half[point], np.finfo(float).tiny)
            d = Panels.between(fanned((0.0, 1.5, 4.5, 9.0), cuts), rule)
            at = b[point] + middle[point] * m.nodes.ravel()[:, None]
            away = half[point] * d.nodes.ravel()
            between = scipy.special.expit(at + away) - scipy.special.expit(at - away)
            found[k] = 2.0 * m.weights.ravel() @ between @ d.weights.ravel()
        return found, SETTLED * found + np.finfo(float).eps

    return refine(mean, b.shape, range(HALVINGS))
