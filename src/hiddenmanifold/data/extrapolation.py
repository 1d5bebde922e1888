r"""Predict fits to n samples from ridge regressions on the N samples at hand.

A fit is governed by one number, the population's κ. With n' = n - 1 it solves

.. math:: \lambda = \kappa\,(n' - D_1(\kappa)).

The fit to the sample itself with another regularisation λ₀ has the same κ if :math:`\lambda_0 =
\kappa(N' - D_1)`, and shows all that κ determines: D1, D2, the bias, and the mean scores of
classes. So λ₀ is the root of :math:`\lambda_0 (n' - D_1)/(N' - D_1) = \lambda`, which increases
with λ₀, and

.. math:: E(n, \lambda) = E(N, \lambda_0)\,\frac{1 + 1/n}{1 + 1/N}\,\frac{1 - D_2/N'}{1 - D_2/n'},

where 1/n is the cost of the intercept. :math:`E(N, \lambda_0)` is the leave-one-out error, or
1.15 times that of generalised cross-validation where this is less.

Random features have the degrees of freedom of their kernel at :math:`\gamma = \kappa/(1 - D_1/p)`,
so that other numbers of them need the same sample's fits only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.data.misclassification import (
    by_columns,
    confusion,
    moments,
    with_half_an_error,
    worst_rate,
)
from hiddenmanifold.data.ridge import Path, Ridge, along
from hiddenmanifold.numerics.roots import increasing_root

RESOLVED = 0.5
"""Greatest D2/N' at which the bias can be separated from the error of a fit."""
CAP = 1.15
"""Greatest ratio of the leave-one-out error to that of generalised cross-validation."""


