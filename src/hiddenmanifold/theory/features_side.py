r"""The features' side of the saddle point: overlaps from the channel averages.

With :math:`k = \lambda/(\alpha e_1)`, :math:`a = e_3/e_1`, :math:`N = e_2/(\alpha e_1^2)` and the
sums of ``spectral_sums`` at k,

.. math:: V = \frac{D_1}{\alpha e_1}, \quad M = \rho a T_1, \quad Q = N D_2 + \rho a^2 T_2, \quad
    q_w = \frac{N (D_1 - D_2) + \rho a^2 (T_1 - T_2)}{k},

and the two differences that matter when the teacher is almost learned are sums of non-negative
terms as well: :math:`\rho Q - M^2 = \rho N D_2 + \rho^2 a^2 W`, and :math:`\rho + Q - 2M = N D_2 +
\rho U_2` for linear labels, whose a is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.features import Features, SpectralArguments
from hiddenmanifold.theory.points import Points

LARGEST = 1e95
"""Beyond this k is infinite to any number of digits, and its third power still a number."""


@dataclass(frozen=True)
class Overlaps:
    """Overlaps of a batch of points; ``d<name>`` has the derivatives by (e1, e2, e3).

    ``deficit`` is rho Q - M²; ``excess`` is rho + Q - 2M, meaningful for linear labels only.
    """

    V: Array
    Q: Array
    q_w: Array
    M: Array
    deficit: Array
    excess: Array
    dV: Array
    dQ: Array
    dM: Array
    ddeficit: Array
    dexcess: Array


def spectral_arguments(points: Points, e: Array, rho: float) -> SpectralArguments:
    """Arguments of the features' sums, given channel averages (points, 3)."""
    alpha, (e1, e2, e3) = points.alpha, e[:, :3].T
    e1 = np.maximum(e1, points.lam / (alpha * LARGEST))
    k = points.lam / (alpha * e1)
    return SpectralArguments(k, alpha, points.gamma, e1, e2 / (alpha * e1**2), e3 / e1, rho)


def overlaps(features: Features, at: SpectralArguments) -> Overlaps:
    """Overlaps that follow from the channel averages."""
    alpha, e1, noise, a, rho = at.alpha, at.e1, at.noise, at.a, at.rho
    s = features.sums(at.k, at.gamma)
    D11, T11, D20, T20, W = s.D11, s.T11, s.D20, s.T20, s.W
    T1, ra, raa = T20 + T11, rho * a, rho * a**2
    responded, squared = alpha * e1, ra**2
    per_sample, zero = 1.0 / (alpha * e1**2), np.zeros_like(e1)
    # minus the derivative by log e1 of N D2, without the factor 2
    fall = noise * (D20 - s.D21)

    def gradient(by_log_e1: Array, by_e2: Array, by_e3: Array) -> Array:
        return np.array([by_log_e1 / e1, by_e2, by_e3]).T

    return Overlaps(
        V=(D20 + D11) / responded,
        Q=noise * D20 + raa * T20,
        q_w=(noise * D11 + raa * T11) / at.k,
        M=ra * T1,
        deficit=rho * noise * D20 + squared * W,
        excess=noise * D20 + rho * s.T02,
        dV=gradient(-D20 / responded, zero, zero),
        dQ=gradient(-2.0 * (fall + raa * (T20 - s.T21)), D20 * per_sample, 2.0 * ra * T20 / e1),
        dM=gradient(-ra * T20, zero, rho * T1 / e1),
        ddeficit=gradient(
            -2.0 * rho * fall - squared * (2.0 * W + s.dW),
            rho * D20 * per_sample,
            2.0 * rho**2 * a * W / e1,
        ),
        dexcess=gradient(-2.0 * (fall + rho * s.T12), D20 * per_sample, zero),
    )
