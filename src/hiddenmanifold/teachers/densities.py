"""Continuous labels by their density: positive ones of a given mean, and any others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_kinks, check_number, check_scale
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.numerics.panels import gauss_legendre
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.teachers.functions_of_field import OfField
from hiddenmanifold.teachers.label_points import PointTeacher
from hiddenmanifold.teachers.noises import NormalMixture
from hiddenmanifold.teachers.real import FIELD_RULES, check_function

STEPS = (0.65, 0.55, 0.45, 0.36, 0.27, 0.2, 0.14, 0.1, 0.07)
"""Steps in log y, in units of the deviation of log y or of `WIDEST`, on each level of quadrature.

The trapezoidal rule converges exponentially: 0.65 leaves 1e-10, 0.45 is exact to rounding."""
EVEN = 6.0
"""Up to so many deviations of a label, points for losses of the residual are about equally far
apart in y; farther out such a loss is straight, and they are equally far apart in log y."""
WIDEST = 0.55
"""The unit of steps where log y varies more: Gamma's density is analytic in log y within π/2 of the
real line, so that a step h leaves exp(-π²/h)."""
DEVIATIONS = 9.0
"""Deviations of log y beyond which a law is cut."""
BLOCK = 2**20
"""Values of a density held at once."""
REMAINDER = 42.0
"""Where the tails of log y fall exponentially, the exponent at which they are cut."""


class _Positive(PointTeacher):
    """Positive labels, whose mean is a positive function of the field."""

    def _check(self) -> None:
        check_scale("rho", self.rho)
        object.__setattr__(self, "kinks", check_kinks(self.kinks))
        means = check_function("mean", self._mean, self.rho)
        if means.min() <= 0.0:
            raise InvalidArgumentError.because(
                "mean", f"is {means.min():g} at some field", "positive labels have a positive mean"
            )
        _ = self.halvings

    @cached_property
    def _mean(self) -> OfField:
        raise NotImplementedError

    def label_mean(self, nu: Array) -> Array:
        return self._mean(nu)

    def _log_range(self) -> tuple[float, float, float]:
        """Where the law of log(y/mean) begins and ends, and its deviation."""
        raise NotImplementedError

    def _range(self, level: int) -> tuple[float, float, float]:
        """Where log y begins and ends, and the step between points."""
        nu, _ = self.panels(20, 0)
        means = np.log(self._mean(nu))
        low, high, deviation = self._log_range()
        return means.min() + low, means.max() + high, STEPS[level] * min(deviation, WIDEST)

    def points(self, level: int) -> tuple[Array, Array]:
        low, high, step = self._range(level)
        t = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)
        return np.exp(t), step * np.exp(t)

    def components(self, nu: Array, level: int) -> NormalMixture:
        """Point masses that resolve a loss of the residual, which the usual points need not."""
        low, high, step = self._range(level)
        m = self.moments
        reach = EVEN * np.sqrt(m.second - m.mean**2)

        def curve(log_y: Array) -> tuple[Array, Array]:
            """A variable in which points are equally far apart, and its derivative by log y."""
            share = np.exp(log_y) / (np.exp(log_y) + reach)
            return log_y + EVEN * share, 1.0 + EVEN * share * (1.0 - share)

        ends = curve(np.array([low, high]))[0]
        x = step * np.arange(np.floor(ends[0] / step), np.ceil(ends[1] / step) + 1)
        log_y = increasing_root(
            lambda t, i: (curve(t)[0] - x[i], curve(t)[1]), (x - EVEN, x), start=x
        )
        y = np.exp(log_y)
        law = (step * y / curve(log_y)[1])[:, None] * self.law(y[:, None], nu)
        return NormalMixture(law, np.broadcast_to(y[:, None], law.shape), np.zeros(law.shape))


@dataclass(frozen=True)
class Gamma(_Positive):
    r"""Positive labels of Gamma's law with mean m(ν) and variance :math:`m^2/k`.

    Parameters
    ----------
    mean : str or callable
        The function m: vectorised, or a name as "exp" or "softplus".
    shape : float
        The k; 1 is the exponential law.
    intercept, slope : float
        A named function is taken at intercept + slope ν.
    kinks : tuple of float
        Fields where the mean or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    mean: str | Callable[[Array], Array] = "exp"
    shape: float = 2.0
    intercept: float = 0.0
    slope: float = 1.0
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_number("shape", self.shape, 0.05, 1e4)
        self._check()

    @cached_property
    def _mean(self) -> OfField:
        return OfField("mean", self.mean, self.intercept, self.slope)

    def label_variance(self, nu: Array) -> Array:
        variance: Array = self._mean(nu) ** 2 / self.shape
        return variance

    def _log_range(self) -> tuple[float, float, float]:
        k = self.shape
        deviation = float(np.sqrt(scipy.special.polygamma(1, k)))
        high = np.log1p(DEVIATIONS / np.sqrt(k) + REMAINDER / k)
        return -max(DEVIATIONS * deviation, REMAINDER / k), float(high), deviation

    def law(self, y: Array, nu: Array) -> Array:
        k, mean = self.shape, self._mean(nu)
        log_law = k * np.log(k * y / mean) - k * y / mean - scipy.special.gammaln(k)
        law: Array = np.exp(log_law) / y
        return law

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return rng.gamma(self.shape, self._mean(nu) / self.shape)


