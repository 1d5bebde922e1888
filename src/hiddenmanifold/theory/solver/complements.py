r"""The equations once more, without cancellation, for points at which rounding is magnified.

At some points the equations of ``features_side`` are decided by a complement: by :math:`r - D_1`
where n is about the rank r (both in units of p) and λ is tiny, or by :math:`1 - T_1` where the
teacher is almost learned. Numbers that are almost equal are then subtracted, and Newton's matrix is
almost singular. The same equations can be written for the complements themselves. With the
shortfall u, its proximal point s(u), the slope :math:`s' = ds/du` and :math:`f = y\,\rho'(s)`
(``labels_side``), and with N, a and the sums :math:`D_{ab}, T_{ab}` (``features_side``,
``spectral_sums``),

.. math:: r - D_1 &= (r - \alpha) + \alpha\, E[s'], \\
    \rho e_3\, (1 - T_1) &= E[\nu f], \\
    e_1 (N D_{11} + \rho a^2 T_{11}) &= E[(\eta - b) f],

where :math:`\eta = \omega + V f` is the prediction on a training sample; the last equation says
that the objective is stationary along w. For linear labels the last two become
:math:`e_1(\Delta + \rho T_{02}) = E[s h] + e_1 N D_{11}`.

All equations are solved together, the usual ones and those for the complements: four to eight of
them for two to four unknowns, and at a solution all hold. Each is divided by the size of its terms,
so that each is known to the same rounding, and the least-squares step follows those that are well
conditioned. Derivatives are differences: there are few such points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.features import Features
from hiddenmanifold.numerics.newton import EPSILON, largest
from hiddenmanifold.numerics.panels import sum_by_row
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.theory.features_side import spectral_arguments
from hiddenmanifold.theory.labels_side.averages import BLOCK
from hiddenmanifold.theory.labels_side.channel import widened
from hiddenmanifold.theory.labels_side.proximal_curve import proximal_curve
from hiddenmanifold.theory.points import Points

if TYPE_CHECKING:
    from hiddenmanifold.theory.labels_side.averages import Branch
    from hiddenmanifold.theory.labels_side.channel import Channel
    from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
    from hiddenmanifold.theory.solver.saddle_point import SaddlePoint

ROUNDING = 8.0 * EPSILON
"""Relative rounding of a side of an equation: a few operations and a sum of some hundred terms."""
REACH = 14.0
"""Where the Gaussian law is cut, in standard deviations: all that is left may be its far tail."""
LEVELS = (3, 4)
"""Quadrature on which the equations are solved, and a finer one that judges the solution."""
DIFFERENCE = 1e-6
"""Step of the differences in the logarithms of the unknowns.

