"""Simulate a model at finite size, and compare it with the theory."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .errors import InvalidArgumentError
from .model import Model
from .prediction import predict
from .projections import Matrix
from .registry import check_count
from .results import check_aligned, dataset, labelled, ratios_of
from .simulation.data import Sizes
from .simulation.executors import local_executor, run_all
from .simulation.experiment import Trial
from .simulation.fit import ACCEPTED

if TYPE_CHECKING:
    import xarray as xr

MEMORY_LIMIT = 16e9
"""Bytes that one trial may need, by estimate, before it is refused."""
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
        The λ of the objective, positive. All values of a vector share the same data.
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
        Ctrl-C the trials that were not finished are NaN.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, a size rounds to zero, or the data do not fit in memory.
    """
    import xarray as xr

    if not isinstance(model, Model):
        raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
    if data not in ("original", "equivalent"):
        raise InvalidArgumentError("data", data, "'original' or 'equivalent'")
    rows = model.projection.shape[0] if isinstance(model.projection, Matrix) else None
    d = d if d is not None else rows or 256
    if rows not in (None, d):
        raise InvalidArgumentError("d", d, f"{rows}, the number of rows of F")
    d, seeds, n_test = (
        check_count(name, value) for name, value in (("d", d), ("seeds", seeds), ("n_test", n_test))
    )
    seed = check_count("seed", seed, low=0)
    workers = None if workers is None else check_count("workers", workers)
    coordinates, alpha, gamma = ratios_of(model, ratios)
    lam = labelled("regularisation", regularisation)
    check_aligned({**coordinates, "regularisation": lam})
    for name, values in {**coordinates, "regularisation": lam}.items():
        if own := {"seed", "n", "p", "d"}.intersection(map(str, values.dims)):
            raise InvalidArgumentError(name, f"with a dimension {own.pop()!r}", "named otherwise")
    alpha, gamma = xr.broadcast(alpha, gamma)
    extra = [dim for dim in lam.dims if dim in alpha.dims]
    path = () if extra else lam.dims
    if extra:  # λ varies with the point: one value per fit
        alpha, gamma, per_point = xr.broadcast(alpha, gamma, lam)
    points = alpha.size
    trials: list[tuple[int, Trial]] = []
    sizes = [_sizes(a, g, d) for a, g in zip(alpha.values.flat, gamma.values.flat, strict=True)]
    for k, size in enumerate(sizes):
        lams = (float(per_point.values.flat[k]),) if extra else tuple(lam.values.ravel().tolist())
        for i in range(seeds):
            sequence = np.random.SeedSequence(seed, spawn_key=(i, size.n, size.p, size.d))
            trial = Trial(model, size, lams, sequence, n_test, data == "equivalent")
            trials.append((k * seeds + i, trial))
    columns = _collect(trials, workers, executor, progress)
    width = len(trials[0][1].lams)
    dims = (*alpha.dims, *path, "seed")
    shape = (*alpha.shape, *(lam.sizes[dim] for dim in path), seeds)

    def arranged(values: Any) -> Any:
        return np.swapaxes(values.reshape(points, seeds, width), 1, 2).reshape(shape)

    template = xr.DataArray(np.empty(shape), dims=dims, coords={"seed": np.arange(seeds)})
    flat = {name: arranged(values).ravel() for name, values in columns.items()}
    used = {
        name: (alpha.dims, np.array([getattr(s, name) for s in sizes]).reshape(alpha.shape))
        for name in ("n", "p", "d")
    }
    source = {"method": "simulation", "data": data, "root_seed": seed, "n_test": n_test}
    ds = dataset(model, {**coordinates, "regularisation": lam}, template, flat, source=source)
    return ds.assign_coords(used)


