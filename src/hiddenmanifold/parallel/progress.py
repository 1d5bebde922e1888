"""How far a long call is: a line on the terminal, once it takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hiddenmanifold.errors import InvalidArgumentError

PATIENCE = 1.0
"""Seconds of work before anything is shown."""
LONG = 60.0
"""Seconds that are worth a word beforehand."""
INTERVAL = 0.1
"""Seconds between two redrawings."""


@dataclass
class Progress:
    """Jobs done of those asked for so far, their rate and the time left.

    It needs no thread, which would stand in the way of forking.

    Parameters
    ----------
    visible : bool, optional
        Whether to show anything; by default if standard error is a terminal.
    label : str
        What is being done.
    """

    visible: bool | None = None
    label: str = "computing"
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _drawn: float = field(default=0.0, init=False)
    _bar: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.visible is None:
            self.visible = sys.stderr.isatty()
        if not isinstance(self.visible, bool):
            raise InvalidArgumentError("progress", self.visible, "True, False or None")

    def announce(self, what: str, seconds: float) -> None:
        """Say beforehand what takes long, very roughly how long."""
        if self.visible and seconds > LONG:
            print(f"{what}; very roughly {_clock(seconds)} to go", file=sys.stderr)

    @contextmanager
    def of(self, jobs: int) -> Iterator[Progress]:
        """Show while so many more are done, then leave the terminal as it was."""
        self.total += jobs
        try:
            yield self
        finally:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def advance(self, jobs: int = 1) -> None:
        """So many more are done."""
        self.done += jobs
        now = time.monotonic()
        if self.visible and now - self._began > PATIENCE and now - self._drawn > INTERVAL:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = _bar(self.label)
        elapsed = time.monotonic() - self._began
        rate = self.done / elapsed
        left = (self.total - self.done) / rate
        told = f"{self.done}/{self.total}  {rate:.3g}/s  {_clock(left)} left"
        self._bar.update(self._bar.task_ids[0], total=self.total, completed=self.done, told=told)
        self._bar.refresh()


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours:d}:{rest // 60:02d}:{rest % 60:02d}"


def _bar(label: str) -> Any:
    from rich import progress
    from rich.console import Console

    columns = ("{task.description}", progress.BarColumn(), "{task.fields[told]}")
    bar = progress.Progress(
        *columns,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(label, total=None, told="")
    bar.start()
    return bar
