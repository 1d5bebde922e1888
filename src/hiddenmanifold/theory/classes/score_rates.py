r"""Which of K normal scores is the highest, and how many exceed that of the own class.

Scores :math:`f \sim N(m, S)` are only compared with each other, so that a noise common to all of
them changes nothing. With such a noise the contrasts of f are those of :math:`m + s\xi + Lz`, where
the K components of :math:`\xi` are independent, :math:`s^2` is the least variance of a contrast and
:math:`LL^\top` is what S has beyond it. For symmetric classes L is zero and every rate is an
integral over one score; for three classes z is one number. Four classes or more need integrals of
K - 1 dimensions, by Sobol points (`orthants`), whose error is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.theory.classes.orthants import orthants, ranks

STEP = 0.25
"""Step of the trapezoidal sums over a score, in units of s: 1e-14 for K = 10, 4e-9 for K = 50."""
LOWEST, HIGHEST = -12.0, 9.0
"""Range of the highest score around the highest mean: rates down to 1e-30 come from within."""
FLOOR = 1e-10
"""Least s² in units of the largest variance of a contrast; it moves rates by about its size."""
NEGLIGIBLE = 1e-13
"""Variance beyond s², in units of the largest, that is rounding."""
WIDTH, STEPS = 8.5, tuple(0.5**k for k in range(1, 10))
"""Range and steps of the sums over one number z, each half of the one before."""
TOLERANCE = 1e-12
"""Change of a sum over z after which it is not refined."""
OWN, OWN_ERROR = tuple(2**k for k in range(7, 13)), 3e-5
"""Sobol points of each set, and absolute error, for the rate of the own score to be the highest.

