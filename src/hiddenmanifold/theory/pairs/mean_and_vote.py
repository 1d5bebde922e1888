r"""Errors of ensembles: the mean prediction of several fits, and their majority vote.

The mean of K predictions that share a part of variance :math:`Q_{12}` is distributed like a
prediction of variance :math:`Q_K = Q_{12} + (Q - Q_{12})/K` and of the same M and intercept, so
that every property of a single fit has its counterpart. Given the shared part the votes of fits are
independent, each for +1 with probability :math:`P = \Phi((b + g)/\sqrt{Q - Q_{12}})`, and an odd
number of them is for +1 with probability :math:`I_P(\tfrac{K+1}2, \tfrac{K+1}2)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.numerics.panels import Panels, refine
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED
from hiddenmanifold.theory.features_side import Overlaps
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.pairs.instability import differences, distances, score_laws
from hiddenmanifold.theory.pairs.shared_overlaps import (
    Shared,
    SharedOverlaps,
    shared_overlaps,
    unknowns_of,
)
from hiddenmanifold.theory.predictions import Request
from hiddenmanifold.theory.scores.distribution import Scores
from hiddenmanifold.theory.scores.errors_of_labels import errors, test_errors
from hiddenmanifold.theory.solver.certificate import Solved

STEPS = np.array([-9.0, -4.5, -1.5, 0.0, 1.5, 4.5, 9.0])
"""Cuts around the shared part at which votes turn, in deviations of the part that is private."""


@dataclass(frozen=True)
class Ensemble:
    """What to predict for ensembles: numbers of members, and what any two of them share."""

    members: tuple[float, ...]
    shared: Shared

    def __call__(self, solved: Solved, request: Request) -> Columns:
        """Errors and observables (points, members), and the covariance of two predictions."""
        channel, pair = solved.problem.channel, shared_overlaps(solved, self.shared)
        pair.certify(solved)
        found: dict[str, list[Array]] = {}
        for members in self.members:
            law = mean_law(pair, members)
            x = unknowns_of(channel, solved.x, law)
            with np.errstate(all="ignore"):
                columns = {**new_errors(channel, x, law), **request.observed(channel, x)}
                if votes(channel):
                    columns["vote_error"] = vote_error(channel, pair, columns, members)
            for name, values in columns.items():
                found.setdefault(name, []).append(values)
        together = {name: np.stack(values, axis=1) for name, values in found.items()}
        laws = score_laws(channel, pair)
        with np.errstate(all="ignore"):
            apart = {**differences(channel, laws), **distances(channel, laws, request.scale)}
        return {**together, **apart, "overlap": pair.law.Q}


def mean_law(pair: SharedOverlaps, members: float) -> Overlaps:
    """The overlaps of the mean of several predictions."""
    own, law, part = pair.own, pair.law, 1.0 / members

    def mixed(name: str) -> Array:
        single, shared = getattr(own, name), getattr(law, name)
        mean: Array = single if members == 1 else part * single + (1.0 - part) * shared
        return mean

    return replace(own, **{name: mixed(name) for name in ("Q", "deficit", "excess")})


def new_errors(channel: Channel, x: Array, law: Overlaps) -> Columns:
    """Test errors of predictions of a law."""
    if channel.teacher.task is Task.CLASSIFICATION:
        return test_errors(channel, x)
    return errors(channel, x, law)


def votes(channel: Channel) -> bool:
    """Whether predictions are labels ±1, by which members can vote."""
    return channel.teacher.task is Task.CLASSIFICATION and channel.prediction is None


def vote_error(channel: Channel, pair: SharedOverlaps, mean: Columns, members: float) -> Array:
    """Probability that the majority of several fits errs; a tie counts one half.

    With one vote more than an odd number a tie is as likely to correct an error as to make one, so
    that an even number errs as often as the odd one below. Infinitely many err as their mean does.
    """
    if members in (1, np.inf):
        return np.array(mean["generalisation_error"])
    half, scores = (members + members % 2) // 2, Scores.of(channel, pair.x)

    def wrong(some: Integers, halvings: int) -> tuple[Array, Array]:
        at, private = scores[some], np.sqrt(pair.private[some])
        total = np.zeros(len(some))
        for y, share in scores.labels:
            turn = -y * at.intercept / at.deviation
            cuts = turn[:, None] + (private / at.deviation)[:, None] * STEPS
            sharp = turn[:, None] + (private / at.deviation / np.sqrt(half))[:, None] * STEPS
            panels = Panels.between(at.edges(y, cuts, sharp), (ORDER, halvings))
            row = panels.row[:, None]
            shared = y * at.intercept[row] + at.deviation[row] * panels.nodes
            against = scipy.special.ndtr(-shared / private[row])
            lost = scipy.special.betainc(half, half, against)
            total += share * panels.sum(at.law(y, panels) * lost)
        return total, SETTLED * total

    return refine(wrong, (len(scores),), range(FINEST + 1))
