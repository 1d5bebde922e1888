"""Predict learning curves: errors, their derivatives and margins of a model on a grid of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import EarlyStopping, Optimal
from hiddenmanifold.api.best_time import check_alone, stopped
from hiddenmanifold.api.grid import BYTES, Grid
from hiddenmanifold.api.lazy import Chunks, chunked
from hiddenmanifold.api.signatures import Execution, Theory, with_options
from hiddenmanifold.arrays import Columns
from hiddenmanifold.checks import Task
from hiddenmanifold.compiled import engine
from hiddenmanifold.errors import CERTIFICATES, InvalidArgumentError, shown
from hiddenmanifold.model import Model
from hiddenmanifold.results.observables import (
    MARGIN_LAWS,
    REGISTRY,
    Observable,
    chosen,
    decisions,
    margin_laws,
)
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.teachers import Classes, Linear
from hiddenmanifold.theory.best_lambda.search import Search, best_regularisation
from hiddenmanifold.theory.classes.best_class_lambda import ClassSearch, best_class_regularisation
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.class_predictions import class_asymptotics
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


CLASS_TARGETS = ("generalisation_error", "clean_error", "test_loss")
"""The errors of several classes that a regularisation can be chosen to minimise."""
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
    regularisation: ArrayLike | xr.DataArray | Optimal | EarlyStopping | Literal["optimal"],
    observables: str | Sequence[str] = (),
    decision_thresholds: ArrayLike | None = None,
    finite_size: bool = False,
    chunks: Chunks | None = None,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """Exact test and training errors of a model in the limit n, p, d → ∞.

    Parameters
    ----------
    model : Model
        The learning problem.
    regularisation : array_like, DataArray, Optimal, EarlyStopping or "optimal"
        The λ of `Σ loss(y, x·w/√p) + (λ/2)|w|²`. Zero means the limit λ → 0⁺: the unregularised
        minimiser, or the shortest of all if there are many; `inf` the limit λ → ∞, the direction
        in which w vanishes. "optimal", or an `Optimal` with its own options, is the λ of least
        error at every point, which is then in the dataset as `optimal_regularisation`. An
        `EarlyStopping` trains without a penalty until then instead, see `training`.
    observables : sequence of str
        More to predict, of new samples: "test_loss", the mean loss, and "r2"; for labels ±1 "auc",
        the area under the ROC curve, and what follows from the logistic function σ(f) as the
        probability of +1, whatever the loss: "calibration_error", the mean of
        `|σ(f) - P(y = +1 | f)|`, "probability_error", that of `|σ(f) - P(y = +1 | ν)|` with the
        field ν, "brier_score", "nagelkerke_r2", "calibration_slope" and "calibration_intercept" of
        the line a + s f of least log-loss, and "best_temperature", the T at which σ(f/T) has the
        least log-loss; for numbers "deviance", "mean_absolute_error" and "coverage".
    decision_thresholds : sequence of float, optional
        Probabilities σ(f) from which on a sample is decided to be +1: `true_positive_rate`
        (sensitivity), `true_negative_rate` (specificity) and `net_benefit` at each, with a last
        dimension `decision_threshold`.
    finite_size : bool
        With sizes instead of ratios: add the mean deviation of each error and observable from the
        limit at these sizes, `generalisation_error_finite_size` and so on, with standard errors.
        Fits of these sizes are simulated, or if that takes too long smaller ones, from whose
        deviations those at the sizes asked for follow by their proportionality to 1/d. The
        attributes `finite_size_method`, `finite_size_seeds` and `finite_size_seconds` tell.
        Of several classes the prediction itself has the largest terms of order 1/n instead, those
        of the fluctuations of intercepts and class means, in closed form.
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
        still that of the limit at their ratios, as the attribute `sizes` says, unless `finite_size`
        adds the deviation from it.

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
    if isinstance(regularisation, EarlyStopping):
        others = {
            "observables": observables,
            "decision_thresholds": decision_thresholds,
            "chunks": chunks,
            "finite_size": finite_size or None,
        }
        check_alone(others)
        return stopped(model, regularisation, options)
    axes = {"regularisation": regularisation}
    if chunks is None:
        grid = Grid.of(model, options, axes, search=True, classes=True)
        asked = _asked(model, observables, decision_thresholds)
        classes = model.task is Task.CLASSES
        ds = predicted(grid, asked, grid.counts() if finite_size and classes else None)
        if not finite_size or classes:
            return ds
        return _with_deviations(model, ds, asked, options, decision_thresholds)
    if finite_size:
        raise InvalidArgumentError.because(
            "chunks",
            "cannot be combined with finite_size",
            "leave out one of them: simulations are not made chunk by chunk",
        )
    if getattr(model, "task", None) is Task.CLASSES:
        raise InvalidArgumentError.because(
            "chunks", "cannot be combined with several classes", "leave it out"
        )
    asked = _asked(model, observables, decision_thresholds)
    if options.get("executor") is not None or options.get("workers") is not None:
        raise InvalidArgumentError.because(
            "chunks",
            "cannot be combined with workers or executor",
            "leave these out: dask runs the chunks on its own workers",
        )
    if decision_thresholds is not None:
        raise InvalidArgumentError.because(
            "chunks",
            "cannot be combined with decision_thresholds",
            "leave out one of them: chunks hold one number at each point",
        )
    grid = Grid.of(model, options, axes, search=True, memory=False)
    given: dict[str, Any] = {"on_failure": grid.on_failure, "workers": 1, "progress": False}
    given["observables"] = tuple(observable.name for observable in asked)
    given |= {} if grid.optimal is None else {"regularisation": grid.optimal}
    return chunked(partial(predict, model, **given), grid.coordinates, chunks)


