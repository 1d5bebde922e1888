"""Work that takes long, in processes of its own: sliders do not wait for it.

Whoever asks is given a sign of life again and again until the result is there. Who stops asking
ends the work, and the process that does it.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
from collections.abc import Callable, Generator
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Condition
from typing import Any, TypeVar

import hiddenmanifold as hm

WORKERS = 2
PULSE = 0.25
"""Seconds between signs of life."""
KNOWN = ["xarray", "pandas", "scipy.optimize", "hiddenmanifold.explorer.stream"]
"""What a new process knows from birth, so that ending one is cheap."""
R = TypeVar("R")


class _Worker:
    """A process that does one thing after another."""

    def __init__(self) -> None:
        # beside the threads of a server no process can be forked safely, but of a quiet one it can
        quiet = "forkserver" in mp.get_all_start_methods()
        context: Any = mp.get_context("forkserver" if quiet else "spawn")
        prepare()
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


_free: list[_Worker] = []
_all: list[_Worker] = []
_change = Condition()


def prepare() -> None:
    """Begin to load what workers need, so that the first has not to wait for it."""
    if "forkserver" in mp.get_all_start_methods():
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(KNOWN)
        forkserver.ensure_running()


def elsewhere(work: Callable[..., R], *given: Any) -> Generator[R | None]:
    """Do some work in another process: None again and again, and at last the result.

    Raises
    ------
    LostWorkerError
        If the worker dies.
    """
    while (worker := _hired()) is None:
        yield None
    sound = False
    try:
        worker.pipe.send((work, given))
        while not worker.pipe.poll(PULSE):
            yield None
        good, result = worker.pipe.recv()
        sound = True
    except (EOFError, OSError):
        raise hm.LostWorkerError("the process that computed this has died") from None
    finally:
        _return(worker, sound)
    if not good:
        raise result
    yield result


def waited(work: Callable[..., R], *given: Any) -> R:
    """The result of some work, done in another process."""
    *_, result = elsewhere(work, *given)
    return result  # type: ignore[return-value]


def busy() -> int:
    """Number of workers at work."""
    with _change:
        return len(_all) - len(_free)


def dismiss() -> None:
    """End the workers."""
    with _change:
        for worker in _all:
            worker.end()
        _all.clear()
        _free.clear()


def _hired() -> _Worker | None:
    """A worker, unless all are at work for as long as a pulse."""
    with _change:
        if not _free and len(_all) < WORKERS:
            _free.append(_Worker())
            _all.append(_free[-1])
        if not _free:
            _change.wait(PULSE)
        return _free.pop() if _free else None


def _return(worker: _Worker, sound: bool) -> None:
    """Have a worker free for others, or end one whose work nobody waits for."""
    with _change:
        if worker in _all and sound:
            _free.append(worker)
        elif worker in _all:
            _all.remove(worker)
            worker.end()
        _change.notify()


def _serve(pipe: Connection) -> None:
    """Do what is sent, until the server is gone; Ctrl-C is the server's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(5)  # sliders go first
    with suppress(EOFError, OSError):  # the server is gone
        while True:
            work, given = pipe.recv()
            try:
                answer = True, work(*given)
            except Exception as error:
                answer = False, error
            pipe.send(answer)
