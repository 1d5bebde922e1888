r"""The features' side of the saddle point: overlaps as averages over the spectrum of F.

With :math:`\hat v = \alpha e_1`, :math:`\hat q = \alpha e_2`, :math:`\hat m = \alpha e_3`,
:math:`L = \lambda + \hat v\kappa_\star^2` and :math:`X = \hat v\kappa_1^2/L` (``docs/theory.md``)
every overlap is a sum of positive terms; so are the two differences that matter when the teacher
is almost learned,

.. math::
    \rho Q - M^2 &= \rho\,\hat q\,N + \rho^2 \hat m^2 \kappa_1^2
        \left[\kappa_1^2 \mathrm{Var}_d\frac{s}{1+Xs}
        + \kappa_\star^2 \Big\langle\frac{s}{(1+Xs)^2}\Big\rangle_d\right] \Big/ L^2, \\
    \rho + Q - 2M &= \hat q\,N + \rho\Big\langle
        \frac{1 + X s\,\hat v\kappa_\star^2/L}{(1+Xs)^2}\Big\rangle_d \quad (e_3 = e_1),

where :math:`\langle\cdot\rangle_d` averages over the d eigenvalues of :math:`FF^\top/d` and
:math:`N = \langle(\kappa_1^2 s + \kappa_\star^2)^2/(1+Xs)^2\rangle/L^2`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.model import Model
from hiddenmanifold.projections import Projection

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """What the theory knows of the features: spectrum, kappas, and the teacher's `rho`."""

    projection: Projection
    kappa_1: float
    kappa_star: float
    rho: float


def features_of(model: Model) -> Features:
    """What the spectral side knows of a model."""
    _, kappa_1, kappa_star = model.activation.kappas
    return Features(model.projection, kappa_1, kappa_star, model.teacher.rho)


@dataclass(frozen=True)
class Ratios:
    """The control parameters of a batch of points, arrays of one shape."""

    alpha: Array
    gamma: Array
    lam: Array

    def __getitem__(self, index: slice | NDArray[np.intp]) -> Ratios:
        return Ratios(self.alpha[index], self.gamma[index], self.lam[index])


@dataclass(frozen=True)
class Overlaps:
    """Overlaps of a batch of points; ``d<name>`` has the derivatives by (e1, e2, e3).

    ``deficit`` is rho Q - M²; ``excess`` is rho + Q - 2M, meaningful for linear labels only.
    """

    V: Array
    V_s: Array
    V_w: Array
    Q: Array
    q_s: Array
    q_w: Array
    M: Array
    deficit: Array
    excess: Array
    dV: Array
    dQ: Array
    dM: Array
    ddeficit: Array
    dexcess: Array


def overlaps(features: Features, ratios: Ratios, e: Array) -> Overlaps:
    """Overlaps that follow from the channel averages `e` = (e1, e2, e3), shape (points, 3)."""
    k1, ks, rho = features.kappa_1**2, features.kappa_star**2, features.rho
    alpha, gamma = ratios.alpha, ratios.gamma
    v_hat, q_hat, m_hat = alpha * e[:, 0], alpha * e[:, 1], alpha * e[:, 2]
    L = ratios.lam + v_hat * ks
    X = v_hat * k1 / L
    m = features.projection.moments(X, gamma)

    def by_v_hat(average: Array, slope: Array) -> Array:
        """Derivative by v_hat of average(X)/L², times L²."""
        return slope * (k1 * ratios.lam / L**2) - 2.0 * ks / L * average

    # averages of omega², s omega, with omega = k1 s + ks, over (1 + X s)²
    noise = k1**2 * m.c2 + 2 * k1 * ks * m.c1 + ks**2 * m.c0
    dnoise = by_v_hat(noise, k1**2 * m.dc2 + 2 * k1 * ks * m.dc1 + ks**2 * m.dc0)
    signal = k1 * m.c2 + ks * m.c1
    dsignal = by_v_hat(signal, k1 * m.dc2 + ks * m.dc1)
    spread = k1 * m.variance_d + ks * m.c1 / gamma
    dspread = by_v_hat(spread, k1 * m.dvariance_d + ks * m.dc1 / gamma)

    t = rho * m_hat * k1 / gamma
    c = (rho * m_hat) ** 2 * k1
    theta = v_hat * ks / L
    zero = np.zeros_like(L)

    def gradient(by_v: Array, by_q: Array, by_m: Array) -> Array:
        return alpha[:, None] * np.stack([by_v, by_q, by_m], axis=1)

    # d(theta X c1)/dv_hat = ks k1 d(v²c1/L²)/dv_hat
    dbias = (
        m.dc0_d * k1 * ratios.lam / L**2
        + ks * k1 / gamma * (2 * v_hat * m.c1 + v_hat**2 * by_v_hat(m.c1, m.dc1)) / L**2
    )
    return Overlaps(
        V=(k1 * m.b1 + ks * m.b0) / L,
        V_s=m.b1 / L,
        V_w=m.b0 / L,
        Q=(q_hat * noise + t * m_hat * signal) / L**2,
        q_s=(q_hat * signal + t * m_hat * m.c2) / L**2,
        q_w=(q_hat * (k1 * m.c1 + ks * m.c0) + t * m_hat * m.c1) / L**2,
        M=t * m.b1 / L,
        deficit=(rho * q_hat * noise + c * spread) / L**2,
        excess=q_hat * noise / L**2 + rho * (m.c0_d + theta * X * m.c1 / gamma),
        dV=gradient(-noise / L**2, zero, zero),
        dQ=gradient(
            (q_hat * dnoise + t * m_hat * dsignal) / L**2, noise / L**2, 2 * t * signal / L**2
        ),
        dM=gradient(-t * signal / L**2, zero, rho * k1 / gamma * m.b1 / L),
        ddeficit=gradient(
            (rho * q_hat * dnoise + c * dspread) / L**2,
            rho * noise / L**2,
            2 * rho**2 * m_hat * k1 * spread / L**2,
        ),
        dexcess=gradient(q_hat * dnoise / L**2 + rho * dbias, noise / L**2, zero),
    )
