r"""Quadrature along the proximal curve :math:`u = s + V\rho'(s)`, without root finding at nodes.

A Gaussian average over the shortfall `u` of a function of its proximal point `s` is cut into
panels at the knots of the loss, at a fan of standard deviations, and where the label law bends.
Between kinks a panel runs over `s`, with :math:`du = (1 + V\rho'')\,ds`; on a kink, where `s`
is constant while `u` crosses an interval, it runs over `u`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers, Rows
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import FAN, NEAR, REACH, gauss_legendre
from hiddenmanifold.numerics.roots import CLOSE, PATIENCE

RULES = ((8, 0), (12, 0), (15, 0), (20, 1), (20, 2), (20, 3), (20, 4), (20, 5), (20, 6))
"""Gauss–Legendre order, and how often panels are halved, on each level of fineness."""
FLAT = 1e-16
"""Where (1 + V) rho'' is below this the loss counts as straight, and needs no cut.

Far panels do not resolve the tail that is left out: it must be negligible even where Newton's
matrix magnifies errors by 1e6."""
NARROW = 0.01
"""Panels shorter than this, in units of the loss's scale, run over u instead of s."""
ASIDE = 0.1
"""How far a cut may stand from its nominal place, in deviations or gaps between cuts."""
NARROWEST = 1e-15
"""Panels narrower than this, relative to their place, are left out if s is constant on them."""
SLENDER = 1e-9
"""Panels narrower than this, in standard deviations, are as wide as s says if it is more exact."""
POINT = 1e-13
"""Kinks narrower than this, in standard deviations, are points that carry a mass."""
COMPILED_SETTINGS = {
    "fan": np.array(NEAR),
    "reach": REACH,
    "flat": FLAT,
    "narrow": NARROW,
    "aside": ASIDE,
    "narrowest": NARROWEST,
    "slender": SLENDER,
    "point": POINT,
    "patience": PATIENCE,
    "close": CLOSE,
}
"""The constants above and those of the search for roots, under the names of compiled code."""


@dataclass(frozen=True)
class Field(Rows):
    r"""Law of the shortfall :math:`u = \text{mean} - \text{deviation}\,\xi` of one label.

    ``V`` is the width of the proximal map. Given ξ the teacher's field has the mean ``slope`` ξ and
    the variance ``V0``; ``beta`` is the intercept in units of the deviation. Arrays (rows,).
    """

    V: Array
    mean: Array
    deviation: Array
    slope: Array
    V0: Array
    beta: Array

    @property
    def finite(self) -> Booleans:
        """Rows in which every number is finite."""
        total: Array = sum(vars(self).values())
        return np.isfinite(total)


@dataclass(frozen=True)
class ProximalNodes:
    r"""Nodes along the proximal curve, in panels that belong to rows: arrays (panels, nodes).

    ``h`` is :math:`\rho'(s)`, ``slope`` ds/du, ``mass`` the weight of :math:`d\xi`, ``bend`` that
    of :math:`g\,d\xi` with :math:`g = \partial_u h`.
    """

    row: Integers
    s: Array
    xi: Array
    h: Array
    slope: Array
    mass: Array
    bend: Array


def proximal_curve(
    loss: Loss, field: Field, breaks: Array, level: int, reach: float = REACH
) -> ProximalNodes:
    """Nodes that resolve the law of the field and the loss.

    Parameters
    ----------
    loss : Loss
        Its knots cut the curve.
    field : Field
        Law of the shortfall in each row.
    breaks : array (rows, k)
        Further cuts, in deviations of the shortfall from its mean.
    level : int
        Fineness of the quadrature, an index into `RULES`.
    reach : float
        Where the Gaussian law is cut, in standard deviations.
    """
    zeta, s, enter, leave = _cuts(loss, field, breaks, reach)
    width, length = np.diff(zeta, axis=1), np.diff(s, axis=1)
    row, column = np.nonzero((width > NARROWEST * np.abs(zeta[:, 1:])) | (length > 0.0))
    start, width = zeta[row, column, None], width[row, column, None]
    first, length = s[row, column, None], length[row, column, None]
    V, mean, deviation = (a[row, None] for a in (field.V, field.mean, field.deviation))

    x, w = gauss_legendre(*RULES[level])
    points = first + length * x
    h, curvature = loss.derivative(points), loss.second_derivative(points)
    if loss.scale is None:  # s is linear in u along the panel
        stretch = (1.0 + V * curvature[:, :1]) / deviation
        slender = (width < SLENDER) & (np.abs(first) * stretch < np.abs(start)) & (length > 0.0)
        width = np.where(slender, length * stretch, width)
        zeta, mass = start + width * x, width * w
        bend = mass * curvature / (1.0 + V * curvature)
    else:
        zeta = (points - mean + V * h) / deviation
        step = (length / deviation) * w
        mass, bend = step * (1.0 + V * curvature), step * curvature
        narrow = (length < NARROW * loss.scale)[:, 0]
        if narrow.any():  # u - mean would lose its digits: run over u
            v = V[narrow]
            zeta[narrow] = along = (start + width * x)[narrow]
            u = mean[narrow] + deviation[narrow] * along
            low, high = (points[narrow][:, [end]] for end in (0, -1))
            margin = np.abs(high - low) + 1e-15 * np.abs(high)  # the ends are known to rounding
            low, high, V_u = (np.broadcast_to(a, u.shape) for a in (low - margin, high + margin, v))
            points[narrow] = at = loss.proximal_between(u, (low, high), V_u)
            h[narrow], curvature[narrow] = loss.derivative(at), loss.second_derivative(at)
            mass[narrow] = (width * w)[narrow]
            bend[narrow] = mass[narrow] * curvature[narrow] / (1.0 + v * curvature[narrow])

    curve = ProximalNodes(row, points, -zeta, h, 1.0 / (1.0 + V * curvature), mass, bend)
    _on_kinks(loss, field, curve, panels=(start, width), passage=(enter, leave), rule=(x, w))
    return _with_points(loss, field, curve, enter, (x, w), reach=reach)


