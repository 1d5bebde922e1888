r"""Activations σ and their Gaussian coefficients.

With z standard normal, :math:`\kappa_0 = E\sigma(z)`, :math:`\kappa_1 = E z\sigma(z)` and
:math:`\kappa_\star^2 = E(\sigma(z) - \kappa_0 - \kappa_1 z)^2`: in the limit the features
:math:`\sigma(u)` act like :math:`\kappa_0 + \kappa_1 u + \kappa_\star z` with independent noise z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_kinks, resolve
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features.gaussian_averages import Dual, dual_by_series, kappas_by_quadrature
from hiddenmanifold.features.spectral_sums import Kappas
from hiddenmanifold.numerics.special import normal_density


class Activation:
    """Base of all activations: a function, its kinks, and its coefficients."""

    kinks: tuple[float, ...] = ()

    def __call__(self, x: Array) -> Array:
        """σ(x), element by element."""
        raise NotImplementedError

    @cached_property
    def kappas(self) -> Kappas:
        """The coefficients (κ0, κ1, κ⋆), by quadrature unless a closed form is known."""
        return kappas_by_quadrature(self)

    def kappas_at(self, variance: float) -> Kappas:
        r"""The coefficients of :math:`\kappa_0 + \kappa_1 h + \kappa_\star z` for a normal h.

        h has the given variance; at variance 1 they are `kappas`.
        """
        if variance == 1.0:
            return self.kappas
        kappa_0, kappa_1, kappa_star = kappas_by_quadrature(self.scaled(variance))
        return kappa_0, kappa_1 / float(np.sqrt(variance)), kappa_star

    def scaled(self, variance: float) -> Activation:
        r"""The function :math:`\sigma(\sqrt q z)` of a standard normal z, for a variance q."""
        if variance == 1.0:
            return self
        scale = float(np.sqrt(variance))
        return Custom(lambda z: self(scale * z), tuple(kink / scale for kink in self.kinks))

    def dual(self, s: Array, variance: float = 1.0) -> Dual:
        r"""The dual activation :math:`E[\sigma(u)\sigma(v)]`, and its derivatives by s.

        u and v are normal with the given variance and the covariance s.
        """
        return dual_by_series(self, s, variance)


def _angle(s: Array, variance: float) -> tuple[Array, Array]:
    """The correlation, cosine of an angle between inputs, and the sine of that angle."""
    r = np.clip(np.asarray(s) / variance, -1.0, 1.0)
    return r, np.sqrt((1.0 - r) * (1.0 + r))


@dataclass(frozen=True)
class Sign(Activation):
    """σ(x) = sign(x)."""

    kinks = (0.0,)

    def __call__(self, x: Array) -> Array:
        return np.sign(x)

    @cached_property
    def kappas(self) -> Kappas:
        return 0.0, np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi)

    @np.errstate(divide="ignore", invalid="ignore")
    def dual(self, s: Array, variance: float = 1.0) -> Dual:
        r, sine = _angle(s, variance)
        return Dual(
            2 / np.pi * np.arcsin(r),
            2 / np.pi / (sine * variance),
            2 / np.pi * r / (sine**3 * variance**2),
        )


@dataclass(frozen=True)
class Erf(Activation):
    """σ(x) = erf(x)."""

    def __call__(self, x: Array) -> Array:
        out: Array = scipy.special.erf(x)
        return out

    @cached_property
    def kappas(self) -> Kappas:
        return 0.0, 2 / np.sqrt(3 * np.pi), np.sqrt(2 / np.pi * np.arcsin(2 / 3) - 4 / (3 * np.pi))

    def dual(self, s: Array, variance: float = 1.0) -> Dual:
        c = 2.0 / (1.0 + 2.0 * variance)
        sine = np.sqrt(1.0 - (c * s) ** 2)
        return Dual(
            2 / np.pi * np.arcsin(c * s),
            2 / np.pi * c / sine,
            2 / np.pi * c**3 * s / sine**3,
        )


@dataclass(frozen=True)
class Tanh(Activation):
    """σ(x) = tanh(x)."""

    def __call__(self, x: Array) -> Array:
        return np.tanh(x)

    @cached_property
    def kappas(self) -> Kappas:
        return _tanh()


@cache
def _tanh() -> Kappas:
    """The coefficients of tanh, which have no closed form, once for all."""
    return kappas_by_quadrature(Tanh())


@dataclass(frozen=True)
class Relu(Activation):
    """σ(x) = max(x, 0)."""

    kinks = (0.0,)

    def __call__(self, x: Array) -> Array:
        return np.maximum(x, 0.0)

    @cached_property
    def kappas(self) -> Kappas:
        return 1 / np.sqrt(2 * np.pi), 0.5, np.sqrt(0.25 - 1 / (2 * np.pi))

    @np.errstate(divide="ignore")
    def dual(self, s: Array, variance: float = 1.0) -> Dual:
        r, sine = _angle(s, variance)
        obtuse = np.pi - np.arccos(r)
        return Dual(
            variance / (2 * np.pi) * (sine + r * obtuse),
            obtuse / (2 * np.pi),
            1.0 / (2 * np.pi * variance * sine),
        )


@dataclass(frozen=True)
class Identity(Activation):
    """σ(x) = x."""

    def __call__(self, x: Array) -> Array:
        return np.array(x, dtype=float)

    @cached_property
    def kappas(self) -> Kappas:
        return 0.0, 1.0, 0.0

    def dual(self, s: Array, variance: float = 1.0) -> Dual:
        return Dual(np.array(s, dtype=float), np.ones_like(s), np.zeros_like(s))


@dataclass(frozen=True)
class HardTanh(Activation):
    """σ(x) = x cut at ±1."""

    kinks = (-1.0, 1.0)

    def __call__(self, x: Array) -> Array:
        return np.clip(x, -1.0, 1.0)

    @cached_property
    def kappas(self) -> Kappas:
        inside = scipy.special.erf(np.sqrt(0.5))
        second = 1.0 - 2.0 * float(normal_density(np.array(1.0)))
        return 0.0, float(inside), float(np.sqrt(second - inside**2))


@dataclass(frozen=True)
class Custom(Activation):
    """Any vectorised function.

    Parameters
    ----------
    function : callable
        Vectorised σ.
    kinks : tuple of float
        Where σ or its slope jumps, and where spikes narrower than 1e-4 begin and end.
    """

    function: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidArgumentError("function", self.function, "callable")
        object.__setattr__(self, "kinks", check_kinks(self.kinks))

    def __call__(self, x: Array) -> Array:
        return self.function(x)


REGISTRY: dict[str, type[Activation]] = {
    "sign": Sign,
    "erf": Erf,
    "tanh": Tanh,
    "relu": Relu,
    "identity": Identity,
    "hard_tanh": HardTanh,
}


def resolved(given: str | Activation | Callable[[Array], Array]) -> Activation:
    """The activation meant by a name, an object or a function."""
    if callable(given) and not isinstance(given, Activation | type):
        given = Custom(given)
    return resolve("activation", given, Activation, REGISTRY)
