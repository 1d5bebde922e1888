"""Predict learning curves: exact asymptotics of a model on a grid of ratios."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from .errors import InvalidArgumentError
from .grids import Grid, checked
from .model import Model
from .registry import check_count
from .theory.asymptotics import asymptotics
from .theory.optimal import Objective, optimal_regularisation
from .theory.sensitivity import PARAMETERS

if TYPE_CHECKING:
    import xarray as xr

THEORY = {"method": "saddle-point equations of Gerace et al. 2020, for any rho and intercept"}


def predict(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray | Literal["optimal"],
    n_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_n: ArrayLike | xr.DataArray | None = None,
    p_over_n: ArrayLike | xr.DataArray | None = None,
    n_over_p: ArrayLike | xr.DataArray | None = None,
    p_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_p: ArrayLike | xr.DataArray | None = None,
    minimise: Literal["generalisation_error", "clean_error"] = "generalisation_error",
    bounds: tuple[float, float] = (0.0, np.inf),
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
) -> xr.Dataset:
    """Exact test and training errors of a model in the limit n, p, d → ∞.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like, DataArray or "optimal"
        The λ of Σ loss(y, x·w/√p) + (λ/2)|w|². Zero means the limit λ → 0⁺: the unregularised
        minimiser, or the shortest of all if there are many; `inf` the limit λ → ∞, the direction
        in which w vanishes. "optimal" is the λ of least error at every point, which is then in
        the dataset as `optimal_regularisation`.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly two independent ratios of the numbers of samples n, features p and latent
        dimensions d; one, if the projection fixes d/p. A sequence becomes a dimension of that name
        (several span their outer product); DataArrays broadcast by the names of their dimensions.
        One of them may be infinite: ``p_over_n=np.inf`` with n/d is the kernel limit,
        ``n_over_p=np.inf`` with d/p that of infinite data.
    minimise : {"generalisation_error", "clean_error"}
        The error that "optimal" makes least.
    bounds : pair of float
        The λ among which "optimal" chooses; 0 and inf include the limits.
    on_failure : {"raise", "keep"}
        Whether a point that does not converge raises, or is kept as NaN with its `status`.
    workers : int, optional
        Processes used for large grids; by default one per core.

    Returns
    -------
    xarray.Dataset
        Errors, training loss, overlaps and certificates (`status`, `residual`,
        `quadrature_error`, `iterations`), with the meaning of each in its `long_name`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense; the message says which and why.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> ds = hm.predict(model, n_over_d=3.0, p_over_n=[0.5, 3.0], regularisation=1e-4)
    >>> ds.generalisation_error.values.round(4)
    array([0.3345, 0.1949])
    """
    given = {
        "n_over_d": n_over_d,
        "d_over_n": d_over_n,
        "p_over_n": p_over_n,
        "n_over_p": n_over_p,
        "p_over_d": p_over_d,
        "d_over_p": d_over_p,
    }
    workers = None if workers is None else check_count("workers", workers)
    if not (isinstance(regularisation, str) and regularisation == "optimal"):
        grid = Grid.of(model, given, regularisation)
        return checked(grid.dataset(asymptotics(model, grid.points, workers), THEORY), on_failure)
    low, high = _checked_bounds(minimise, bounds)
    grid = Grid.of(model, given)
    objective = Objective(model, grid.points.alpha, grid.points.gamma, minimise, workers)
    lam = optimal_regularisation(objective, low, high)
    columns = asymptotics(model, replace(grid.points, lam=lam), workers)
    return checked(grid.dataset({"optimal_regularisation": lam, **columns}, THEORY), on_failure)


def sensitivity(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
    **ratios: ArrayLike | xr.DataArray,
) -> xr.Dataset:
    """How the errors respond to more regularisation, samples or features.

    The derivatives come from the linear system of the last Newton step, not from differences of
    solutions. By which factor must n grow to halve the error? Roughly by 2 to the power of minus
    the error over its derivative by log n.

    Parameters
    ----------
    model, regularisation, on_failure, workers, **ratios
        As in `predict`.

    Returns
    -------
    xarray.Dataset
        What `predict` returns, and ``generalisation_error_by_log_regularisation``, ``..._by_log_n``
        and ``..._by_log_p`` (the others of λ, n, p and d held fixed), and those of `clean_error`.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> ds = hm.sensitivity(model, n_over_d=3.0, p_over_n=3.0, regularisation=1e-4)
    >>> float(ds.generalisation_error_by_log_n.round(4))
    -0.067
    """
    workers = None if workers is None else check_count("workers", workers)
    grid = Grid.of(model, ratios, regularisation)
    columns = asymptotics(model, grid.points, workers, slopes=PARAMETERS)
    return checked(grid.dataset(columns, THEORY), on_failure)


def _checked_bounds(minimise: str, bounds: tuple[float, float]) -> tuple[float, float]:
    """The bounds of a search for the optimum, if all that describes it makes sense."""
    if minimise not in ("generalisation_error", "clean_error"):
        raise InvalidArgumentError("minimise", minimise, "'generalisation_error' or 'clean_error'")
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low < high:
        raise InvalidArgumentError("bounds", bounds, "two numbers with 0 <= low < high <= inf")
    return low, high