def _sizes(alpha: float, gamma: float, d: int) -> Sizes:
    p, n = round(d / gamma), round(alpha * d / gamma)
    for name, value in (("n", n), ("p", p)):
        if value < 1:
            raise InvalidArgumentError("d", d, f"larger: at these ratios {name} rounds to {value}")
    need = 8.0 * (3 * n * max(p, d) + min(n, p) ** 2 * 3 + d * p)
    if need > MEMORY_LIMIT:
        raise InvalidArgumentError(
            "d", d, f"smaller: n = {n}, p = {p}, d = {d} would need about {need / 1e9:.0f} GB"
        )
    return Sizes(n, p, d)


def _collect(
    trials: list[tuple[int, Trial]], workers: int | None, executor: Executor | None, progress: bool
) -> dict[str, Any]:
    """Results of all trials in their order; NaN for those that a Ctrl-C left unfinished."""
    results: dict[int, dict[str, Any]] = {}
    bar = None
    try:
        with local_executor(trials[0][1], 1 if executor or len(trials) == 1 else workers) as local:
            for number, result in run_all(trials, executor or local):
                results[number] = result
                if progress:  # not before the workers are there: a bar has a thread of its own
                    bar = bar or _bar(len(trials))
                    bar.advance(bar.task_ids[0])
    except KeyboardInterrupt:
        if not results:
            raise
    finally:
        if bar:
            bar.stop()
    first = next(iter(results.values()))
    missing = {name: np.full_like(values, np.nan) for name, values in first.items()}
    return {
        name: np.concatenate([results.get(number, missing)[name] for number, _ in trials])
        for name in first
    }


def _bar(total: int) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    bar = Progress("simulating", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar.add_task("simulate", total=total)
    bar.start()
    return bar


def summary(ds: xr.Dataset) -> xr.Dataset:
    """Mean and standard error over the seeds of every simulated quantity.

    Fits that are farther than 1e-7 from their optimum are left out, and counted in `dropped`.

    Parameters
    ----------
    ds : xarray.Dataset
        What `simulate` returned.
    """
    if "seed" not in ds.dims or "optimality" not in ds:
        raise InvalidArgumentError("ds", ds, "a dataset returned by simulate")
    good = ds.optimality <= ACCEPTED
    used = ds.where(good)
    out = used.mean("seed", keep_attrs=True).drop_vars(["optimality", "seconds"])
    count = used.generalisation_error.notnull().sum("seed")
    spread = used.std("seed", ddof=1) / np.sqrt(count)
    for name in list(out.data_vars):
        if not str(name).endswith("_stderr"):
            out[f"{name}_stderr"] = spread[name]
    out["seeds"] = count
    out["dropped"] = (~good & ds.generalisation_error.notnull()).sum("seed")
    return out


def compare(
    model: Model, *, regularisation: ArrayLike | xr.DataArray, **options: Any
) -> xr.Dataset:
    """Simulate and predict the same points, and judge the difference by its standard error.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like or DataArray
        The λ of the objective.
    **options
        The ratios, and any option of `simulate`.

    Returns
    -------
    xarray.Dataset
        For each quantity q: `q` (mean over seeds), `q_stderr`, `q_theory` (at the ratios of the
        whole numbers actually used) and `q_z` = (q - q_theory)/q_stderr.
    """
    import xarray as xr

    out = summary(simulate(model, regularisation=regularisation, **options))
    alpha, gamma = out.n / out.p, out.d / out.p
    fixed = model.projection.fixed_ratio is not None
    ratios = {"n_over_p": alpha} if fixed else {"n_over_p": alpha, "d_over_p": gamma}
    bare: dict[str, Any] = {name: xr.DataArray(r.values, dims=r.dims) for name, r in ratios.items()}
    lam = labelled("regularisation", regularisation)
    theory = predict(model, regularisation=xr.DataArray(lam.values, dims=lam.dims), **bare)
    for name in COMPARED:
        if name in out:
            out[f"{name}_theory"] = theory[name].drop_vars(list(theory[name].coords))
            error = out[f"{name}_stderr"]
            out[f"{name}_z"] = (out[name] - out[f"{name}_theory"]) / error.where(error > 0)
    return out
