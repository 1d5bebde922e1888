"""Predict learning curves: errors, their derivatives and margins of a model on a grid of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import Optimal
from hiddenmanifold.api.grid import BYTES, Grid
from hiddenmanifold.api.lazy import Chunks, chunked
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.checks import Task
from hiddenmanifold.compiled import engine
from hiddenmanifold.errors import CERTIFICATES, InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.results.observables import (
    MARGIN_LAWS,
    REGISTRY,
    Observable,
    chosen,
    margin_laws,
)
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.teachers import Linear
from hiddenmanifold.theory.best_lambda.search import Search, best_regularisation
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.scores.distribution import Observed
from hiddenmanifold.theory.solver.settings import STANDARD
from hiddenmanifold.theory.solver.tangents import PARAMETERS

if TYPE_CHECKING:
    import xarray as xr

METHOD = "saddle-point equations of Gerace et al. 2020, for any rho and intercept"
TOLERANCES = STANDARD.attributes


def source() -> dict[str, object]:
    """Where results of the theory come from, as attributes of a dataset."""
    return {"method": METHOD, "engine": engine(), **TOLERANCES}


SECONDS = {"compiled": 1e-5, "numpy": 7e-5}
"""Time of one point on one core, within a factor of two, by engine."""
CLOSED_FORM = 3e-6
"""The same for the square loss."""
OTHER_LABELS = 1e-2
"""The same for labels that are neither ±1 nor linear in the field."""
SEARCH = 15
"""Points solved in search of the optimal regularisation of one, roughly."""


@with_options(Theory)
def predict(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray | Optimal | Literal["optimal"],
    observables: str | Sequence[str] = (),
    chunks: Chunks | None = None,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """Exact test and training errors of a model in the limit n, p, d → ∞.

    Parameters
    ----------
    model : Model
        The learning problem.
    regularisation : array_like, DataArray, Optimal or "optimal"
        The λ of `Σ loss(y, x·w/√p) + (λ/2)|w|²`. Zero means the limit λ → 0⁺: the unregularised
        minimiser, or the shortest of all if there are many; `inf` the limit λ → ∞, the direction
        in which w vanishes. "optimal", or an `Optimal` with its own options, is the λ of least
        error at every point, which is then in the dataset as `optimal_regularisation`.
    observables : sequence of str
        More to predict, of new samples: "test_loss", the mean loss; and for labels ±1 "auc", the
        area under the ROC curve, "calibration_error", the mean of `|σ(f) - P(y = +1 | f)|`
        with the logistic function σ whatever the loss, and "best_temperature", the T at which
        σ(f/T) has the least log-loss.
    chunks : mapping or "auto", optional
        How many points along each dimension are computed together, when they are asked for: the
        dataset then holds dask arrays, for ``.compute()``, ``.to_zarr()`` and the like, on the
        threads, processes or cluster that dask is configured to use. Nothing but the first point is
        computed before.
    on_failure : {"raise", "keep"}
        Whether a point that does not converge raises, or is kept as NaN with its `status`.
    workers : int, optional
        Threads, or processes for work of more than some seconds; by default one per core. The
        attribute `workers` of the result says how many took part. Results do not depend on it.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to compute instead: a ProcessPoolExecutor, or a cluster.
    progress : bool, optional
        Whether to show a progress bar; by default in a terminal and in a notebook.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly two independent ratios of the numbers of samples n, features p and latent
        dimensions d; one, if the features fix d/p. A sequence becomes a dimension of that name
        (several span their outer product); DataArrays broadcast by the names of their dimensions.
        One of them may be infinite: ``p_over_n=np.inf`` with n/d is the kernel limit,
        ``n_over_p=np.inf`` with d/p that of infinite data.
    n, p, d : whole numbers, array_like or DataArray
        These numbers themselves, all that the features do not fix, instead of ratios; the answer is
        still that of the limit at their ratios.

    Returns
    -------
    xarray.Dataset
        Errors, training loss, overlaps and certificates (`status`, `residual`,
        `quadrature_error`, `conditioning_error`, `iterations`), with the meaning of each in its
        `long_name`.

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
    axes, asked = {"regularisation": regularisation}, chosen(model, observables)
    if chunks is None:
        return predicted(Grid.of(model, options, axes, search=True), asked)
    if options.get("executor") is not None or options.get("workers") is not None:
        raise InvalidArgumentError.because(
            "chunks",
            "cannot be combined with workers or executor",
            "leave these out: dask runs the chunks on its own workers",
        )
    grid = Grid.of(model, options, axes, search=True, memory=False)
    given: dict[str, Any] = {"on_failure": grid.on_failure, "workers": 1, "progress": False}
    given["observables"] = tuple(observable.name for observable in asked)
    given |= {} if grid.optimal is None else {"regularisation": grid.optimal}
    return chunked(partial(predict, model, **given), grid.coordinates, chunks)


