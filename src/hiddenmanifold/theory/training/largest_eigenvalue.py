r"""The largest eigenvalue of :math:`XX^\top/p` of the training samples, which limits a step.

It is the edge of the spectrum in the limit, or that of the direction along which classes differ,
if this lies beyond the edge (Baik, Ben Arous and Péché): classes add the direction
:math:`u\mu\mu^\top` to the covariance of the features, and a negative k beyond the edge belongs to
an eigenvalue if :math:`1 + u\rho T_1(k) = 0`.

Not included is the eigenvalue that even activations have from the length of inputs: its fluctuation
moves all features together, by their quadratic part, which Gaussian features do not have.
At finite size the largest eigenvalue scatters around it by a relative :math:`O(n^{-2/3})`, and a
single direction of the features that is far larger than all others lies beyond it.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.features import Features
from hiddenmanifold.features.chain import BEYOND, Chain, edge
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.theory.training.ridge_sums import Labels, sampled

TOLERANCE = 1e-13
"""Distance from one at which the classes explain all of a direction."""


def largest_eigenvalue(features: Features, labels: Labels, alpha: Array, gamma: Array) -> Array:
    """The largest eigenvalue at each n/p and d/p; samples are random projections of features."""
    pairs = np.stack([alpha, gamma], axis=1)
    distinct, same = np.unique(pairs, axis=0, return_inverse=True)
    a, g = distinct.T

    def chains(some: Integers) -> Chain:
        return sampled(features, a[some], g[some])

    def unseen(log_u: Array, some: Integers) -> tuple[Array, Array]:
        """Zero at the argument of the direction of the classes."""
        arguments = chains(some).outwards(-np.exp(log_u)).k
        chain = features.chain(g[some])
        at = chain.located(arguments[:-1])
        value = 1.0 + labels.slope * labels.rho * chain.pair_sums(at, at).T1
        return np.where(np.isnan(value), -1.0, value), np.full_like(value, np.nan)

    whole = chains(np.arange(len(a)))
    with np.errstate(all="ignore"):
        u = edge(chains, whole.largest)
        if labels.classes:
            log = np.log(u)
            u = np.exp(increasing_root(unseen, (log, log + BEYOND), TOLERANCE))
        found: Array = (-a * whole.outwards(-u).k[-1])[same.ravel()]
    return found
