"""How far a long call is: a line on the terminal, once it takes longer than a second."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from .errors import InvalidArgumentError

PATIENCE = 1.0
"""Seconds of work before anything is shown."""
INTERVAL = 0.1
"""Seconds between two redrawings."""


@dataclass
class Progress:
    """Jobs done of those asked for so far, their rate and the time left.

    It needs no thread, which would stand in the way of forking.

    Parameters
    ----------
    shown : bool, optional
        Whether to show anything; by default if standard error is a terminal.
    label : str
        What is being done.
    """

    shown: bool | None = None
    label: str = "computing"
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _drawn: float = field(default=0.0, init=False)
    _bar: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.shown is None:
            self.shown = sys.stderr.isatty()
        if not isinstance(self.shown, bool):
            raise InvalidArgumentError("progress", self.shown, "True, False or None")

    def expect(self, jobs: int) -> None:
        """So many more are asked for."""
        self.total += jobs

    def advance(self, jobs: int = 1) -> None:
        """So many more are done."""
        self.done += jobs
        now = time.monotonic()
        if self.shown and now - self._began > PATIENCE and now - self._drawn > INTERVAL:
            self._drawn = now
            self._draw()

    def rest(self) -> None:
        """Leave the terminal as it was, until there is more to show."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

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
