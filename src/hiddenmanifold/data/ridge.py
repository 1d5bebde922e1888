r"""Ridge regression of a sample at every λ: leverages and exact leave-one-out residuals.

With the centred kernel :math:`K = X_c X_c^\top/p = U\,\mathrm{diag}(k)\,U^\top` the fit of strength
λ, its intercept left free, has the leverages :math:`1/N + h_i`, :math:`h_i = \sum_j U_{ij}^2
k_j/(k_j + \lambda)`. A residual over :math:`1 - 1/N - h_i` is that of the fit without the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.numerics.threads import one_thread

PER_DECADE = 4
"""Regularisations on a path, per decade."""
LEAST_EVEN = 0.15
"""Smallest effective fraction of samples at which the spectrum is estimated from a fit."""
FEW = 0.1
"""Degrees of freedom per sample up to which it does not matter which samples carry them."""
LEAST_LEFT = 0.03
"""Least 1 - D2/N at which the bias can be separated from the error of a fit."""
LEAST_FREE = 0.002
"""Least 1 - leverage of a sample: at zero a sample is fitted by a feature of its own."""


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on a sample, in min(N, p) dimensions.

    Attributes
    ----------
    U, k : arrays (N, rank), (rank,)
        Eigenvectors and positive eigenvalues of the centred kernel.
    y : array (N,)
        Centred labels; `mean` was taken away.
    p : int
        Number of features.
    """

    U: Array
    k: Array
    y: Array
    mean: float
    p: int

    @classmethod
    @one_thread  # several threads wait for each other, many times as long on a busy machine
    def of(cls, X: Array, y: Array) -> Ridge:
        """The decomposition of features (N, p), by the cheaper of two ways."""
        n, p = X.shape
        centred = X - X.mean(0)
        if p < n:  # singular values keep digits that the Gram matrix of few columns would lose
            U, s, _ = np.linalg.svd(centred, full_matrices=False)
            k = s**2 / p
        else:
            k, U = np.linalg.eigh(centred @ centred.T / p)
        keep = k > 1e-13 * max(n, p) ** 0.5 * k.max()
        return cls(U[:, keep], k[keep], y - y.mean(), float(y.mean()), p)

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def variance(self) -> float:
        """Variance of the labels."""
        return float(self.y @ self.y) / (self.n - 1)

    def path(self, lams: Array) -> Path:
        """Leverages and residuals at some regularisations; 0 means its limit."""
        lams = np.maximum(lams, 1e-12 * float(self.k.min()))
        r, left = (part / (self.k[:, None] + lams) for part in (self.k[:, None], lams))
        squares, rotated = self.U**2, self.U.T @ self.y
        # at rank N - 1 nothing lies outside the span
        hidden, never = np.zeros((self.n, 1)), np.zeros((self.n, 1))
        if self.full_rank:
            hidden = (1.0 - 1.0 / self.n - squares.sum(1))[:, None]
            never = (self.y - self.U @ rotated)[:, None]
        residual = never + self.U @ (left * rotated[:, None])
        free = np.maximum(hidden, 0.0) + squares @ left
        return Path(lams, squares @ r, -squares @ (r * left), residual, free, self.y)

    @cached_property
    def whole_path(self) -> Path:
        """Regularisations over the whole range in which the fit changes."""
        top = float(self.k.max())
        low, high = max(1e-11 * top, 1e-3 * float(self.k.min())), 1e3 * top
        return self.path(np.geomspace(low, high, int(PER_DECADE * np.log10(high / low)) + 1))

    @property
    def full_rank(self) -> bool:
        """Whether there are more samples than directions, so that λ may vanish."""
        return len(self.k) < self.n - 1

    @cached_property
    def best(self) -> float:
        """The regularisation of least mean square leave-one-out residual."""
        from scipy import optimize

        grid, error = self.whole_path.lams, self.whole_path.error
        at = int(error.argmin())
        if at in (0, len(grid) - 1):
            return float(grid[at])
        found = optimize.minimize_scalar(
            lambda t: float(self.path(np.exp([t])).error[0]),
            bounds=(np.log(grid[at - 1]), np.log(grid[at + 1])),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return float(np.exp(found.x))


@dataclass(frozen=True)
class Path:
    """Fits at regularisations `lams`: arrays (N, regularisations).

    Attributes
    ----------
    leverage, slope, residual, free : arrays
        The h of the module's docstring, dh/dlog λ, residuals of the fit, and 1 - 1/N - h, what a
        sample does not decide itself.
    y : array (N,)
        Centred labels.
    """

    lams: Array
    leverage: Array
    slope: Array
    residual: Array
    free: Array
    y: Array

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    @cached_property
    def left_out(self) -> Array:
        """Residuals of the fits without the sample."""
        return self.residual / self.free

    @property
    def error(self) -> Array:
        """Mean square of a left-out residual."""
        return _mean(self.left_out**2)

    @property
    def generalised(self) -> Array:
        """The same by generalised cross-validation: as if all leverages were equal."""
        left: Array = np.maximum(1.0 - (1.0 + self.D1) / self.n, 1e-12)
        return _mean(self.residual**2) / left**2

    @cached_property
    def odds(self) -> Array:
        """h/(1 - leverage), the mean response V times the relative leverage s of samples."""
        return self.leverage / self.free

    @property
    def V(self) -> Array:
        """Mean response."""
        return _mean(self.odds)

    @property
    def relative_leverage(self) -> Array:
        """The s of samples, of mean 1: their features behave like √s times equal ones."""
        return self.odds / self.V

    @property
    def D1(self) -> Array:
        """Degrees of freedom of the fit, and of the population at `kappa`."""
        return self.n * _mean(self.leverage)

    @property
    def kappa(self) -> Array:
        """The population's argument that the fit belongs to."""
        return self.lams * self.V / self.D1

    @property
    def D2(self) -> Array:
        """D1 + dD1/dlog κ, of the population."""
        D11 = -self.n * _mean(self.slope)
        by_V = _mean(self.slope * (self.free + self.leverage) / self.free**2) / self.V
        return self.D1 - D11 / (1.0 + by_V + D11 / self.D1)

    @property
    def left(self) -> Array:
        """1 - D2/(N - 1)."""
        return 1.0 - self.D2 / (self.n - 1)

    @property
    def even(self) -> Array:
        """The effective fraction of samples that determines the fit."""
        return self.V**2 / _mean(self.odds**2)

    @property
    def trusted(self) -> Booleans:
        """Where spectrum and bias can be estimated."""
        few = FEW * self.n > self.D1  # a fit of so few directions depends on no single row
        good: Booleans = ((self.even >= LEAST_EVEN) | few) & (self.left >= LEAST_LEFT)
        good &= (self.free.min(0) >= LEAST_FREE) & (self.D2 > 0)
        return good

    @property
    def noise(self) -> Array:
        r"""The factor :math:`\psi` of the variance of fits that unequal leverage causes."""
        equal = np.full(self.n, 1.0 / self.n)
        return variance_factor(self.relative_leverage, self.left_out**2, self.V, equal)


def _mean(samples: Array) -> Array:
    mean: Array = samples.mean(0)
    return mean


def variance_factor(s: Array, square: Array, V: Array, share: Array) -> Array:
    r""":math:`\langle s r^2/(1+sV)^2\rangle / (\langle s/(1+sV)\rangle^2 \langle r^2\rangle)`.

    The means are over the first axis, of groups with some share of the samples, of relative
    leverage s and left-out residual r.
    """
    shrunk = 1.0 + s * V
    carried: Array = share @ (s * square / shrunk**2)
    return carried / (share @ (s / shrunk)) ** 2 / (share @ square)
