r"""What features show of the teacher, to someone who knows F and has learned as much as can be.

A latent direction of eigenvalue s of :math:`FF^\top/d` is visible to a fraction :math:`G = Xs/(1 +
Xs)`, :math:`X = \kappa_1^2/\kappa_\star^2`. If samples determine the teacher with precision u along
what is visible, then :math:`q/\rho = \langle uG^2/(1+uG)\rangle_d` is learned and :math:`V_0/\rho =
\langle 1 - G + G/(1+uG)\rangle_d` is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hiddenmanifold.numerics.panels import gauss_legendre
from hiddenmanifold.projections import Moments, Projection
from hiddenmanifold.theory.separability import fractions
from hiddenmanifold.theory.spectral import Features

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

CANCELLING = 0.01
"""Relative size below which a difference of averages is integrated instead."""


@dataclass(frozen=True)
class Sight:
    """What the features show of the teacher, at a batch of gamma.

    ``snr`` is X = κ1²/κ⋆², infinite for linear features; ``shown`` and ``hidden`` are the averages
    of G and of 1 - G.
    """

    projection: Projection
    snr: float
    gamma: Array
    shown: Array
    hidden: Array

    @classmethod
    def of(cls, features: Features, gamma: Array) -> Sight:
        """The sight of features with κ1 ≠ 0."""
        snr = (features.kappa_1 / features.kappa_star) ** 2 if features.kappa_star else np.inf
        return cls(features.projection, snr, gamma, *fractions(features, gamma))

    def __getitem__(self, index: Integers) -> Sight:
        return Sight(
            self.projection, self.snr, self.gamma[index], self.shown[index], self.hidden[index]
        )

    @np.errstate(all="ignore")  # beyond 1e150 moments overflow; what is not finite is found
    def contrast(self, log_u: Array) -> tuple[Array, Array]:
        r""":math:`w = \log(q/V_0) - \log u \le 0` and its derivative by log u.

        :math:`w = \log(A/B)`, :math:`A = q/\rho u`, :math:`B = V_0/\rho`. With :math:`X_1 =
        X(1+u)`, :math:`r = 1/(1+Xs)` and :math:`r_1 = 1/(1+X_1s)` they are averages of
        :math:`Xs(1-r)r_1` and of :math:`r + Xsr_1`. Where all is visible these are almost equal;
        their difference is that of :math:`r + Xsrr_1 = r + (r-r_1)/u`.
        """
        if np.isinf(self.snr):  # G is 1 or 0
            u, odds = np.exp(log_u), self.hidden / self.shown
            return -np.log1p(odds * (1.0 + u)), -odds * u / (1.0 + odds * (1.0 + u))
        enough = np.minimum(log_u, np.log(1e17 / self.hidden))  # beyond, all that is shown is known
        u = np.exp(enough)
        m = self.projection.moments(self.snr * (1.0 + u), self.gamma)
        s1, s2 = self.snr * m.c1 / self.gamma, self.snr**2 * m.c2 / self.gamma
        unknown = self.snr * m.b1 / self.gamma
        A, B = (self.shown - unknown) / u, self.hidden + unknown
        few = np.flatnonzero(self.shown - unknown < CANCELLING * self.shown)
        if few.size:
            A[few] = self[few].along(enough[few], lambda m, X: self.snr * X * m.c2) / u[few]
        w, dw = np.log(A / B), s2 / (A * B) - 1.0
        uncovered = (self.hidden - (m.c0_d + (1.0 + u) * s1)) / u
        gap = self.hidden + uncovered
        close = (gap < 0.5 * B) & (u > 1.0)
        w[close] = np.log1p(-(gap / B)[close])
        dw[close] = ((uncovered - s1 - u * gap * s2 / B) / A)[close]
        return w - (log_u - enough), np.where(log_u > enough, -1.0, dw)

    def free_entropy(self, log_u: Array) -> Array:
        r""":math:`\frac12\langle\frac{uG}{1+uG} - \log(1+uG)\rangle_d`."""
        if np.isinf(self.snr):
            linear: Array = special.expit(log_u) - np.logaddexp(0.0, log_u)
            return 0.5 * self.shown * linear
        u = np.exp(log_u)
        known = u * self.snr * self.projection.moments(self.snr * (1.0 + u), self.gamma).b1
        return 0.5 * (known / self.gamma - self.along(log_u, lambda m, X: X * m.b1))

    def along(self, log_u: Array, integrand: Callable[[Moments, Array], Array]) -> Array:
        r"""Integral over :math:`\log X` from X to :math:`X_1 = X(1+u)`, on panels of length ≤ 2.

        Averages of a function of Xs vary with log X over lengths of order one.
        """
        length = np.logaddexp(0.0, log_u)
        halvings = max(0, int(np.ceil(np.log2(max(length.max(), 1e-9) / 2.0))))
        total = np.zeros_like(length)
        for node, weight in zip(*gauss_legendre(10, halvings), strict=True):
            X = self.snr * np.exp(length * node)
            total += weight * integrand(self.projection.moments(X, self.gamma), X)
        return length * total / self.gamma
