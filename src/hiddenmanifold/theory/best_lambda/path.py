r"""Solutions as curves in :math:`t = \log\lambda`, and an error along them.

A node is a solution with its tangent. Between two nodes the cubic through both and their tangents
is close to the solution, so that a node there takes one or two steps of Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.errors import Status
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.numerics.newton import largest, newton
from hiddenmanifold.numerics.special import hermite
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import Request
from hiddenmanifold.theory.scores.distribution import Observed
from hiddenmanifold.theory.scores.errors_of_labels import test_errors
from hiddenmanifold.theory.solver.certificate import HANDOVER
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.strategy import approach, rescue
from hiddenmanifold.theory.solver.tangents import slope_along, tangents

LEVEL = 2
"""Level of quadrature for nodes, on which errors are exact to ten digits; the final solve at the
best λ certifies them."""
CLOSE = 1e-6
"""Residual of a solution, which one more step of `HANDOVER` at most makes right to ten digits.

Ten times as much saves no time, since minima that are less exact take longer to refine."""
TURNS = 10
"""Most evaluations of the equations per node; from the cubic between nodes two suffice."""
NEAR, PATIENCE = 0.01, 12
"""Residual at which Newton's method from afar is near a node, and its evaluations at most.

Ten times the one or twice the other change the time of a search by less than a tenth: nodes that
are not reached start from the one above."""
EDGE = 1e-17
"""The λ, in units of the variance of features, below which rounding may spoil plain solutions.

