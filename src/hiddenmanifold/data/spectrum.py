r"""The two spectral measures of a population, estimated from the fits to one sample.

Fits at every λ show :math:`D_1(\kappa) = \sum_j m_j r_j` and the bias :math:`\sum_j \tau_j
(1-r_j)^2`, where :math:`r_j = w_j/(w_j + \kappa)`. The numbers of directions m and the energies of
the labels τ are fitted to them by non-negative least squares. Below the smallest κ that the sample
resolves, both are assumed to continue as power laws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from hiddenmanifold.arrays import Array
from hiddenmanifold.data.ridge import Ridge

ATOMS = 70
TAIL = 8
"""Decades over which a tail reaches below the least resolved κ."""
SLOPES = np.linspace(0.1, 0.95, 9)
"""Candidates: the tail has :math:`w^{-s}` directions per unit of log w."""
DECAYS = np.linspace(0.15, 1.3, 8)
"""Candidates: the tail has the energy :math:`w^{r}` per unit of log w."""
HIDDEN = 0.015
"""Least part of the labels' variance that a tail may not explain."""
FIRM = 100.0
"""Weight of the energies' sum, which is known, over that of a bias."""


@dataclass(frozen=True)
class Functions:
    """The functions of a population that ridge regression needs, at a batch of κ.

    Degrees of freedom `D1`, the labels' part `T1` that is seen, both with `D11` and `T11`, minus
    their derivatives by log κ; `variance` is that of the labels.
    """

    kappa: Array
    D1: Array
    D11: Array
    T1: Array
    T11: Array
    variance: float

    @property
    def D2(self) -> Array:
        """Sum of r²."""
        return self.D1 - self.D11

    @property
    def T2(self) -> Array:
        """The same of the labels' measure."""
        return self.T1 - self.T11

    @property
    def bias(self) -> Array:
        """Mean square error with no variance of the fit."""
        return self.variance - self.T1 - self.T11

    def with_features(self, p: float, seen: int) -> Functions:
        """Those of p random features of the kernel of which `seen` were shown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            kappa = self.kappa * (1.0 - self.D1 / p) / (1.0 - self.D1 / seen)
            stretch = 1.0 + self.D11 / (p - self.D1) - self.D11 / (seen - self.D1)
        return Functions(
            kappa, self.D1, self.D11 / stretch, self.T1, self.T11 / stretch, self.variance
        )


@dataclass(frozen=True)
class Measures:
    """Eigenvalues with numbers of directions and energies of labels.

    Attributes
    ----------
    w, directions, energies : arrays (atoms,)
        The measures.
    variance : float
        Variance of the labels; the part that the energies do not explain is hidden.
    resolved : float
        The smallest κ that the sample resolves; below it the measures are an assumption.
    """

    w: Array
    directions: Array
    energies: Array
    variance: float
    resolved: float

    def at(self, kappa: Array) -> Functions:
        """The functions of the population."""
        r = self.w / (self.w + kappa[:, None])
        kept = r * (1.0 - r)
        m, tau = self.directions, self.energies
        return Functions(kappa, r @ m, kept @ m, r @ tau, kept @ tau, self.variance)


def estimated_measures(ridge: Ridge) -> tuple[Measures, Measures]:
    """The measures, with the bias estimated assuming equal leverage, and corrected for unequal."""
    path = ridge.whole_path
    good = np.flatnonzero(path.trusted)
    kappa, D1, left = path.kappa[good], path.D1[good], path.left[good]
    whole = ridge.full_rank and good[0] == 0
    resolved = 0.0 if whole else float(kappa.min())
    widest = 3.0 * float(ridge.k.max()) / ridge.n
    least = float(ridge.k.min()) / ridge.n / 10 if whole else resolved
    w = np.geomspace(least, widest, ATOMS)
    tail = np.empty(0) if whole else resolved * np.geomspace(10.0**-TAIL, 1.0, 8 * TAIL, False)
    directions = _directions(kappa, D1, w, tail, ridge.p)
    error, square = path.error[good], path.left_out[:, good] ** 2
    # squared errors of ±1 labels hardly differ at large λ: small spread is not precision
    weight = 1.0 / (np.maximum(square.std(0), 0.5 * error) * left)
    both = []
    for factor in (1.0, path.noise[good]):
        bias = np.maximum(error * (1.0 - factor * (1.0 - left)), 0.0) / (1.0 + 1.0 / ridge.n)
        energies = _energies(kappa, bias, weight, (w, tail), ridge.variance)
        both.append(Measures(np.append(tail, w), directions, energies, ridge.variance, resolved))
    return both[0], both[1]


def _directions(kappa: Array, D1: Array, w: Array, tail: Array, p: int) -> Array:
    """Numbers of directions at tail and atoms, p of them at most."""
    seen = w / (w + kappa[:, None]) / D1[:, None]
    below = tail / (tail + kappa[:, None]) / D1[:, None]
    m = _with_tail(seen, below, np.ones_like(D1), [tail**-s for s in SLOPES if tail.size])
    count = np.cumsum(m[::-1])  # from the largest down
    return np.diff(np.minimum(count, p), prepend=0.0)[::-1]


def _energies(
    kappa: Array, bias: Array, weight: Array, where: tuple[Array, Array], variance: float
) -> Array:
    """Energies of the labels at tail and atoms; what they leave of the variance is hidden."""
    w, tail = where
    hidden = min(HIDDEN * variance, 0.5 * float(bias.min())) if tail.size else 0.0
    firm = FIRM * float(weight.max())

    def columns(w: Array) -> Array:
        lost = (kappa[:, None] / (w + kappa[:, None])) ** 2
        return np.vstack([weight[:, None] * lost, np.full(len(w), firm)])

    more = np.append(weight, firm)[:, None]  # hidden energy is lost at every κ
    target = np.append(weight * (bias - hidden), firm * (variance - hidden))
    shapes = [tail**r for r in DECAYS if tail.size]
    return _with_tail(np.hstack([columns(w), more]), columns(tail), target, shapes)[:-1]


def _with_tail(columns: Array, below: Array, target: Array, shapes: list[Array]) -> Array:
    """Non-negative least squares, with a tail of the best among some shapes in front."""
    fits = []
    for shape in shapes:
        one = (below @ shape)[:, None]
        size = np.abs(one).max()
        x, rest = nonnegative(np.hstack([columns, one / size]), target)
        fits.append((rest, np.append(shape * x[-1] / size, x[:-1])))
    if not fits:
        return nonnegative(columns, target)[0]
    return min(fits, key=lambda fit: fit[0])[1]


def nonnegative(columns: Array, target: Array) -> tuple[Array, float]:
    """Non-negative least squares with its distance."""
    x, rest = optimize.nnls(columns, target, maxiter=50 * columns.shape[1])
    return x, float(rest)
