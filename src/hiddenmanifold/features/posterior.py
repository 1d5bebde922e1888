r"""Posterior of the teacher given the features: how much is learned and how much is not.

The best linear function of the features explains a fraction G of a latent direction; the G are the
eigenvalues of this map. If samples determine the visible part of the teacher with precision u, then
:math:`q/\rho = \langle uG^2/(1+uG)\rangle` is learned and :math:`V_0/\rho = \langle 1 - G +
G/(1+uG)\rangle` is not, on average over the d directions.

Precision acts like latent data of larger variance: if it is multiplied by :math:`\beta = 1 + u`,
the fraction G becomes :math:`R = \beta G/(1+uG)`, so that the averages are the sums of the features
with such a boost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.features.spectral_sums import FAINT, Sums
from hiddenmanifold.numerics.panels import gauss_legendre

if TYPE_CHECKING:
    from hiddenmanifold.features.base import Features

CANCELLING = 0.01
"""Relative size below which a difference of averages is integrated instead."""


@dataclass(frozen=True)
class Posterior:
    """How much of the teacher can be learned, at a batch of points."""

    directions: Array
    """Number of directions over which averages are taken, in units of p."""
    shown: Array
    """Average of G."""
    hidden: Array
    """Average of 1 - G."""

    def __getitem__(self, index: Integers) -> Self:
        columns = {name: getattr(self, name)[index] for name in ("directions", "shown", "hidden")}
        return replace(self, **columns)

    def log_odds_gap(self, log_u: Array) -> tuple[Array, Array]:
        r""":math:`w = \log(q/V_0) - \log u \le 0` and its derivative by log u."""
        raise NotImplementedError

    def free_entropy(self, log_u: Array) -> Array:
        r""":math:`\frac12\langle\frac{uG}{1+uG} - \log(1+uG)\rangle`."""
        raise NotImplementedError


@dataclass(frozen=True)
class LatentPosterior(Posterior):
    """The posterior of a teacher drawn from N(0, rho I) in the latent space, at a batch of d/p."""

    features: Features

    def boosted(self, boost: Array) -> Sums:
        """The sums at vanishing k, with the variance of latent data multiplied by `boost`."""
        return self.features.sums(np.full_like(boost, FAINT), self.directions, boost)

    @np.errstate(all="ignore")  # beyond 1e150 sums overflow; what is not finite is found
    def log_odds_gap(self, log_u: Array) -> tuple[Array, Array]:
        # w = log(A/B), A = q/ρu, B = V0/ρ: where all is visible these are almost equal, and their
        # difference is the average of (1 - G)(1 + G/(1 + uG))
        if self.features.noiseless:  # G is 1 or 0
            u, odds = np.exp(log_u), self.hidden / self.shown
            return -np.log1p(odds * (1.0 + u)), -odds * u / (1.0 + odds * (1.0 + u))
        enough = np.minimum(log_u, np.log(1e17 / self.hidden))  # beyond, all that is shown is known
        u = np.exp(enough)
        boost = 1.0 + u
        sums = self.boosted(boost)
        unknown, s2, s1 = sums.T1 / boost, sums.S / boost**2, sums.A / boost
        A, B = (self.shown - unknown) / u, self.hidden + unknown
        few = np.flatnonzero(self.shown - unknown < CANCELLING * self.shown)
        if few.size:
            A[few] = self[few].along(enough[few], lambda sums, boost: sums.S / boost) / u[few]
        w, dw = np.log(A / B), s2 / (A * B) - 1.0
        uncovered = (self.hidden - sums.U1) / u
        gap = self.hidden + uncovered
        close = (gap < 0.5 * B) & (u > 1.0)
        w[close] = np.log1p(-(gap / B)[close])
        dw[close] = ((uncovered - s1 - u * gap * s2 / B) / A)[close]
        return w - (log_u - enough), np.where(log_u > enough, -1.0, dw)

    def free_entropy(self, log_u: Array) -> Array:
        if self.features.noiseless:
            linear: Array = scipy.special.expit(log_u) - np.logaddexp(0.0, log_u)
            return 0.5 * self.shown * linear
        u = np.exp(log_u)
        known = u * self.boosted(1.0 + u).T1 / (1.0 + u)
        return 0.5 * (known - self.along(log_u, lambda sums, _: sums.T1))

    def along(self, log_u: Array, integrand: Callable[[Sums, Array], Array]) -> Array:
        r"""Integral over :math:`\log\beta` from 0 to :math:`\log(1+u)`, on panels of length ≤ 2.

        Sums vary with it over lengths of order one.
        """
        length = np.logaddexp(0.0, log_u)
        halvings = max(0, int(np.ceil(np.log2(max(length.max(), 1e-9) / 2.0))))
        total = np.zeros_like(length)
        for node, weight in zip(*gauss_legendre(10, halvings), strict=True):
            boost = np.exp(length * node)
            total += weight * integrand(self.boosted(boost), boost)
        return length * total


@dataclass(frozen=True)
class DiscretePosterior(Posterior):
    """Posterior of a teacher with independent coefficients, of variances G, along directions."""

    G: Array

    def _mean(self, values: Array) -> Array:
        """Average over directions, one of which is the unit of `directions`."""
        mean: Array = values.sum(-1) * (self.shown / self.G.sum())
        return mean

    @np.errstate(all="ignore")
    def log_odds_gap(self, log_u: Array) -> tuple[Array, Array]:
        u = np.exp(log_u)[:, None]
        known = self.G / (1.0 + u * self.G)
        A, B = self._mean(self.G * known), self.hidden + self._mean(known)
        slope = self._mean(known**2)
        falls = self._mean(self.G * known**2) / A
        return np.log(A / B), np.exp(log_u) * (slope / B - falls)

    def free_entropy(self, log_u: Array) -> Array:
        uG = np.exp(log_u)[:, None] * self.G
        return 0.5 * self._mean(uG / (1.0 + uG) - np.log1p(uG))
