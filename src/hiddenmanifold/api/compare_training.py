"""Training of drawn samples and the theory of it at the same times, and how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import COUNTS, EarlyStopping, sizes_of
from hiddenmanifold.api.best_time import check_alone, stopped
from hiddenmanifold.api.grid import Grid, check_on_failure, checked
from hiddenmanifold.api.signatures import DEFAULTS, Seeded, Theory, with_options
from hiddenmanifold.api.simulate import dimension
from hiddenmanifold.api.standard_scores import judge
from hiddenmanifold.api.training import METHOD, Training, refuse_unstable
from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.checks import check_count
from hiddenmanifold.errors import ConvergenceError, InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import bare, dataset, summary, with_schema
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.simulation.experiment import check_memory
from hiddenmanifold.simulation.gradient_methods import TrainingTrial
from hiddenmanifold.simulation.samples import Sizes
from hiddenmanifold.theory.points import Points

if TYPE_CHECKING:
    import xarray as xr


ABSOLUTE = 1e-11
"""Accuracy of the theory of a training loss that has almost vanished, for labels of size one."""
MOST_TAKEN = 100_000
"""Steps that are really taken, at most: with 300 samples and features they take ten seconds."""


@with_options(Seeded)
def compare_training(
    model: Model,
    *,
    times: ArrayLike | xr.DataArray | None = None,
    regularisation: ArrayLike | xr.DataArray = 0.0,
    on_failure: Literal["raise", "keep"] = "keep",
    **options: Unpack[Seeded],
) -> xr.Dataset:
    """Train on drawn samples, and judge the distance from `training` by its standard error.

    Gradient flow is evaluated exactly at each time; steps are really taken.

    Parameters
    ----------
    model, step, momentum, nesterov, method, regularisation
        As in `training`.
    times : array_like or DataArray
        Times or numbers of steps as in `training`, positive and finite.
    on_failure : {"raise", "keep"}
        Whether a point at which the theory fails raises, or is kept.
    seeds, n_test, data, seed
        As in `simulate`: how many seeds, of how many new samples, of which features.
    **options
        The ratios and the dimension d, or the sizes, and where to compute, as in `simulate`.

    Returns
    -------
    xarray.Dataset
        As that of `compare`, with a dimension `time` or `steps`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.
    IncompatibleIngredientsError
        If the loss is not the square loss.
    ConvergenceError
        If the theory fails at a point and `on_failure` is "raise".

    Examples
    --------
    >>> import numpy as np, hiddenmanifold as hm
    >>> model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    >>> ds = hm.compare_training(
    ...     model, n_over_d=1.0, p_over_n=2.0, times=[1.0, 100.0], d=60, seeds=10
    ... )
    >>> bool((np.abs(ds.generalisation_error_z) < 4).all())
    True
    """
    check_on_failure(on_failure)
    given: dict[str, Any] = dict(options)
    training = Training.of(model, times, given)
    drawn = Drawn.of(given)
    counted = any(given.get(name) is not None for name in ("n", "p"))
    d = dimension(model, None if counted else given.pop("d", None))
    grid = Grid.of(model, given, training.axes(regularisation, limits=False), limits=False)
    runs = Runs.of(grid, training, d)
    theory = runs.predicted()
    out = summary(runs.simulated(drawn))
    judge(model, out, theory, exact_to=ABSOLUTE)
    out["theory_status"] = theory["status"].variable
    out = with_schema(out, Kind.COMPARISON)
    try:
        checked(theory, on_failure)
    except ConvergenceError as error:
        error.partial = out
        raise
    return out


def compare_stopped(
    model: Model,
    stopping: EarlyStopping,
    given: Mapping[str, Any],
    on_failure: Literal["raise", "keep"],
) -> xr.Dataset:
    """Compare training without a penalty that is stopped early; `given` are options of compare."""
    import xarray as xr

    allowed = (*Seeded.__annotations__, "d")
    check_alone({n: v for n, v in given.items() if n not in allowed and v != DEFAULTS.get(n)})
    options: dict[str, Any] = {n: v for n, v in given.items() if n in allowed}
    if stopping.time != "optimal":
        return compare_training(model, times=stopping.time, on_failure=on_failure, **options)
    theory = {n: v for n, v in options.items() if n in Theory.__annotations__}
    if not {"n", "p"}.intersection(theory):
        theory.pop("d", None)
    best = stopped(model, stopping, {**theory, "on_failure": on_failure}).optimal_time
    limits = best.values[~((best.values > 0.0) & (best.values < np.inf))]
    if limits.size:
        raise InvalidArgumentError.because(
            "regularisation",
            f"has the best time {limits.ravel()[0]:g} at a point",
            "give EarlyStopping bounds, because no training stops there",
        )
    times = xr.DataArray(best.values, dims=best.dims)
    out = compare_training(model, times=times, on_failure=on_failure, **options)
    out = out.reset_coords("time").rename(time="optimal_time")
    out["optimal_time"] = bare(out.optimal_time)
    return with_schema(out, Kind.COMPARISON)


@dataclass(frozen=True)
class Drawn:
    """What a simulation draws: how many seeds, test samples, from which root, of which features."""

    seeds: int
    n_test: int
    seed: int
    equivalent: bool

    @classmethod
    def of(cls, given: dict[str, Any]) -> Drawn:
        """Take these arguments out of all others."""
        least = {"seeds": 1, "n_test": 1, "seed": 0}
        values = {name: given.pop(name, DEFAULTS[name]) for name in (*least, "data")}
        if str(values["data"]) not in ("original", "equivalent"):
            raise InvalidArgumentError("data", values["data"], "'original' or 'equivalent'")
        counts = {name: check_count(name, values[name], low=low) for name, low in least.items()}
        return cls(**counts, equivalent=values["data"] == "equivalent")

    @property
    def attributes(self) -> dict[str, Any]:
        """The same as attributes of a dataset."""
        return {
            "method": "simulation",
            "data": "equivalent" if self.equivalent else "original",
            "root_seed": self.seed,
            "n_test": self.n_test,
        }


@dataclass(frozen=True)
class Runs:
    """Points and times at which samples are trained, those that share samples together."""

    grid: Grid
    training: Training
    sizes: list[Sizes]
    times: Array
    lam: Array
    step: Array | None

    @classmethod
    def of(cls, grid: Grid, training: Training, d: int) -> Runs:
        """The sizes of every point, at the dimension that goes with ratios."""
        coordinates = grid.coordinates
        if "n" in coordinates:
            known = {"p": coordinates["d"], **coordinates}  # of a kernel, as if p were d
            counts = [grid.flat(known[name]).astype(int).tolist() for name in COUNTS]
            sizes = list(map(Sizes, *counts))
        else:
            alpha, gamma = map(grid.flat, grid.labelled_ratios())
            sizes = [Sizes.nearest(a, g, d) for a, g in zip(alpha, gamma, strict=True)]
        step = None if training.step is None else grid.flat(coordinates["step"])
        if training.one_pass:
            times = np.array([size.n for size in sizes], dtype=float)
        else:
            times = grid.flat(coordinates[training.dimension])
            training.check_times(times)
        if step is not None and times.max() > MOST_TAKEN:
            raise InvalidArgumentError.because(
                "times", f"has {times.max():g} steps", f"simulate at most {MOST_TAKEN}"
            )
        return cls(grid, training, sizes, times, grid.flat(coordinates["regularisation"]), step)

    def predicted(self) -> xr.Dataset:
        """The theory at the sizes used."""
        alpha, gamma = np.array([(s.n / s.p, s.d / s.p) for s in self.sizes]).T
        points, grid = Points.of(alpha, gamma, self.lam), self.grid
        columns = self.training.predicted(grid, points)
        refuse_unstable(columns)
        source = {"method": METHOD}
        return dataset(
            Kind.TRAINING, grid.model, grid.coordinates, grid.template, columns, source=source
        )

    def simulated(self, drawn: Drawn) -> xr.Dataset:
        """Every seed of every point."""
        import xarray as xr

        grid, workers = self.grid, self.grid.workers
        trials = [
            (index, number, self._trial(index, number, drawn))
            for index in self._groups
            for number in range(drawn.seeds)
        ]
        check_memory([trial for *_, trial in trials], workers.at_once(len(trials)))
        columns: Columns = {}
        results = workers.run([trial for *_, trial in trials])
        for (index, number, _), result in zip(trials, results, strict=True):
            for name, values in result.items():
                blank = np.full((len(self.sizes), drawn.seeds), np.nan)
                columns.setdefault(name, blank)[index, number] = values
        columns = {name: values.ravel() for name, values in columns.items()}
        shape, dims = grid.template.shape, grid.template.dims
        used = {
            name: xr.DataArray(np.reshape([getattr(s, name) for s in self.sizes], shape), dims=dims)
            for name in sizes_of(grid.model.features)
            if name not in grid.coordinates
        }
        seeds = {"seed": np.arange(drawn.seeds)}
        template = xr.DataArray(np.empty((*shape, drawn.seeds)), seeds, (*dims, "seed"))
        source = {**drawn.attributes, "workers": workers.used, **self.training.attributes}
        coordinates = {**grid.coordinates, **used}
        return dataset(Kind.SIMULATION, grid.model, coordinates, template, columns, source=source)

    @property
    def _groups(self) -> list[list[int]]:
        """Points that differ in the time alone."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, size in enumerate(self.sizes):
            step = None if self.step is None else float(self.step[i])
            groups.setdefault((size, float(self.lam[i]), step), []).append(i)
        return list(groups.values())

    def _trial(self, index: list[int], number: int, drawn: Drawn) -> TrainingTrial:
        """One seed of a group of points."""
        size, lam = self.sizes[index[0]], float(self.lam[index[0]])
        return TrainingTrial(
            self.grid.model,
            size,
            (lam,) * len(index),
            np.random.SeedSequence(drawn.seed, spawn_key=(number, size.n, size.p, size.d)),
            drawn.n_test,
            drawn.equivalent,
            times=tuple(self.times[index].tolist()),
            step=None if self.step is None else float(self.step[index[0]]),
            momentum=self.training.momentum,
            nesterov=self.training.nesterov,
            one_pass=self.training.one_pass,
        )
