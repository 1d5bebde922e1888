"""Simulate a model at finite size, and compare it with the theory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arguments import (
    Grid,
    Optimal,
    Ratios,
    check_on_failure,
    checked,
    labelled,
    with_options_of,
    with_ratios,
)
from .data.holdout import held_out
from .data.sample import Data
from .errors import ConvergenceError, InvalidArgumentError
from .execution import Crew
from .ingredients import check_count
from .model import Model
from .observables import REGISTRY, Observable, chosen
from .points import RATIOS
from .prediction import predict
from .results import MEANINGS, dataset, summary
from .simulation.data import Sizes
from .simulation.experiment import Trial, check_memory, collect
from .simulation.fit import ONLY_SQUARE

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
ROUNDING = 1e-14
"""Relative spread over seeds that is rounding."""


@with_ratios
def simulate(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    d: int | None = None,
    seeds: int = 30,
    n_test: int = 4000,
    data: Literal["original", "equivalent"] = "original",
    observables: str | Sequence[str] = (),
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
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
    d : int
        Latent dimension, by default 256, or that of F for a `Matrix`; n and p follow from the
        ratios, rounded to whole numbers.
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
    seed : int
        Root of all randomness; results depend on it, the seed's number and the sizes only.
    workers : int, optional
        Processes; by default one per core. Beside other threads none can be forked safely, and
        threads take their place. The attribute `workers` says how many took part.
    executor : concurrent.futures.Executor, optional
        Where to run instead: a ProcessPoolExecutor, or that of a cluster.
    progress : bool
        Whether to show a progress bar.
    **ratios
        As in `predict`.

    Returns
    -------
    xarray.Dataset
        The names of `predict` with a dimension `seed`, plus `optimality` (a bound on each fit's
        relative distance from its minimum), the sizes `n`, `p`, `d` used, and `seconds`. After a
        Ctrl-C the attribute `interrupted` is 1, the attributes `done` and `asked` count trials
        (a seed of a point each), and those that were not finished are NaN. So are draws without a
        minimum (a single class, an intercept and a loss that only falls), of infinite
        `optimality`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, a size rounds to zero, or the data do not fit in memory.
    """
    plan = Plan.of(model, regularisation, ratios, d=d, seeds=seeds)
    if str(data) not in ("original", "equivalent"):
        raise InvalidArgumentError("data", data, "'original' or 'equivalent'")
    crew = Crew(workers, executor)
    n_test, seed = check_count("n_test", n_test), check_count("seed", seed, low=0)
    asked_for = chosen(model, observables)
    trials = plan.trials(seed, n_test, equivalent=data == "equivalent", observables=asked_for)
    at_once = crew.at_once(len(trials), threads=True)
    kept = len(plan.lams[0]) if asked_for else 0
    check_memory(model, plan.sizes, n_test, at_once, kept)
    columns, done = collect(trials, crew, progress=progress)
    source = {"method": "simulation", "data": data, "root_seed": seed, "n_test": n_test}
    asked = len(trials)
    ended = {"interrupted": int(done < asked), "done": done, "asked": asked}
    return plan.dataset(columns, {**source, "workers": crew.used, **ended})


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

        grid = Grid.of(model, ratios, regularisation, limits=False)
        rows = model.features.fixed_dimension
        d, seeds = check_count("d", rows or 256 if d is None else d), check_count("seeds", seeds)
        if rows not in (None, d):
            raise InvalidArgumentError("d", d, f"{rows}, which the features fix")
        coordinates, lam = grid.coordinates, grid.coordinates["regularisation"]
        if not model.loss.quadratic and not lam.values.all():
            raise InvalidArgumentError("regularisation", 0.0, ONLY_SQUARE)
        for name, values in coordinates.items():
            if own := {"seed", "n", "p", "d"}.intersection(map(str, values.dims)):
                raise InvalidArgumentError(
                    name, f"with a dimension {own.pop()!r}", "named otherwise"
                )
        alpha, gamma = xr.broadcast(*grid.sizes())
        shared = not set(lam.dims).intersection(alpha.dims)
        if shared:
            lams = [tuple(lam.values.ravel().tolist())] * alpha.size
        else:  # λ varies with the point: one value per fit
            alpha, gamma, lam = xr.broadcast(alpha, gamma, lam)
            lams = [(value,) for value in lam.values.ravel().tolist()]
        flat = zip(alpha.values.flat, gamma.values.flat, strict=True)
        sizes = [Sizes.nearest(a, g, d) for a, g in flat]
        return cls(model, coordinates, alpha, lam.dims if shared else (), sizes, lams, seeds)

    def trials(
        self, seed: int, n_test: int, *, equivalent: bool, observables: Sequence[Observable] = ()
    ) -> list[Trial]:
        """All seeds of the first point, then of the next."""
        measures = {observable.name: observable.measured for observable in observables}

        def trial(number: int, size: Sizes, lams: tuple[float, ...]) -> Trial:
            sequence = np.random.SeedSequence(seed, spawn_key=(number, size.n, size.p, size.d))
            return Trial(self.model, size, lams, sequence, n_test, equivalent, measures)

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


