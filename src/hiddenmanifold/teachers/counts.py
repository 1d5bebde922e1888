"""Discrete labels: counts, successes, ordered grades, and any finite set of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import (
    EXTREME,
    check_count,
    check_kinks,
    check_number,
    check_scale,
    finite_vector,
)
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.teachers.functions_of_field import Function, OfField
from hiddenmanifold.teachers.label_points import CountTeacher, PointTeacher
from hiddenmanifold.teachers.real import check_function

MOST_TRIALS = 1000
"""Trials whose numbers of successes are summed one by one."""


class _Rate(CountTeacher):
    """Counts whose mean is a positive function of the field."""

    rate: str | Function
    intercept: float
    slope: float
    kinks: tuple[float, ...]

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        own = self._rate.kinks
        object.__setattr__(self, "kinks", tuple(sorted({*check_kinks(self.kinks), *own})))
        rates = check_function("rate", self._rate, self.rho)
        if rates.min() < 0.0:
            raise InvalidArgumentError.because(
                "rate", f"is {rates.min():g} at some field", "it is a mean count: not negative"
            )
        _ = self.halvings

    @cached_property
    def _rate(self) -> OfField:
        return OfField("rate", self.rate, self.intercept, self.slope)

    def label_mean(self, nu: Array) -> Array:
        return self._rate(nu)


@dataclass(frozen=True)
class Poisson(_Rate):
    r"""Poisson counts of mean r(ν).

    Parameters
    ----------
    rate : str or callable
        The function r: vectorised, or a name as "exp", "softplus", "logistic".
    intercept, slope : float
        A named function is taken at intercept + slope ν.
    kinks : tuple of float
        Fields where the rate or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    rate: str | Callable[[Array], Array] = "exp"
    intercept: float = 0.0
    slope: float = 1.0
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def label_variance(self, nu: Array) -> Array:
        return self._rate(nu)

    def law(self, y: Array, nu: Array) -> Array:
        rate = self._rate(nu)
        law: Array = np.exp(scipy.special.xlogy(y, rate) - rate - scipy.special.gammaln(y + 1.0))
        return law

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return rng.poisson(self._rate(nu)).astype(float)


@dataclass(frozen=True)
class NegativeBinomial(_Rate):
    r"""Counts of mean r(ν) and variance :math:`r + r^2/k`: Poisson's with a random rate.

    Parameters
    ----------
    rate : str or callable
        The mean r, as in `Poisson`.
    size : float
        The k; large ones are almost Poisson's.
    intercept, slope, kinks, rho
        As in `Poisson`.
    """

    rate: str | Callable[[Array], Array] = "exp"
    size: float = 2.0
    intercept: float = 0.0
    slope: float = 1.0
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_number("size", self.size, 1e-2, 1e6)
        super().__post_init__()

    def label_variance(self, nu: Array) -> Array:
        rate = self._rate(nu)
        return rate + rate**2 / self.size

    def law(self, y: Array, nu: Array) -> Array:
        rate, k = self._rate(nu), self.size
        ways = (
            scipy.special.gammaln(y + k) - scipy.special.gammaln(k) - scipy.special.gammaln(y + 1.0)
        )
        log_failure = -np.log1p(rate / k)
        law: Array = np.exp(
            ways + k * log_failure + scipy.special.xlogy(y, rate / k) + y * log_failure
        )
        return law

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        rate = self._rate(nu) * rng.gamma(self.size, 1.0 / self.size, nu.shape)
        return rng.poisson(rate).astype(float)


