"""Simulate a model at finite size."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hiddenmanifold.api.arguments import Grid, Ratios, with_ratios
from hiddenmanifold.api.counts import COUNTS
from hiddenmanifold.checks import Task, check_count, finite_vector
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.results.datasets import ACCEPTED, dataset, explained, with_margins
from hiddenmanifold.results.observables import Observable, chosen
from hiddenmanifold.simulation.experiment import LAWS, Trial, check_memory, law
from hiddenmanifold.simulation.fit import ONLY_SQUARE
from hiddenmanifold.simulation.samples import Sizes
from hiddenmanifold.simulation.trial_cache import collect
from hiddenmanifold.storage import Store

if TYPE_CHECKING:
    import xarray as xr


@with_ratios
def simulate(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    seeds: int = 30,
    n_test: int = 4000,
    data: Literal["original", "equivalent"] = "original",
    observables: str | Sequence[str] = (),
    margins: ArrayLike | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    **ratios: Unpack[Ratios],
) -> xr.Dataset:
    """Fit a model exactly on drawn data, for many seeds, and measure it.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like or DataArray
        The λ of the objective, positive. All values of a vector share the same data. For the
        square loss 0 means the shortest least squares solution.
    seeds : int
        Independent draws of F, the teacher and the samples.
    n_test : int
        Fresh samples on which the test errors are measured, per seed.
    data : {"original", "equivalent"}
        The model's own features, or their Gaussian-equivalent twin.
    observables : sequence of str
        More to measure on the fresh samples: names as in `predict`. The probability in a
        `calibration_error` is that of a teacher's field which is normal given the score, with the
        covariance of the fitted weights; this is so for d → ∞.
    margins : sequence of float, optional
        Where to measure the law of margins y f too: `test_cdf` and `train_cdf`, as in
        `hiddenmanifold.margins`, with a last dimension `y_f`.
    seed : int
        Root of all randomness; results depend on it, the seed's number and the sizes only.
    workers : int, optional
        Processes, or threads for work of a few seconds; by default one per core. The attribute
        `workers` says how many took part.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to run instead: a ProcessPoolExecutor, or a cluster.
    store : path, optional
        A file to keep every fit in, as soon as it is made. Fits that it has are not made again: a
        run that was cut short goes on, a finished one grows with more seeds or points. It is made
        if there is none; several processes may share it.
    progress : bool, optional
        Whether to show a progress bar; by default in a terminal and in a notebook.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Ratios as in `predict`, finite.
    d : int
        With ratios the latent dimension, by default 256, or that of F for a `Matrix`; n and p
        follow from the ratios, rounded to whole numbers.
    n, p, d : whole numbers, array_like or DataArray
        The sizes themselves, instead of ratios.

    Returns
    -------
    xarray.Dataset
        The names of `predict` with a dimension `seed`, plus `optimality` (a bound on each fit's
        relative distance from its minimum), the sizes `n`, `p`, `d` used, and `seconds`. After a
        Ctrl-C the attribute `interrupted` is 1, the attributes `done` and `asked` count trials
        (a seed of a point each), and those that were not finished are NaN. With a
        store the attributes `computed`, `reused` and `failed` count fits: made now, known to the
        store, and of both those farther than 1e-7 from their optimum. NaN are also draws without a
        minimum (a single class, an intercept and a loss that only falls), of infinite
        `optimality`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, a size rounds to zero, the data do not fit in memory, or a
        custom function cannot be told from others by its content, for the store.
    StoreError
        If the store cannot be used; what it holds stays.
    """
    plan = Plan.of(model, regularisation, ratios, seeds=seeds)
    if str(data) not in ("original", "equivalent"):
        raise InvalidArgumentError("data", data, "'original' or 'equivalent'")
    pool = Workers(workers, executor, progress)
    n_test, seed = check_count("n_test", n_test), check_count("seed", seed, low=0)
    asked_for = chosen(model, observables)
    at = () if margins is None else tuple(finite_vector("margins", margins).tolist())
    if at and model.task is not Task.CLASSIFICATION:
        raise InvalidArgumentError.because(
            "margins", "need labels ±1, and those of this model are real", "leave margins out"
        )
    twin = data == "equivalent"
    trials = plan.trials(seed, n_test, equivalent=twin, observables=asked_for, margins=at)
    at_once = pool.at_once(len(trials))
    check_memory(model, plan.sizes, n_test, at_once, len(plan.lams[0]) if asked_for else 0)
    work = sum(trial.seconds for trial in trials)
    largest = max(plan.sizes, key=lambda size: size.n * size.p)
    sizes = f"n = {largest.n}, p = {largest.p}, d = {largest.d}"
    pool.progress.announce(
        f"{len(trials)} trials, up to {sizes}, {at_once} at once", work / at_once
    )
    kept = None if store is None else Store(store)
    found, asked = collect(trials, pool, kept), len(trials)
    source = {"method": "simulation", "data": data, "root_seed": seed, "n_test": n_test}
    ended = {"interrupted": int(found.done < asked), "done": found.done, "asked": asked}
    if kept is not None:
        failed = int((found.columns["optimality"] > ACCEPTED).sum())
        fits = {"computed": found.computed, "reused": found.reused, "failed": failed}
        ended |= fits
        if pool.progress.visible:
            told = ", ".join(f"{count} {what}" for what, count in fits.items())
            print(f"{kept.path}: {told}", file=sys.stderr)
    return plan.dataset(found.columns, {**source, "workers": pool.used, **ended}, at)


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
        seeds: int,
    ) -> Plan:
        """The plan that arguments of `simulate` ask for, if they make sense."""
        import xarray as xr

        given = {name: value for name, value in ratios.items() if value is not None}
        counted = sized(given)
        d = None if counted else given.pop("d", None)
        grid = Grid.of(model, given, regularisation, limits=False)
        d, seeds = _dimension(model, d), check_count("seeds", seeds)
        coordinates, lam = grid.coordinates, grid.coordinates["regularisation"]
        if not model.loss.quadratic and not lam.values.all():
            raise InvalidArgumentError("regularisation", 0.0, ONLY_SQUARE)
        dimensions = {name for name, values in coordinates.items() if values.dims == (name,)}
        for name, values in coordinates.items():
            if own := {"seed", *COUNTS}.difference(dimensions).intersection(map(str, values.dims)):
                raise InvalidArgumentError.because(
                    name,
                    f"has a dimension {own.pop()!r}",
                    "rename it, because a size or the seeds have this name",
                )
        columns = [coordinates[name] for name in COUNTS] if counted else grid.sizes()
        columns = xr.broadcast(*columns)
        shared = not set(lam.dims).intersection(columns[0].dims)
        if shared:
            lams = [tuple(lam.values.ravel().tolist())] * columns[0].size
        else:  # λ varies with the point: one value per fit
            *columns, lam = xr.broadcast(*columns, lam)
            lams = [(value,) for value in lam.values.ravel().tolist()]
        flat = [column.values.ravel().tolist() for column in columns]
        sizes = list(map(Sizes, *flat) if counted else map(partial(Sizes.nearest, d=d), *flat))
        return cls(model, coordinates, columns[0], lam.dims if shared else (), sizes, lams, seeds)

    def trials(
        self,
        seed: int,
        n_test: int,
        *,
        equivalent: bool,
        observables: Sequence[Observable] = (),
        margins: tuple[float, ...] = (),
    ) -> list[Trial]:
        """All seeds of the first point, then of the next."""
        measures = {observable.name: observable.measured for observable in observables}

        def trial(number: int, size: Sizes, lams: tuple[float, ...]) -> Trial:
            sequence = np.random.SeedSequence(seed, spawn_key=(number, size.n, size.p, size.d))
            return Trial(self.model, size, lams, sequence, n_test, equivalent, measures, margins)

        points = list(zip(self.sizes, self.lams, strict=True))
        return [trial(i, size, lams) for size, lams in points for i in range(self.seeds)]

    def dataset(
        self,
        columns: Mapping[str, NDArray[Any]],
        source: Mapping[str, Any],
        margins: tuple[float, ...] = (),
    ) -> xr.Dataset:
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
        laws = {which: [flat.pop(law(which, at)) for at in margins] for which in LAWS}
        ds = dataset(self.model, self.coordinates, template, flat, source=source)
        if margins:
            ds = with_margins(ds, template, laws, margins)
        points = self.points
        used = {
            name: xr.DataArray(
                np.reshape([getattr(s, name) for s in self.sizes], points.shape), dims=points.dims
            )
            for name in COUNTS
            if name not in ds.coords
        }
        return ds.assign_coords(explained(used))


def sized(arguments: Mapping[str, Any]) -> bool:
    """Whether the sizes are given, not ratios and perhaps the latent dimension."""
    return any(arguments.get(name) is not None for name in ("n", "p"))


def _dimension(model: Model, d: Any) -> int:
    """The latent dimension that goes with ratios."""
    rows = model.features.fixed_dimension
    whole = check_count("d", rows or 256 if d is None else d)
    if rows not in (None, whole):
        raise InvalidArgumentError("d", d, f"{rows}, which the features fix")
    return whole
