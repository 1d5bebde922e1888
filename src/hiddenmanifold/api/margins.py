"""The law of the margins of a classifier, on the samples it was trained on and on new ones."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Literal, Unpack

from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import Grid, Ratios, check_on_failure, checked, with_ratios
from hiddenmanifold.api.predict import source
from hiddenmanifold.checks import Task, finite_vector
from hiddenmanifold.errors import CERTIFICATES, InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.results.datasets import with_margins
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.scores.distribution import MarginLaw

if TYPE_CHECKING:
    import xarray as xr

LAWS = {"test_cdf": False, "train_cdf": True}
"""Each law, and whether it is that of training samples."""


@with_ratios
def margins(
    model: Model,
    *,
    at: ArrayLike,
    regularisation: ArrayLike | xr.DataArray,
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    **ratios: Unpack[Ratios],
) -> xr.Dataset:
    """How the margins y f of new and of training samples are distributed, as n, p, d → ∞.

    They are given by distribution functions, which say everything: training margins gather at the
    kinks of a loss (at 1 for the hinge), where `train_cdf` jumps. It counts a jump at the value
    itself, so that the mass at 1 is its difference from a value just below.

    Parameters
    ----------
    model : Model
        What is learned; its labels are ±1.
    at : sequence of float
        The margins at which to evaluate.
    regularisation, on_failure, workers, executor, progress, **ratios
        As in `predict`, but for an optimal regularisation.

    Returns
    -------
    xarray.Dataset
        `test_cdf` and `train_cdf` with a last dimension `y_f`, and certificates.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or the model has real labels.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="hinge")
    >>> ds = hm.margins(model, n_over_d=3.0, p_over_n=1.0, regularisation=0.1, at=[0, 0.999, 1])
    >>> ds.train_cdf.values.round(4)
    array([0.0027, 0.0235, 0.5589])
    """
    check_on_failure(on_failure)
    pool = Workers(workers, executor, progress)
    grid = Grid.of(model, ratios, regularisation, on_failure="keep")
    values = finite_vector("at", at)
    if model.task is not Task.CLASSIFICATION:
        raise InvalidArgumentError(
            "model", model, "one whose labels are ±1: real labels have no margins"
        )
    laws = {
        f"{name}_{number}": MarginLaw(float(value), training=training)
        for name, training in LAWS.items()
        for number, value in enumerate(values)
    }
    columns = asymptotics(model, grid.points, pool, observables=laws)
    certificates = {name: columns[name] for name in CERTIFICATES}
    ds = grid.answer(certificates, source(pool))
    found = {name: [columns[f"{name}_{i}"] for i in range(len(values))] for name in LAWS}
    return checked(with_margins(ds, grid.template, found, values.tolist()), on_failure)
