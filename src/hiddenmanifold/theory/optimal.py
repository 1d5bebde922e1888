r"""The regularisation of least error, per point of a batch.

The error and its exact derivative by :math:`t = \log\lambda` are scanned over many decades, all
minima between are refined, and the lowest wins, the limits :math:`0^+` and :math:`\infty` included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.execution import Crew
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples, hidden_turns, refined_minima
from hiddenmanifold.points import Points
from hiddenmanifold.theory.asymptotics import asymptotics
from hiddenmanifold.theory.scores import Observed

SCAN = np.log(10.0) * np.arange(-7.5, 4.6, 1.5)
"""Values of log λ that are tried first."""
FINE = np.log(10.0) * np.arange(-8.0, 5.1, 0.5)
"""The same for losses with corners, whose errors have plateaus and narrow dips."""
BELOW = np.log(10.0) * np.array(
    [-100.0, -80.0, -60.0, -44.0, -32.0, -24.0, -18.0, -14.0, -11.0, -9.0]
)
"""Tried where the error does not plainly fall from its limit at 0⁺ to the first of the scan."""
ABOVE = np.log(10.0) * np.array([7.0, 11.0, 16.0, 24.0, 32.0])
"""Tried where the error does not plainly rise from the last of the scan to its limit at ∞."""
TIE = 1e-10
"""Relative difference of two errors that does not speak against the limit."""


@dataclass(frozen=True)
class ErrorByLambda:
    """The error or observable named `target` of a model as a function of λ, at given ratios."""

    model: Model
    points: Points
    target: str
    crew: Crew
    observables: Mapping[str, Observed] = field(default_factory=dict)

    def slope(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """Error and its slope by t = log λ at some of the points; NaN where the solve fails."""
        points = self.points[point].at(np.exp(t))
        found = asymptotics(
            self.model,
            points,
            self.crew,
            slopes=("regularisation",),
            observables=self.observables,
        )
        return found[self.target], found[f"{self.target}_by_log_regularisation"]

    def limit(self, lam: float) -> Array:
        """Error at one λ, zero and infinity included, at every point."""
        points = self.points.at(np.full(len(self.points), lam))
        found = asymptotics(self.model, points, self.crew, observables=self.observables)
        error: Array = found[self.target]
        return error


def optimal_regularisation(errors: ErrorByLambda, low: float, high: float) -> Array:
    """The λ in [low, high] of least error at every point; 0 and inf stand for the limits.

    NaN where no λ could be solved for. Between 0⁺ and the least λ of the scan nothing is tried:
    only the logistic loss still moves there, like 1/log(1/λ).
    """
    points = np.arange(len(errors.points))
    least, most = (np.log(low) if low else -np.inf), np.log(high)
    ends = [t for t in (least, most) if np.isfinite(t)]
    limits = {b: errors.limit(b) for b in {low, high} & {0.0, np.inf}}

    def scan(grid: Array, some: Integers) -> Samples:
        """All of the grid within the bounds, λ by λ so that neighbours can start one another."""
        t = grid[(grid >= least) & (grid <= most)]
        return Samples.of(errors.slope, np.tile(some, len(t)), np.repeat(t, len(some))).ordered()

    grid = FINE if errors.model.loss.has_jumps else SCAN
    samples = scan(np.unique([*grid, *ends]), points)
    first = samples[np.searchsorted(samples.point, points)]
    last = samples[np.searchsorted(samples.point, points, "right") - 1]
    if 0.0 in limits:
        falls = (first.slope < 0) & (first.value < limits[0.0])
        samples += scan(BELOW, points[~falls])
    if np.inf in limits:
        rises = (last.slope > 0) & (last.value < limits[np.inf])
        samples += scan(ABOVE, points[~rises])
    samples = (samples + hidden_turns(errors.slope, samples.ordered())).ordered()
    samples += refined_minima(errors.slope, *samples.pairs())

    candidates = [(samples.point, np.exp(samples.t), samples.value)]
    for bound, error in limits.items():
        candidates.append((points, np.full(len(points), bound), error * (1.0 - TIE)))
    point, lam, error = (np.concatenate(part) for part in zip(*candidates, strict=True))
    order = np.lexsort((error, point))  # NaN comes last
    best = order[np.unique(point[order], return_index=True)[1]]
    return np.where(np.isnan(error[best]), np.nan, lam[best])
