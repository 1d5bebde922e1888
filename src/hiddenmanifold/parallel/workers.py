"""Run values that know how to run: here, on forked processes, or on anybody's executor."""

from __future__ import annotations

import os
import pickle
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from inspect import isroutine
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeVar

from hiddenmanifold.checks import check_count
from hiddenmanifold.errors import HiddenManifoldError, InvalidArgumentError, shown
from hiddenmanifold.parallel.progress import Progress

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
    """Who runs jobs: processes of this machine, or an executor. Results do not depend on it.

    Parameters
    ----------
    workers : int, optional
        How many jobs run at once on this machine, at most; by default one per core.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to run them instead; it stays open.
    progress : bool, optional
        Whether to show how far they are; by default on a terminal.

    Attributes
    ----------
    used : int
        How many workers shared the jobs of one call, at most.
    progress : Progress
        How far the jobs are.

    Raises
    ------
    InvalidArgumentError
        If either makes no sense, or an executor cannot send a job to its workers.
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
            allowed = "a concurrent.futures.Executor or a dask.distributed.Client"
            raise InvalidArgumentError("executor", executor, allowed)
        self.executor = executor
        self.progress = Progress(progress)
        self.used = 1

    def run(self, jobs: Sequence[Job[R]]) -> list[R]:
        """The results of all jobs, in their order."""
        results = dict(self.finished(jobs))
        return [results[number] for number in range(len(jobs))]

    def finished(
        self, jobs: Sequence[Job[R]], *, threads: bool = False
    ) -> Generator[tuple[int, R], None, None]:
        """Yield number and result of each job as it ends; what a job raises is raised here.

        `threads` says whether threads speed the jobs up where no process can be forked: not if they
        hold the interpreter's lock most of the time.
        """
        places = set()
        with self.progress.of(len(jobs)), closing(self._outcomes(jobs, threads)) as outcomes:
            for number, outcome in outcomes:
                places.add(outcome.place)
                self.used = max(self.used, len(places))
                if outcome.error is not None:
                    raise outcome.error
                self.progress.advance()
                yield number, outcome.result

    def at_once(self, jobs: int, *, threads: bool = False) -> int:
        """How many of so many jobs this process would run at once; one, in a worker of a pool."""
        divided = can_fork() or (threads and not current_process().daemon)
        if self.executor is not None or not divided:
            return 1
        return max(1, min(self.count or os.cpu_count() or 1, jobs))

    def _outcomes(self, jobs: Jobs, threads: bool) -> Outcomes:
        if self.executor is not None:
            return _submitted(jobs, self.executor)
        count = self.at_once(len(jobs), threads=threads)
        if count == 1:
            return ((number, _attempt(job)) for number, job in enumerate(jobs))
        return _forked(jobs, count) if can_fork() else _threaded(jobs, count)


def can_fork() -> bool:
    """Whether this process can be forked safely: on Linux, while it has no other threads.

    A forked worker inherits everything, so that functions typed into a session need not be sent
    to it, and a script needs no main guard. A daemonic process may not have children.
    """
    lone = threading.active_count() == 1 and not current_process().daemon
    return sys.platform == "linux" and lone


@dataclass(frozen=True)
class _Outcome:
    """What became of a job, and where: machine, process and thread."""

    place: tuple[str, int, int]
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0

    def __reduce__(self) -> tuple[object, ...]:  # on its way to another process
        error = None if self.error is None else _portable(self.error)
        return _Outcome, (self.place, self.result, error, self.seconds)


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


def _attempt_all(jobs: Jobs) -> list[_Outcome]:
    return [_attempt(job) for job in jobs]


def _portable(error: BaseException) -> BaseException:
    """The error with its traceback as a note, or its text if it would not survive the journey."""
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception_only(error)).strip())
    return error


# ---------------------------------------------------------------- executors


def _submitted(jobs: Jobs, executor: Executor) -> Outcomes:
    """Outcomes from an executor; whatever its futures raise has to do with it, not with a job.

    Short jobs travel together, and only a few more than the workers can hold are on their way: a
    million jobs fill no memory.
    """
    travelling: dict[Future[list[_Outcome]], range] = {}
    first, together = 0, 1
    try:
        while first < len(jobs) or travelling:
            places = _places(executor)
            while first < len(jobs) and len(travelling) < AHEAD * places:
                numbers = range(first, min(first + together, len(jobs)))
                sent = executor.submit(_attempt_all, [jobs[number] for number in numbers])
                travelling[sent] = numbers
                first = numbers.stop
            done = wait_for(travelling, return_when=FIRST_COMPLETED).done
            for future in [future for future in travelling if future in done]:  # in their order
                outcomes = future.result()
                numbers = travelling.pop(future)
                yield from zip(numbers, outcomes, strict=True)
                seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
                share = (len(jobs) - first) // (AHEAD * places)  # none waits for one long bundle
                together = max(1, min(int(BUNDLE / max(seconds, 1e-9)), share))
    except Exception as error:
        _explain(error, jobs, executor)
        raise
    finally:
        for future in travelling:
            future.cancel()


def _places(executor: Executor) -> int:
    """How many jobs an executor runs at once, as far as it says."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return max(1, int(sum(client.nthreads().values())))
    count: int = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    return count


