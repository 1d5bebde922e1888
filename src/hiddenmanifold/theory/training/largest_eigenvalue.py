r"""The largest eigenvalue of :math:`XX^\top/p` of the training samples, which limits a step.

It is the edge of the spectrum in the limit, or that of the direction along which classes differ,
if this lies beyond the edge (Baik, Ben Arous and Péché): classes add the direction
:math:`u\mu\mu^\top` to the covariance of the features, and a negative k beyond the edge belongs to
an eigenvalue if :math:`1 + u\rho T_1(k) = 0`.

At finite size the largest eigenvalue scatters around it by a relative :math:`O(n^{-2/3})`, and a
single direction of the features that is far larger than all others lies beyond it.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.features import Features
from hiddenmanifold.features import kernel_arguments as arguments
from hiddenmanifold.features.pair_sums import PairSums
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.theory.training.ridge_sums import Labels


def largest_eigenvalue(features: Features, labels: Labels, alpha: Array, gamma: Array) -> Array:
    """The largest eigenvalue at each n/p and d/p; samples are random projections of features."""
    pairs = np.stack([alpha, gamma], axis=1)
    distinct, same = np.unique(pairs, axis=0, return_inverse=True)
    a, g = distinct.T
    samples = arguments.of_normal_features(a)

    def below(at: Array, other: Array, some: Integers) -> PairSums:
        return features.pair_sums(at, other, g[some])

    def unseen(log_k: Array, some: Integers) -> tuple[Array, Array]:
        """Zero at the argument of the direction of the classes."""
        k = -np.exp(log_k)
        value = 1.0 + labels.slope * labels.rho * below(k, k, some).T1
        return np.where(np.isnan(value), -1.0, value), np.full_like(value, np.nan)

    with np.errstate(all="ignore"):
        k = arguments.edge(below, samples, features.largest(g))
        if labels.classes:
            log = np.log(k)
            k = np.exp(increasing_root(unseen, (log, log + arguments.BEYOND), arguments.ROUNDING))
        ratio, _ = arguments.stretched(below, samples, -k, np.arange(len(k)))
        found: Array = (a * k * ratio)[same.ravel()]
    return found
