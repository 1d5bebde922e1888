"""Predict learning curves: exact asymptotics of a model on a grid of ratios."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Literal, Unpack

from numpy.typing import ArrayLike

from .arguments import Grid, Optimal, Ratios, with_ratios
from .execution import Crew
from .kernel import engine
from .model import Model
from .theory.asymptotics import asymptotics
from .theory.optimal import ErrorByLambda, optimal_regularisation
from .theory.sensitivity import PARAMETERS

if TYPE_CHECKING:
    import xarray as xr

METHOD = "saddle-point equations of Gerace et al. 2020, for any rho and intercept"


def source(crew: Crew) -> dict[str, object]:
    """Where results of the theory come from, as attributes of a dataset."""
    return {"method": METHOD, "engine": engine(), "workers": crew.used}


@with_ratios
def predict(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray | Optimal | Literal["optimal"],
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
    executor: Executor | None = None,
    **ratios: Unpack[Ratios],
) -> xr.Dataset:
    """Exact test and training errors of a model in the limit n, p, d → ∞.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like, DataArray, Optimal or "optimal"
        The λ of Σ loss(y, x·w/√p) + (λ/2)|w|². Zero means the limit λ → 0⁺: the unregularised
        minimiser, or the shortest of all if there are many; `inf` the limit λ → ∞, the direction
        in which w vanishes. "optimal", or an `Optimal` with its own options, is the λ of least
        error at every point, which is then in the dataset as `optimal_regularisation`.
    on_failure : {"raise", "keep"}
        Whether a point that does not converge raises, or is kept as NaN with its `status`.
    workers : int, optional
        Processes used for large grids; by default one per core. Beside other threads (in a server,
        in a notebook) none can be forked safely, and this one does it all: the attribute `workers`
        of the result says how many took part.
    executor : concurrent.futures.Executor, optional
        Where to compute instead: a ProcessPoolExecutor, or that of a cluster.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly two independent ratios of the numbers of samples n, features p and latent
        dimensions d; one, if the features fix d/p. A sequence becomes a dimension of that name
        (several span their outer product); DataArrays broadcast by the names of their dimensions.
        One of them may be infinite: ``p_over_n=np.inf`` with n/d is the kernel limit,
        ``n_over_p=np.inf`` with d/p that of infinite data.

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
    crew, optimal = Crew(workers, executor), Optimal.asked_for(regularisation)
    if optimal is None:
        grid = Grid.of(model, ratios, regularisation, on_failure=on_failure)  # type: ignore[arg-type]
        columns = asymptotics(model, grid.points, crew)
    else:
        grid = Grid.of(model, ratios, on_failure=on_failure)
        points = grid.points
        errors = ErrorByLambda(model, points, optimal.minimise, crew)
        lam = optimal_regularisation(errors, *optimal.bounds)
        columns = asymptotics(model, points.at(lam), crew)
        columns = {"optimal_regularisation": lam, **columns}
    return grid.answer(columns, source(crew))


@with_ratios
def sensitivity(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
    executor: Executor | None = None,
    **ratios: Unpack[Ratios],
) -> xr.Dataset:
    """How the errors respond to more regularisation, samples or features.

    The derivatives come from the linear system of the last Newton step, not from differences of
    solutions. By which factor must n grow to halve the error? Roughly by 2 to the power of minus
    the error over its derivative by log n.

    Parameters
    ----------
    model, regularisation, on_failure, workers, executor, **ratios
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
    crew = Crew(workers, executor)
    grid = Grid.of(model, ratios, regularisation, on_failure=on_failure)
    columns = asymptotics(model, grid.points, crew, slopes=PARAMETERS)
    return grid.answer(columns, source(crew))
