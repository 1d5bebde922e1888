"""How many features, or samples, are enough to reach a given error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import Optimal
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.predict import source
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.checks import check_number
from hiddenmanifold.errors import InvalidArgumentError, Status
from hiddenmanifold.model import Model
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.curves.error_curve import ErrorCurve
from hiddenmanifold.theory.curves.fewest_features import fewest_features
from hiddenmanifold.theory.curves.fewest_samples import fewest_samples

if TYPE_CHECKING:
    import xarray as xr


@with_options(Theory)
def features_needed(
    model: Model,
    *,
    within: float = 0.05,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """The fewest features per sample whose error comes close to that of infinitely many.

    Both errors are those at their optimal regularisation.

    Parameters
    ----------
    model : Model
        The learning problem.
    within : float
        How close, relative to the error of the kernel limit; positive.
    on_failure : {"raise", "keep"}
        Whether a search that does not converge raises, or is kept with its `status`.
    workers, executor, progress
        As in `predict`.
    n_over_d : array_like or DataArray
        Samples per latent dimension; or the two numbers themselves, n and d.

    Returns
    -------
    xarray.Dataset
        `p_over_n`, the `generalisation_error` there, that of the `kernel_limit`, and `status`.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    >>> float(hm.features_needed(model, n_over_d=3.0).p_over_n.round(2))
    29.14
    """
    grid = Grid.of(model, options, one_of=("n_over_d",))
    check_number("within", within, 0.0, open_low=True)
    n_over_d = grid.ratio[1]
    unused = np.zeros_like(n_over_d)
    curve = ErrorCurve(model, "p", n_over_d, unused, grid.workers, bounds=(0.0, np.inf))
    columns, missed = fewest_features(curve, within)
    if not columns["kernel_limit"].all():
        raise InvalidArgumentError("model", model, "one whose error does not vanish in the limit")
    columns["status"] = np.where(missed, Status.SEARCH, Status.CONVERGED).astype(np.int8)
    return grid.answer(Kind.FEATURES_NEEDED, columns, source())


@with_options(Theory)
def samples_needed(
    model: Model,
    *,
    target_error: ArrayLike | xr.DataArray,
    regularisation: ArrayLike | xr.DataArray | Optimal | Literal["optimal"] = "optimal",
    **options: Unpack[Theory],
) -> xr.Dataset:
    """The fewest samples that bring the test error down to a target, for good.

    At a fixed regularisation more samples can increase the error, above all near the
    interpolation threshold. The result is therefore the number of samples beyond which the error
    never again exceeds the target; the number at which it first reaches the target is returned too.

    Parameters
    ----------
    model : Model
        The learning problem.
    target_error : array_like or DataArray
        The `generalisation_error` to reach, positive.
    regularisation : array_like, DataArray, Optimal or "optimal"
        The λ, the same whatever the number of samples; or the best for each number.
    on_failure : {"raise", "keep"}
        Whether a search that does not end raises, or is kept as NaN with its `status`.
    workers, executor, progress
        As in `predict`.
    p_over_d, d_over_p : array_like or DataArray
        The features per latent dimension, one of the two; none, if the features fix d/p. Or the
        two numbers themselves, p and d.

    Returns
    -------
    xarray.Dataset
        `n_over_d`, beyond which the error stays at or below the target, and `first_n_over_d`,
        where it first gets there: 0 where one sample per ten thousand features is enough, inf where
        no number is. The `generalisation_error` with `n_over_d` samples, that of infinitely many,
        `infinite_data_limit` (above the target if `n_over_d` is inf), and `status`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.
    ConvergenceError
        If part of a curve that matters could not be solved; ``partial`` has the dataset.

    Notes
    -----
    Curves are searched from n/p = 1e-4 to 1e12, most finely near the thresholds, where peaks are
    narrow. A part that cannot be solved matters if it lies before a number that is returned, or
    beyond n_over_d, unless it interrupts a steady fall far from those thresholds.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    >>> ds = hm.samples_needed(model, target_error=[0.2, 0.05], p_over_d=3.0)
    >>> ds.n_over_d.values.round(3)
    array([2.324,   inf])
    >>> float(ds.infinite_data_limit[1].round(4))
    0.0674
    """
    grid = Grid.of(
        model,
        options,
        {"regularisation": regularisation, "target_error": target_error},
        one_of=("p_over_d", "d_over_p"),
        search=True,
    )
    optimal = grid.optimal
    if optimal is not None and optimal.minimise != "generalisation_error":
        raise InvalidArgumentError(
            "regularisation",
            optimal,
            "Optimal(minimise='generalisation_error'), since the target is one of that error",
        )
    name, ratio = grid.ratio
    curve = ErrorCurve(
        model,
        "n",
        ratio if name == "d_over_p" else 1.0 / ratio,
        grid.flat(grid.coordinates["regularisation"]) if optimal is None else np.zeros_like(ratio),
        grid.workers,
        None if optimal is None else optimal.bounds,
    )
    columns, missed = fewest_samples(curve, grid.flat(grid.coordinates["target_error"]))
    columns["status"] = np.where(missed, Status.SEARCH, Status.CONVERGED).astype(np.int8)
    return grid.answer(Kind.SAMPLES_NEEDED, columns, source())
