r"""The scores of training samples of softmax regression, and averages over them, as matrices.

Scores are described by their K - 1 contrasts, :math:`f = P\omega` with orthonormal P. Those of a
training sample minimise, at given :math:`\omega` of the fit without it,

.. math:: \log\sum_k e^{\eta_k} - \eta_y + \tfrac12 u^2, \qquad \eta = P(\omega + V^{1/2}u),

with the gradient :math:`g = P^\top(y - s)` at the probabilities s, and the curvature :math:`H =
P^\top(\mathrm{diag}\,s - ss^\top)P`. Sums of small probabilities keep their digits, as all terms of
the averages are positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.numerics.small_systems import factors, solutions

TURNS = 60
"""Newton steps of a sample: five are usual, and ten from a far start."""
CLOSE = 1e-7
"""Longest last step in a score: the error is its square."""
CERTAIN = 1.0
"""Longest step in a score that is taken as it is: within it the curvature hardly changes."""
FAR = 1e18
"""A step in a score beyond which no place is found to within CERTAIN."""
TOGETHER = 2**11
"""Samples that are computed together: their matrices should stay in the cache."""


@dataclass(frozen=True)
class ScoreLaws:
    """Normal contrasts of the scores of each class, and points of the standard normal law.

    Attributes
    ----------
    contrasts : array (K, m)
        The orthonormal P, m = K - 1.
    shares : array (K,)
        Probabilities of the classes.
    nodes, weights : arrays (K, points, m), (points,)
        Points of each class, and what each counts.
    """

    contrasts: Array
    shares: Array
    nodes: Array
    weights: Array

    def omega(self, mean: Array, root: Array) -> Array:
        """Contrasts (m, samples) of all classes, one after another; means are (K, m)."""
        m = self.contrasts.shape[1]
        found: Array = (self.nodes @ root.T + mean[:, None]).reshape(-1, m).T
        return found

    @property
    def y(self) -> Integers:
        """The classes of all samples."""
        return np.repeat(np.arange(len(self.shares)), len(self.weights))

    @property
    def each(self) -> Array:
        """What each sample counts."""
        return np.outer(self.shares, self.weights).ravel()


@dataclass(frozen=True)
class TrainingAverages:
    r"""Averages over training samples.

    Attributes
    ----------
    E1, E2 : arrays (m, m)
        Means of :math:`H(1 + VH)^{-1}` and of :math:`gg^\top`.
    pull : array (K, m)
        Mean of g in each class.
    loss, wrong : float
        Mean loss of training samples, and how often their highest score is not the own one.
    u : array (m, samples)
        Where the scores moved, from which to start the next time.
    """

    E1: Array
    E2: Array
    pull: Array
    loss: float
    wrong: float
    u: Array


def training_averages(laws: ScoreLaws, V: Array, omega: Array, u: Array | None) -> TrainingAverages:
    """Averages over training samples of given contrasts without them."""
    K, m = laws.contrasts.shape
    root = symmetric_root(V)
    y, each = laws.y, laws.each
    E1, E2, pull = np.zeros((m, m)), np.zeros((m, m)), np.zeros((K, m))
    loss, wrong = 0.0, 0.0
    u = np.zeros_like(omega) if u is None else u
    moved = np.empty_like(u)
    for start in range(0, len(y), TOGETHER):
        some = slice(start, start + TOGETHER)
        batch = Batch(
            laws.contrasts, laws.contrasts @ root, laws.contrasts @ omega[:, some], y[some]
        )
        moved[:, some], eta, t, S, L = batch.solved(u[:, some])
        weight = each[some]
        g = laws.contrasts.T @ t
        E1 += solutions(L, S) @ weight
        E2 += (g * weight) @ g.T
        np.add.at(pull, y[some], (g * weight).T)
        high = eta.max(0)
        own = eta[y[some], np.arange(len(weight))]
        loss += float(weight @ (np.log(np.exp(eta - high).sum(0)) + (high - own)))
        wrong += float(weight @ (own < high))
    inverse = np.linalg.inv(root)
    E1 = inverse @ (0.5 * (E1 + E1.T)) @ inverse
    return TrainingAverages(E1, E2, pull / laws.shares[:, None], loss, wrong, moved)


@dataclass(frozen=True)
class Batch:
    r"""Some samples: contrasts P, the matrix :math:`B = PV^{1/2}`, scores (K, samples), classes."""

    contrasts: Array
    B: Array
    scores: Array
    y: Integers

    def solved(self, u: Array) -> tuple[Array, Array, Array, Array, Array]:
        r"""The minimisers u, scores, y - s, :math:`S = B^\top HB`, and factors of 1 + S."""
        for _ in range(TURNS):
            eta, t, _, L = self._at(u)
            step = solutions(L, (self.B.T @ t - u)[:, None])[:, 0]
            move = self.B @ step
            size = np.abs(move).max(0)
            u = u + step * self._lengths(u, eta, step, move, size)
            if not size.max() > CLOSE:
                break
        eta, t, S, L = self._at(u)
        return u, eta, t, S, L

    def _lengths(self, u: Array, eta: Array, step: Array, move: Array, size: Array) -> Array:
        """How far along each Newton step the objective is least, to within CERTAIN in a score.

        Short steps are taken as they are. Long ones may lead beyond the scores where the curvature
        is, and back again.
        """
        length = np.ones_like(size)
        far = np.flatnonzero(size > CERTAIN)
        if not far.size:
            return length
        part = Batch(self.contrasts, self.B, self.scores[:, far], self.y[far])
        u, eta, step, move = u[:, far], eta[:, far], step[:, far], move[:, far]

        def rises(at: Array) -> Booleans:
            t, _ = part.slopes(eta + at * move)
            found: Booleans = (step * (u + at * step)).sum(0) > (move * t).sum(0)
            return found

        low, high = np.zeros(len(far)), np.ones(len(far))
        low = np.where(rises(high), low, high)
        for _ in range(1 + int(np.log2(min(float(size[far].max()), FAR) / CERTAIN))):
            middle = 0.5 * (low + high)
            beyond = rises(middle)
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        length[far] = high
        return length

    def _at(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """Scores, y - s, S and the factors of 1 + S at some u."""
        eta = self.scores + self.B @ u
        t, s = self.slopes(eta)
        S = self.curved(s)
        return eta, t, S, factors(np.eye(len(u))[..., None] + S)

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """Y - s, with the digits of small entries, and the probabilities s."""
        s = np.exp(eta - eta.max(0))
        s /= s.sum(0)
        t, rows = -s, np.arange(s.shape[1])
        t[self.y, rows] = 0.0
        t[self.y, rows] = -t.sum(0)
        return t, s

    def curved(self, s: Array) -> Array:
        """S (m, m, samples) at probabilities (K, samples)."""
        m = self.B.shape[1]
        centre = self.B.T @ s
        S = ((self.B[:, :, None] * self.B[:, None, :]).reshape(len(s), -1).T @ s).reshape(m, m, -1)
        return S - centre[:, None] * centre


def symmetric_root(matrix: Array) -> Array:
    """The symmetric square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    found: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return found


def contrasts_of(number: int) -> Array:
    """An orthonormal basis P (K, K - 1) of the differences of K scores."""
    found: Array = np.linalg.svd(np.ones((number, 1)))[0][:, 1:]
    return found
