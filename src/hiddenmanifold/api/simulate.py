"""Simulate a model at finite size."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hiddenmanifold.api.arguments import members_of, resampling_of, shared_by
from hiddenmanifold.api.draws import Plan
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.pair_of_models import Pairing, axes_of_pair, pairing_of
from hiddenmanifold.api.signatures import DEFAULTS, Drawing, Finite, with_options
from hiddenmanifold.checks import Task, check_count
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import Resampling
from hiddenmanifold.results.datasets import ACCEPTED
from hiddenmanifold.results.observables import Observable, chosen, decisions, margin_laws
from hiddenmanifold.simulation.class_experiment import ClassTrial
from hiddenmanifold.simulation.ensemble_trial import EnsembleTrial
from hiddenmanifold.simulation.experiment import Trial, check_memory
from hiddenmanifold.simulation.samples import Sizes
from hiddenmanifold.simulation.trial_cache import Memory, collect
from hiddenmanifold.storage import Store
from hiddenmanifold.theory.pairs.mean_and_vote import Ensemble

if TYPE_CHECKING:
    import xarray as xr


@with_options(Finite)
def simulate(
    model: Model, *, regularisation: ArrayLike | xr.DataArray, **options: Unpack[Finite]
) -> xr.Dataset:
    """Fit a model exactly on drawn data, for many seeds, and measure it.

    Parameters
    ----------
    model : Model
        The learning problem.
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
        `calibration_error` assumes that the teacher's field is normal given the score, with the
        covariance of the fitted weights; this is exact for d → ∞.
    margins : sequence of float, optional
        Where to measure the law of margins y f too: `test_cdf` and `train_cdf`, as in
        `hiddenmanifold.margins`, with a last dimension `y_f`.
    decision_thresholds : sequence of float, optional
        As in `predict`.
    members : sequence of int, optional
        Numbers of fits of the same teacher: measure the ensembles of `hiddenmanifold.ensemble`,
        under the same names.
    independent : {"features", "samples", "both", "none"}
        What every member of an ensemble draws for itself, as there.
    resampling : str or Resampling, optional
        How every member draws its samples from the common ones, as there.
    second : Model, optional
        Another model that is fitted to the same labels: measure the pairs of `hiddenmanifold.pair`,
        under the same names. `independent` and `resampling` are then those of both fits.
    regularisation_2, p_2_over_d, share
        As in `pair`.
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
        store the attributes `computed`, `reused`, `outdated` and `failed` count fits: made now,
        known to the store, made now though the store has them by another version of the algorithm,
        and those farther than 1e-7 from their optimum. Draws without a minimum (a single class, an
        intercept and a loss that only falls) are NaN too, and their `optimality` is infinite.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, a size rounds to zero, the data do not fit in memory, or the
        content of a custom function cannot be inspected, for the store.
    StoreError
        If the store cannot be used; its contents are left untouched.
    """
    return Simulation.of(model, regularisation, options).run()


@dataclass(frozen=True)
class Simulation:
    """The simulation that the arguments of `simulate` describe.

    Attributes
    ----------
    grid : Grid
        The ratios and regularisations.
    d : int
        The latent dimension that goes with ratios.
    seeds, seed, n_test : int
        Number of draws, root of all randomness, number of fresh samples.
    equivalent : bool
        Whether the features are the Gaussian-equivalent ones.
    observables : tuple of Observable
        More to measure; laws of margins, too.
    ensemble : Ensemble, optional
        The ensembles to measure.
    resampling : Resampling
        How their members draw samples.
    pairing : Pairing, optional
        The second model to fit to the same labels.
    store : path, optional
        The file in which fits are kept.
    """

    grid: Grid
    d: int
    seeds: int
    seed: int
    n_test: int
    equivalent: bool
    observables: tuple[Observable, ...]
    ensemble: Ensemble | None
    resampling: Resampling
    pairing: Pairing | None
    store: str | os.PathLike[str] | None

    @classmethod
    def of(
        cls, model: Model, regularisation: Any, options: Finite, *, search: bool = False
    ) -> Simulation:
        """Read the arguments of `simulate`; with `search` the regularisation may be sought."""
        given: dict[str, Any] = dict(options)
        drawn = {n: given.pop(n, DEFAULTS.get(n)) for n in Drawing.__annotations__}
        if "on_failure" in given:
            raise InvalidArgumentError.because(
                "on_failure",
                "cannot be given here",
                "leave it out: a fit that falls short of its optimum is kept, with its optimality",
            )
        counted = any(given.get(name) is not None for name in ("n", "p"))
        d = None if counted else given.pop("d", None)
        axes = {"regularisation": regularisation, **axes_of_pair(drawn)}
        grid = Grid.of(model, given, axes, limits=False, search=search, classes=True)
        if str(drawn["data"]) not in ("original", "equivalent"):
            raise InvalidArgumentError("data", drawn["data"], "'original' or 'equivalent'")
        observables = chosen(model, drawn["observables"])
        if drawn["margins"] is not None:
            observables += margin_laws(model, "margins", drawn["margins"])
        if drawn["decision_thresholds"] is not None:
            observables += decisions(model, "decision_thresholds", drawn["decision_thresholds"])
        return cls(
            grid,
            dimension(model, d),
            check_count("seeds", drawn["seeds"]),
            check_count("seed", drawn["seed"], low=0),
            check_count("n_test", drawn["n_test"]),
            drawn["data"] == "equivalent",
            observables,
            _ensemble(model, drawn, observables),
            resampling_of(drawn["resampling"]),
            pairing_of(grid, drawn, observables),
            drawn["store"],
        )

    @property
    def last(self) -> tuple[str, NDArray[Any]] | None:
        """The dimension of values that are vectors, with its labels."""
        if self.pairing is not None:
            return "share", np.array(self.pairing.mean.shares)
        return None if self.ensemble is None else ("members", np.array(self.ensemble.members))

    def run(self) -> xr.Dataset:
        """Every seed of every point."""
        plan, workers = Plan.of(self.grid, self.d, self.pairing), self.grid.workers
        trials = [
            self.trial(i, *point, second)
            for point, second in zip(plan.points, plan.seconds, strict=True)
            for i in range(self.seeds)
        ]
        at_once = workers.at_once(len(trials))
        check_memory(trials, at_once)
        work = sum(trial.seconds for trial in trials)
        largest = max(trials, key=lambda trial: trial.sizes.n * trial.sizes.p)
        told = f"{len(trials)} trials, up to {largest.described}, {at_once} at once"
        workers.progress.announce(told, work / at_once)
        kept = None if self.store is None else Store(self.store)
        found = collect(trials, workers, kept)
        return plan.dataset(self, found.columns, self._source(found, kept))

    def trial(
        self,
        number: int,
        size: Sizes,
        lams: tuple[float, ...],
        second: tuple[float, int] | None = None,
    ) -> Trial:
        """One draw of a point, with λ and number of features of the second fit if there is one."""
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number, size.n, size.p, size.d))
        asked = {observable.name: observable.measured for observable in self.observables}
        given = (self.grid.model, size, lams, sequence, self.n_test, self.equivalent, asked)
        if self.pairing is not None and second is not None:
            return self.pairing.trial(given, second)
        if (ensemble := self.ensemble) is None:
            return (ClassTrial if self.grid.model.task is Task.CLASSES else Trial)(*given)
        shared, members = ensemble.shared, tuple(map(int, ensemble.members))
        return EnsembleTrial(
            *given,
            members=members,
            new_features=not shared.features,
            new_samples=not (shared.samples or self.resampling.disjoint),
            resampling=self.resampling,
        )

    def _source(self, found: Memory, store: Store | None) -> dict[str, Any]:
        """The provenance of the numbers, as attributes; print how many fits a store provided."""
        done, asked = found.complete, len(found.trials)
        source: dict[str, Any] = {
            "method": "simulation",
            "data": "equivalent" if self.equivalent else "original",
            "root_seed": self.seed,
            "n_test": self.n_test,
            "workers": self.grid.workers.used,
            "interrupted": int(done < asked),
            "done": done,
            "asked": asked,
        }
        if store is None:
            return source
        failed = int((found.columns["optimality"] > ACCEPTED).sum())
        fits = {
            "computed": found.computed,
            "reused": found.reused,
            "outdated": found.outdated,
            "failed": failed,
        }
        if self.grid.workers.progress.visible:
            told = ", ".join(f"{count} {what}" for what, count in fits.items())
            print(f"{store.path}: {told}", file=sys.stderr)
        return {**source, **fits}


def _ensemble(
    model: Model, given: Mapping[str, Any], observables: tuple[Observable, ...]
) -> Ensemble | None:
    """The ensembles that the arguments describe."""
    members, resampling = given["members"], resampling_of(given["resampling"])
    if members is None:
        if given["resampling"] is not None and given["second"] is None:
            raise InvalidArgumentError.because(
                "resampling",
                "is given without members",
                "give members, the numbers of fits, or a second model",
            )
        return None
    shared = shared_by(given["independent"], resampling)
    shared.check(model.features)
    if observables or model.task is Task.CLASSES:
        raise InvalidArgumentError.because(
            "members",
            "cannot be combined with observables, margins or more than two classes",
            "ask for these without members, or for the errors of ensembles alone",
        )
    counts = members_of(members, infinite=False)
    resampling.check(max(2.0, float(counts.max())))
    return Ensemble(tuple(counts.tolist()), shared)


def dimension(model: Model, d: Any) -> int:
    """The latent dimension that goes with ratios."""
    rows = model.features.fixed_dimension
    whole = check_count("d", rows or 256 if d is None else d)
    if rows not in (None, whole):
        raise InvalidArgumentError("d", d, f"{rows}, which the features fix")
    return whole
