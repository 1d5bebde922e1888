r"""Rates of errors of classes that are the largest of K fields, which may be noisy.

The pairs of a score :math:`f_k = m\nu_k + s\xi_k` and of the noisy field :math:`u_k = \nu_k +
T\zeta_k` of a class are independent of those of the others, and all alike. With their
distribution function H, the class of highest u has the highest score, with an own score that is
moved by v, with probability

.. math:: K \int p(f, u)\, H(f + v, u)^{K-1}\, df\, du,

and j of the K - 1 other scores are above it with probability :math:`\binom{K-1}j
(P(u' < u) - H)^j H^{K-1-j}` given f and u. Without noise H is a normal distribution function of two
variables, Owen's; else it is a sum over fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.teachers.gumbel_noise import WIDTH, gumbel, normal_grid, score_grid

STEPS = (0.35, 0.25)
"""Steps of sums in units of the length over which functions vary; the change is the error."""
LEAST = 0.02
"""Least s of noisy labels, in units of the deviation of a score: below, a rate is that at it."""


@dataclass(frozen=True)
class FieldScores:
    """The scores of a point given the fields, in units of their deviation.

    Attributes
    ----------
    number : int
        Number of classes.
    m, s : float
        Coefficient of the field, and deviation of the rest.
    temperature : float
        That of the labels, zero if they are not noisy.
    """

    number: int
    m: float
    s: float
    temperature: float

    def wrong_tops(self, tops: int, moved: float = 0.0) -> tuple[Array, float]:
        """Probability that k or more scores are above the own one, k = 1, …, and its error."""
        if not (np.isfinite(self.m) and np.isfinite(self.s) and np.isfinite(moved)):
            return np.full(tops, np.nan), np.nan
        if self.s <= 0.0 and self.m <= 0.0:
            return 1.0 - np.arange(1.0, tops + 1.0) / self.number, 0.0
        scale = float(np.hypot(self.m, self.s))
        s = self.s / scale
        least = LEAST if self.temperature else 0.0
        own = FieldScores(self.number, self.m / scale, max(s, least), self.temperature)
        coarse, fine = (own._tops(tops, moved / scale, step) for step in STEPS)
        error = float(np.abs(fine - coarse).max())
        if s < least:  # rates are functions of s², as long as it is below the noise of labels
            more = replace(own, s=1.5 * least)._tops(tops, moved / scale, STEPS[1])
            error += float(np.abs(more - fine).max())
        return fine, error

    def _tops(self, tops: int, moved: float, step: float) -> Array:
        """The same for scores of variance one, by sums of some step."""
        within = np.zeros(tops)
        parts = self._hot(moved, step) if self.temperature else self._cold(moved, step)
        for weight, below, both in parts:
            each, choices = below ** (self.number - 1.0), 1.0
            # of binomial terms, by ratios of successive ones
            share = np.clip(both / np.maximum(below, 1e-300), 0.0, 1.0)
            total = 0.0
            for j in range(tops):
                term = choices * share ** (self.number - 1.0 - j) * (1.0 - share) ** j
                total += self.number * float((weight * each * term).sum())
                within[j] += total
                choices *= (self.number - 1.0 - j) / (j + 1.0)
        return np.clip(1.0 - within, 0.0, 1.0)

    def _cold(self, moved: float, step: float) -> Iterator[tuple[Array, Array, Array]]:
        """Weights, P(u' < u) and H on a grid of fields and of the rest of scores."""
        from scipy.special import ndtr

        nu, weights = normal_grid(step)
        f = self.m * nu[:, None] + self.s * nu
        yield (
            np.outer(weights, weights),
            ndtr(nu)[:, None],
            both_below(f + moved, nu[:, None], self),
        )

    def _hot(self, moved: float, step: float) -> Iterator[tuple[Array, Array, Array]]:
        """The same on a grid of scores and of noisy fields."""
        from scipy.special import ndtr

        T, s = self.temperature, self.s
        fields, weights = normal_grid(step * min(1.0, T, s / max(self.m, s)))
        h_f, h_u = step * s, step * min(T, 1.0)
        f, u = np.arange(-WIDTH, WIDTH + h_f, h_f), score_grid(T, h_u)
        density, below = gumbel(u[:, None] - fields, T)
        x = (f[:, None] - self.m * fields) / s
        normal = np.exp(-0.5 * x**2) * (h_f * h_u / (s * np.sqrt(2.0 * np.pi)))
        p = (normal * weights) @ density.T
        both = (ndtr(x + moved / s) * weights) @ below.T
        yield p, below @ weights, both


def both_below(f: Array, nu: Array, law: FieldScores) -> Array:
    """P(f' < f and ν' < ν) of normal variables of variance one and covariance m, by Owen's T."""
    from scipy.special import ndtr, owens_t

    r = min(law.m, 1.0)
    root = max(law.s, 1e-12)
    f, nu = np.broadcast_arrays(f, nu)
    with np.errstate(all="ignore"):
        first = np.where(f == 0.0, np.sign(nu) * np.inf, (nu - r * f) / (f * root))
        second = np.where(nu == 0.0, np.sign(f) * np.inf, (f - r * nu) / (nu * root))
    zero = (f == 0.0) & (nu == 0.0)
    opposite = (f * nu < 0.0) | ((f * nu == 0.0) & (f + nu < 0.0))
    found = 0.5 * (ndtr(f) + ndtr(nu)) - owens_t(f, first) - owens_t(nu, second) - 0.5 * opposite
    found = np.where(zero, 0.25 + np.arcsin(r) / (2.0 * np.pi), found)
    return np.asarray(np.clip(found, 0.0, np.minimum(ndtr(f), ndtr(nu))))
