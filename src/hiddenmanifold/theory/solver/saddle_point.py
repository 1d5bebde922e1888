"""Solve the saddle-point equations for a batch of points, and certify every solution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.compiled import engine
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.numerics.newton import (
    EPSILON,
    Solution,
    largest,
    magnified,
    newton,
    newton_step,
)
from hiddenmanifold.numerics.special import positive_root
from hiddenmanifold.theory.features_side import Overlaps, overlaps, spectral_arguments
from hiddenmanifold.theory.labels_side.channel import COLLAPSED, Channel, ChannelAverages
from hiddenmanifold.theory.labels_side.proximal_curve import RULES
from hiddenmanifold.theory.points import Limit, Points
from hiddenmanifold.theory.solver.certificate import (
    ACCURATE,
    CONDITIONED,
    HANDOVER,
    TOLERANCE,
    Certificate,
    polish,
)
from hiddenmanifold.theory.solver.complements import Complements, Refined
from hiddenmanifold.theory.solver.continuation import followed
from hiddenmanifold.theory.solver.starts import interpolated
from hiddenmanifold.theory.solver.tangents import PARAMETERS, tangents

ROUNDING = 5e-16
"""Mean of h, relative to its typical size, that is none."""
START_TOLERANCE = 1e-5
"""Residual at which the roughest quadrature hands over to the finer ones."""
RESCUE_TOLERANCE = 1e-10
"""The same for hard points: beside a threshold 1e-5 is reached long before the solution."""
FIRST = 1
"""Level of quadrature on which points that have a good start begin."""
FINER = 2
"""Level of quadrature for hard points; the roughest one jumps where panels come and go."""
STRIDE = 16
"""Every how many points of a batch one is solved first, to start the others from."""
FEW = {"numpy": 2 * STRIDE, "compiled": 32 * STRIDE}
"""Points that are all solved at once: another round of calls would cost more than it spares."""
MAX_ITERATIONS = 30
"""Evaluations of the equations in one Newton solve."""
NEARBY = MAX_ITERATIONS // 3
"""The same if the start is known to be close."""
LONGEST_WALK = 2000
"""Evaluations of the equations after which the walk of a point is given up."""
LONGEST_EXTREME = 600
"""The same for a walk without cancellation, each of whose steps costs some ten times as much."""
TINY = 1e-300
"""Length of a path that has none."""
MODERATE = 1e4
"""Largest n/p and 1/λ at which every point can be solved without a walk."""
ROUNDED = 4.0
"""Rounding of the equations, in units of the machine's, beside that of the unknowns themselves.

