"""Run a long computation in pieces, with a bar that shows the time left."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.cli.outcome import Stopped, noticing_interrupts

if TYPE_CHECKING:
    import xarray as xr
    from rich.progress import Progress

T = TypeVar("T")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """What a computation gave, and whether Ctrl-C cut it short."""

    dataset: xr.Dataset
    interrupted: bool = False


def in_pieces(
    call: Callable[..., xr.Dataset], ratios: Mapping[str, float | Array], points: int
) -> Result:
    """Call with the longest of the vectors cut into pieces; Ctrl-C keeps what is done.

    Parameters
    ----------
    call : callable
        Returns a dataset for given ratios.
    ratios : mapping
        Numbers and vectors.
    points : int
        How many points of their grid a piece has, about. It is fixed, so that results do not
        depend on the machine.
    """
    import xarray as xr

    lengths = {name: np.size(values) for name, values in ratios.items() if np.ndim(values)}
    total = math.prod(lengths.values())
    dim = max(lengths, key=lengths.__getitem__, default=None)
    if dim is None or total <= points:
        with noticing_interrupts():
            return Result(call(**ratios))
    pieces = np.array_split(ratios[dim], min(lengths[dim], math.ceil(total / points)))
    done: list[xr.Dataset] = []
    interrupted = False
    with noticing_interrupts() as interrupt, _bar(len(pieces)) as bar:
        try:
            for piece in pieces:
                bar.refresh()
                done.append(call(**{**ratios, dim: piece}))
                bar.advance(bar.task_ids[0])
        except BaseException as error:  # Ctrl-C may surface as the death of a worker
            if not (done and (interrupt.noticed or isinstance(error, KeyboardInterrupt))):
                raise
            interrupted = True
    whole = xr.concat(
        done,
        dim,
        data_vars="minimal",
        coords="minimal",
        compat="override",
        combine_attrs="override",
    )
    return Result(whole, interrupted)


def simulated(call: Callable[..., xr.Dataset]) -> Result:
    """Call a simulation, with its own bar on standard error; Ctrl-C keeps what is done."""
    with noticing_interrupts() as interrupt, redirect_stdout(sys.stderr):
        ds = call(progress=sys.stderr.isatty())
    return Result(ds, interrupt.noticed)


def undivided(call: Callable[..., T]) -> T:
    """Call what is worth nothing by halves, with its own bar on standard error.

    A Ctrl-C ends it even where the library would go on with what it has.
    """
    with noticing_interrupts(Stopped), redirect_stdout(sys.stderr):
        return call(progress=sys.stderr.isatty())


def _bar(total: int) -> Progress:
    """A bar without a thread of its own: beside one, the library could not fork its workers."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    bar = Progress(
        "computing",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    bar.add_task("compute", total=total)
    return bar
