r"""The largest eigenvalue of :math:`XX^\top/p` of the training samples, which limits a step.

It is the edge of the spectrum in the limit. At finite size the largest eigenvalue scatters around
it by a relative :math:`O(n^{-2/3})`, and a single direction of the features that is far larger than
all others lies beyond it.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.features import Features
from hiddenmanifold.features import kernel_arguments as arguments


def largest_eigenvalue(features: Features, alpha: Array, gamma: Array) -> Array:
    """The edge at each n/p and d/p; the samples are random projections of the features."""
    pairs = np.stack([alpha, gamma], axis=1)
    distinct, same = np.unique(pairs, axis=0, return_inverse=True)
    a, g = distinct.T
    edge = arguments.largest_eigenvalue(
        lambda at, other, some: features.pair_sums(at, other, g[some]),
        arguments.of_normal_features(a),
        features.largest(g),
    )
    found: Array = (a * edge)[same.ravel()]
    return found