@dataclass(frozen=True)
class Fits:
    """Ridge regressions on n samples, seen as those on the sample with other regularisations.

    Attributes
    ----------
    n, p : arrays (fits,)
        Numbers of samples and of features.
    path : Path
        The fits to the sample that have the same κ.
    resolved : array of bool (fits,)
        Whether the sample shows this κ; else the nearest that it shows is taken.
    """

    n: Array
    p: Array
    path: Path
    resolved: Booleans

    @classmethod
    def of(
        cls,
        ridge: Ridge,
        n: Array,
        lam: Array,
        p: Array | None = None,
        most: float = RESOLVED,
        *,
        own: bool = False,
    ) -> Fits:
        """Those at n and λ, where D2/N' is at most so large; `own` fits are taken as they are."""
        p = np.full_like(n, ridge.p) if p is None else p
        lam0 = equivalent(ridge, n, lam, p)
        here = own & (n == ridge.n) & (p == ridge.p)
        least = np.where(here, 0.0, ridge.weakest(most))
        # κ vanishes with λ₀, unless there is a direction for every sample, or other features
        vanishes = here | ((p == ridge.p) & (ridge.hidden > 0))
        end = np.where(vanishes, least * (1.0 - 1e-9), np.maximum(least, 2.0 * floor(ridge)))
        return cls(n, p, ridge.path(np.maximum(lam0, least)), lam0 >= end)

    @property
    def ridge(self) -> Ridge:
        """The decomposition of the sample."""
        return self.path.ridge

    @cached_property
    def level(self) -> Array:
        """The error at N samples and λ₀."""
        return np.minimum(self.path.error, CAP * self.path.generalised)

    @cached_property
    def _stretch(self) -> Array:
        """How much faster κ changes with that of p features than with that of those seen."""
        D1 = self.path.D1
        D11 = D1 - self.path.D2
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.maximum(self.p - D1, 0.0)  # none where p features fit without regularisation
            found = 1.0 + D11 / left - D11 / self.ridge.spare(self.path.lams)
        return np.where(self.p == self.ridge.p, 1.0, found)

    @cached_property
    def D2(self) -> Array:
        """That of the features that are fitted."""
        D1 = self.path.D1
        return D1 - (D1 - self.path.D2) / self._stretch

    @cached_property
    def unexplained(self) -> Array:
        """The part of the labels' variance that is left at κ, had the fit no variance."""
        total: Array = 2.0 * self.path.objective.sum(0) / (self.ridge.n - 1 - self.path.D1)
        return total

    @cached_property
    def error(self) -> Array:
        """Mean square error; NaN where p features would show more than those seen do."""
        N = self.ridge.n
        bias = self.level / (1.0 + 1.0 / N) * (1.0 - self.path.D2 / (N - 1.0))
        rest = np.maximum(self.unexplained - bias, 0.0)
        bias = bias + rest * (1.0 - 1.0 / self._stretch)
        with np.errstate(invalid="ignore"):
            found = bias * self.variance
        seen = (self._stretch > 0) & (self.D2 >= 0) & (bias >= 0) & (self.n - 1 > self.D2)
        return np.where(seen & (self.resolved | (self.p == self.ridge.p)), found, np.nan)

    @property
    def variance(self) -> Array:
        """The error over the bias: how much the noise of n samples adds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Array = (1.0 + 1.0 / self.n) / (1.0 - self.D2 / (self.n - 1.0))
        return found

    @cached_property
    def confusion(self) -> Array:
        """The part of each class that is predicted as each, (K, K, fits), for labels of classes."""
        found = confusion(self.ridge.classes, *self._left_out)
        return np.where(np.isnan(self.error), np.nan, found)

    @cached_property
    def moments(self) -> Array:
        """Covariance of scores with their columns, and their spread within classes, (2, fits)."""
        return moments(self.ridge.classes, *self._without_intercepts)

    @property
    def _left_out(self) -> tuple[Array, Array]:
        """Left-out residuals of columns of 0 and 1, and the change of their mean square."""
        left_out = by_columns(self.path.left_out)
        if left_out.shape != self.path.left_out.shape:
            return left_out, 0.5 * self.change
        if left_out.shape[2] == 2:  # as for signs
            return left_out, self.change
        # intercepts differ from sample to sample, which left-out rows of one do not show
        return left_out, self.change + self.error / (self.n + 1.0)

    @property
    def _without_intercepts(self) -> tuple[Array, Array]:
        """The same as if intercepts had no noise; they make a left-out row's class seem rarer."""
        left_out = by_columns(self.path.left_out)
        half = 1.0 if left_out.shape == self.path.left_out.shape else 0.5
        own = np.eye(left_out.shape[2])[self.ridge.classes]
        rarer = (own - own.mean(0))[:, None] / (self.ridge.n - 1.0)
        return left_out - rarer, half * self.change

    @cached_property
    def misclassified(self) -> Array:
        """Misclassification rate, for labels of classes."""
        return self._rate(self.confusion)

    @cached_property
    def misclassified_without_intercepts(self) -> Array:
        """The same as if intercepts had no noise."""
        return self._rate(confusion(self.ridge.classes, *self._without_intercepts))

    def _rate(self, parts: Array) -> Array:
        correct = np.einsum("ccf->cf", parts)
        share = np.bincount(self.ridge.classes, minlength=len(correct)) / self.ridge.n
        rate = with_half_an_error(1.0 - share @ correct, self.ridge.n)
        return np.minimum(rate, worst_rate(self.ridge.classes))

    def fall(self, home: Fits, index: Integers) -> Array:
        """The error over that of some other fits; fewer samples do not have less bias."""
        return self._ordered(self.error, home.error[index], home, index)

    def fall_of_misclassified(self, home: Fits, index: Integers) -> Array:
        """The same of the misclassification rate, which only noise makes grow."""
        return self._ordered(self.misclassified, home.misclassified[index], home, index, 1.0)

    def fall_without_intercepts(self, home: Fits, index: Integers) -> Array:
        """The same as if intercepts had no noise."""
        rate, now = self.misclassified_without_intercepts, home.misclassified_without_intercepts
        return self._ordered(
            np.where(np.isnan(self.error), np.nan, rate), now[index], home, index, 1.0
        )

    def _ordered(
        self, error: Array, now: Array, home: Fits, index: Integers, least: float = np.nan
    ) -> Array:
        noise = self.variance / home.variance[index]
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = np.where(now > 0, error / now, 1.0)
        more = np.minimum(fall, np.fmax(noise, least))
        fewer = np.maximum(fall, np.fmin(noise, least))
        known = np.where(
            self.p != home.p[index], fall, np.where(self.n < home.n[index], fewer, more)
        )
        return np.where(np.isnan(error), np.nan, known)

    @property
    def change(self) -> Array:
        """That of the error from N samples at λ₀, without the noise of intercepts."""
        here: Array = self.error / (1.0 + 1.0 / self.n)
        return here - self.level / (1.0 + 1.0 / self.ridge.n)

    @property
    def training_loss(self) -> Array:
        """Minimum of the objective per sample."""
        free = np.maximum(self.n - 1 - self.path.D1, 0.0)
        loss: Array = 0.5 * free / self.n * self.unexplained
        return loss

    @cached_property
    def influence(self) -> Array:
        r"""How the logarithm of the error changes with the weight of each sample, (N, fits).

        The sum of their squares is its variance (the infinitesimal jackknife). A sample counts by
        its own error, by what it does to the fit, and by the eigenvalues, which change by
        :math:`\partial\log k_j/\partial w_i = U_{ij}^2`.
        """
        path, ridge = self.path, self.ridge
        N, square = ridge.n, path.square
        q = ridge.left(path.lams)
        r, a = 1.0 - q, q * (1.0 - q)
        pull = path.left_out / path.free[:, :, None]
        moved = along(ridge.U, r[:, :, None] * along(ridge.U.T, pull)) + pull.mean(0)
        h = path.leverage + 1.0 / N
        moved -= h[:, :, None] * pull  # the fit without a sample does not depend on it
        twice = np.maximum(ridge.squares @ r**2 + 1.0 / N - h**2, 0.0)
        change = square - 2.0 * np.sum(path.residual * moved, axis=2)
        # what a row does to the leverages of others, whose sum over these is h (1 - h) for each
        change -= 2.0 * twice * np.sum(h * square, axis=0) / np.sum(h * path.free, axis=0)
        # along λ₀, and along the eigenvalues, on which λ₀ depends at a given λ
        drift = along(ridge.U, a[:, :, None] * ridge.rotated[:, None])
        drift -= path.left_out * (ridge.squares @ a)[:, :, None]
        by_lam0 = 2.0 * np.sum(path.left_out * drift / path.free[:, :, None], axis=2).sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            change, by_lam0 = change / square.sum(0), by_lam0 / square.sum(0)
            t = (ridge.hidden + q.sum(0)) / (ridge.hidden + np.sum(q**2, axis=0))
            by_D2 = 1.0 / (self.n - 1.0 - path.D2) - 1.0 / (N - 1.0 - path.D2)
            by_k = by_D2 * 2.0 * t * a * (1.0 - t * q)
            b = 1.0 / (self.n - 1.0 - path.D1) - 1.0 / (N - 1.0 - path.D1)
            shift = np.where(self.resolved, a * b / (1.0 + b * a.sum(0)), 0.0)
        by_k = by_k + shift * (by_lam0 - by_k.sum(0))
        total = change + ridge.squares @ by_k
        spread: Array = total - total.mean(0)
        return spread

    @property
    def deviation(self) -> Array:
        """Standard deviation of the logarithm of the error."""
        square, N = self.path.square, self.ridge.n
        with np.errstate(divide="ignore", invalid="ignore"):
            own = square.std(0, ddof=1) / np.sqrt(N) / square.mean(0)
        jackknife = np.sqrt(np.sum(self.influence**2, axis=0))
        found: Array = np.nan_to_num(np.fmax(own, jackknife), nan=0.0)
        return found

    def deviation_of_fall(self, home: Fits, index: Integers) -> Array:
        """Standard deviation of the logarithm of a fall from some other fits."""
        with np.errstate(invalid="ignore"):
            change = self.influence - home.influence[:, index]
        found: Array = np.sqrt(np.sum(np.nan_to_num(change) ** 2, axis=0))
        return found


def floor(ridge: Ridge) -> float:
    """A regularisation that is as good as none."""
    return 1e-12 * float(ridge.k.min())


def equivalent(ridge: Ridge, n: Array, lam: Array, p: Array) -> Array:
    """The λ₀ at which the sample has the κ of fits to n samples of p features at λ."""
    N, seen = ridge.n, ridge.p
    most = np.where(p == seen, n - 1.0, np.minimum(n - 1.0, p))

    def excess(lam0: Array, some: Integers) -> tuple[Array, Array]:
        D1 = ridge.D1(lam0)
        wider = np.where(p[some] == seen, 1.0, (p[some] - D1) / ridge.spare(lam0) * seen / p[some])
        found = lam0 * (n[some] - 1.0 - D1) / (N - 1.0 - D1) * wider
        found = np.where(most[some] > D1, found - lam[some], -1.0 - lam[some])
        return found, np.full_like(D1, np.nan)

    low = np.full_like(lam, floor(ridge))
    scale = (lam + ridge.k.sum()) * np.maximum(1.0, (N - 1.0) / (n - 1.0))
    high = 2.0 * scale * np.maximum(1.0, seen / p)
    return increasing_root(excess, (low, high))