@dataclass(frozen=True)
class LogNormal(_Positive):
    """Positive labels whose logarithm is normal.

    Parameters
    ----------
    mean : str or callable
        The mean of the label given the field, as in `Gamma`.
    variance : float
        The variance of log y.
    intercept, slope, kinks, rho
        As in `Gamma`.
    """

    mean: str | Callable[[Array], Array] = "exp"
    variance: float = 0.5
    intercept: float = 0.0
    slope: float = 1.0
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_number("variance", self.variance, 1e-6, 20.0)
        self._check()

    @cached_property
    def _mean(self) -> OfField:
        return OfField("mean", self.mean, self.intercept, self.slope)

    def label_variance(self, nu: Array) -> Array:
        variance: Array = self._mean(nu) ** 2 * np.expm1(self.variance)
        return variance

    def _log_range(self) -> tuple[float, float, float]:
        v = self.variance
        sd = float(np.sqrt(v))  # the mean square lies 2v above the mode
        return -0.5 * v - DEVIATIONS * sd, 1.5 * v + DEVIATIONS * sd, sd

    def law(self, y: Array, nu: Array) -> Array:
        v = self.variance
        away = np.log(y) - np.log(self._mean(nu)) + 0.5 * v
        law: Array = np.exp(-0.5 * away**2 / v) / (y * np.sqrt(2.0 * np.pi * v))
        return law

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        v = self.variance
        noise = np.sqrt(v) * rng.standard_normal(nu.shape) - 0.5 * v
        y: Array = self._mean(nu) * np.exp(noise)
        return y


@dataclass(frozen=True)
class Density(PointTeacher):
    """Continuous labels of any density given the field.

    Parameters
    ----------
    density : callable
        ``density(y, nu)``, vectorised over arrays that broadcast.
    grid : tuple of float
        Edges in y, from the lowest label to the highest, between which the density is smooth.
    sampler : callable
        ``sampler(nu, rng)`` draws a label for each field.
    kinks : tuple of float
        Fields where the density or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.

    Raises
    ------
    InvalidArgumentError
        If the density is negative or does not integrate to one over the grid.
    """

    density: Callable[[Array, Array], Array]
    grid: tuple[float, ...]
    sampler: Callable[[Array, np.random.Generator], Array]
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        object.__setattr__(self, "kinks", check_kinks(self.kinks))
        grid = np.array(self.grid, dtype=float)
        if grid.ndim != 1 or len(grid) < 2 or not (np.diff(grid) > 0).all():
            raise InvalidArgumentError("grid", self.grid, "increasing edges, at least two")
        object.__setattr__(self, "grid", tuple(grid.tolist()))
        nu = np.sqrt(self.rho) * np.linspace(-9.0, 9.0, 91)
        y, weights = self.points(3)
        law = np.asarray(self.density(y[:, None], nu), dtype=float)
        if law.shape != (len(y), len(nu)) or not np.isfinite(law).all() or law.min() < 0.0:
            raise InvalidArgumentError.because(
                "density",
                "is not an array of finite numbers of at least 0",
                "it must be vectorised over labels (J, 1) and fields (N,)",
            )
        worst = float(np.abs(weights @ law - 1.0).max())
        if worst > 1e-9:
            raise InvalidArgumentError.because(
                "density",
                f"integrates to one over the grid only within {worst:.3g}",
                "extend the grid, or add edges where the density is narrow or has a corner",
            )
        _ = self.halvings

    def points(self, level: int) -> tuple[Array, Array]:
        t, w = gauss_legendre(*FIELD_RULES[level])
        edges = np.array(self.grid)
        width = np.diff(edges)[:, None]
        return (edges[:-1, None] + width * t).ravel(), (width * w).ravel()

    def law(self, y: Array, nu: Array) -> Array:
        return np.asarray(self.density(y, nu), dtype=float)

    def label_mean(self, nu: Array) -> Array:
        return self._power(nu, 1)

    def label_variance(self, nu: Array) -> Array:
        return np.maximum(self._power(nu, 2) - self._power(nu, 1) ** 2, 0.0)

    def _power(self, nu: Array, power: int) -> Array:
        """Mean of a power of the label given the field, some fields at a time."""
        y, weights = self.points(4)
        fields = np.ravel(nu)
        parts = np.array_split(fields, 1 + len(y) * len(fields) // BLOCK)
        found = [(weights * y**power) @ self.law(y[:, None], part) for part in parts]
        return np.concatenate(found).reshape(np.shape(nu))

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return np.asarray(self.sampler(nu, rng), dtype=float)
