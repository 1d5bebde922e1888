r"""Labels that are numbers: :math:`y = \varphi(\nu) + s(\nu)\,\epsilon` with noise of any law.

The theory knows the law of a label given the field as a mixture of normals
(`RealTeacher.components`), and averages it over the field on Gauss–Legendre panels that are cut
where the rule has kinks. These do not depend on the point that is solved: the rule is evaluated
once for each level of quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, check_kinks, check_scale, sampled
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.numerics.panels import REACH, gauss_legendre
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers.base import Teacher
from hiddenmanifold.teachers.functions_of_field import OfField
from hiddenmanifold.teachers.noises import Noise, NormalMixture, noise_of

FIELD_RULES = ((8, 0), (10, 0), (14, 0), (18, 0), (24, 0), (20, 1), (20, 2), (20, 3), (20, 4))
"""Gauss–Legendre order and halvings of panels of the field, on each level of quadrature.

There are as many as levels of the proximal curve, and each resolves the field as well as that."""
REACHES = (REACH, 12.0, 16.0, 22.0, 30.0, 37.0)
"""Where the law of the field may be cut, in standard deviations: the first beyond which labels do
not count, however large they are."""
UNSEEN = 1e-17
"""What may lie beyond, in units of the mean square of a label."""
SETTLED = 1e-12
"""Relative change under halving of panels at which the moments of labels are known."""
FINEST = 9
"""How often panels are halved, at most, before a rule is refused."""


class LabelMoments(NamedTuple):
    r"""Moments of a label.

    Attributes
    ----------
    mean, second : float
        :math:`E y` and :math:`E y^2`, which may be infinite.
    slope : float
        :math:`c = E[y\nu]/\rho`.
    explained : float
        :math:`E\bar y^2` of the mean label :math:`\bar y = E[y|\nu]`.
    """

    mean: float
    second: float
    slope: float
    explained: float


@lru_cache(maxsize=256)
def field_panels(
    rho: float, kinks: tuple[float, ...], reach: float, order: int, halvings: int
) -> tuple[Array, Array]:
    """Nodes of the field and their weights: panels of a standard deviation, cut at the kinks."""
    sd, whole = math.sqrt(rho), math.ceil(reach)
    edges = sd * np.union1d(np.linspace(-whole, whole, 2 * whole + 1), np.array(kinks) / sd)
    edges = edges[np.abs(edges) <= whole * sd]
    t, w = gauss_legendre(order, halvings)
    width = np.diff(edges)[:, None]
    nu = (edges[:-1, None] + width * t).ravel()
    weights = (width * w).ravel() * normal_density(nu / sd) / sd
    nu.flags.writeable = weights.flags.writeable = False
    return nu, weights


class RealTeacher(Teacher):
    """Base of the rules whose labels are numbers."""

    task: ClassVar[Task] = Task.REGRESSION
    kinks: tuple[float, ...] = ()
    """Fields at which the rule, or its slope, jumps."""
    halvings: int = 0
    """How often the panels of the field are halved on every level."""
    discrete: ClassVar[bool] = False
    """Whether some labels have a positive probability."""

    def label_mean(self, nu: Array) -> Array:
        raise NotImplementedError

    def noiseless(self, nu: Array) -> Array:
        return self.label_mean(nu)

    def label_variance(self, nu: Array) -> Array:
        """The variance of the label given the field, which may be infinite."""
        raise NotImplementedError

    def components(self, nu: Array, level: int) -> NormalMixture:
        """The law of the label given fields (N,) as a mixture of normals, arrays (K, N)."""
        raise NotImplementedError

    @property
    def symmetric(self) -> bool:
        r"""Whether :math:`P(-y|-\nu) = P(y|\nu)`."""
        return False

    @property
    def has_mean(self) -> bool:
        """Whether the mean modulus of a label is finite."""
        return True

    @property
    def label_range(self) -> tuple[float, float]:
        """The least and the largest label, infinite if there is none."""
        return -math.inf, math.inf

    @property
    def resolves_variance(self) -> bool:
        """Whether the components of labels have the variance of the labels themselves."""
        nu = np.zeros(1)
        weights, means, variances = (part[:, 0] for part in self.components(nu, 2))
        found = weights @ (variances + (means - self.label_mean(nu)) ** 2)
        exact = self.label_variance(nu)[0]
        return bool(abs(found - exact) <= 1e-9 * exact)

    @property
    def typical_labels(self) -> Array:
        nu = np.sqrt(self.rho) * np.linspace(-3.0, 3.0, 7)
        spread = np.minimum(np.sqrt(self.label_variance(nu)), 1e3)
        return np.unique(
            np.concatenate([self.label_mean(nu) + k * spread for k in (-3.0, 0.0, 3.0)])
        )

    def field(self, level: int, extra: int = 0) -> tuple[Array, Array]:
        """Fields and their weights on a level of quadrature, the panels halved `extra` times."""
        order, halvings = FIELD_RULES[level]
        return self.panels(order, halvings + self.halvings + extra)

    def panels(self, order: int, halvings: int) -> tuple[Array, Array]:
        """Fields and their weights by a rule of quadrature."""
        return field_panels(float(self.rho), self.kinks, self._reach, order, halvings)

    @cached_property
    def _reach(self) -> float:
        """Where the law of the field is cut."""
        sd = np.sqrt(self.rho)
        for reach in REACHES:
            nu = sd * np.linspace(-reach, reach, 257)
            with np.errstate(all="ignore"):
                size = self._size(nu) * normal_density(nu / sd)
            if not np.isfinite(size).all():
                break
            if max(size[0], size[-1]) <= UNSEEN * size.max():
                return float(reach)
        raise InvalidArgumentError.because(
            "teacher",
            f"{self} has labels that grow too fast with the field: their mean square is infinite, "
            "or not finite in double precision",
            "choose a rule that grows more slowly",
        )

    def _size(self, nu: Array) -> Array:
        """Square of a label at some fields, as far as it is finite."""
        variance = self.label_variance(nu)
        size: Array = (
            1e-300 + self.label_mean(nu) ** 2 + np.where(np.isinf(variance), 0.0, variance)
        )
        return size

    @cached_property
    def moments(self) -> LabelMoments:
        """Moments of a label, on panels that are halved until these settle.

        Raises
        ------
        InvalidArgumentError
            If they do not settle.
        """
        last = np.full(4, np.nan)
        for halvings in range(FINEST):
            nu, w = self.panels(20, halvings)
            mean, variance = self.label_mean(nu), self.label_variance(nu)
            finite = np.where(np.isinf(variance), 0.0, variance)
            found = np.array([w @ mean, w @ finite, w @ (nu * mean), w @ mean**2])
            size = np.sqrt([found[3], found[1] ** 2, self.rho * found[3], found[3] ** 2])
            if (np.abs(found - last) <= SETTLED * size + 1e-300).all():
                first, noise, product, explained = found.tolist()
                second = math.inf if np.isinf(variance).any() else explained + noise
                product = 0.0 if abs(product) <= 1e-14 * size[2] else product
                return LabelMoments(first, second, product / self.rho, explained)
            last = found
        raise InvalidArgumentError.because(
            "teacher",
            f"{self} has averages over the field that do not settle on {len(nu)} fields",
            "it must be smooth between its kinks: declare jumps and corners by kinks=(...)",
        )

    def __getstate__(self) -> dict[str, Any]:  # what was computed is soon made anew
        kind = type(self)
        computed = {n for n in vars(self) if isinstance(getattr(kind, n, None), cached_property)}
        return {name: part for name, part in vars(self).items() if name not in computed}


def check_function(name: str, function: Callable[[Array], Array], rho: float) -> Array:
    """Values of a function at typical fields; raise unless they are finite."""
    return sampled(name, function, np.sqrt(rho) * np.linspace(-9.0, 9.0, 1801))


@dataclass(frozen=True)
class Real(RealTeacher):
    r"""Labels :math:`y = \varphi(\nu) + s(\nu)\,\epsilon`, any function plus noise of any law.

    Parameters
    ----------
    function : str or callable
        The function φ of the field: vectorised, or one of the names "identity", "tanh", "relu",
        "absolute", "square", "cube", "sine", "exp", "softplus", "logistic".
    noise : Noise, float, str or None
        The law of ε (`hm.noises`), the variance of normal noise, or a name as "laplace(0.5)".
    scale : callable, optional
        The factor s(ν) of the noise; 1 if it is not given.
    kinks : tuple of float
        Fields where φ or s, or their slopes, jump.
    rho : float
        Second moment of the teacher's weights, positive.

    Raises
    ------
    InvalidArgumentError
        If a function is not finite or not vectorised, or jumps where no kink is declared.
    """

    function: str | Callable[[Array], Array] = "tanh"
    noise: Noise | float | str | None = 0.0
    scale: Callable[[Array], Array] | None = None
    kinks: tuple[float, ...] = ()
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        kinks = {*check_kinks(self.kinks), *self._phi.kinks}
        object.__setattr__(self, "kinks", tuple(sorted(kinks)))
        check_function("function", self._phi, self.rho)
        _ = self.law
        if self.scale is not None:
            factors = check_function("scale", self.scale, self.rho)
            if factors.min() < 0.0:
                raise InvalidArgumentError.because(
                    "scale", f"is {factors.min():g} at some field", "it must not be negative"
                )
        _ = self.moments

    @cached_property
    def _phi(self) -> OfField:
        return OfField("function", self.function)

    @cached_property
    def law(self) -> Noise:
        """The law of the noise."""
        return noise_of(self.noise)

    @property
    def has_mean(self) -> bool:
        return self.law.has_mean

    @property
    def label_range(self) -> tuple[float, float]:
        nu, _ = self.panels(20, 1)
        low, high = (end * self._factor(nu) for end in self.law.bounds)
        return float((self._phi(nu) + low).min()), float((self._phi(nu) + high).max())

    @cached_property
    def symmetric(self) -> bool:
        nu = np.sqrt(self.rho) * np.linspace(0.0, 9.0, 901)
        phi, factor = self._phi(nu), self._factor(nu)
        odd = np.allclose(self._phi(-nu), -phi, rtol=1e-14, atol=0.0)
        even = np.allclose(self._factor(-nu), factor, rtol=1e-14, atol=0.0)
        return odd and even and self.law.symmetric

    def _factor(self, nu: Array) -> Array:
        return np.ones_like(nu) if self.scale is None else np.asarray(self.scale(nu), dtype=float)

    def label_mean(self, nu: Array) -> Array:
        return self._phi(nu) + (self._factor(nu) * self.law.mean if self.law.mean else 0.0)

    def label_variance(self, nu: Array) -> Array:
        variance: Array = self._factor(nu) ** 2 * self.law.variance
        return variance

    def components(self, nu: Array, level: int) -> NormalMixture:
        weights, means, variances = (part[:, None] for part in self.law.components(level))
        factor = self._factor(nu)
        return NormalMixture(
            np.broadcast_to(weights, (len(weights), len(nu))),
            self._phi(nu) + factor * means,
            factor**2 * variances,
        )

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return self._phi(nu) + self._factor(nu) * self.law.sample(nu.shape, rng)


@dataclass(frozen=True)
class Linear(RealTeacher):
    r"""Real labels :math:`y = \nu + \epsilon`.

    Parameters
    ----------
    noise : float, Noise or str
        Variance of normal noise, or noise of another law (`hm.noises`), as "laplace(0.5)".
    rho : float
        Second moment of the teacher's weights, positive.
    """

    noise: float | Noise | str = 0.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        _ = self.law

    @cached_property
    def law(self) -> Noise:
        """The law of the noise."""
        return noise_of(self.noise)

    @property
    def has_mean(self) -> bool:
        return self.law.has_mean

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    def label_mean(self, nu: Array) -> Array:
        return nu + self.law.mean if self.law.mean else nu

    def label_variance(self, nu: Array) -> Array:
        return np.full_like(nu, self.law.variance)

    def components(self, nu: Array, level: int) -> NormalMixture:
        weights, means, variances = (part[:, None] for part in self.law.components(level))
        shape = len(weights), len(nu)
        return NormalMixture(
            np.broadcast_to(weights, shape), nu + means, np.broadcast_to(variances, shape)
        )

    @cached_property
    def moments(self) -> LabelMoments:
        mean, variance = self.law.mean, self.law.variance
        return LabelMoments(mean, self.rho + mean**2 + variance, 1.0, self.rho + mean**2)

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return nu + self.law.sample(nu.shape, rng)
