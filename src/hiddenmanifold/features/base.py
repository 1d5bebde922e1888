"""The interface of all features: their sums in the limit, and draws at finite size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Numbers
from hiddenmanifold.features.chain import Chain, of_any_shape
from hiddenmanifold.features.pair_sums import PairSums
from hiddenmanifold.features.posterior import LatentPosterior, Posterior
from hiddenmanifold.features.spectral_sums import FAINT, Response, Sums

ROUNDING = 1e-14
"""Relative rounding of a sum over the spectrum."""


@dataclass(frozen=True)
class Visible:
    r"""The part of the teacher's field that features show at best, at a batch of d/p.

    ``fraction`` is the part :math:`\chi` of the variance of the teacher's field that is a linear
    function of the features, ``hidden`` is :math:`1 - \chi` to full relative precision, and
    ``rank`` is the number of independent features over that of all.
    """

    fraction: Array
    hidden: Array
    rank: Array


@dataclass(frozen=True)
class SpectralArguments:
    r"""Where the sums of features are evaluated, and the quantities that determine it.

    ``k`` is :math:`\lambda/(\alpha e_1)`, ``alpha`` and ``gamma`` are n/p and d/p, and ``e1`` is a
    channel average. ``noise`` is :math:`e_2/(\alpha e_1^2)`, ``a`` is :math:`e_3/e_1`, and ``rho``
    is the variance of the teacher's field.
    """

    k: Array
    alpha: Array
    gamma: Array
    e1: Array
    noise: Array
    a: Array
    rho: float


class Inputs:
    """Gaussian data of finite size, with a teacher whose field ν is linear in them."""

    rho: float
    """Variance of the field."""

    def sample(self, rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Data (rows, d) of fresh samples, and the teacher's fields."""
        raise NotImplementedError

    @property
    def field_covariance(self) -> Array:
        """Covariance of the data with the field, E[νc] (d,)."""
        raise NotImplementedError

    def overlaps(self, w: Array) -> dict[str, float]:
        """Variance Q of the prediction c·w/√d, and its covariance M with the field."""
        raise NotImplementedError