def _asked(
    model: Model, names: str | Sequence[str], thresholds: ArrayLike | None
) -> tuple[Observable, ...]:
    """The observables of some names, and decisions at some thresholds."""
    asked = chosen(model, names)
    if thresholds is not None:
        asked += decisions(model, "decision_thresholds", thresholds)
    return asked


def check_finite_size(model: Model, finite_size: object) -> bool:
    """The argument; raise unless it is one that makes sense for the model."""
    if not isinstance(finite_size, bool | np.bool_):
        raise InvalidArgumentError("finite_size", finite_size, "True or False")
    if finite_size and model.task is not Task.CLASSES:
        problem = f"is known for several classes, and not for {shown(model.teacher)}"
        raise InvalidArgumentError.because("finite_size", problem, "leave it out")
    return bool(finite_size)


def predicted(
    grid: Grid, observables: Sequence[Observable] = (), counts: Counts | None = None
) -> xr.Dataset:
    """The prediction on a grid, at the regularisations given there or at the best ones.

    With the numbers of samples and features, terms of the order of their inverse are added.
    """
    model, optimal, asked = grid.model, grid.optimal, expected(observables)
    if model.task is Task.CLASSES:
        columns = _of_classes(grid, counts)
    elif optimal is None:
        _announce(grid, 1)
        columns = asymptotics(model, grid.points(), grid.workers, observables=asked)
    else:
        _announce(grid, SEARCH)
        target = optimal.minimise
        least = expected(chosen(model, [target] if target in REGISTRY else []))
        search = Search(model, grid.points(), target, optimal.bounds, observables=least | asked)
        columns = best_regularisation(search, grid.workers)
    return grid.answer(Kind.PREDICTION, columns, source(), observables)


def _of_classes(grid: Grid, counts: Counts | None) -> Columns:
    """The prediction for a model of several classes."""
    points = grid.points()
    if counts is not None and not isinstance(grid.model.teacher, Classes):
        problem = f"is known for normal classes, and not for {shown(grid.model.teacher)}"
        raise InvalidArgumentError.because("finite_size", problem, "leave it out")
    if grid.model.scheme is not None and not isinstance(grid.model.teacher, Classes):
        raise InvalidArgumentError.because(
            "scheme",
            f"= {grid.model.scheme!r} is predicted for normal classes, and not for "
            f"{shown(grid.model.teacher)}",
            "leave it out, with the losses square and softmax, or simulate it",
        )
    if grid.optimal is None:
        return class_asymptotics(grid.model, points, grid.workers, counts)
    if grid.optimal.minimise not in CLASS_TARGETS:
        allowed = f"one of {', '.join(map(repr, CLASS_TARGETS))} for several classes"
        raise InvalidArgumentError("minimise", grid.optimal.minimise, allowed)
    target, bounds = grid.optimal.minimise, grid.optimal.bounds
    search = ClassSearch(grid.model, points, target, bounds, counts)
    return best_class_regularisation(search, grid.workers)


def _with_deviations(
    model: Model,
    ds: xr.Dataset,
    asked: Sequence[Observable],
    options: Theory,
    thresholds: ArrayLike | None,
) -> xr.Dataset:
    """The prediction with its deviations at the sizes given."""
    from hiddenmanifold.api.finite_size import with_deviations  # which compares with predictions

    execution = {name: options[name] for name in Execution.__annotations__ if name in options}  # type: ignore[literal-required]
    names = tuple(observable.name for observable in asked if observable.name in REGISTRY)
    return with_deviations(model, ds, names, execution, thresholds=thresholds)


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


def expected(observables: Sequence[Observable]) -> dict[str, Observed]:
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
        model, grid.points(), grid.workers, slopes=PARAMETERS, observables=expected(asked)
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
    columns = asymptotics(model, grid.points(), grid.workers, observables=expected(laws))
    kept = {name: columns[name] for name in (*CERTIFICATES, *MARGIN_LAWS)}
    return grid.answer(Kind.MARGINS, kept, source(), laws)
