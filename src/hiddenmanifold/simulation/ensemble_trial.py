"""One seed of one point with several fits: on independent features, samples, or both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.resampling import Resampling, Whole
from hiddenmanifold.simulation.experiment import WEIGHTS, Trial, cost, means, measured, of_fits
from hiddenmanifold.simulation.fit import has_minimum
from hiddenmanifold.simulation.problem import Fit
from hiddenmanifold.simulation.samples import Sample, World

FEATURES, SAMPLES, ROWS = 3, 4, 5
"""Keys of the randomness of further members, beside the three of every trial."""


def differences(model: Model) -> tuple[str, ...]:
    """Names of how differently two fits predict."""
    if model.task is Task.CLASSIFICATION:
        return ("disagreement", "probability_difference")
    return ("score_difference",)


def mean_distances(task: Task, scores: Array) -> dict[str, Array]:
    """Means of distances over all pairs of fits, from scores (fits, rows, regularisations)."""
    if task is not Task.CLASSIFICATION:
        return {"score_difference": _mean_distance(scores)}
    return {
        "disagreement": _mean_distance((scores > 0).astype(float)),
        "probability_difference": _mean_distance(scipy.special.expit(scores)),
    }


def _mean_distance(values: Array) -> Array:
    """The mean of |a - b| over pairs along the first axis: sorted, each counts by its place."""
    fits = len(values)
    places = 2.0 * np.arange(fits) - (fits - 1.0)
    total: Array = np.tensordot(places, np.sort(values, axis=0), 1)
    return 2.0 * total / (fits * (fits - 1))


@dataclass(frozen=True)
class Member:
    """One fit of an ensemble for each regularisation: its world, training samples and weights."""

    world: World
    train: Sample
    fits: list[Fit]

    def scores(self, X: Array) -> Array:
        """Scores of samples with features X, (rows, regularisations)."""
        W = np.array([fit.w for fit in self.fits]).T / np.sqrt(X.shape[1])
        scores: Array = X @ W + np.array([fit.b for fit in self.fits])
        return scores


@dataclass(frozen=True)
class EnsembleTrial(Trial):
    """A `Trial` with as many fits as the largest ensemble has members, and at least two.

    Smaller ensembles are averages over groups of these fits.

    Attributes
    ----------
    members : tuple of int
        Numbers of members of the ensembles.
    new_features, new_samples : bool
        Whether each member draws its own.
    resampling : Resampling
        How each member draws the rows that it is fitted to.
    """

    members: tuple[int, ...] = (1,)
    new_features: bool = True
    new_samples: bool = False
    resampling: Resampling = field(default_factory=Whole)

    @property
    def fits(self) -> int:
        """The number of fits of each regularisation: a covariance needs two."""
        return max(2, *self.members)

    @one_thread
    def run(self) -> dict[str, Array]:
        """Every quantity of `shapes`, arrays over the regularisations.

        All NaN, and infinitely far from an optimum, if a member's objective has no minimum.
        """
        start = time.perf_counter()
        found = {n: np.full((len(self.lams), *s), np.nan) for n, s in self.shapes.items()}
        found["optimality"][:] = np.inf
        ensemble = list(self._ensemble())
        if len(ensemble) == self.fits:
            own = [of_fits(m.world, m.train, m.fits, self.lams) for m in ensemble]
            for name in own[0]:
                together = np.max if name == "optimality" else np.mean
                found[name] = together([columns[name] for columns in own], axis=0)
            found.update(self._overlaps(ensemble))
            found.update(self._on_fresh(ensemble))
        found["seconds"][:] = (time.perf_counter() - start) / len(self.lams)
        return found

    def _ensemble(self) -> Iterator[Member]:
        """The fitted members, up to the first whose objective has no minimum."""
        model = self.model
        first = World.draw(model, self.sizes, self.rng(0), equivalent=self.equivalent)
        latent = first.latent(self.sizes.n, self.rng(1))
        for k in range(self.fits):
            world = first.redrawn(self.rng(FEATURES, k)) if k and self.new_features else first
            if k and self.new_samples:
                latent = first.latent(self.sizes.n, self.rng(SAMPLES, k))
            world, train = world.trained_on(latent, self.rng(FEATURES, k, 0))
            rows = self.resampling.rows(self.sizes.n, k, self.rng(ROWS, k))
            y, own = train.y[rows], (k,) if self.new_samples else ()
            if not has_minimum(model.loss, model.task, y, intercept=model.intercept):
                return
            yield Member(world, train, self.fits_of(train, self.rng(WEIGHTS, *own), rows))

    def _overlaps(self, ensemble: list[Member]) -> dict[str, Array]:
        """Covariance and correlation of the scores of two members, by their weights.

        Both are means over all pairs, from quadratic forms of the weights and of their sum. Members
        on features of their own share the linear part in the data alone.
        """
        drawn = ensemble[0].world.features
        same = all(member.world.features is drawn for member in ensemble)
        found = []
        for fits in zip(*(member.fits for member in ensemble), strict=True):
            weights = [
                fit.w if same else member.world.features.latent_weights(fit.w)
                for member, fit in zip(ensemble, fits, strict=True)
            ]
            square = drawn.overlaps if same else drawn.inputs.overlaps
            single = sum(square(w)["Q"] for w in weights)
            found.append(square(np.sum(weights, axis=0))["Q"] - single)
        overlap = np.array(found) / (self.fits * (self.fits - 1))
        Q = [[m.world.features.overlaps(fit.w)["Q"] for fit in m.fits] for m in ensemble]
        with np.errstate(invalid="ignore"):  # of scores that do not vary
            return {"overlap": overlap, "score_correlation": overlap / np.mean(Q, axis=0)}

    def _on_fresh(self, ensemble: list[Member]) -> dict[str, Array]:
        """Errors on fresh samples, and how differently two members predict there."""
        rng, rows, model = self.rng(2), 0, self.model
        errors = {n: np.zeros((2, len(self.lams), len(self.members))) for n in self._errors}
        apart = {name: np.zeros(len(self.lams)) for name in differences(model)}
        for size in ensemble[0].world.block_sizes(self.n_test):
            fresh = ensemble[0].world.latent(size, rng)
            scores = np.array(list(self._scores(ensemble, fresh, rng)))
            for k, members in enumerate(self.members):
                for name, values in self._costs(scores, fresh, members).items():
                    errors[name][:, :, k] += values.sum(0), (values * values).sum(0)
            rows += size
            for name, values in mean_distances(model.task, scores).items():
                apart[name] += values.sum(0)
        return {**means(errors, rows), **{name: total / rows for name, total in apart.items()}}

    def _scores(
        self, ensemble: list[Member], fresh: Sample, rng: np.random.Generator
    ) -> Iterator[Array]:
        """The scores of each member (rows, regularisations)."""
        drawn, X = None, fresh.X
        for member in ensemble:
            if member.world.features is not drawn:
                drawn = member.world.features
                X = drawn.features(fresh.X, rng, equivalent=self.equivalent)
            yield member.scores(X)

    def _costs(self, scores: Array, fresh: Sample, members: int) -> dict[str, Array]:
        """Errors of ensembles (rows, regularisations), averages over groups of members."""
        model = self.model
        groups = np.array_split(scores[: len(scores) // members * members], len(scores) // members)
        mean = [group.mean(0) for group in groups]
        found = {
            "generalisation_error": [cost(model, f, fresh.y[:, None]) for f in mean],
            "clean_error": [cost(model, f, fresh.clean[:, None]) for f in mean],
        }
        if "vote_error" in self._errors:
            y = fresh.y[:, None]
            for_label = [(np.where(group > 0, 1.0, -1.0) * y).sum(0) for group in groups]
            found["vote_error"] = [0.5 * (1.0 - np.sign(votes)) for votes in for_label]
        return {name: np.mean(values, axis=0) for name, values in found.items()}

    @property
    def _errors(self) -> tuple[str, ...]:
        """Names of the errors that depend on the number of members."""
        errors = ("generalisation_error", "clean_error", "vote_error")
        return errors if self.model.counts_errors else errors[:2]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        vectors = {name for e in self._errors for name in (e, f"{e}_test_stderr")}
        kept = ("overlap", "score_correlation", *differences(self.model))
        names = dict.fromkeys((*measured(self.model), *vectors, *kept))
        return {name: (len(self.members),) if name in vectors else () for name in names}

    @property
    def further_contents(self) -> dict[str, Any]:
        drawn = {"features": self.new_features, "samples": self.new_samples}
        own = [name for name, independent in drawn.items() if independent]
        how = {} if self.resampling == Whole() else {"resampling": repr(self.resampling)}
        return {"members": list(self.members), "independent": own, **how}

    @property
    def seconds(self) -> float:
        return super().seconds * self.fits

    @property
    def bytes(self) -> float:
        n, p, _ = self._dimensions
        return super().bytes + 8.0 * self.fits * n * p
