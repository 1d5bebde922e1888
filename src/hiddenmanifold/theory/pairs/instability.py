r"""How differently two fits predict: labels, scores and probabilities.

The scores of two fits are jointly normal. The mean distance of increasing functions σ of them,

.. math:: E|\sigma(f) - \sigma(f')| = E[\sigma(f)\,w(f)] + E[\sigma(f')\,w'(f')],
    \qquad w(f) = P(f' < f|f) - P(f' > f|f),

is a sum of integrals over one score. For two fits of one model it is twice the first, an
integral over distances z from the mean of :math:`[\sigma(b + z) - \sigma(b - z)]\,w(b + z)`, in
which nothing is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.numerics.panels import NEAR, Panels, fanned, refine
from hiddenmanifold.teachers.averaging import FINEST, ORDER, SETTLED
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.pairs.shared_overlaps import Shared, SharedOverlaps, shared_overlaps
from hiddenmanifold.theory.points import HUGE
from hiddenmanifold.theory.predictions import Request
from hiddenmanifold.theory.scores.errors_of_labels import CONSTANT
from hiddenmanifold.theory.solver.certificate import Solved

SCALES = np.array([-32.0, -16.0, -8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 16.0, 32.0])
"""Scores at which panels are cut, because the logistic function bends there."""
STEPS = np.array([-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0])
"""Cuts around the score at which the other is larger as often as smaller, in its deviations."""
ROUNDED = 4e-15
"""Relative difference of the variance of a score and the covariance of two that is rounding."""
NOWHERE = 1e-150
"""Mean of a score, in its deviations, that stands for zero."""


@dataclass(frozen=True)
class Instability:
    """How two fits that share something differ, at each point."""

    shared: Shared

    def __call__(self, solved: Solved, request: Request) -> Columns:
        """Correlation of scores, and mean differences of labels and probabilities, or scores."""
        channel, pair = solved.problem.channel, shared_overlaps(solved, self.shared)
        pair.certify(solved)
        laws = score_laws(channel, pair)
        with np.errstate(all="ignore"):
            found = {**differences(channel, laws), **distances(channel, laws, request.scale)}
        return {**found, "overlap": pair.law.Q}


@dataclass(frozen=True)
class TwoScores:
    """The normal law of two scores: means and variances (2, points), and the covariance (points,).

    ``apart`` (2, points) are the variances less the covariance, with all digits that these have.
    """

    mean: Array
    Q: Array
    shared: Array
    apart: Array

    def __getitem__(self, some: Integers) -> TwoScores:
        return TwoScores(*(values[..., some] for values in vars(self).values()))

    def scaled(self, scale: Array | float) -> TwoScores:
        """The same, of scores in other units."""
        powers = scale, scale**2, scale**2, scale**2
        return TwoScores(*(s * v for s, v in zip(powers, vars(self).values(), strict=True)))

    @property
    def determinant(self) -> Array:
        """That of the covariance matrix."""
        first, second = self.apart
        found: Array = np.maximum(self.shared * (first + second) + first * second, 0.0)
        return found

    @property
    def exchangeable(self) -> bool:
        """Whether both scores have the same law."""
        alike = np.array_equal(*self.mean) and np.array_equal(*self.Q)
        return alike and np.array_equal(*self.apart)


Laws = list[tuple[float, TwoScores]]
"""The law of two scores, or those in two classes that displace them, with their probabilities."""


def score_laws(channel: Channel, pair: SharedOverlaps) -> Laws:
    """The laws of the scores of two fits of one model."""
    Q, b, M = pair.own.Q, channel.intercept(pair.x), pair.own.M
    apart = np.where(Q - pair.law.Q > ROUNDED * Q, pair.private, 0.0)
    law = TwoScores(np.array([b, b]), np.array([Q, Q]), pair.law.Q, np.array([apart, apart]))
    return in_classes(channel, law, np.array([M, M]))


def in_classes(channel: Channel, law: TwoScores, M: Array) -> Laws:
    """The law of two scores, or those in classes that displace them by M (2, points)."""
    if not channel.teacher.displaces:
        return [(1.0, law)]
    plus, minus, _ = channel.teacher.label_marginals
    rest = law.Q, law.shared, law.apart
    return [(plus, TwoScores(law.mean + M, *rest)), (minus, TwoScores(law.mean - M, *rest))]


def differences(channel: Channel, laws: Laws) -> Columns:
    """Correlation of the scores of two fits, and the probability that labels ±1 differ.

    A score that does not vary has no correlation.
    """
    _, law = laws[0]
    varying = (law.Q >= CONSTANT**2).all(0)
    correlation = np.minimum(law.shared / np.sqrt(law.Q.prod(0)), 1.0)
    found = {"score_correlation": np.where(varying, correlation, np.nan)}
    if channel.teacher.task is Task.CLASSIFICATION:
        found["disagreement"] = np.sum([p * opposed(law) for p, law in laws], axis=0)
    return found


def distances(channel: Channel, laws: Laws, scale: float = 1.0) -> Columns:
    """Mean distances of the predicted probabilities of labels ±1, or of the scores of numbers.

    The scores are some `scale` times those of the given laws.
    """
    if channel.teacher.task is not Task.CLASSIFICATION:
        return {"score_difference": scale * np.sum([p * distance(law) for p, law in laws], axis=0)}
    if scale >= HUGE:
        return {"probability_difference": np.sum([p * opposed(law) for p, law in laws], axis=0)}
    parts = (p * probability_difference(law.scaled(scale)) for p, law in laws)
    return {"probability_difference": np.sum(list(parts), axis=0)}


def opposed(law: TwoScores) -> Array:
    """Probability that two scores have different signs."""
    sizes, root = np.sqrt(law.Q), np.sqrt(law.determinant)
    b = np.where(law.mean == 0.0, NOWHERE * sizes, law.mean)
    total: Array = ((b[0] < 0.0) != (b[1] < 0.0)).astype(float)
    for one, other in ((0, 1), (1, 0)):
        away = law.apart[one] + (b[other] / b[one] - 1.0) * law.Q[one]
        steepness = np.where(away == 0.0, 0.0, away / root)
        total = total + 2.0 * scipy.special.owens_t(b[one] / sizes[one], steepness)
    return total


def distance(law: TwoScores) -> Array:
    """Mean distance of two scores."""
    mean, deviation = law.mean[0] - law.mean[1], np.sqrt(np.maximum(law.apart.sum(0), 0.0))
    z = np.where(mean == 0.0, 0.0, mean / deviation)
    spread = deviation * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z * z)
    found: Array = spread + np.where(mean == 0.0, 0.0, mean * scipy.special.erf(z / np.sqrt(2.0)))
    return found


def probability_difference(law: TwoScores) -> Array:
    """Mean distance of the logistic functions of two scores."""
    if law.exchangeable:
        return _of_equal_laws(law)
    centre = 0.5 * law.mean.sum(0)

    def mean(some: Integers, halvings: int) -> tuple[Array, Array]:
        at = law[some]
        first, size = _ordered(at, 0, centre[some], halvings)
        second, other = _ordered(at, 1, centre[some], halvings)
        return first + second, SETTLED * (size + other) + np.finfo(float).eps

    return refine(mean, law.shared.shape, range(FINEST + 1))


def _ordered(law: TwoScores, one: int, centre: Array, halvings: int) -> tuple[Array, Array]:
    """The mean of σ(f) - σ(centre) where a score f is the larger one, less that where it is not.

    The second array is the mean of the absolute value.
    """
    b, deviation = law.mean[one], np.sqrt(law.Q[one])
    private = np.sqrt(law.determinant) / deviation  # of the other score, given this one
    away, slope = b - law.mean[1 - one], law.apart[one] / deviation
    bends = (SCALES - b[:, None]) / deviation[:, None]
    with np.errstate(all="ignore"):  # what is not finite cuts nothing
        turn, width = -away / slope, private / np.abs(slope)
        marks = np.concatenate([bends, turn[:, None] + width[:, None] * STEPS], axis=1)
    panels = Panels.between(fanned(NEAR, marks), (ORDER, halvings))
    row, z = panels.row[:, None], panels.nodes
    above = away[row] + slope[row] * z
    more = np.where(above == 0.0, 0.0, scipy.special.erf(above / private[row] / np.sqrt(2.0)))
    level = scipy.special.expit(b[row] + deviation[row] * z) - scipy.special.expit(centre[row])
    return panels.sum(level * more), panels.sum(np.abs(level * more))


def _of_equal_laws(law: TwoScores) -> Array:
    """The same for two scores of the same law."""
    b, deviation = law.mean[0], np.sqrt(law.Q[0])
    steepness = np.sqrt(law.apart[0] / (law.Q[0] + law.shared))

    def mean(some: Integers, halvings: int) -> tuple[Array, Array]:
        centre, length = b[some], deviation[some]
        cuts = [(sign * SCALES - centre[:, None]) / length[:, None] for sign in (1.0, -1.0)]
        cuts += [np.abs(STEPS) / steepness[some, None]]
        panels = Panels.between(
            fanned((0.0, 1.5, 4.5, 9.0), np.abs(np.concatenate(cuts, axis=1))), (ORDER, halvings)
        )
        row, z = panels.row[:, None], panels.nodes
        up, down = (scipy.special.expit(centre[row] + s * length[row] * z) for s in (1.0, -1.0))
        more = scipy.special.erf(steepness[some][row] * z / np.sqrt(2.0))
        found = 2.0 * panels.sum((up - down) * more)
        return found, SETTLED * found + np.finfo(float).eps

    return refine(mean, b.shape, range(FINEST + 1))
