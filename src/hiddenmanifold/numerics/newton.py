"""Newton's method for a batch of points, with damping.

The damping follows the natural monotonicity test (Deuflhard, *Newton Methods for Nonlinear
Problems*, section 3.3): a trial point is kept if the correction computed from its residual with
the *old* matrix is shorter than the step that led there. The test does not depend on how the
equations are scaled, which matters where one residual is proportional to 1/Q and Q is huge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array, Booleans, Integers

System = Callable[[Array, Integers], tuple[Array, Array]]

SMALLEST_DAMPING = 2.0**-5
"""Damping below which a step of plain iteration is taken instead; half or twice as much costs or
saves one evaluation where that happens."""
EPSILON = float(np.finfo(float).eps)
"""Relative rounding of a number."""


@dataclass
class Solution:
    """Outcome of a batched solve, one entry per point; ``step`` is the Newton step from x."""

    x: Array
    residual: Array
    iterations: Integers
    step: Array


def newton_step(matrix: Array, residual: Array) -> Array:
    """Solve ``matrix @ step = residual`` for each point.

    A matrix that is not finite counts as the identity, i.e. as plain iteration; if any is singular,
    the batch is solved by pseudo-inverse.
    """
    found = compiled.newton_step(matrix, residual)
    if found is not None:
        return found
    usable = np.all(np.isfinite(matrix), axis=(1, 2))
    safe = np.where(usable[:, None, None], matrix, np.eye(matrix.shape[1]))
    with np.errstate(all="ignore"):  # what is not finite is replaced below
        try:
            step = np.linalg.solve(safe, residual[..., None])[..., 0]
        except np.linalg.LinAlgError:
            step = (np.linalg.pinv(safe) @ residual[..., None])[..., 0]
    finite: Booleans = np.isfinite(step).all(1)
    return np.where(finite[:, None], step, residual)


def magnified(matrix: Array, noise: Array) -> Array:
    """How far errors of the residuals, no larger than `noise`, can move each solution.

    This is the absolute value of each inverse matrix times the noise; infinite if a matrix is
    singular or not finite.
    """
    n = matrix.shape[1]
    regular: Booleans = np.isfinite(np.concatenate([matrix, noise[:, None]], axis=1)).all((1, 2))
    safe = np.where(regular[:, None, None], matrix, np.eye(n))
    with np.errstate(all="ignore"):
        regular &= np.linalg.det(safe) != 0.0
    moved = np.zeros_like(noise)
    for column in range(n):
        unit = np.zeros_like(noise)
        unit[:, column] = noise[:, column]
        moved += np.abs(newton_step(safe, unit))
    moved[~regular] = np.inf
    return moved


def largest(residual: Array) -> Array:
    """Largest component of each residual; NaN counts as infinite, so that it fails every test."""
    size = reduce(np.maximum, np.abs(residual).T)
    return np.where(np.isfinite(size), size, np.inf)


def newton(
    system: System, x: Array, longest: Array, tolerance: float, max_iterations: int
) -> Solution:
    """Solve ``residual(x) = 0`` for a batch of points; converged points leave the batch.

    Parameters
    ----------
    system : callable
        ``system(x, index)`` returns the residuals ``G(x) - x`` of the points `index` and the
        matrices ``I - dG/dx``.
    x : array (points, unknowns)
        Where to start.
    longest : array (unknowns,)
        Longest step allowed in each unknown.
    tolerance : float
        A point has converged when no component of its residual exceeds this.
    max_iterations : int
        Evaluations of the system per point.
    """
    active = np.arange(len(x))
    base, (r, matrix) = x, system(x, active)
    step, forced = newton_step(matrix, r), np.zeros(len(x), dtype=bool)
    damping = np.ones(len(x))
    outcome = Solution(x.copy(), largest(r), np.ones(len(x), dtype=np.intp), step.copy())
    for _ in range(max_iterations - 1):
        going = outcome.residual[active] > tolerance
        if not going.all():
            active, forced = active[going], forced[going]
            base, r, matrix, step, damping = (a[going] for a in (base, r, matrix, step, damping))
        if not active.size:
            break
        # each unknown is held to its own limit: where the equations do not care about the scale
        # of Q, its step is huge and must not hold back the others
        trial = base + damping[:, None] * np.clip(step, -longest, longest)
        trial_r, trial_matrix = system(trial, active)
        outcome.iterations[active] += 1
        size = largest(trial_r)
        length, correction = (largest(s / longest) for s in (step, newton_step(matrix, trial_r)))
        # of the longest component the limits leave no more than one
        shorter = correction <= (1.0 - 0.25 * damping / np.maximum(length, 1.0)) * length
        keep = (shorter | forced | (size <= tolerance)) & np.isfinite(size)

        k = keep[:, None]
        base, r = np.where(k, trial, base), np.where(k, trial_r, r)
        matrix = np.where(k[..., None], trial_matrix, matrix)
        # no damping helps: take one step of plain iteration, whatever the test says
        forced = ~keep & (damping <= SMALLEST_DAMPING)
        step = np.where(k, newton_step(matrix, r), np.where(forced[:, None], r, step))
        damping = np.where(keep | forced, 1.0, 0.5 * damping)
        kept = active[keep]
        outcome.x[kept], outcome.residual[kept] = base[keep], size[keep]
        outcome.step[kept] = step[keep]
    return outcome
