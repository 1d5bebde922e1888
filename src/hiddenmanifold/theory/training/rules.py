r"""Gradient methods as sums of ridge fits: where the fits are, and with which coefficients.

From w = 0 every gradient method on the square loss leads to :math:`w = Z^\top\varphi(K)\,y`, with
features :math:`Z = X/\sqrt p` and :math:`K = ZZ^\top`. Ridge regression has
:math:`\varphi(x) = 1/(x + \lambda)`, and for other rules :math:`\varphi(x) = \sum_j b_j/(x + z_j)`
with complex numbers in conjugate pairs, so that the fit is the sum of ridge fits at
:math:`\lambda = z_j` with coefficients :math:`b_j`. This holds for all x at once: the nodes know
nothing of the data.

Gradient flow has :math:`\varphi = (1 - e^{-t(x+\lambda)})/(x + \lambda)`; on the contour of Talbot
in the form of Dingfelder and Weideman (2015), :math:`e^v = \sum_j c_j/(v - v_j)` to 2e-14 for all
:math:`v \le 0`. Powers of :math:`1 - \eta x` are the same at :math:`\sigma = v/k` around each of
the ends 1 and -1, or sums over a circle if k is small or there is momentum.
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
        many = (time >= SHORT) & (self.momentum == 0.0)
        for some, rule in ((np.flatnonzero(many), self._ends), (np.flatnonzero(~many), None)):
            if rule is not None and some.size:
                yield self._at(some, lam, *rule(time[some]))
            elif rule is None:
                for steps in np.unique(time[some]).tolist():
                    same = some[time[some] == steps]
                    yield self._at(same, lam, *self._circle(int(steps)))

    def _at(self, some: Integers, lam: Array, offset: Numbers, b: Numbers) -> Nodes:
        z = lam[some, None] + offset / self.step[some, None]
        return Nodes(some, z, np.broadcast_to(b, z.shape))

    @staticmethod
    def _ends(steps: Array) -> tuple[Numbers, Numbers]:
        """Both contours, around y = 1 - ηx = 1 and -1; the parity of the steps is a sign."""
        v, c = contour()
        sigma, parity = v / steps[:, None], 1.0 - 2.0 * (steps[:, None] % 2)
        y = np.exp(sigma)
        offsets = np.expm1(sigma), -y - 1.0
        weights = c * y / steps[:, None], -parity * c * y / steps[:, None]
        b = [-weight / offset for weight, offset in zip(weights, offsets, strict=True)]
        return np.hstack(offsets), np.hstack(b)

    def _circle(self, steps: int) -> tuple[Numbers, Numbers]:
        """Offsets, in units of 1/η, and coefficients from the generating function over steps."""
        size, beta = max(LEAST_CIRCLE, PER_STEP * steps), self.momentum
        angle = 2.0 * np.pi * (np.arange(size) + 0.5) / size
        zeta = 10.0 ** (-DECAY / size) * np.exp(1j * angle)
        if self.nesterov:
            a = zeta * (1.0 + beta - beta * zeta)
            offset, b = 1.0 / a - 1.0, zeta ** (1 - steps) / ((1.0 - zeta) * a * size)
        else:
            offset = (1.0 - zeta) * (1.0 - beta * zeta) / zeta
            b = zeta ** (-steps) / ((1.0 - zeta) * size)
        upper = offset.imag > 0.0
        return offset[upper], b[upper]

    def largest_step(self, curvature: Array) -> Array:
        beta = self.momentum
        return 2.0 * (1.0 + beta) / (1.0 + 2.0 * beta * self.nesterov) / curvature


def contour() -> tuple[Numbers, Numbers]:
    """Poles in the upper half plane and residues of the exponential function on v ≤ 0."""
    size, slant = 2 * NODES, 0.6407
    angle = np.pi * (2.0 * np.arange(NODES) + 1.0) / size
    cot = 1.0 / np.tan(slant * angle)
    v = size * (-0.6122 + 0.5017 * angle * cot + 0.2645j * angle)
    turning = 0.5017 * (cot - slant * angle / np.sin(slant * angle) ** 2) + 0.2645j
    return v, 1j * np.exp(v) * turning
