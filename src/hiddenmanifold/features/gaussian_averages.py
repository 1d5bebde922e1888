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
"""Terms at its end from which the size of all further ones is judged."""
NEGLIGIBLE = 1e-15
"""What terms that are left out may contribute, relative to the second moment of the activation."""
RESOLVED = 1e-13
"""The same for those beyond the longest series."""
JUMP = 1e-7
"""Relative difference of an activation on both sides of a panel boundary that counts as a jump."""


def kappas_by_quadrature(activation: Activation) -> Kappas:
    """Gaussian coefficients by Gauss–Legendre panels between the kinks, to 1e-12.

    Spikes wider than 1e-4 are resolved; narrower ones need kinks where they begin and end.

    Raises
    ------
    InvalidArgumentError
        If the activation is not finite, is constant, or its integrals do not settle.
    """
    edges = _resolving(activation)

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
    activation jumps.
    """

    squares: Array
    norm: float
    slope: float


@lru_cache(maxsize=64)
def hermite_series(given: Activation, variance: float) -> HermiteSeries:
    """The Hermite series of an activation of normal inputs, in units of their deviation."""
    activation = given.scaled(variance)
    kappa_0, kappa_1, kappa_star = kappas_by_quadrature(activation)  # refuses what does not settle
    panels = Panels.between(edges := _resolving(activation), (ORDER, 0))
    z = panels.nodes.ravel()
    sigma = sampled("activation", activation, z)
    weighted = panels.weights.ravel() * sigma
    norm = kappa_0**2 + kappa_1**2 + kappa_star**2
    rounding = 10 * ACCURACY * np.sqrt(norm)  # as for the coefficients
    a, before, this = np.zeros(TERMS), np.zeros_like(z), np.ones_like(z)
    for k in range(TERMS):
        a[k] = (weighted * this).sum()
        before, this = this, (z * this - np.sqrt(k) * before) / np.sqrt(k + 1.0)
        if k >= LAST and (np.abs(a[k - LAST : k + 1]) <= rounding).all():
            break
    a[np.abs(a) <= rounding] = 0.0
    a[:2] = kappa_0, kappa_1
    values = sigma.reshape(panels.nodes.shape)
    return HermiteSeries(a**2, norm, _mean_square_slope(values, edges, panels))


def _mean_square_slope(values: Array, edges: Array, panels: Panels) -> float:
    """Mean square of the derivative, of polynomials through the values in each panel."""
    x = 2.0 * gauss_legendre(ORDER, 0)[0] - 1.0
    to_series = np.linalg.inv(legendre.legvander(x, ORDER - 1))
    series = values @ to_series.T
    left, right = legendre.legval(np.array([-1.0, 1.0]), series.T).T
    unit = np.abs(left[1:]) + np.abs(right[:-1]) + np.sqrt(np.mean(values**2))
    if (np.abs(left[1:] - right[:-1]) > JUMP * unit).any():
        return float(np.inf)
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
    # the terms of each series fall, so that those beyond are smaller than the last ones
    beyond = sizes[-LAST:].max() * r**TERMS / max(1.0 - r, np.finfo(float).eps)
    if not beyond <= RESOLVED * series.norm:
        raise InvalidArgumentError.because(
            "activation",
            f"{shown(activation)} has a dual that is not resolved at a correlation of {r:.6g}",
            "give fewer hidden layers, a larger dimension d, or an activation without corners",
        )
    left = np.cumsum((sizes * r ** np.maximum(k - 2.0, 0.0))[::-1])[::-1]
    return max(3, int((left > NEGLIGIBLE * series.norm).sum()))
