"""One seed of one point: draw a world, fit every regularisation, measure on fresh samples."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.model import Model
from hiddenmanifold.registry import Task
from hiddenmanifold.simulation.data import Sizes, World
from hiddenmanifold.simulation.fit import Fit, fit_path

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """What a worker is asked to do; it depends on nothing else, so results do not on workers."""

    model: Model
    sizes: Sizes
    lams: tuple[float, ...]
    seed: np.random.SeedSequence
    n_test: int
    equivalent: bool

    def run(self) -> dict[str, Array]:
        """Every measured quantity, arrays over the regularisations."""
        start = time.perf_counter()
        # not `spawn`, which counts its calls: a trial gives the same result however often it runs
        world_rng, train_rng, test_rng = (
            np.random.default_rng(
                np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, k))
            )
            for k in range(3)
        )
        world = World.draw(self.model, self.sizes, world_rng, equivalent=self.equivalent)
        train = world.sample(self.sizes.n, train_rng)
        model, lams = self.model, np.array(self.lams)
        fits = fit_path(model.loss, model.task, train.X, train.y, lams, intercept=model.intercept)
        columns = [
            {**_overlaps(world, fit), **_on_training(self.model, train.X, train.y, fit)}
            for fit in fits
        ]
        measured = {name: np.array([column[name] for column in columns]) for name in columns[0]}
        measured.update(_on_test(world, fits, self.n_test, test_rng))
        measured["seconds"] = np.full(len(fits), (time.perf_counter() - start) / len(fits))
        return measured


def _overlaps(world: World, fit: Fit) -> dict[str, float]:
    """Overlaps of the fitted weights with themselves and with the teacher."""
    _, kappa_1, kappa_star = world.model.activation.kappas
    p, d = world.sizes.p, world.sizes.d
    projected = world.F.right(fit.w) / np.sqrt(p)
    q_s, q_w = float(projected @ projected) / d, float(fit.w @ fit.w) / p
    m_s = float(projected @ world.theta) / d
    # features of mean κ0 contribute a constant to every prediction
    constant = world.model.activation.kappas[0] * float(fit.w.sum()) / np.sqrt(p)
    return {
        "q_s": q_s,
        "q_w": q_w,
        "m_s": m_s,
        "Q": kappa_1**2 * q_s + kappa_star**2 * q_w,
        "M": kappa_1 * m_s,
        "intercept": fit.b + constant,
        "optimality": fit.optimality,
    }


def _on_training(model: Model, X: Array, y: Array, fit: Fit) -> dict[str, float]:
    out = {"training_loss": fit.objective / len(y)}
    if model.task is Task.CLASSIFICATION:
        f = X @ fit.w / np.sqrt(X.shape[1]) + fit.b
        out["training_error"] = float(np.mean(y * f < 0))
    return out


def _on_test(
    world: World, fits: list[Fit], n_test: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Errors on fresh samples, with the standard error that their finite number leaves."""
    W = np.array([fit.w for fit in fits]).T / np.sqrt(world.sizes.p)
    b = np.array([fit.b for fit in fits])
    sums = {name: np.zeros((2, len(fits))) for name in ("generalisation_error", "clean_error")}
    for block in world.blocks(n_test, rng):
        f = block.X @ W + b
        for name, y in (("generalisation_error", block.y), ("clean_error", block.clean)):
            if world.model.task is Task.CLASSIFICATION:
                cost = np.where(f > 0, 1.0, -1.0) != y[:, None]
            else:
                cost = (f - y[:, None]) ** 2
            sums[name] += np.array([cost.sum(0), (cost * cost).sum(0)])
    measured = {}
    for name, (first, second) in sums.items():
        mean = first / n_test
        measured[name] = mean
        spread = np.maximum(second / n_test - mean**2, 0.0)
        measured[f"{name}_test_stderr"] = np.sqrt(spread / n_test)
    return measured
