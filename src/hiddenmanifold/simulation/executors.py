"""Run trials on all cores, in any order, through ``concurrent.futures``."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.numerics.processes import can_fork
from hiddenmanifold.simulation.experiment import Trial

Array = NDArray[np.float64]
Result = dict[str, Array]


def number_of_workers(workers: int | None, trials: int) -> int:
    """How many trials run at once: one per core by default."""
    return min(workers or os.cpu_count() or 1, trials)


def collect(
    trials: Sequence[Trial], names: Sequence[str], executor: Executor | int, *, progress: bool
) -> Result:
    """Every quantity of all trials, in their order; NaN for those a Ctrl-C left unfinished.

    Parameters
    ----------
    trials : sequence of Trial
        What to run, all with as many regularisations.
    names : sequence of str
        The quantities.
    executor : Executor or int
        Where to run them, or on how many workers of this machine.
    progress : bool
        Whether to show a bar.
    """
    results: dict[int, Result] = {}
    bar = None
    try:
        with _local(trials[0], executor) if isinstance(executor, int) else _given(executor) as pool:
            for number, result in _finished(trials, pool):
                results[number] = result
                if progress:  # not before the workers are there: a bar has a thread of its own
                    bar = bar or _bar(len(trials))
                    bar.advance(bar.task_ids[0])
    except KeyboardInterrupt:
        if not results:
            raise
    finally:
        if bar:
            bar.stop()
    missing = dict.fromkeys(names, np.full(len(trials[0].lams), np.nan))
    return {
        name: np.array([results.get(number, missing)[name] for number in range(len(trials))])
        for name in names
    }


def _run(trial: Trial) -> Result:
    return trial.run()


def _finished(trials: Sequence[Trial], executor: Executor | None) -> Iterator[tuple[int, Result]]:
    """Yield (number, result) as trials finish."""
    if executor is None:
        for number, trial in enumerate(trials):
            yield number, trial.run()
        return
    futures = {executor.submit(_run, trial): number for number, trial in enumerate(trials)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


@contextmanager
def _given(executor: Executor) -> Iterator[Executor]:
    """The user's own executor, which stays open."""
    yield executor


@contextmanager
def _local(trial: Trial, workers: int) -> Iterator[Executor | None]:
    """Forked processes where that is safe, threads otherwise, None for one worker.

    Processes only for trials that can be pickled, as they are sent one by one. Wherever a trial
    runs, its linear algebra has one thread, so that its results are the same to the last bit.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if workers == 1:
            yield None
        elif can_fork() and _can_travel(trial):
            with _processes(workers) as processes:
                yield processes
        else:
            threads = ThreadPoolExecutor(workers)
            try:
                yield threads
            finally:
                threads.shutdown(cancel_futures=True)


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """A pool of forked processes, gone with all its threads at the end: the next can fork again."""
    before = set(active_children())
    pool = ProcessPoolExecutor(workers, get_context("fork"), initializer=_enter)
    try:
        yield pool
    except BaseException:  # nobody will read what still runs
        for child in set(active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _enter() -> None:
    """Keep a worker to one thread, as all of them fill the cores.

    A Ctrl-C, which reaches the workers too, is to end them without a traceback from each.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _can_travel(trial: Trial) -> bool:
    try:
        pickle.dumps(trial)
    except Exception:  # a lambda in a custom ingredient
        return False
    return True


def _bar(total: int) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    bar = Progress("simulating", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar.add_task("simulate", total=total)
    bar.start()
    return bar
