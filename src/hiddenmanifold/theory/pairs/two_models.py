r"""Two different fits of the same labels: the covariance of their predictions, and of their mean.

They may differ in the loss, the penalty, the intercept, the activation, the kind of features and
the number of these. With the averages :math:`e_1, e_3` and responses of either,

.. math:: Q_{12} = \frac{C}{(n/d)\,e_1e_1'}\,\sum rr' + \rho aa'T_2, \qquad a = e_3/e_1,

where the sums, in units of d, are those of independent features of the same data, or of the same
features at both arguments. Fits on independent samples have C = 0. The mean of both predictions
with shares s and 1 - s has the variance :math:`s^2Q_1 + (1-s)^2Q_2 + 2s(1-s)Q_{12}`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.errors import CERTIFICATES, IncompatibleIngredientsError, Status, shown
from hiddenmanifold.features import Features
from hiddenmanifold.features.spectral_sums import CrossSums
from hiddenmanifold.theory.features_side import Overlaps, overlaps, spectral_arguments
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.pairs.instability import (
    Laws,
    TwoScores,
    differences,
    distances,
    in_classes,
)
from hiddenmanifold.theory.pairs.labels_of_two import Two, common_slopes_of_two
from hiddenmanifold.theory.pairs.mean_and_vote import new_errors
from hiddenmanifold.theory.pairs.shared_overlaps import LEAST, Shared, solution
from hiddenmanifold.theory.points import HUGE
from hiddenmanifold.theory.predictions import Request
from hiddenmanifold.theory.solver.certificate import Certificate, Solved

ALIKE = 1e-9
"""Relative difference of directions, or of ratios, that is rounding."""


@dataclass(frozen=True)
class Covariance:
    """What two predictions share, with the names of `Overlaps`: arrays (points,)."""

    Q: Array
    deficit: Array
    excess: Array


@dataclass(frozen=True)
class TwoFits:
    """The equation of C for two solved models at some points.

    ``V`` and ``b`` (2, points) are those of either fit, and ``own`` their overlaps. ``gain`` is the
    derivative of Q₁₂ by C, and ``cross`` and ``ra``, ρaa', are what else it is made of.
    """

    channels: tuple[Channel, Channel]
    b: Array
    own: tuple[Overlaps, Overlaps]
    cross: CrossSums
    gain: Array
    ra: Array
    e2: Array

    @classmethod
    def of(cls, first: Solved, second: Solved, shared: Shared) -> TwoFits:
        """The equation of two solved models with the same labels."""
        both = (first, second)
        channels = first.problem.channel, second.problem.channel
        features = first.problem.features, second.problem.features
        points = first.problem.points, second.problem.points
        rho = channels[0].rho
        at = [spectral_arguments(p, s.e, rho) for p, s in zip(points, both, strict=True)]
        gamma = at[0].gamma
        if (shared.features or not features[0].random) and features[0] == features[1]:
            pair = features[0].pair_sums(at[0].k, at[1].k, gamma)
            cross = CrossSums(pair.D_rr / gamma, pair.T_rr, pair.T_ss, pair.W)
        else:
            one, other = (f.response(a.k, a.gamma) for f, a in zip(features, at, strict=True))
            cross = CrossSums.of_independent(one, other, np.ones_like(gamma))
        return cls(
            channels,
            np.array([c.intercept(s.x) for c, s in zip(channels, both, strict=True)]),
            (overlaps(features[0], at[0]), overlaps(features[1], at[1])),
            cross,
            cross.D2 * gamma / (at[0].alpha * at[0].e1 * at[1].e1),
            rho * at[0].a * at[1].a,
            np.sqrt(first.e[:, 1] * second.e[:, 1]),
        )

    def __getitem__(self, some: Integers) -> Self:
        def taken(table: object) -> dict[str, Array]:
            return {name: values[some] for name, values in vars(table).items()}

        return replace(
            self,
            b=self.b[:, some],
            own=(Overlaps(**taken(self.own[0])), Overlaps(**taken(self.own[1]))),
            cross=CrossSums(**taken(self.cross)),
            gain=self.gain[some],
            ra=self.ra[some],
            e2=self.e2[some],
        )

    @property
    def rho(self) -> float:
        """Variance of the teacher's field."""
        return self.channels[0].rho

    @property
    def Q(self) -> Array:
        """Variances of both predictions."""
        return np.array([own.Q for own in self.own])

    @property
    def M(self) -> Array:
        """Their covariances with the field."""
        return np.array([own.M for own in self.own])

    def law(self, C: Array) -> Covariance:
        """What both predictions share."""
        spread = self.gain * C
        return Covariance(
            spread + self.ra * self.cross.T2,
            self.rho * (spread + self.ra * self.cross.W),
            spread + self.rho * self.cross.U2,
        )

    def turn(self, C: Array, level: int) -> tuple[Array, Array]:
        """The C that follows from one, and its derivative."""
        law = self.law(C)
        two = Two(
            V=np.array([own.V for own in self.own]),
            Q=self.Q,
            M=self.M,
            b=self.b,
            spread=np.array([own.deficit for own in self.own]) / self.rho,
            rest=np.array([own.excess for own in self.own]),
            shared=law.deficit / self.rho,
            excess=law.excess,
            rho=self.rho,
        )
        value, slope = common_slopes_of_two(self.channels, two, level)
        return value, slope * self.gain

    def relative(self, C: Array) -> Array:
        """The derivative of Q₁₂ by C, over its size."""
        least = LEAST * np.sqrt(self.Q.prod(0))
        change: Array = self.gain / np.maximum(np.abs(self.law(C).Q), least)
        return change

    def bounded(self, C: Array) -> Array:
        """The nearest C that two fits may have."""
        with np.errstate(all="ignore"):
            most = (np.sqrt(self.Q.prod(0)) - self.ra * self.cross.T2) / self.gain
        return np.where(np.isfinite(most), np.minimum(C, most), C)

    @property
    def guess(self) -> Array:
        """C, if it were proportional to Q₁₂."""
        with np.errstate(all="ignore"):
            size = np.sqrt(self.Q.prod(0))
            part = self.law(np.zeros_like(self.e2)).Q / (size - self.gain * self.e2)
        found: Array = self.e2 * np.clip(np.nan_to_num(part), LEAST, 1.0)
        return found


