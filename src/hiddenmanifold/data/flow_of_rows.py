r"""Gradient flow on the rows of a sample: exact left-out residuals, and how errors change with n.

Flow until time t is the sum :math:`\sum_j b_j` of the ridge fits at the complex :math:`z_j =
\lambda + v_j/t` (``theory/training/rules.py``). Left-out residuals of ridge regression are the same
function at complex λ, so that those of the flow are exact,

.. math:: e_i(t) = r\,y_i\,\frac N{N-1} + \sum_j b_j\,e_i(z_j), \qquad r = 1 - \sum_j b_j.

The residuals of two fits to n samples have at a new input the covariance

.. math:: R_{jl} = n'\,\frac{\kappa_j S_l - \kappa_l S_j}{z_j - z_l}, \qquad
    S = \frac{y^\top \lambda_0 (K + \lambda_0)^{-1} y}{N' - D_1},

with κ and λ₀ of ``extrapolation``, which are complex, too. The ratio of their sums at n and at N is
the fall of the mean square error. The mean scores of classes depend on κ alone: those of n rows are
those of fits to the rows at hand at λ₀. A sample shows complex arguments less far than positive
ones: where it resolves ridge regression at λ + 1/t well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers, Numbers, chunks
from hiddenmanifold.data.extrapolation import equivalent
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.theory.training.rules import NODES, contour

RESOLVED = 0.3
"""Greatest D2/N' of the ridge fit at λ + 1/t. Of 80 draws of ten data sets, half of which set it,
falls are right to 7 % (root mean square) below it; between 0.3 and 0.4 some are wrong by a factor
of five."""
ENTRIES = 4e6
"""Complex numbers in an array of rows and fits, at most as a rule."""
TURNS, STEPS, LAST = 12, 3, 20
"""Angles between a positive λ₀ and a complex one, Newton steps at each, and at the last."""
SOLVED = 1e-10
"""Relative distance at which a complex λ₀ is found."""
ENDS = 1e-9, 1e9
"""Times that stand for the limits, in units of the inverse largest and smallest eigenvalue."""


@dataclass(frozen=True)
class FlowOfRows:
    """Training on n samples until some times, with some penalties, arrays (points,).

    Attributes
    ----------
    ridge : Ridge
        The decomposition of the rows at hand.
    n, lam, time : arrays (points,)
        Where; times may be zero and infinite.
    """

    ridge: Ridge
    n: Array
    lam: Array
    time: Array

    @cached_property
    def left_out(self) -> Array:
        """Residuals (N, points, columns) of rows that are left out of all N."""
        ridge = self.ridge
        pairs = np.stack([self.lam, self.time])
        (lam, time), same = np.unique(pairs, axis=1, return_inverse=True)
        mean = ridge.Y * ridge.n / (ridge.n - 1.0)
        found = np.repeat(mean[:, None], len(time), axis=1)
        late = np.flatnonzero(time == np.inf)
        found[:, late] = ridge.path(lam[late]).left_out
        v, c = contour()
        rest = 1.0 + 2.0 * (c / v).sum().real
        within = np.flatnonzero((time > 0.0) & (time < np.inf))
        for some in chunks(within, max(1, int(ENTRIES / (NODES * mean.size)))):
            z = lam[some, None] + v / time[some, None]
            fits = ridge.path(z.ravel()).left_out.reshape(ridge.n, *z.shape, -1)
            found[:, some] = rest * mean[:, None] - 2.0 * np.einsum("j,ntjc->ntc", c / v, fits).real
        return found[:, same.ravel()]

    @cached_property
    def square(self) -> Array:
        """Their squares (N, points)."""
        square: Array = np.sum(self.left_out**2, axis=2)
        return square

    @property
    def error(self) -> Array:
        """Mean square error, exactly that of left-out rows at n = N."""
        error: Array = self.square.mean(0) * self.fall
        return error

    @property
    def own(self) -> Booleans:
        """Whether n is the number of rows, so that nothing is extrapolated."""
        own: Booleans = self.n == self.ridge.n
        return own

    @cached_property
    def resolved(self) -> Booleans:
        """Whether the rows show the error; that of fewer rows they always do."""
        ridge, p = self.ridge, np.full_like(self.n, self.ridge.p)
        D2 = ridge.D2(equivalent(ridge, self.n, self.lam + 1.0 / self._finite, p))
        resolved: Booleans = (self.n <= ridge.n) | (RESOLVED * (ridge.n - 1) >= D2)
        return resolved

    @cached_property
    def fall(self) -> Array:
        """The mean square error over that of N rows; NaN where the rows do not show it."""
        found = np.where(self.resolved, 1.0, np.nan)
        other = np.flatnonzero(self.resolved & ~self.own)
        for some in chunks(other, max(1, int(ENTRIES / (NODES * len(self.ridge.k))))):
            n, lam, time = self.n[some], self.lam[some], self._finite[some]
            z = _nodes(lam, time)
            found[some] = _error(self.ridge, n, z) / _error(self.ridge, self._here(n), z)
        return found

    def equivalent(self, some: Integers) -> tuple[Array, Array]:
        """Residuals of rows left out of all N by fits of equal mean scores, at some points.

        The mean prediction of a fit depends on κ alone, which n rows have at another λ than N of
        them. The second result is the mean square error of n rows over that of these fits.
        """
        ridge, (v, c) = self.ridge, contour()
        rest, mean = 1.0 + 2.0 * (c / v).sum().real, ridge.Y * ridge.n / (ridge.n - 1.0)
        left_out, ratio = np.empty((ridge.n, len(some), ridge.Y.shape[1])), np.empty(len(some))
        size = NODES * max(mean.size, len(ridge.k))
        for part in chunks(np.arange(len(some)), max(1, int(ENTRIES / size))):
            at = some[part]
            n, z = self.n[at], _nodes(self.lam[at], self._finite[at])
            spare = np.broadcast_to(n[:, None] - 1.0, z.shape)
            own = _equivalent(ridge, spare, z)
            fits = ridge.path(own.ravel()).left_out.reshape(ridge.n, *z.shape, -1)
            added = 2.0 * np.einsum("j,ntjc->ntc", c / v, fits).real
            left_out[:, part] = rest * mean[:, None] - added
            ratio[part] = _error(ridge, n, z) / _error(ridge, self._here(n), own)
        return left_out, ratio

    def _here(self, n: Array) -> Array:
        """The number of rows at hand, for as many points."""
        return np.full_like(n, self.ridge.n)

    @property
    def _finite(self) -> Array:
        """The times, or finite ones in place of the limits."""
        k = self.ridge.k
        return np.clip(self.time, ENDS[0] / k.max(), ENDS[1] / k.min())


def _nodes(lam: Array, time: Array) -> Numbers:
    """The λ of ridge fits that add up to the flow."""
    nodes: Numbers = lam[:, None] + contour()[0] / time[:, None]
    return nodes


def _error(ridge: Ridge, n: Array, z: Numbers) -> Array:
    """The expected mean square error of training on n samples, by ridge fits at z."""
    v, c = contour()
    b = -c / v
    rest = 1.0 - 2.0 * b.sum().real
    kappa, S, same = _of_fits(ridge, n, z)
    error = 4.0 * rest * (S @ b).real + rest**2 * ridge.variance
    for other, l_, of in ((z, b, lambda x: x), (z.conj(), b.conj(), np.conj)):
        with np.errstate(all="ignore"):
            away = kappa[:, :, None] * of(S)[:, None] - of(kappa)[:, None] * S[:, :, None]
            R = away / (z[:, :, None] - other[:, None])
        if other is z:
            R[:, range(NODES), range(NODES)] = same
        error += 2.0 * (n - 1.0) * np.einsum("j,njl,l->n", b, R, l_).real
    with_intercept: Array = error * (1.0 + 1.0 / n)
    return with_intercept


def _of_fits(ridge: Ridge, n: Array, z: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """κ and S of ridge fits to n samples, and the limit of equal fits of R/n'."""
    spare = np.broadcast_to(n[:, None] - 1.0, z.shape)
    lam0 = z if (n == ridge.n).all() else _equivalent(ridge, spare, z)
    q = lam0 / (ridge.k[:, None, None] + lam0)
    D1, D11 = (1.0 - q).sum(0), (q * (1.0 - q)).sum(0)
    own = ridge.n - 1.0 - D1
    along = np.sum(ridge.rotated**2, axis=1)[:, None, None]
    never = float(np.sum(ridge.Y**2) - along.sum()) if ridge.hidden else 0.0
    S = (never + (q * along).sum(0)) / own
    kappa = lam0 / own
    # derivatives by log λ₀
    kappa_, S_ = kappa * (1.0 - D11 / own), ((q * (1.0 - q) * along).sum(0) - S * D11) / own
    z_ = (spare - D1) * kappa_ + kappa * D11
    return kappa, S, (S * kappa_ - kappa * S_) / z_


def _equivalent(ridge: Ridge, spare: Array, z: Numbers) -> Numbers:
    """The λ₀ at which the rows have the κ of fits to n' + 1 samples at complex z; NaN if lost."""
    shape, spare, z = z.shape, spare.ravel(), z.ravel()
    modulus, angle = np.abs(z), np.angle(z)
    p = np.full_like(modulus, ridge.p)
    lam0: Numbers = equivalent(ridge, spare + 1.0, modulus, p).astype(complex)
    for turn in range(1, TURNS + 1):
        target = modulus * np.exp(1j * angle * turn / TURNS)
        for _ in range(STEPS if turn < TURNS else LAST):
            q = lam0 / (ridge.k[:, None] + lam0)
            D1, D11 = (1.0 - q).sum(0), (q * (1.0 - q)).sum(0)
            left, own = spare - D1, ridge.n - 1.0 - D1
            step = (1.0 - target * own / (lam0 * left)) / (1.0 + D11 / left - D11 / own)
            lam0 = lam0 * (1.0 - step)
    found = (np.abs(step) < SOLVED) & (lam0.imag * z.imag >= 0.0)
    return np.where(found, lam0, np.nan).reshape(shape)
