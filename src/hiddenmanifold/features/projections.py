r"""Feature matrices F, and the spectral sums of linear features :math:`F^\top c/\sqrt d`.

In the limit a matrix matters only through the spectrum of :math:`S = F^\top F/d`, and the spectrum
only through the sums of ``spectral_sums``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import check_number, check_unmasked, finite_vector
from hiddenmanifold.errors import InvalidArgumentError, plural
from hiddenmanifold.features.spectral_sums import Sums, SumsBelow, discrete, projected, white
from hiddenmanifold.numerics.matrices import (
    Dense,
    Kind,
    LinearMap,
    haar_orthogonal,
    random_orthogonal,
)
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.numerics.special import positive_root

ROUNDING = 4e-15
"""Relative accuracy of the argument of the sums below."""
FAR = 1e75
"""An argument that is larger than all eigenvalues."""


class Projection:
    """Base of all feature matrices."""

    corner: ClassVar[bool] = False
    """Whether the spectrum changes its form at p = d, so that curves have a corner there."""
    stacks: ClassVar[bool] = False
    """Whether it can also project the features of a layer below, see `of_layer`."""

    fixed_ratio: float | None = None
    """The ratio d/p if the projection fixes it."""
    fixed_dimension: int | None = None
    """The dimension d of the input if the projection fixes it."""

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        """A d × p matrix F of this kind; its columns have squared norm d, for p > d on average."""
        raise NotImplementedError

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        """Rough count of numbers held while a matrix is drawn and applied to `rows` rows."""
        return 5.0 * d * p  # a decomposition needs several copies

    def linear(self, k: Array, gamma: Array) -> Sums:
        r"""The sums of linear features of white data, at :math:`\gamma = d/p`."""
        raise NotImplementedError

    def of_layer(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Sums:
        """The sums of p linear features of d others, whose own sums are given."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(Projection):
    """Independent standard normal entries: the Marchenko–Pastur law, in closed form."""

    stacks = True

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        return Dense(rng.standard_normal((d, p)))

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        return float(d * p)

    def linear(self, k: Array, gamma: Array) -> Sums:
        # k = u (1 - D1(u)) for the argument u of white data: a quadratic equation
        u = positive_root(gamma, 1.0 - gamma - k * gamma, k)
        return self._seen(white(u, gamma), k / u)

    def of_layer(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Sums:
        def stretching(inner: Sums, some: Integers) -> tuple[Array, Array]:
            left = _left(inner, p[some])
            return np.log(np.fmax(left, 0.0) / p[some]), 1.0 + inner.D11 / left

        u = _argument(below, stretching, k, p)
        return self._seen(below(u, np.arange(len(k))), p * k / u)

    @staticmethod
    def _seen(inner: Sums, rest: Array) -> Sums:
        g = inner.D11 / rest
        return projected(inner, rest / (1.0 + g), g)


def _argument(
    below: SumsBelow,
    stretching: Callable[[Sums, Integers], tuple[Array, Array]],
    k: Array,
    p: Array,
) -> Array:
    """The argument of the sums below at which p linear features have the given k.

    The logarithm of k over the argument, and the slope of log k by that of the argument, are the
    `stretching`. The argument is no smaller than k, and larger by at most the variance of a feature
    over p; that variance, on average, is the limit of the argument below times D1.
    """

    def distance(log_u: Array, index: Integers) -> tuple[Array, Array]:
        """How far the argument is from the one sought: rounding is magnified by the slope."""
        stretch, slope = stretching(below(np.exp(log_u), index), index)
        left = (log_u + stretch - log_k[index]) / slope
        return np.where(stretch > -np.inf, left, -np.inf), np.ones_like(slope)

    with np.errstate(all="ignore"):
        log_k, index = np.log(k), np.arange(len(k))
        most = FAR * below(np.full_like(k, FAR), index).D1 / p
        return np.exp(increasing_root(distance, (log_k, np.log(k + most)), ROUNDING))


def _left(inner: Sums, p: Array) -> Array:
    """How many of p features are left, p - D1.

    Where D1 is almost p this difference cancels; the features left below give it accurately.
    """
    more = p - (inner.D1 + inner.left)
    more = np.where(np.abs(more) < 1e-14 * p, 0.0, more)  # rounding is no feature
    return np.where(inner.left < inner.D1, more + inner.left, p - inner.D1)


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

    def of_layer(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Sums:
        def stretching(inner: Sums, some: Integers) -> tuple[Array, Array]:
            size = np.minimum(p, d)[some]
            left = _left(inner, size)
            stretch = np.log(np.fmax(left, 0.0) / size) - np.log(inner.unlearned / d[some])
            return stretch, 1.0 + inner.D11 * (1.0 / left - 1.0 / inner.unlearned)

        # as many features as there are below show all of it: only fewer stretch the argument
        fewer = p < d
        u = _argument(below, stretching, k, np.where(fewer, p, np.inf))
        inner = below(u, np.arange(len(k)))
        rest = np.where(fewer, (k / u) * inner.unlearned * p / d, 1.0)
        b = np.where(fewer, inner.D11 / inner.unlearned, 0.0)
        g = np.where(fewer, inner.D11 * (d - p) / (rest * inner.unlearned), 0.0)
        D02 = np.where(fewer, rest * inner.D02 / inner.unlearned / (1.0 + g), p - d + inner.D02)
        return projected(inner, D02, g, b)


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