@dataclass(frozen=True)
class White(Inputs):
    """White latent data c, and a teacher's weights θ of squared norm ρd: ν = c·θ/√d."""

    theta: Array
    rho: float

    @classmethod
    def drawn(cls, d: int, rho: float, rng: np.random.Generator) -> White:
        """Draw the teacher's weights, of squared norm ρd exactly."""
        theta = rng.standard_normal(d)
        theta *= np.sqrt(rho * d) / np.linalg.norm(theta)
        return cls(theta, rho)

    def sample(self, rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
        d = len(self.theta)
        c = rng.standard_normal((rows, d))
        return c, c @ self.theta / np.sqrt(d)

    @property
    def field_covariance(self) -> Array:
        covariance: Array = self.theta / np.sqrt(len(self.theta))
        return covariance

    def overlaps(self, w: Array) -> dict[str, float]:
        d = len(w)
        return {"Q": float(w @ w / d), "M": float(w @ self.theta / d)}


@dataclass(frozen=True)
class Drawn:
    """Features of finite size, with all that a seed fixes before any sample is drawn.

    They are a function of Gaussian inputs: by default the inputs themselves.
    """

    inputs: Inputs

    def sample(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        equivalent: bool = False,
        displaced: Array | None = None,
    ) -> tuple[Array, Array]:
        """Features (rows, p) of fresh samples, or their Gaussian-equivalent twins, and the fields.

        The teacher's fields have the variance rho that the features were drawn for. The inputs of
        each sample may be displaced, by its multiple of their covariance with the field.
        """
        c, nu = self.data(rows, rng, displaced)
        return self.features(c, rng, equivalent=equivalent), nu

    def training(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        equivalent: bool = False,
        displaced: Array | None = None,
    ) -> tuple[Drawn, Array, Array]:
        """The drawn features to use for fresh samples, and features and fields of training samples.

        The former are these, unless they depend on the training samples.
        """
        c, nu = self.data(rows, rng, displaced)
        return *self.trained_on(c, rng, equivalent=equivalent), nu

    def trained_on(
        self, c: Array, rng: np.random.Generator, *, equivalent: bool
    ) -> tuple[Drawn, Array]:
        """The drawn features to use once training inputs are known, and the features of these."""
        return self, self.features(c, rng, equivalent=equivalent)

    def data(
        self, rows: int, rng: np.random.Generator, displaced: Array | None
    ) -> tuple[Array, Array]:
        """Inputs (rows, d) of fresh samples, which may be displaced, and the fields."""
        c, nu = self.inputs.sample(rows, rng)
        if displaced is not None:
            c += np.outer(displaced, self.inputs.field_covariance)
            nu += displaced * self.inputs.rho
        return c, nu

    def features(self, c: Array, rng: np.random.Generator, *, equivalent: bool) -> Array:
        """The features (rows, p) of inputs, or their Gaussian-equivalent twins."""
        return c

    def overlaps(self, w: Array) -> dict[str, float]:
        """Variance Q of the prediction x·w/√p, its covariance M with the field, and others."""
        return self.inputs.overlaps(w)

    def latent_weights(self, w: Array) -> Array:
        """Weights of the inputs in the linear part of the prediction x·w/√p, c·latent/√d."""
        return w

    def constant(self, w: Array) -> float:
        """Mean of the prediction x·w/√p, of features that have a mean."""
        return 0.0

    def rounding(self, lam: float) -> float:
        """Relative change of a minimum, at λ, that rounding of the training features may cause."""
        return 0.0


class Features:
    """Base of all features."""

    rho: float | None = None
    """The variance of the teacher's field if the features fix it."""

    @property
    def fixed_ratio(self) -> float | None:
        """The ratio d/p if the features fix it, else None."""
        return None

    @property
    def fixed_dimension(self) -> int | None:
        """The latent dimension d if the features fix it, else None."""
        return None

    infinite: ClassVar[bool] = False
    """Whether there are infinitely many features, those of a kernel; then p is not a size."""

    @property
    def size(self) -> float:
        """Number of features over the p in whose units they are counted; 1 unless infinite."""
        return 1.0

    def columns(self, n: int, p: int) -> int:
        """Number of features that a fit of n samples has."""
        return p

    @property
    def corner(self) -> float | None:
        """The d/p at which curves have a corner, None if there is none."""
        return None

    @property
    def mean(self) -> float:
        """Mean of a feature: if it is not zero, features provide an intercept."""
        return 0.0

    @property
    def penalised_intercept(self) -> bool:
        """Whether features provide an intercept whose penalty does not vanish in the limit."""
        return False

    @property
    def variance(self) -> float:
        """Variance of a feature, on average."""
        raise NotImplementedError

    @property
    def visibility_bound(self) -> float:
        """Bound: p features show at most this times p/d of the field; 1 if directions are equal."""
        return 1.0

    @property
    def blind(self) -> bool:
        """Whether the features see nothing of the teacher's field, at any d/p."""
        return False

    @property
    def noiseless(self) -> bool:
        """Whether features are linear in the latent data, so that at most d are independent."""
        return False

    measured_overlaps: ClassVar[tuple[str, ...]] = ("Q", "M")
    """Names of what `Drawn.overlaps` returns."""

    def as_arguments(self) -> dict[str, object]:
        """Arguments with which `Model` builds these features, by name."""
        return {"features": self}

    def sums(self, k: Array, gamma: Array, boost: Array | float = 1.0) -> Sums:
        """The sums at k and d/p, arrays of one shape.

        With a `boost` the variance of the latent data is multiplied by it, while the noise of
        activations stays.
        """
        raise NotImplementedError

    def pair_sums(self, k: Numbers, other: Numbers, gamma: Array) -> PairSums:
        """The sums at two arguments k and l, for two fits on the same features.

        All three are arrays of one shape; k and l may be complex, off the negative axis.
        """
        raise NotImplementedError

    def chain(self, gamma: Array) -> Chain:
        """The same, as a chain of layers whose arguments are found together."""
        return Chain(of_any_shape(self.pair_sums, gamma), self.largest(gamma))

    random: ClassVar[bool] = False
    """Whether every draw of the features is another one; else they are a function of the data."""

    def check_redrawn(self) -> None:
        """Raise if the features cannot be drawn independently, as those of a given matrix."""

    def response(self, k: Array, gamma: Array) -> Response:
        """The response of directions of the data to a fit, at k and d/p; by default of white data.

        It is the mean over draws of the features.
        """
        sums = self.sums(k, gamma)
        return Response.of_white(sums.T1, sums.U1)

    def largest(self, gamma: Array) -> Array:
        """The largest eigenvalue of the features' covariance, at each d/p."""
        raise NotImplementedError

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        """Rough count of the numbers held in memory while features of `rows` samples are drawn."""
        raise NotImplementedError

    def draw(self, d: int, p: int, rho: float, rng: np.random.Generator) -> Drawn:
        """Draw features of given sizes, and a teacher whose field has the variance rho."""
        raise NotImplementedError

    def redrawn(self, drawn: Drawn, p: int, rng: np.random.Generator) -> Drawn:
        """A draw of p features of the inputs of drawn ones; these if they are not random."""
        return drawn

    def further_overlaps(self, at: SpectralArguments) -> Columns:
        """Overlaps that only this kind of features has, by name."""
        return {}

    def visible(self, gamma: Array) -> Visible:
        """What the features show with noiseless labels and unlimited samples."""
        with np.errstate(all="ignore"):  # of what overflows at the least k, nothing is used
            sums = self.sums(np.full_like(gamma, FAINT), gamma)
            shown, hidden = sums.T1, sums.U1
            vanishes = 0.1 * hidden < sums.T11  # together with k
            hidden = np.where(vanishes, 0.0, hidden)
        rank = sums.D1
        for whole in (gamma, 1.0):  # as many as data, or all of them: exactly
            rank = np.where(np.abs(rank - whole) < ROUNDING * rank, whole, rank)
        return Visible(np.minimum(shown, 1.0), np.minimum(hidden, 1.0), rank)

    def posterior(self, gamma: Array) -> Posterior:
        """Posterior of a teacher drawn from N(0, rho I), given the features."""
        visible = self.visible(gamma)
        return LatentPosterior(gamma, visible.fraction, visible.hidden, self)
