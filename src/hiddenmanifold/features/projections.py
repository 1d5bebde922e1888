r"""Feature matrices F, and the spectral sums of linear features :math:`F^\top c/\sqrt d`.

In the limit a matrix matters only through the spectrum of :math:`S = F^\top F/d`, and the spectrum
only through the sums of ``spectral_sums``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from hiddenmanifold.arrays import Array, Numbers
from hiddenmanifold.checks import check_number, check_unmasked, finite_vector
from hiddenmanifold.errors import InvalidArgumentError, plural
from hiddenmanifold.features.chain import Received
from hiddenmanifold.features.feature_matrix import Projection as Projection  # noqa: PLC0414
from hiddenmanifold.features.kernel_arguments import (
    Stretching,
    of_normal_features,
    of_orthogonal_features,
    positive_argument,
)
from hiddenmanifold.features.pair_sums import PairSums, discrete_pair, projected_pair
from hiddenmanifold.features.spectral_sums import Sums, SumsBelow, discrete, projected, white
from hiddenmanifold.numerics.matrices import (
    Dense,
    Kind,
    LinearMap,
    haar_orthogonal,
    random_orthogonal,
)
from hiddenmanifold.numerics.special import positive_root


@dataclass(frozen=True)
class Gaussian(Projection):
    """Independent standard normal entries: the Marchenko–Pastur law, in closed form."""

    stacks = True

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return Dense(rng.standard_normal((d, p)))

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        return float(d * p)

    def linear(self, k: Array, gamma: Array) -> Sums:
        u = self._white_argument(k, gamma)
        return self._seen(white(u, gamma), k / u)

    def largest(self, gamma: Array) -> Array:
        return (1.0 + gamma**-0.5) ** 2

    @staticmethod
    def _white_argument(k: Array, gamma: Array) -> Array:
        # k = u (1 - D1(u)) for the argument u of white data: a quadratic equation
        return positive_root(gamma, 1.0 - gamma - k * gamma, k)

    def of_layer(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Sums:
        u = self.argument_below(below, k, d=d, p=p)
        return self._seen(below(u, np.arange(len(k))), p * k / u)

    def argument_below(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Array:
        return positive_argument(below, of_normal_features(p), k, p)

    def stretching(self, d: Array, p: Array) -> Stretching:
        return of_normal_features(p)

    def received(self, d: Array, p: Array) -> Received:
        def sums(inner: PairSums, ratio: Numbers, other_ratio: Numbers) -> PairSums:
            rest = p * ratio
            g, other_g = inner.D_sr / (p * other_ratio), inner.D_rs / rest
            return projected_pair(inner, rest / (1.0 + g), g, other_g)

        return sums

    @staticmethod
    def _seen(inner: Sums, rest: Array) -> Sums:
        g = inner.D11 / rest
        return projected(inner, rest / (1.0 + g), g)


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

    def linear(self, k: Array, gamma: Array) -> Sums:
        s, weight = self.atoms(gamma)
        return discrete(k, s, weight, weight / gamma[:, None])

    def largest(self, gamma: Array) -> Array:
        s, _ = self.atoms(gamma)
        return np.broadcast_to(s.max(-1), gamma.shape)

    def linear_pair(self, k: Numbers, other: Numbers, gamma: Array) -> PairSums:
        s, weight = self.atoms(gamma)
        return discrete_pair(k, other, s, weight, weight / gamma[:, None])


@dataclass(frozen=True)
class Orthogonal(Discrete):
    r"""Haar-distributed F with :math:`F^\top F = d` (p ≤ d) or :math:`FF^\top = p` (p > d)."""

    corner = True
    stacks = True

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return haar_orthogonal(d, p, rng)

    def atoms(self, gamma: Array) -> tuple[Array, Array]:
        weight = np.minimum(gamma, 1.0)[:, None]
        return 1.0 / weight, weight

    def argument_below(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Array:
        # as many features as there are below show all of it: only fewer stretch the argument
        bound = np.where(p < d, p, np.inf)
        return positive_argument(below, of_orthogonal_features(d, p), k, bound)

    def of_layer(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Sums:
        fewer = p < d
        u = self.argument_below(below, k, d=d, p=p)
        inner = below(u, np.arange(len(k)))
        rest = np.where(fewer, (k / u) * inner.unlearned * p / d, 1.0)
        b = np.where(fewer, inner.D11 / inner.unlearned, 0.0)
        g = np.where(fewer, inner.D11 * (d - p) / (rest * inner.unlearned), 0.0)
        D02 = np.where(fewer, rest * inner.D02 / inner.unlearned / (1.0 + g), p - d + inner.D02)
        return projected(inner, D02, g, b)

    def stretching(self, d: Array, p: Array) -> Stretching:
        return of_orthogonal_features(d, p)

    def received(self, d: Array, p: Array) -> Received:
        fewer = p < d

        def sums(inner: PairSums, ratio: Numbers, other_ratio: Numbers) -> PairSums:
            lost, other_lost = inner.unlearned, inner.unlearned_other
            rest, other_rest = ratio * lost * p / d, other_ratio * other_lost * p / d
            g = np.where(fewer, inner.D_sr * (d - p) / (other_rest * lost), 0.0)
            other_g = np.where(fewer, inner.D_rs * (d - p) / (rest * other_lost), 0.0)
            D_ss = np.where(fewer, rest * inner.D_ss / lost / (1.0 + g), p - d + inner.D_ss)
            return projected_pair(inner, D_ss, g, other_g)

        return sums


class Transform(Orthogonal):
    """Base of randomised transforms: in the limit, the law of `Orthogonal`."""

    kind: ClassVar[Kind]

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return random_orthogonal(d, p, self.kind, rng)

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        size = max(d, p)
        return 5.0 * min(d * size, 2**22) + 2.0 * rows * size  # written down only if it is small


@dataclass(frozen=True)
class Hadamard(Transform):
    """Randomised Hadamard features.

    If max(d, p) is no power of two, blocks of powers of two are mixed in three layers.
    """

    kind = "hadamard"


@dataclass(frozen=True)
class DCT(Transform):
    """Randomised discrete-cosine features."""

    kind = "dct"


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
        s = finite_vector("eigenvalues", self.eigenvalues)
        w = np.ones_like(s) if self.weights is None else finite_vector("weights", self.weights)
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
            raise InvalidArgumentError.because(
                "eigenvalues",
                f"have mean {mean:.4g}",
                "it must be 1, because the kappas are those of columns of F of squared norm d",
            )
        # rank(F) <= d: a machine-precision eigenvalue of a rank-deficient matrix counts as zero
        keep = s > 1e-12 * s.max()
        if w[keep].sum() > gamma * (1 + 1e-9):
            raise InvalidArgumentError.because(
                "eigenvalues",
                f"are positive for a fraction {w[keep].sum():.4g}",
                f"at least a fraction 1 - d/p = {1 - gamma:.4g} must be zero, since rank F ≤ d",
            )
        values, first = np.unique(s[keep], return_inverse=True)
        object.__setattr__(self, "_positive", (values, np.bincount(first, weights=w[keep])))
        object.__setattr__(self, "eigenvalues", tuple(s.tolist()))
        object.__setattr__(self, "weights", tuple(w.tolist()))
        object.__setattr__(self, "fixed_ratio", gamma)

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
        check_unmasked("F", self.F)
        try:
            F = np.array(self.F, dtype=float)
        except (TypeError, ValueError):  # words, or ragged
            raise InvalidArgumentError("F", self.F, "a d × p matrix of numbers") from None
        if F.ndim != 2 or 0 in F.shape:
            raise InvalidArgumentError.because("F", f"has shape {F.shape}", "give a d × p matrix")
        if not np.isfinite(F).all():
            raise InvalidArgumentError.because(
                "F",
                f"has {plural(int(np.sum(~np.isfinite(F))), 'NaN or infinite value')}",
                "give finite numbers",
            )
        if not F.any():
            raise InvalidArgumentError.because(
                "F", f"of shape {F.shape} has nothing but zeros", "give columns of squared norm d"
            )
        d = F.shape[0]
        norms = (F**2).sum(0) / d
        # fluctuations that random entries cause in the mean over columns, and in a single one
        slack, slack_of_one = (0.1 + 6 * np.sqrt(2 / size) for size in (F.size, d))
        if abs(norms.mean() - 1) > slack or np.abs(norms - 1).max() > slack_of_one:
            raise InvalidArgumentError.because(
                "F",
                f"has columns of squared norm {norms.min() * d:.4g} to {norms.max() * d:.4g}",
                f"normalise them to ≈ d = {d}, because the kappas are those of such columns",
            )
        F.flags.writeable = False
        object.__setattr__(self, "F", F)
        object.__setattr__(self, "shape", F.shape)
        object.__setattr__(self, "fixed_ratio", d / F.shape[1])
        object.__setattr__(self, "fixed_dimension", d)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and np.array_equal(self.F, other.F)

    def __hash__(self) -> int:
        return hash((self.shape, *self.F[0].tolist()))

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        return float(d * p)

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


REGISTRY: dict[str, type[Projection]] = {
    "gaussian": Gaussian,
    "orthogonal": Orthogonal,
    "hadamard": Hadamard,
    "dct": DCT,
}
