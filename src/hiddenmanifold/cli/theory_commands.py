"""The commands that solve equations: curves, and questions about a curve."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hiddenmanifold.cli.app import command
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import (
    DecisionThresholds,
    ModelOptions,
    NeedRatioOptions,
    Observables,
    OutputOptions,
    PeakRatioOptions,
    PeakRegularisation,
    RatioOptions,
    Regularisation,
    RegularisationOrOptimal,
    SampleRatioOptions,
    SearchOptions,
    WorkerOptions,
)
from hiddenmanifold.cli.output import first_point
from hiddenmanifold.cli.values import values

if TYPE_CHECKING:
    import xarray as xr

    from hiddenmanifold.model import Model

PIECES = {
    "predict": 2000,
    "optimal": 50,
    "sensitivity": 1000,
    "pairs": 100,
    "threshold": 200,
    "peak": 10,
    "needed": 1,
    "bayes": 500,
    "training": 2,
    "best": 1,
}
"""Points between two steps of the progress bar: about half a second's work, if possible."""
LABOUR = 50
"""About how many times longer a point takes if labels are numbers and sums run over these."""


def pieces(step: str, model: Model) -> int:
    """Points between two steps of the progress bar, for a model."""
    from hiddenmanifold.theory.labels_side.kinds import channel_of
    from hiddenmanifold.theory.labels_side.number_channel import NumberChannel

    laborious = isinstance(channel_of(model), NumberChannel) and not model.loss.quadratic
    return max(1, PIECES[step] // LABOUR) if laborious else PIECES[step]


def compute(
    step: str,
    question: Callable[..., xr.Dataset],
    model: Model,
    ratios: RatioOptions,
    output: OutputOptions,
    *,
    workers: WorkerOptions,
    names: Callable[[], Iterable[Hashable]] | None = None,
    **regularisation: Any,
) -> None:
    """Compute and deliver the answer for a model at some ratios; `names` finds its quantities."""
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.work import in_pieces

    call = partial(question, model, on_failure="keep", **workers.given())
    given = ratios.given()
    grid = {**given, **regularisation}
    check(output, grid, names or (lambda: call(**first_point(grid))))
    points = max(1, pieces(step, model) // np.size(regularisation.get("regularisation", 0.0)))
    deliver(in_pieces(partial(call, **regularisation, progress=False), given, points), output)


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
    decision_thresholds: DecisionThresholds = None,
) -> None:
    """Predict test and training errors in the limit of many samples, features and dimensions.

    Give two ratios, e.g.: hiddenmanifold predict --n-over-d 3 --p-over-n 0.05:3:60 --lam 1e-4;
    --lam optimal finds the regularisation of least error at each point.
    """
    from hiddenmanifold.api.predict import predict

    lam = search.regularisation(regularisation)
    step = "optimal" if isinstance(regularisation, str) else "predict"
    asked = {"observables": observables or (), "decision_thresholds": decision_thresholds}
    question = partial(predict, **asked)
    compute(step, question, model.model(), ratios, output, workers=workers, regularisation=lam)


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

    question = partial(sensitivity, observables=observables or ())
    lam = {"regularisation": regularisation}
    compute("sensitivity", question, model.model(), ratios, output, workers=workers, **lam)


@command()
@spread
def threshold(
    model: ModelOptions, ratios: RatioOptions, output: OutputOptions, workers: WorkerOptions
) -> None:
    """Find where the training data become linearly separable.

    Give one ratio, e.g.: hiddenmanifold threshold --n-over-d 0.5:5:10
    """
    from hiddenmanifold.api.thresholds import separability_threshold

    compute("threshold", separability_threshold, model.model(), ratios, output, workers=workers)


@command()
@spread
def existence(
    model: ModelOptions, ratios: RatioOptions, output: OutputOptions, workers: WorkerOptions
) -> None:
    """Find where the estimator without a penalty ceases to exist.

    For losses of label and score, as poisson, or ones that decay, as logistic. Give one ratio,
    e.g.: hiddenmanifold existence --n-over-d 3 --teacher poisson --loss poisson
    """
    from hiddenmanifold.api.thresholds import existence_threshold

    compute("threshold", existence_threshold, model.model(), ratios, output, workers=workers)


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

    lam = {"regularisation": regularisation}
    compute("peak", interpolation_peak, model.model(), ratios, output, workers=workers, **lam)


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

    question = partial(features_needed, within=within)
    # a single point takes seconds, and its quantities are known
    names = (*OF_KIND[Kind.FEATURES_NEEDED], "status")
    compute("needed", question, model.model(), ratios, output, workers=workers, names=lambda: names)


@command("samples-needed")
@spread
def samples_needed_command(
    *,
    model: ModelOptions,
    ratios: SampleRatioOptions,
    target: Annotated[
        Any,
        typer.Option(
            metavar="VALUES", help="Test errors to come down to, for good.", parser=values
        ),
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
    from hiddenmanifold.results.schema import OF_KIND, Kind

    goal = {"target_error": target, "regularisation": search.regularisation(regularisation)}
    names = (*OF_KIND[Kind.SAMPLES_NEEDED], "status")
    found = {"names": lambda: names, **goal}
    compute("needed", samples_needed, model.model(), ratios, output, workers=workers, **found)


@command()
@spread
def bayes(
    model: ModelOptions, ratios: RatioOptions, output: OutputOptions, workers: WorkerOptions
) -> None:
    """Find the least error that any method could reach on the Gaussian-equivalent data.

    Give two ratios, e.g.: hiddenmanifold bayes --n-over-d 3 --p-over-n 0.1:3:30
    """
    from hiddenmanifold.api.bayes_optimal import bayes_optimal

    compute("bayes", bayes_optimal, model.model(), ratios, output, workers=workers)


@command()
@spread
def training(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    times: Annotated[
        Any,
        typer.Option(
            metavar="VALUES",
            help="Times of gradient flow on the sum of losses, or with --step numbers of steps; 0 "
            "and inf are the limits.",
            parser=values,
        ),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Find the time of least error instead.")
    ] = False,
    step: Annotated[
        Any,
        typer.Option(metavar="VALUES", help="Step of gradient descent.", parser=values),
    ] = None,
    momentum: Annotated[float, typer.Option(help="Momentum of the steps, below 1.")] = 0.0,
    nesterov: Annotated[
        bool, typer.Option("--nesterov", help="Nesterov's momentum instead of the heavy ball.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="full-batch: every step follows the gradient of all samples; one-pass: each of n "
            "samples is used for one step.",
        ),
    ] = "full-batch",
    regularisation: Regularisation = "0",
    output: OutputOptions,
    workers: WorkerOptions,
) -> None:
    """Predict the errors of the square loss along training from zero weights.

    Give two ratios, e.g.: hiddenmanifold training --loss square --n-over-d 1 --p-over-n 0.9
    --times log:0.1:1e4:40
    """
    from hiddenmanifold.api.best_time import best_time
    from hiddenmanifold.api.training import training
    from hiddenmanifold.errors import InvalidArgumentError

    if best and times is not None:
        raise InvalidArgumentError.because(
            "--best", "finds the time", "leave out either --best or --times"
        )
    how = {"step": step, "momentum": momentum, "nesterov": nesterov, "method": method}
    question = partial(best_time, **how) if best else partial(training, times=times, **how)
    lam = {"regularisation": regularisation}
    compute(
        "best" if best else "training",
        question,
        model.model(),
        ratios,
        output,
        workers=workers,
        **lam,
    )
