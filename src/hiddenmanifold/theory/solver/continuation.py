"""Follow solutions along a path of parameters to where they cannot be found at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.numerics.newton import Solution

# Half or twice of each, on 600 points with n/p and d/p from 1e-9 to 1e9 and λ from 1e-26 on: no
# more are lost, the errors move by less than 1e-11, and the evaluations change by at most 3 %.
FIRST_STRIDE = 3.0
"""First step of a path, in the logarithm of a parameter; it doubles where the solves are quick."""
SHORTEST_STRIDE = 0.01
"""Step below which a path is given up: six failures in a row from the first step."""
FEW_ITERATIONS = 5
"""Iterations of a quick solve: Newton's method from a good guess, which squares its error."""
SHRINKING = 3.0
"""Divisor of a failed step: more than the 2 by which it grows, so that it is not tried again."""


def followed(
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
        step[walking[~good]] /= SHRINKING
        alive[walking] &= (step[walking] > SHORTEST_STRIDE) & (found.iterations[walking] < longest)
    found.residual[done < length] = np.inf
    return found