def check_two(first: Features, second: Features, shared: Shared) -> None:
    """Raise unless the features of two models can be of the same data, and drawn as asked.

    Raises
    ------
    IncompatibleIngredientsError
        Saying why.
    """
    if shared.features and first.random and first != second:
        raise IncompatibleIngredientsError(
            f"{shown(first)} and {shown(second)} are different random features, which two fits "
            "cannot share: let each fit draw its own, with independent='features'"
        )
    if not shared.features:
        for features in (first, second):
            features.check_redrawn()
    one = np.ones(1)
    data = [features.response(one, one) for features in (first, second)]
    if len({len(response.tau) for response in data}) > 1 or not all(
        np.allclose(getattr(data[0], name), getattr(data[1], name), rtol=ALIKE, atol=0.0)
        for name in ("share", "tau", "hidden")
    ):
        raise IncompatibleIngredientsError(
            f"{shown(first)} and {shown(second)} are features of different data: two fits see the "
            "same samples, whose covariance and teacher are one"
        )


def two_overlaps(
    first: Solved, second: Solved, shared: Shared
) -> tuple[TwoFits, Covariance, Certificate]:
    """What the predictions of two solved models share, with its certificate."""
    fits = TwoFits.of(first, second, shared)
    points = len(fits.gain)
    if shared.samples:
        C, certificate = solution(fits, points, first.problem.tolerances)
    else:
        zero, whole = np.zeros(points), np.zeros(points, np.intp)
        C, certificate = zero, Certificate(whole, zero, zero.copy(), zero.copy(), whole.copy())
    for own in (first, second):
        failed = (certificate.status == Status.CONVERGED) & (own.status != Status.CONVERGED)
        certificate.status[failed] = own.status[failed]
        for name in CERTIFICATES[1:-1]:
            setattr(certificate, name, np.fmax(getattr(certificate, name), getattr(own, name)))
        certificate.iterations = certificate.iterations + own.iterations
    return fits, fits.law(C), certificate


