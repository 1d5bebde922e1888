"""Every predicted quantity of a model at given points, in bounded memory and on all cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from hiddenmanifold.arrays import Array, Columns, chunks, joined
from hiddenmanifold.errors import Status
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.theory.features_side import overlaps, spectral_arguments
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.limits import parts
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.scores.distribution import Observed, Scores, observe
from hiddenmanifold.theory.scores.errors_of_labels import (
    CONSTANT,
    errors,
    test_errors,
)
from hiddenmanifold.theory.solver.certificate import Solved
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.settings import STANDARD, Tolerances
from hiddenmanifold.theory.solver.strategy import rescue, solve
from hiddenmanifold.theory.solver.tangents import slope_along, tangents

DIGITS = 1e9
"""Largest ratio of two lengths whose difference still has enough digits."""


class Derived(Protocol):
    """Further quantities that follow from solved models; it may also find that some points fail."""

    def __call__(self, solved: Solved, request: Request) -> Columns:
        """Named results at each point."""


@dataclass(frozen=True)
class Request:
    """The quantities to predict at each point besides the errors.

    `slopes` are parameters by which to differentiate, `observables` are named. What is `derived`
    from the solved model may replace quantities of the same name. If the model is a stand-in,
    `loss` is that of the requested model, whose predictions are `scale` times as large.
    """

    slopes: tuple[str, ...] = ()
    observables: Mapping[str, Observed] = field(default_factory=dict)
    derived: Derived | None = None
    loss: ConvexLoss | None = None
    scale: float = 1.0

    def observed(self, channel: Channel, x: Array) -> Columns:
        """Every observable, as a function of the unknowns alone."""
        if not self.observables:
            return {}
        scores = Scores.of(channel, x)
        scores = replace(scores, loss=self.loss or scores.loss, scale=min(self.scale, HUGE))
        return {name: observe(observed, scores) for name, observed in self.observables.items()}


@dataclass(frozen=True)
class Batch:
    """Points to solve together: one job of a worker, independent of all others.

    They are solved by Newton's method, from the unknowns `start` (points, unknowns) if these are
    known to be close; points at which it fails are solved by slower, more robust methods.
    """

    problem: SaddlePoint
    request: Request = field(default_factory=Request)
    start: Array | None = None
    lost: bool = False

    def run(self) -> Columns:
        """Every predicted quantity at each point."""
        solved = rescue(self.problem) if self.lost else solve(self.problem, self.start)
        found = quantities(solved, self.request)
        return {**found, **_slopes(solved, self.request)}


def asymptotics(
    model: Model,
    points: Points,
    workers: Workers | None = None,
    *,
    slopes: Sequence[str] = (),
    observables: Mapping[str, Observed] | None = None,
    derived: Derived | None = None,
    start: Array | None = None,
    tolerances: Tolerances = STANDARD,
    copies: Copies = ONCE,
) -> Columns:
    """Every predicted quantity at each of some points, limits included.

    The `slopes` are parameters, out of `PARAMETERS`, by whose logarithm to differentiate the
    errors and the `observables`, further quantities given by name; others may be `derived` from
    the solutions. Each sample may be drawn in several `copies`. By default there is one worker per
    core. Approximate solutions at positive λ may
    be given as `start` (points, unknowns).
    """
    columns: Columns = {}
    for part in parts(model, points, copies.drawn):
        request = Request(tuple(slopes), dict(observables or {}), derived, part.loss, part.scale)
        near = None if start is None or np.isnan(start[part.index]).any() else start[part.index]
        problem = SaddlePoint.of(part.model, part.points, tolerances, copies)
        found = part.finished(_predicted(problem, request, near, workers or Workers()))
        for name, values in found.items():
            shape = (len(points), *values.shape[1:])
            columns.setdefault(name, np.zeros(shape, values.dtype))[part.index] = values
    return columns


def _predicted(
    problem: SaddlePoint, request: Request, start: Array | None, workers: Workers
) -> Columns:
    """Every predicted quantity at finite parameters."""
    together = problem.channel.batch
    batches = [
        Batch(problem[chunk], request, None if start is None else start[chunk])
        for chunk in chunks(np.arange(len(problem.points)), together)
    ]
    found = joined(workers.run(batches))
    lost = np.flatnonzero(found["status"] != Status.CONVERGED)
    if lost.size:  # collected from all chunks: a small batch costs almost as much as a large one
        batches = [Batch(problem[chunk], request, lost=True) for chunk in chunks(lost, together)]
        rescued = joined(workers.run(batches))
        for name, values in found.items():
            values[lost] = rescued[name] + (values[lost] if name == "iterations" else 0)
    return found


def quantities(solved: Solved, request: Request) -> Columns:
    """Named results of a solved batch, and how their solves ended."""
    problem = solved.problem
    points, channel, features = problem.points, problem.channel, problem.features
    with np.errstate(all="ignore"):
        at = spectral_arguments(points, solved.e, channel.rho)
        o = overlaps(features, at)
        found = {
            **errors(channel, solved.x, o),
            "training_loss": solved.data_loss + 0.5 * points.lam * o.q_w / points.alpha,
            # as λ → ∞ w keeps a direction; where a corner of the loss holds it at zero it has none
            "alignment": np.where(o.Q < CONSTANT**2, np.nan, o.M / np.sqrt(o.M**2 + o.deficit)),
            "V": o.V,
            "Q": o.Q,
            "M": o.M,
            "q_w": o.q_w,
            **features.further_overlaps(at),
            "intercept": channel.intercept(solved.x),
            **(observed := request.observed(channel, solved.x)),
        }
    if request.derived is not None:
        found |= (derived := request.derived(solved, request))
        observed = {**observed, **derived}
        observed.pop("score_correlation", None)  # of predictions that do not vary it is unknown
    integrals = (found["generalisation_error"], *observed.values())
    unsettled = np.isnan(np.column_stack(integrals)).any(1) & (solved.status == Status.CONVERGED)
    low, high = getattr(channel.loss, "minimisers", (0.0, 0.0))
    if channel.overlap_unknowns == 2 and low == high != 0 and np.isfinite(low):
        # residuals gather around a value that is not zero, and rounding of it is magnified by V
        unsettled |= found["V"] * abs(low) > DIGITS * np.exp(0.5 * solved.x[:, 1])
    solved.status[unsettled] = Status.QUADRATURE
    return {**found, **solved.columns}


def _slopes(solved: Solved, request: Request) -> Columns:
    """Derivatives of test errors and observables by the logarithm of each parameter."""
    problem, found = solved.problem, Columns()
    if not request.slopes:
        return found

    def functions(x: Array) -> Columns:
        return {**test_errors(problem.channel, x), **request.observed(problem.channel, x)}

    with np.errstate(all="ignore"):
        moved = tangents(problem, solved.e, solved.matrix, request.slopes)
        for parameter, along in moved.items():
            for name, values in slope_along(functions, solved.x, along).items():
                found[f"{name}_by_log_{parameter}"] = values
    ill = (solved.status == Status.CONVERGED) & (
        solved.slope_error > problem.tolerances.conditioning
    )
    found["status"] = np.where(ill, Status.ILL_CONDITIONED, solved.status).astype(np.int8)
    return found