def _explain(error: Exception, jobs: Jobs, executor: Executor) -> None:
    """Raise a sentence, if there is one for what went wrong on an executor."""
    sent = not isinstance(executor, ThreadPoolExecutor)
    if sent and (culprit := _unpicklable("job", jobs[0])):
        raise InvalidArgumentError.because(
            culprit[0],
            f"= {shown(culprit[1])} cannot be sent to the processes of this executor",
            "make it of functions defined at the top level of a module; workers= or a "
            "ThreadPoolExecutor take it as it is",
        ) from error
    # those of Dask, which is not imported here: a worker that died again and again, a scheduler
    # that is gone
    lost = ("KilledWorker", "CommClosedError", "FutureCancelledError", "ClosedClientError")
    broken = isinstance(error, BrokenExecutor | CancelledError | OSError)
    if broken or type(error).__name__ in lost:
        raise LostWorkerError(
            f"the executor broke: {error} It may have run out of memory, its processes cannot "
            "import what they were sent, or the scheduler of the cluster is gone"
        ) from error


def _unpicklable(name: str, value: object) -> tuple[str, object] | None:
    """Name and value of the innermost object that cannot be pickled; a function is its owner's."""
    try:
        pickle.dumps(value)
    except Exception:
        parts = ((k, v) for k, v in vars(value).items() if hasattr(v, "__dict__"))
        found = (_unpicklable(*part) for part in parts if not isroutine(part[1]))
        return next(filter(None, found), (name, value))
    return None


def _threaded(jobs: Jobs, count: int) -> Outcomes:
    with ThreadPoolExecutor(count) as pool:
        yield from _submitted(jobs, pool)


# ---------------------------------------------------------------- forked processes


def _forked(jobs: Jobs, count: int) -> Outcomes:
    """Outcomes from processes that inherit the jobs: only numbers are sent, and results back."""
    waiting = iter(range(len(jobs)))
    with _processes(jobs, count) as ends:
        try:
            for end, first in zip(ends, waiting, strict=False):
                end.send(first)
            busy = set(ends)
            while busy:
                for end in busy.intersection(wait(busy)):
                    yield end.recv()
                    following = next(waiting, None)
                    if following is None:
                        busy.remove(end)
                    else:
                        end.send(following)
        except (EOFError, OSError) as error:
            raise LostWorkerError(
                "a worker process ended before its work was done, perhaps for lack of memory: "
                "fewer workers need less"
            ) from error


@contextmanager
def _processes(jobs: Jobs, count: int) -> Iterator[list[Connection]]:
    """Forked processes at the other ends of pipes.

    Unlike a pool of `concurrent.futures` they need no thread, which would stand in the way of the
    next fork, and stumble over a Ctrl-C.
    """
    import scipy.special  # noqa: F401  # here once, not in every process of every call

    context = get_context("fork")
    processes, ends = [], []
    try:
        with _interrupts_held():
            for _ in range(count):
                ours, theirs = context.Pipe()
                ends.append(ours)
                process = context.Process(target=_serve, args=(jobs, theirs, ends), daemon=True)
                process.start()
                processes.append(process)
                theirs.close()
        yield ends
    finally:
        for process in processes:
            process.kill()
            process.join()
        for end in ends:
            end.close()


def _serve(jobs: Jobs, end: Connection, others: Sequence[Connection]) -> None:
    """The life of a worker: run the jobs it is told to, until the parent is gone."""
    for other in others:  # the parent's ends: were they open here too, its end would go unnoticed
        other.close()
    with suppress(EOFError, BrokenPipeError):
        while True:
            number = end.recv()
            end.send((number, _attempt(jobs[number])))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let a Ctrl-C wait; processes forked inside never see one, their parent ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
