"""Solve the saddle-point equations for a batch of points, and certify every solution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.numerics.newton import Solution, Status, largest, newton, newton_step
from hiddenmanifold.theory.channel import Channel, Hats
from hiddenmanifold.theory.curve import RULES
from hiddenmanifold.theory.spectral import Features, Overlaps, Ratios, overlaps

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

START_TOLERANCE = 1e-6
"""Residual at which the roughest quadrature hands over to the finer ones."""
ACCURATE = 1e-11
"""Estimated error of the unknowns at which a point is left alone."""
POLISHING = 3
"""Newton turns on each of the finer levels."""
TOLERANCE = 1e-9
"""Largest residual and estimated error of a solution that is called converged."""


@dataclass(frozen=True)
class SaddlePoint:
    """The equations of a batch of points: `channel` and `features` close on each other."""

    channel: Channel
    features: Features
    ratios: Ratios

    def close(
        self, x: Array, index: Integers | slice, level: int = 0, with_loss: bool = False
    ) -> Closure:
        """One turn around the equations from the unknowns `x` of the points `index`."""
        with np.errstate(all="ignore"):  # what is not finite is found in the residual
            hats = self.channel.hats(x, level, with_loss)
            found = overlaps(self.features, self.ratios[index], hats.e[:, :3])
            y, dy = self.channel.coordinates(found)
            n = y.shape[1]
            residual = y - x[:, :n]
            matrix = np.eye(n, x.shape[1]) - dy @ hats.de[:, :3]
            weight = np.ones_like(x)
            if x.shape[1] > n:  # the intercept: e0 = 0, in units of the typical f_out
                scale = np.sqrt(hats.e[:, 1, None])
                residual = np.hstack([residual, hats.e[:, 3:] / scale])
                matrix = np.concatenate([matrix, -hats.de[:, 3:] / scale[..., None]], axis=1)
                weight[:, n:] = np.minimum(1.0, np.abs(matrix[:, n:, n]))
        return Closure(residual, matrix, weight, hats, found)


@dataclass(frozen=True)
class Closure:
    """Residual G(x) - x of the undamped map, matrix I - dG/dx, and what they were made of.

    ``weight`` says how much an error of each unknown matters: that of an intercept measured in
    units of a tiny sqrt(Q) counts by what it does to its equation.
    """

    residual: Array
    matrix: Array
    weight: Array
    hats: Hats
    overlaps: Overlaps


@dataclass
class Outcome:
    """Solved points: unknowns, how the solve ended, and the quantities at the solution.

    ``quadrature_error`` estimates the relative error of the unknowns, by the Newton step that a
    finer quadrature still asks for.
    """

    x: Array
    status: NDArray[np.int8]
    residual: Array
    quadrature_error: Array
    iterations: Integers
    level: Integers
    e: Array
    data_loss: Array


def solve(problem: SaddlePoint, max_iterations: int = 60) -> Outcome:
    """Solve a batch: Newton from a common start, continuation in λ for the rest, certification."""
    points = len(problem.ratios.lam)
    found = _newton(problem, _first_turn(problem), max_iterations // 2)
    for rescue in (_from_collapsed, _continuation):
        lost = np.flatnonzero(~(found.residual <= START_TOLERANCE))
        if not lost.size:
            break
        rescued = rescue(replace(problem, ratios=problem.ratios[lost]), max_iterations)
        better = rescued.residual < found.residual[lost]
        found.x[lost[better]] = rescued.x[better]
        found.residual[lost[better]] = rescued.residual[better]
        found.iterations[lost] += rescued.iterations
    status = np.full(points, Status.MAX_ITERATIONS, dtype=np.int8)
    status[~np.isfinite(found.residual)] = Status.NON_FINITE
    outcome = Outcome(
        found.x,
        status,
        found.residual,
        np.full(points, np.inf),
        found.iterations,
        np.zeros(points, dtype=np.intp),
        np.full((points, 3), np.nan),
        np.full(points, np.nan),
    )
    _certify(problem, outcome)
    return outcome


def _newton(problem: SaddlePoint, x: Array, max_iterations: int) -> Solution:
    """Newton's method on the roughest quadrature."""

    def system(x: Array, index: Integers) -> tuple[Array, Array]:
        turn = problem.close(x, index)
        return turn.residual, turn.matrix

    return newton(system, x, problem.channel.longest, START_TOLERANCE, max_iterations)


