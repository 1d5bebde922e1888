r"""The solution as a curve in :math:`t = \log\lambda`: nodes with tangents, and cubics between.

A function of the unknowns, the objective, is thereby known along the whole curve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.numerics.newton import largest, newton_step
from hiddenmanifold.theory.saddle_point import Outcome, SaddlePoint
from hiddenmanifold.theory.sensitivity import STEP, tangents

FINE = 2
"""Level of quadrature of nodes that compete for the least value."""
AT_REST = 1e-12
"""Deviation of the predictions below which the intercept is that of a constant prediction."""
FAR = 0.5
"""Distance of guess and solution from which on Newton's method is not trusted."""
TIGHT = 1e-5
"""Last Newton step to a node that competes: it is off by its square."""
BLOCK = 1024
"""Unknowns of which the objective is computed together: its integrals need memory."""
TURNS = 6
"""Newton turns to a node that competes, at most."""


@dataclass(frozen=True)
class Nodes:
    """Solutions at some t of some points, their tangents, and the function with its doubt."""

    point: Integers
    t: Array
    x: Array
    dx: Array
    value: Array
    doubt: Array
    slope: Array
    """Of the function by t; NaN where it was not asked for."""

    def __getitem__(self, some: Integers | Booleans) -> Self:
        return replace(self, **{name: values[some] for name, values in vars(self).items()})

    def __setitem__(self, some: Integers | Booleans, other: Nodes) -> None:
        for name, values in vars(self).items():
            values[some] = getattr(other, name)

    def __add__(self, other: Nodes) -> Self:
        pairs = {n: np.concatenate([v, getattr(other, n)]) for n, v in vars(self).items()}
        return replace(self, **pairs)


def cubic(left: Nodes, right: Nodes, t: Array) -> Array:
    """Unknowns at t (nodes, values) by the cubics through two nodes each and their tangents."""
    a, b, da, db = (v[:, None] for v in (left.x, right.x, left.dx, right.dx))
    h = (right.t - left.t)[:, None, None]
    u, v = (t - left.t[:, None])[..., None], (t - right.t[:, None])[..., None]
    mean = (b - a) / h
    unknowns: Array = a + u * (da + u * ((mean - da) / h + (da + db - 2.0 * mean) / h**2 * v))
    return unknowns


@dataclass(frozen=True)
class Path:
    """The solutions of a batch of points, and the `objective`, a function of the unknowns."""

    problem: SaddlePoint
    objective: Callable[[Array], Array]

    def start(self, outcome: Outcome) -> Nodes:
        """The nodes of solved points at their own λ."""
        along = tangents(self.problem, outcome.e, outcome.matrix, ("regularisation",))
        x, dx, n = outcome.x.copy(), along["regularisation"], self.problem.channel.overlap_unknowns
        # where predictions do not vary, the intercept in units of their deviation is rounding
        rests = x[:, 1] < 2.0 * np.log(AT_REST)
        x[rests, n:], dx[rests, n:] = 0.0, 0.0
        t = np.log(self.problem.points.lam)
        value, certain = self.valued(x), np.zeros_like(t)
        return self.sloped(Nodes(np.arange(len(t)), t, x, dx, value, certain, t))

    def turn(self, point: Integers, t: Array, x: Array, level: int) -> tuple[Array, Array, Array]:
        """Newton step from x, its length or the residual if that is longer, and the tangent."""
        problem = replace(self.problem, points=self.problem.points[point].at(np.exp(t)))
        turn = problem.close(x, slice(None), level)
        step = newton_step(turn.matrix, turn.residual)
        along = tangents(problem, turn.hats.e[:, :3], turn.matrix, ("regularisation",), turn.dy)
        size = np.maximum(largest(step * turn.weight), largest(turn.residual))
        return step, size, along["regularisation"]

    def valued(self, x: Array) -> Array:
        """The objective of unknowns (..., unknowns); inf where it is no number."""
        flat, value = x.reshape(-1, x.shape[-1]), np.empty(x.shape[:-1])
        with np.errstate(all="ignore"):
            for i in range(0, len(flat), BLOCK):
                value.flat[i : i + BLOCK] = self.objective(flat[i : i + BLOCK])
        return np.where(np.isfinite(value), value, np.inf)

    def reached(
        self, point: Integers, t: Array, x: Array, newton: tuple[Array, Array, Array]
    ) -> Nodes:
        """The nodes that a Newton turn from x leads to; they are off by its square."""
        step, size, dx = newton
        value = self.valued(x + step)
        doubt = 4.0 * size * np.abs(value - self.valued(x))
        return Nodes(point, t, x + step, dx, value, doubt, np.full_like(t, np.nan))

    def sloped(self, nodes: Nodes) -> Nodes:
        """The same nodes with slopes."""
        length = STEP / np.maximum(1.0, largest(nodes.dx))
        ends = (self.valued(nodes.x + side * length[:, None] * nodes.dx) for side in (1, -1))
        with np.errstate(invalid="ignore"):
            return replace(nodes, slope=np.subtract(*ends) / (2.0 * length))

    def tight(self, point: Integers, t: Array, x: Array) -> Nodes:
        """Nodes on the fine level, from guesses; the doubt is infinite where that fails."""
        zero = np.zeros(len(t))
        nodes = Nodes(point, t, x.copy(), np.zeros_like(x), zero + np.inf, zero + np.inf, zero)
        going = np.arange(len(t))
        for _ in range(TURNS):
            if not going.size:
                break
            at = nodes[going]
            newton = self.turn(at.point, at.t, at.x, FINE)
            nodes.x[going] += newton[0]
            done, failed = newton[1] <= TIGHT, newton[1] > FAR
            if done.any():
                part = newton[0][done], newton[1][done], newton[2][done]
                nodes[going[done]] = self.reached(at.point[done], at.t[done], at.x[done], part)
            going = going[~done & ~failed]
        return self.sloped(nodes)
