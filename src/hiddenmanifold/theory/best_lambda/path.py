r"""The solution as a curve in :math:`t = \log\lambda`: nodes with tangents, and cubics between.

A function of the unknowns, the objective, is thereby known along the whole curve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hiddenmanifold.arrays import Array, Integers, Rows
from hiddenmanifold.numerics.newton import largest, newton_step
from hiddenmanifold.numerics.special import hermite
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.tangents import STEP, tangents

ROUGH, FINE = 1, 2
"""Levels of quadrature of a first survey, and of nodes that compete for the least value."""
QUADRATURE = {ROUGH: 3e-6, FINE: 0.0}
"""Relative error of a function on a level."""
ENOUGH = {ROUGH: 0.03, FINE: 1e-6}
"""Last Newton step to a node, which is off by its square."""
LUCK = 0.1
"""Relative change of a function per unit of the unknowns, at least."""
FAR = 0.5
"""Distance of guess and solution from which on Newton's method is not trusted."""
BLOCK = 1024
"""Unknowns of which the objective is computed together: its integrals need memory."""
TURNS = 6
"""Newton turns to a node, at most."""


@dataclass(frozen=True)
class Nodes(Rows):
    """Solutions at some t of some points, their tangents, and the function with its doubt.

    One table has all of it, so that nodes are taken and joined at little cost: t, value, doubt,
    slope by t (NaN where it was not asked for), unknowns and tangents.
    """

    point: Integers
    table: Array

    @classmethod
    def of(
        cls, point: Integers, t: Array, value: Array, doubt: Array, *, x: Array, dx: Array
    ) -> Self:
        """Nodes without slopes."""
        unknown = np.full_like(t, np.nan)
        return cls(point, np.column_stack([t, value, doubt, unknown, x, dx]))

    @property
    def t(self) -> Array:
        """Logarithm of λ."""
        return self.table[:, 0]

    @property
    def value(self) -> Array:
        """The function at the node."""
        return self.table[:, 1]

    @property
    def doubt(self) -> Array:
        """How far it may be off."""
        return self.table[:, 2]

    @property
    def slope(self) -> Array:
        """Its derivative along the path."""
        return self.table[:, 3]

    @property
    def x(self) -> Array:
        """The unknowns."""
        return self.table[:, 4 : 2 + self.table.shape[1] // 2]

    @property
    def dx(self) -> Array:
        """Their derivatives."""
        return self.table[:, 2 + self.table.shape[1] // 2 :]


def cubic(left: Nodes, right: Nodes, t: Array) -> Array:
    """Unknowns at t (nodes, values) by the cubics through two nodes each and their tangents."""
    ends = left.t[:, None, None], right.t[:, None, None]
    values, slopes = (left.x[:, None], right.x[:, None]), (left.dx[:, None], right.dx[:, None])
    return hermite(t[..., None], ends, values, slopes)


@dataclass(frozen=True)
class Path:
    """The solutions of a batch of points, and the `objective`, a function of the unknowns."""

    problem: SaddlePoint
    objective: Callable[[Array], Array]

    def at(self, point: Integers, t: Array) -> SaddlePoint:
        """The equations of some points at other λ."""
        points = replace(self.problem.points[point], lam=np.exp(t))
        return replace(self.problem, points=points)

    def turn(self, point: Integers, t: Array, x: Array, level: int) -> tuple[Array, Array, Array]:
        """Newton step from x, its length or the residual if that is longer, and the tangent."""
        problem = self.at(point, t)
        turn = problem.turn(x, slice(None), level)
        step = newton_step(turn.matrix, turn.residual)
        along = tangents(problem, turn.averages.e[:, :3], turn.matrix, ("regularisation",), turn.dy)
        size = np.maximum(largest(step * turn.weight), largest(turn.residual))
        return step, size, along["regularisation"]

    def valued(self, x: Array) -> Array:
        """The objective of unknowns (..., unknowns); inf where it is no number."""
        flat, value = x.reshape(-1, x.shape[-1]), np.empty(x.shape[:-1])
        with np.errstate(all="ignore"):
            for i in range(0, len(flat), BLOCK):
                value.flat[i : i + BLOCK] = self.objective(flat[i : i + BLOCK])
        value[~np.isfinite(value)] = np.inf
        return value

    def solved(self, point: Integers, t: Array, x: Array, level: int) -> tuple[Nodes, Array]:
        """Nodes by Newton's method from guesses, and the function at those.

        The doubt is infinite where that fails.
        """
        last, step, dx, size = x.copy(), np.zeros_like(x), np.zeros_like(x), np.zeros(len(t))
        going, most = np.arange(len(t)), np.full(len(t), FAR)
        for _ in range(TURNS):
            if not going.size:
                break
            last[going] += step[going]
            newton = self.turn(point[going], t[going], last[going], level)
            step[going], size[going], dx[going] = newton
            on = (newton[1] > ENOUGH[level]) & (newton[1] <= most[going])
            going = going[on]
            most[going] = 0.5 * size[going]
        value, before, guessed = self.valued(np.array([last + step, last, x]))
        doubt = np.where(size <= ENOUGH[level], doubted(value, before, size, level), np.inf)
        return Nodes.of(point, t, value, doubt, x=last + step, dx=dx), guessed

    def tight(self, nodes: Nodes) -> Nodes:
        """The same nodes to all digits, with slopes."""
        return self.sloped(self.solved(nodes.point, nodes.t, nodes.x, FINE)[0])

    def sloped(self, nodes: Nodes) -> Nodes:
        """The same nodes with slopes."""
        length = STEP / np.maximum(1.0, largest(nodes.dx))
        shift = length[:, None] * nodes.dx
        ahead, behind = self.valued(np.array([nodes.x + shift, nodes.x - shift]))
        with np.errstate(invalid="ignore"):
            nodes.slope[:] = (ahead - behind) / (2.0 * length)
        return nodes


def doubted(value: Array, before: Array, size: Array, level: int) -> Array:
    """How far values may be off after a last Newton turn of given size: by its square.

    That the turn itself hardly changed a value may be luck.
    """
    with np.errstate(invalid="ignore"):
        change = np.maximum(np.abs(value - before), LUCK * size * np.abs(value))
        doubt: Array = 4.0 * size * change + QUADRATURE[level] * np.abs(value)
    return doubt
