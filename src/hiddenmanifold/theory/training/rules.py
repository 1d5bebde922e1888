r"""Gradient methods as sums of ridge fits: where the fits are, and with which coefficients.

From w = 0 every gradient method on the square loss leads to :math:`w = Z^\top\varphi(K)\,y`, with
features :math:`Z = X/\sqrt p` and :math:`K = ZZ^\top`. Ridge regression has
:math:`\varphi(x) = 1/(x + \lambda)`, and for other rules :math:`\varphi(x) = \sum_j b_j/(x + z_j)`
with complex numbers in conjugate pairs, so that the fit is the sum of ridge fits at
:math:`\lambda = z_j` with coefficients :math:`b_j`. This holds for all x at once: the nodes know
nothing of the data.

Gradient flow has :math:`\varphi = (1 - e^{-t(x+\lambda)})/(x + \lambda)`; on the contour of Talbot
in the form of Dingfelder and Weideman (2015), :math:`e^v = \sum_j c_j/(v - v_j)` to 2e-14 for all
:math:`v \le 0`. Numbers of steps are coefficients of a known function of ζ: integrals over
:math:`\zeta = \pm e^{-\sigma}` with :math:`\sigma = v/k` on that contour, around both ends 1 and
-1, or over a circle if steps are few, or momentum has not been forgotten yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers, Numbers

NODES = 14
"""Nodes of a contour in the upper half plane: two fewer are a hundred times less accurate, and with
two more rounding is twice as large."""
SHORT = 16
"""Steps from which on two contours take the place of a circle: with 12 they have 13 digits."""
FORGOTTEN = 64.0
"""Steps times log(1/momentum) from which on two contours hold with momentum, too: by then what does
not decay without oscillating has fallen to 1e-14, as the square root."""
MOST_STEPS = 640
"""Steps that a circle of nodes is used for, at most: their cost grows with the square, and these
take half a second."""
LEAST_CIRCLE, PER_STEP = 96, 6
"""Nodes of a circle: at least, and per step."""
DECAY = 13.0
"""Decimal digits to which a circle of nodes is exact."""


@dataclass(frozen=True)
class Nodes:
    """Ridge fits that add up to a rule, at some points: those in the upper half plane.

    Attributes
    ----------
    index : array (points,)
        The points.
    z, b : arrays (points, nodes)
        Their λ and coefficients; each stands for itself and its conjugate.
    """

    index: Integers
    z: Numbers
    b: Numbers

    @property
    def rest(self) -> Array:
        """What the coefficients lack from 1."""
        rest: Array = 1.0 - 2.0 * self.b.sum(1).real
        return rest


@dataclass(frozen=True)
class Rule:
    """A gradient method with the same hyperparameters at all points."""

    def nodes(self, time: Array, lam: Array) -> Iterator[Nodes]:
        """The ridge fits that add up to training for given times, in groups of points."""
        raise NotImplementedError

    def largest_step(self, curvature: Array) -> Array:
        """The step below which training converges, given the largest curvature of the loss."""
        raise NotImplementedError


@dataclass(frozen=True)
class Flow(Rule):
    """Gradient flow, dw/dt = -gradient."""

    def nodes(self, time: Array, lam: Array) -> Iterator[Nodes]:
        v, c = contour()
        b = np.broadcast_to(-c / v, (len(time), NODES))
        yield Nodes(np.arange(len(time)), lam[:, None] + v / time[:, None], b)

    def largest_step(self, curvature: Array) -> Array:
        return np.full_like(curvature, np.inf)


@dataclass(frozen=True)
class Descent(Rule):
    r"""Steps of gradient descent, with momentum of Polyak (heavy ball) or of Nesterov.

    Parameters
    ----------
    step : array (points,)
        The factor η of the gradient.
    momentum : float
        The factor β of the last change of w.
    nesterov : bool
        Whether the gradient is taken after that change.
    """

    step: Array
    momentum: float = 0.0
    nesterov: bool = False

    def nodes(self, time: Array, lam: Array) -> Iterator[Nodes]:
        many = time >= beyond(self.momentum)
        if (some := np.flatnonzero(many)).size:
            yield self._at(some, lam, *self._ends(time[some]))
        for steps in np.unique(time[~many]).tolist():
            same = np.flatnonzero(time == steps)
            yield self._at(same, lam, *self._circle(int(steps)))

    def _at(self, some: Integers, lam: Array, offset: Numbers, b: Numbers) -> Nodes:
        z = lam[some, None] + offset / self.step[some, None]
        return Nodes(some, z, np.broadcast_to(b, z.shape))

    def _ends(self, steps: Array) -> tuple[Numbers, Numbers]:
        """Both contours, around ζ = 1 and -1; the parity of the steps is a sign."""
        v, c = contour()
        sigma, parity = v / steps[:, None], 1.0 - 2.0 * (steps[:, None] % 2)
        zeta = np.exp(-sigma)
        near, weight = self._node(zeta, -np.expm1(-sigma))
        far, other_weight = self._node(-zeta, 1.0 + zeta)
        b = np.hstack([weight, parity * other_weight]) * np.tile(-c, 2) / steps[:, None]
        return np.hstack([near, far]), b

    def _circle(self, steps: int) -> tuple[Numbers, Numbers]:
        """Offsets, in units of 1/η, and coefficients from the generating function over steps."""
        size = max(LEAST_CIRCLE, PER_STEP * steps)
        angle = 2.0 * np.pi * (np.arange(size) + 0.5) / size
        zeta = 10.0 ** (-DECAY / size) * np.exp(1j * angle)
        offset, weight = self._node(zeta, 1.0 - zeta)
        upper = offset.imag > 0.0
        return offset[upper], (zeta**-steps * weight / size)[upper]

    def _node(self, zeta: Numbers, left: Numbers) -> tuple[Numbers, Numbers]:
        """Offset and coefficient, but for ζ to the power of the steps, at ζ and 1 - ζ."""
        beta = self.momentum
        slowed = 1.0 + beta - beta * zeta if self.nesterov else 1.0
        offset: Numbers = left * (1.0 - beta * zeta) / (zeta * slowed)
        weight: Numbers = 1.0 / (left * slowed)
        return offset, weight

    def largest_step(self, curvature: Array) -> Array:
        beta = self.momentum
        return 2.0 * (1.0 + beta) / (1.0 + 2.0 * beta * self.nesterov) / curvature


def beyond(momentum: float) -> float:
    """The number of steps from which on two contours take the place of a circle."""
    return max(SHORT, FORGOTTEN / -np.log(momentum)) if momentum else SHORT


def contour() -> tuple[Numbers, Numbers]:
    """Poles in the upper half plane and residues of the exponential function on v ≤ 0."""
    size, slant = 2 * NODES, 0.6407
    angle = np.pi * (2.0 * np.arange(NODES) + 1.0) / size
    cot = 1.0 / np.tan(slant * angle)
    v = size * (-0.6122 + 0.5017 * angle * cot + 0.2645j * angle)
    turning = 0.5017 * (cot - slant * angle / np.sin(slant * angle) ** 2) + 0.2645j
    return v, 1j * np.exp(v) * turning
