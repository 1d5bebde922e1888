"""Processes of this machine: started on every operating system alike, and ended at any time."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from multiprocessing import current_process, parent_process
from typing import Any, TypeVar

from hiddenmanifold.errors import HiddenManifoldError

PULSE = 0.25
"""Seconds between two looks whether a result is there, or a parent still alive."""
R = TypeVar("R")


class DeadlineError(HiddenManifoldError, TimeoutError):
    """A computation was ended because it took longer than it was allowed to."""


def allowed() -> bool:
    """Whether this process may start others: a daemonic one may not."""
    return not current_process().daemon


def start(count: int) -> Executor:
    """An executor of so many processes, which begin to start at once.

    Loky neither forks, so that threads do no harm, nor imports the main module, so that a script
    needs no main guard.
    """
    from loky import ProcessPoolExecutor

    executor: Executor = ProcessPoolExecutor(count, initializer=_begin, initargs=(os.getpid(),))
    with _interrupts_held():
        executor.submit(int)  # the first call starts the processes
    return executor


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold a Ctrl-C back, which processes that start meanwhile will not see even while they load.

    Windows cannot hold it back.
    """
    if sys.platform == "win32":
        yield
    else:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def kill(executor: Executor) -> None:
    """End the processes of an executor, whatever they are doing."""
    executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """An executor of so many new processes, which are killed at the end.

    They are not kept for the next call, for which a module of the user may have been loaded again:
    they would compute with its old functions.
    """
    executor = start(count)
    try:
        yield executor
    finally:
        kill(executor)


def awaited(
    executor: Executor, function: Callable[..., R], *arguments: Any, seconds: float
) -> Generator[R | None, None, None]:
    """Call a function on an executor: None every `PULSE` seconds, and at last the result.

    Raises
    ------
    DeadlineError
        If there is no result after so many seconds. The caller has to kill the executor.
    """
    deadline = time.monotonic() + seconds
    future = executor.submit(function, *arguments)
    while not future.done():
        if time.monotonic() > deadline:
            raise DeadlineError(f"the computation was ended after {seconds:g} seconds")
        yield None
        with suppress(TimeoutError):
            future.exception(PULSE)
    yield future.result()


def _begin(parent: int) -> None:
    """Leave a Ctrl-C, which a terminal sends to every process, to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        if sys.platform == "win32" and (starter := parent_process()):
            starter.join()  # there os.getppid() stays the same when the parent has ended
        while sys.platform != "win32" and os.getppid() == parent:
            time.sleep(PULSE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
