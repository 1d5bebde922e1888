r"""The regularisation of least error, per point of a batch.

The solution is followed from :math:`\lambda = \infty` down, and the least error along the path is
found (``path``, ``descent``, ``gaps``). Where that fails, and where the error may still turn below
the end of the path, certified errors and their derivatives by :math:`t = \log\lambda` are scanned.
The limits :math:`0^+` and :math:`\infty` compete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples, hidden_turns, least_of_each, refined_minima
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.best_lambda.gaps import least
from hiddenmanifold.theory.best_lambda.path import Path
from hiddenmanifold.theory.best_lambda.walk import walk
from hiddenmanifold.theory.limits import Phase, fitted_phase
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import Request, asymptotics, channel_of
from hiddenmanifold.theory.scores.distribution import Observed
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint

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
EDGES = (1e-8, 1e-16)
"""The least λ to which all solutions are followed, and those whose error may fall further."""
TAIL = 3.0
"""How much more than by its law 1/log(1/λ) the error might still fall below."""
NEXT_TERM = 1.84
"""What further terms of the law may add to the half of T: a tenth of T at the first edge."""
NEAR = 1e-6
"""Relative distance from the best at which the error below counts as equal until it is computed."""
TOGETHER = 1024
"""Points that are followed together."""


@dataclass(frozen=True)
class ErrorByLambda:
    """The error or observable named `target` of a model as a function of λ, at given ratios."""

    model: Model
    points: Points
    target: str
    workers: Workers
    observables: Mapping[str, Observed] = field(default_factory=dict)

    def __getitem__(self, some: Integers | Booleans) -> ErrorByLambda:
        return replace(self, points=self.points[some])

    def slope(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """Error and its slope by t = log λ at some of the points; NaN where the solve fails."""
        points = self.points[point].at(np.exp(t))
        found = asymptotics(
            self.model,
            points,
            self.workers,
            slopes=("regularisation",),
            observables=self.observables,
        )
        return found[self.target], found[f"{self.target}_by_log_regularisation"]

    def limit(self, lam: float) -> Array:
        """Error at one λ, zero and infinity included, at every point."""
        points = self.points.at(np.full(len(self.points), lam))
        found = asymptotics(self.model, points, self.workers, observables=self.observables)
        error: Array = found[self.target]
        return error


@dataclass(frozen=True)
class Descent:
    """The search along the path, from one λ down to another, of some points: one job."""

    model: Model
    points: Points
    target: str
    observables: Mapping[str, Observed]
    low: float

    def run(self) -> Columns:
        """The best λ with about the unknowns, and the error at the ``top``, where the path begins.

        ``tail`` says where the error may still fall below its end, ``lost`` where the path could
        not be followed.
        """
        channel = channel_of(self.model)
        problem = SaddlePoint(channel, self.model.features, self.points)
        request = Request(observables=self.observables)

        def objective(x: Array) -> Array:
            known = request.observed(channel, x) if self.observables else channel.test_errors(x)
            return known[self.target]

        path = Path(problem, objective)
        nodes, gaps, lost = walk(path, np.log(self.low))
        bottom = path.sloped(nodes[least_of_each(nodes.point, nodes.t)])
        t, x, error, failed = least(path, nodes, gaps)
        law = bottom.slope * bottom.t  # what is left to rise, if the error goes like 1/log(1/λ)
        remaining = np.maximum(-TAIL * law, 0.5 * law) + bottom.doubt + NEAR * np.abs(error)
        tail = ~(bottom.value - remaining > error)
        bottom[tail] = path.tight(bottom[tail])
        return {
            "lam": np.exp(t),
            "x": x,
            "top": nodes.value[: len(self.points)],
            "tail": tail,
            "bottom": bottom.value,
            "slope": bottom.slope,
            "lost": lost | failed,
        }


def regular(model: Model, edge: float, value: Array, rest: Array, slope: Array) -> Booleans:
    r"""Whether the error has no minimum between λ = edge, with its value and slope there, and 0⁺.

    `rest` is what it still falls by. It may stand on the limit's own plateau. Else it goes like a
    power of λ, and is then `slope` divided by that power, or, if the weights of separable data
    diverge, like :math:`c/T + c'/T^2` with :math:`T = \log(1/\lambda)`. That falls all the way if
    and only if `rest` exceeds half of `slope` times T. An error that rises towards 0⁺ has risen for
    good or comes down to the limit.
    """
    ratio = np.divide(rest, slope, out=np.zeros_like(rest), where=slope != 0)
    T = -np.log(edge)
    diverging = fitted_phase(model)[0] is Phase.DIVERGING
    shortest, longest = (0.5 * T + NEXT_TERM, TAIL * T) if diverging else (0.3, TAIL)
    falls = (slope > 0) & (ratio > shortest) & (ratio < longest)
    level = np.maximum(np.abs(rest), np.abs(slope) * T) <= TIE * value
    settled: Booleans = falls | (slope < 0) | level
    return settled


def optimum(
    errors: ErrorByLambda,
    low: float,
    high: float,
    *,
    slopes: Sequence[str] = (),
    observables: Mapping[str, Observed] | None = None,
) -> tuple[Array, Columns]:
    """The λ in [low, high] of least error at every point, and all that is predicted there.

    0 and inf stand for the limits, NaN for no solution. Slopes and observables are those of
    `asymptotics`, and include what is made least.
    """
    predicted = partial(
        asymptotics, errors.model, workers=errors.workers, slopes=slopes, observables=observables
    )
    points, path = errors.points, _followed(errors, low, high)
    lam, lost, top = path["lam"], path["lost"].astype(bool), path["top"]
    found = predicted(points.at(lam), start=path["x"])
    error = found[errors.target].copy()
    lost |= np.isnan(error)
    moved = np.zeros(len(points), dtype=bool)

    def compete(some: Booleans, other: Array | float, value: Array) -> None:
        wins = ~(error[some] <= value) & ~np.isnan(value)
        i = np.flatnonzero(some)[wins]
        lam[i], error[i] = np.broadcast_to(other, wins.shape)[wins], value[wins]
        moved[i] = True

    if high == np.inf:
        compete(~lost, np.inf, top[~lost] * (1.0 - TIE))
    compete(~lost, 0.0, path["zero"][~lost] * (1.0 - TIE))
    tail = path["tail"].astype(bool) & ~lost
    if tail.any():
        compete(tail, *scanned(errors[tail], low, EDGES[0]))
    lam[np.isnan(error)] = np.nan
    if lost.any():  # what was found on the part of the path that could be followed competes
        compete(lost, *scanned(errors[lost], low, high))
    moved |= np.isnan(lam)
    if moved.any():
        again = predicted(points[moved].at(lam[moved]))
        for name, values in again.items():
            found[name][moved] = values
    return lam, found


def _followed(errors: ErrorByLambda, low: float, high: float) -> Columns:
    """What `Descent` says of all points, and the error at ``zero`` where it competes, else NaN.

    The ``tail`` is true where the least error below the first edge is still unknown.
    """
    if high <= EDGES[0]:
        ones = np.ones(len(errors.points))
        known = {"lam": high, "top": 0.0, "tail": 0.0, "zero": np.nan, "lost": 1.0}
        return {n: v * ones for n, v in known.items()} | {"x": np.nan * ones[:, None]}
    found = _descended(errors, max(low, EDGES[0]), high)
    zero = found["zero"] = np.full(len(errors.points), np.nan)
    for edge, next_edge in pairwise((*EDGES, 0.0)):
        tail = found["tail"] = (found["tail"] > 0) & ~(found["lost"] > 0) & (low < edge)
        if low == 0.0 and tail.any():
            asked = tail & np.isnan(zero)
            zero[asked] = errors[asked].limit(0.0) if asked.any() else ()
            value, slope = found["bottom"][tail], found["slope"][tail]
            tail[tail] = ~regular(errors.model, edge, value, value - zero[tail], slope)
        if not next_edge or not tail.any():
            break
        again = _descended(errors[tail], max(low, next_edge), high)
        better = ~(again["lost"] > 0)
        some = np.flatnonzero(tail)[better]
        for name, values in again.items():
            found[name][some] = values[better]
    return found


def _descended(errors: ErrorByLambda, low: float, high: float) -> Columns:
    """What `Descent` says of all points."""
    count = len(errors.points)
    starts = errors.points.at(np.full(count, min(high, HUGE)))
    parts = errors.workers.run(
        [
            Descent(errors.model, starts[chunk], errors.target, errors.observables, low)
            for chunk in np.array_split(np.arange(count), -(-count // TOGETHER))
        ]
    )
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found["lam"] = np.clip(found["lam"], low, high)
    return found


def scanned(errors: ErrorByLambda, low: float, high: float) -> tuple[Array, Array]:
    """The λ in [low, high] of least error at every point, and the error, by certified samples.

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
    best = least_of_each(point, error)
    return np.where(np.isnan(error[best]), np.nan, lam[best]), error[best]