The logarithms of the overlaps follow those of the channel averages with slopes of at most 4."""
MAGNIFIED = 1e-10
"""Estimated effect of rounding from which on a point is solved without cancellation."""


@dataclass(frozen=True)
class SaddlePoint:
    """The equations of a batch of points: `channel` and `features` close on each other."""

    channel: Channel
    features: Features
    points: Points

    def overlaps(self, e: Array, index: Integers | slice = slice(None)) -> Overlaps:
        """The overlaps that follow from channel averages of the points `index`."""
        return overlaps(
            self.features, spectral_arguments(self.points[index], e, self.channel.teacher.rho)
        )

    def turn(
        self, x: Array, index: Integers | slice, level: int = 0, with_loss: bool = False
    ) -> Residual:
        """One turn around the equations from the unknowns `x` of the points `index`."""
        with np.errstate(all="ignore"):  # what is not finite is found in the residual
            averages = self.channel.averages(x, level, with_loss)
            found = self.overlaps(averages.e, index)
            y, dy = self.channel.coordinates(found)
            n = y.shape[1]
            residual = y - x[:, :n]
            matrix = np.eye(n, x.shape[1]) - dy @ averages.de[:, :3]
            weight = np.ones_like(x)
            if x.shape[1] > n:  # the intercept: e0 = 0, in units of the typical h
                scale = np.sqrt(averages.e[:, 1, None])
                tilt = averages.e[:, 3:] / scale
                tilt[np.abs(tilt) <= ROUNDING] = 0.0  # or a tiny sqrt(Q) would magnify it
                residual = np.hstack([residual, tilt])
                matrix = np.concatenate([matrix, -averages.de[:, 3:] / scale[..., None]], axis=1)
                weight[:, n:] = np.minimum(1.0, np.abs(matrix[:, n:, n]))
        return Residual(residual, matrix, weight, averages, dy)


@dataclass(frozen=True)
class Residual:
    """Residual G(x) - x of the undamped map, matrix I - dG/dx, and what they were made of.

    ``weight`` says how much an error of each unknown matters: that of an intercept measured in
    units of a tiny sqrt(Q) counts by what it does to its equation. ``dy`` is the derivative of the
    coordinates by the channel averages.
    """

    residual: Array
    matrix: Array
    weight: Array
    averages: ChannelAverages
    dy: Array


@dataclass
class Outcome(Certificate):
    """Solved points: unknowns, Newton's matrix and the channel averages at the solution.

    ``slope_error`` is the relative error that rounding causes in solutions of Newton's matrix.
    """

    x: Array
    matrix: Array
    slope_error: Array
    e: Array
    data_loss: Array


def solve(problem: SaddlePoint, start: Array | None = None) -> Outcome:
    """Solve a batch by Newton's method from a common start; fast, but some points may be lost.

    Or from unknowns `start` that are known to be close.
    """
    points = len(problem.points)
    if start is None:
        some = np.arange(0, points, STRIDE if points > FEW[engine()] else 1)
        part = replace(problem, points=problem.points[some])
        found = _newton(part, _first_turn(part))
        if len(some) == points:
            return _certified(problem, found)
        start = _between(part, found, problem.points)
    return _nearby(problem, start)


def _between(problem: SaddlePoint, found: Solution, points: Points) -> Array:
    """Starts of some points between solutions of others."""
    good = np.flatnonzero(found.residual <= START_TOLERANCE)
    if not good.size:
        return _first_turn(replace(problem, points=points))
    known, x = replace(problem, points=problem.points[good]), found.x[good]
    turn = known.turn(x, slice(None), FIRST)
    x = x + newton_step(turn.matrix, turn.residual)
    along = tangents(known, turn.averages.e[:, :3], turn.matrix, PARAMETERS, turn.dy)
    return interpolated(known.points, x, along, points)


def _nearby(problem: SaddlePoint, start: Array) -> Outcome:
    """Solve a batch from unknowns that are known to be close."""
    found = _newton(problem, start, FIRST, NEARBY)
    found.x += np.where((found.residual <= START_TOLERANCE)[:, None], found.step, 0.0)
    return _certified(problem, found, largest(found.step) <= HANDOVER)


def rescue(problem: SaddlePoint) -> Outcome:
    """Solve a batch of hard points on finer quadrature, by other starts and by continuation."""
    found = _newton(problem, _first_turn(problem), FINER)
    for attempt in (_from_collapsed, _continuation):
        lost = np.flatnonzero(~(found.residual <= START_TOLERANCE))
        if not lost.size:
            break
        again = attempt(replace(problem, points=problem.points[lost]))
        found.iterations[lost] += again.iterations
        better = again.residual < found.residual[lost]
        found.x[lost[better]] = again.x[better]
        found.residual[lost[better]] = again.residual[better]
    outcome = _certified(problem, found)
    moderate = (problem.points.alpha <= MODERATE) & (problem.points.lam >= 1.0 / MODERATE)
    lost = np.flatnonzero((outcome.status != Status.CONVERGED) & ~moderate)
    if lost.size:
        _accept(outcome, lost, _extreme(replace(problem, points=problem.points[lost])))
    return outcome


def _from_collapsed(problem: SaddlePoint) -> Solution:
    """Newton from where Q (or the residual) has vanished."""
    return _newton(problem, problem.channel.collapsed(problem.points.alpha), FINER)


def approach(problem: SaddlePoint, tolerance: float, max_iterations: int) -> Solution:
    """Newton's method from a common start, on the roughest quadrature and only so far."""
    return _newton(problem, _first_turn(problem), 0, max_iterations, tolerance)


