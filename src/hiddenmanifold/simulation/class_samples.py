"""Samples of several classes at finite size, and the means and covariances of fitted scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.features import Drawn, White
from hiddenmanifold.model import Model
from hiddenmanifold.simulation.samples import BLOCK, Sizes
from hiddenmanifold.teachers import Classes, FieldClasses, several


@dataclass(frozen=True)
class ClassSample:
    """Features X (rows, p), the numbers y of the classes, and those that have no noise."""

    X: Array
    y: Integers
    clean: Integers


@dataclass(frozen=True)
class ClassWorld:
    """What a seed fixes before any sample is drawn: the features and the class means.

    The means are `coordinates` (K, rank) times orthonormal `directions` (rank, d). Fields, where
    labels depend on these, are the latent data along the directions.
    """

    model: Model
    sizes: Sizes
    features: Drawn
    coordinates: Array
    directions: Array
    equivalent: bool

    @classmethod
    def draw(
        cls, model: Model, sizes: Sizes, rng: np.random.Generator, *, equivalent: bool = False
    ) -> ClassWorld:
        """Draw features, and means of the Gram matrix of the teacher or weights of its fields."""
        teacher = model.teacher
        assert isinstance(teacher, Classes | FieldClasses)
        drawn = model.features.draw(sizes.d, sizes.p, 1.0, rng)
        coordinates = teacher.coordinates
        if isinstance(teacher, Classes) and teacher.means is not None:  # along the axes
            return cls(model, sizes, drawn, coordinates, np.empty((0, 0)), equivalent)
        normal = rng.standard_normal((sizes.d, coordinates.shape[1]))
        directions = np.linalg.qr(normal)[0].T
        return cls(model, sizes, drawn, coordinates, directions, equivalent)

    def training(self, rows: int, rng: np.random.Generator) -> tuple[ClassWorld, ClassSample]:
        """Draw training samples, and return the world with features that may depend on them."""
        c, y, clean = self._latent(rows, rng)
        features, X = self.features.trained_on(c, rng, equivalent=self.equivalent)
        return replace(self, features=features), ClassSample(X, y, clean)

    def sample(self, rows: int, rng: np.random.Generator) -> ClassSample:
        """Draw fresh samples."""
        c, y, clean = self._latent(rows, rng)
        return ClassSample(self.features.features(c, rng, equivalent=self.equivalent), y, clean)

    def _latent(self, rows: int, rng: np.random.Generator) -> tuple[Array, Integers, Integers]:
        """Latent data, classes, and classes without noise."""
        if isinstance(self.model.teacher, FieldClasses):
            c, _ = self.features.inputs.sample(rows, rng)
            nu = np.sqrt(self.model.teacher.rho) * (c @ self.directions.T)
            return c, self.model.teacher.classes_of(nu, rng), nu.argmax(1)
        y = several(self.model.teacher).sample_classes(rows, rng)
        c, _ = self.features.inputs.sample(rows, rng)
        if not self.directions.size:
            return c + self.coordinates[y], y, y
        return c + self.coordinates[y] @ self.directions, y, y

    def blocks(self, rows: int, rng: np.random.Generator) -> Iterator[ClassSample]:
        """Draw many fresh samples in blocks of bounded memory."""
        n, p, d = self.sizes.n, self.sizes.p, self.sizes.d
        most = max(1, BLOCK // max(self.model.features.columns(n, p), d))
        for start in range(0, rows, most):
            yield self.sample(min(most, rows - start), rng)

    def covariance(self, W: Array) -> Array:
        """Covariance (K, K) of the scores of weights W within classes, by polarisation."""
        K = W.shape[1]
        variance = [self.features.overlaps(w)["Q"] for w in W.T]
        Q = np.diag(variance)
        for k in range(K):
            for j in range(k):
                both = self.features.overlaps(W[:, k] + W[:, j])["Q"]
                Q[k, j] = Q[j, k] = 0.5 * (both - variance[k] - variance[j])
        if isinstance(self.model.teacher, FieldClasses):  # of which it is that of all samples
            shift = self.shift(W)
            Q -= shift.T @ shift / K
        return Q

    def shift(self, W: Array) -> Array:
        """Means (class, score) of the scores of weights W, without their intercepts."""
        if not self.directions.size:
            direct: Array = self.coordinates @ W / np.sqrt(len(W))
            return direct
        size = np.sqrt(self.sizes.d)
        along = [
            replace(self.features, inputs=White(size * direction, 1.0))
            for direction in self.directions
        ]
        M = np.array([[drawn.overlaps(w)["M"] for w in W.T] for drawn in along])
        found: Array = self.coordinates @ M
        return found
