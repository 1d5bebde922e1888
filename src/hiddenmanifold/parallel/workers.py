"""Run jobs here, in threads, in processes or on an executor, with the same results."""

from __future__ import annotations

import os
import pickle
import platform
import threading
import time
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import closing
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from hiddenmanifold.checks import check_count
from hiddenmanifold.errors import HiddenManifoldError, InvalidArgumentError
from hiddenmanifold.parallel.processes import allowed, processes
from hiddenmanifold.parallel.progress import Progress

LONG = 3.0
"""Seconds of work, on one core, that are worth starting processes for.

Processes start in half a second. Measured on two cores, two of them then do theory 1.95 times as
fast as one and two threads 1.8 times, but two threads do simulations only 1.15 times as fast. With
1.5 or 6 s one of the two kinds of work would lose half a second."""
SAMPLE = 2
"""Jobs per worker, run in threads, from whose time that of the others is estimated."""
AHEAD = 3
"""Bundles of jobs on their way to an executor, per job that it runs at once."""
BUNDLE = 0.5
"""Seconds that a bundle of short jobs takes, about."""
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Job(Protocol[R_co]):
    """A piece of work as a value: it depends on nothing but itself, so it can run anywhere."""

    def run(self) -> R_co:
        """Do the work; each time with the same result."""


class LostWorkerError(HiddenManifoldError, BrokenExecutor):
    """A worker ended before its work was done."""


