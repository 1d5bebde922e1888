"""Solve a batch of points: a fast method for all, then robust ones for those at which it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.compiled import engine
from hiddenmanifold.errors import Status
from hiddenmanifold.numerics.newton import Solution, largest, newton, newton_step
from hiddenmanifold.numerics.special import positive_root
from hiddenmanifold.theory.points import Limit, Points
from hiddenmanifold.theory.solver.certificate import (
    HANDOVER,
    START_TOLERANCE,
    Solved,
    accept,
    certified,
)
from hiddenmanifold.theory.solver.complements import Complements, Refined
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.tangents import PARAMETERS, interpolated, tangents

# Each of these may be halved or doubled: of 4000 random points, and of 600 with n/p and d/p from
# 1e-9 to 1e9 and λ from 1e-26 on, no more are lost, the errors move by less than 1e-11, and the
# time by less than a tenth unless it is said below.
RESCUE_TOLERANCE = 1e-10
"""The residual of hard points: beside a threshold 1e-5 is reached long before the solution."""
FIRST = 1
"""Level of quadrature on which points that have a good start begin."""
FINER = 2
"""Level of quadrature for hard points; the roughest one jumps where panels come and go."""
FEW = {"numpy": 32, "compiled": 512}
"""Points that are all solved at once by each engine, unless `Effort` says otherwise.

Twice as many cost a seventh more on grids between the two sizes."""
EASY = 100.0
"""λ, in units of max(1, n/p), from which a walk in λ begins.

There the penalty dominates the curvature of the loss, and Newton's method converges from the
common start."""
TINY = 1e-300
"""Length of a path that has none."""
MODERATE = 1e4
"""Largest n/p and 1/λ at which every point can be solved without a walk."""
# Of the following, half or twice as much changes the evaluations of the 600 points by at most 3 %.
FIRST_STRIDE = 3.0
"""First step of a path, in the logarithm of a parameter; it doubles where the solves are quick."""
SHORTEST_STRIDE = 0.01
"""Step below which a path is given up: six failures in a row from the first step."""
FEW_ITERATIONS = 5
"""Iterations of a quick solve: Newton's method from a good guess, which squares its error."""
SHORTENING = 3.0
"""Divisor of a failed step: more than the 2 by which it grows, so that it is not tried again."""