There each is left to the solver of hard points, which takes some hundred times as long."""
BY = "regularisation"
"""The parameter along which solutions are followed."""


@dataclass(frozen=True)
class Nodes(Samples):
    """Samples of the error with the unknowns and their derivatives by t, NaN if not known."""

    x: Array
    dx: Array


@dataclass(frozen=True)
class Path:
    """The error or observable named `target` of a model as a function of λ, at given ratios."""

    model: Model
    points: Points
    target: str
    observables: Mapping[str, Observed] = field(default_factory=dict)

    @cached_property
    def equations(self) -> SaddlePoint:
        """The equations of all points."""
        return SaddlePoint.of(self.model, self.points)

    @property
    def unit(self) -> float:
        """The variance of features, in units of which λ is large or small."""
        return self.model.features.variance

    def problem(self, point: Integers, t: Array) -> SaddlePoint:
        """The equations of some points at some λ."""
        return self.equations.at(self.points[point].at(np.exp(t)))

    def error(self, x: Array) -> Columns:
        """The error as a function of the unknowns."""
        if self.observables:
            return Request(observables=self.observables).observed(self.equations.channel, x)
        return {self.target: test_errors(self.equations.channel, x)[self.target]}

    def nodes(self, point: Integers, t: Array) -> Nodes:
        """Nodes in order, by Newton's method from a common start, or else from the node above."""
        x, plain = np.full((len(t), self.equations.channel.unknowns), np.nan), self._plain(t)
        if plain.any():
            x[plain] = approach(self.problem(point[plain], t[plain]), NEAR, PATIENCE).x
        nodes = self._found(self._followed, _unsolved(point, t, x), plain).ordered()
        lost = np.isnan(nodes.value)
        known = np.append(np.flatnonzero(~lost), 0)
        above = nodes[known[np.searchsorted(known[:-1], np.flatnonzero(lost))]]
        guess = above.x + above.dx * (nodes.t[lost] - above.t)[:, None]
        guess[above.point != nodes.point[lost]] = np.nan
        nodes[lost] = self.solved(nodes.point[lost], nodes.t[lost], guess)
        return nodes

    def between(self, left: Nodes, right: Nodes, t: Array) -> Nodes:
        """Nodes at t, from the cubics through pairs of others."""
        return self.solved(left.point, t, _cubic(left, right, t[:, None])[:, 0])

    def middle(self, left: Nodes, right: Nodes) -> tuple[Nodes, Array]:
        """Nodes in the middle of pairs, and how far the unknowns are from those on the cubics."""
        t = 0.5 * (left.t + right.t)
        guess = _cubic(left, right, t[:, None])[:, 0]
        found = self.solved(left.point, t, guess)
        return found, largest(found.x - guess)

    def interpolated(self, left: Nodes, right: Nodes, t: Array) -> Array:
        """The error on the cubics through pairs of nodes, at several t of each (pairs, values)."""
        x = _cubic(left, right, t).reshape(-1, self.equations.channel.unknowns)
        with np.errstate(all="ignore"):
            return self.error(x)[self.target].reshape(t.shape) if x.size else np.empty(t.shape)

    def solved(self, point: Integers, t: Array, x: Array) -> Nodes:
        """Nodes by Newton's method from guesses; where it fails, by the solver of hard points."""
        plain = np.isfinite(x).all(1) & self._plain(t)
        nodes = self._found(self._followed, _unsolved(point, t, x), plain)
        return self._found(self._rescued, nodes, np.isnan(nodes.value))

    def _plain(self, t: Array) -> Booleans:
        """Where λ is large enough for plain Newton solves."""
        return np.asarray(t >= np.log(EDGE * self.unit))

    def _found(self, solve: Callable[[Nodes], Nodes], nodes: Nodes, some: Booleans) -> Nodes:
        """The nodes, some of them solved, as many at a time as memory allows."""
        index, together = np.flatnonzero(some), self.equations.channel.batch
        for start in range(0, len(index), together):
            block = index[start : start + together]
            nodes[block] = self._valued(solve(nodes[block]))
        return nodes

    def _followed(self, nodes: Nodes) -> Nodes:
        """Unknowns and tangents by Newton's method; NaN where it does not converge at once."""
        problem, weight = self.problem(nodes.point, nodes.t), np.ones_like(nodes.x)

        def system(x: Array, index: Integers) -> tuple[Array, Array]:
            part = problem[index]
            turn = part.turn(x, LEVEL)
            along = tangents(part, turn.averages.e[:, :3], turn.matrix, (BY,), turn.dy)
            nodes.dx[index], weight[index] = along[BY], turn.weight
            return turn.residual, turn.matrix

        found = newton(system, nodes.x, self.equations.channel.longest, CLOSE, TURNS)
        good = (found.residual <= CLOSE) & (largest(found.step * weight) <= HANDOVER)
        return replace(nodes, x=np.where(good[:, None], found.x + found.step, np.nan))

    def _rescued(self, nodes: Nodes) -> Nodes:
        """Certified unknowns and tangents; NaN where no solution was found."""
        problem = self.problem(nodes.point, nodes.t)
        found = rescue(problem)
        good = found.status == Status.CONVERGED
        along = tangents(problem, found.e, found.matrix, (BY,))[BY]
        return replace(nodes, x=np.where(good[:, None], found.x, np.nan), dx=along)

    def _valued(self, nodes: Nodes) -> Nodes:
        """The same nodes with the error and its slope."""
        with np.errstate(all="ignore"):
            value = self.error(nodes.x)[self.target]
            slope = slope_along(self.error, nodes.x, nodes.dx)[self.target]
        value[~np.isfinite(value + nodes.x.sum(1))] = np.nan
        return replace(nodes, value=value, slope=slope)


def _cubic(left: Nodes, right: Nodes, t: Array) -> Array:
    """Unknowns at t (pairs, values) on the cubics through pairs of nodes and their tangents."""
    ends = left.t[:, None, None], right.t[:, None, None]
    values, slopes = (left.x[:, None], right.x[:, None]), (left.dx[:, None], right.dx[:, None])
    return hermite(t[..., None], ends, values, slopes)


def _unsolved(point: Integers, t: Array, x: Array) -> Nodes:
    """Nodes with a guess of their unknowns, which stays as it is when they are solved."""
    nothing = np.full_like(t, np.nan)
    return Nodes(point, t, nothing, nothing.copy(), x.copy(), np.full_like(x, np.nan))
