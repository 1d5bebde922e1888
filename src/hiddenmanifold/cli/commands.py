"""The commands."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hiddenmanifold.cli.exit_codes import Code, OneSentence
from hiddenmanifold.cli.option_groups import WithIngredients, spread
from hiddenmanifold.cli.options import (
    OUTPUT,
    FittedRegularisation,
    FittedRegularisationOrOptimal,
    ModelOptions,
    NeedRatioOptions,
    Observables,
    OutputOptions,
    PeakRatioOptions,
    RatioOptions,
    Regularisation,
    RegularisationOrOptimal,
    SampleRatioOptions,
    SearchOptions,
    SimulatedRatioOptions,
    SimulationOptions,
    WorkerOptions,
    observed,
)

if TYPE_CHECKING:
    import xarray as xr

    from hiddenmanifold.model import Model

PIECES = {
    "predict": 2000,
    "optimal": 50,
    "sensitivity": 1000,
    "threshold": 200,
    "peak": 10,
    "needed": 1,
    "bayes": 500,
}
"""Points between two steps of the progress bar: about half a second's work, if possible."""
FINE = 200
"""Points of the line that is drawn through simulated ones."""

EPILOG = [
    "Start with: hiddenmanifold predict --n-over-d 3 --p-over-n 0.05:3:60 --lam 1e-4 --plot a.png",
    "Names of activations, projections, teachers and losses: hiddenmanifold predict --help",
    "Exit codes:",
    *(f"{code.value:4}  {code.meaning}" for code in Code),
]
VALUES = (
    "VALUES are a number, as 3 or inf; several, as 0.5,1,2; a range, as 0.05:3:60 for 60 of them; "
    "or a geometric series, as log:1e-4:1e2:40."
)