def solve(problem: SaddlePoint, start: Array | None = None) -> Solved:
    """Solve a batch by Newton's method from a common start; fast, but some points may be lost.

    If `start` is given, Newton's method begins at these unknowns, which must be close.
    """
    effort = problem.effort
    if start is None:
        if len(problem.points) <= (FEW[engine()] if effort.few is None else effort.few):
            return certified(problem, _newton(problem, _first_turn(problem)))
        some = problem[:: effort.stride]
        start = _between(some, _newton(some, _first_turn(some)), problem.points)
    found = _newton(problem, start, FIRST, effort.max_iterations // 3)
    found.x += np.where((found.residual <= START_TOLERANCE)[:, None], found.step, 0.0)
    return certified(problem, found, largest(found.step) <= HANDOVER)


def _between(problem: SaddlePoint, found: Solution, points: Points) -> Array:
    """Starts of some points between solutions of others."""
    good = np.flatnonzero(found.residual <= START_TOLERANCE)
    if not good.size:
        return _first_turn(problem.at(points))
    known, x = problem[good], found.x[good]
    turn = known.turn(x, FIRST)
    x = x + newton_step(turn.matrix, turn.residual)
    along = tangents(known, turn.averages.e[:, :3], turn.matrix, PARAMETERS, turn.dy)
    return interpolated(known.points, x, along, points)


def rescue(problem: SaddlePoint) -> Solved:
    """Solve a batch of hard points on finer quadrature, by other starts and by continuation."""
    found = _newton(problem, _first_turn(problem), FINER)
    for attempt in (_from_collapsed, _with_far_intercept, _down_in_lambda):
        lost = np.flatnonzero(~(found.residual <= START_TOLERANCE))
        if not lost.size:
            break
        again = attempt(problem[lost])
        found.iterations[lost] += again.iterations
        better = again.residual < found.residual[lost]
        found.x[lost[better]] = again.x[better]
        found.residual[lost[better]] = again.residual[better]
    solved = certified(problem, found)
    moderate = (problem.points.alpha <= MODERATE) & (problem.points.lam >= 1.0 / MODERATE)
    lost = np.flatnonzero((solved.status != Status.CONVERGED) & ~moderate)
    if lost.size and problem.channel.has_branches:
        accept(solved, lost, _extreme(problem[lost]))
    return solved


def _from_collapsed(problem: SaddlePoint) -> Solution:
    """Newton from where Q (or the residual) has vanished."""
    return _newton(problem, problem.channel.collapsed(problem.points.alpha), FINER)


def _with_far_intercept(problem: SaddlePoint) -> Solution:
    """Newton with intercepts that are free to move far, in units of the deviation of predictions.

    Where features see little of the field and V is large, the deviation vanishes while the
    intercept is of order one beside the best constant.
    """
    longest = problem.channel.longest.copy()
    longest[problem.channel.overlap_unknowns :] = np.inf
    return _newton(problem, _first_turn(problem), FINER, longest=longest)


def approach(problem: SaddlePoint, tolerance: float, max_iterations: int) -> Solution:
    """Newton's method from a common start, on the roughest quadrature and only so far."""
    return _newton(problem, _first_turn(problem), 0, max_iterations, tolerance)


def _newton(
    problem: SaddlePoint,
    x: Array,
    level: int = 0,
    max_iterations: int | None = None,
    tolerance: float | None = None,
    *,
    longest: Array | None = None,
) -> Solution:
    """Newton's method on one level of quadrature, by default as far as the level is worth.

    `longest` bounds the steps of the unknowns, by default as the channel does.
    """
    if tolerance is None:
        tolerance = RESCUE_TOLERANCE if level == FINER else START_TOLERANCE
    if max_iterations is None:
        max_iterations = problem.effort.max_iterations

    def system(x: Array, index: Integers) -> tuple[Array, Array]:
        turn = problem[index].turn(x, level)
        return turn.residual, turn.matrix

    longest = problem.channel.longest if longest is None else longest
    return newton(system, x, longest, tolerance, max_iterations)


def _first_turn(problem: SaddlePoint) -> Array:
    """Start plus one plain iteration, which brings the scale of Q right when λ is large."""
    x = problem.channel.start(_first_V(problem))
    n = problem.channel.overlap_unknowns
    step = problem.turn(x).residual[:, :n]
    x[:, :n] += np.where(np.isfinite(step), step, 0.0)
    return x


def _first_V(problem: SaddlePoint) -> Array:
    """V of ridge regression on white features, from which Newton starts for every loss."""
    kappa = problem.features.variance
    lam, alpha = problem.points.lam, problem.points.alpha / problem.features.size
    with np.errstate(all="ignore"):  # ratios beyond 1e150 overflow, and are reported as such
        V = positive_root(lam, lam + (alpha - 1.0) * kappa, kappa)
        return np.where(problem.points.has(Limit.FITTED), 0.5 * kappa / lam, V)


def _down_in_lambda(problem: SaddlePoint) -> Solution:
    """Walk down in λ from a large value, at which the problem is easy."""
    points = problem.points
    goal = np.log(points.lam)
    easy = np.log(np.maximum(points.lam, EASY * np.maximum(1.0, points.alpha)))
    most = problem.effort.max_iterations

    def at(distance: Array, index: Integers, x: Array) -> Solution:
        lam = np.exp(np.maximum(goal[index], easy[index] - distance))
        stage = problem.at(points[index].standing_in(lam))
        return _newton(stage, x, FINER, most // 3)

    start = problem.at(points.standing_in(np.exp(easy)))
    found = _newton(start, _first_turn(start), FINER, 2 * most)
    longest = problem.effort.longest_walk // problem.channel.cost
    return continuation(found, easy - goal, at, longest, START_TOLERANCE)


def continuation(
    found: Solution,
    length: Array,
    at: Callable[[Array, Integers, Array], Solution],
    longest: int,
    tolerance: float,
) -> Solution:
    """Follow solutions from where they were found to a distance, extrapolating along the way.

    ``at(distance, index, x)`` solves the points `index` at a distance on their way, from guesses x;
    `longest` bounds its evaluations of the equations, and `tolerance` the residual of a solution.
    """
    done = np.zeros_like(length)
    previous, previous_step = found.x.copy(), np.ones_like(length)
    step = np.full_like(length, FIRST_STRIDE)
    alive = found.residual <= tolerance
    while (walking := np.flatnonzero(alive & (done < length))).size:
        stride = np.minimum(step[walking], length[walking] - done[walking])
        x = found.x[walking]
        guess = x + (x - previous[walking]) * (stride / previous_step[walking])[:, None]
        trial = at(done[walking] + stride, walking, guess)
        found.iterations[walking] += trial.iterations
        good = trial.residual <= tolerance
        i = walking[good]
        previous[i], previous_step[i] = found.x[i], stride[good]
        found.x[i], found.residual[i] = trial.x[good], trial.residual[good]
        done[i] = np.where(stride[good] < step[i], length[i], done[i] + stride[good])
        step[i] *= np.where(trial.iterations[good] <= FEW_ITERATIONS, 2.0, 1.0)
        step[walking[~good]] /= SHORTENING
        alive[walking] &= (step[walking] > SHORTEST_STRIDE) & (found.iterations[walking] < longest)
    found.residual[done < length] = np.inf
    return found


def _extreme(problem: SaddlePoint) -> Refined:
    """Walk from moderate n/p and λ to extreme ones, along equations that do not cancel."""
    points = problem.points
    target = Complements.of(problem)
    goal = np.log([points.alpha, points.lam])
    limit = np.log(MODERATE)
    near = np.array([np.minimum(goal[0], limit), np.maximum(goal[1], -limit)])
    length = np.abs(goal - near).max(0)

    def equations(distance: Array, index: Integers) -> Complements:
        there, left = points[index], length[index] - distance
        part = np.minimum(1.0, distance / np.maximum(length[index], TINY))
        walked = np.exp(near[:, index] + part * (goal - near)[:, index])
        # where a walk is over, or never left, values are exact: at n = rank the last bit matters
        still = (left <= 0.0) | (goal == near)[:, index]
        alpha, lam = np.where(still, [there.alpha, there.lam], walked)
        return replace(target[index], points=replace(there, alpha=alpha, lam=lam))

    def at(distance: Array, index: Integers, x: Array) -> Solution:
        found = equations(distance, index).refined(x)
        return Solution(found.x, found.residual, found.iterations, np.zeros_like(x))

    everyone = np.arange(len(length))
    start = problem.at(equations(np.zeros_like(length), everyone).points)
    found = _newton(start, _first_turn(start), FINER)
    found = continuation(found, length, at, problem.effort.longest_extreme, START_TOLERANCE)
    return target.refined(found.x)
