"""When work may be handed to forked processes."""

from __future__ import annotations

import sys
import threading


def can_fork() -> bool:
    """Whether this process can be forked safely: on Linux, while it has no other threads.

    A forked worker inherits everything, so that functions typed into a session need not be sent
    to it, and a script needs no main guard.
    """
    return sys.platform == "linux" and threading.active_count() == 1
