r"""Arguments of all layers of features at once, and the sums at two of them.

A layer of features has an activation above a projection of the features below. Its argument k
belongs to the argument u of those below that solves

.. math:: u\,\text{ratio}(D_1(u)) = (k + \kappa_\star^2/p)/\kappa_1^2,

where D1 depends on all layers below. Newton's method solves these equations together: a step costs
as much for each layer, however many there are, and no argument is a difference of larger numbers.
In either half plane there is one solution, so that a small distance from a solution on the right
side is proof; where that fails arguments are NaN. Samples are projections of features, too: the
last link of a chain may stand for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers, Numbers
from hiddenmanifold.features.kernel_arguments import ROUNDING, Counts, Stretching, features_left
from hiddenmanifold.features.pair_sums import PairSums, activated
from hiddenmanifold.numerics.roots import increasing_root

PairsOf = Callable[[Numbers, Numbers], PairSums]
"""The sums of some features, at two arguments of one shape."""
Received = Callable[[PairSums, Numbers, Numbers], PairSums]
"""The sums of projected features, given those below and the ratios of arguments at both."""
Steps = tuple[int, int, int]
"""Angles between a positive argument and a complex one, Newton steps at each, most at the last."""
QUICK, CAREFUL = (4, 1, 6), (12, 2, 20)
"""What is tried first, and what next.

With 8 angles and 20 last steps none of 9000 arguments was lost; with 4
last steps one in 200 is, close to the edge of a spectrum."""
ENOUGH, SOLVED = 1e-13, 1e-10
"""Relative distance at which arguments are final, and above which they are not found.

Newton's last step squares the distance."""
HIDDEN = 1e-6
"""An argument that is less than this times the noise is not computed from those below."""
FLAT = 1e-7
"""Slope at an edge, of which an eigenvalue is a quadratic function."""
CLOSE, BEYOND = 1e-13, 100.0
"""Logarithms of arguments between which an edge is, in units of the largest eigenvalue below."""


@dataclass(frozen=True)
class Link:
    """One link of a chain, which acts on the features below: a projection, an activation or both.

    Attributes
    ----------
    p : array
        Number of the new features.
    stretching : callable, optional
        How the projection stretches arguments.
    received : callable, optional
        The sums of the projected features.
    kappa_1 : float
        Coefficient of the activation, not zero.
    noise : array or float
        The square of its other coefficient over p.
    variance : float
        Variance of the features below, on average.
    """

    p: Array
    stretching: Stretching | None = None
    received: Received | None = None
    kappa_1: float = 1.0
    noise: Array | float = 0.0
    variance: float = 0.0

    def seen(self, k: Numbers) -> Numbers:
        """The argument of the projected features at that of the activated ones."""
        inner: Numbers = (k + self.noise) / self.kappa_1**2
        return inner

    def stretched(self, counts: Counts) -> tuple[Numbers, Numbers, Numbers]:
        """The ratio of arguments, its slope, and how many projected directions are not learned."""
        if self.stretching is None:
            return np.ones_like(counts.D1), np.ones_like(counts.D1), counts.unlearned
        return *self.stretching(counts, np.arange(len(counts.D1))), features_left(counts, self.p)


@dataclass(frozen=True)
class Located:
    """Arguments of a chain, prepared for sums: that of its beginning, and of each link.

    Of a link these are the ratio of arguments at its projection, and the parts of a direction's
    variance that the activation leaves to be learned, and that it has learned already.
    """

    k: Numbers
    links: tuple[tuple[Numbers, Numbers, Numbers], ...]

    def columns(self, some: Integers, *, conjugate: bool = False) -> Located:
        """Some columns of two-dimensional arrays, which may be conjugated."""

        def taken(values: Numbers) -> Numbers:
            return np.conj(values[:, some]) if conjugate else values[:, some]

        return Located(
            taken(self.k), tuple((taken(a), taken(b), taken(c)) for a, b, c in self.links)
        )


