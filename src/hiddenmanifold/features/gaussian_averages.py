r"""Averages of an activation over the normal law: its coefficients, and its dual activation.

The dual activation of :math:`\sigma` is :math:`\hat\sigma(s) = E[\sigma(u)\sigma(v)]` for normal u
and v of covariance s (Daniely, Frostig and Singer 2016): the kernel of infinitely many neurons. For
u and v of variance 1 and :math:`\sigma = \sum_k a_k \mathrm{He}_k/\sqrt{k!}` it is the power series

.. math:: \hat\sigma(s) = \sum_k a_k^2 s^k, \qquad
    \hat\sigma'(s) = E[\sigma'(u)\sigma'(v)] = \sum_k k\, a_k^2 s^{k-1},

so that its derivatives need none of the activation. Only at s = 1, where the series of activations
with corners converges slowly, averages are taken on the nodes themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial import legendre, polynomial

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import sampled
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.features.spectral_sums import Kappas
from hiddenmanifold.numerics.panels import Panels, fanned, gauss_legendre, refine

if TYPE_CHECKING:
    from hiddenmanifold.features.activations import Activation

REACHES = (13.0, 26.0, 37.0)
"""Cut-offs of the Gaussian law to choose from, by how fast the activation grows."""
ACCURACY = 1e-12
PANELS, MOST_PANELS, HALVINGS = 4096, 65536, 12
"""Number of panels of an activation at first and at most, and how often one may be halved."""


ORDER = 20
"""Nodes of a panel."""
TERMS = 2048
"""Longest Hermite series. Smooth activations need some hundred terms; twice as many resolve
correlations of activations with corners that are half as far from one."""
LAST = 64
"""Negligible terms in a row after which a series that has the whole norm ends."""
NEGLIGIBLE = 1e-15
"""Largest contribution of omitted terms, relative to the mean square of the activation."""
RESOLVED = 1e-13
"""Largest contribution of terms beyond the longest series, relative to the same."""
BESIDE, JUMP = 1e-12, 1e-6
"""Where an activation is compared on both sides of a kink, and the relative difference that is a
jump; a cusp of power 0.6, steeper than which the derivative has no mean square, changes by 1e-7."""
SLOPE_ACCURACY = 1e-10
"""Relative accuracy of the mean square of a derivative."""


def kappas_by_quadrature(activation: Activation, edges: Array | None = None) -> Kappas:
    """Gaussian coefficients by Gauss–Legendre panels between the kinks, to 1e-12.

    Spikes wider than 1e-4 are resolved; narrower ones need kinks where they begin and end.

    Raises
    ------
    InvalidArgumentError
        If the activation is not finite, is constant, or its integrals do not settle.
    """
    edges = _resolving(activation) if edges is None else edges

    def coefficients(_: Integers, halvings: int) -> tuple[Array, Array]:
        panels = Panels.between(edges, (ORDER, halvings))
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


def _resolving(activation: Activation) -> Array:
    """Edges (1, k) of panels, halved where the activation bends within one."""
    reach = next((r for r in REACHES if _is_small_beyond(activation, r)), None)
    if reach is None:
        raise InvalidArgumentError.because(
            "activation",
            f"{shown(activation)} has no finite Gaussian variance",
            "it must grow more slowly than exp(x²/4)",
        )
    edges = fanned(np.linspace(-reach, reach, PANELS + 1), np.array([activation.kinks]))
    for _ in range(HALVINGS):
        whole, halves = (Panels.between(edges, (ORDER, halvings)) for halvings in (0, 1))
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


class Dual(NamedTuple):
    """A dual activation and its first two derivatives, at an array of covariances."""

    value: Array
    slope: Array
    bend: Array


class HermiteSeries(NamedTuple):
    """Squares of the Hermite coefficients of an activation, and the averages at correlation one.

    ``norm`` is the mean square of the activation, ``slope`` that of its derivative: infinite if the
    activation jumps, NaN if it has a cusp that is not resolved.
    """

    squares: Array
    norm: float
    slope: float


@lru_cache(maxsize=64)
def hermite_series(given: Activation, variance: float) -> HermiteSeries:
    """The Hermite series of an activation of normal inputs, in units of their deviation."""
    activation = given.scaled(variance)
    edges = _resolving(activation)
    kappa_0, kappa_1, kappa_star = kappas_by_quadrature(activation, edges)
    panels = Panels.between(edges, (ORDER, 0))
    z = panels.nodes.ravel()
    sigma = sampled("activation", activation, z)
    weighted = panels.weights.ravel() * sigma
    norm = kappa_0**2 + kappa_1**2 + kappa_star**2
    rounding = 10 * ACCURACY * np.sqrt(norm)  # as for the coefficients
    a, before, this = np.zeros(TERMS), np.zeros_like(z), np.ones_like(z)
    for k in range(TERMS):
        a[k] = (weighted * this).sum()
        before, this = this, (z * this - np.sqrt(k) * before) / np.sqrt(k + 1.0)
        ends = k >= LAST and (np.abs(a[k - LAST : k + 1]) <= rounding).all()
        if ends and _missing(a**2, norm) == 0.0:
            break
    a[np.abs(a) <= rounding] = 0.0
    a[:2] = kappa_0, kappa_1
    return HermiteSeries(a**2, norm, _mean_square_slope(activation, norm, edges))


def _missing(squares: Array, norm: float) -> float:
    """The part of the norm that a series lacks; zero if it is only rounding."""
    rest = norm - float(squares.sum())
    return rest if rest > 10 * ACCURACY * norm else 0.0


def _mean_square_slope(activation: Activation, norm: float, edges: Array) -> float:
    """Mean square of the derivative; infinite if the activation jumps at one of its kinks.

    NaN if it does not settle, as that of a cusp.
    """
    kinks = np.array(activation.kinks, dtype=float)
    sides = np.array([[-1.0], [1.0]]) * BESIDE * (1.0 + np.abs(kinks)) + kinks
    left, right = sampled("activation", activation, sides.ravel()).reshape(sides.shape)
    if (np.abs(right - left) > JUMP * (np.sqrt(norm) + np.abs(left))).any():
        return float(np.inf)
    middles = 0.5 * (edges[:, 1:] + edges[:, :-1])
    rough, fine = (
        _polynomial_slopes(activation, some) for some in (edges, fanned(edges[0], middles))
    )
    return fine if abs(rough - fine) <= SLOPE_ACCURACY * fine else float(np.nan)


def _polynomial_slopes(activation: Activation, edges: Array) -> float:
    """Mean square of the derivative of polynomials through the values in each panel."""
    panels = Panels.between(edges, (ORDER, 0))
    values = sampled("activation", activation, panels.nodes.ravel()).reshape(panels.nodes.shape)
    x = 2.0 * gauss_legendre(ORDER, 0)[0] - 1.0
    series = values @ np.linalg.inv(legendre.legvander(x, ORDER - 1)).T
    widths = np.diff(edges[0])
    steps = 2.0 / widths[widths > 0.0]
    slopes = steps[:, None] * legendre.legval(x, legendre.legder(series.T))
    return float((panels.weights * slopes**2).sum())


def dual_by_series(activation: Activation, s: Array, variance: float) -> Dual:
    """The dual of an activation of normal inputs of a given variance, at covariances s.

    Raises
    ------
    InvalidArgumentError
        If a correlation is so close to ±1 that the series does not settle there.
    """
    series, r = hermite_series(activation, variance), np.asarray(s) / variance
    one = r == 1.0
    largest = float(np.abs(r[~one]).max(initial=0.0))
    squares = series.squares[: _terms(activation, series, largest)]
    inside = np.where(one, 0.0, r)
    at_one = (series.norm, series.slope, np.inf)
    columns = (
        np.where(one, end, polynomial.polyval(inside, polynomial.polyder(squares, order)))
        / variance**order
        for order, end in enumerate(at_one)
    )
    return Dual(*columns)


def _terms(activation: Activation, series: HermiteSeries, r: float) -> int:
    """How many terms of a series, and of its first two derivatives, matter at correlations ≤ r."""
    k = np.arange(TERMS)
    sizes = k**2 * series.squares
    missing = _missing(series.squares, series.norm)
    with np.errstate(divide="ignore"):
        largest = np.maximum(TERMS, -2.0 / np.log(r))  # the k of the largest k² r^k beyond
        beyond = missing * largest**2 * r ** (largest - 2.0) if missing else 0.0
    if not beyond <= RESOLVED * series.norm:
        raise InvalidArgumentError.because(
            "activation",
            f"{shown(activation)} has a dual that is not resolved at a correlation of {r:.6g}",
            "remove inputs that are nearly parallel, or give fewer hidden layers, a larger "
            "dimension d, or an activation without corners",
        )
    left = np.cumsum((sizes * r ** np.maximum(k - 2.0, 0.0))[::-1])[::-1]
    return max(3, int((left > NEGLIGIBLE * series.norm).sum()))
