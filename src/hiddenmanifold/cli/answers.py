"""The commands that answer a question about a curve: where, how many, how little."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hiddenmanifold.cli.commands import command, compute
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import (
    ModelOptions,
    NeedRatioOptions,
    OutputOptions,
    PeakRatioOptions,
    PeakRegularisation,
    RatioOptions,
    RegularisationOrOptimal,
    SampleRatioOptions,
    SearchOptions,
    WorkerOptions,
)

if TYPE_CHECKING:
    pass


@command()
@spread
def threshold(
    model: ModelOptions, ratios: RatioOptions, output: OutputOptions, workers: WorkerOptions
) -> None:
    """Find where the training data become linearly separable.

    Give one ratio, e.g.: hiddenmanifold threshold --n-over-d 0.5:5:10
    """
    from hiddenmanifold.api.thresholds import separability_threshold

    call = partial(separability_threshold, model.model(), on_failure="keep", **workers.given())
    compute("threshold", call, ratios, output)


@command()
@spread
def peak(
    *,
    model: ModelOptions,
    ratios: PeakRatioOptions,
    regularisation: PeakRegularisation,
    output: OutputOptions,
    workers: WorkerOptions,
) -> None:
    """Find place and height of the peak of the test error between few and many features.

    Give --n-over-d or --d-over-p, e.g.: hiddenmanifold peak --n-over-d 0.5:5:10 --lam 0,1e-4
    """
    from hiddenmanifold.api.thresholds import interpolation_peak
    from hiddenmanifold.cli.values import values

    lam = values("--regularisation", regularisation)
    call = partial(interpolation_peak, model.model(), on_failure="keep", **workers.given())
    compute("peak", call, ratios, output, regularisation=lam)


@command("features-needed")
@spread
def features_needed_command(
    *,
    model: ModelOptions,
    ratios: NeedRatioOptions,
    within: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="How close to the error of infinitely many: 0.05 is 5 % above."
        ),
    ] = 0.05,
    output: OutputOptions,
    workers: WorkerOptions,
) -> None:
    """Find the fewest features per sample whose error is close to that of infinitely many.

    Both at their best regularisation. Give --n-over-d, e.g.:
    hiddenmanifold features-needed --n-over-d 1,3 --loss square --within 0.1
    """
    from hiddenmanifold.api.needed import features_needed
    from hiddenmanifold.results.schema import OF_KIND, Kind

    call = partial(
        features_needed, model.model(), within=within, on_failure="keep", **workers.given()
    )
    # a single point takes seconds, and its quantities are known
    compute(
        "needed", call, ratios, output, names=lambda: (*OF_KIND[Kind.FEATURES_NEEDED], "status")
    )


@command("samples-needed")
@spread
def samples_needed_command(
    *,
    model: ModelOptions,
    ratios: SampleRatioOptions,
    target: Annotated[
        str, typer.Option(metavar="VALUES", help="Test errors to come down to, for good.")
    ],
    regularisation: RegularisationOrOptimal = "optimal",
    search: SearchOptions,
    output: OutputOptions,
    workers: WorkerOptions,
) -> None:
    """Find the fewest samples that bring the test error down to a target, for good.

    Give one ratio, e.g.:
    hiddenmanifold samples-needed --p-over-d 3 --target 0.2,0.1 --loss square
    """
    from hiddenmanifold.api.needed import samples_needed
    from hiddenmanifold.cli.values import values
    from hiddenmanifold.results.schema import OF_KIND, Kind

    lam = search.regularisation(regularisation)
    call = partial(samples_needed, model.model(), on_failure="keep", **workers.given())
    goal = {"target_error": values("--target", target), "regularisation": lam}
    names = (*OF_KIND[Kind.SAMPLES_NEEDED], "status")
    compute("needed", call, ratios, output, names=lambda: names, **goal)


@command()
@spread
def bayes(
    model: ModelOptions, ratios: RatioOptions, output: OutputOptions, workers: WorkerOptions
) -> None:
    """Find the least error that any method could reach on the Gaussian-equivalent data.

    Give two ratios, e.g.: hiddenmanifold bayes --n-over-d 3 --p-over-n 0.1:3:30
    """
    from hiddenmanifold.api.bayes_optimal import bayes_optimal

    call = partial(bayes_optimal, model.model(), on_failure="keep", **workers.given())
    compute("bayes", call, ratios, output)