@dataclass(frozen=True)
class MeanOfTwo:
    """What to predict for the mean of two predictions: shares of the first, and what both share."""

    shares: tuple[float, ...]
    shared: Shared

    def __call__(
        self, solved: tuple[Solved, Solved], scales: tuple[float, float], request: Request
    ) -> tuple[Columns, Certificate]:
        """Errors and observables (points, shares), and how both predictions differ.

        Predictions are some `scales` times those of the solutions.
        """
        with np.errstate(all="ignore"):
            fits, law, certificate = two_overlaps(*solved, self.shared)
            if max(scales) >= HUGE:
                known = certificate.status == Status.CONVERGED
                certificate.status[known] = Status.NO_LIMIT
                scales = 1.0, 1.0
            found: dict[str, list[Array]] = {}
            for share in self.shares:
                channel, x, mean = _mean(fits, law, (share, 1.0 - share), scales)
                columns = {**new_errors(channel, x, mean), **request.observed(channel, x)}
                for name, values in columns.items():
                    found.setdefault(name, []).append(values)
            together = {name: np.stack(values, axis=1) for name, values in found.items()}
            s, t = scales
            channel, laws = fits.channels[0], score_laws_of_two(fits, law, scales)
            apart = {**differences(channel, laws), **distances(channel, laws)}
        return {**together, **apart, "overlap": s * t * law.Q}, certificate


def score_laws_of_two(fits: TwoFits, law: Covariance, scales: tuple[float, float]) -> Laws:
    """The laws of the scores of two fits, some scales times as large as those of the solutions."""
    s = np.array(scales)[:, None]
    shared, Q = s.prod() * law.Q, s**2 * fits.Q
    two = TwoScores(s * fits.b, Q, shared, Q - shared)
    return in_classes(fits.channels[0], two, s * fits.M)


def _mean(
    fits: TwoFits, law: Covariance, shares: tuple[float, float], scales: tuple[float, float]
) -> tuple[Channel, Array, Overlaps]:
    """The law of the mean of both predictions: a channel, unknowns there, and overlaps."""
    (first, second), (s, t) = fits.own, (a * b for a, b in zip(shares, scales, strict=True))

    def mixed(name: str, one: float, other: float) -> Array:
        """A quadratic form of one quantity; terms of no share may be infinite."""
        terms = (
            (one * one, getattr(first, name)),
            (other * other, getattr(second, name)),
            (2.0 * one * other, getattr(law, name)),
        )
        total: Array = sum((c * v for c, v in terms if c), np.zeros_like(law.Q))
        return total

    excess = mixed("excess", *shares) if scales == (1.0, 1.0) else first.excess
    mean = replace(
        first,
        Q=mixed("Q", s, t),
        M=s * first.M + t * second.M,
        deficit=mixed("deficit", s, t),
        excess=excess,
    )
    channel = replace(fits.channels[0], closed_form=False, free_intercept=True)
    return channel, unknowns_at(channel, mean, s * fits.b[0] + t * fits.b[1]), mean


def unknowns_at(channel: Channel, law: Overlaps, intercept: Array) -> Array:
    """The unknowns of a channel with a free intercept, of predictions of a law."""
    n = channel.overlap_unknowns
    x = np.zeros((len(intercept), n + 1))
    x[:, :n] = channel.coordinates(law)[0]
    constant = channel.constant_prediction or 0.0
    x[:, n] = (intercept - constant) / channel.intercept_unit(x)
    return x
