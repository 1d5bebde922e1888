r"""Noise that is added to a label, in two forms: drawn, and as a mixture of normal laws.

A mixture of normals with weights :math:`\pi_k`, means and variances is all that the theory needs:
given a component, residuals are normal. Laplace's and Student's laws are mixtures over the
variance, by trapezoidal sums; other laws are sums of points. Both are as fine as a level of
quadrature asks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import (
    EXTREME,
    check_kinks,
    check_number,
    check_scale,
    finite_vector,
    resolve,
    sampled,
)
from hiddenmanifold.errors import InvalidArgumentError, plural
from hiddenmanifold.numerics.panels import gauss_legendre

STEP = 0.25
"""Step of the sums over a random variance on the first level; two levels further it is half.

It resolves averages on the scale of the noise to 1e-13, but those on scales 100 times larger (the
tails of Student's law, if V is large) or smaller (the peak of Laplace's) only to 1e-5."""
NEGLIGIBLE = 1e-30
"""Components of less weight are left out: where V is 1e6, tails of 1e-19 change Q by 1e-7."""
LONGEST = 400.0
"""Logarithm of the largest variance of a component: its square is still a number."""
POINTS = 24
"""Gauss–Legendre nodes of a panel of points."""


class NormalMixture(NamedTuple):
    """Weights, means and variances of the normal laws that a law is made of."""

    weights: Array
    means: Array
    variances: Array


class Noise:
    """Base of all laws of noise.

    Attributes
    ----------
    mean, variance : float
        Of the noise; the variance may be infinite, and the mean of a law that has none is its
        centre.
    symmetric : bool
        Whether the noise and its negative have one law.
    has_mean : bool
        Whether the mean of its modulus is finite.
    """

    mean: float = 0.0
    variance: float
    symmetric: bool = True
    has_mean: bool = True

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value, infinite if there is none."""
        return (0.0, 0.0) if self.variance == 0.0 else (-math.inf, math.inf)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Independent draws."""
        raise NotImplementedError

    def components(self, level: int) -> NormalMixture:
        """The law as a mixture of normals, on a level of quadrature."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise.

    Parameters
    ----------
    variance : float
        Its variance; zero means none.
    """

    variance: float = 0.0

    def __post_init__(self) -> None:
        check_number("variance", self.variance, 0.0, EXTREME)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        noise: Array = np.sqrt(self.variance) * rng.standard_normal(shape)
        return noise

    def components(self, level: int) -> NormalMixture:
        return NormalMixture(np.ones(1), np.zeros(1), np.array([self.variance]))


@dataclass(frozen=True)
class Laplace(Noise):
    r"""Laplace's law, of density :math:`e^{-|x|/s}/2s` and variance :math:`2s^2`.

    Parameters
    ----------
    scale : float
        The length s.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale("scale", self.scale)

    @property
    def variance(self) -> float:  # type: ignore[override]
        return 2.0 * self.scale**2

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.laplace(0.0, self.scale, shape)

    def components(self, level: int) -> NormalMixture:
        step = STEP * 2.0 ** (-0.5 * level)
        x = np.arange(-4.5, 5.0 + step, step)
        W = np.exp(x - np.exp(-x))  # exponentially distributed
        return _over_variance(step * W * (1.0 + np.exp(-x)) * np.exp(-W), 2.0 * self.scale**2 * W)


@dataclass(frozen=True)
class Student(Noise):
    """Student's law times a scale; one degree of freedom is Cauchy's law.

    Parameters
    ----------
    degrees : float
        Degrees of freedom, from 1/2 on. The variance is infinite up to 2, the mean up to 1.
    scale : float
        The factor.
    """

    degrees: float = 3.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("degrees", self.degrees, 0.5, 1e6)
        check_scale("scale", self.scale)

    @property
    def variance(self) -> float:  # type: ignore[override]
        m = self.degrees
        return math.inf if m <= 2 else self.scale**2 * m / (m - 2.0)

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        return self.degrees > 1

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.scale * rng.standard_t(self.degrees, shape)

    def components(self, level: int) -> NormalMixture:
        half = 0.5 * self.degrees
        width = np.sqrt(1.0 / half)  # of the precision, which is distributed like Gamma(half)/half
        step = min(STEP, 0.4 * width) * 2.0 ** (-0.5 * level)
        # the far end of the tail counts for the variance, if there is one
        tail = min(40.0 / (half - 1.0), LONGEST) if half > 1.0 else 0.0
        low = -np.log(max(60.0 / half, tail, 2.0))
        x = np.arange(low, np.log(1.0 + 12.0 * width + 45.0 / half) + 1.0, step)
        log_G = x - np.exp(-x)
        G = np.exp(log_G)
        log_weight = half * (np.log(half) + log_G - G) - scipy.special.gammaln(half)
        return _over_variance(step * (1.0 + np.exp(-x)) * np.exp(log_weight), self.scale**2 / G)


def _over_variance(weights: Array, variances: Array) -> NormalMixture:
    """A centred mixture, its weights made to sum to one, without components of no weight."""
    kept = weights * (1.0 + variances / np.median(variances)) > NEGLIGIBLE
    weights, variances = weights[kept], variances[kept]
    return NormalMixture(weights / weights.sum(), np.zeros(len(weights)), variances)


