r"""The threshold at which training data become linearly separable.

Features show a fraction :math:`\chi` of the variance of the teacher's field :math:`\nu`: a standard
normal X, of correlation :math:`\sqrt\chi` with :math:`\nu`. With p independent features, data are
separable if and only if

.. math:: p/n > \min_{t_0, t} E(t_0 Y + t Y X + Z)_+^2,

with Z an independent standard normal variable, and :math:`t_0 = 0` without a free intercept (Candès
and Sur, *Annals of Statistics* 48, 2020). At the threshold the direction that separates predicts
:math:`-t_0 - tX + Z'`, in units of its part Z' that is independent of X. The minimum falls with
:math:`\chi`: at a smaller χ, X is the one at a larger χ plus noise, which adds to Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.errors import Status
from hiddenmanifold.numerics.panels import refine
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import BinaryTeacher
from hiddenmanifold.teachers.averaging import edges_along, fan_of, law_on_panels
from hiddenmanifold.theory.labels_side.proximal_curve import RULES

ROUGHEST = 2
"""Level of fineness to begin with."""
BENDS = np.array([-39.0, -18.0, -9.0, -4.5, -1.5, 0.0, 1.5, 4.5, 9.0])
"""Where :math:`E(a+Z)_+^2` bends, in values of a; beyond, it is zero or a polynomial."""
DEPTH = 48
"""Terms of the continued fraction of the tail."""
BLOCK, MAX_ITERATIONS, SMALLEST_DAMPING = 256, 200, 2.0**-20
"""Points handled together; Newton steps on each level, and the least part of one to try."""
ACCURATE = 1e-12
"""Relative accuracy of the minimum."""
ROUNDING = 1e-15
"""What rounding of X may cost of it, times t and the X at which labels change."""
LEAST_HIDDEN = 1e-60
"""Hidden fraction used in place of zero, so that logarithms stay finite."""
RESOLVED, GONE = 1e-14, 1e-10
"""Narrowest change of label, relative to its X; minimum that is zero if the field is visible."""


@dataclass(frozen=True)
class Direction:
    """The minimum of :math:`E(t_0 Y + tYX + Z)_+^2` and where it is taken, arrays (points,).

    Attributes
    ----------
    value : array
        The minimum: data are separable for p/n above it.
    t, t0 : arrays
        Where it is taken; infinite if the minimum is zero.
    alignment : array
        Correlation of the prediction with the teacher's field, at the threshold.
    bias : array
        Intercept of the prediction in units of its standard deviation, at the threshold.
    elasticity : array
        Derivative of log(value) by the log-odds log((1 - chi)/chi), not negative.
    accuracy : array
        Relative accuracy of the minimum.
    status : array
        How the minimisation ended; a point that did not converge is NaN throughout.
    """

    value: Array
    t: Array
    t0: Array
    alignment: Array
    bias: Array
    elasticity: Array
    accuracy: Array
    status: Integers


def rectified(a: Array) -> tuple[Array, Array, Array]:
    r""":math:`G(a) = E(a+Z)_+^2` and its first two derivatives, each to relative accuracy.

    :math:`G = (1+a^2)\Phi + a\phi`, :math:`G' = 2(a\Phi + \phi)`, :math:`G'' = 2\Phi` cancel far
    below zero. There, at :math:`a = -x`, :math:`G = 2 I_2`, :math:`G' = 2 I_1` with :math:`I_n =
    \int_0^\infty (s^n/n!)\,\phi(s+x)\,ds`, and :math:`I_n/I_{n-1} = 1/(x + (n+1) I_{n+1}/I_n)`.
    """
    a = np.maximum(a, BENDS[0])
    density, Phi = normal_density(a), scipy.special.ndtr(a)
    G, G1 = (1.0 + a * a) * Phi + a * density, 2.0 * (a * Phi + density)
    tail = a < -2.5
    x = -a[tail]
    ratios = [2.0 / (x + np.sqrt(x * x + 4.0 * DEPTH + 2.0))]
    for n in range(DEPTH, 0, -1):
        ratios.append(1.0 / (x + n * ratios[-1]))
    G1[tail] = 2.0 * density[tail] * ratios[-1] * ratios[-2]
    G[tail] = G1[tail] * ratios[-3]
    return G, G1, 2.0 * Phi


def separating_direction(
    teacher: BinaryTeacher, chi: Array, free_intercept: bool, hidden: Array | None = None
) -> Direction:
    r"""Minimise :math:`E(t_0 Y + tYX + Z)_+^2`, to a relative 1e-12 or an absolute 1e-15.

    Parameters
    ----------
    teacher : BinaryTeacher
        The rule of the labels.
    chi : array (points,)
        Visible fractions, in [0, 1].
    free_intercept : bool
        Whether :math:`t_0` is free, or zero.
    hidden : array (points,), optional
        1 - chi, if it is known to more digits than the difference would have.
    """
    hidden = 1.0 - chi if hidden is None else hidden
    # a symmetric rule needs no intercept
    average = _Average(teacher, chi, hidden, free_intercept and not teacher.symmetric)
    t0, t, sums, status = _minimise(average)
    value, length = sums[1], np.hypot(1.0, t)
    alignment, bias, elasticity = -np.sqrt(chi) * t / length, -t0 / length, sums[2] / value
    accuracy, gone = average.accuracy(t), (hidden == 0.0) & (value < GONE)
    value[gone] = 0.0
    for unknown in (t, t0):
        unknown[gone & (unknown != 0.0)] *= np.inf
    columns = (value, t, t0, alignment, bias, elasticity, accuracy)
    for column in columns:
        column[status != Status.CONVERGED] = np.nan
    return Direction(*columns, status)


@dataclass(frozen=True)
class _Average:
    """The average to minimise."""

    teacher: BinaryTeacher
    chi: Array
    hidden: Array
    free: bool

    @cached_property
    def offset(self) -> float:
        """The largest X at which labels change."""
        changes = np.abs(self.teacher.landmarks(1, np.zeros(1)))
        return float(changes.max(initial=0.0) / np.sqrt(self.teacher.rho))

    def accuracy(self, t: Array) -> Array:
        """Relative accuracy of the minimum that can be had."""
        return ACCURATE + ROUNDING * self.offset * np.abs(t)

    def sums(self, index: Integers, t0: Array, t: Array, level: int) -> Array:
        """The averages of `_sums` at the points `index`, a block at a time."""
        hidden = np.maximum(self.hidden[index], max(LEAST_HIDDEN, (RESOLVED * self.offset) ** 2))
        columns = self.chi[index], hidden, t0, t
        parts = [
            self._sums(*(column[i : i + BLOCK] for column in columns), level=level)
            for i in range(0, len(index), BLOCK)
        ]
        return np.concatenate([np.empty((11, 0)), *parts], axis=1)

    def _sums(self, chi: Array, hidden: Array, t0: Array, t: Array, *, level: int) -> Array:
        """Centre, value, slope in the log-odds; pulls on s and on t, see `_balance`; (11, points).

        s = t0 + t centre: around the mean X of the curvature, the centre, the two unknowns do not
        mix. This keeps the digits when only X near one value matters.
        """
        teacher, rows = self.teacher, len(t)
        slope, V0 = np.sqrt(teacher.rho * chi), teacher.rho * hidden
        both = not teacher.symmetric  # else one label represents both
        totals, on_s, nodes = np.zeros((3, rows)), np.zeros((2, 2, rows)), []
        for y in (1, -1) if both else (1,):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                bends = (BENDS - y * t0[:, None]) / t[:, None]
            edges = edges_along(teacher, y, slope, V0, fan_of(teacher), bends)
            panels, (Z, Z1, _) = law_on_panels(teacher, y, slope, V0, edges, rule=RULES[level])
            row, u = panels.row, panels.nodes  # X along the label
            G, G1, G2 = rectified(t[row, None] * u + y * t0[row, None])
            tilt, bend = Z * G1, Z * G2
            found = panels.sum(np.array([Z * G, Z1 * G1, y * bend * u, tilt, bend]))
            totals += found[:3]
            on_s[:, (1 - y) // 2] = found[3:]
            nodes.append((panels, y * u, y * tilt, bend))
        value, by_slope, first = totals
        centre = first / on_s[1].sum(0) if self.free else np.zeros(rows)
        on_t = np.zeros((2, 2, rows))
        for panels, X, tilt, bend in nodes:
            away = X - centre[panels.row, None]
            pull, stiffness = tilt * away, bend * away**2
            up = pull > 0
            parts = np.array([pull * up, -pull * ~up, stiffness * up, stiffness * ~up])
            on_t += panels.sum(parts).reshape(on_t.shape)
        # by r = √χ, an average of both changes as E[∂∂]
        by_odds = -0.5 * hidden * slope * t * by_slope
        extensive = [value, by_odds, *on_s.reshape(4, rows), *on_t.reshape(4, rows)]
        return np.array([centre, *np.multiply(1.0 if both else 2.0, extensive)])


def _minimise(average: _Average) -> tuple[Array, Array, Array, Integers]:
    """Newton's method on finer and finer quadrature, until the minimum no longer moves."""
    points = len(average.chi)
    t0, t = np.zeros((2, points))
    if average.free:  # the intercept that balances the labels if no part of the field is visible
        plus, minus, _ = average.teacher.label_marginals
        t0 += scipy.special.ndtri(minus) if plus > minus else -scipy.special.ndtri(plus)
    found, status = np.full((11, points), np.nan), np.full(points, int(Status.QUADRATURE))

    def minimum(some: Integers, level: int) -> tuple[Array, Array]:
        t0[some], t[some], found[:, some], done = _newton(average, some, t0[some], t[some], level)
        value = found[1, some]
        status[some[~done]] = Status.MAX_ITERATIONS
        status[some[~np.isfinite(value)]] = Status.NON_FINITE
        return np.where(done, value, np.nan), average.accuracy(t[some]) * value

    status[np.isfinite(refine(minimum, t.shape, range(ROUGHEST, len(RULES))))] = Status.CONVERGED
    return t0, t, found, status


