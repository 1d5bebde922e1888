"""The commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hiddenmanifold.cli.options import (
    OUTPUT,
    Debug,
    ModelOptions,
    OutputOptions,
    RatioOptions,
    Regularisation,
    SearchOptions,
    SimulationOptions,
    Workers,
    spread,
)
from hiddenmanifold.cli.outcome import Code, OneSentence
from hiddenmanifold.errors import ConvergenceError, InvalidArgumentError

if TYPE_CHECKING:
    import xarray as xr

    from hiddenmanifold.model import Model

PIECES = {"predict": 2000, "optimal": 50, "threshold": 200, "bayes": 500}
"""Points between two steps of the progress bar: about half a second's work."""
FINE = 200
"""Points of the line that is drawn through simulated ones."""

VALUES = "VALUES are 3, inf, 0.5,1,2, a range 0.05:3:60 or a geometric series log:1e-4:1e2:40."

app = typer.Typer(
    cls=OneSentence,
    help="Exact learning curves of generalised linear models on random features.",
    epilog="\n\n".join(["Exit codes:", *(f"{code.value:4}  {code.meaning}" for code in Code)]),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hiddenmanifold {version('hiddenmanifold')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog=VALUES)
@spread
def predict(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    search: SearchOptions,
    output: OutputOptions,
    workers: Workers = None,
) -> None:
    """Predict test and training errors in the limit of many samples, features and dimensions.

    Give two ratios, e.g.: hiddenmanifold predict --n-over-d 3 --p-over-n 0.05:3:60 --lam 1e-4
    """
    from hiddenmanifold.cli.values import regularisation as parse

    lam = parse("--regularisation", regularisation)
    _predict(model, ratios, search, output, regularisation=lam, workers=workers)


@app.command(epilog=VALUES)
@spread
def optimal(
    model: ModelOptions,
    ratios: RatioOptions,
    search: SearchOptions,
    output: OutputOptions,
    workers: Workers = None,
) -> None:
    """Find the regularisation of least error, and predict the errors there.

    Give two ratios, e.g.: hiddenmanifold optimal --n-over-d 3 --p-over-n 0.1:3:30
    """
    _predict(model, ratios, search, output, regularisation="optimal", workers=workers)


def _predict(
    model: ModelOptions,
    ratios: RatioOptions,
    search: SearchOptions,
    output: OutputOptions,
    *,
    regularisation: Any,
    workers: int | None,
) -> None:
    from hiddenmanifold.cli.delivery import check_destinations, deliver
    from hiddenmanifold.cli.work import in_pieces
    from hiddenmanifold.prediction import predict

    check_destinations(output)
    points = PIECES["optimal"]
    if isinstance(regularisation, str):
        regularisation = search.optimal()
    else:
        search.check_unused()
        points = max(1, PIECES["predict"] // np.size(regularisation))
    call = partial(
        predict, model.model(), regularisation=regularisation, on_failure="keep", workers=workers
    )
    deliver(in_pieces(call, ratios.given(), points), output)


@app.command(epilog=VALUES)
@spread
def simulate(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    size: SimulationOptions,
    output: OutputOptions,
    per_seed: Annotated[
        bool,
        typer.Option(
            "--per-seed",
            help="Write every fit into files, not the means and standard errors.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Fit the model exactly on drawn data, for many seeds, and measure it.

    Ctrl-C keeps what is done. For example:
    hiddenmanifold simulate --n-over-d 3 --p-over-n 0.5,1,2 --lam 1e-2 --d 100 --seeds 10
    """
    from hiddenmanifold import experiments
    from hiddenmanifold.cli.delivery import check_destinations, deliver
    from hiddenmanifold.cli.work import with_bar
    from hiddenmanifold.results import summary

    check_destinations(output)
    sizes = _sizes(ratios, regularisation, size)
    ds = with_bar(partial(experiments.simulate, model.model(), **sizes))
    deliver(summary(ds), output, data=ds if per_seed else None)


@app.command(epilog=VALUES)
@spread
def compare(
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    size: SimulationOptions,
    output: OutputOptions,
) -> None:
    """Simulate and predict the same points; z is their difference in standard errors.

    For example: hiddenmanifold compare --n-over-d 3 --p-over-n 0.5,1,2 --lam 1e-2 --d 100
    """
    from hiddenmanifold import experiments
    from hiddenmanifold.cli.delivery import check_destinations, deliver
    from hiddenmanifold.cli.work import with_bar

    check_destinations(output)
    chosen, sizes = model.model(), _sizes(ratios, regularisation, size)
    ds = with_bar(partial(experiments.compare, chosen, **sizes))
    grid = {**ratios.given(), "regularisation": sizes["regularisation"]}
    deliver(ds, output, theory=lambda: _finer(chosen, grid, output.x, ds))


def _sizes(ratios: RatioOptions, regularisation: str, size: SimulationOptions) -> dict[str, Any]:
    from hiddenmanifold.cli.values import values

    lam = values("--regularisation", regularisation)
    return {"regularisation": lam, **size.given(), **ratios.given()}


def _finer(model: Model, grid: dict[str, Any], x: str | None, ds: xr.Dataset) -> xr.Dataset | None:
    """The prediction on a finer grid along the horizontal axis of a plot."""
    from hiddenmanifold import plotting
    from hiddenmanifold.prediction import predict

    x = x or plotting.horizontal(ds)
    if not np.ndim(grid.get(x, 0.0)):  # no such axis: let the plot say so
        return None
    space = np.geomspace if plotting.is_logarithmic(grid[x]) else np.linspace
    fine = space(np.min(grid[x]), np.max(grid[x]), FINE)
    return predict(model, **{**grid, x: np.union1d(fine, grid[x])}, on_failure="keep")


@app.command(epilog=VALUES)
@spread
def threshold(model: ModelOptions, ratios: RatioOptions, output: OutputOptions) -> None:
    """Where the training data become linearly separable.

    Give one ratio, e.g.: hiddenmanifold threshold --n-over-d 0.5:5:10
    """
    from hiddenmanifold.cli.delivery import check_destinations, deliver
    from hiddenmanifold.cli.work import in_pieces
    from hiddenmanifold.thresholds import separability_threshold

    check_destinations(output)
    chosen = model.model()

    def call(**given: Any) -> xr.Dataset:
        try:
            array = separability_threshold(chosen, **given)
        except ConvergenceError as error:  # the points that were found are worth showing
            array = error.partial
        meaning = array.attrs.pop("long_name")
        ds = array.to_dataset(promote_attrs=True)
        ds[array.name].attrs["long_name"] = meaning
        return ds

    deliver(in_pieces(call, ratios.given(), PIECES["threshold"]), output)


@app.command(epilog=VALUES)
@spread
def bayes(model: ModelOptions, ratios: RatioOptions, output: OutputOptions) -> None:
    """The least error that any method could reach on the same data.

    Give two ratios, e.g.: hiddenmanifold bayes --n-over-d 3 --p-over-n 0.1:3:30
    """
    from hiddenmanifold.bayes import bayes_optimal
    from hiddenmanifold.cli.delivery import check_destinations, deliver
    from hiddenmanifold.cli.work import in_pieces

    check_destinations(output)
    call = partial(bayes_optimal, model.model(), on_failure="keep")
    deliver(in_pieces(call, ratios.given(), PIECES["bayes"]), output)


@app.command()
@spread
def figure(
    number: Annotated[str, typer.Argument(metavar="N|all", help="Number of the figure.")],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick/--full", help="A minute's work, as figure_N_quick, or the paper's own sizes."
        ),
    ] = True,
    directory: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where the files go.")
    ] = Path("figures"),
    debug: Debug = False,
) -> None:
    """Compute and draw a figure of the paper, or all of them.

    What was computed before with the same parameters and sources is not computed again.
    """
    from hiddenmanifold import figures
    from hiddenmanifold.cli.work import undivided

    known = [str(n) for n in figures.NUMBERS]
    if number not in (*known, "all"):
        raise InvalidArgumentError("figure", number, f"one of {', '.join(known)}, or all")
    for chosen in known if number == "all" else [number]:
        for path in undivided(partial(figures.run, int(chosen), quick=quick, directory=directory)):
            typer.echo(path)


@app.command()
@spread
def claims(
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Also write report.html there, with the table and the figures found there.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Check the paper's claims, one by one, against what this package computes."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hiddenmanifold.cli.work import undivided
    from hiddenmanifold.figures.claims import COLOURS, check

    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    rows = undivided(check)
    table = Table("claim", "the text", "computed", "verdict", show_lines=True)
    for row in rows:
        computed = Text.assemble(row.computed, ("\n" + row.note if row.note else "", "dim"))
        table.add_row(row.claim, row.expected, computed, Text(row.verdict, COLOURS[row.verdict]))
    Console().print(table)
    if report is not None:
        from hiddenmanifold.figures.report import write

        typer.echo(write(report / "report.html", rows, report))
