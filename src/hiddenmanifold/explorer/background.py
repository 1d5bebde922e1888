"""Work that takes long, in processes of its own: sliders do not wait for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Lock, Thread
from typing import Any, TypeVar

WORKERS = 2
R = TypeVar("R")

_lock = Lock()
_pool: list[ProcessPoolExecutor] = []


def elsewhere(work: Callable[..., R], *given: Any) -> R:
    """The result of some work, done in another process; whoever asks waits, and nobody else."""
    with _lock:
        if not _pool:
            # beside the threads of a server no process can be forked safely
            context = get_context("spawn")
            _pool.append(ProcessPoolExecutor(WORKERS, context, initializer=_begin))
        pool = _pool[0]
    try:
        return pool.submit(work, *given).result()
    except BrokenExecutor:
        dismiss()  # the next call finds new workers
        raise


def dismiss() -> None:
    """End the workers."""
    with _lock:
        while _pool:
            _pool.pop().shutdown(cancel_futures=True)


def _begin() -> None:
    """Leave Ctrl-C to the server, end with it, and let it go first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    Thread(target=_end_with_the_server, daemon=True).start()


def _end_with_the_server() -> None:
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(0)
