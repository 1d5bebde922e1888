"""Run trials on all cores, in any order, through ``concurrent.futures``."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import (
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.numerics.processes import can_fork
from hiddenmanifold.simulation.experiment import Trial

Array = NDArray[np.float64]
Result = dict[str, Array]


def _one_thread() -> None:
    """Keep the linear algebra of a worker to one thread: the workers fill the cores."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def _run(trial: Trial) -> Result:
    return trial.run()


@contextmanager
def local_executor(trial: Trial, workers: int | None) -> Iterator[Executor | None]:
    """Forked processes where that is safe, threads otherwise, None for one worker.

    Trials are sent to the workers one by one, so they must be such as can be pickled.
    """
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        yield None
    elif can_fork() and _can_travel(trial):
        pool = ProcessPoolExecutor(workers, get_context("fork"), initializer=_one_thread)
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    else:
        with ThreadPoolExecutor(workers) as threads:
            yield threads


def _can_travel(trial: Trial) -> bool:
    try:
        pickle.dumps(trial)
    except Exception:  # a lambda in a custom ingredient
        return False
    return True


def run_all(
    trials: Iterable[tuple[int, Trial]], executor: Executor | None
) -> Iterator[tuple[int, Result]]:
    """Yield (number, result) as trials finish."""
    from threadpoolctl import threadpool_limits

    if executor is None:
        with threadpool_limits(1):
            for number, trial in trials:
                yield number, trial.run()
        return
    futures = {executor.submit(_run, trial): number for number, trial in trials}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()
