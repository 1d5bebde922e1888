"""Run trials on all cores, in any order, through ``concurrent.futures``."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import (
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context

import numpy as np
from numpy.typing import NDArray

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
    """Processes for a model that can be sent to them, threads otherwise, None for one worker."""
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        yield None
        return
    try:
        pickle.dumps(trial)
    except Exception:  # a lambda in a custom ingredient: stay in this process
        with ThreadPoolExecutor(workers) as threads:
            yield threads
        return
    # forked workers know what was typed into a session, and a script needs no main guard; but
    # only a process without other threads can be forked safely
    fork = "fork" in get_all_start_methods() and threading.active_count() == 1
    context = get_context("fork" if fork else "spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


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