def _first_turn(problem: SaddlePoint) -> Array:
    """Start plus one plain iteration, which brings the scale of Q right when λ is large."""
    x = problem.channel.start(_first_V(problem))
    n = problem.channel.overlap_unknowns
    step = problem.close(x, slice(None)).residual[:, :n]
    x[:, :n] += np.where(np.isfinite(step), step, 0.0)
    return x


def _from_collapsed(problem: SaddlePoint, max_iterations: int) -> Solution:
    """Newton from where Q (or the residual) has vanished."""
    x = problem.channel.collapsed(len(problem.ratios.lam))
    return _newton(problem, x, max_iterations // 2)


def _first_V(problem: SaddlePoint) -> Array:
    """V of ridge regression on white features, from which Newton starts for every loss."""
    kappa = problem.features.kappa_1**2 + problem.features.kappa_star**2
    lam, alpha = problem.ratios.lam, problem.ratios.alpha
    B = lam + (alpha - 1.0) * kappa
    R = np.sqrt(B**2 + 4.0 * lam * kappa)
    positive = B > 0
    return np.where(positive, 2.0 * kappa, R - B) / np.where(positive, B + R, 2.0 * lam)


def _continuation(problem: SaddlePoint, max_iterations: int) -> Solution:
    """Walk down in λ from where the problem is easy, extrapolating along the way."""
    ratios = problem.ratios
    goal = np.log(ratios.lam)
    now = np.log(np.maximum(ratios.lam, 100.0 * np.maximum(1.0, ratios.alpha)))

    def at(log_lam: Array, index: Integers, x: Array | None, iterations: int) -> Solution:
        sub = ratios[index]
        stage = replace(problem, ratios=Ratios(sub.alpha, sub.gamma, np.exp(log_lam)))
        return _newton(stage, _first_turn(stage) if x is None else x, iterations)

    everyone = np.arange(len(now))
    found = at(now, everyone, None, max_iterations)
    previous, previous_step = found.x.copy(), np.ones(len(now))
    step = np.full(len(now), 3.0)
    alive = found.residual <= START_TOLERANCE
    while (walking := np.flatnonzero(alive & (now > goal))).size:
        target = np.maximum(goal[walking], now[walking] - step[walking])
        length = now[walking] - target
        x = found.x[walking]
        guess = x + (x - previous[walking]) * (length / previous_step[walking])[:, None]
        trial = at(target, walking, guess, 10)
        found.iterations[walking] += trial.iterations
        good = trial.residual <= START_TOLERANCE
        i = walking[good]
        previous[i], previous_step[i] = found.x[i], length[good]
        found.x[i], found.residual[i], now[i] = trial.x[good], trial.residual[good], target[good]
        step[i] *= np.where(trial.iterations[good] <= 5, 2.0, 1.0)
        step[walking[~good]] /= 3.0
        alive[walking] &= step[walking] > 0.01
    found.residual[now > goal] = np.inf
    return found


def _certify(problem: SaddlePoint, outcome: Outcome) -> None:
    """Climb to finer quadrature until a finer one no longer moves the solution."""
    index = np.flatnonzero(outcome.residual <= START_TOLERANCE)
    for level in range(1, len(RULES)):
        # the first finer level only polishes; on the next ones the first turn is the judge of the
        # level before, and further turns polish again
        for turns in range(1 if level == 1 else POLISHING):
            if not index.size:
                return
            turn = problem.close(outcome.x[index], index, level, with_loss=level > 1)
            step = newton_step(turn.matrix, turn.residual)
            error = largest(step * turn.weight)
            if turns == 0:
                outcome.quadrature_error[index] = error
            outcome.residual[index] = largest(turn.residual)
            outcome.iterations[index] += 1
            outcome.level[index] = level
            outcome.e[index], outcome.data_loss[index] = turn.hats.e[:, :3], turn.hats.data_loss
            done = (
                (level > 1) & (error <= ACCURATE) & (outcome.quadrature_error[index] <= TOLERANCE)
            )
            outcome.status[index] = np.where(done, Status.CONVERGED, Status.QUADRATURE)
            index, step = index[~done], step[~done]
            outcome.x[index] += np.where(np.isfinite(step), step, 0.0)
