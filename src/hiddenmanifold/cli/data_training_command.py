"""The command that follows the error on a data set along training, and finds when to stop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hiddenmanifold.cli.app import command
from hiddenmanifold.cli.data_command import SampleOptions, of_question
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import OutputOptions, Regularisation
from hiddenmanifold.cli.values import values

if TYPE_CHECKING:
    import xarray as xr


@command("data-training")
@spread
def data_training(
    *,
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .tsv, .npy, .npz or .parquet file.")
    ],
    chosen: SampleOptions,
    times: Annotated[
        Any,
        of_question(
            metavar="VALUES",
            help="Times of gradient flow on the sum of losses; by default the decades in which the "
            "fit changes.",
            parser=values,
        ),
    ] = None,
    n: Annotated[
        Any,
        of_question(
            metavar="VALUES",
            help="Numbers of samples to train on; by default as many as there are rows, whose "
            "errors are exact.",
            parser=values,
        ),
    ] = None,
    regularisation: Regularisation = "0",
    keep: Annotated[
        bool,
        of_question("--keep", help="Leave out what the sample does not show, instead of stopping."),
    ] = False,
    output: OutputOptions,
) -> None:
    """Find when to stop training on your data: leave-one-out errors at every time of gradient flow.

    For example: hiddenmanifold data-training table.csv --label price --scale standard --plot t.png
    """
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.output_files import STANDARD_OUTPUT
    from hiddenmanifold.data.training_curve import training_curve

    grid = {"time": (1, 2) if times is None else times, "n": 1 if n is None else n}
    sample = chosen.sample(path)
    curve = partial(training_curve, sample, regularisation=regularisation)
    check(output, {**grid, "regularisation": regularisation}, lambda: curve(times=[1.0, 2.0]))
    ds = curve(times=times, n=n, on_refusal="keep" if keep else "raise")
    if not (output.quiet or STANDARD_OUTPUT in (output.csv, output.json)):
        for line in _best(ds):
            typer.echo(line)
    deliver(ds, output)


def _best(ds: xr.Dataset) -> Iterator[str]:
    """When to stop, for every number of samples and λ."""
    if "optimal_time" not in ds:
        return
    for where in np.ndindex(ds.optimal_time.shape):
        point = ds.optimal_time[where]
        at = ", ".join(f"{name} = {float(point[name]):g}" for name in point.coords)
        best = float(point)
        yield f"least error at time {best:.3g} ({at})" if np.isfinite(best) else f"unknown ({at})"