class Workers:
    """Where jobs run: here, in threads, in processes or on an executor.

    Parameters
    ----------
    workers : int, optional
        How many jobs run at once on this machine, at most; by default one per core.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to run them instead; it stays open.
    progress : bool, optional
        Whether to show how far they are; by default in a terminal and in a notebook.

    Attributes
    ----------
    used : int
        How many workers shared the jobs of one call, at most.
    progress : Progress
        How far the jobs are.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or a job cannot be sent to another process.
    LostWorkerError
        If a worker dies.
    """

    def __init__(
        self, workers: int | None = None, executor: Any = None, progress: bool | None = False
    ) -> None:
        self.count = None if workers is None else check_count("workers", workers)
        if hasattr(executor, "get_executor"):  # a client of Dask
            executor = executor.get_executor(pure=False)
        if executor is not None and not isinstance(executor, Executor):
            choices = "a concurrent.futures.Executor or a dask.distributed.Client"
            raise InvalidArgumentError("executor", executor, choices)
        self.executor = executor
        self.progress = Progress(progress)
        self.used = 1

    def run(self, jobs: Sequence[Job[R]]) -> list[R]:
        """The results of all jobs, in their order."""
        results = dict(self.finished(jobs))
        return [results[number] for number in range(len(jobs))]

    def finished(
        self, jobs: Sequence[Job[R]], seconds: Sequence[float] | None = None
    ) -> Generator[tuple[int, R], None, None]:
        """Yield number and result of each job as it ends; what a job raises is raised here.

        `seconds` are estimates of how long each job takes, if they are known. They decide where
        the jobs run, and how much of the work is done after some of them.
        """
        places, at_once = set(), self.at_once(len(jobs))
        most = at_once if self.executor is None else len(jobs)
        shares = [1.0] * len(jobs) if seconds is None else seconds
        with (
            self.progress.of(shares, at_once, in_seconds=seconds is not None),
            closing(self._outcomes(jobs, seconds)) as outcomes,
        ):
            for number, outcome in outcomes:
                places.add(outcome.place)
                self.used = max(self.used, min(len(places), most))
                if outcome.error is not None:
                    raise outcome.error
                self.progress.advance(shares[number], outcome.seconds)
                yield number, outcome.result

    def at_once(self, jobs: int) -> int:
        """How many of so many jobs run at once on this machine."""
        if self.executor is not None:
            return 1
        return max(1, min(self.count or cores(), jobs))

    def _outcomes(self, jobs: Jobs, seconds: Sequence[float] | None) -> Outcomes:
        count = self.at_once(len(jobs))
        numbers = range(len(jobs))
        if self.executor is not None:
            yield from _submitted(jobs, numbers, self.executor, cores())
        elif count == 1:
            for number, job in enumerate(jobs):
                yield number, _attempt(job)
        elif seconds is not None:
            yield from _shared(jobs, numbers, count, sum(seconds))
        else:
            spent = 0.0
            first, others = numbers[: SAMPLE * count], numbers[SAMPLE * count :]
            for number, outcome in _threaded(jobs, first, count):
                spent += outcome.seconds
                yield number, outcome
            yield from _shared(jobs, others, count, spent * len(others) / len(first))


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a job, and where it ran: machine, process and thread."""

    place: tuple[str, int, int]
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


Jobs = Sequence[Job[Any]]
Outcomes = Generator[tuple[int, _Outcome], None, None]


def _attempt(job: Job[Any]) -> _Outcome:
    place = platform.node(), os.getpid(), threading.get_ident()
    begun = time.perf_counter()
    try:
        result = job.run()
    except BaseException as error:
        return _Outcome(place, error=error)
    return _Outcome(place, result, seconds=time.perf_counter() - begun)


def _shared(jobs: Jobs, numbers: range, count: int, seconds: float) -> Outcomes:
    """Outcomes of jobs that take so many seconds on one core: from processes if that is long."""
    if seconds < LONG or not allowed() or not _sendable(jobs[0]):
        yield from _threaded(jobs, numbers, count)
    else:
        with processes(count) as executor:
            yield from _submitted(jobs, numbers, executor, count)


# ---------------------------------------------------------------- threads


def _threaded(jobs: Jobs, numbers: range, count: int) -> Outcomes:
    """Outcomes from threads.

    A Ctrl-C does not wait for them: each finishes its job, and as a daemon it does not keep the
    interpreter from ending, unlike one of a ThreadPoolExecutor.
    """
    waiting: SimpleQueue[int | None] = SimpleQueue()
    ended: SimpleQueue[tuple[int, _Outcome]] = SimpleQueue()
    left = threading.Event()

    def serve() -> None:
        while (number := waiting.get()) is not None and not left.is_set():
            ended.put((number, _attempt(jobs[number])))

    for entry in (*numbers, *[None] * count):
        waiting.put(entry)
    for _ in range(min(count, len(numbers))):
        threading.Thread(target=serve, daemon=True).start()
    try:
        for _ in numbers:
            yield ended.get()
    finally:
        left.set()


# ---------------------------------------------------------------- executors


def _submitted(jobs: Jobs, numbers: range, executor: Executor, places: int) -> Outcomes:
    """Outcomes from an executor that runs so many jobs at once, or more, as is seen then.

    Short jobs travel together, and only a few more than the workers can hold are on their way: a
    million jobs fill no memory. What a future raises is no fault of a job, whose errors are part of
    its outcome: the executor has lost it.
    """
    travelling: dict[Future[list[_Outcome]], range] = {}
    together, seen = 1, set[tuple[str, int, int]]()
    try:
        while numbers or travelling:
            places = max(places, len(seen))
            while numbers and len(travelling) < AHEAD * places:
                some, numbers = numbers[:together], numbers[together:]
                travelling[_sent([jobs[number] for number in some], executor)] = some
            done = wait_for(travelling, return_when=FIRST_COMPLETED).done
            for future in [future for future in travelling if future in done]:  # in their order
                outcomes = future.result()
                yield from zip(travelling.pop(future), outcomes, strict=True)
                seen.update(outcome.place for outcome in outcomes)
                seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
                share = len(numbers) // (AHEAD * places)  # none waits for one long bundle
                together = max(1, min(int(BUNDLE / max(seconds, 1e-9)), share))
    except InvalidArgumentError:
        raise
    except Exception as error:
        lost = len(numbers) + sum(map(len, travelling.values()))
        raise LostWorkerError(
            f"a worker ended before its work was done, {lost} of {len(jobs)} jobs are missing. "
            "Perhaps memory ran out (fewer workers need less), a worker cannot import what it was "
            f"sent, or the scheduler of the cluster is gone ({str(error) or type(error).__name__})"
        ) from error
    finally:
        for future in travelling:
            future.cancel()


def _sent(jobs: Jobs, executor: Executor) -> Future[list[_Outcome]]:
    """Jobs on their way to an executor, lambdas included."""
    if isinstance(executor, ThreadPoolExecutor):
        return executor.submit(_attempt_all, jobs)
    import cloudpickle

    try:
        message = cloudpickle.dumps(jobs)
    except Exception as error:
        raise InvalidArgumentError.because(
            "model",
            f"cannot be sent to the processes of this executor ({error})",
            "workers= or a ThreadPoolExecutor take it as it is",
        ) from error
    return executor.submit(_attempt_there, message)


def _sendable(job: Job[Any]) -> bool:
    import cloudpickle

    try:
        cloudpickle.dumps(job)
    except Exception:
        return False
    return True


def _attempt_all(jobs: Jobs) -> list[_Outcome]:
    return [_attempt(job) for job in jobs]


def _attempt_there(message: bytes) -> list[_Outcome]:
    """Outcomes of jobs that were sent to this process, fit to be sent back."""
    outcomes = _attempt_all(pickle.loads(message))
    return [replace(one, error=one.error and _portable(one.error)) for one in outcomes]


def _portable(error: BaseException) -> BaseException:
    """The error with its traceback as a note, or its text if it would not survive the journey."""
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception_only(error)).strip())
    return error
