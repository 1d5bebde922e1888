"""The arguments that public functions share, and how help and completion show them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from numpy.typing import ArrayLike

from hiddenmanifold.checks import CALLED, knows_penalty
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import Resampling

if TYPE_CHECKING:
    import xarray as xr

Answer = TypeVar("Answer", bound=Callable[..., Any])
RATIO = "a ratio α of sizes is called n_over_d or n_over_p"
UNPENALISED = "this question is about fits without a penalty, or with the best one, or about none"


class Ratios(TypedDict, total=False):
    """Ratios of the numbers of samples n, features p and latent dimensions d, or these numbers."""

    n_over_d: ArrayLike | xr.DataArray
    d_over_n: ArrayLike | xr.DataArray
    p_over_n: ArrayLike | xr.DataArray
    n_over_p: ArrayLike | xr.DataArray
    p_over_d: ArrayLike | xr.DataArray
    d_over_p: ArrayLike | xr.DataArray
    n: ArrayLike | xr.DataArray
    p: ArrayLike | xr.DataArray
    d: ArrayLike | xr.DataArray


class Execution(TypedDict, total=False):
    """Where to compute, and whether to show the progress."""

    workers: int | None
    executor: Executor | None
    progress: bool | None


class OnFailure(TypedDict, total=False):
    """Whether a point that fails raises, or is kept with its status."""

    on_failure: Literal["raise", "keep"]


class Theory(OnFailure, Execution, Ratios, total=False):
    """The arguments of every function of the theory."""


class Drawing(TypedDict, total=False):
    """The arguments that decide what a simulation draws and measures."""

    seeds: int
    n_test: int
    data: Literal["original", "equivalent"]
    observables: str | Sequence[str]
    margins: ArrayLike | None
    decision_thresholds: ArrayLike | None
    members: ArrayLike | None
    independent: Literal["features", "samples", "both", "none"]
    resampling: str | Resampling | None
    second: Model | None
    regularisation_2: ArrayLike | xr.DataArray | None
    p_2_over_d: ArrayLike | xr.DataArray | None
    share: ArrayLike
    seed: int
    store: str | os.PathLike[str] | None


class GradientMethod(TypedDict, total=False):
    """How weights are trained; gradient flow by default."""

    step: ArrayLike | xr.DataArray | None
    momentum: float
    nesterov: bool
    method: Literal["full-batch", "one-pass"]


class Trained(GradientMethod, Theory, total=False):
    """The arguments of the theory of training."""


class Seeded(GradientMethod, Execution, Ratios, total=False):
    """The arguments of a simulation of training."""

    seeds: int
    n_test: int
    data: Literal["original", "equivalent"]
    seed: int


class Finite(Drawing, Execution, Ratios, total=False):
    """The arguments of every simulation."""


DEFAULTS: Mapping[str, Any] = {
    "on_failure": "raise",
    "seeds": 30,
    "n_test": 4000,
    "data": "original",
    "observables": (),
    "independent": "features",
    "share": (1.0, 0.5, 0.0),
    "seed": 0,
    "momentum": 0.0,
    "nesterov": False,
    "method": "full-batch",
}
"""Default values of the arguments; None for all others."""


def with_options(options: type) -> Callable[[Answer], Answer]:
    """List the arguments behind ``**options`` in the signature that help and completion show.

    Who calls λ by the name that it has elsewhere learns what it is called here.
    """

    def spelled_out(function: Answer) -> Answer:
        signature = inspect.signature(function)
        own = {p.name: p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=DEFAULTS.get(name),
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for name, annotation in options.__annotations__.items()
            if name not in own
        ]
        parameters = [*own.values(), *shared]

        penalised = "regularisation" in own
        remedy = CALLED if penalised else UNPENALISED
        called = knows_penalty(f"{remedy}; {RATIO}", ("alpha",))(knows_penalty(remedy)(function))
        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return spelled_out