def predicted(grid: Grid, observables: Sequence[Observable] = ()) -> xr.Dataset:
    """The prediction on a grid, at the regularisations given there or at the best ones."""
    model, optimal, asked = grid.model, grid.optimal, _expected(observables)
    if optimal is None:
        _announce(grid, 1)
        columns = asymptotics(model, grid.points(), grid.workers, observables=asked)
    else:
        _announce(grid, SEARCH)
        target = optimal.minimise
        least = _expected(chosen(model, [target] if target in REGISTRY else []))
        search = Search(model, grid.points(), target, optimal.bounds, observables=least | asked)
        columns = best_regularisation(search, grid.workers)
    return grid.answer(Kind.PREDICTION, columns, source(), observables)


def _announce(grid: Grid, times: int) -> None:
    """Announce the estimated time of a large grid whose points are each solved so many times."""
    size = grid.template.size
    model = grid.model
    each = CLOSED_FORM if model.loss.quadratic else SECONDS[engine()]
    if (
        model.task is Task.REGRESSION
        and not model.loss.quadratic
        and type(model.teacher) is not Linear
    ):
        each = OTHER_LABELS
    work = size * times * each
    told = f"{size} points, about {BYTES * size / 1e9:.1g} GB"
    grid.workers.progress.announce(told, work / grid.workers.at_once(size))


def _expected(observables: Sequence[Observable]) -> dict[str, Observed]:
    """The theory's function for each observable."""
    return {observable.name: observable.expected for observable in observables}


@with_options(Theory)
def sensitivity(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    observables: str | Sequence[str] = (),
    **options: Unpack[Theory],
) -> xr.Dataset:
    """How the errors, and observables, respond to more regularisation, samples or features.

    The derivatives come from the linear system of the last Newton step, not from differences of
    solutions. By which factor must n grow to halve the error? Roughly by 2 to the power of minus
    the error over its derivative by log n.

    Parameters
    ----------
    model, regularisation, observables, **options
        As in `predict`.

    Returns
    -------
    xarray.Dataset
        All of `predict`, and ``generalisation_error_by_log_regularisation``, ``..._by_log_n``
        and ``..._by_log_p`` (the others of λ, n, p and d held fixed), and those of `clean_error`
        and of each observable.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> ds = hm.sensitivity(model, n_over_d=3.0, p_over_n=3.0, regularisation=1e-4)
    >>> float(ds.generalisation_error_by_log_n.round(4))
    -0.067
    """
    grid = Grid.of(model, options, {"regularisation": regularisation})
    asked = chosen(model, observables)
    columns = asymptotics(
        model, grid.points(), grid.workers, slopes=PARAMETERS, observables=_expected(asked)
    )
    return grid.answer(Kind.SENSITIVITY, columns, source(), asked)


@with_options(Theory)
def margins(
    model: Model,
    *,
    at: ArrayLike,
    regularisation: ArrayLike | xr.DataArray,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """How the margins y f of new and of training samples are distributed, as n, p, d → ∞.

    The results are distribution functions, not densities, because training margins concentrate at
    the kinks of a loss (at 1 for the hinge), where `train_cdf` jumps. At such a value it includes
    the jump, so that the mass at 1 is the difference from a value just below.

    Parameters
    ----------
    model : Model
        The learning problem; its labels are ±1.
    at : sequence of float
        The margins at which to evaluate.
    regularisation, **options
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
    grid = Grid.of(model, options, {"regularisation": regularisation})
    laws = margin_laws(model, "at", at)
    columns = asymptotics(model, grid.points(), grid.workers, observables=_expected(laws))
    kept = {name: columns[name] for name in (*CERTIFICATES, *MARGIN_LAWS)}
    return grid.answer(Kind.MARGINS, kept, source(), laws)