@dataclass(frozen=True)
class Binomial(PointTeacher):
    """Successes in a number of trials, each of probability p(ν).

    Parameters
    ----------
    trials : int
        The number of trials.
    probability : str or callable
        The function p: vectorised, with values in [0, 1], or a name as "logistic".
    intercept, slope : float
        A named function is taken at intercept + slope ν.
    kinks : tuple of float
        Fields where the probability or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    trials: int = 1
    probability: str | Callable[[Array], Array] = "logistic"
    intercept: float = 0.0
    slope: float = 1.0
    kinks: tuple[float, ...] = ()
    rho: float = 1.0
    discrete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        if check_count("trials", self.trials) > MOST_TRIALS:
            raise InvalidArgumentError("trials", self.trials, f"at most {MOST_TRIALS}")
        kinks = {*check_kinks(self.kinks), *self._share.kinks}
        object.__setattr__(self, "kinks", tuple(sorted(kinks)))
        shares = check_function("probability", self._share, self.rho)
        if shares.min() < 0.0 or shares.max() > 1.0:
            raise InvalidArgumentError.because(
                "probability",
                f"ranges from {shares.min():g} to {shares.max():g}",
                "it must stay within [0, 1]",
            )
        _ = self.halvings

    @cached_property
    def _share(self) -> OfField:
        return OfField("probability", self.probability, self.intercept, self.slope)

    def label_mean(self, nu: Array) -> Array:
        return self.trials * self._share(nu)

    def label_variance(self, nu: Array) -> Array:
        p = self._share(nu)
        return self.trials * p * (1.0 - p)

    @property
    def label_range(self) -> tuple[float, float]:
        return 0.0, float(self.trials)

    def points(self, level: int) -> tuple[Array, Array]:
        return np.arange(self.trials + 1.0), np.ones(self.trials + 1)

    def law(self, y: Array, nu: Array) -> Array:
        m, p = self.trials, self._share(nu)
        ways = (
            scipy.special.gammaln(m + 1.0)
            - scipy.special.gammaln(y + 1.0)
            - scipy.special.gammaln(m - y + 1.0)
        )
        law: Array = np.exp(ways + scipy.special.xlogy(y, p) + scipy.special.xlog1py(m - y, -p))
        return law

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(self.trials, self._share(nu)).astype(float)


class _Values(PointTeacher):
    """Labels of a finite set."""

    values: tuple[float, ...]
    discrete: ClassVar[bool] = True

    def _shares(self, nu: Array) -> Array:
        """Probabilities (K, *shape) of the values."""
        raise NotImplementedError

    @property
    def label_range(self) -> tuple[float, float]:
        return min(self.values), max(self.values)

    def points(self, level: int) -> tuple[Array, Array]:
        return np.array(self.values), np.ones(len(self.values))

    def law(self, y: Array, nu: Array) -> Array:  # of all values, in their order
        return self._shares(np.ravel(nu))

    def label_mean(self, nu: Array) -> Array:
        mean: Array = np.tensordot(self.values, self._shares(nu), 1)
        return mean

    def label_variance(self, nu: Array) -> Array:
        shares, values = self._shares(nu), np.array(self.values)
        away = values.reshape(-1, *[1] * np.ndim(nu)) - np.tensordot(values, shares, 1)
        spread: Array = (shares * away**2).sum(0)
        return spread

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        below = np.cumsum(self._shares(nu), axis=0)[:-1]
        y: Array = np.array(self.values)[(rng.random(nu.shape) >= below).sum(0)]
        return y


def _checked_values(values: object) -> tuple[float, ...]:
    found = tuple(finite_vector("values", values).tolist())  # type: ignore[arg-type]
    if len(found) < 2 or len(set(found)) < len(found):
        raise InvalidArgumentError("values", values, "at least two different numbers")
    return found


@dataclass(frozen=True)
class Ordered(_Values):
    r"""Ordered labels: the value of the interval in which :math:`\nu + \sqrt\Delta\,\xi` lies.

    Parameters
    ----------
    values : tuple of float
        The labels, from the lowest interval to the highest.
    cuts : tuple of float
        The places between intervals, increasing, one fewer than labels.
    noise : float
        The variance Δ.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    values: tuple[float, ...] = (0.0, 1.0, 2.0)
    cuts: tuple[float, ...] = (-0.5, 0.5)
    noise: float = 0.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        check_number("noise", self.noise, 0.0, EXTREME)
        object.__setattr__(self, "values", _checked_values(self.values))
        cuts = tuple(float(cut) for cut in self.cuts)
        if list(cuts) != sorted(set(check_kinks(cuts))) or len(cuts) != len(self.values) - 1:
            raise InvalidArgumentError(
                "cuts", self.cuts, f"{len(self.values) - 1} increasing numbers, one between values"
            )
        object.__setattr__(self, "cuts", cuts)
        _ = self.halvings

    @property
    def kinks(self) -> tuple[float, ...]:  # type: ignore[override]
        width = float(np.sqrt(self.noise))
        if width > 0.5 * np.sqrt(self.rho):
            return ()
        # changes that panels of the field would not resolve are cut into such as do
        around = (-6.0, -2.0, 0.0, 2.0, 6.0) if width else (0.0,)
        return tuple(sorted(cut + width * step for cut in self.cuts for step in around))

    def _shares(self, nu: Array) -> Array:
        distance = np.array(self.cuts).reshape(-1, *[1] * np.ndim(nu)) - nu
        inside = np.where(distance > 0.0, np.inf, -np.inf)
        if self.noise:
            inside = distance / np.sqrt(self.noise)
        ends = np.full((1, *np.shape(nu)), np.inf)
        low, high = np.concatenate([-ends, inside]), np.concatenate([inside, ends])
        ndtr = scipy.special.ndtr
        # of two tails, the smaller one keeps its digits
        shares: Array = np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        return shares


@dataclass(frozen=True)
class Discrete(_Values):
    """Labels of a finite set, by their probabilities.

    Parameters
    ----------
    values : tuple of float
        The labels.
    probabilities : callable
        From an array of fields to the probabilities of all labels, one row for each label.
    kinks : tuple of float
        Fields where a probability or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.

    Raises
    ------
    InvalidArgumentError
        If probabilities are negative, do not sum to one, or jump where no kink is declared.
    """

    values: tuple[float, ...]
    probabilities: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        object.__setattr__(self, "values", _checked_values(self.values))
        object.__setattr__(self, "kinks", check_kinks(self.kinks))
        nu = np.sqrt(self.rho) * np.linspace(-9.0, 9.0, 361)
        shares = np.asarray(self.probabilities(nu), dtype=float)
        if shares.shape != (len(self.values), len(nu)):
            raise InvalidArgumentError.because(
                "probabilities",
                f"turned {len(nu)} fields into an array of shape {shares.shape}",
                f"return one row for each of the {len(self.values)} values",
            )
        if not np.isfinite(shares).all() or shares.min() < 0.0:
            raise InvalidArgumentError.because(
                "probabilities", "are not all finite and at least 0", "correct the function"
            )
        if (worst := float(np.abs(shares.sum(0) - 1.0).max())) > 1e-12:
            raise InvalidArgumentError.because(
                "probabilities", f"sum to one only within {worst:.3g}", "they must sum to one"
            )
        _ = self.halvings

    def _shares(self, nu: Array) -> Array:
        flat = np.asarray(self.probabilities(np.ravel(nu)), dtype=float)
        return flat.reshape(len(self.values), *np.shape(nu))
