"""When to stop training, and the error of training that is stopped early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import EarlyStopping
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.signatures import Trained, with_options
from hiddenmanifold.api.training import (
    METHOD,
    Training,
    finite_points,
    refuse_unstable,
    training,
)
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.training.rules import MOST_STEPS, beyond
from hiddenmanifold.theory.training.stopping import best_stopping

if TYPE_CHECKING:
    import xarray as xr

Minimised = Literal["generalisation_error", "clean_error", "mean_square_error"]


@with_options(Trained)
def best_time(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray = 0.0,
    minimise: Minimised = "generalisation_error",
    bounds: tuple[float, float] | None = None,
    **options: Unpack[Trained],
) -> xr.Dataset:
    """The time or number of steps at which training has the least error, and what it has there.

    The error may fall, rise and fall again along training: the minimum is the global one, of a scan
    that is refined.

    Parameters
    ----------
    model : Model
        The learning problem; its loss is the square loss.
    regularisation : array_like or DataArray
        The λ of the objective, zero by default.
    minimise : {"generalisation_error", "clean_error", "mean_square_error"}
        The error; the last one is of labels ±1.
    bounds : pair of float, optional
        Times between which to search, positive; by default from 0.001 to 10⁸ in units of the
        inverse of the largest eigenvalue, with both limits. With a momentum above 0.904 they are
        needed, and end at 640 steps at most or begin where it is forgotten.
    **options
        As in `training`; with a `step` the number of steps is found.

    Returns
    -------
    xarray.Dataset
        The `optimal_time`, with a `step` the `optimal_steps`, and all that `training` predicts
        there. Zero and infinity mean the limits, within the default bounds.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.
    IncompatibleIngredientsError
        If the loss is not the square loss.
    ConvergenceError
        If a point fails and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(
    ...     activation="erf", projection="gaussian", teacher=hm.teachers.Linear(0.2), loss="square"
    ... )
    >>> ds = hm.best_time(model, n_over_d=1.0, p_over_n=1.0)
    >>> float(ds.optimal_time.round(2)), float(ds.generalisation_error.round(4))
    (3.06, 0.6817)
    """
    given: dict[str, Any] = dict(options)
    training = Training.of(model, None, given, search=True)
    between = EarlyStopping("optimal", bounds).bounds
    later = beyond(training.momentum)
    if later > MOST_STEPS + 1 and not _known(between, later):
        raise InvalidArgumentError.because(
            "bounds",
            f"of a search with momentum {training.momentum:g} must be given",
            f"give two numbers of steps, the second at most {MOST_STEPS} or the first at least "
            f"{np.ceil(later):.0f}",
        )
    grid = Grid.of(model, given, training.axes(regularisation))
    allowed = ["generalisation_error", "clean_error"]
    allowed += ["mean_square_error"] if model.counts_errors else []
    if minimise not in allowed:
        names = " or ".join(map(repr, allowed))
        raise InvalidArgumentError("minimise", minimise, f"{names} for these labels")
    rule = training.rule(grid)
    time, columns = best_stopping(
        model, finite_points(grid), rule, minimise, bounds=between, workers=grid.workers
    )
    if grid.on_failure == "raise":
        refuse_unstable(columns)
    columns = {f"optimal_{training.dimension}": time, **columns}
    source = {"method": METHOD, **training.attributes, "minimised": minimise}
    return grid.answer(Kind.TRAINING, columns, source)


def _known(bounds: tuple[float, float] | None, later: float) -> bool:
    """Whether all numbers of steps between the bounds can be computed."""
    return bounds is not None and (bounds[1] <= MOST_STEPS or bounds[0] >= later)


def check_alone(others: Mapping[str, Any]) -> None:
    """Raise if anything is asked for that is not known of training that is stopped early."""
    for name, given in others.items():
        if given is not None and given != ():
            raise InvalidArgumentError.because(
                name, "cannot be combined with EarlyStopping", "leave it out"
            )


def stopped(model: Model, stopping: EarlyStopping, options: Mapping[str, Any]) -> xr.Dataset:
    """The prediction of training without a penalty that is stopped early."""
    if stopping.time == "optimal":
        return best_time(model, bounds=stopping.bounds, **options)
    return training(model, times=stopping.time, **options)