def _newton(
    problem: SaddlePoint,
    x: Array,
    level: int = 0,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float | None = None,
) -> Solution:
    """Newton's method on one level of quadrature."""
    if tolerance is None:
        tolerance = RESCUE_TOLERANCE if level == FINER else START_TOLERANCE

    def system(x: Array, index: Integers) -> tuple[Array, Array]:
        turn = problem.turn(x, index, level)
        return turn.residual, turn.matrix

    return newton(system, x, problem.channel.longest, tolerance, max_iterations)


def _first_turn(problem: SaddlePoint) -> Array:
    """Start plus one plain iteration, which brings the scale of Q right when λ is large."""
    x = problem.channel.start(_first_V(problem))
    n = problem.channel.overlap_unknowns
    step = problem.turn(x, slice(None)).residual[:, :n]
    x[:, :n] += np.where(np.isfinite(step), step, 0.0)
    return x


def _first_V(problem: SaddlePoint) -> Array:
    """V of ridge regression on white features, from which Newton starts for every loss."""
    kappa = problem.features.variance
    lam, alpha = problem.points.lam, problem.points.alpha
    with np.errstate(all="ignore"):  # ratios beyond 1e150 overflow, and are reported as such
        V = positive_root(lam, lam + (alpha - 1.0) * kappa, kappa)
        return np.where(problem.points.has(Limit.FITTED), 0.5 * kappa / lam, V)