def _newton(
    average: _Average, index: Integers, t0: Array, t: Array, level: int
) -> tuple[Array, Array, Array, Booleans]:
    """Damped Newton's method on one level of fineness, from (t0, t) at the points `index`.

    Where almost all is seen t is huge and the average falls like 1/t: so steps are in arsinh(t).
    """
    t0, t, sums = t0.copy(), t.copy(), average.sums(index, t0, t, level)
    done, damping = np.zeros(len(t), dtype=bool), np.ones(len(t))
    for _ in range(MAX_ITERATIONS):
        centre, value = sums[:2]
        step_t, decrement = _balance(*sums[7:])
        step_s = np.zeros_like(t)
        if average.free:
            step_s, more = _balance(*sums[3:7])
            decrement = decrement + more
        done = decrement <= average.accuracy(t) ** 2 * value
        going = np.flatnonzero(~done & np.isfinite(decrement) & (damping >= SMALLEST_DAMPING))
        if not going.size:
            break
        far = damping[going] * step_t[going] / np.hypot(1.0, t[going])
        trial_t = np.sinh(np.arcsinh(t[going]) + far)
        shift_s = damping[going] * step_s[going]
        trial_t0 = t0[going] + shift_s - (trial_t - t[going]) * centre[going]
        trial = average.sums(index[going], trial_t0, trial_t, level)
        lower = trial[1] <= value[going] * (1.0 + average.accuracy(trial_t))
        kept = going[lower]
        t0[kept], t[kept], sums[:, kept] = trial_t0[lower], trial_t[lower], trial[:, lower]
        damping[going] = np.where(lower, 1.0, 0.25 * damping[going])
    return t0, t, sums, done


def _balance(up: Array, down: Array, stiff_up: Array, stiff_down: Array) -> tuple[Array, Array]:
    """The step to where two pulls are equal, by their logarithms, and twice what Newton's gains."""
    with np.errstate(all="ignore"):
        newton = (down - up) / (stiff_up + stiff_down)
        step = np.log(down / up) / (stiff_up / up + stiff_down / down)
        return np.where(np.isfinite(step), step, newton), newton * (down - up)
