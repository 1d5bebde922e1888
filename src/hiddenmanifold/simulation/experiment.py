"""One seed of one point: draw a world, fit every regularisation, measure on fresh samples."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.simulation.fit import fit_path, has_minimum, numbers_needed
from hiddenmanifold.simulation.problem import Fit
from hiddenmanifold.simulation.samples import BLOCK, Sample, Sizes, World
from hiddenmanifold.simulation.test_scores import Decisions, MarginFractions, Measure, Scored

WEIGHTS = 6
"""Key of the randomness of weights, behind those of a trial and of members of an ensemble."""
MEMORY_LIMIT = 16e9
"""Bytes that the trials running at once may need, by estimate, before they are refused."""


@dataclass(frozen=True)
class Trial:
    """One job of a worker; it depends on nothing else, so results do not depend on workers."""

    model: Model
    sizes: Sizes
    lams: tuple[float, ...]
    seed: np.random.SeedSequence
    n_test: int
    equivalent: bool
    observables: Mapping[str, Measure] = field(default_factory=dict)

    @one_thread
    def run(self) -> dict[str, Array]:
        """Every quantity of `shapes`, arrays over the regularisations.

        All NaN, and infinitely far from an optimum, if the samples drawn leave the objective
        without a minimum. Linear algebra has one thread, so that results are the same to the bit
        wherever the trial runs.
        """
        start = time.perf_counter()
        world_rng, train_rng, test_rng = self.generators
        world = World.draw(self.model, self.sizes, world_rng, equivalent=self.equivalent)
        world, train = world.training(self.sizes.n, train_rng)
        model, lams = self.model, self.lams
        found = {n: np.full((len(lams), *shape), np.nan) for n, shape in self.shapes.items()}
        found["optimality"][:] = np.inf
        if has_minimum(model.loss, model.task, train.y, intercept=model.intercept):
            fits = self.fitted(train)
            found.update(of_fits(world, train, fits, lams))
            found.update(_on_test(self, world, train, fits, test_rng))
        found["seconds"][:] = (time.perf_counter() - start) / len(lams)
        return found

    def rng(self, *key: int) -> np.random.Generator:
        """A source of randomness of its own for each part of the trial.

        It is not made by `spawn`, which counts its calls: a trial gives the same result however
        often it runs.
        """
        sequence = np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, *key))
        return np.random.default_rng(sequence)

    def fitted(self, train: Sample) -> list[Fit]:
        """The fit for each regularisation."""
        return self.fits_of(train, self.rng(WEIGHTS))

    def fits_of(
        self, train: Sample, rng: np.random.Generator, rows: Integers | None = None
    ) -> list[Fit]:
        """The fit of some training samples for each regularisation; weights are drawn for all."""
        model, X, y = self.model, train.X, train.y
        weights = None if model.weights is None else model.weights.of(y, rng)
        if rows is not None:
            X, y, weights = X[rows], y[rows], None if weights is None else weights[rows]
        lams, free = np.array(self.lams), model.intercept
        return fit_path(model.loss, model.task, X, y, lams, intercept=free, weights=weights)

    @property
    def generators(self) -> tuple[np.random.Generator, ...]:
        """Randomness of the world, of the training samples and of the test."""
        return tuple(self.rng(k) for k in range(3))

    @property
    def _dimensions(self) -> tuple[int, int, int]:
        """Numbers of samples, of features that are fitted, and of latent dimensions."""
        n, p, d = self.sizes.n, self.sizes.p, self.sizes.d
        return n, self.model.features.columns(n, p), d

    @property
    def described(self) -> str:
        """Its sizes in words."""
        if self.model.features.infinite:
            return f"n = {self.sizes.n}, d = {self.sizes.d}"
        return str(self.sizes)

    @property
    def seconds(self) -> float:
        """Estimated time on one core of some 10 Gflop/s.

        The terms are for numbers drawn, features computed, the first fit, and the others, each of
        which starts from the one before. The coefficients were fitted to 150 trials, d from 10 to
        630: those of the square and logistic losses are within a factor of two, hinge fits with
        n well above p take up to five times as long.
        """
        n, p, d = self._dimensions
        samples, fit = n + self.n_test, 6e-11 * n * p * min(n, p)
        drawn = 6e-9 * samples * (d + p) + 4e-11 * samples * d * p
        return 3e-3 + drawn + fit * (1 + (len(self.lams) - 1) / 3)

    @property
    def bytes(self) -> float:
        """Estimated memory: F as it is drawn, the samples, and their fit or test.

        Observables keep the scores of all fits.
        """
        n, p, d = self._dimensions
        drawn = self.model.features.numbers_drawn(n, d, p)
        kept = len(self.lams) if self.observables else 0
        test = 4 * min(self.n_test * max(d, p), BLOCK) + 3 * self.n_test * kept
        return 8.0 * (drawn + n * (d + p) + max(numbers_needed(self.model.loss, n, p), test))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every quantity measured for one fit, by name."""
        names, vectors = (*measured(self.model), *self.observables), self.vectors
        return {name: (len(vectors[name]),) if name in vectors else () for name in names}

    @property
    def further_contents(self) -> dict[str, Any]:
        """Inputs of its fits that not all trials have, for a store."""
        return {}

    @property
    def vectors(self) -> dict[str, tuple[float, ...]]:
        """The observables whose value is a vector, and the values to which its parts belong."""
        measures = self.observables.items()
        return {name: m.at for name, m in measures if isinstance(m, MarginFractions | Decisions)}


