"""From a model and its points to every predicted quantity, in bounded memory, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Columns, Integers
from hiddenmanifold.errors import CERTIFICATES, Status
from hiddenmanifold.execution import Crew
from hiddenmanifold.ingredients import Task
from hiddenmanifold.model import Model
from hiddenmanifold.points import Points
from hiddenmanifold.theory import limits
from hiddenmanifold.theory.channel import BinaryChannel, Channel, LinearChannel
from hiddenmanifold.theory.closed_forms import SquareBinaryChannel, SquareLinearChannel
from hiddenmanifold.theory.overlaps import closing, overlaps
from hiddenmanifold.theory.saddle_point import Outcome, SaddlePoint, rescue, solve
from hiddenmanifold.theory.sensitivity import slope_along, tangents

DIGITS = 1e9
"""Largest ratio of two lengths whose difference still has enough digits."""
CHANNELS: dict[tuple[Task, bool], type[Channel]] = {
    (Task.REGRESSION, False): LinearChannel,
    (Task.REGRESSION, True): SquareLinearChannel,
    (Task.CLASSIFICATION, False): BinaryChannel,
    (Task.CLASSIFICATION, True): SquareBinaryChannel,
}
"""The channel of a task, in closed form if the loss is quadratic."""


def channel_of(model: Model) -> Channel:
    """The channel of a model: closed form for the square loss, panels otherwise."""
    kind = CHANNELS[model.task, model.loss.quadratic]
    return kind.of(model.teacher, model.loss, model.free_intercept)


@dataclass(frozen=True)
class Batch:
    """Points to solve together: what a worker is asked to do; it depends on nothing else."""

    model: Model
    points: Points
    solver: Callable[[SaddlePoint], Outcome]
    slopes: tuple[str, ...] = ()

    def run(self) -> Columns:
        """Every predicted quantity at each point."""
        problem = SaddlePoint(channel_of(self.model), self.model.features, self.points)
        outcome = self.solver(problem)
        found = _quantities(self.model, problem, outcome)
        return {**found, **_slopes(problem, outcome, self.slopes)}


def asymptotics(
    model: Model, points: Points, crew: Crew | None = None, *, slopes: Sequence[str] = ()
) -> Columns:
    """Every predicted quantity at each of some points, limits included.

    The `slopes` are parameters, out of `PARAMETERS`, by whose logarithm to differentiate the
    errors. By default the crew has one process per core.
    """
    columns: Columns = {}
    for part in limits.parts(model, points):
        found = limits.finished(part, _solved(part, crew or Crew(), tuple(slopes)))
        if part.phase in limits.REFUSED:
            found["status"][:] = limits.REFUSED[part.phase]
        for name, values in _without_failures(found).items():
            columns.setdefault(name, np.zeros(len(points), values.dtype))[part.index] = values
    return limits.settled(columns, limits.negligible(points))


def _solved(part: limits.Part, crew: Crew, slopes: tuple[str, ...]) -> Columns:
    """Every predicted quantity at finite parameters."""
    model, points, together = part.model, part.points, channel_of(part.model).batch

    def run(solver: Callable[[SaddlePoint], Outcome], index: Integers) -> Columns:
        # the same batches whoever runs them, so that results are the same to the bit
        chunks = np.array_split(index, -(-len(index) // together))
        found = crew.run([Batch(model, points[chunk], solver, slopes) for chunk in chunks])
        return {name: np.concatenate([columns[name] for columns in found]) for name in found[0]}

    found = run(solve, np.arange(len(points)))
    lost = np.flatnonzero(found["status"] != Status.CONVERGED)
    if lost.size:  # collected from all chunks: a small batch costs almost as much as a large one
        rescued = run(rescue, lost)
        for name, values in found.items():
            values[lost] = rescued[name] + (values[lost] if name == "iterations" else 0)
    return found


def _quantities(model: Model, problem: SaddlePoint, outcome: Outcome) -> Columns:
    """Named results of a solved batch, and how their solves ended."""
    points, channel = problem.points, problem.channel
    with np.errstate(all="ignore"):
        at = closing(points, outcome.e, model.teacher.rho)
        o = overlaps(model.features, at)
        found = {
            **channel.errors(outcome.x, o),
            "training_loss": outcome.data_loss + 0.5 * points.lam * o.q_w / points.alpha,
            "alignment": o.M / np.sqrt(o.M**2 + o.deficit),
            "V": o.V,
            "Q": o.Q,
            "M": o.M,
            "q_w": o.q_w,
            **model.features.further_overlaps(at),
            "intercept": channel.intercept(outcome.x),
        }
    unsettled = np.isnan(found["generalisation_error"]) & (outcome.status == Status.CONVERGED)
    low, high = model.loss.rest
    if model.task is Task.REGRESSION and low == high != 0 and np.isfinite(low):
        # residuals gather around a value that is not zero, and rounding of it is magnified by V
        unsettled |= found["V"] * abs(low) > DIGITS * np.exp(0.5 * outcome.x[:, 1])
    outcome.status[unsettled] = Status.QUADRATURE
    return {**found, **outcome.columns}


def _without_failures(found: Columns) -> Columns:
    """Results of which a point that has failed keeps nothing but its certificates."""
    failed = found["status"] != Status.CONVERGED
    for name in set(found).difference(CERTIFICATES):
        found[name][failed] = np.nan
    return found


def _slopes(problem: SaddlePoint, outcome: Outcome, parameters: Sequence[str]) -> Columns:
    """Derivatives of the test errors by the logarithm of each parameter."""
    found: Columns = {}
    with np.errstate(all="ignore"):
        moved = tangents(problem, outcome.e, outcome.matrix, parameters)
        for parameter, along in moved.items():
            for name, values in slope_along(problem.channel.test_errors, outcome.x, along).items():
                found[f"{name}_by_log_{parameter}"] = values
    return found
