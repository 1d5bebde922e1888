"""Data at finite size (Gerace et al. 2020, algorithm 1), and their Gaussian-equivalent twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features import Drawn
from hiddenmanifold.model import Model

BLOCK = 2**22
"""Numbers in a block of fresh test samples."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of samples, features and latent dimensions."""

    n: int
    p: int
    d: int

    def __str__(self) -> str:
        return f"n = {self.n}, p = {self.p}, d = {self.d}"

    @classmethod
    def nearest(cls, n_over_p: float, d_over_p: float, d: int) -> Sizes:
        """Whole numbers nearest to given ratios, for a given d."""
        with np.errstate(all="ignore"):
            n, p = n_over_p * d / np.float64(d_over_p), d / np.float64(d_over_p)
        if not (np.isfinite(n) and np.isfinite(p)):
            raise InvalidArgumentError.because(
                "ratios", f"give n/p = {n_over_p:g}, d/p = {d_over_p:g}", "use less extreme values"
            )
        sizes = cls(round(n), round(p), d)
        for name, value in (("n", sizes.n), ("p", sizes.p)):
            if value < 1:
                raise InvalidArgumentError.because(
                    "d", f"= {d} is too small", f"at these ratios {name} rounds to {value}"
                )
        return sizes


@dataclass(frozen=True)
class Sample:
    """Features X (rows, p), labels y, the labels against which errors are clean, and the fields.

    Clean labels are noiseless ones where errors are counted, otherwise mean labels.
    """

    X: Array
    y: Array
    clean: Array
    nu: Array


@dataclass(frozen=True)
class World:
    """What a seed fixes before any sample is drawn: the features and the teacher's weights."""

    model: Model
    sizes: Sizes
    features: Drawn
    equivalent: bool

    @classmethod
    def draw(
        cls, model: Model, sizes: Sizes, rng: np.random.Generator, *, equivalent: bool = False
    ) -> World:
        """Draw features and a teacher."""
        drawn = model.features.draw(sizes.d, sizes.p, model.teacher.rho, rng)
        return cls(model, sizes, drawn, equivalent)

    def training(self, rows: int, rng: np.random.Generator) -> tuple[World, Sample]:
        """Draw training samples, and return the world with features that may depend on them."""
        y = self._classes(rows, rng)
        features, X, nu = self.features.training(rows, rng, equivalent=self.equivalent, displaced=y)
        return replace(self, features=features), self._labelled(X, nu, y, rng)

    def sample(self, rows: int, rng: np.random.Generator) -> Sample:
        """Draw fresh samples."""
        y = self._classes(rows, rng)
        X, nu = self.features.sample(rows, rng, equivalent=self.equivalent, displaced=y)
        return self._labelled(X, nu, y, rng)

    def latent(self, rows: int, rng: np.random.Generator) -> Sample:
        """Draw samples with latent data in place of features, for several worlds to share."""
        y = self._classes(rows, rng)
        return self._labelled(*self.features.data(rows, rng, y), y, rng)

    def redrawn(self, rng: np.random.Generator) -> World:
        """A world of other features of the same data, with the same teacher."""
        drawn = self.model.features.redrawn(self.features, self.sizes.p, rng)
        return replace(self, features=drawn)

    def trained_on(self, latent: Sample, rng: np.random.Generator) -> tuple[World, Sample]:
        """Training samples with their features, and the world that may depend on them."""
        drawn, X = self.features.trained_on(latent.X, rng, equivalent=self.equivalent)
        return replace(self, features=drawn), replace(latent, X=X)

    def _classes(self, rows: int, rng: np.random.Generator) -> Array | None:
        """Labels that displace their samples, if the teacher draws such."""
        teacher = self.model.teacher
        return teacher.classes(rows, rng) if teacher.displaces else None

    def _labelled(
        self, X: Array, nu: Array, classes: Array | None, rng: np.random.Generator
    ) -> Sample:
        """Samples with their classes, or with labels drawn for their fields."""
        if classes is not None:
            return Sample(X, classes, classes, nu)
        teacher = self.model.teacher
        clean = teacher.noiseless if self.model.counts_errors else teacher.label_mean
        return Sample(X, teacher.sample(nu, rng), clean(nu), nu)

    def blocks(self, rows: int, rng: np.random.Generator) -> Iterator[Sample]:
        """Draw many fresh samples in blocks of bounded memory."""
        for size in self.block_sizes(rows):
            yield self.sample(size, rng)

    def block_sizes(self, rows: int) -> Iterator[int]:
        """Numbers of rows of such blocks."""
        n, p, d = self.sizes.n, self.sizes.p, self.sizes.d
        most = max(1, BLOCK // max(self.model.features.columns(n, p), d))
        for start in range(0, rows, most):
            yield min(most, rows - start)
