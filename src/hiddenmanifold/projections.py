r"""Feature matrices F and the spectrum of :math:`S = F^\top F/d`.

The theory needs averages over the p eigenvalues `s` of `S`, at :math:`r = 1/(1 + Xs)`: :math:`b_0 =
\langle r\rangle`, :math:`b_1 = \langle sr\rangle`, :math:`c_j = \langle s^j r^2\rangle`; and over
the d eigenvalues of :math:`FF^\top/d`, which are the same but for zeros:
:math:`\langle r^2\rangle_d` and :math:`\mathrm{Var}_d(sr)`. All are written as sums of positive
terms, so they keep their digits for any X and any :math:`\gamma = d/p`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidArgumentError
from .numerics.matrices import Dense, LinearMap, haar_orthogonal, random_orthogonal
from .registry import check_number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Spectral averages at a batch of (X, gamma); ``d<name>`` are derivatives by X.

    ``c0_d`` is the d-side average of r², ``variance_d`` the d-side variance of sr.
    """

    b0: Array
    b1: Array
    c0: Array
    c1: Array
    c2: Array
    c0_d: Array
    variance_d: Array
    dc0: Array
    dc1: Array
    dc2: Array
    dc0_d: Array
    dvariance_d: Array


class Projection:
    """Base of all feature matrices."""

    corner: ClassVar[bool] = False
    """Whether the spectrum changes its form at p = d, so that curves have a corner there."""

    @property
    def fixed_ratio(self) -> float | None:
        """The ratio d/p if the projection fixes it, else None."""
        return None

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        """A d × p matrix F of this kind; its columns have squared norm d, for p > d on average."""
        raise NotImplementedError

    def moments(self, X: Array, gamma: Array) -> Moments:
        r"""Spectral averages at :math:`X \ge 0` and :math:`\gamma = d/p`, arrays of one shape."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(Projection):
    """Independent standard normal entries: the Marchenko–Pastur law, in closed form."""

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return Dense(rng.standard_normal((d, p)))

    def moments(self, X: Array, gamma: Array) -> Moments:
        y = 1.0 / gamma
        B = 1.0 + (1.0 - y) * X
        R = np.sqrt(B**2 + 4.0 * y * X)
        positive = B > 0
        b0 = np.where(positive, 2.0, R - B) / np.where(positive, B + R, 2.0 * y * X)
        o = 1.0 + y * X * b0  # 1/o is the d-side average of r
        P = 2.0 * (1.0 + y) + (1.0 - y) ** 2 * X
        c0, c1 = b0 * o / R, b0 / (o * R)
        c2 = b0 * P / (o * R * (R + 1.0))
        c0_d, variance_d = 1.0 / (o * b0 * R), y * b0 / (o**3 * R)
        # logarithmic derivatives of b0, o, R, P
        db, do, dR = -1.0 / (o * R), y * c0 / o, (1.0 + y + (1.0 - y) ** 2 * X) / R**2
        dP = (1.0 - y) ** 2 / P
        return Moments(
            b0,
            b0 / o,
            c0,
            c1,
            c2,
            c0_d,
            variance_d,
            dc0=c0 * (db + do - dR),
            dc1=c1 * (db - do - dR),
            dc2=c2 * (db + dP - do - dR - dR * R / (R + 1.0)),
            dc0_d=-c0_d * (do + db + dR),
            dvariance_d=variance_d * (db - 3.0 * do - dR),
        )


class Discrete(Projection):
    """Base of the spectra that consist of atoms."""

    def atoms(self, gamma: Array) -> tuple[Array, Array]:
        """Positive eigenvalues and their weights; the rest of the mass is at zero.

        Both of shape (points, atoms) or (atoms,); the weights are fractions of the p eigenvalues.
        """
        raise NotImplementedError

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        """Haar-distributed singular vectors around quantiles of the spectrum.

        The quantiles have a random offset: an atom of weight w appears pw times on average, and
        exactly so often if all pw are whole numbers.
        """
        s, weight = (np.ravel(a) for a in self.atoms(np.array([d / p])))
        order = np.argsort(s)[::-1]
        edges = np.cumsum(weight[order])
        k = min(d, p)
        chosen = np.searchsorted(edges, (np.arange(k) + rng.random()) / p)
        values = np.append(s[order], 0.0)[np.minimum(chosen, len(s))]
        left, right = (haar_orthogonal(size, k, rng).F / np.sqrt(size) for size in (d, p))
        return Dense((left * np.sqrt(values * d)) @ right.T)

    def moments(self, X: Array, gamma: Array) -> Moments:
        s, weight = self.atoms(gamma)
        weight_d = weight / gamma[:, None]
        zeros, zeros_d = (_rest(weights.sum(-1)) for weights in (weight, weight_d))
        Xs = X[:, None] * s
        r = 1.0 / (1.0 + Xs)
        sr = s * r

        def mean(values: Array, weights: Array = weight) -> Array:
            total: Array = (weights * values).sum(-1)
            return total

        mean_d = mean(sr, weight_d)
        # sr = (1 - r)/X: at large X its deviations are those of r, which do not cancel
        large = np.broadcast_to(Xs, r.shape).max(-1, keepdims=True) > 1.0
        mean_r = (mean(r, weight_d) + zeros_d)[:, None]
        deviation = np.where(
            large, (mean_r - r) / np.where(large, X[:, None], 1.0), sr - mean_d[:, None]
        )
        return Moments(
            b0=mean(r) + zeros,
            b1=mean(sr),
            c0=mean(r**2) + zeros,
            c1=mean(sr * r),
            c2=mean(sr**2),
            c0_d=mean(r**2, weight_d) + zeros_d,
            variance_d=mean(deviation**2, weight_d) + zeros_d * mean_d**2,
            dc0=-2 * mean(sr * r**2),
            dc1=-2 * mean(sr**2 * r),
            dc2=-2 * mean(sr**3),
            dc0_d=-2 * mean(sr * r**2, weight_d),
            dvariance_d=-2
            * (mean(deviation**2 * (sr + mean_d[:, None]), weight_d) + zeros_d * mean_d**3),
        )


def _rest(total: Array) -> Array:
    """What is missing to one, or exactly zero if only rounding is."""
    rest = 1.0 - total
    return np.where(rest < 1e-12, 0.0, rest)


@dataclass(frozen=True)
class Orthogonal(Discrete):
    r"""Haar-distributed F with :math:`F^\top F = d` (p ≤ d) or :math:`FF^\top = p` (p > d)."""

    corner = True

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return haar_orthogonal(d, p, rng)

    def atoms(self, gamma: Array) -> tuple[Array, Array]:
        weight = np.minimum(gamma, 1.0)[:, None]
        return 1.0 / weight, weight


@dataclass(frozen=True)
class Hadamard(Orthogonal):
    """Randomised Hadamard features: in the limit, the law of `Orthogonal`.

    If max(d, p) is no power of two, blocks of powers of two are mixed in three layers.
    """

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return random_orthogonal(d, p, "hadamard", rng)


@dataclass(frozen=True)
class DCT(Orthogonal):
    """Randomised discrete-cosine features: in the limit, the law of `Orthogonal`."""

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return random_orthogonal(d, p, "dct", rng)


@dataclass(frozen=True)
class Spectrum(Discrete):
    r"""A spectrum of :math:`F^\top F/d` given by its eigenvalues.

    Parameters
    ----------
    eigenvalues : sequence of float
        Non-negative, of weighted mean 1 (columns of F of squared norm d), to 10 %.
    weights : sequence of float, optional
        Fractions of the p eigenvalues; equal by default. For d < p at least 1 - d/p of the mass
        must be at zero.
    d_over_p : float
        The ratio d/p.
    """

    eigenvalues: tuple[float, ...]
    weights: tuple[float, ...] | None = None
    d_over_p: float = field(kw_only=True)
    _positive: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        s = _finite_vector("eigenvalues", self.eigenvalues)
        w = (
            np.full(len(s), 1.0 / len(s))
            if self.weights is None
            else _finite_vector("weights", self.weights)
        )
        gamma = self.d_over_p
        check_number("d_over_p", gamma, 0.0, open_low=True)
        if s.min() < -1e-12 * s.max():
            raise InvalidArgumentError(
                "eigenvalues", s.min(), "non-negative (they are those of FᵀF/d)"
            )
        if len(w) != len(s) or w.min() < 0 or w.sum() <= 0:
            raise InvalidArgumentError(
                "weights", self.weights, f"{len(s)} non-negative numbers, not all zero"
            )
        w = w / w.sum()
        mean = float(w @ s)
        if not 0.9 <= mean <= 1.1:
            raise InvalidArgumentError(
                "eigenvalues",
                f"of mean {mean:.4g}",
                "of mean 1: the columns of F have squared norm d, or the kappas do not apply",
            )
        # rank(F) <= d: a machine-precision eigenvalue of a rank-deficient matrix counts as zero
        keep = s > 1e-12 * s.max()
        if w[keep].sum() > gamma * (1 + 1e-9):
            raise InvalidArgumentError(
                "eigenvalues",
                f"with a fraction {w[keep].sum():.4g} of positive ones",
                f"zero for at least a fraction 1 - d/p = {1 - gamma:.4g} of them, since rank F ≤ d",
            )
        values, first = np.unique(s[keep], return_inverse=True)
        object.__setattr__(self, "_positive", (values, np.bincount(first, weights=w[keep])))
        object.__setattr__(self, "eigenvalues", tuple(s.tolist()))
        object.__setattr__(self, "weights", tuple(w.tolist()))

    @property
    def fixed_ratio(self) -> float:
        return self.d_over_p

    def atoms(self, gamma: Array) -> tuple[Array, Array]:
        return self._positive


@dataclass(frozen=True, eq=False)
class Matrix(Discrete):
    """The user's own d × p matrix F.

    Parameters
    ----------
    F : array (d, p)
        Its columns must have squared norm d, up to the fluctuations of random entries.

    Raises
    ------
    InvalidArgumentError
        If F is not a finite matrix, or its columns are not normalised.
    """

    F: Array = field(repr=False)
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        F = np.array(self.F, dtype=float)
        if F.ndim != 2 or 0 in F.shape:
            raise InvalidArgumentError("F", f"of shape {F.shape}", "a d × p matrix")
        if not np.isfinite(F).all():
            raise InvalidArgumentError(
                "F", f"with {np.sum(~np.isfinite(F))} entries NaN or infinite", "finite"
            )
        d = F.shape[0]
        norms = (F**2).sum(0) / d
        # what random entries would do to the mean of all columns, and to a single one
        slack, slack_of_one = (0.1 + 6 * np.sqrt(2 / size) for size in (F.size, d))
        if abs(norms.mean() - 1) > slack or np.abs(norms - 1).max() > slack_of_one:
            raise InvalidArgumentError(
                "F",
                f"with columns of squared norm {norms.min() * d:.4g} to {norms.max() * d:.4g}",
                f"normalised: columns of squared norm ≈ d = {d}, or the kappas do not apply",
            )
        F.flags.writeable = False
        object.__setattr__(self, "F", F)
        object.__setattr__(self, "shape", F.shape)

    @property
    def fixed_ratio(self) -> float:
        d, p = self.shape
        return d / p

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        if (d, p) != self.shape:
            raise InvalidArgumentError("d", d, f"{self.shape[0]}, the number of rows of F")
        return Dense(self.F)

    @cached_property
    def _positive(self) -> tuple[Array, Array]:
        d, p = self.F.shape
        gram = self.F @ self.F.T if d < p else self.F.T @ self.F
        s = np.linalg.eigvalsh(gram / d)
        s = s[s > 1e-12 * s.max()]
        return s, np.full(len(s), 1.0 / p)

    def atoms(self, gamma: Array) -> tuple[Array, Array]:
        return self._positive


def _finite_vector(name: str, values: ArrayLike) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise InvalidArgumentError(name, values, "a non-empty sequence of finite numbers")
    return vector


REGISTRY: dict[str, type[Projection]] = {
    "gaussian": Gaussian,
    "orthogonal": Orthogonal,
    "hadamard": Hadamard,
    "dct": DCT,
}
