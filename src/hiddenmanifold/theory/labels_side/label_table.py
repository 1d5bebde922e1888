r"""Labels at points and losses of label and score: sums over a table of labels and scores.

With the joint probabilities :math:`T_{ji}` of labels :math:`y_j` and fields :math:`\nu_i`
(`teachers.PointTeacher.table`) and the normal density :math:`G_{il}` of scores :math:`x_l` given
the field, :math:`W = TG` is the joint law of labels and scores, and :math:`W_1` the same with a
factor :math:`\nu`. Then :math:`e_1 = \sum Wg`, :math:`e_2 = \sum Wh^2`, :math:`e_0 = \sum Wh` and
:math:`e_3 = (\sum W_1h + Me_1)/\rho`, with h and g on labels × scores. Derivatives of G are
polynomials in ν: four products with powers of ν give all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.compiled import E0, E1, E2, E3
from hiddenmanifold.losses import LabelLoss
from hiddenmanifold.losses.of_label import Interpolation
from hiddenmanifold.numerics.panels import gauss_legendre
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import PointTeacher
from hiddenmanifold.theory.labels_side.averages import ChannelAverages
from hiddenmanifold.theory.labels_side.number_channel import NumberChannel

SCORES = np.linspace(-8.5, 8.5, 9)
"""Edges of panels of scores, in standard deviations."""
SCORE_RULES = ((8, 0), (10, 0), (14, 0), (20, 0), (20, 1), (20, 2), (20, 3), (20, 4), (20, 5))
"""Gauss–Legendre order and halvings of these panels on each level of quadrature."""
NUMBERS = 2**22
"""Numbers of an array that is held at once."""
NARROW = 0.35
"""Deviation of the field given the score, in units of its own, below which panels are halved.