It gives the matrix to about six digits, enough for steps that shrink by that at each turn; half or
twice as much changes no answer, since the residual is what is judged."""
TURNS = 12
"""Newton steps, at most; starts are close, and differences give the matrix to six digits."""
FARTHEST = 0.5
"""Longest change of an unknown in one step; starts are closer, unless the matrix is wrong."""


@dataclass(frozen=True)
class Refined:
    """Solutions of the equations without cancellation, arrays over points.

    ``rounding`` (points, unknowns) estimates how far rounding may have moved each unknown,
    ``quadrature_error`` how far a finer quadrature would.
    """

    iterations: Integers
    x: Array
    e: Array
    data_loss: Array
    residual: Array
    quadrature_error: Array
    rounding: Array


@dataclass(frozen=True)
class Complements:
    """The equations of a batch of points, each in all of its forms.

    ``rank`` is the number of independent features over that of all.
    """

    channel: Channel
    features: Features
    points: Points
    rank: Array

    @classmethod
    def of(cls, problem: SaddlePoint) -> Complements:
        """The equations of a problem, with the rank that its features have at each point."""
        rank = problem.features.visible(problem.points.gamma).rank
        return cls(problem.channel, problem.features, problem.points, rank)

    def __getitem__(self, index: Integers) -> Complements:
        return replace(self, points=self.points[index], rank=self.rank[index])

    def refined(self, x: Array) -> Refined:
        """Solve by Gauss–Newton steps from unknowns `x` (points, unknowns) close to solutions."""
        x, shortest, going = x.copy(), np.full(len(x), np.inf), np.arange(len(x))
        turns = np.ones(len(x), dtype=np.intp)
        for _ in range(TURNS):
            turns[going] += 1
            step = np.clip(self[going].turn(x[going], LEVELS[0]).step, -FARTHEST, FARTHEST)
            length = largest(step)
            shorter = length < shortest[going]  # else only rounding is left
            moved = going[shorter]
            x[moved] += step[shorter]
            shortest[moved] = length[shorter]
            going = moved[length[shorter] > EPSILON]
            if not going.size:
                break
        at = self.turn(x, LEVELS[1])
        # a step within rounding says nothing about the quadrature
        error = largest(np.where(np.abs(at.step) <= at.rounding, 0.0, at.step))
        e, data_loss = at.sums[:, :3], at.sums[:, LOSS]
        return Refined(turns, x, e, data_loss, largest(at.residual), error, at.rounding)

    def turn(self, x: Array, level: int) -> Turn:
        """Residuals, Gauss–Newton steps, and what rounding does to the unknowns."""
        rows, n = x.shape
        moves = np.concatenate([np.zeros((1, n)), DIFFERENCE * np.eye(n)])
        trial = (x[None] + moves[:, None]).reshape(-1, n)
        with np.errstate(all="ignore"):  # what is not finite is found in the residual
            sums, sizes = _sums(self.channel, trial, level)
            every = self[np.tile(np.arange(rows), n + 1)]
            sides = every._equations(trial, sums, sizes).reshape(3, -1, n + 1, rows)
            residual = np.moveaxis((sides[0] - sides[1]) / sides[2, :, :1], 0, -1)
            matrix = -np.moveaxis(residual[1:] - residual[0], 0, -1) / DIFFERENCE
            good = np.isfinite(matrix).all((1, 2), keepdims=True)
            U, scale, W = np.linalg.svd(np.where(good, matrix, 0.0), full_matrices=False)
            inverse = np.swapaxes(W, 1, 2) @ (np.swapaxes(U, 1, 2) / scale[..., None])
            step = (inverse @ residual[0][..., None])[..., 0]
            rounding = ROUNDING * np.abs(inverse).sum(-1)
        return Turn(sums[:rows], residual[0], step, rounding)

    def _equations(self, x: Array, sums: Array, sizes: Array) -> Array:
        """Both sides of each equation, and the size of their terms (3, equations, points).

        Each appears in its usual form and in the form for its complement; at a solution all hold.
        """
        rho, alpha, rank = self.channel.rho, self.points.alpha, self.rank
        e1, e2, e3, e0, spread, field, along, _ = sums.T
        at = spectral_arguments(self.points, sums[:, :3], rho)
        s, V = self.features.sums(at.k, at.gamma), np.exp(x[:, 0])
        shrunk = at.noise * s.D11
        surplus, deficit = np.maximum(alpha - rank, 0.0), np.maximum(rank - alpha, 0.0)
        rank_size = np.where(
            (rank == 1.0) | (rank == self.points.gamma), 0.0, rank
        )  # it is rounded

        def equation(left: Array, right: Array, size: Array | float = 0.0) -> Array:
            return np.array([left, right, np.abs(left) + np.abs(right) + size])

        found = [
            equation(alpha * e1 * V, s.D1),
            equation(alpha * spread + deficit, s.left + surplus, rank_size),
        ]
        if self.channel.overlap_unknowns == 2:
            unseen = cast("LinearChannel", self.channel).floor + rho * s.T02
            found += [
                equation(np.exp(x[:, 1]), unseen + at.noise * s.D20),
                equation(shrunk - along / e1, unseen, sizes[:, ALONG] / e1),
            ]
        else:
            Q, M = np.exp(x[:, 1]), np.sqrt(rho) * np.exp(0.5 * x[:, 1]) * np.tanh(x[:, 2])
            ra, raa = rho * at.a, rho * at.a**2
            found += [
                equation(Q, at.noise * s.D20 + raa * s.T20),
                equation(along / e1, shrunk + raa * s.T11, sizes[:, ALONG] / e1),
                equation(M, ra * s.T1),
                equation(field, rho * e3 * s.U1, sizes[:, FIELD]),
                equation(rho * Q / np.cosh(x[:, 2]) ** 2, rho * at.noise * s.D20 + ra**2 * s.W),
            ]
        if x.shape[1] > self.channel.overlap_unknowns:
            found.append(np.array([e0, 0.0 * e0, np.sqrt(e2)]))
        return np.stack(found, axis=1)


@dataclass(frozen=True)
class Turn:
    """One turn around all equations, arrays over points.

    The averages, differences of two sides relative to the size of their terms, the step that
    closes them, and how far rounding may move each unknown.
    """

    sums: Array
    residual: Array
    step: Array
    rounding: Array


E1, E2, E3, E0, SPREAD, FIELD, ALONG, LOSS, COLUMNS = range(9)
"""Averages: the channel's, E[s'], E[νf], E[(η - b)f] (for real labels -E[sh]), and the loss."""
POWERS = np.array([1.0, 2.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
"""With which power of the weight of a sample each is multiplied."""


def _sums(channel: Channel, x: Array, level: int) -> tuple[Array, Array]:
    """The averages (points, columns) over all labels, and the sums of their absolute terms."""
    found = np.zeros((2 * COLUMNS, len(x)))
    for weight, probability in zip(*channel.counts, strict=True):
        if weight == 0.0:
            found[[SPREAD, COLUMNS + SPREAD]] += probability
            continue
        wider = widened(x, weight)
        for first in range(0, len(x), BLOCK):
            rows = slice(first, first + BLOCK)
            for branch in channel.branches(wider[rows]):
                power = np.tile((weight * branch.weight) ** POWERS, 2)
                one = _on_nodes(channel, branch, level)
                found[:, rows] += probability * branch.share * power[:, None] * one
    if channel.overlap_unknowns == 2:  # real labels
        found[E3] = found[E1]
    return found[:COLUMNS].T, found[COLUMNS:].T


def _on_nodes(channel: Channel, branch: Branch, level: int) -> Array:
    """The averages of one label, and then the sums of their absolute terms (2 columns, rows)."""
    field, loss = branch.field, channel.loss
    curve = proximal_curve(loss, field, branch.breaks, level, REACH)
    row, h, xi = curve.row, curve.h, curve.xi
    density = normal_density(xi)
    mass, bend = curve.mass * density, curve.bend * density
    margin, slope, displacement, V0 = (
        a[row, None] for a in (branch.margin, branch.slope, branch.displacement, field.V0)
    )
    Z, Z1, _ = branch.law.label_law(branch.y, field.slope[row, None] * xi, V0)
    weight = mass * h
    terms = np.array(
        [
            bend * Z,
            weight * Z * h,
            weight * Z1,
            branch.y * weight * Z,
            mass * curve.slope * Z,
            weight * (slope * (xi + displacement) * Z + V0 * Z1),
            weight * Z * (margin - curve.s),
            mass * Z * loss.value(curve.s),
        ]
    )
    both = np.concatenate([terms.sum(-1), np.abs(terms).sum(-1)])
    return sum_by_row(both, row, len(field.V))
