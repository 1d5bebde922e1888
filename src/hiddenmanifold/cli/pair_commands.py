"""The commands about several fits: ensembles, bias and variance, instability, two models."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from hiddenmanifold.cli.app import command
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import (
    ModelOptions,
    Observables,
    OutputOptions,
    RatioOptions,
    Regularisation,
    WorkerOptions,
)
from hiddenmanifold.cli.theory_commands import compute
from hiddenmanifold.cli.values import values

of_fits = partial(typer.Option, rich_help_panel="Fits")
Independent = Annotated[
    str,
    of_fits(
        metavar="WHAT",
        help="What every fit draws for itself: features, samples, both or none.",
    ),
]
Resampling = Annotated[
    str | None,
    of_fits(
        metavar="NAME[:KEY=...]",
        help="How every fit draws from common samples: bootstrap, sub_sample:fraction=0.5 or "
        "split:parts=4.",
    ),
]
Members = Annotated[
    Any, of_fits(metavar="VALUES", parser=values, help="Numbers of fits; inf is the limit.")
]


Second = Annotated[
    str | None,
    of_fits(metavar="NAME[:KEY=...]", help="Loss of the second fit, if it is another."),
]
SecondActivation = Annotated[
    str | None,
    of_fits(metavar="NAME[:KEY=...]", help="Activation of the second fit, if it is another."),
]
SecondProjection = Annotated[
    str | None,
    of_fits(metavar="NAME[:KEY=...]", help="Matrix of the second fit, if it is another."),
]
SecondLam = Annotated[
    Any, of_fits(metavar="VALUES", parser=values, help="λ of the second fit, if it is another.")
]
SecondSize = Annotated[
    Any,
    of_fits(
        metavar="VALUES",
        parser=values,
        help="Features of the second fit per latent dimension; by default as many as the first.",
    ),
]
Share = Annotated[
    Any,
    of_fits(
        metavar="VALUES",
        parser=values,
        help="Shares of the first fit in the mean of both predictions.",
    ),
]


def resampled(independent: str, resampling: str | None) -> dict[str, Any]:
    """The arguments of a function that say how fits differ."""
    from hiddenmanifold.cli.ingredient_options import ingredient

    scheme = None if resampling is None else ingredient("resampling", resampling)
    return {"independent": independent, "resampling": scheme}


@command()
@spread
def ensemble(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    output: OutputOptions,
    workers: WorkerOptions,
    members: Members = "1,2,4,inf",
    independent: Independent = "features",
    resampling: Resampling = None,
    observables: Observables = None,
) -> None:
    """Predict the errors of the mean and of the majority vote of several fits.

    For example: hiddenmanifold ensemble --n-over-d 3 --p-over-n 0.1:3:30 --lam 1e-4 --members 1,8
    """
    from hiddenmanifold.api.ensembles import ensemble

    given = {"members": members, **resampled(independent, resampling)}
    question = partial(ensemble, **given, observables=observables or ())
    lam = {"regularisation": regularisation}
    compute("pairs", question, model.model(), ratios, output, workers=workers, **lam)


@command("bias-variance")
@spread
def bias_variance(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    output: OutputOptions,
    workers: WorkerOptions,
) -> None:
    """Split the mean square error into bias and variances of features, samples and noise.

    For example: hiddenmanifold bias-variance --loss square --n-over-d 1 --p-over-n 0.5,1,2
    --lam 1e-3
    """
    from hiddenmanifold.api.pairs_of_fits import bias_variance

    lam = {"regularisation": regularisation}
    compute("pairs", bias_variance, model.model(), ratios, output, workers=workers, **lam)


@command()
@spread
def instability(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    output: OutputOptions,
    workers: WorkerOptions,
    independent: Independent = "samples",
    resampling: Resampling = None,
) -> None:
    """Predict how differently two fits predict, of independent samples or two bootstraps.

    For example: hiddenmanifold instability --n-over-d 1,10 --p-over-d 2 --lam 0.1
    """
    from hiddenmanifold.api.pairs_of_fits import instability

    question = partial(instability, **resampled(independent, resampling))
    lam = {"regularisation": regularisation}
    compute("pairs", question, model.model(), ratios, output, workers=workers, **lam)


@command()
@spread
def pair(
    *,
    model: ModelOptions,
    ratios: RatioOptions,
    regularisation: Regularisation,
    output: OutputOptions,
    workers: WorkerOptions,
    second_loss: Second = None,
    second_activation: SecondActivation = None,
    second_projection: SecondProjection = None,
    second_lam: SecondLam = None,
    second_p_over_d: SecondSize = None,
    share: Share = "1,0.5,0",
    independent: Independent = "features",
    resampling: Resampling = None,
    observables: Observables = None,
) -> None:
    """Predict what two fits of different models to the same labels share, and errors of their mean.

    For example: hiddenmanifold pair --n-over-d 2 --p-over-n 0.1:3:30 --lam 0.01 --second-loss hinge
    """
    from hiddenmanifold.api.pair_of_models import pair

    named: dict[str, Any] = {
        "loss": second_loss,
        "activation": second_activation,
        "projection": second_projection,
    }
    second = replace(model, **{kind: name for kind, name in named.items() if name is not None})
    given = {"share": share, **resampled(independent, resampling)}
    question = partial(pair, second=second.model(), **given, observables=observables or ())
    axes = {"regularisation_2": second_lam, "p_2_over_d": second_p_over_d}
    varied = {name: values for name, values in axes.items() if values is not None}
    lam = {"regularisation": regularisation, **varied}
    compute("pairs", question, model.model(), ratios, output, workers=workers, **lam)
