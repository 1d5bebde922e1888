r"""Bias and variances of a fit: how much of its square error each source of randomness causes.

With covariances of two fits, named by what these share of features (F), inputs of the samples (X)
and noise of their labels (e), the mean square error of the score is the sum of

.. math:: Q - Q_{FX} \;(\text{noise}),\quad Q_{FX} - Q_X \;(\text{features}),\quad
    Q_X - Q_0 \;(\text{samples}),\quad E(\bar f - E[y|\nu])^2 \;(\text{bias}),\quad
    E\,\mathrm{Var}(y|\nu) \;(\text{irreducible}),

where :math:`\bar f`, of variance :math:`Q_0`, is the mean over all three. The interactions of the
sources are an analysis of variance of the same covariances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.pairs.mean_and_vote import new_errors, votes
from hiddenmanifold.theory.pairs.shared_overlaps import Shared, SharedOverlaps, shared_overlaps
from hiddenmanifold.theory.points import HUGE
from hiddenmanifold.theory.predictions import Request
from hiddenmanifold.theory.scores.square_errors import excess_of
from hiddenmanifold.theory.solver.certificate import Solved

PAIRS = {
    "FX": Shared(noise=False),
    "Xe": Shared(features=False),
    "X": Shared(features=False, noise=False),
    "F": Shared(samples=False),
    "0": Shared(features=False, samples=False),
}
"""What the fits of each pair share."""
MEANS = {
    "error_of_mean_over_features": "Xe",
    "error_of_mean_over_features_and_noise": "X",
    "error_of_mean_over_all": "0",
}
"""Errors of means over independent draws, and the pair that shares the rest."""


@dataclass(frozen=True)
class Variances:
    """Bias and variances at each point."""

    def __call__(self, solved: Solved, request: Request) -> Columns:
        """All variances, the covariances they are differences of, and errors of means."""
        channel = solved.problem.channel
        pairs = {name: shared_overlaps(solved, shared) for name, shared in PAIRS.items()}
        for pair in pairs.values():
            pair.certify(solved)
        with np.errstate(all="ignore"):
            scale = min(request.scale, HUGE)  # of scores that grow without bound
            found = {name: scale**2 * values for name, values in _parts(pairs).items()}
            found["bias"] = _bias(channel, pairs["0"], scale)
            found["irreducible_error"] = np.full(len(solved.x), channel.label_noise)
            ladder = ("noise_variance", "features_variance", "samples_variance", "bias")
            total = np.sum([found[name] for name in ladder], axis=0)
            found["mean_square_error"] = channel.label_noise + total
            if votes(channel):
                for name, shared in MEANS.items():
                    errors = new_errors(channel, pairs[shared].x, pairs[shared].law)
                    found[name] = errors["generalisation_error"]
        return found


def _parts(pairs: dict[str, SharedOverlaps]) -> Columns:
    """The variances that are differences of covariances."""
    Q = pairs["X"].own.Q
    q = {name: pair.law.Q for name, pair in pairs.items()}
    return {
        "noise_variance": Q - q["FX"],
        "features_variance": q["FX"] - q["X"],
        "samples_variance": q["X"] - q["0"],
        "variance_F": q["F"] - q["0"],
        "variance_X": q["X"] - q["0"],
        "variance_FX": q["FX"] - q["F"] - q["X"] + q["0"],
        "variance_Xe": q["Xe"] - q["X"],
        "variance_FXe": Q - q["FX"] - q["Xe"] + q["X"],
    }


def _bias(channel: Channel, pair: SharedOverlaps, scale: float) -> Array:
    """Mean square distance of the mean score from the mean label."""
    b = scale * channel.intercept(pair.x)
    if isinstance(channel, LinearChannel):
        bias: Array = pair.law.excess + (b - channel.teacher.law.mean) ** 2
        return bias
    return excess_of(channel.teacher, b, scale * pair.law.M, scale**2 * pair.law.Q)