def _continuation(problem: SaddlePoint) -> Solution:
    """Walk down in λ from where the problem is easy."""
    points = problem.points
    goal = np.log(points.lam)
    easy = np.log(np.maximum(points.lam, 100.0 * np.maximum(1.0, points.alpha)))

    def at(distance: Array, index: Integers, x: Array) -> Solution:
        lam = np.exp(np.maximum(goal[index], easy[index] - distance))
        stage = replace(problem, points=points[index].standing_in(lam))
        return _newton(stage, x, FINER, MAX_ITERATIONS // 3)

    start = replace(problem, points=points.standing_in(np.exp(easy)))
    found = _newton(start, _first_turn(start), FINER, 2 * MAX_ITERATIONS)
    longest = LONGEST_WALK >> problem.channel.spared
    return followed(found, easy - goal, at, longest, START_TOLERANCE)


def _extreme(problem: SaddlePoint) -> Refined:
    """Walk from moderate n/p and λ to extreme ones, along equations that do not cancel."""
    points = problem.points
    target = Complements.of(problem.channel, problem.features, points)
    goal = np.log([points.alpha, points.lam])
    limit = np.log(MODERATE)
    near = np.array([np.minimum(goal[0], limit), np.maximum(goal[1], -limit)])
    length = np.abs(goal - near).max(0)

    def equations(distance: Array, index: Integers) -> Complements:
        there, left = points[index], length[index] - distance
        part = np.minimum(1.0, distance / np.maximum(length[index], TINY))
        walked = np.exp(near[:, index] + part * (goal - near)[:, index])
        # what has arrived, or never left, is exact: at n = rank all hangs on the last bit of n/p
        still = (left <= 0.0) | (goal == near)[:, index]
        alpha, lam = np.where(still, [there.alpha, there.lam], walked)
        return replace(target[index], points=replace(there, alpha=alpha, lam=lam))

    def at(distance: Array, index: Integers, x: Array) -> Solution:
        found = equations(distance, index).refined(x)
        return Solution(found.x, found.residual, found.iterations, np.zeros_like(x))

    everyone = np.arange(len(length))
    start = replace(problem, points=equations(np.zeros_like(length), everyone).points)
    found = _newton(start, _first_turn(start), FINER)
    found = followed(found, length, at, LONGEST_EXTREME, START_TOLERANCE)
    return target.refined(found.x)


def _certified(problem: SaddlePoint, found: Solution, settled: Booleans | None = None) -> Outcome:
    """Climb to finer quadrature until a finer one no longer moves the solution.

    Some may have `settled` on the first of the finer levels.
    """
    points = len(found.x)
    outcome = Outcome(
        x=found.x,
        status=np.where(np.isfinite(found.residual), Status.MAX_ITERATIONS, Status.NON_FINITE),
        residual=found.residual,
        quadrature_error=np.full(points, np.inf),
        conditioning_error=np.full(points, np.inf),
        iterations=found.iterations,
        slope_error=np.full(points, np.inf),
        matrix=np.full((points, found.x.shape[1], found.x.shape[1]), np.nan),
        e=np.full((points, 3), np.nan),
        data_loss=np.full(points, np.nan),
    )

    expected = np.full((points, 3), np.nan)

    def turn(index: Integers, level: int) -> tuple[Array, Array, Booleans]:
        at = problem.turn(outcome.x[index], index, level, with_loss=level > 1)
        step = newton_step(at.matrix, at.residual)
        error = largest(step * at.weight)
        accurate = error <= ACCURATE
        moved = np.where(accurate[:, None] | ~np.isfinite(step), 0.0, step)
        outcome.x[index] += moved
        missed = np.abs(at.averages.norm - 1.0)
        if problem.channel.overlap_unknowns == 2:
            # τ² may not feel an error of the averages that Q and M are made of
            e = at.averages.e[:, :3]
            with np.errstate(all="ignore"):
                change = np.abs(expected[index] / e - 1.0).max(1)
            missed = np.fmax(missed, change)
            expected[index] = e + (at.averages.de[:, :3] @ moved[..., None])[..., 0]
        outcome.residual[index], outcome.status[index] = largest(at.residual), Status.QUADRATURE
        outcome.matrix[index], outcome.e[index] = at.matrix, at.averages.e[:, :3]
        outcome.data_loss[index] = at.averages.data_loss
        return error, missed, accurate

    good = outcome.residual <= START_TOLERANCE
    above = np.zeros_like(good) if settled is None else good & settled
    finest = max(3, len(RULES) - 1 - problem.channel.spared)
    polish(outcome, np.flatnonzero(good & ~above), turn, finest, np.flatnonzero(above))
    _condition(problem, outcome)
    return outcome


def _condition(problem: SaddlePoint, outcome: Outcome) -> None:
    """Estimate what rounding does to solutions; where it matters, solve without cancellation."""
    solved = np.flatnonzero(outcome.residual <= START_TOLERANCE)
    x, matrix, n = outcome.x[solved], outcome.matrix[solved], problem.channel.overlap_unknowns
    weight, noise = np.ones_like(x), EPSILON * (np.abs(x) + ROUNDED)
    weight[:, n:] = np.minimum(1.0, np.abs(np.diagonal(matrix, axis1=1, axis2=2)[:, n:]))
    noise[:, n:] *= np.minimum(1.0, np.exp(0.5 * x[:, 1:2]))  # in units of a tiny sqrt(Q)
    error = largest(weight * magnified(matrix, noise))
    outcome.conditioning_error[solved] = outcome.slope_error[solved] = error
    again = solved[(error > MAGNIFIED) & (x[:, 1] > np.log(COLLAPSED) / 2)]
    if again.size:
        equations = Complements.of(problem.channel, problem.features, problem.points[again])
        _accept(outcome, again, equations.refined(outcome.x[again]))
    ill = (outcome.status == Status.CONVERGED) & ~(outcome.conditioning_error <= CONDITIONED)
    outcome.status[ill] = Status.ILL_CONDITIONED


def _accept(outcome: Outcome, index: Integers, known: Refined) -> None:
    """Take over solutions without cancellation that are better than those found before."""
    error = largest(known.rounding)
    right = np.maximum(known.residual, known.quadrature_error) <= TOLERANCE
    right &= (error < outcome.conditioning_error[index]) & (error <= CONDITIONED)
    outcome.iterations[index] += known.iterations
    index = index[right]
    outcome.status[index] = Status.CONVERGED
    outcome.conditioning_error[index] = error[right]
    for name in ("x", "e", "data_loss", "residual", "quadrature_error"):
        getattr(outcome, name)[index] = getattr(known, name)[right]