class Outwards(NamedTuple):
    """Arguments from the first to the last, and how each link stretches the one below.

    Slopes are of logarithms; `total` is that of the last argument by the first.
    """

    k: list[Array]
    ratios: list[Array]
    slopes: list[Array]
    total: Array


@dataclass(frozen=True)
class Chain:
    """Features, the links above them, and where they begin.

    Attributes
    ----------
    pairs : callable
        The sums of the features at the beginning, at two arguments of one shape.
    largest : array
        Their largest eigenvalue.
    links : tuple of Link
        From there to the last features.
    """

    pairs: PairsOf
    largest: Array
    links: tuple[Link, ...] = ()

    def located(self, arguments: list[Numbers]) -> Located:
        """Arguments of the beginning and of each link, prepared for sums."""
        links = []
        for link, below, k in zip(self.links, arguments[:-1], arguments[1:], strict=True):
            whole = k + link.noise
            links.append((link.seen(k) / below, k / whole, link.noise / whole))
        return Located(arguments[0], tuple(links))

    def pair_sums(self, first: Located, second: Located) -> PairSums:
        """The sums of the last features at two arguments."""
        found = self.pairs(first.k, second.k)
        for link, one, other in zip(self.links, first.links, second.links, strict=True):
            if link.received is not None:
                found = link.received(found, one[0], other[0])
            if np.any(link.noise):
                found = activated(found, one[1:], other[1:], link.p)
        return found

    def newton(self, k: list[Numbers]) -> list[Numbers]:
        """Relative distances of all arguments but the last from those that belong to it.

        On the way up the equations are linear in the logarithm s of the argument at hand: D1
        changes by a + b s, and the argument below by e + f s. The way down inserts them.
        """
        at = self.pairs(k[0], k[0])
        D1, unlearned, a, b, found = at.D1, at.unlearned, np.zeros_like(at.D1), -at.D_rs, []
        for link, below, above in zip(self.links, k[:-1], k[1:], strict=True):
            counts = Counts(D1, np.ones_like(D1), unlearned, unlearned)
            ratio, slope, left = link.stretched(counts)
            whole = above + link.noise
            phi, bar, c = above / whole, link.noise / whole, slope - 1.0
            away = 1.0 - whole / (link.kappa_1**2 * below * ratio)
            turned = 1.0 - c * b
            e, f = (c * a - away) / turned, phi / turned
            found.append((e, f))
            a, b = phi * (a + b * e), phi * (b * f - bar * left)
            D1, unlearned = bar * link.p + phi * D1, phi * left
        steps: list[Numbers] = []
        s: Numbers = np.zeros_like(D1)
        for e, f in reversed(found):
            s = e + f * s
            steps.append(s)
        return steps[::-1]

    def outwards(self, u: Array) -> Outwards:
        """All arguments that belong to the first one."""
        at, k = self.pairs(u, u), [u]
        D1, D11, unlearned = at.D1, at.D_rs, at.unlearned
        ratios, slopes, total = [], [], np.ones_like(u)
        for link in self.links:
            ratio, slope, left = link.stretched(Counts(D1, D11, unlearned, unlearned))
            whole = link.kappa_1**2 * k[-1] * ratio
            k.append(whole - link.noise)
            phi, bar = k[-1] / whole, link.noise / whole
            D11 = phi * (bar * left + phi * D11 / slope)
            D1, unlearned = bar * link.p + phi * D1, phi * left
            ratios.append(ratio)
            slopes.append(slope)
            total = total * slope / phi
        return Outwards(k, ratios, slopes, total)


Chains = Callable[[Integers], Chain]
"""The chain at some of the points."""


def solved(chains: Chains, target: Numbers, together: int = 1) -> list[Numbers]:
    """All arguments that belong to complex last ones; NaN where they are not found.

    So many targets in succession belong to equal points, and are reached from one positive one.
    """
    every = np.arange(len(target))
    if not chains(every).links:
        return [target]
    with np.errstate(all="ignore"):
        middle = np.exp(np.log(np.abs(target)).reshape(-1, together).mean(1))
        start = _positive(chains, every[::together], middle)
        k, found = _turned(chains(every), [np.repeat(at, together) for at in start], target, QUICK)
        if (lost := np.flatnonzero(~found)).size:
            start = _positive(chains, lost, np.abs(target[lost]))
            again, found = _turned(chains(lost), start, target[lost], CAREFUL)
            for old, new in zip(k, again, strict=True):
                old[lost] = np.where(found, new, np.nan)
    return k


