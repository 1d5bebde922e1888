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

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import check_kinks, resolve, sampled
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.features.spectral_sums import Kappas
from hiddenmanifold.numerics.panels import Panels, fanned, refine
from hiddenmanifold.numerics.special import normal_density

REACHES = (13.0, 26.0, 37.0)
"""Cut-offs of the Gaussian law to choose from, by how fast the activation grows."""
ACCURACY = 1e-12
PANELS, MOST_PANELS, HALVINGS = 4096, 65536, 12
"""Number of panels of an activation at first and at most, and how often one may be halved."""


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
        scale = float(np.sqrt(variance))
        kappa_0, kappa_1, kappa_star = kappas_by_quadrature(
            Custom(lambda z: self(scale * z), tuple(kink / scale for kink in self.kinks))
        )
        return kappa_0, kappa_1 / scale, kappa_star


def kappas_by_quadrature(activation: Activation) -> Kappas:
    """Gaussian coefficients by Gauss–Legendre panels between the kinks, to 1e-12.

    Spikes wider than 1e-4 are resolved; narrower ones need kinks where they begin and end.

    Raises
    ------
    InvalidArgumentError
        If the activation is not finite, is constant, or its integrals do not settle.
    """
    reach = next((r for r in REACHES if _is_small_beyond(activation, r)), None)
    if reach is None:
        raise InvalidArgumentError.because(
            "activation",
            f"{shown(activation)} has no finite Gaussian variance",
            "it must grow more slowly than exp(x²/4)",
        )
    edges = _resolving(activation, np.linspace(-reach, reach, PANELS + 1))

    def coefficients(_: Integers, halvings: int) -> tuple[Array, Array]:
        panels = Panels.between(edges, (20, halvings))
        z, weight = panels.nodes.ravel(), panels.weights.ravel()
        sigma = sampled("activation", activation, z)
        k0, k1 = weight @ sigma, weight @ (z * sigma)
        spread = np.sqrt(weight @ (sigma - k0 - k1 * z) ** 2)
        return np.array([[k0, k1, spread]]), ACCURACY * np.sqrt(weight @ sigma**2)

    found = refine(coefficients, (1, 3), range(2))[0]
    if not np.isfinite(found).all():
        raise InvalidArgumentError.because(
            "activation",
            f"{shown(activation)} has Gaussian coefficients that did not settle to 1e-12",
            "declare jumps, corners, and both sides of narrow spikes in Custom(function, "
            "kinks=(...))",
        )
    found[np.abs(found) <= 10 * ACCURACY * np.linalg.norm(found)] = 0.0
    if not found[1:].any():
        raise InvalidArgumentError.because(
            "activation",
            f"{shown(activation)} is constant, and carries no information",
            "choose one that varies",
        )
    return float(found[0]), float(found[1]), float(found[2])


def _resolving(activation: Activation, fan: Array) -> Array:
    """Edges (1, k) of panels, halved where the activation bends within one."""
    edges = fanned(fan, np.array([activation.kinks]))
    for _ in range(HALVINGS):
        whole, halves = (Panels.between(edges, (20, halvings)) for halvings in (0, 1))
        power = []
        for panels in (whole, halves):
            sigma = sampled("activation", activation, panels.nodes.ravel())
            power.append((panels.weights * sigma.reshape(panels.nodes.shape) ** 2).sum(1))
        bends = np.abs(power[1] - power[0]) > ACCURACY * power[1].sum() / PANELS
        if not 0 < bends.sum() <= MOST_PANELS - edges.size:
            break
        starts = np.flatnonzero(np.diff(edges[0]) > 0)[bends]
        middle = 0.5 * (edges[0, starts] + edges[0, starts + 1])
        edges = np.insert(edges, starts + 1, middle, axis=1)
    return edges


def _is_small_beyond(activation: Activation, reach: float) -> bool:
    """Whether activation times Gaussian weight is negligible at ±reach, compared with ±1."""
    sigma = sampled("activation", activation, np.array([-reach, -1.0, 1.0, reach]))
    tails = np.abs(sigma[[0, 3]]).max() * reach
    return bool(np.log(tails + 1e-300) - 0.25 * reach**2 < np.log(np.abs(sigma).min() + 1.0) - 18.0)


@dataclass(frozen=True)
class Sign(Activation):
    """σ(x) = sign(x)."""

    kinks = (0.0,)

    def __call__(self, x: Array) -> Array:
        return np.sign(x)

    @cached_property
    def kappas(self) -> Kappas:
        return 0.0, np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi)


@dataclass(frozen=True)
class Erf(Activation):
    """σ(x) = erf(x)."""

    def __call__(self, x: Array) -> Array:
        out: Array = scipy.special.erf(x)
        return out

    @cached_property
    def kappas(self) -> Kappas:
        return 0.0, 2 / np.sqrt(3 * np.pi), np.sqrt(2 / np.pi * np.arcsin(2 / 3) - 4 / (3 * np.pi))


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


@dataclass(frozen=True)
class Identity(Activation):
    """σ(x) = x."""

    def __call__(self, x: Array) -> Array:
        return np.array(x, dtype=float)

    @cached_property
    def kappas(self) -> Kappas:
        return 0.0, 1.0, 0.0


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
