r"""K ridge regressions on one-hot targets, in closed form: they share :math:`\kappa`.

With priors :math:`\Pi` and the label functions :math:`T_1, T_2` (K × K) of the class means, scores
of class c are :math:`f \sim N(b + M_c, Q)`,

.. math:: \lambda = \kappa(n - D_1), \quad M = \Pi T_1 (1 + \Pi T_1)^{-1}, \quad A = (J - M)\Pi,
    \quad R = \frac{(J - M)\Pi(J - M)^\top + A T_2 A^\top}{1 - D_2/n}, \quad
    Q = A T_2 A^\top + R D_2/n

with :math:`J = 1 - b 1^\top`, :math:`b = \pi` if the intercept is free and else 0; R is the second
moment of the residuals of new samples. In the basis of contrasts of :math:`\Pi^{1/2}` every matrix
is symmetric, and nothing is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.theory.classes import class_fluctuations
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.label_functions import LabelFunctions, LabelSums
from hiddenmanifold.theory.classes.score_law import FittedScores, ScoreLaw
from hiddenmanifold.theory.points import Limit, Points
from hiddenmanifold.theory.solver.settings import STANDARD

ROUNDING = 4e-15
"""Relative accuracy of k."""
FAR = 1e75
"""A k that is larger than all eigenvalues."""
ON_THE_LINE = 1e-9
"""Relative distance from the threshold that cannot be distinguished from zero."""
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Degrees:
    """Degrees of freedom, and the label functions where they are taken.

    `D11` is D1 - D2. At finite size they are those of all samples, and `inner` is the part of D2
    whose noise is that of the scores within classes; in the limit class means do not count.
    """

    labels: LabelSums
    D1: Array
    D2: Array
    D11: Array
    inner: Array

    @classmethod
    def of(
        cls, features: Features, labels: LabelFunctions, k: Array, gamma: Array, p: Array | None
    ) -> Degrees:
        """The sums of some features at k; p is the number of features, if that is finite."""
        s = features.sums(k, gamma)
        sums = labels.at(s, k)
        if p is None:
            return cls(sums, s.D1, s.D20, s.D11, s.D20)
        more_D1, more_D2 = (
            class_fluctuations.added_D1(sums, p),
            class_fluctuations.added_D2(sums, p),
        )
        D2 = s.D20 + more_D2
        inner = D2 - np.trace(class_fluctuations.inner_T2(sums), axis1=1, axis2=2) / p
        return cls(sums, s.D1 + more_D1, D2, s.D11 + more_D1 - more_D2, inner)


@dataclass(frozen=True)
class RidgeSolution:
    """The k that solves λ = k(n/p - D1(k)), the one equation of ridge regression.

    Attributes
    ----------
    k, samples : arrays (points,)
        The solution, and n/p; at finite size without the sample that an intercept takes.
    at : Degrees
        Degrees of freedom there.
    residual, rounding : arrays (points,)
        Distance of log k from the solution, and an estimate of the relative error of the overlaps,
        which is infinite at the threshold of interpolation.
    """

    k: Array
    samples: Array
    at: Degrees
    residual: Array
    rounding: Array

    @classmethod
    def of(
        cls,
        features: Features,
        labels: LabelFunctions,
        points: Points,
        counts: Counts | None = None,
        *,
        intercept: bool,
    ) -> RidgeSolution:
        """Solve the equation to rounding, in a bracket.

        Its k is at least λ p/n, and k D1 at most the sum of all eigenvalues, its limit at infinity.
        """
        lam, gamma = points.lam, points.gamma
        samples = points.alpha if counts is None else (counts.n - intercept) / counts.p

        def degrees(k: Array, index: Integers) -> Degrees:
            p = None if counts is None else counts.p[index]
            return Degrees.of(features, labels, k, gamma[index], p)

        def distance(log_k: Array, index: Integers) -> tuple[Array, Array]:
            """How far log k is from the solution: the slope magnifies the rounding of n/p - D1."""
            there = degrees(np.exp(log_k), index)
            left = samples[index] - there.D1
            slope = 1.0 + there.D11 / left
            gap = log_k + np.log(np.fmax(left, 0.0)) - np.log(lam[index])
            return np.where(left > 0.0, gap / slope, -np.inf), np.ones_like(slope)

        everyone = np.arange(len(points))
        with np.errstate(all="ignore"):
            most = FAR * degrees(np.full_like(lam, FAR), everyone).D1 * (1.0 + 1e-9)
            bracket = np.log(lam / samples), np.log((lam + most) / samples)
            log_k = increasing_root(distance, bracket, ROUNDING)
            residual = np.abs(distance(log_k, everyone)[0])
            at = degrees(np.exp(log_k), everyone)
            rounding = 4.0 * EPSILON * np.maximum(samples, at.D1) / np.abs(samples - at.D2)
        residual = np.where(residual < np.inf, residual, rounding)  # no sample is left, to rounding
        return cls(np.exp(log_k), samples, at, residual, rounding)


def square_fit(
    labels: LabelFunctions,
    points: Points,
    ridge: RidgeSolution,
    counts: Counts | None = None,
    *,
    intercept: bool,
) -> FittedScores:
    """The fit of classes with given label functions."""
    n, lam, at, T = ridge.samples, points.lam, ridge.at, ridge.at.labels
    kept = T.kept
    signal = kept @ T.T2 @ kept
    noise = (at.inner / n)[:, None, None]
    free = ((n - at.D2) / n)[:, None, None]
    residual = (kept @ kept + signal) / free
    # without an intercept the mean of the labels is a residual, too
    mean = labels.outer_shares / free if not intercept else 0.0
    R = labels.in_scores(residual) + mean
    Q = labels.in_scores(signal + noise * residual) + noise * mean
    weights = labels.in_scores(kept @ T.T11 @ kept)
    total = np.trace(R, axis1=1, axis2=2)
    q_w = (total * at.D11 / n + np.trace(weights, axis1=1, axis2=2)) / ridge.k
    shrinkage = lam / (ridge.k * n)  # 1 - D1/n, without its cancellation
    covariance = np.repeat(Q[:, None], labels.number, axis=1)
    if counts is not None:
        more = class_fluctuations.added_covariance(labels, T, counts, Q, R)
        covariance = covariance + more
    law = ScoreLaw(
        intercept=np.broadcast_to(labels.shares * intercept, (len(n), labels.number)),
        shift=labels.means(T.T1 @ kept),
        covariance=covariance,
    )
    squares = total if counts is None else total + np.einsum("pckk,c->p", more, labels.shares)
    return FittedScores(
        law=law,
        training_law=law.pulled(at.D1 / n, shrinkage),
        covariance=Q,
        test_loss=0.5 * squares,
        mean_square_error=squares,
        training_loss=0.5 * (shrinkage**2 * total * n + lam * q_w) / points.alpha,
        q_w=q_w,
        certificate=certificate_of(ridge, points),
    )


def certificate_of(ridge: RidgeSolution, points: Points) -> Columns:
    """Status and error estimates.

    Where λ → 0⁺ and as many features as samples are independent, errors diverge.
    """
    with np.errstate(all="ignore"):
        even = np.abs(np.log(ridge.at.D2 / ridge.samples)) < ON_THE_LINE
    status = np.where(ridge.rounding > STANDARD.conditioning, Status.ILL_CONDITIONED, 0)
    status = np.where(even & points.has(Limit.VANISHING), Status.THRESHOLD, status)
    return {
        "status": status.astype(np.int8),
        "residual": ridge.residual,
        "quadrature_error": np.zeros_like(ridge.k),
        "conditioning_error": ridge.rounding,
        "iterations": np.ones(len(ridge.k), dtype=np.intp),
    }