def _turned(
    chain: Chain, start: list[Array], target: Numbers, how: Steps
) -> tuple[list[Numbers], Booleans]:
    """Arguments on the way from positive ones along a spiral, and whether they are found."""
    turns, steps, last = how
    k: list[Numbers] = [at.astype(complex) for at in start]
    begin, way = np.log(start[-1]), np.log(target) - np.log(start[-1])
    for turn in range(1, turns + 1):
        k[-1] = np.exp(begin + way * turn / turns) if turn < turns else target
        for _ in range(steps if turn < turns else last):
            away = chain.newton(k)
            k[:-1] = [at * (1.0 + s) for at, s in zip(k, away, strict=False)]
            distance = np.max([np.abs(s) for s in away], axis=0)
            if turn == turns and (distance < ENOUGH).all():
                break
    found = distance < SOLVED
    for at in k:
        found &= at.imag * target.imag >= 0.0
    return k, found


def _positive(chains: Chains, points: Integers, target: Array) -> list[Array]:
    """Arguments close to those that belong to positive ones, at some of the points."""
    chain = chains(points)
    low = high = target
    for link in reversed(chain.links):
        low, high = link.seen(low), link.seen(high)
        if link.stretching is not None:
            high = high + link.variance / link.p

    def distance(log_u: Array, some: Integers) -> tuple[Array, Array]:
        """How far the first argument is from the one sought; it is larger where others vanish."""
        k, _, _, total = chains(points[some]).outwards(np.exp(log_u))
        away = (np.log(k[-1]) - np.log(target[some])) / total
        positive = np.min(k, axis=0) > 0.0
        return np.where(positive, away, -np.inf), np.ones_like(away)

    u = np.exp(increasing_root(distance, (np.log(low), np.log(high)), ROUNDING))
    k, ratios, _, _ = chain.outwards(u)
    k[-1] = target
    for i in reversed(range(1, len(k) - 1)):  # the next link knows arguments lost beside noise
        below, above = chain.links[i - 1], chain.links[i]
        lost = ~(k[i] > HIDDEN * below.noise)
        k[i][lost] = (above.seen(k[i + 1]) / ratios[i])[lost]
    return k


def edge(chains: Chains, largest: Array) -> Array:
    """The first argument, without its sign, at the edge of the spectrum of the last features.

    Beyond the spectra all arguments are negative, and the last one falls with the first as far as
    the edge, where a link has no slope.
    """

    def slope(log_u: Array, some: Integers) -> tuple[Array, Array]:
        u = np.exp(log_u)
        found = np.min([np.ones_like(u), *chains(some).outwards(-u).slopes], axis=0)
        found = np.where(np.isnan(found), -1.0, found)  # at the edge below, to rounding
        return found, np.full_like(found, np.nan)

    log = np.log(largest)
    with np.errstate(all="ignore"):
        return np.exp(increasing_root(slope, (log + CLOSE, log + BEYOND), FLAT))


def of_any_shape(sums: Callable[..., PairSums], *parameters: Array) -> PairsOf:
    """Sums that are known for flat arrays, of parameters that belong to rows."""

    def pairs(k: Numbers, other: Numbers) -> PairSums:
        flat = [np.broadcast_to(values, k.shape).ravel() for values in parameters]
        found = sums(k.ravel(), other.ravel(), *flat)
        return PairSums(*(np.reshape(getattr(found, name), k.shape) for name in vars(found)))

    return pairs


def in_units_of(
    sums: Callable[[Numbers, Numbers, Array], PairSums],
    k: Numbers,
    other: Numbers,
    gamma: Array,
    p: Array,
) -> PairSums:
    """Sums that count directions and arguments in another unit, of p of ours."""
    return sums(k * p, other * p, gamma).in_units(p)
