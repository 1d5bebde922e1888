"""Deliver results to files, the terminal and plots, and end the command with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.checks import did_you_mean
from hiddenmanifold.cli import output_files, printed_tables
from hiddenmanifold.cli.exit_codes import Code, OutputError, stop
from hiddenmanifold.cli.options import OutputOptions
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.results.schema import Role, is_real_data, of_role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def check(
    output: OutputOptions, grid: Mapping[str, object], names: Callable[[], Iterable[Hashable]]
) -> None:
    """Raise before a long computation if its results could not be delivered.

    `grid` has the values along each axis; `names` computes one point to find the names of the
    quantities, and is called only if the user asks for some by name.
    """
    _check_destinations(output)
    if output.plot is not None:
        _check_axes(output, {name: np.size(values) for name, values in grid.items()})  # type: ignore[arg-type]
    elif output.x is not None:
        raise InvalidArgumentError.because(
            "--x", "has no effect without --plot", "leave it out, or give --plot"
        )
    if wanted := output.quantities():
        known = [str(name) for name in names()]
        for name in (name for name in wanted if name not in known):
            hint = did_you_mean(name, known)
            if name in printed_tables.OBSERVED:
                hint = f"; --observables {name} measures it"
            raise InvalidArgumentError("--show", name, f"one of {', '.join(known)}{hint}")


def _check_destinations(output: OutputOptions) -> None:
    wanted = {"csv": output.csv, "json": output.json, "nc": output.nc, "plot": output.plot}
    given = {option: path for option, path in wanted.items() if path is not None}
    streams = [option for option, path in given.items() if path == output_files.STANDARD_OUTPUT]
    if len(streams) > 1 or not {"csv", "json"}.issuperset(streams):
        raise InvalidArgumentError.because(
            f"--{streams[-1]}",
            "cannot be written to standard output (-)",
            "give a file; only one of --csv and --json may be -",
        )
    for path in given.values():
        if path != output_files.STANDARD_OUTPUT:
            check_writable(path)


def _check_axes(output: OutputOptions, sizes: Mapping[str, int]) -> None:
    """Raise unless a plot can be drawn and saved."""
    from hiddenmanifold import plotting

    plotting.check_destination(str(output.plot))
    try:
        plotting.axes_of(sizes, output.x)
    except InvalidArgumentError as error:
        if error.argument == "x":
            raise InvalidArgumentError.because("--x", error.problem, error.remedy) from None
        raise InvalidArgumentError.because(
            "--plot",
            f"cannot draw a result that {error.problem}",
            error.remedy,
        ) from None


def check_writable(path: Path) -> None:
    """Raise unless a file can be written here."""
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a directory")
    if not path.parent.is_dir():
        raise OutputError(f"cannot write {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"cannot write {path}: permission denied")


def deliver(
    ds: xr.Dataset,
    output: OutputOptions,
    *,
    data: xr.Dataset | None = None,
    theory: Callable[[], xr.Dataset | None] = lambda: None,
    draw: Callable[[], Figure] | None = None,
) -> None:
    """Write, print and draw a result, and end the command with an exit code.

    Files come first: they are not lost if something is wrong with the rest. `data` is what to write
    into them, if not the result itself; `theory` returns a finer prediction to draw with simulated
    points, or None; `draw` makes the figure, if it is not the usual one of such a result.
    """
    writers = ((output.csv, output_files.write_csv), (output.json, output_files.write_json))
    printed = [write for path, write in writers if path == output_files.STANDARD_OUTPUT]
    for path, write in (*writers, (output.nc, output_files.write_nc)):
        if path is not None and write not in printed:
            write(ds if data is None else data, path)
    gone = None
    try:
        for write in printed:
            write(ds if data is None else data, output_files.STANDARD_OUTPUT)
        if not (output.quiet or printed):
            printed_tables.show(ds, output.quantities())
        sys.stdout.flush()
    except BrokenPipeError as error:  # nobody reads on, but the plot is still wanted
        gone = error
    if output.plot is not None:
        from hiddenmanifold import plotting

        if draw is None:
            figure = plotting.plot(ds, output.x, output.quantities() or None, theory=theory())
        else:
            figure = draw()
        plotting.save(figure, output.plot, ds.attrs)
    if gone is not None:
        raise gone
    if ds.attrs.get("interrupted"):
        stop(Code.INTERRUPTED, "interrupted: what was done is kept, the rest is missing")
    if sentence := failures(ds):
        stop(Code.INCOMPLETE, sentence)


def failures(ds: xr.Dataset) -> str:
    """What went wrong with some points or fits; empty if nothing did."""
    from hiddenmanifold.errors import Status

    if is_real_data(ds):  # their status is no failure: it says what a prediction rests on
        return ""
    sentences = []
    for name in of_role(ds, Role.STATUS):
        for status in (status for status in Status if status is not Status.CONVERGED):
            if count := int((ds[name] == int(status)).sum()):
                sentences.append(f"{count} of {ds[name].size} points failed: {status.sentence}")
    if "dropped" in ds and (dropped := int(ds["dropped"].sum())):
        sentences.append(f"{dropped} fits fell short of their optimum and were left out")
    return "; ".join(sentences)


def first_point(grid: dict[str, Any]) -> dict[str, Any]:
    """The first point of a grid."""
    return {name: values[0] if np.ndim(values) else values for name, values in grid.items()}