@with_options_of(simulate)
def compare(
    model: Model | Data,
    *,
    regularisation: ArrayLike | xr.DataArray | Optimal | str | None = None,
    on_failure: Literal["raise", "keep"] = "keep",
    **options: Any,
) -> xr.Dataset:
    """Simulate and predict the same points, and judge the difference by its standard error.

    Parameters
    ----------
    model : Model or Data
        What is learned. For real data predictions from some rows are held against fits to others;
        the options are then those of `hiddenmanifold.data.holdout.held_out`.
    regularisation : array_like, DataArray, Optimal or "optimal"
        The λ of the objective, or the one of least predicted error at the given ratios, which is
        then in the dataset as `optimal_regularisation`.
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
        the theory's solve ended. The attributes are those of `simulate`.

    Raises
    ------
    ConvergenceError
        If the theory fails at a point and `on_failure` is "raise".
    """
    import xarray as xr

    if isinstance(model, Data):
        return held_out(model, **_given(regularisation=regularisation), **options)
    if regularisation is None:
        raise TypeError("compare() missing 1 required keyword-only argument: 'regularisation'")
    check_on_failure(on_failure)
    crew: dict[str, Any] = {n: options[n] for n in ("workers", "executor") if n in options}
    optimal = Optimal.asked_for(regularisation)
    if optimal is not None:
        ratios = {name: options[name] for name in RATIOS if name in options}
        regularisation = _best(model, optimal, **ratios, **crew)
    out = summary(simulate(model, regularisation=regularisation, **options))  # type: ignore[arg-type]
    lam = labelled("regularisation", regularisation, zero=True)  # type: ignore[arg-type]
    used = {"n_over_p": out.n / out.p, "d_over_p": out.d / out.p, "regularisation": lam}
    if model.features.fixed_ratio is not None:
        del used["d_over_p"]
    bare: dict[str, Any] = {name: xr.DataArray(a.values, dims=a.dims) for name, a in used.items()}
    if "observables" in options:
        crew["observables"] = options["observables"]
    theory = predict(model, **bare, **crew, on_failure="keep")
    intercept = ("intercept",) if model.free_intercept else ()
    for name in (*COMPARED, *intercept, *REGISTRY):
        if name in out:
            expected = theory[name].drop_vars(list(theory[name].coords))
            error = out[f"{name}_stderr"]
            spread = error > ROUNDING * np.abs(out[name])  # else seeds agree, to rounding
            z = (out[name] - expected) / error.where(spread)
            out[f"{name}_theory"] = expected
            out[f"{name}_z"] = z.assign_attrs(long_name=f"(simulation - theory)/error of {name}")
    out["theory_status"] = theory["status"].drop_vars(list(theory["status"].coords))
    if optimal is not None:
        out = out.reset_coords("regularisation").rename(regularisation="optimal_regularisation")
        out.optimal_regularisation.attrs["long_name"] = MEANINGS["optimal_regularisation"]
    try:
        checked(theory, on_failure)
    except ConvergenceError as error:
        error.partial = out
        raise
    return out


def _given(**options: Any) -> dict[str, Any]:
    """Options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _best(model: Model, optimal: Optimal, **options: Any) -> xr.DataArray:
    """The regularisation of least predicted error, if a fit can have it."""
    import xarray as xr

    found = predict(model, regularisation=optimal, **options).optimal_regularisation
    lam = found.values
    limits = lam[np.isinf(lam) | ((lam == 0) & (not model.loss.quadratic))]
    if limits.size:
        raise InvalidArgumentError(
            "bounds",
            optimal.bounds,
            f"narrower: the best regularisation is the limit {limits[0]:g}, which no fit can have",
        )
    return xr.DataArray(lam, dims=found.dims)
