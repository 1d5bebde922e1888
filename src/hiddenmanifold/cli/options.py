"""What several commands share: groups of options, which are dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiddenmanifold.checks import INGREDIENT_KINDS
from hiddenmanifold.cli.values import bounds, names, values, values_or
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hiddenmanifold.api.arguments import Optimal
    from hiddenmanifold.arrays import Array
    from hiddenmanifold.model import Model

MODEL, RATIOS, SEARCH = "Model", "Ratios", "Regularisation"
SIMULATION, OUTPUT = "Simulation", "Output"


def _names(kind: str) -> Callable[[], list[str]]:
    """The names of a kind of ingredient, for completion in the shell."""

    def complete() -> list[str]:
        from hiddenmanifold.cli.ingredient_options import families

        return list(families()[kind][1])

    return complete


def _ingredient(kind: str, examples: str = "") -> Any:
    text = INGREDIENT_KINDS[kind].description + (f", e.g. {examples}." if examples else ".")
    return typer.Option(
        metavar="NAME[:KEY=...]", help=text, autocompletion=_names(kind), rich_help_panel=MODEL
    )


def _ratio(text: str) -> Any:
    return typer.Option(metavar="VALUES", help=text, parser=values, rich_help_panel=RATIOS)


def _size(text: str, metavar: str = "N") -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel=SIMULATION)


def _file(text: str) -> Any:
    return typer.Option(metavar="FILE", help=text, rich_help_panel=OUTPUT)


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
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OUTPUT)
]
Observables = Annotated[
    Any,
    typer.Option(
        metavar="NAME,...",
        parser=names,
        help="More to measure.",
        rich_help_panel=OUTPUT,
    ),
]
Loss = Annotated[str, _ingredient("loss", "square or huber:delta=0.5")]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Threads or processes; by default one per core.", rich_help_panel=OUTPUT
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """The learning problem; by default that of the paper."""

    activation: Annotated[str, _ingredient("activation")] = INGREDIENT_KINDS["activation"].default
    projection: Annotated[
        str,
        _ingredient("projection", "matrix:F=file.npy or spectrum:eigenvalues=0.5,1.5,d_over_p=1"),
    ] = INGREDIENT_KINDS["projection"].default
    teacher: Annotated[
        str, _ingredient("teacher", "sign:noise=0.1,flip=0.05 or logistic:slope=2")
    ] = INGREDIENT_KINDS["teacher"].default
    loss: Loss = INGREDIENT_KINDS["loss"].default
    intercept: Annotated[
        bool, typer.Option("--intercept", help="Fit an intercept.", rich_help_panel=MODEL)
    ] = False

    def model(self) -> Model:
        """The model that is meant."""
        from hiddenmanifold.cli.ingredient_options import ingredient
        from hiddenmanifold.model import Model

        chosen = {kind: ingredient(kind, getattr(self, kind)) for kind in INGREDIENT_KINDS}
        return Model(**chosen, intercept=self.intercept)


@dataclass(frozen=True)
class RatioOptions:
    """Ratios of the numbers of samples n, features p and latent dimensions d; or these sizes."""

    n_over_d: Annotated[Any, _ratio("Samples per latent dimension.")] = None
    p_over_n: Annotated[Any, _ratio("Features per sample.")] = None
    n_over_p: Annotated[Any, _ratio("Samples per feature.")] = None
    p_over_d: Annotated[Any, _ratio("Features per latent dimension.")] = None
    d_over_p: Annotated[Any, _ratio("Latent dimensions per feature.")] = None
    d_over_n: Annotated[Any, _ratio("Latent dimensions per sample.")] = None
    n: Annotated[Any, _ratio("Samples; sizes may take the place of ratios.")] = None
    p: Annotated[Any, _ratio("Features.")] = None
    d: Annotated[Any, _ratio("Latent dimensions.")] = None

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
        typer.Option(
            metavar="ERROR",
            help="What the optimal λ makes least: generalisation_error, clean_error, test_loss or "
            "calibration_error.",
            rich_help_panel=SEARCH,
        ),
    ] = "generalisation_error"
    bounds: Annotated[
        Any,
        typer.Option(
            metavar="LOW:HIGH",
            parser=bounds,
            help="Where the optimal λ is sought; 0 and inf include the limits.",
            rich_help_panel=SEARCH,
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
        _size("Latent dimension, from which n and p follow; 256 unless the features fix it."),
    ] = None
    seeds: Annotated[int, _size("Independent draws of everything.")] = 30
    n_test: Annotated[int, _size("Fresh samples per draw.")] = 4000
    data: Annotated[str, _size("original, or equivalent: the Gaussian twin.", "KIND")] = "original"
    seed: Annotated[int, _size("Root of all randomness.")] = 0
    store: Annotated[
        Path | None,
        _size("Keep every fit in this file, and make none again that it has.", "FILE"),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options, as arguments of `simulate`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def rehearsal(self) -> dict[str, Any]:
        """The same for the least work that gives every quantity."""
        least = {"seeds": 2, "n_test": 2, "workers": 1, "store": None, "progress": False}
        return {**self.given(), **least}


@dataclass
class WorkerOptions:
    """Who does the work."""

    workers: Workers = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A Dask cluster to run on, as tcp://host:8786; local:4 makes one of 4 processes.",
            rich_help_panel=OUTPUT,
        ),
    ] = None

    @contextmanager
    def hired(self) -> Iterator[None]:
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

    csv: Annotated[Path | None, _file("Write all points as CSV; - is standard output.")] = None
    json: Annotated[Path | None, _file("Write all points as JSON; - is standard output.")] = None
    nc: Annotated[Path | None, _file("Write the dataset as netCDF, for xarray.")] = None
    plot: Annotated[Path | None, _file("Draw it, as .png, .pdf or .svg.")] = None
    x: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Horizontal axis of the plot, e.g. p_over_n; by default what has most values.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    show: Annotated[
        Any,
        typer.Option(
            metavar="NAME,...",
            help="Quantities in the table and in the plot, e.g. generalisation_error,q_w.",
            parser=names,
            rich_help_panel=OUTPUT,
        ),
    ] = None
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no table.", rich_help_panel=OUTPUT)
    ] = False
    debug: Debug = False

    def quantities(self) -> list[str]:
        """Names of what is shown; none if that was not said."""
        return list(self.show or ())