def _on_kinks(
    loss: Loss,
    field: Field,
    curve: ProximalNodes,
    *,
    panels: tuple[Array, Array],
    passage: tuple[Array, Array],
    rule: tuple[Array, Array],
) -> None:
    """Correct the panels on which s is constant while u crosses a kink."""
    (start, width), (enter, leave), (x, w) = panels, passage, rule
    row = curve.row
    V, mean, deviation = (a[row, None] for a in (field.V, field.mean, field.deviation))
    knot, below, above, _ = loss.knots
    middle = (start + 0.5 * width)[:, 0]
    for k in np.flatnonzero(above > below):
        on = (enter[row, k] < middle) & (middle < leave[row, k])
        curve.mass[on & (V[:, 0] * (above[k] - below[k]) <= POINT * deviation[:, 0])] = 0.0
        curve.s[on], curve.slope[on] = knot[k], 0.0
        curve.h[on] = ((mean[on] - knot[k]) - deviation[on] * curve.xi[on]) / V[on]
        # a kink that no cut divides: its width is known exactly, however narrow it is
        whole = on & (width[:, 0] >= (1.0 - 1e-9) * (leave - enter)[row, k])
        whole &= V[:, 0] * (above[k] - below[k]) > POINT * deviation[:, 0]
        curve.h[whole] = below[k] + (above[k] - below[k]) * x
        curve.mass[whole] = (V[whole] * (above[k] - below[k]) / deviation[whole]) * w
        curve.bend[on] = curve.mass[on] / V[on]


def _with_points(
    loss: Loss,
    field: Field,
    curve: ProximalNodes,
    enter: Array,
    rule: tuple[Array, Array],
    *,
    reach: float,
) -> ProximalNodes:
    """Add kinks too narrow for a panel: u is constant as well, yet h crosses its jump."""
    x, w = rule
    knot, below, above, _ = loss.knots
    jump = np.where(above > below, above - below, 0.0)
    width = field.V[:, None] * jump / field.deviation[:, None]
    row, k = np.nonzero((width > 0) & (width <= POINT) & (np.abs(enter) < reach))
    if not row.size:
        return curve
    ones = np.ones_like(x)
    added = ProximalNodes(
        row,
        knot[k, None] * ones,
        -enter[row, k, None] * ones,
        below[k, None] + jump[k, None] * x,
        np.zeros((len(row), len(x))),
        width[row, k, None] * w,
        (jump[k] / field.deviation[row])[:, None] * w,
    )
    pairs = zip(vars(curve).values(), vars(added).values(), strict=True)
    together = [np.concatenate(pair) for pair in pairs]
    order = np.argsort(together[0], kind="stable")
    return ProximalNodes(*(values[order] for values in together))


def _cuts(
    loss: Loss, field: Field, breaks: Array, reach: float
) -> tuple[Array, Array, Array, Array]:
    """Cuts of each row in increasing order, as (u - mean)/deviation and as s.

    Also returns where the curve enters and leaves each knot.
    """
    V, mean, deviation = (a[:, None] for a in (field.V, field.mean, field.deviation))
    fan = np.broadcast_to([-reach, *FAN, reach], (len(V), len(FAN) + 2))
    zeta = np.concatenate([fan, np.clip(breaks, -reach, reach)], axis=1)
    u, V_u = mean + deviation * zeta, np.broadcast_to(V, zeta.shape)
    if loss.scale is None:  # panels are interpolated between their ends, which must be exact
        s = loss.proximal(u, V_u)
    else:  # a cut may stand a little aside, but s and zeta must belong together
        gaps = np.abs(np.diff(breaks, axis=1)).min(1, keepdims=True, initial=1.0)
        aside = ASIDE * np.where(np.arange(zeta.shape[1]) < fan.shape[1], 1.0, gaps)
        s = loss.proximal(u, V_u, aside * deviation)
        there = (s - mean + V * loss.derivative(s)) / deviation
        astray = np.abs(there - zeta) > aside  # the last step of a search may lead away
        if astray.any():
            s[astray] = loss.proximal(u[astray], V_u[astray])
            there = (s - mean + V * loss.derivative(s)) / deviation
        zeta = np.clip(there, zeta - aside, zeta + aside)

    knot, below, above, curvature = loss.knots
    jump = above > below
    enter, leave = ((knot + V * slope - mean) / deviation for slope in (below, above))
    needless = ~np.isin(knot, loss.kinks) & ((1.0 + V) * curvature < FLAT)
    needless &= loss.scale is not None
    edges = np.concatenate([np.where(needless, np.inf, enter), leave[:, jump]], axis=1)
    at = np.concatenate([knot, knot[jump]])
    first, last = slice(0, 1), slice(len(FAN) + 1, len(FAN) + 2)
    too_low, too_high = edges <= zeta[:, first], edges >= zeta[:, last]
    s_edges = np.where(too_low, s[:, first], np.where(too_high, s[:, last], at))
    s = np.concatenate([s, s_edges], axis=1)
    zeta = np.concatenate([zeta, np.clip(edges, zeta[:, first], zeta[:, last])], axis=1)
    # both grow along the curve, so that each in order is in order with the other
    return np.sort(zeta, axis=1), np.sort(s, axis=1), enter, leave
