"""One seed of one point with two fits of different models to the same labels."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.resampling import Resampling, Whole
from hiddenmanifold.simulation.ensemble_trial import (
    FEATURES,
    ROWS,
    SAMPLES,
    Member,
    differences,
    mean_distances,
)
from hiddenmanifold.simulation.experiment import WEIGHTS, Trial, cost, means, measured, of_fits
from hiddenmanifold.simulation.fit import has_minimum
from hiddenmanifold.simulation.samples import Sample, Sizes, World
from hiddenmanifold.storage import identity

ERRORS = ("generalisation_error", "clean_error")
"""Errors of the mean of both predictions."""


@dataclass(frozen=True)
class SecondFit:
    """The second fit of a pair: its model, λ, number of features, and what it draws for itself."""

    model: Model
    lam: float
    p: int
    new_features: bool
    new_samples: bool
    resampling: Resampling = field(default_factory=Whole)


@dataclass(frozen=True)
class PairTrial(Trial):
    """A `Trial` with two fits of different models, each of one regularisation.

    Attributes
    ----------
    second : SecondFit
        The second fit.
    shares : tuple of float
        Shares of the first fit in the mean of both predictions.
    """

    second: SecondFit = field(kw_only=True)
    shares: tuple[float, ...] = field(kw_only=True)

    @one_thread
    def run(self) -> dict[str, Array]:
        """Every quantity of `shapes`, arrays over the one regularisation.

        All NaN, and infinitely far from an optimum, if an objective has no minimum.
        """
        start = time.perf_counter()
        found = {n: np.full((1, *s), np.nan) for n, s in self.shapes.items()}
        found["optimality"][:] = np.inf
        pair = self._pair()
        if len(pair) == 2:
            own = [
                of_fits(m.world, m.train, m.fits, lams)
                for m, lams in zip(pair, (self.lams, (self.second.lam,)), strict=True)
            ]
            for name in self._of_fits:
                nothing = np.full(1, np.nan)
                found[name] = np.stack([columns.get(name, nothing) for columns in own], axis=1)
            found["optimality"] = np.max([columns["optimality"] for columns in own], axis=0)
            found.update(self._overlaps(pair))
            found.update(self._on_fresh(pair))
        found["seconds"][:] = time.perf_counter() - start
        return found

    def _pair(self) -> list[Member]:
        """Both fits, or fewer if an objective has no minimum."""
        second, n = self.second, self.sizes.n
        world = World.draw(self.model, self.sizes, self.rng(0), equivalent=self.equivalent)
        latent, members = world.latent(n, self.rng(1)), []
        for k, trial in enumerate((self, self._other)):
            model = trial.model
            if k:
                drawn = world.features
                if second.new_features or not model.features.random:
                    drawn = model.features.redrawn(drawn, second.p, self.rng(FEATURES, k))
                world = replace(world, model=model, sizes=trial.sizes, features=drawn)
                if second.new_samples:
                    latent = world.latent(n, self.rng(SAMPLES, k))
            own, train = world.trained_on(latent, self.rng(FEATURES, k, 0))
            rows = second.resampling.rows(n, k, self.rng(ROWS, k))
            if not has_minimum(model.loss, model.task, train.y[rows], intercept=model.intercept):
                break
            key = (k,) if k and second.new_samples else ()
            fits = trial.fits_of(train, self.rng(WEIGHTS, *key), rows)
            members.append(Member(own, train, fits))
        return members

    @property
    def _other(self) -> Trial:
        """The trial of the second fit alone."""
        sizes = Sizes(self.sizes.n, self.second.p, self.sizes.d)
        given = (self.seed, self.n_test, self.equivalent)
        return Trial(self.second.model, sizes, (self.second.lam,), *given)

    def _overlaps(self, pair: list[Member]) -> dict[str, Array]:
        """Covariance and correlation of both scores, by their weights."""
        first, second = (member.world.features for member in pair)
        w, v = (member.fits[0].w for member in pair)
        if first is second:
            square = first.overlaps
        else:
            square, w, v = first.inputs.overlaps, first.latent_weights(w), second.latent_weights(v)
        overlap = 0.5 * (square(w + v)["Q"] - square(w)["Q"] - square(v)["Q"])
        Q = [m.world.features.overlaps(m.fits[0].w)["Q"] for m in pair]
        with np.errstate(invalid="ignore"):  # of scores that do not vary
            correlation = overlap / np.sqrt(np.prod(Q))
        return {"overlap": np.array([overlap]), "score_correlation": np.array([correlation])}

    def _on_fresh(self, pair: list[Member]) -> dict[str, Array]:
        """Errors of the mean on fresh samples, and how differently both fits predict there."""
        rng, rows, world = self.rng(2), 0, pair[0].world
        sums = {name: np.zeros((2, 1, len(self.shares))) for name in ERRORS}
        apart = dict.fromkeys(differences(self.model), 0.0)
        for size in world.block_sizes(self.n_test):
            fresh = world.latent(size, rng)
            scores = self._scores(pair, fresh, rng)
            for i, share in enumerate(self.shares):
                mean = share * scores[0] + (1.0 - share) * scores[1]
                for name, y in zip(ERRORS, (fresh.y, fresh.clean), strict=True):
                    each = cost(self.model, mean, y)
                    sums[name][:, 0, i] += each.sum(), (each * each).sum()
            found = mean_distances(self.model.task, scores[..., None])
            apart = {name: apart[name] + float(found[name].sum()) for name in apart}
            rows += size
        return {**means(sums, rows), **{n: np.array([t / rows]) for n, t in apart.items()}}

    def _scores(self, pair: list[Member], fresh: Sample, rng: np.random.Generator) -> Array:
        """The scores of both fits (2, rows)."""
        drawn, scores = None, []
        for member in pair:
            if member.world.features is not drawn:
                drawn = member.world.features
                X = drawn.features(fresh.X, rng, equivalent=self.equivalent)
            scores.append(member.scores(X)[:, 0])
        return np.array(scores)

    @property
    def _of_fits(self) -> tuple[str, ...]:
        """Names of what is measured of either fit."""
        of_pairs = {*ERRORS, *(f"{name}_test_stderr" for name in ERRORS), "optimality", "seconds"}
        both = (*measured(self.model), *measured(self.second.model))
        return tuple(dict.fromkeys(name for name in both if name not in of_pairs))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        errors = [name for e in ERRORS for name in (e, f"{e}_test_stderr")]
        numbers = (
            "overlap",
            "score_correlation",
            *differences(self.model),
            "optimality",
            "seconds",
        )
        return {
            **dict.fromkeys(self._of_fits, (2,)),
            **dict.fromkeys(errors, (len(self.shares),)),
            **dict.fromkeys((*numbers, *differences(self.model)), ()),
        }

    @property
    def further_contents(self) -> dict[str, Any]:
        second = self.second
        drawn = {"features": second.new_features, "samples": second.new_samples}
        whole = second.resampling == Whole()
        return {
            "second": identity(second.model),
            "regularisation_2": second.lam,
            "p_2": second.p,
            "shares": list(self.shares),
            "independent": [name for name, independent in drawn.items() if independent],
            **({} if whole else {"resampling": repr(second.resampling)}),
        }

    @property
    def seconds(self) -> float:
        return super().seconds + self._other.seconds

    @property
    def bytes(self) -> float:
        return super().bytes + self._other.bytes
