"""How many threads linear algebra may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager


class _OneThread(ContextDecorator):
    """Limits linear algebra to one thread while any thread of this process is in the context.

    The limit is a setting of the whole process: the first thread that enters changes it, and the
    last one that leaves restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._inside:
                with _in_control():
                    self._limits = threadpool_limits(1, "blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                with _in_control():
                    self._limits.restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread limit OpenBLAS: threadpoolctl 3.8 obeys only the first that ever did."""
    import threadpoolctl

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    release = getattr(controller, "clear_controlling_thread", lambda force: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


one_thread = _OneThread()