The errors of K classes are independent, so that their mean is off by less."""
OTHERS = (2**8,)
"""The same for the other scores, of which there are K - 1 times as many; to some 1e-4."""
SEARCHED = (2**9,)
"""The same while the best λ is sought."""
RANKED = 2**11
"""The same for ranks, to some 1e-4 for five classes and 1e-3 for ten."""


@dataclass(frozen=True)
class Rates:
    """Probabilities of a batch of score laws, and estimates of their absolute errors.

    Attributes
    ----------
    wrong, wrong_error : arrays (laws,)
        Probability that the own score is not the highest.
    highest : array (laws, K)
        Probability that each score is the highest.
    beyond : array (laws, tops)
        Probability that the own score is not among the k highest, k = 1, 2, …
    error : array (laws,)
        The largest error of `highest` and `beyond`.
    """

    wrong: Array
    wrong_error: Array
    highest: Array
    beyond: Array
    error: Array


def rates(own: Integers, mean: Array, covariance: Array, tops: int) -> Rates:
    """The rates of laws with means (laws, K) and covariances (laws, K, K) of their scores.

    `own` (laws,) are the numbers of the scores that should be the highest.
    """
    highest, beyond, error, hard = _by_sums(own, mean, covariance, tops)
    found = Rates(beyond[:, 0].copy(), error.copy(), highest, beyond, error)
    if hard.size:
        _by_orthants(found, hard, own, mean, covariance)
    return found


def wrong_rates(
    own: Integers, mean: Array, covariance: Array, numbers: Sequence[int] = SEARCHED
) -> Array:
    """The probabilities alone that the own score is not the highest.

    They are smooth functions of the laws, as the points of their integrals are always the same.
    """
    _, beyond, _, hard = _by_sums(own, mean, covariance, 1)
    if hard.size:
        pairs = [_differences(int(own[i]), mean[i], covariance[i]) for i in hard]
        m, S = (np.array(part) for part in zip(*pairs, strict=True))
        beyond[hard, 0] = 1.0 - orthants(m, S, own[hard], numbers, 0.0)[0]
    wrong: Array = beyond[:, 0]
    return wrong


def _by_sums(
    own: Integers, mean: Array, covariance: Array, tops: int
) -> tuple[Array, Array, Array, Integers]:
    """The rates of laws that are sums over at most two scores, and which laws are not."""
    laws, K = mean.shape
    values, error = np.full((laws, K + tops), np.nan), np.full(laws, np.nan)
    hard = []
    for i in np.flatnonzero(np.isfinite(mean).all(1) & np.isfinite(covariance).all((1, 2))):
        s, L = _split(covariance[i])
        if s == 0.0:
            values[i], error[i] = _certain(int(own[i]), mean[i], tops), 0.0
        elif L.shape[1] < 2:
            m = (mean[i] - mean[i].max()) / s
            values[i], error[i] = _summed(int(own[i]), m, L / s, tops)
        else:
            hard.append(i)
    highest, beyond = values[:, :K], values[:, K:]
    # one minus the own rate, but a sum of small probabilities keeps its digits
    beyond[:, 0] = np.where(np.arange(K) == own[:, None], 0.0, highest).sum(1)
    return highest, beyond, error, np.array(hard, dtype=np.intp)


def _by_orthants(
    found: Rates, index: Integers, own: Integers, mean: Array, covariance: Array
) -> None:
    """Fill in the rates of some laws from integrals over K - 1 scores."""
    K, tops = mean.shape[1], found.beyond.shape[1]
    laws, score = np.repeat(index, K), np.tile(np.arange(K), len(index))
    pairs = [_differences(j, mean[i], covariance[i]) for i, j in zip(laws, score, strict=True)]
    m, S = (np.array(part) for part in zip(*pairs, strict=True))
    # every class has points of its own: the errors of common ones would add up
    mine, keys = score == own[laws], K * own[laws] + score
    value, error = np.empty((2, len(laws)))
    value[mine], error[mine] = orthants(m[mine], S[mine], keys[mine], OWN, OWN_ERROR)
    value[~mine], error[~mine] = orthants(m[~mine], S[~mine], keys[~mine], OTHERS, 0.0)
    by_law = error.reshape(-1, K)
    found.highest[index] = value.reshape(-1, K)
    others = np.sqrt(np.where(mine.reshape(-1, K), 0.0, by_law**2).sum(1))
    summed = value.reshape(-1, K).sum(1) - value[mine]
    direct = error[mine] <= others
    found.wrong[index] = np.where(direct, 1.0 - value[mine], summed)
    found.wrong_error[index] = np.where(direct, error[mine], others)
    found.error[index] = by_law.max(1)
    for row, i in enumerate(index):
        if tops > 1:
            at = row * K + int(own[i])
            found.beyond[i], size = ranks(m[at], S[at], int(keys[at]) + K * K, tops, RANKED)
            found.error[i] = max(found.error[i], size)
    found.beyond[index, 0] = found.wrong[index]


def _split(S: Array) -> tuple[float, Array]:
    """The deviation s that all contrasts have at least, and L with what they have beyond it."""
    K = len(S)
    centring = np.eye(K) - 1.0 / K
    values, vectors = np.linalg.eigh(centring @ (0.5 * (S + S.T)) @ centring)
    common = np.abs(vectors.sum(0)).argmax()  # the common direction, of variance zero
    values, vectors = np.delete(values, common), np.delete(vectors, common, axis=1)
    largest = max(float(values.max()), 0.0)
    least = max(float(values.min()), FLOOR * largest)
    beyond = values - least
    kept = beyond > NEGLIGIBLE * largest
    return float(np.sqrt(least)), vectors[:, kept] * np.sqrt(beyond[kept])


def _certain(own: int, m: Array, tops: int) -> Array:
    """The rates of scores without variance; equal ones share their places."""
    highest = (m == m.max()) / (m == m.max()).sum()
    above, equal = int((m > m[own]).sum()), int((m == m[own]).sum())
    places = np.clip((above + equal - 1.0 - np.arange(tops)) / equal, 0.0, 1.0)
    return np.concatenate([highest, places])


def _summed(own: int, m: Array, L: Array, tops: int) -> tuple[Array, float]:
    """The rates, in units of s, by sums over at most one z: refined until they do not change.

    Halving the step of a trapezoidal sum of a smooth function squares its error, about.
    """
    if not L.size:
        values = _given(own, m[None], tops)[0]
        return values, abs(float(values[: len(m)].sum()) - 1.0)
    last, change = np.full(len(m) + tops, np.nan), np.inf
    for step in STEPS:
        z = np.arange(-WIDTH, WIDTH + step, step)
        weights = np.exp(-0.5 * z**2) * (step / np.sqrt(2.0 * np.pi))
        values = weights @ _given(own, m + z[:, None] * L.T, tops)
        change = float(np.abs(values - last).max(initial=0.0))
        last = values
        if change <= TOLERANCE:
            break
    return last, change + abs(float(last[: len(m)].sum()) - 1.0)


def _given(own: int, m: Array, tops: int) -> Array:
    """The rates (Z, K + tops) of independent scores of variance 1 around means (Z, K)."""
    from scipy.special import ndtr

    t = np.arange(LOWEST, HIGHEST + STEP, STEP)
    x = m.max(1)[:, None, None] + t[:, None]  # the highest score
    below = ndtr(x - m[:, None])
    density = np.exp(-0.5 * (x - m[:, None]) ** 2) * (STEP / np.sqrt(2.0 * np.pi))
    highest = (below.prod(2)[..., None] * density / below).sum(1)
    t = np.arange(-HIGHEST, HIGHEST + STEP, STEP)
    above = ndtr(np.delete(m, own, axis=1)[:, None] - (m[:, own, None, None] + t[:, None]))
    count = np.zeros((tops, *above.shape[:2]))  # probability of 0, 1, … scores above the own
    count[0] = 1.0
    for k in range(above.shape[2]):
        p = above[..., k]
        count[1:] = count[1:] * (1.0 - p) + count[:-1] * p
        count[0] *= 1.0 - p
    weights = np.exp(-0.5 * t**2) * (STEP / np.sqrt(2.0 * np.pi))
    beyond = 1.0 - np.cumsum(count @ weights, axis=0)
    return np.concatenate([highest, np.clip(beyond, 0.0, 1.0).T], axis=1)


def _differences(one: int, m: Array, S: Array) -> tuple[Array, Array]:
    """Mean and covariance of the other scores minus one."""
    D = np.delete(np.eye(len(m)), one, axis=0)
    D[:, one] = -1.0
    return D @ m, D @ S @ D.T