def measured(model: Model) -> tuple[str, ...]:
    """Names of the quantities that every trial measures."""
    errors = ("generalisation_error", "clean_error")
    training = ("training_loss", "training_error")
    return (
        *model.features.measured_overlaps,
        *("q_w", "alignment", "intercept", "optimality"),
        *(training if model.counts_errors else training[:1]),
        *(name for error in errors for name in (error, f"{error}_test_stderr")),
        "seconds",
    )


def check_memory(trials: Sequence[Trial], at_once: int) -> None:
    """Refuse trials that would not fit, if `at_once` of them run at the same time.

    Raises
    ------
    InvalidArgumentError
        Saying how much they would need.
    """
    largest = max(trials, key=attrgetter("bytes"))
    need = at_once * largest.bytes
    if need > MEMORY_LIMIT:
        workers = f" on {at_once} workers" if at_once > 1 else ""
        name = "n" if largest.model.features.infinite else "d"
        raise InvalidArgumentError.because(
            name,
            f"= {getattr(largest.sizes, name)} is too large",
            f"{largest.described}{workers} would need about {need / 1e9:.0f} GB",
        )


def of_fits(
    world: World, train: Sample, fits: Sequence[Fit], lams: Sequence[float]
) -> dict[str, Array]:
    """What is measured of fits without fresh samples, arrays over the regularisations."""
    columns = [
        {
            **_overlaps(world, fit),
            **_on_training(world.model, train, fit),
            "optimality": max(fit.optimality, world.features.rounding(lam)),
        }
        for fit, lam in zip(fits, lams, strict=True)
    ]
    return {name: np.array([c[name] for c in columns]) for name in columns[0]}


def _overlaps(world: World, fit: Fit) -> dict[str, float]:
    """Overlaps of the fitted weights with themselves and with the teacher."""
    found = world.features.overlaps(fit.w)
    p, Q, M = world.sizes.p, found["Q"], found["M"]
    return {
        **found,
        "q_w": float(fit.w @ fit.w) / p,
        "alignment": M / np.sqrt(world.model.teacher.rho * Q) if Q > 0 else np.nan,
        "intercept": fit.b + world.features.constant(fit.w),
    }


def _wrong(f: Array, y: Array) -> Array:
    """Where a classifier errs; by convention a prediction of exactly zero means -1."""
    wrong: Array = (np.where(f > 0, 1.0, -1.0) != y).astype(float)
    return wrong


def cost(model: Model, f: Array, y: Array) -> Array:
    """Errors of the predictions that follow from scores f, sample by sample."""
    if model.counts_errors:
        return _wrong(f, y)
    square: Array = (model.prediction(f) - y) ** 2
    return square


def _scores(sample: Sample, fit: Fit) -> Array:
    f: Array = sample.X @ fit.w / np.sqrt(sample.X.shape[1]) + fit.b
    return f


def _on_training(model: Model, train: Sample, fit: Fit) -> dict[str, float]:
    out = {"training_loss": fit.objective / len(train.y)}
    if model.counts_errors:
        out["training_error"] = float(_wrong(_scores(train, fit), train.y).mean())
    return out


@np.errstate(over="ignore", invalid="ignore")  # of predictions that are exponentials
def _on_test(
    trial: Trial, world: World, train: Sample, fits: list[Fit], rng: np.random.Generator
) -> dict[str, Array]:
    """Errors on fresh samples, with the standard error that their finite number leaves.

    They are rates of wrong labels, or mean squares of the distance from the prediction.
    Observables are those of all scores together, which are kept for them alone.
    """
    n_test, observables = trial.n_test, trial.observables
    W = np.array([fit.w for fit in fits]).T
    W /= np.sqrt(len(W))
    b = np.array([fit.b for fit in fits])
    sums = {name: np.zeros((2, len(fits))) for name in ("generalisation_error", "clean_error")}
    kept: list[tuple[Array, Array, Array]] = []
    for block in world.blocks(n_test, rng):
        f = block.X @ W + b
        kept += [(f, block.y, block.nu)] if observables else []
        for name, y in (("generalisation_error", block.y), ("clean_error", block.clean)):
            each = cost(world.model, f, y[:, None])
            sums[name] += np.array([each.sum(0), (each * each).sum(0)])
    found = means(sums, n_test)
    if observables:
        scores, *labels = (np.concatenate(part) for part in zip(*kept, strict=True))
        scored = [
            _scored(world, train, fit, (f, *labels)) for fit, f in zip(fits, scores.T, strict=True)
        ]
        found |= {n: np.array([m(s) for s in scored]) for n, m in observables.items()}
    return found


def means(sums: Mapping[str, Array], rows: int) -> dict[str, Array]:
    """Means with standard errors, from the sums of values and of their squares over some rows."""
    found = {}
    for name, (first, second) in sums.items():
        found[name] = mean = first / rows
        spread = np.maximum(second / rows - mean**2, 0.0)
        # the spread cannot be estimated from a single sample
        found[f"{name}_test_stderr"] = np.sqrt(spread / (rows - 1 or np.nan))
    return found


def _scored(world: World, train: Sample, fit: Fit, tested: tuple[Array, ...]) -> Scored:
    """The scores of one fit and the labels and fields of its test, with its overlaps."""
    known = {name: _overlaps(world, fit)[name] for name in ("intercept", "Q", "M")}
    f, y, nu = tested
    return Scored(world.model, f, y, _scores(train, fit), train.y, **known, nu=nu)
