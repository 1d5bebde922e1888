"""Progress of a long call: a bar in a terminal or a notebook, once the call takes a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import parent_process
from typing import Any

from hiddenmanifold.errors import InvalidArgumentError

PATIENCE = 1.0
"""Seconds of work before anything is shown."""
LONG = 60.0
"""Estimated seconds from which a call is announced beforehand."""
INTERVAL = 0.1
"""Seconds between two redrawings."""


@dataclass
class Progress:
    """Jobs done of those asked for so far, their rate and the time left.

    The time left is the estimated time of the remaining jobs, times the ratio of the actual to the
    estimated time of the finished ones, divided by the number of workers. It is therefore valid
    from the first job on, even if large jobs follow small ones.

    Parameters
    ----------
    visible : bool, optional
        Whether to show anything; by default in a terminal and in a notebook, but not in a process
        that another one started.
    label : str
        What is being done.
    """

    visible: bool | None = None
    label: str = "computing"
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _left: float = field(default=0.0, init=False)
    _finished: float = field(default=0.0, init=False)
    _spent: float = field(default=0.0, init=False)
    _workers: int = field(default=1, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _advanced: float = field(default_factory=time.monotonic, init=False)
    _drawn: float = field(default=0.0, init=False)
    _bar: _Bar | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.visible is None:
            self.visible = parent_process() is None and (in_notebook() or sys.stderr.isatty())
        if not isinstance(self.visible, bool):
            raise InvalidArgumentError("progress", self.visible, "True, False or None")

    def announce(self, what: str, seconds: float) -> None:
        """Announce a long task, and roughly how long it will take."""
        if self.visible and seconds > LONG:
            print(f"{what}; roughly {_clock(seconds)} to go", file=sys.stderr)

    @contextmanager
    def of(
        self, jobs: Sequence[float], workers: int = 1, *, in_seconds: bool = False
    ) -> Iterator[Progress]:
        """Show while so many more jobs are done, then leave the terminal as it was.

        A job is given by how much work it is, in any unit; in seconds, the time left is known
        before the first has ended.
        """
        self.total += len(jobs)
        self._left += sum(jobs)
        self._workers = workers
        self._advanced = time.monotonic()
        if self.visible and in_seconds and self.seconds_left > PATIENCE:
            self._draw()
        try:
            yield self
        finally:
            if self._bar is not None:
                self._draw()
                self._bar.close()
                self._bar = None

    def advance(self, job: float = 1.0, seconds: float | None = None) -> None:
        """One more is done; it took so many seconds, by default those since the one before."""
        now = time.monotonic()
        self.done += 1
        self._left -= job
        self._finished += job
        self._spent += now - self._advanced if seconds is None else seconds
        self._advanced = now
        if self.visible and now - self._began > PATIENCE and now - self._drawn > INTERVAL:
            self._drawn = now
            self._draw()

    @property
    def seconds_left(self) -> float:
        """Seconds until all jobs are done, by the time that those which are done took."""
        pace = self._spent / self._finished if self._finished else 1.0
        return max(self._left, 0.0) * pace / self._workers

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = _Bar(self.label)
        rate = self.done / max(time.monotonic() - self._began, 1e-9)
        text = f"{self.done}/{self.total}  {rate:.3g}/s  {_clock(self.seconds_left)} left"
        self._bar.show(self.done, self.total, text)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours:d}:{rest // 60:02d}:{rest % 60:02d}"


class _Bar:
    """A line at the bottom of a terminal, which disappears, or output of a cell, which stays."""

    def __init__(self, label: str) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            "{task.description}",
            progress.BarColumn(),
            "{task.fields[text]}",
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(label, total=None, text="")
        self._cell: Any = None
        if in_notebook():  # not by rich's own way, which needs widgets
            from IPython.display import display

            self._cell = display(self._bar, display_id=True)
        else:
            self._bar.start()

    def show(self, done: int, total: int, text: str) -> None:
        self._bar.update(self._task, total=total, completed=done, text=text)
        if self._cell is None:
            self._bar.refresh()
        else:
            self._cell.update(self._bar)

    def close(self) -> None:
        self._bar.stop()
