"""Status and error estimates of each solution, and the value that a solve returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.errors import CERTIFICATES, Status
from hiddenmanifold.numerics.newton import EPSILON, Solution, largest, magnified, newton_step
from hiddenmanifold.theory.labels_side.channel import COLLAPSED
from hiddenmanifold.theory.labels_side.proximal_curve import RULES
from hiddenmanifold.theory.solver.complements import Complements, Refined
from hiddenmanifold.theory.solver.saddle_point import ROUNDING, SaddlePoint
from hiddenmanifold.theory.solver.settings import Tolerances

HANDOVER = 1e-5
"""Newton step after which the first finer quadrature hands over to the next.

Newton's method squares its error, so that the next level takes one turn to judge the solution and
hardly ever another; half or twice as much changes the number of turns by less than 1 %."""
POLISHING = 5
"""Newton turns on each of the finer levels, at most: two are usual, more mean ill conditioning."""
START_TOLERANCE = 1e-5
"""Residual of a rough solution from which finer quadrature takes over.

It is about the error of the roughest quadrature, which more turns on that would not reduce: half or
twice as much changes the number of turns by less than one in a hundred."""
ROUNDED = 4.0
"""Rounding of the equations, in units of the machine's, beside that of the unknowns themselves.

The logarithms of the overlaps follow those of the channel averages with slopes of at most 4."""
MAGNIFIED = 1e-10
"""Estimated effect of rounding from which on a point is solved without cancellation.

