"""Simulate a model at finite size, and compare it with the theory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConvergenceError, InvalidArgumentError
from .grids import checked
from .losses import Square
from .model import Model
from .prediction import predict
from .registry import check_count
from .results import check_aligned, dataset, labelled, ratios_of
from .simulation.data import Sizes
from .simulation.executors import collect, number_of_workers
from .simulation.experiment import Trial, check_memory, measured
from .simulation.fit import ONLY_SQUARE
from .simulation.problem import ACCEPTED

if TYPE_CHECKING:
    import xarray as xr

COMPARED = (
    "generalisation_error",
    "clean_error",
    "training_loss",
    "training_error",
    "q_s",
    "q_w",
    "m_s",
    "Q",
    "M",
    "alignment",
)


def simulate(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    d: int | None = None,
    seeds: int = 30,
    n_test: int = 4000,
    data: Literal["original", "equivalent"] = "original",
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **ratios: ArrayLike | xr.DataArray,
) -> xr.Dataset:
    """Fit a model exactly on drawn data, for many seeds, and measure it.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like or DataArray
        The λ of the objective, positive. All values of a vector share the same data. For the
        square loss 0 means the shortest least squares solution.
    d : int
        Latent dimension, by default 256, or that of F for a `Matrix`; n and p follow from the
        ratios, rounded to whole numbers.
    seeds : int
        Independent draws of F, the teacher and the samples.
    n_test : int
        Fresh samples on which the test errors are measured, per seed.
    data : {"original", "equivalent"}
        The model's own features, or their Gaussian-equivalent twin.
    seed : int
        Root of all randomness; results depend on it, the seed's number and the sizes only.
    workers : int, optional
        Processes; by default one per core.
    executor : concurrent.futures.Executor, optional
        Where to run instead, e.g. on a cluster.
    progress : bool
        Whether to show a progress bar.
    **ratios
        As in `predict`.

    Returns
    -------
    xarray.Dataset
        The names of `predict` with a dimension `seed`, plus `optimality` (a bound on each fit's
        relative distance from its minimum), the sizes `n`, `p`, `d` used, and `seconds`. After a
        Ctrl-C the trials that were not finished are NaN. So are draws without a minimum (a single
        class, an intercept and a loss that only falls), of infinite `optimality`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, a size rounds to zero, or the data do not fit in memory.
    """
    plan = Plan.of(model, regularisation, ratios, d=d, seeds=seeds)
    if str(data) not in ("original", "equivalent"):
        raise InvalidArgumentError("data", data, "'original' or 'equivalent'")
    if executor is not None and not isinstance(executor, Executor):
        raise InvalidArgumentError("executor", executor, "a concurrent.futures.Executor")
    n_test, seed = check_count("n_test", n_test), check_count("seed", seed, low=0)
    workers = None if workers is None else check_count("workers", workers)
    trials = plan.trials(seed, n_test, equivalent=data == "equivalent")
    at_once = 1 if executor else number_of_workers(workers, len(trials))
    check_memory(model, plan.sizes, n_test, at_once)
    columns = collect(trials, measured(model), executor or at_once, progress=progress)
    source = {"method": "simulation", "data": data, "root_seed": seed, "n_test": n_test}
    return plan.dataset(columns, source)


@dataclass(frozen=True)
class Plan:
    """What a simulation draws and fits, and how its results are arranged.

    Attributes
    ----------
    coordinates : dict of DataArray
        The ratios and the regularisation, as they were given.
    points : DataArray
        An array with the dimensions of the data; `path` are those along which only λ varies.
    sizes, lams : list
        Of each point: whole numbers n, p and d, and the regularisations.
    """

    model: Model
    coordinates: dict[str, xr.DataArray]
    points: xr.DataArray
    path: tuple[Hashable, ...]
    sizes: list[Sizes]
    lams: list[tuple[float, ...]]
    seeds: int

    @classmethod
    def of(
        cls,
        model: Model,
        regularisation: ArrayLike | xr.DataArray,
        ratios: Mapping[str, Any],
        *,
        d: int | None,
        seeds: int,
    ) -> Plan:
        """The plan that arguments of `simulate` ask for, if they make sense."""
        import xarray as xr

        if not isinstance(model, Model):
            raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
        rows = model.features.fixed_dimension
        d, seeds = check_count("d", rows or 256 if d is None else d), check_count("seeds", seeds)
        if rows not in (None, d):
            raise InvalidArgumentError("d", d, f"{rows}, which the features fix")
        coordinates, alpha, gamma = ratios_of(model, ratios)
        lam = coordinates["regularisation"] = _regularisations(model, regularisation)
        check_aligned(coordinates)
        for name, values in coordinates.items():
            if own := {"seed", "n", "p", "d"}.intersection(map(str, values.dims)):
                raise InvalidArgumentError(
                    name, f"with a dimension {own.pop()!r}", "named otherwise"
                )
        alpha, gamma = xr.broadcast(alpha, gamma)
        shared = not set(lam.dims).intersection(alpha.dims)
        if shared:
            lams = [tuple(lam.values.ravel().tolist())] * alpha.size
        else:  # λ varies with the point: one value per fit
            alpha, gamma, lam = xr.broadcast(alpha, gamma, lam)
            lams = [(value,) for value in lam.values.ravel().tolist()]
        flat = zip(alpha.values.flat, gamma.values.flat, strict=True)
        sizes = [Sizes.nearest(a, g, d) for a, g in flat]
        return cls(model, coordinates, alpha, lam.dims if shared else (), sizes, lams, seeds)

    def trials(self, seed: int, n_test: int, *, equivalent: bool) -> list[Trial]:
        """All seeds of the first point, then of the next."""

        def trial(number: int, size: Sizes, lams: tuple[float, ...]) -> Trial:
            sequence = np.random.SeedSequence(seed, spawn_key=(number, size.n, size.p, size.d))
            return Trial(self.model, size, lams, sequence, n_test, equivalent)

        points = list(zip(self.sizes, self.lams, strict=True))
        return [trial(i, size, lams) for size, lams in points for i in range(self.seeds)]

    def dataset(self, columns: Mapping[str, NDArray[Any]], source: Mapping[str, Any]) -> xr.Dataset:
        """Columns of shape (trials, regularisations) under the names of their axes."""
        import xarray as xr

        lam, width = self.coordinates["regularisation"], len(self.lams[0])
        shape = (*self.points.shape, *(lam.sizes[dim] for dim in self.path), self.seeds)
        dims = (*self.points.dims, *self.path, "seed")
        flat = {
            name: values.reshape(-1, self.seeds, width).swapaxes(1, 2).ravel()
            for name, values in columns.items()
        }
        template = xr.DataArray(np.empty(shape), {"seed": np.arange(self.seeds)}, dims)
        ds = dataset(self.model, self.coordinates, template, flat, source=source)
        points = self.points
        used = {
            name: (points.dims, np.reshape([getattr(s, name) for s in self.sizes], points.shape))
            for name in ("n", "p", "d")
        }
        return ds.assign_coords(used)


def _regularisations(model: Model, given: ArrayLike | xr.DataArray) -> xr.DataArray:
    lam = labelled("regularisation", given, zero=True)
    if not isinstance(model.loss, Square) and not lam.values.all():
        raise InvalidArgumentError("regularisation", 0.0, ONLY_SQUARE)
    return lam


def summary(ds: xr.Dataset) -> xr.Dataset:
    """Mean and standard error over the seeds of every simulated quantity.

    Fits that are farther than 1e-7 from their optimum are left out, and counted in `dropped`. The
    standard error contains what the finite number of test samples leaves in every seed.

    Parameters
    ----------
    ds : xarray.Dataset
        What `simulate` returned.
    """
    if "seed" not in ds.dims or "optimality" not in ds:
        raise InvalidArgumentError("ds", ds, "a dataset returned by simulate")
    good = ds.optimality <= ACCEPTED
    finished = ds.generalisation_error.notnull() | ds.optimality.notnull()
    # the error that a test leaves in one seed is not one of the mean
    own = [name for name in ds.data_vars if str(name).endswith("_test_stderr")]
    used = ds.where(good).drop_vars(["optimality", "seconds", *own])
    out = used.mean("seed", keep_attrs=True)
    count = used.generalisation_error.notnull().sum("seed")
    spread = used.std("seed", ddof=1) / np.sqrt(count)
    for name in used.data_vars:
        meaning = {"long_name": f"standard error over seeds of the mean of {name}"}
        out[f"{name}_stderr"] = spread[name].assign_attrs(meaning)
    out["seeds"] = count.assign_attrs(long_name="number of seeds in the mean")
    out["dropped"] = (~good & finished).sum("seed")
    out["dropped"].attrs["long_name"] = "number of seeds left out, whose fit is not at its optimum"
    return out


def compare(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    on_failure: Literal["raise", "keep"] = "keep",
    **options: Any,
) -> xr.Dataset:
    """Simulate and predict the same points, and judge the difference by its standard error.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like or DataArray
        The λ of the objective.
    on_failure : {"raise", "keep"}
        Whether a point at which the theory does not converge raises, with the simulation in the
        exception's ``partial``, or is kept, its theory NaN.
    **options
        The ratios, and any option of `simulate`.

    Returns
    -------
    xarray.Dataset
        For each quantity q: `q` (mean over seeds), `q_stderr`, `q_theory` (at the ratios of the
        whole numbers actually used) and `q_z` = (q - q_theory)/q_stderr; `theory_status` says how
        the theory's solve ended.

    Raises
    ------
    ConvergenceError
        If the theory fails at a point and `on_failure` is "raise".
    """
    import xarray as xr

    if on_failure not in ("raise", "keep"):
        raise InvalidArgumentError("on_failure", on_failure, "'raise' or 'keep'")
    out = summary(simulate(model, regularisation=regularisation, **options))
    alpha, gamma = out.n / out.p, out.d / out.p
    fixed = model.features.fixed_ratio is not None
    ratios = {"n_over_p": alpha} if fixed else {"n_over_p": alpha, "d_over_p": gamma}
    bare: dict[str, Any] = {name: xr.DataArray(r.values, dims=r.dims) for name, r in ratios.items()}
    lam = labelled("regularisation", regularisation, zero=True)
    bare["regularisation"] = xr.DataArray(lam.values, dims=lam.dims)
    theory = predict(model, **bare, on_failure="keep")
    for name in (*COMPARED, *(("intercept",) if model.free_intercept else ())):
        if name in out:
            expected = theory[name].drop_vars(list(theory[name].coords))
            error = out[f"{name}_stderr"]
            z = (out[name] - expected) / error.where(error > 0)
            out[f"{name}_theory"] = expected
            out[f"{name}_z"] = z.assign_attrs(long_name=f"(simulation - theory)/error of {name}")
    out["theory_status"] = theory["status"].drop_vars(list(theory["status"].coords))
    try:
        checked(theory, on_failure)
    except ConvergenceError as error:
        error.partial = out
        raise
    return out
