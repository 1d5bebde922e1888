r"""Ridge regression of a sample at every λ: leverages and exact leave-one-out residuals.

With the centred kernel :math:`K = X_c X_c^\top/p = U\,\mathrm{diag}(k)\,U^\top` the fit of strength
λ, its intercept left free, has the leverages :math:`1/N + h_i`, :math:`h_i = \sum_j U_{ij}^2
k_j/(k_j + \lambda)`. A residual over :math:`1 - 1/N - h_i` is that of the fit without the sample.

Labels may be vectors, as the columns of 0 and 1 of several classes: the columns are fitted with the
same leverages, and their squared residuals are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.data.misclassification import classes_of
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.numerics.threads import one_thread

PER_DECADE = 4
"""Regularisations on a path, per decade."""


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on a sample, in min(N, p) dimensions.

    Attributes
    ----------
    U, k : arrays (N, rank), (rank,)
        Eigenvectors and positive eigenvalues of the centred kernel.
    Y : array (N, columns)
        Centred labels.
    p : int
        Number of features.
    """

    U: Array
    k: Array
    Y: Array
    p: int

    @classmethod
    @one_thread  # several threads wait for each other, many times as long on a busy machine
    def of(cls, X: Array, y: Array) -> Ridge:
        """The decomposition of features (N, p), by the cheaper of two ways."""
        n, p = X.shape
        centred = X - X.mean(0)
        if p < n:  # singular values keep digits that the Gram matrix of few columns would lose
            U, s, _ = np.linalg.svd(centred, full_matrices=False)
            k, keep = s**2 / p, s > np.finfo(float).eps * n * s.max()
        else:
            k, U = np.linalg.eigh(centred @ centred.T / p)
            keep = k > 1e-13 * p**0.5 * k.max()
        Y = y.reshape(n, -1)
        return cls(U[:, keep], k[keep], Y - Y.mean(0), p)

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.Y)

    @cached_property
    def classes(self) -> Integers:
        """Classes of the rows, if labels are classes."""
        return classes_of(self.Y)

    @property
    def hidden(self) -> int:
        """Directions of the sample, beside the mean, that no feature shows."""
        return self.n - 1 - len(self.k)

    @property
    def variance(self) -> float:
        """Variance of the labels."""
        return float(np.sum(self.Y**2)) / (self.n - 1)

    @cached_property
    def scores(self) -> Array:
        """Features (N, rank) with the kernel of the sample's own; fits need 1/√rank of these."""
        return self.U * np.sqrt(self.k * len(self.k))

    @cached_property
    def rotated(self) -> Array:
        """The labels along the eigenvectors."""
        return self.U.T @ self.Y

    @cached_property
    def squares(self) -> Array:
        """Squares of the eigenvectors' entries."""
        return self.U**2

    def left(self, lams: Array) -> Array:
        """1 - r = λ/(k + λ), the part of each direction that is not fitted; (rank, λ)."""
        return lams / (self.k[:, None] + lams)

    def D1(self, lams: Array) -> Array:
        """Degrees of freedom of the fit, and of the population at its κ."""
        total: Array = np.sum(self.k[:, None] / (self.k[:, None] + lams), axis=0)
        return total

    def spare(self, lams: Array) -> Array:
        """Features less degrees of freedom, p - D1, to full relative precision."""
        found: Array = self.p - len(self.k) + self.left(lams).sum(0)
        return found

    def D2(self, lams: Array) -> Array:
        r"""Those of the population's squared shrinkage, which the path's slope shows.

        With q = λ/(k + λ) over all N - 1 directions, :math:`D_2 = N' - (\sum q)^2/\sum q^2`,
        written as a variance, which loses no digits.
        """
        q = self.left(lams)
        mean = (self.hidden + q.sum(0)) / (self.n - 1)
        spread = self.hidden * (1.0 - mean) ** 2 + np.sum((q - mean) ** 2, axis=0)
        found: Array = (self.n - 1) * spread / (self.hidden + np.sum(q**2, axis=0))
        return found

    def weakest(self, most: float) -> float:
        """The least λ at which D2 is at most a fraction of the directions of the sample."""
        allowed = most * (self.n - 1)
        above = np.flatnonzero(self.D2(self.grid) > allowed)
        if not above.size:
            return 0.0
        ends = self.grid[above[-1:]], self.grid[above[-1:] + 1]
        none = np.full(1, np.nan)
        return float(increasing_root(lambda lam, _: (allowed - self.D2(lam), none), ends)[0])

    def path(self, lams: Array) -> Path:
        """Leverages and residuals at some regularisations, complex ones too; 0 is its limit."""
        if not np.iscomplexobj(lams):
            lams = np.maximum(lams, 1e-12 * float(self.k.min()))
        q = self.left(lams)
        # at rank N - 1 nothing lies outside the span
        beside, never = np.zeros((self.n, 1)), np.zeros_like(self.Y)
        if self.hidden:
            beside = (1.0 - 1.0 / self.n - self.squares.sum(1))[:, None]
            never = self.Y - self.U @ self.rotated
        free = np.maximum(beside, 0.0) + self.squares @ q
        residual = never[:, None] + along(self.U, q[:, :, None] * self.rotated[:, None])
        return Path(self, lams, residual, free)

    @cached_property
    def grid(self) -> Array:
        """Regularisations over the whole range in which the fit changes."""
        top = float(self.k.max())
        low, high = 1e-3 * float(self.k.min()), 1e3 * top
        if self.p >= self.n:  # whose small eigenvalues have few digits
            low = max(low, 1e-11 * top)
        return np.geomspace(low, high, int(PER_DECADE * np.log10(high / low)) + 1)

    @cached_property
    def whole_path(self) -> Path:
        """The fits on this grid."""
        return self.path(self.grid)

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
    """Fits at regularisations `lams`.

    Attributes
    ----------
    residual : array (N, λ, columns)
        Residuals of the fits.
    free : array (N, λ)
        1 - 1/N - h, what a sample does not decide itself.
    """

    ridge: Ridge
    lams: Array
    residual: Array
    free: Array

    @property
    def leverage(self) -> Array:
        """The h of the module's docstring."""
        h: Array = 1.0 - 1.0 / self.ridge.n - self.free
        return h

    @cached_property
    def left_out(self) -> Array:
        """Residuals of the fits without the sample."""
        return self.residual / self.free[:, :, None]

    @cached_property
    def square(self) -> Array:
        """Their squares (N, λ)."""
        square: Array = np.sum(self.left_out**2, axis=2)
        return square

    @property
    def error(self) -> Array:
        """Mean square of a left-out residual."""
        mean: Array = self.square.mean(0)
        return mean

    @property
    def generalised(self) -> Array:
        """The same by generalised cross-validation: as if all leverages were equal."""
        free = self.free.mean(0)
        mean: Array = np.sum(self.residual**2, axis=2).mean(0) / free**2
        return mean

    @property
    def objective(self) -> Array:
        """Minimum of the objective per sample, by samples (N, λ): of |residual|² + λ|w|²/N."""
        product: Array = 0.5 * np.sum(self.ridge.Y[:, None] * self.residual, axis=2)
        return product

    @cached_property
    def D1(self) -> Array:
        """Degrees of freedom of the fit."""
        return self.ridge.D1(self.lams)

    @cached_property
    def D2(self) -> Array:
        """See `Ridge.D2`."""
        return self.ridge.D2(self.lams)

    @property
    def kappa(self) -> Array:
        """The population's argument that the fit belongs to."""
        return self.lams / (self.ridge.n - 1 - self.D1)


def along(matrix: Array, values: Array) -> Array:
    """A matrix times the first axis of an array of three."""
    flat = matrix @ values.reshape(values.shape[0], -1)
    return flat.reshape(matrix.shape[0], *values.shape[1:])
