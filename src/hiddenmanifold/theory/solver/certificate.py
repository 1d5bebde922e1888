"""How the solve of each point ended, and how far its solution may be off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.errors import CERTIFICATES, Status
from hiddenmanifold.theory.labels_side.proximal_curve import RULES
from hiddenmanifold.theory.solver.settings import Tolerances

HANDOVER = 1e-5
"""Newton step after which the first finer quadrature hands over to the next.

Newton's method squares its error, so that the next level takes one turn to judge the solution and
hardly ever another; half or twice as much changes the number of turns by less than 1 %."""
POLISHING = 5
"""Newton turns on each of the finer levels, at most: two are usual, more mean ill conditioning."""


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
