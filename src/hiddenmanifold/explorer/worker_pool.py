"""Processes for slow computations, so that sliders need not wait for them.

Each computation has a process to itself. The process is killed when nobody waits for the result any
longer or when the time is up, and another one that is already warm takes its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from importlib import import_module
from threading import Condition
from typing import Any, TypeVar

import hiddenmanifold as hm
from hiddenmanifold.parallel.processes import PULSE, awaited, kill, start

WORKERS = 2
"""Computations that run at once."""
DEADLINE = 600.0
"""Seconds after which a computation is ended; the largest simulated point takes some ten."""
IMPORTED = ("xarray", "pandas", "scipy.optimize", "hiddenmanifold.explorer.stream")
"""What a new process imports before it has anything to do."""
R = TypeVar("R")

_idle: list[Executor] = []
_busy: list[Executor] = []
_change = Condition()


def prepare() -> None:
    """Have a process ready for the next computation, unless there is one."""
    with _change:
        if not _idle:
            _idle.append(start(1))
            _idle[0].submit(_warm_up)


def elsewhere(
    work: Callable[..., R], *given: Any, seconds: float = DEADLINE
) -> Generator[R | None, None, None]:
    """Call a function in another process: None every `PULSE` seconds, and at last the result.

    Closing the generator ends the process.

    Raises
    ------
    LostWorkerError
        If the process dies.
    DeadlineError
        If there is no result after so many seconds.
    """
    while (executor := _hired()) is None:
        yield None
    outcome = None
    try:
        for outcome in awaited(executor, _attempt, work, given, seconds=seconds):
            if outcome is None:
                yield None
    except RuntimeError:  # of the executor: an error of the function is part of its outcome
        raise hm.LostWorkerError("the process that computed this has died") from None
    finally:
        _returned(executor, sound=outcome is not None)
    good, result = outcome  # type: ignore[misc]
    if not good:
        raise result
    yield result


def waited(work: Callable[..., R], *given: Any) -> R:
    """The result of a function that is called in another process."""
    *_, result = elsewhere(work, *given)
    return result  # type: ignore[return-value]


def busy() -> int:
    """Number of computations under way."""
    with _change:
        return len(_busy)


def dismiss() -> None:
    """End all processes."""
    with _change:
        for executor in (*_idle, *_busy):
            kill(executor)
        _idle.clear()
        _busy.clear()


def _hired() -> Executor | None:
    """A process, unless all that may run at once are at work for as long as a pulse."""
    with _change:
        if len(_busy) == WORKERS:
            _change.wait(PULSE)
        if len(_busy) == WORKERS:
            return None
        prepare()
        executor = _idle.pop()
        _busy.append(executor)
    prepare()  # a spare, for when this one is ended
    return executor


def _returned(executor: Executor, sound: bool) -> None:
    """Keep a process for the next computation, or end one whose computation was not finished."""
    with _change:
        if executor not in _busy:  # all were dismissed
            return
        _busy.remove(executor)
        _change.notify()
        if sound and len(_idle) < WORKERS:
            _idle.append(executor)
            return
    kill(executor)


def _attempt(work: Callable[..., Any], given: tuple[Any, ...]) -> tuple[bool, Any]:
    """Whether a function succeeds, and its result or error."""
    try:
        return True, work(*given)
    except Exception as error:
        return False, error


def _warm_up() -> None:
    if hasattr(os, "nice"):
        os.nice(5)  # sliders go first
    for name in IMPORTED:
        import_module(name)
