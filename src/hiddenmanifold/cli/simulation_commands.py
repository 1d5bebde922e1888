"""The commands that draw data and fit them: alone, or beside the prediction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hiddenmanifold.cli.app import command
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import (
    DecisionThresholds,
    FittedRegularisation,
    FittedRegularisationOrOptimal,
    ModelOptions,
    Observables,
    OutputOptions,
    SearchOptions,
    SimulatedRatioOptions,
    SimulationOptions,
    WorkerOptions,
    of_output,
)
from hiddenmanifold.cli.output import first_point

if TYPE_CHECKING:
    import xarray as xr

    from hiddenmanifold.model import Model

FINE, FINE_OPTIMAL = 200, 50
"""Points of the line that is drawn through simulated ones, and of one at the optimal λ."""


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
        of_output(
            "--per-seed", help="Write every fit into files, not the means and standard errors."
        ),
    ] = False,
    observables: Observables = None,
    decision_thresholds: DecisionThresholds = None,
) -> None:
    """Draw data, fit the model exactly and measure its errors, for many seeds.

    Ctrl-C keeps what is done. For example:
    hiddenmanifold simulate --n-over-d 3 --p-over-n 0.5,1,2 --lam 1e-2 --d 100 --seeds 10
    """
    from hiddenmanifold.api.simulate import simulate
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.work import with_bar
    from hiddenmanifold.results.datasets import summary

    grid = {**ratios.given(), "regularisation": regularisation}
    asked = {"observables": observables or (), "decision_thresholds": decision_thresholds}
    call = partial(simulate, model.model(), **asked)
    check(output, grid, lambda: summary(call(**size.smallest_run(), **first_point(grid))))
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
    decision_thresholds: DecisionThresholds = None,
) -> None:
    """Simulate and predict the same points; z is their difference in standard errors.

    For example: hiddenmanifold compare --n-over-d 3 --p-over-n 0.5,1,2 --lam 1e-2 --d 100
    """
    from hiddenmanifold.api.compare import compare
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.work import with_bar

    grid = {**ratios.given(), "regularisation": search.regularisation(regularisation)}
    chosen = model.model()
    asked = {"observables": observables or (), "decision_thresholds": decision_thresholds}
    call = partial(compare, chosen, **asked)
    check(output, grid, lambda: call(**size.smallest_run(), **first_point(grid)))
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
    count = FINE_OPTIMAL if "optimal_regularisation" in ds else FINE
    fine = space(np.min(positive), np.max(positive), count)
    if not grid.keys().isdisjoint(COUNTS):  # d is an option of the simulation
        grid = {**grid, "d": ds["d"].values.flat[0]}
        fine = np.round(fine) if x in COUNTS else fine
    return predict(model, **{**grid, x: np.union1d(fine, grid[x])}, on_failure="keep")
