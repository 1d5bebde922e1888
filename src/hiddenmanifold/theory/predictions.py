"""From a model and its points to every predicted quantity, in bounded memory, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import CERTIFICATES, Status
from hiddenmanifold.losses import Loss
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory import limits
from hiddenmanifold.theory.features_side import overlaps, spectral_arguments
from hiddenmanifold.theory.labels_side.channel import BinaryChannel, Channel, LinearChannel
from hiddenmanifold.theory.labels_side.square_loss import SquareBinaryChannel, SquareLinearChannel
from hiddenmanifold.theory.labels_side.two_classes import MixtureChannel, SquareMixtureChannel
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.scores.distribution import CONSTANT, Observed, observe
from hiddenmanifold.theory.solver.certificate import CONDITIONED
from hiddenmanifold.theory.solver.saddle_point import Outcome, SaddlePoint, rescue, solve
from hiddenmanifold.theory.solver.tangents import slope_along, tangents

Solver = Callable[[SaddlePoint], Outcome]
DIGITS = 1e9
"""Largest ratio of two lengths whose difference still has enough digits."""


def channel_of(model: Model) -> Channel:
    """The channel of a model: closed form for the square loss, panels otherwise."""
    kind: type[Channel]
    if model.task is Task.REGRESSION:
        kind = SquareLinearChannel if model.loss.quadratic else LinearChannel
    elif model.teacher.displaces:
        kind = SquareMixtureChannel if model.loss.quadratic else MixtureChannel
    else:
        kind = SquareBinaryChannel if model.loss.quadratic else BinaryChannel
    return kind.of(model.teacher, model.loss, model.free_intercept)


@dataclass(frozen=True)
class Request:
    """What is asked of points beside their errors.

    `slopes` are parameters by which to differentiate, `observables` are named. If the model only
    stands in for another, `loss` is that one's, whose predictions are `scale` times as large.
    """

    slopes: tuple[str, ...] = ()
    observables: Mapping[str, Observed] = field(default_factory=dict)
    loss: Loss | None = None
    scale: float = 1.0

    def observed(self, channel: Channel, x: Array) -> Columns:
        """Every observable, as a function of the unknowns alone."""
        if not self.observables:
            return {}
        scores = channel.scores(x)
        scores = replace(scores, loss=self.loss or scores.loss, scale=min(self.scale, HUGE))
        return {name: observe(observed, scores) for name, observed in self.observables.items()}


@dataclass(frozen=True)
class Batch:
    """Points to solve together: what a worker is asked to do; it depends on nothing else."""

    model: Model
    points: Points
    solver: Solver
    request: Request = field(default_factory=Request)

    def run(self) -> Columns:
        """Every predicted quantity at each point."""
        problem = SaddlePoint(channel_of(self.model), self.model.features, self.points)
        outcome = self.solver(problem)
        found = _quantities(self.model, problem, outcome, self.request)
        return {**found, **_slopes(problem, outcome, self.request)}


def asymptotics(
    model: Model,
    points: Points,
    workers: Workers | None = None,
    *,
    slopes: Sequence[str] = (),
    observables: Mapping[str, Observed] | None = None,
    start: Array | None = None,
) -> Columns:
    """Every predicted quantity at each of some points, limits included.

    The `slopes` are parameters, out of `PARAMETERS`, by whose logarithm to differentiate the
    errors and the `observables`, which are more to predict by name. By default there is one
    worker per core. Solutions at positive λ may be known almost: `start` (points, unknowns).
    """
    columns: Columns = {}
    for part in limits.parts(model, points):
        request = Request(tuple(slopes), dict(observables or {}), part.loss, part.scale)
        near = None if start is None or np.isnan(start[part.index]).any() else start[part.index]
        found = limits.finished(part, _solved(part, workers or Workers(), request, near))
        if part.phase in limits.REFUSED:
            found["status"][:] = limits.REFUSED[part.phase]
        failed = found["status"] != Status.CONVERGED
        for name, values in found.items():
            if name not in CERTIFICATES:
                values[failed] = np.nan
            columns.setdefault(name, np.zeros(len(points), values.dtype))[part.index] = values
    return limits.settled(columns, *limits.negligible(model, points))


def _solved(part: limits.Part, workers: Workers, request: Request, start: Array | None) -> Columns:
    """Every predicted quantity at finite parameters."""
    model, points, together = part.model, part.points, channel_of(part.model).batch

    def run(solver: Callable[[Integers], Solver], index: Integers) -> Columns:
        # the same batches whoever runs them, so that results are the same to the bit
        chunks = np.array_split(index, -(-len(index) // together))
        batches = [Batch(model, points[chunk], solver(chunk), request) for chunk in chunks]
        found = workers.run(batches)
        return {name: np.concatenate([columns[name] for columns in found]) for name in found[0]}

    def solver(chunk: Integers) -> Solver:
        return solve if start is None else partial(solve, start=start[chunk])

    found = run(solver, np.arange(len(points)))
    lost = np.flatnonzero(found["status"] != Status.CONVERGED)
    if lost.size:  # collected from all chunks: a small batch costs almost as much as a large one
        rescued = run(lambda _: rescue, lost)
        for name, values in found.items():
            values[lost] = rescued[name] + (values[lost] if name == "iterations" else 0)
    return found


def _quantities(model: Model, problem: SaddlePoint, outcome: Outcome, request: Request) -> Columns:
    """Named results of a solved batch, and how their solves ended."""
    points, channel = problem.points, problem.channel
    with np.errstate(all="ignore"):
        at = spectral_arguments(points, outcome.e, model.teacher.rho)
        o = overlaps(model.features, at)
        found = {
            **channel.errors(outcome.x, o),
            "training_loss": outcome.data_loss + 0.5 * points.lam * o.q_w / points.alpha,
            # as λ → ∞ w keeps a direction; where a corner of the loss holds it at zero it has none
            "alignment": np.where(o.Q < CONSTANT**2, np.nan, o.M / np.sqrt(o.M**2 + o.deficit)),
            "V": o.V,
            "Q": o.Q,
            "M": o.M,
            "q_w": o.q_w,
            **model.features.further_overlaps(at),
            "intercept": channel.intercept(outcome.x),
            **(observed := request.observed(channel, outcome.x)),
        }
    integrals = (found["generalisation_error"], *observed.values())
    unsettled = np.isnan(integrals).any(0) & (outcome.status == Status.CONVERGED)
    low, high = model.loss.rest
    if model.task is Task.REGRESSION and low == high != 0 and np.isfinite(low):
        # residuals gather around a value that is not zero, and rounding of it is magnified by V
        unsettled |= found["V"] * abs(low) > DIGITS * np.exp(0.5 * outcome.x[:, 1])
    outcome.status[unsettled] = Status.QUADRATURE
    return {**found, **outcome.columns}


def _slopes(problem: SaddlePoint, outcome: Outcome, request: Request) -> Columns:
    """Derivatives of test errors and observables by the logarithm of each parameter."""
    channel, found = problem.channel, Columns()
    if not request.slopes:
        return found

    def functions(x: Array) -> Columns:
        return {**channel.test_errors(x), **request.observed(channel, x)}

    with np.errstate(all="ignore"):
        moved = tangents(problem, outcome.e, outcome.matrix, request.slopes)
        for parameter, along in moved.items():
            for name, values in slope_along(functions, outcome.x, along).items():
                found[f"{name}_by_log_{parameter}"] = values
    ill = (outcome.status == Status.CONVERGED) & (outcome.slope_error > CONDITIONED)
    found["status"] = np.where(ill, Status.ILL_CONDITIONED, outcome.status).astype(np.int8)
    return found
