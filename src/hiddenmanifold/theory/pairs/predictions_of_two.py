"""Every predicted quantity of two fits of the same labels, at given points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hiddenmanifold.arrays import Columns, Integers, chunks, joined
from hiddenmanifold.errors import Status
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.theory.limits import Part, parts
from hiddenmanifold.theory.pairs.two_models import MeanOfTwo
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import Request, quantities
from hiddenmanifold.theory.scores.distribution import Observed
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.settings import STANDARD
from hiddenmanifold.theory.solver.strategy import rescue, solve

OF_EITHER = (
    ("V", "Q", "M", "q_w", "alignment", "intercept", "training_loss", "training_error", "margin")
    + ("q_s", "m_s", "V_s", "V_w")
    + tuple(f"{name}_normalised" for name in ("Q", "M", "q_s", "m_s", "intercept"))
)
"""Quantities of either fit."""


@dataclass(frozen=True)
class TwoProblems:
    """Two models at points to solve together: one job of a worker."""

    problems: tuple[SaddlePoint, SaddlePoint]
    parts: tuple[Part, Part]
    mean: MeanOfTwo
    observables: Mapping[str, Observed] = field(default_factory=dict)
    lost: bool = False

    def run(self) -> Columns:
        """What both have in common, and their own quantities (points, fits)."""
        method = rescue if self.lost else solve
        solved = method(self.problems[0]), method(self.problems[1])
        found = [
            part.finished(quantities(s, Request(loss=part.loss, scale=part.scale)))
            for s, part in zip(solved, self.parts, strict=True)
        ]
        first, second = self.parts
        loss = first.loss if first.loss == second.loss else None
        scales = min(first.scale, HUGE), min(second.scale, HUGE)
        columns, certificate = self.mean(
            solved, scales, Request(observables=self.observables, loss=loss)
        )
        for name in OF_EITHER:
            if any(name in own for own in found):
                nothing = np.full(len(certificate.status), np.nan)
                columns[name] = np.stack([own.get(name, nothing) for own in found], axis=1)
        statuses = [certificate.status, *(own["status"] for own in found)]
        status = np.select([s != Status.CONVERGED for s in statuses], statuses, Status.CONVERGED)
        integrals = [v for name, v in columns.items() if name in self._integrals]
        unsettled = np.isnan(np.column_stack(integrals)).any(1)
        certificate.status = np.where(unsettled & (status == 0), Status.QUADRATURE, status)
        for values in columns.values():
            values[certificate.status != Status.CONVERGED] = np.nan
        return {**columns, **certificate.columns}

    @property
    def _integrals(self) -> tuple[str, ...]:
        """Quantities that are NaN only if an integral did not settle."""
        return ("generalisation_error", "probability_difference", *self.observables)


def asymptotics_of_two(
    models: tuple[Model, Model],
    points: tuple[Points, Points],
    workers: Workers,
    mean: MeanOfTwo,
    *,
    observables: Mapping[str, Observed] | None = None,
    copies: Copies = ONCE,
) -> Columns:
    """Every predicted quantity of two fits at some points, limits included."""
    columns: Columns = {}
    for index, both in _parts(models, points, copies.drawn):
        first, second = (SaddlePoint.of(p.model, p.points, STANDARD, copies) for p in both)
        job = TwoProblems((first, second), both, mean, dict(observables or {}))
        for name, values in _predicted(job, workers).items():
            shape = (len(points[0]), *values.shape[1:])
            columns.setdefault(name, np.zeros(shape, values.dtype))[index] = values
    return columns


def _parts(
    models: tuple[Model, Model], points: tuple[Points, Points], drawn: float
) -> Iterator[tuple[Integers, tuple[Part, Part]]]:
    """Points at which both models have one phase each, with these parts of both."""
    for first in parts(models[0], points[0], drawn):
        for second in parts(models[1], points[1][first.index], drawn):
            yield first.index[second.index], (_taken(first, second.index), second)


def _taken(part: Part, some: Integers) -> Part:
    """Some points of a part; their places among all points stay in `index`."""
    shrinkage = part.shrinkage
    own = shrinkage[some] if isinstance(shrinkage, np.ndarray) else shrinkage
    return replace(part, index=part.index[some], points=part.points[some], shrinkage=own)


def _predicted(job: TwoProblems, workers: Workers) -> Columns:
    """Every quantity at the points of a job, which is divided into smaller ones."""
    together = max(1, min(problem.channel.batch for problem in job.problems) // 2)
    index = np.arange(len(job.problems[0].points))
    found = joined(workers.run([_of(job, some) for some in chunks(index, together)]))
    lost = np.flatnonzero(found["status"] != Status.CONVERGED)
    if lost.size:
        again = [_of(job, some, lost=True) for some in chunks(lost, together)]
        rescued = joined(workers.run(again))
        for name, values in found.items():
            values[lost] = rescued[name] + (values[lost] if name == "iterations" else 0)
    return found


def _of(job: TwoProblems, some: Integers, *, lost: bool = False) -> TwoProblems:
    """The job of some of its points."""
    return replace(
        job,
        problems=(job.problems[0][some], job.problems[1][some]),
        parts=(_taken(job.parts[0], some), _taken(job.parts[1], some)),
        lost=lost,
    )
