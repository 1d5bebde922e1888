"""From a model and its ratios to every predicted quantity, in bounded memory, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.errors import IncompatibleIngredientsError
from hiddenmanifold.losses import Square
from hiddenmanifold.model import Model, Points
from hiddenmanifold.numerics.newton import Status
from hiddenmanifold.numerics.processes import can_fork
from hiddenmanifold.teachers import BinaryTeacher, Linear
from hiddenmanifold.theory import limits, observables
from hiddenmanifold.theory.channel import BinaryChannel, Channel, LinearChannel
from hiddenmanifold.theory.closed_forms import SquareBinaryChannel, SquareLinearChannel
from hiddenmanifold.theory.overlaps import Overlaps, closing, overlaps
from hiddenmanifold.theory.saddle_point import Outcome, SaddlePoint, rescue, solve
from hiddenmanifold.theory.sensitivity import slope_along, tangents

Array = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

DIGITS = 1e9
"""Largest ratio of two lengths whose difference still has enough digits."""


def channel_of(model: Model) -> Channel:
    """The channel of a model: closed form for the square loss, panels otherwise."""
    teacher, loss, square = model.teacher, model.loss, isinstance(model.loss, Square)
    if isinstance(teacher, Linear):
        # an even loss on centred labels leaves the intercept at zero
        free = model.free_intercept and not loss.even
        return (SquareLinearChannel if square else LinearChannel)(teacher, loss, free)
    if not isinstance(teacher, BinaryTeacher):
        raise IncompatibleIngredientsError(f"no theory is known for teacher {teacher}")
    free = model.free_intercept and not teacher.symmetric
    return (SquareBinaryChannel if square else BinaryChannel)(teacher, loss, free)


def asymptotics(
    model: Model, points: Points, workers: int | None = None, *, slopes: Sequence[str] = ()
) -> Columns:
    """Every predicted quantity at each point of flat arrays of ratios.

    Parameters
    ----------
    model : Model
        What is learned.
    points : Points
        Flat arrays alpha, gamma, lam of one length; lam may be zero or infinite, for the limits.
    workers : int, optional
        Processes (threads, where forking is not safe); by default one per core.
    slopes : sequence of str
        Parameters out of `PARAMETERS` by whose logarithm to differentiate the errors.
    """
    columns: Columns = {}
    for part in limits.parts(model, points):
        found = limits.finished(part, _solved(part, workers, slopes))
        for name, values in found.items():
            columns.setdefault(name, np.zeros(len(points.lam), values.dtype))[part.index] = values
    return limits.settled(columns, limits.negligible(points))


def _solved(part: limits.Part, workers: int | None, slopes: Sequence[str]) -> Columns:
    """Every predicted quantity at finite parameters."""
    model, points = part.model, part.points
    channel = channel_of(model)
    workers = workers or os.cpu_count() or 1

    def run(solver: Callable[[SaddlePoint], Outcome], index: NDArray[np.intp]) -> Columns:
        def solved(chunk: NDArray[np.intp]) -> Columns:
            problem = SaddlePoint(channel, model.features, points[chunk], part.fitted)
            outcome = solver(problem)
            found = _quantities(model, problem, outcome)
            return {**found, **_slopes(model, problem, outcome, slopes)} if slopes else found

        # the same chunks whatever the number of workers, so that results are the same to the bit
        chunks = np.array_split(index, -(-len(index) // channel.batch))
        shared = workers > 1 and len(chunks) > 1
        parts = (
            in_parallel(solved, chunks, workers) if shared else [solved(chunk) for chunk in chunks]
        )
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    found = run(solve, np.arange(len(points.lam)))
    lost = np.flatnonzero(found["status"] != Status.CONVERGED)
    if lost.size:  # collected from all chunks: a small batch costs almost as much as a large one
        rescued = run(rescue, lost)
        for name, values in found.items():
            values[lost] = rescued[name] + (values[lost] if name == "iterations" else 0)
    return found


def in_parallel(
    part: Callable[[NDArray[np.intp]], Columns], chunks: list[NDArray[np.intp]], workers: int
) -> list[Columns]:
    """Map chunks on forked processes, or on threads where forking is not safe.

    Threads gain little: the arrays are small enough for the cache, so that the interpreter's lock
    changes hands too often.
    """
    if not can_fork():
        with ThreadPoolExecutor(workers) as threads:
            return list(threads.map(part, chunks))
    context = get_context("fork")  # hands `part` over as it is: a lambda in it need not be sent
    with ProcessPoolExecutor(workers, context, initializer=_inherit, initargs=(part,)) as pool:
        return list(pool.map(_inherited, chunks))


_work: list[Callable[[NDArray[np.intp]], Columns]] = []


def _inherit(part: Callable[[NDArray[np.intp]], Columns]) -> None:
    _work[:] = [part]


def _inherited(chunk: NDArray[np.intp]) -> Columns:
    return _work[0](chunk)


def _quantities(model: Model, problem: SaddlePoint, outcome: Outcome) -> Columns:
    """Named results of a solved batch; a point that did not converge is NaN throughout."""
    points = problem.points
    with np.errstate(all="ignore"):
        at = closing(points, outcome.e, model.teacher.rho)
        o = overlaps(model.features, at)
        found = {
            **_errors(model, problem.channel, outcome, o),
            "training_loss": outcome.data_loss + 0.5 * points.lam * o.q_w / points.alpha,
            "alignment": o.M / np.sqrt(o.M**2 + o.deficit),
            "V": o.V,
            "Q": o.Q,
            "M": o.M,
            "q_w": o.q_w,
            **model.features.further_overlaps(at),
            "intercept": problem.channel.intercept(outcome.x),
        }
    unsettled = np.isnan(found["generalisation_error"]) & (outcome.status == Status.CONVERGED)
    low, high = model.loss.rest
    if isinstance(model.teacher, Linear) and low == high != 0 and np.isfinite(low):
        # residuals gather around a value that is not zero, and rounding of it is magnified by V
        unsettled |= found["V"] * abs(low) > DIGITS * np.exp(0.5 * outcome.x[:, 1])
    outcome.status[unsettled] = Status.QUADRATURE
    failed = outcome.status != Status.CONVERGED
    for values in found.values():
        values[failed] = np.nan
    return {
        **found,
        "status": outcome.status.astype(np.int8),
        "residual": outcome.residual,
        "quadrature_error": outcome.quadrature_error,
        "iterations": outcome.iterations,
    }


def _errors(model: Model, channel: Channel, outcome: Outcome, o: Overlaps) -> Columns:
    """Test errors against noisy and clean labels, and the training error of a classifier."""
    teacher, x = model.teacher, outcome.x
    if isinstance(teacher, Linear):  # the overlaps know the excess below rounding of the noise
        clean = o.excess + channel.intercept(x) ** 2
        return {"generalisation_error": clean + teacher.noise, "clean_error": clean}
    assert isinstance(teacher, BinaryTeacher)
    k, V0, deviation, b = _standardised(teacher, channel, x)
    training = observables.training_error(
        teacher, model.loss, V=np.exp(x[:, 0]), deviation=deviation, k=k, V0=V0, intercept=b
    )
    return {**_test_errors(model, channel, x), "training_error": training}


def _test_errors(model: Model, channel: Channel, x: Array) -> Columns:
    """Test errors as functions of the unknowns alone."""
    teacher = model.teacher
    if isinstance(teacher, Linear):
        error = np.exp(x[:, 1]) + channel.intercept(x) ** 2
        return {"generalisation_error": error, "clean_error": error - teacher.noise}
    assert isinstance(teacher, BinaryTeacher)
    k, V0, deviation, b = _standardised(teacher, channel, x)
    return {
        "generalisation_error": observables.test_error(teacher, k, V0, b / deviation),
        "clean_error": observables.test_error(teacher.clean, k, V0, b / deviation),
    }


def _standardised(
    teacher: BinaryTeacher, channel: Channel, x: Array
) -> tuple[Array, Array, Array, Array]:
    """Slope and variance of the teacher's field given the prediction, its deviation and mean."""
    k, V0 = np.sqrt(teacher.rho) * np.tanh(x[:, 2]), teacher.rho / np.cosh(x[:, 2]) ** 2
    return k, V0, np.exp(0.5 * x[:, 1]), channel.intercept(x)


def _slopes(
    model: Model, problem: SaddlePoint, outcome: Outcome, parameters: Sequence[str]
) -> Columns:
    """Derivatives of the test errors by the logarithm of each parameter."""
    found = {}
    with np.errstate(all="ignore"):
        for parameter, along in tangents(problem, outcome, parameters).items():
            for name, values in slope_along(
                lambda x: _test_errors(model, problem.channel, x), outcome.x, along
            ).items():
                values[outcome.status != Status.CONVERGED] = np.nan
                found[f"{name}_by_log_{parameter}"] = values
    return found