app = typer.Typer(
    cls=OneSentence,
    help="Exact learning curves of generalised linear models on random features.",
    epilog="\n\n".join(EPILOG),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
command = partial(app.command, cls=WithIngredients, epilog=VALUES)


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


def compute(
    step: str,
    call: Callable[..., xr.Dataset],
    ratios: RatioOptions | PeakRatioOptions | NeedRatioOptions | SampleRatioOptions,
    output: OutputOptions,
    *,
    names: Callable[[], Iterable[Hashable]] | None = None,
    **regularisation: Any,
) -> None:
    """Compute and deliver what a call gives at some ratios; `names` finds its quantities."""
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.work import in_pieces

    given = ratios.given()
    grid = {**given, **regularisation}
    check(output, grid, names or (lambda: call(**_one_of(grid))))
    points = max(1, PIECES[step] // np.size(regularisation.get("regularisation", 0.0)))
    deliver(in_pieces(partial(call, **regularisation, progress=False), given, points), output)


def _one_of(grid: dict[str, Any]) -> dict[str, Any]:
    """The first point of a grid."""
    return {name: values[0] if np.ndim(values) else values for name, values in grid.items()}


@command()
@spread
def predict(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: RegularisationOrOptimal,
    search: SearchOptions,
    output: OutputOptions,
    workers: WorkerOptions,
    observables: Observables = None,
) -> None:
    """Predict test and training errors in the limit of many samples, features and dimensions.

    Give two ratios, e.g.: hiddenmanifold predict --n-over-d 3 --p-over-n 0.05:3:60 --lam 1e-4;
    --lam optimal finds the regularisation of least error at each point.
    """
    from hiddenmanifold.api.predict import predict

    lam = search.regularisation(regularisation)
    step = "optimal" if regularisation.strip() == "optimal" else "predict"
    shared = {**workers.given(), **observed(observables)}
    call = partial(predict, model.model(), on_failure="keep", **shared)
    compute(step, call, ratios, output, regularisation=lam)


@command()
@spread
def sensitivity(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    output: OutputOptions,
    workers: WorkerOptions,
    observables: Observables = None,
) -> None:
    """Predict how the errors respond to more regularisation, samples or features.

    Derivatives by the logarithms of λ, n and p. Give two ratios, e.g.:
    hiddenmanifold sensitivity --n-over-d 3 --p-over-n 0.1:3:30 --lam 1e-2
    """
    from hiddenmanifold.api.predict import sensitivity
    from hiddenmanifold.cli.values import values

    lam = values("--regularisation", regularisation)
    shared = {**workers.given(), **observed(observables)}
    call = partial(sensitivity, model.model(), on_failure="keep", **shared)
    compute("sensitivity", call, ratios, output, regularisation=lam)


@command()
@spread
def simulate(
    *,
    model: ModelOptions,
    ratios: SimulatedRatioOptions,
    regularisation: FittedRegularisation,
    size: SimulationOptions,
    workers: WorkerOptions,
    output: OutputOptions,
    per_seed: Annotated[
        bool,
        typer.Option(
            "--per-seed",
            help="Write every fit into files, not the means and standard errors.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    observables: Observables = None,
) -> None:
    """Fit the model exactly on drawn data, for many seeds, and measure it.

    Ctrl-C keeps what is done. For example:
    hiddenmanifold simulate --n-over-d 3 --p-over-n 0.5,1,2 --lam 1e-2 --d 100 --seeds 10
    """
    from hiddenmanifold.api.simulate import simulate
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.values import values
    from hiddenmanifold.cli.work import with_bar
    from hiddenmanifold.results.datasets import summary

    grid = {**ratios.given(), "regularisation": values("--regularisation", regularisation)}
    call = partial(simulate, model.model(), **observed(observables))
    check(output, grid, lambda: summary(call(**size.rehearsal(), **_one_of(grid))))
    ds = with_bar(partial(call, **size.given(), **workers.given(), **grid))
    deliver(summary(ds), output, data=ds if per_seed else None)


@command()
@spread
def compare(
    *,
    model: ModelOptions,
    ratios: SimulatedRatioOptions,
    regularisation: FittedRegularisationOrOptimal,
    search: SearchOptions,
    size: SimulationOptions,
    workers: WorkerOptions,
    output: OutputOptions,
    observables: Observables = None,
) -> None:
    """Simulate and predict the same points; z is their difference in standard errors.

    For example: hiddenmanifold compare --n-over-d 3 --p-over-n 0.5,1,2 --lam 1e-2 --d 100
    """
    from hiddenmanifold.api.compare import compare
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.work import with_bar

    grid = {**ratios.given(), "regularisation": search.regularisation(regularisation)}
    chosen = model.model()
    call = partial(compare, chosen, **observed(observables))
    check(output, grid, lambda: call(**size.rehearsal(), **_one_of(grid)))
    ds = with_bar(partial(call, **size.given(), **workers.given(), **grid))
    deliver(ds, output, theory=lambda: _finer(chosen, grid, output.x, ds))


def _finer(model: Model, grid: dict[str, Any], x: str | None, ds: xr.Dataset) -> xr.Dataset:
    """The prediction on a finer grid along the horizontal axis of a plot."""
    from hiddenmanifold import plotting
    from hiddenmanifold.api.arguments import COUNTS
    from hiddenmanifold.api.predict import predict

    x, _ = plotting.axes_of({str(dim): n for dim, n in ds.sizes.items()}, x)
    positive = grid[x][grid[x] > 0]
    space = np.geomspace if plotting.is_logarithmic(grid[x]) else np.linspace
    count = PIECES["optimal"] if "optimal_regularisation" in ds else FINE
    fine = space(np.min(positive), np.max(positive), count)
    if not grid.keys().isdisjoint(COUNTS):  # d is an option of the simulation
        grid = {**grid, "d": ds["d"].values.flat[0]}
        fine = np.round(fine) if x in COUNTS else fine
    return predict(model, **{**grid, x: np.union1d(fine, grid[x])}, on_failure="keep")
