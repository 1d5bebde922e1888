"""Groups of options that several commands share, each a dataclass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hiddenmanifold.checks import INGREDIENT_KINDS
from hiddenmanifold.cli.values import bounds, names, values, values_or
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hiddenmanifold.api.arguments import Optimal
    from hiddenmanifold.arrays import Array
    from hiddenmanifold.model import Model

SEARCH = "Regularisation"
of_model = partial(typer.Option, rich_help_panel="Model")
of_ratios = partial(typer.Option, metavar="VALUES", parser=values, rich_help_panel="Ratios")
of_search = partial(typer.Option, rich_help_panel=SEARCH)
of_simulation = partial(typer.Option, rich_help_panel="Simulation")
of_output = partial(typer.Option, rich_help_panel="Output")
file = partial(of_output, metavar="FILE")
"""Options by the part of the help page that they belong to."""


def _names(kind: str) -> Callable[[], list[str]]:
    """The names of a kind of ingredient, for completion in the shell."""

    def complete() -> list[str]:
        from hiddenmanifold.cli.ingredient_options import families

        return list(families()[kind][1])

    return complete


def _ingredient(kind: str, examples: str = "", *, unless_kernel: bool = False) -> Any:
    about = INGREDIENT_KINDS[kind]
    text = about.description + (f", e.g. {examples}." if examples else ".")
    text += f" By default {about.default}, unless a kernel is given." if unless_kernel else ""
    return of_model(metavar="NAME[:KEY=...]", help=text, autocompletion=_names(kind))


def regularisation(text: str, word: str = "", *, panel: str = SEARCH) -> Any:
    """The option of λ, which a word may take the place of."""
    return typer.Option(
        *("--regularisation", "--lam"),
        metavar="VALUES",
        help=f"The λ of Σ loss + (λ/2)|w|², a sum over samples; {text}.",
        parser=values_or(word) if word else values,
        rich_help_panel=panel,
    )


LIMITS, FITTED = "0 and inf are the limits", "positive, or 0 with the square loss"
OPTIMAL = "; the word optimal: the λ of least error"

Regularisation = Annotated[Any, regularisation(LIMITS)]
RegularisationOrOptimal = Annotated[Any, regularisation(LIMITS + OPTIMAL, "optimal")]
FittedRegularisation = Annotated[Any, regularisation(FITTED)]
FittedRegularisationOrOptimal = Annotated[Any, regularisation(FITTED + OPTIMAL, "optimal")]
PeakRegularisation = Annotated[Any, regularisation("0 is the limit")]
Debug = Annotated[bool, of_output("--debug", help="Show the traceback of an error.")]
Observables = Annotated[
    Any, of_output(metavar="NAME,...", parser=names, help="More quantities to show.")
]
DecisionThresholds = Annotated[
    Any,
    of_output(
        "--decision-thresholds",
        metavar="VALUES",
        parser=lambda text: np.atleast_1d(values(text)),
        help="Probabilities at which to decide: sensitivity, specificity and net benefit at each.",
    ),
]
Loss = Annotated[str, _ingredient("loss", "square or huber:delta=0.5")]


@dataclass(frozen=True)
class ModelOptions:
    """The learning problem; by default that of the paper."""

    activation: Annotated[str | None, _ingredient("activation", unless_kernel=True)] = None
    projection: Annotated[
        str | None,
        _ingredient(
            "projection",
            "matrix:F=file.npy or spectrum:eigenvalues=0.5,1.5,d_over_p=1",
            unless_kernel=True,
        ),
    ] = None
    kernel: Annotated[
        str | None,
        of_model(
            metavar="NAME[:KEY=...]",
            help="A kernel in place of random features, e.g. ntk:activation=relu,hidden_layers=3 "
            "or rbf:scale=0.5.",
            autocompletion=_names("kernel"),
        ),
    ] = None
    teacher: Annotated[
        str,
        _ingredient(
            "teacher",
            "sign:noise=0.1,flip=0.05 or poisson:rate=softplus,slope=2 or "
            "real:function=tanh,noise=laplace(0.5)",
        ),
    ] = INGREDIENT_KINDS["teacher"].default
    loss: Loss = INGREDIENT_KINDS["loss"].default
    intercept: Annotated[bool, of_model("--intercept", help="Fit an intercept.")] = False
    prediction: Annotated[
        str | None,
        of_model(
            metavar="NAME",
            help="Function of the score by which labels are predicted. By default sign for labels "
            "±1; for numbers exp with the losses poisson and gamma, logistic with binomial, "
            "identity with all others.",
            autocompletion=_names("prediction"),
        ),
    ] = None
    class_weight: Annotated[
        str | None,
        of_model(
            metavar="balanced|W-,W+",
            help="How many times samples of the labels -1 and +1 count in the objective; with "
            "balanced both classes count the same.",
        ),
    ] = None

    scheme: Annotated[
        str | None,
        of_model(
            metavar="one-vs-rest",
            help="For several classes, with a loss for labels ±1: fit each against all others.",
        ),
    ] = None

    def model(self) -> Model:
        """The model that is meant."""
        from hiddenmanifold.cli.ingredient_options import class_weights, ingredient
        from hiddenmanifold.model import Model

        names = {kind: getattr(self, kind) for kind in (*INGREDIENT_KINDS, "kernel")}
        if self.kernel is None:
            usual = {kind: about.default for kind, about in INGREDIENT_KINDS.items()}
            names |= {kind: name for kind, name in usual.items() if names[kind] is None}
        chosen = {kind: ingredient(kind, n) for kind, n in names.items() if n is not None}
        given = self.prediction
        prediction = None if given is None else ingredient("prediction", given)
        weights = class_weights(self.class_weight)
        return Model(
            **chosen,
            intercept=self.intercept,
            prediction=prediction,
            weights=weights,
            scheme=self.scheme,
        )


@dataclass(frozen=True)
class RatioOptions:
    """Ratios of the numbers of samples n, features p and latent dimensions d; or these sizes."""

    n_over_d: Annotated[Any, of_ratios(help="Samples per latent dimension.")] = None
    p_over_n: Annotated[Any, of_ratios(help="Features per sample.")] = None
    n_over_p: Annotated[Any, of_ratios(help="Samples per feature.")] = None
    p_over_d: Annotated[Any, of_ratios(help="Features per latent dimension.")] = None
    d_over_p: Annotated[Any, of_ratios(help="Latent dimensions per feature.")] = None
    d_over_n: Annotated[Any, of_ratios(help="Latent dimensions per sample.")] = None
    n: Annotated[Any, of_ratios(help="Samples; sizes may take the place of ratios.")] = None
    p: Annotated[Any, of_ratios(help="Features.")] = None
    d: Annotated[Any, of_ratios(help="Latent dimensions.")] = None

    def given(self) -> dict[str, Any]:
        """The ratios that were given, as numbers and vectors."""
        return {name: given for name, given in vars(self).items() if given is not None}


SimulatedRatioOptions = Annotated[
    RatioOptions, "n_over_d", "p_over_n", "n_over_p", "p_over_d", "d_over_p", "d_over_n", "n", "p"
]
"""Without d, which is an option of the simulation."""
PeakRatioOptions = Annotated[RatioOptions, "n_over_d", "d_over_p", "n", "p", "d"]
"""What is held fixed on the way to a peak."""
NeedRatioOptions = Annotated[RatioOptions, "n_over_d", "n", "d"]
"""What is held fixed while features are added."""
SampleRatioOptions = Annotated[RatioOptions, "p_over_d", "d_over_p", "p", "d"]
"""What is held fixed while samples are added."""


@dataclass(frozen=True)
class SearchOptions:
    """How the optimal regularisation is sought."""

    minimise: Annotated[
        str,
        of_search(
            metavar="ERROR",
            help="What the optimal λ makes least: generalisation_error, clean_error, test_loss; "
            "for labels ±1 calibration_error, probability_error or brier_score; for numbers "
            "deviance or mean_absolute_error.",
        ),
    ] = "generalisation_error"
    bounds: Annotated[
        Any,
        of_search(
            metavar="LOW:HIGH",
            parser=bounds,
            help="Where the optimal λ is sought; 0 and inf include the limits.",
        ),
    ] = "0:inf"

    def regularisation(self, given: Any) -> float | Array | Optimal:
        """The λ that is given: numbers, or this search."""
        from hiddenmanifold.api.arguments import Optimal

        search = Optimal(self.minimise, self.bounds)  # type: ignore[arg-type]
        if isinstance(given, str):
            return search
        if search != Optimal():
            raise InvalidArgumentError.because(
                "--minimise and --bounds",
                "have no effect",
                "leave them out, or give --regularisation optimal",
            )
        return given  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SimulationOptions:
    """Sizes and seeds of a simulation."""

    d: Annotated[
        int | None,
        of_simulation(
            metavar="N",
            help="Latent dimension, from which n and p follow; 256 unless the features fix it.",
        ),
    ] = None
    seeds: Annotated[
        int,
        of_simulation(metavar="N", help="Independent draws of features, teacher and samples."),
    ] = 30
    n_test: Annotated[int, of_simulation(metavar="N", help="New samples to test on, per draw.")] = (
        4000
    )
    data: Annotated[
        str,
        of_simulation(
            metavar="KIND", help="original, or equivalent: Gaussian-equivalent features."
        ),
    ] = "original"
    seed: Annotated[int, of_simulation(metavar="N", help="Seed of the random numbers.")] = 0
    store: Annotated[
        Path | None,
        of_simulation(
            metavar="FILE", help="File that keeps every fit; fits that it has are reused."
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options, as arguments of `simulate`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def smallest_run(self) -> dict[str, Any]:
        """The same for the least work that gives every quantity."""
        least = {"seeds": 2, "n_test": 2, "workers": 1, "store": None, "progress": False}
        return {**self.given(), **least}


@dataclass
class WorkerOptions:
    """Who does the work."""

    workers: Annotated[
        int | None,
        of_output(metavar="N", help="Threads or processes; by default one per core."),
    ] = None
    cluster: Annotated[
        str | None,
        of_output(
            metavar="ADDRESS",
            help="A Dask cluster to run on, as tcp://host:8786; local:4 makes one of 4 processes.",
        ),
    ] = None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Keep a client of the cluster while the command runs."""
        self.executor = None
        if self.cluster is None:
            yield
            return
        from hiddenmanifold.cli.cluster import client

        if self.workers is not None:
            raise InvalidArgumentError.because(
                "--workers", "cannot be combined with --cluster", "leave one of them out"
            )
        with client(self.cluster) as self.executor:
            yield

    def given(self) -> dict[str, Any]:
        """The arguments of every function that shares its work."""
        return {"workers": self.workers, "executor": self.executor}


@dataclass(frozen=True)
class OutputOptions:
    """Where results go."""

    csv: Annotated[Path | None, file(help="Write all points as CSV; - is standard output.")] = None
    json: Annotated[Path | None, file(help="Write all points as JSON; - is standard output.")] = (
        None
    )
    nc: Annotated[Path | None, file(help="Write the dataset as netCDF, for xarray.")] = None
    plot: Annotated[Path | None, file(help="Draw it, as .png, .pdf or .svg.")] = None
    x: Annotated[
        str | None,
        of_output(
            metavar="NAME",
            help="Horizontal axis of the plot, e.g. p_over_n; by default the one of most values.",
        ),
    ] = None
    show: Annotated[
        Any,
        of_output(
            metavar="NAME,...",
            help="Quantities in the table and in the plot, e.g. generalisation_error,q_w.",
            parser=names,
        ),
    ] = None
    quiet: Annotated[bool, of_output("--quiet", "-q", help="Print no table.")] = False
    debug: Debug = False

    def quantities(self) -> list[str]:
        """Names of what is shown; none if that was not said."""
        return list(self.show or ())
