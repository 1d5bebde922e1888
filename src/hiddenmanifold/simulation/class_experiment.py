"""One seed of one point of a model of several classes: draw, fit every λ, measure."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.losses import of_shortfall
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.simulation.class_fits import ClassFit, fit_classes
from hiddenmanifold.simulation.class_samples import ClassSample, ClassWorld
from hiddenmanifold.simulation.experiment import Trial
from hiddenmanifold.teachers import several

TOPS = 5
"""Most ranks k for which top-k errors are measured."""


@dataclass(frozen=True)
class ClassTrial(Trial):
    """One job of a worker, of a model of several classes."""

    @one_thread
    def run(self) -> dict[str, Array]:
        """Every quantity of `shapes`, arrays over the regularisations."""
        start = time.perf_counter()
        world_rng, train_rng, test_rng = self.generators
        world = ClassWorld.draw(self.model, self.sizes, world_rng, equivalent=self.equivalent)
        world, train = world.training(self.sizes.n, train_rng)
        number = several(self.model.teacher).number
        intercept = self.model.intercept
        fits = fit_classes(
            self.model.loss,
            train.X,
            train.y,
            number,
            np.array(self.lams),
            intercept=intercept,
            one_vs_rest=self.model.scheme is not None,
        )
        columns = [
            {
                **_overlaps(world, fit),
                "training_loss": fit.objective / len(train.y),
                "training_error": float((_scores(train, fit).argmax(1) != train.y).mean()),
                "optimality": max(fit.optimality, world.features.rounding(lam)),
            }
            for fit, lam in zip(fits, self.lams, strict=True)
        ]
        found = {name: np.array([c[name] for c in columns]) for name in columns[0]}
        found |= _on_test(self, world, fits, test_rng)
        found["seconds"] = np.full(len(fits), (time.perf_counter() - start) / len(fits))
        return found

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        K = several(self.model.teacher).number
        numbers: tuple[str, ...] = (
            *("Q", "M", "q_w", "optimality", "training_loss", "training_error"),
            *("generalisation_error", "generalisation_error_test_stderr", "clean_error"),
            *("clean_error_test_stderr", "test_loss", "seconds"),
        )
        squares = dict.fromkeys(("confusion", "score_mean", "score_covariance"), (K, K))
        rows = dict.fromkeys(("class_error", "score_intercept"), (K,))
        if self.model.loss.quadratic:
            numbers = (*numbers, "mean_square_error")
        return {**dict.fromkeys(numbers, ()), **rows, **squares, "top_error": (min(TOPS, K - 1),)}


def _overlaps(world: ClassWorld, fit: ClassFit) -> dict[str, float | Array]:
    """Means and covariances of the scores of Gaussian-equivalent features."""
    shares = several(world.model.teacher).shares
    shift, Q = world.shift(fit.W), world.covariance(fit.W)
    b = fit.b + np.array([world.features.constant(w) for w in fit.W.T])
    return {
        "Q": float(np.trace(Q)),
        "M": float(shares @ np.diag(shift)),
        "q_w": float((fit.W**2).sum()) / world.sizes.p,
        "score_mean": b + shift,
        "score_covariance": Q,
        "score_intercept": b,
    }


def _scores(sample: ClassSample, fit: ClassFit) -> Array:
    f: Array = sample.X @ fit.W / np.sqrt(sample.X.shape[1]) + fit.b
    return f


def _loss(model: Model, f: Array, y: Integers) -> float:
    """The sum of the losses of samples with scores f (rows, K) and classes y."""
    own = f[np.arange(len(f)), y]
    if model.scheme is not None:
        signs = np.where(y[:, None] == np.arange(f.shape[1]), 1.0, -1.0)
        loss = of_shortfall(model.loss)
        return float(loss.value(loss.anchor - signs * f).sum())
    if model.loss.quadratic:
        return float(0.5 * ((f**2).sum() - 2.0 * own.sum() + len(f)))
    return float((np.logaddexp.reduce(f, axis=1) - own).sum())


def _on_test(
    trial: ClassTrial, world: ClassWorld, fits: list[ClassFit], rng: np.random.Generator
) -> dict[str, Array]:
    """Errors on fresh samples; rates of a class without any are NaN."""
    K, tops = several(trial.model.teacher).number, trial.shapes["top_error"][0]
    counts, quadratic = np.zeros((len(fits), K, K)), trial.model.loss.quadratic
    beyond, loss = np.zeros((len(fits), tops)), np.zeros(len(fits))
    unclean = np.zeros(len(fits))
    for block in world.blocks(trial.n_test, rng):
        for i, fit in enumerate(fits):
            f = _scores(block, fit)
            np.add.at(counts[i], (block.y, f.argmax(1)), 1.0)
            unclean[i] += (f.argmax(1) != block.clean).sum()
            own = f[np.arange(len(f)), block.y]
            rank = (f > own[:, None]).sum(1)
            beyond[i] += (rank[:, None] > np.arange(tops)).sum(0)
            loss[i] += _loss(trial.model, f, block.y)
    n_test = trial.n_test
    with np.errstate(invalid="ignore"):
        confusion = counts / counts.sum(2, keepdims=True)
    error = 1.0 - np.trace(counts, axis1=1, axis2=2) / n_test
    clean = unclean / n_test
    stderr, clean_stderr = (
        np.sqrt(rate * (1.0 - rate) / (n_test - 1 or np.nan)) for rate in (error, clean)
    )
    return {
        "generalisation_error": error,
        "generalisation_error_test_stderr": stderr,
        "clean_error": clean,
        "clean_error_test_stderr": clean_stderr,
        "class_error": 1.0 - np.diagonal(confusion, axis1=1, axis2=2),
        "confusion": confusion,
        "top_error": beyond / n_test,
        "test_loss": loss / n_test,
        **({"mean_square_error": 2.0 * loss / n_test} if quadratic else {}),
    }