The next level is as fine: half or twice as much moves by one the level on which points settle."""
MOST_HALVINGS = 4
"""How often they are halved, at most: each costs four times as much."""


@dataclass(frozen=True)
class TableChannel(NumberChannel):
    """Labels at points, and a loss of label and score."""

    teacher: PointTeacher
    loss: LabelLoss

    @property
    def batch(self) -> int:
        return super().batch if self.closed_form else 32

    @property
    def skipped_levels(self) -> int:
        return 3  # which shortens the search for a hard solution, too

    def slope_of(self, y: Array, b: float, side: int) -> Array:
        return self.loss.derivative(y, np.full_like(y, b))

    @property
    def label_moments(self) -> tuple[float, float, float, float]:
        if not isinstance(self.loss, Interpolation):
            return super().label_moments
        y, nu, T = self.teacher.table(4)
        f, p = self.loss.minimiser(y), T.sum(1)
        mean, second = float(p @ f), float(p @ f**2)
        return mean, second, second - mean**2, float(f @ T @ nu) / self.teacher.rho

    def averages_of_one(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        if self.closed_form:
            return super().averages_of_one(x, level, with_loss)
        with np.errstate(all="ignore"):
            extra = np.ceil(np.log2(np.maximum(NARROW * np.cosh(x[:, 2]), 1.0)))
        extra = np.clip(np.nan_to_num(extra), 0, MOST_HALVINGS).astype(np.intp)
        return self.in_groups(x, extra, level, with_loss)

    @cached_property
    def _tables(self) -> dict[tuple[int, int], tuple[Array, Array, Array]]:
        return {}

    def _table(self, level: int, extra: int) -> tuple[Array, Array, Array]:
        """Labels, fields, and joint probabilities times 1, ν, ν², ν³: (4, labels, fields)."""
        if (level, extra) not in self._tables:
            y, nu, T = self.teacher.table(level, extra)
            seen = T.max(0) > 0.0
            nu, T = nu[seen], T[:, seen]
            self._tables[level, extra] = y, nu, np.stack([T * nu**a for a in range(4)])
        return self._tables[level, extra]

    def _scores(self, level: int, extra: int) -> tuple[Array, Array]:
        """Standardised scores and the lengths that they stand for."""
        order, halvings = SCORE_RULES[level]
        t, w = gauss_legendre(order, halvings + extra)
        width = np.diff(SCORES)[:, None]
        return (SCORES[:-1, None] + width * t).ravel(), (width * w).ravel()

    def together(self, level: int, extra: int) -> int:
        y, nu, _ = self._table(level, extra)
        scores = len(self._scores(level, extra)[0])
        return max(1, NUMBERS // (scores * max(len(nu), 4 * len(y))))

    def part_averages(self, x: Array, level: int, extra: int, with_loss: bool) -> ChannelAverages:
        y, nu, table = self._table(level, extra)
        t, lengths = self._scores(level, extra)
        rho, V, Q = self.teacher.rho, np.exp(x[:, 0])[:, None, None], np.exp(x[:, 1])
        r, b = np.sqrt(Q / rho) * np.tanh(x[:, 2]), self.intercept(x)
        S2 = Q * np.cosh(x[:, 2]) ** -2.0
        away = np.sqrt(Q)[:, None] * t  # scores, from the intercept
        S = np.sqrt(S2)[:, None, None]
        G = normal_density((away[:, None, :] - (r[:, None] * nu)[..., None]) / S) / S
        G *= (np.sqrt(Q)[:, None] * lengths)[:, None, :]
        A = np.moveaxis((table.reshape(-1, len(nu)) @ G).reshape(len(x), 4, len(y), -1), 1, 0)
        labels, scores = y[:, None], (b[:, None] + away)[:, None, :]
        loss = self.loss
        eta = loss.proximal(labels, scores, V)
        h, bend = -loss.derivative(labels, eta), loss.second_derivative(labels, eta)
        g = bend / (1.0 + V * bend)

        def total(weight: Array, values: Array) -> Array:
            found: Array = np.einsum("pjl,pjl->p", weight, values)
            return found

        M, law = r * rho, _Law(A, away[:, None, :], *(v[:, None, None] for v in (r, S2)))
        e, de = np.empty((len(x), 4)), np.empty((len(x), 4, self.unknowns))
        hg, W, W1 = h * g, A[0], A[1]
        e[:, E1], e[:, E2], e[:, E0] = total(W, g), total(W, h * h), total(W, h)
        e[:, E3] = self.correlation(total(W1, h) / rho, e) + r * e[:, E1]
        by_V = -np.exp(x[:, 0])
        de[:, E1, 0] = by_V * total(law.by_score, hg)
        de[:, E2, 0] = by_V * 2.0 * total(W, h * hg)
        de[:, E0, 0] = by_V * total(W, hg)
        de[:, E3, 0] = (by_V * total(W1, hg) + M * de[:, E1, 0]) / rho
        for k, d in enumerate(self.directions(x), start=1):
            moves = (v[:, None, None] for v in (d.b, d.r, d.variance))
            dW, dW1 = law.moved(*moves)
            de[:, E1, k], de[:, E2, k] = total(dW, g), total(dW, h * h)
            de[:, E0, k] = total(dW, h)
            de[:, E3, k] = (total(dW1, h) + M * de[:, E1, k]) / rho + d.r * e[:, E1]
        data_loss = np.full(len(x), np.nan)
        if with_loss:
            data_loss = total(W, loss.value(np.broadcast_to(labels, eta.shape), eta))
        return ChannelAverages(e, de, data_loss, W.sum((1, 2)))


@dataclass(frozen=True)
class _Law:
    """The joint law of labels and scores and its derivatives, from sums over powers of ν.

    ``A`` has the sums with 1, ν, ν², ν³; ``away`` is x - b, arrays that broadcast.
    """

    A: Any
    away: Array
    r: Array
    S2: Array

    def _distance(self, a: int, power: int) -> Array:
        """The sum with a factor ν^a (x - b - rν)^power."""
        A, u, r = self.A, self.away, self.r
        if power == 1:
            return np.asarray(u * A[a] - r * A[a + 1])
        return np.asarray(u**2 * A[a] - 2.0 * r * u * A[a + 1] + r**2 * A[a + 2])

    @property
    def by_score(self) -> Array:
        """The derivative of the density by the score."""
        return -self._distance(0, 1) / self.S2

    def moved(self, b: Array, r: Array, variance: Array) -> tuple[Array, Array]:
        """The change of the law, and of the one with a factor ν, if mean and variance move."""
        found = []
        for a in (0, 1):
            along = self._distance(a, 1) * b + self._distance(a + 1, 1) * r
            wider = 0.5 * variance * (self._distance(a, 2) / self.S2 - self.A[a])
            found.append((along + wider) / self.S2)
        return found[0], found[1]
