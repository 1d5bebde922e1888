r"""The threshold beyond which an unregularised estimator of counts no longer exists.

The loss of a label may only fall towards :math:`-\infty` (a count of zero) or towards
:math:`\infty` (all trials a success). A direction along which no other label's loss grows lets the
weights escape to infinity. With the cones :math:`K_y = (-\infty, 0]`, :math:`[0, \infty)`, or
{0} for all other labels, a minimiser exists if and only if

.. math:: p/n < \min_{t_0, t} E\,\mathrm{dist}^2(t_0 + tX + Z, K_y),

with X and Z as in `direction`, of which this is the generalisation. Given the field, :math:`tX + Z`
is normal, and the average over it is known in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import Status
from hiddenmanifold.losses import LabelLoss
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import PointTeacher
from hiddenmanifold.teachers.real import FIELD_RULES
from hiddenmanifold.theory.separability.direction import ACCURATE, Direction

TURNS = 100
"""Newton steps on each level, at most; from the level before, three are usual."""
SHORTEST = 2.0**-30
"""The least part of a step that is tried."""


@dataclass(frozen=True)
class Cones:
    """Fields, their weights, and the shares (3, fields) of labels that only fall, rise, neither."""

    nu: Array
    w: Array
    shares: Array

    @classmethod
    def of(cls, teacher: PointTeacher, loss: LabelLoss, level: int) -> Cones:
        """The shares at standardised fields, on a level of quadrature."""
        y, weights = teacher.points(level)
        left, right = loss.slopes_at_infinity(y)
        kinds = np.array([(left == 0) & (right > 0), (left < 0) & (right == 0)])
        nu, w = teacher.field(level)
        law = weights[:, None] * teacher.law(y[:, None], nu)
        down, up = kinds.astype(float) @ law
        bound = (left < 0) & (right > 0)  # a loss that is constant binds nothing
        rest = bound.astype(float) @ law
        return cls(nu / np.sqrt(teacher.rho), w, np.array([down, up, rest]))

    def average(self, chi: Array, t0: Array, t: Array) -> Array:
        """Value, two slopes, three second derivatives, and the slope by χ: (7, points)."""
        root, hidden = np.sqrt(chi)[:, None], (1.0 - chi)[:, None]
        a, b = t0[:, None], t[:, None]
        x = root * self.nu
        m, s2 = a + b * x, 1.0 + b**2 * hidden
        s = np.sqrt(s2)
        below = scipy.special.ndtr(m / s)
        density = normal_density(m / s)
        # E(m + sZ)_+² and its derivatives by m, s² and both
        value = (m**2 + s2) * below + m * s * density
        by_m, by_v = 2.0 * (m * below + s * density), below
        by_mm, by_mv, by_vv = 2.0 * below, density / s, -0.5 * m * density / (s * s2)
        down, up, rest = self.shares * self.w

        def mixed(of_plus: Array, of_square: Array) -> Array:
            """Sum over the three cones; that of rising losses is the square less the falling."""
            found: Array = of_plus @ down + (of_square - of_plus) @ up + of_square @ rest
            return found

        one, zero = np.ones_like(m), np.zeros_like(m)
        dv, dvv = 2.0 * b * hidden, 2.0 * hidden
        to_chi = b * self.nu / (2.0 * np.maximum(root, 1e-150))
        parts = [
            (value, m**2 + s2),
            (by_m, 2.0 * m),
            (by_m * x + by_v * dv, 2.0 * m * x + dv),
            (by_mm, 2.0 * one),
            (by_mm * x + by_mv * dv, 2.0 * x + zero),
            (
                by_mm * x**2 + 2.0 * by_mv * x * dv + by_vv * dv**2 + by_v * dvv,
                2.0 * x**2 + dvv * one,
            ),
            (by_m * to_chi - by_v * b**2, 2.0 * m * to_chi - b**2 * one),
        ]
        return np.array([mixed(plus, square) for plus, square in parts])


def existing_direction(
    teacher: PointTeacher, loss: LabelLoss, chi: Array, free_intercept: bool, hidden: Array
) -> Direction:
    """Minimise the mean square distance from the cones, at visible fractions chi (points,).

    Newton's method on finer and finer quadrature, until the minimum no longer moves.
    """
    t0, t = np.zeros((2, len(chi)))
    last, status = np.full(len(chi), np.nan), np.full(len(chi), int(Status.QUADRATURE))
    for level in range(1, len(FIELD_RULES) - 2):
        cones = Cones.of(teacher, loss, level)
        t0, t, sums, done = _newton(cones, chi, t0, t, free_intercept)
        settled = np.abs(sums[0] - last) <= ACCURATE * sums[0]
        status[done & settled] = Status.CONVERGED
        if settled.all() or not np.isfinite(sums[0]).any():
            break
        last = sums[0]
    value, length = sums[0].copy(), np.hypot(1.0, t)
    elasticity = np.maximum(-chi * hidden * sums[6] / value, 0.0)
    found = Direction(
        value,
        t,
        t0,
        -np.sqrt(chi) * t / length,
        -t0 / length,
        elasticity,
        np.full(len(chi), ACCURATE),
        status,
    )
    for column in list(vars(found).values())[:-1]:
        column[status != Status.CONVERGED] = np.nan
    return found


def _newton(
    cones: Cones, chi: Array, t0: Array, t: Array, free: bool
) -> tuple[Array, Array, Array, Array]:
    """Damped Newton's method for the convex average, from (t0, t)."""
    sums, part = cones.average(chi, t0, t), np.ones(len(chi))
    for _ in range(TURNS):
        value, g0, g, h00, h0, h, _ = sums
        if free:
            determinant = h00 * h - h0**2
            step0, step = (h * g0 - h0 * g) / determinant, (h00 * g - h0 * g0) / determinant
        else:
            step0, step = np.zeros_like(g), g / h
        decrement = g0 * step0 + g * step if free else g * step
        done = decrement <= ACCURATE**2 * value
        going = ~done & (part > SHORTEST) & np.isfinite(decrement)
        if not going.any():
            break
        new0, new = t0 - np.where(going, part * step0, 0.0), t - np.where(going, part * step, 0.0)
        trial = cones.average(chi, new0, new)
        lower = going & (trial[0] <= value * (1.0 + 1e-15))
        t0, t = np.where(lower, new0, t0), np.where(lower, new, t)
        sums = np.where(lower, trial, sums)
        part = np.where(lower, 1.0, 0.25 * part)
    return t0, t, sums, done