It is far below what is tolerated, so that few points are solved twice and none loses a digit that
it could have: half or twice as much moves errors by less than 1e-11."""


@dataclass
class Certificate:
    """How the solve of each point ended, and how well: arrays (points,).

    ``quadrature_error`` estimates the relative error of the unknowns, by the Newton step that a
    finer quadrature still asks for, and is no smaller than the probability that its nodes miss.
    ``conditioning_error`` estimates the one that rounding causes, magnified by the inverse of
    Newton's matrix.
    """

    status: Integers
    residual: Array
    quadrature_error: Array
    conditioning_error: Array
    iterations: Integers

    @property
    def columns(self) -> Columns:
        """The same as named results."""
        found: Columns = {name: getattr(self, name) for name in CERTIFICATES}
        return {**found, "status": self.status.astype(np.int8)}


def stacked(points: Sequence[Mapping[str, float]]) -> Columns:
    """The certificates of single points as named results."""
    columns: Columns = {name: np.array([point[name] for point in points]) for name in points[0]}
    return {**columns, "status": columns["status"].astype(np.int8)}


def polish(
    found: Certificate,
    index: Integers,
    turn: Callable[[Integers, int], tuple[Array, Array, Booleans]],
    tolerances: Tolerances,
    *,
    finest: int = len(RULES) - 1,
    settled: Integers | None = None,
) -> None:
    """Climb to finer quadrature until a finer one no longer moves the solutions.

    ``turn(index, level)`` takes a Newton step, and records residuals and the status of points that
    are not certified. It returns the error that the step corrects (points where it is infinite are
    lost), the probability that the nodes miss, and whether the error is as small as it can be.
    Points that have `settled` on the first level begin above it.
    """
    above = [] if settled is None else [settled]
    for level in range(1, finest + 1):
        # the first turn on a level judges the solution of the level before; the others polish
        waiting = index
        for turns in range(POLISHING):
            if not waiting.size:
                break
            error, missed, accurate = turn(waiting, level)
            if turns == 0:
                found.quadrature_error[waiting] = np.maximum(error, missed)
            found.iterations[waiting] += 1
            within = found.quadrature_error[waiting] <= tolerances.quadrature
            within &= found.residual[waiting] <= tolerances.residual
            last = level == finest  # conditioning may forbid more
            certified = (accurate | last) & within & (level > 1)
            found.status[waiting[certified]] = Status.CONVERGED
            # Newton squares its error: on the way up the next turn can be left to the next level
            enough = accurate if level > 1 else error <= HANDOVER
            above.append(waiting[enough & ~certified])
            waiting = waiting[~enough & np.isfinite(error)]
        index, above = np.concatenate([waiting, *above]), []


@dataclass
class Solved(Certificate):
    """The solution of a problem: unknowns, channel averages and Newton's matrix at each point.

    ``e`` (points, 3) has the averages e1, e2, e3, ``data_loss`` the mean loss of training samples.
    ``slope_error`` is the relative error that rounding causes in solutions of Newton's matrix.
    """

    problem: SaddlePoint
    x: Array
    matrix: Array
    slope_error: Array
    e: Array
    data_loss: Array


def certified(problem: SaddlePoint, found: Solution, settled: Booleans | None = None) -> Solved:
    """Climb to finer quadrature until a finer one no longer moves the solution.

    Some may have `settled` on the first of the finer levels.
    """
    points = len(found.x)
    solved = Solved(
        problem=problem,
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
        at = problem[index].turn(solved.x[index], level, with_loss=level > 1)
        step = newton_step(at.matrix, at.residual)
        error = largest(step * at.weight)
        accurate = error <= problem.tolerances.target
        moved = np.where(accurate[:, None] | ~np.isfinite(step), 0.0, step)
        solved.x[index] += moved
        missed = np.abs(at.averages.norm - 1.0)
        if problem.channel.overlap_unknowns == 2:
            # τ² may not feel an error of the averages that Q and M are made of
            e = at.averages.e[:, :3]
            with np.errstate(all="ignore"):
                change = np.abs(expected[index] / e - 1.0).max(1)
            missed = np.fmax(missed, change)
            expected[index] = e + (at.averages.de[:, :3] @ moved[..., None])[..., 0]
        solved.residual[index], solved.status[index] = largest(at.residual), Status.QUADRATURE
        solved.matrix[index], solved.e[index] = at.matrix, at.averages.e[:, :3]
        solved.data_loss[index] = at.averages.data_loss
        return error, missed, accurate

    good = solved.residual <= START_TOLERANCE
    above = np.zeros_like(good) if settled is None else good & settled
    finest = max(3, len(RULES) - 1 - problem.channel.skipped_levels)
    first, second = np.flatnonzero(good & ~above), np.flatnonzero(above)
    polish(solved, first, turn, problem.tolerances, finest=finest, settled=second)
    _condition(solved)
    return solved


def _condition(solved: Solved) -> None:
    """Estimate what rounding does to solutions; where it matters, solve without cancellation."""
    problem = solved.problem
    index = np.flatnonzero(solved.residual <= START_TOLERANCE)
    x, matrix, n = solved.x[index], solved.matrix[index], problem.channel.overlap_unknowns
    weight, noise = np.ones_like(x), EPSILON * (np.abs(x) + ROUNDED)
    weight[:, n:] = np.minimum(1.0, np.abs(np.diagonal(matrix, axis1=1, axis2=2)[:, n:]))
    noise[:, n:] *= np.minimum(1.0, np.exp(0.5 * x[:, 1:2]))  # in units of a tiny sqrt(Q)
    error = largest(weight * magnified(matrix, noise))
    if problem.channel.balanced:  # no constant is best: the intercept decides between the labels
        error = np.fmax(error, ROUNDING / np.abs(matrix[:, n, n]))
    solved.conditioning_error[index] = solved.slope_error[index] = error
    again = index[(error > MAGNIFIED) & (x[:, 1] > np.log(COLLAPSED) / 2)]
    if again.size and problem.channel.has_branches:
        accept(solved, again, Complements.of(problem[again]).refined(solved.x[again]))
    well = solved.conditioning_error <= problem.tolerances.conditioning
    solved.status[(solved.status == Status.CONVERGED) & ~well] = Status.ILL_CONDITIONED


def accept(solved: Solved, index: Integers, known: Refined) -> None:
    """Take over solutions without cancellation that are better than those found before."""
    error, tolerances = largest(known.rounding), solved.problem.tolerances
    right = known.residual <= tolerances.residual
    right &= known.quadrature_error <= tolerances.quadrature
    right &= (error < solved.conditioning_error[index]) & (error <= tolerances.conditioning)
    solved.iterations[index] += known.iterations
    index = index[right]
    solved.status[index] = Status.CONVERGED
    solved.conditioning_error[index] = error[right]
    for name in ("x", "e", "data_loss", "residual", "quadrature_error"):
        getattr(solved, name)[index] = getattr(known, name)[right]