@dataclass(frozen=True)
class Mixture(Noise):
    """Normal noise of several variances, as that of labels some of which are outliers.

    Parameters
    ----------
    weights : tuple of float
        Probabilities, which sum to one.
    variances : tuple of float
        The variance of each kind of noise.
    """

    weights: tuple[float, ...] = (0.9, 0.1)
    variances: tuple[float, ...] = (1.0, 100.0)

    def __post_init__(self) -> None:
        weights, variances = (
            finite_vector(name, getattr(self, name)) for name in ("weights", "variances")
        )
        if len(weights) != len(variances):
            raise InvalidArgumentError.because(
                "variances",
                f"has {len(variances)} entries, weights has {len(weights)}",
                "give one variance for each weight",
            )
        if weights.min() <= 0.0 or abs(weights.sum() - 1.0) > 1e-9:
            raise InvalidArgumentError("weights", self.weights, "positive, with the sum 1")
        if variances.min() < 0.0 or variances.max() > EXTREME:
            raise InvalidArgumentError("variances", self.variances, f"from 0 to {EXTREME:g}")
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))
        object.__setattr__(self, "variances", tuple(variances.tolist()))

    @property
    def variance(self) -> float:  # type: ignore[override]
        return float(np.dot(self.weights, self.variances))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        kind = rng.choice(len(self.weights), size=shape, p=self.weights)
        noise: Array = np.sqrt(np.array(self.variances))[kind] * rng.standard_normal(shape)
        return noise

    def components(self, level: int) -> NormalMixture:
        weights = np.array(self.weights)
        return NormalMixture(weights, np.zeros_like(weights), np.array(self.variances))


class _Points(Noise):
    """Noise of a bounded range, as a sum of points in it."""

    def _edges(self) -> Array:
        raise NotImplementedError

    def _density(self, x: Array) -> Array:
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[float, float]:
        edges = self._edges()
        return float(edges[0]), float(edges[-1])

    def components(self, level: int) -> NormalMixture:
        t, w = gauss_legendre(POINTS, max(level - 1, 0))
        edges = self._edges()
        width = np.diff(edges)[:, None]
        x = (edges[:-1, None] + width * t).ravel()
        weights = (width * w).ravel() * self._density(x)
        return NormalMixture(weights, x, np.zeros_like(x))


@dataclass(frozen=True)
class Uniform(_Points):
    """Noise that is uniform between minus and plus its half width.

    Parameters
    ----------
    half_width : float
        Half the length of the interval.
    """

    half_width: float = 1.0

    def __post_init__(self) -> None:
        check_scale("half_width", self.half_width)

    @property
    def variance(self) -> float:  # type: ignore[override]
        return self.half_width**2 / 3.0

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.uniform(-self.half_width, self.half_width, shape)

    def _edges(self) -> Array:
        return np.array([-self.half_width, self.half_width])

    def _density(self, x: Array) -> Array:
        return np.full_like(x, 0.5 / self.half_width)


@dataclass(frozen=True)
class Custom(_Points):
    """Noise of any density on an interval.

    Parameters
    ----------
    density : callable
        Vectorised density, which integrates to one over the interval.
    sampler : callable
        ``sampler(shape, rng)`` returns independent draws of the same law.
    between : tuple of float
        The ends of the interval, and places in it where the density or its slope jumps.

    Raises
    ------
    InvalidArgumentError
        If the density is negative or does not integrate to one.
    """

    density: Callable[[Array], Array]
    sampler: Callable[[tuple[int, ...], np.random.Generator], Array]
    between: tuple[float, ...]
    mean: float = field(init=False, repr=False, compare=False)
    variance: float = field(init=False, repr=False, compare=False)
    symmetric = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "between", check_kinks(self.between))
        if len(self.between) < 2 or self.between[0] == self.between[-1]:
            raise InvalidArgumentError("between", self.between, "an interval, as (-3.0, 3.0)")
        points = self.components(4)
        p = sampled("density", self.density, points.means)
        if p.min() < 0.0:
            raise InvalidArgumentError.because(
                "density", f"is {p.min():g} somewhere", "it must not be negative"
            )
        for total in (points.weights.sum(), self.components(5).weights.sum()):
            if abs(total - 1.0) > 1e-10:
                raise InvalidArgumentError.because(
                    "density",
                    f"integrates to {total:.12g} over {self.between}",
                    "it must integrate to one; give all jumps and corners in `between`",
                )
        mean = float(points.weights @ points.means)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", float(points.weights @ (points.means - mean) ** 2))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.asarray(self.sampler(shape, rng), dtype=float)

    def _edges(self) -> Array:
        return np.array(self.between)

    def _density(self, x: Array) -> Array:
        return np.asarray(self.density(x), dtype=float)


REGISTRY: dict[str, type[Noise]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "student": Student,
    "mixture": Mixture,
    "uniform": Uniform,
}


def noise_of(given: object) -> Noise:
    """The noise that is meant: none, a variance, a name such as "laplace(0.5)", or a `Noise`."""
    if given is None:
        return Gaussian(0.0)
    if isinstance(given, int | float | np.floating | np.integer):
        check_number("noise", given, 0.0, EXTREME)
        return Gaussian(float(given))
    if isinstance(given, str) and (found := re.fullmatch(r"(\w+)\((.*)\)", given)):
        name, numbers = found[1], found[2]
        cls = type(resolve("noise", name, Noise, REGISTRY))
        try:
            values = [float(text) for text in re.split("[,;]", numbers)]
        except ValueError:
            allowed = "a name and numbers, as 'student(3,1)'"
            raise InvalidArgumentError("noise", given, allowed) from None
        if cls is Mixture:
            half = len(values) // 2
            return Mixture(tuple(values[:half]), tuple(values[half:]))
        if len(values) > (most := sum(part.init for part in fields(cls))):  # type: ignore[arg-type]
            raise InvalidArgumentError(
                "noise", given, f"{name} with at most {plural(most, 'number')}"
            )
        return cls(*values)
    return resolve("noise", given, Noise, REGISTRY)
