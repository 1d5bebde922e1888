r"""One pass of stochastic gradient descent, in which every sample is used once, for one step.

The step :math:`w \leftarrow w + \eta\,(y - f)\,x/\sqrt p` with a fresh sample makes the error in a
direction of eigenvalue w decay at the rate :math:`2\eta w`, and adds :math:`\eta^2 w E` to it. The
Laplace transform over steps solves this by the features' sums at :math:`\kappa = s/2\eta`:

.. math:: s\hat E = \frac{v_y - T_1(\kappa)}{1 - \frac\eta2 N}, \qquad
    N = \sum_i w_i - \kappa D_1(\kappa),

with the variances :math:`v_y` of the labels and :math:`T_1` of what is seen of them, and

.. math:: M \propto T_1(2\kappa), \quad
    s\hat Q = 2T_1(2\kappa) - T_1(\kappa) + \tfrac\eta2\,N\,s\hat E, \quad
    s\widehat{|w|^2} = \frac{T_1(\kappa) - T_1(2\kappa)}\kappa + \tfrac\eta2\,D_1\,s\hat E.

There is no time beside the number of samples. These are the equations of many directions, each of
which is learned in many steps, :math:`\eta w_i \ll 1`.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Numbers, chunks, joined
from hiddenmanifold.features import Features
from hiddenmanifold.model import Model
from hiddenmanifold.theory.labels_side.kinds import channel_of
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.training.ridge_sums import ROUNDING, Labels
from hiddenmanifold.theory.training.rules import contour
from hiddenmanifold.theory.training.trajectory import blanked, labels_of, quantities

TOGETHER = 1000
"""Points that are computed together, which bounds the memory."""


def trained_in_one_pass(model: Model, points: Points, step: Array) -> Columns:
    """Every predicted quantity after one step for each of n samples, from zero weights.

    The training loss is the mean loss of samples just before they are used.
    """
    parts = []
    for some in chunks(np.arange(len(points)), TOGETHER):
        with np.errstate(all="ignore"):
            found = _overlaps(
                model.features, labels_of(channel_of(model)), points[some], step[some]
            )
            parts.append(quantities(model, points[some], found))
    largest = np.full(len(points), 2.0 / model.features.variance)
    return {**blanked(joined(parts), step < largest), "largest_step": largest}


def largest_share(features: Features, gamma: Array) -> Array:
    """The largest eigenvalue of the features' kernel; zero if there are infinitely many of them."""
    if features.fixed_dimension is None:
        return np.zeros_like(gamma)
    return features.largest(gamma) * gamma / features.fixed_dimension


def _overlaps(features: Features, labels: Labels, points: Points, step: Array) -> Columns:
    """Overlaps after the pass, with their rounding errors."""
    v, c = contour()
    b, eta = -c / v, step[:, None]
    k = v / (2.0 * points.alpha[:, None] * eta)  # in the limit p times κ
    D1, T1, U1 = _one_point(features, k, points.gamma)
    _, T1_twice, _ = _one_point(features, 2.0 * k, points.gamma)
    slope, slope_twice = labels.slope_of(T1), labels.slope_of(T1_twice)
    M = labels.rho * slope_twice * T1_twice
    seen, seen_twice = labels.slope * labels.rho * slope * T1, labels.slope * M
    N = features.variance - k * D1
    share = 0.5 * eta / (1.0 - 0.5 * eta * N)
    missed = labels.missed(slope, U1)
    error = (missed + labels.noise) / (1.0 - 0.5 * eta * N)
    terms = {
        "excess": missed + share * N * (missed + labels.noise),
        "M": M,
        "Q": 2.0 * seen_twice - seen + share * N * (missed + labels.noise),
        "q_w": (seen - seen_twice) / k + share * D1 * (missed + labels.noise),
        "training_square": error / v,
    }
    found = {name: 2.0 * (b * values).sum(1).real for name, values in terms.items()}
    sizes = {name: 2.0 * np.abs(b * values).sum(1) for name, values in terms.items()}
    second = labels.variance if labels.classes else 0.0
    found["Q"] = found["Q"] - second * found["M"] ** 2
    found["deficit"] = found["Q"] - found["M"] ** 2 / labels.rho
    sizes["deficit"] = sizes["Q"]
    return found | {f"{name}_size": ROUNDING * sizes[name] for name in ("excess", "Q", "deficit")}


def _one_point(features: Features, k: Numbers, gamma: Array) -> tuple[Numbers, Numbers, Numbers]:
    """D1, T1 and its complement at arguments (points, nodes)."""
    flat = k.ravel()
    sums = features.pair_sums(flat, flat, np.repeat(gamma, k.shape[1]))
    D1, T1, U1 = (np.reshape(part, k.shape) for part in (sums.D1, sums.T1, sums.U1))
    return D1, T1, U1
