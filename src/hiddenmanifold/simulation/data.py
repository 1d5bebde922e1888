"""Data at finite size (Gerace et al. 2020, algorithm 1), and their Gaussian-equivalent twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.matrices import LinearMap

Array = NDArray[np.float64]

BLOCK = 2**22
"""Numbers in a block of fresh test samples."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of samples, features and latent dimensions."""

    n: int
    p: int
    d: int

    @classmethod
    def nearest(cls, n_over_p: float, d_over_p: float, d: int) -> Sizes:
        """Whole numbers nearest to given ratios, for a given d."""
        with np.errstate(all="ignore"):
            n, p = n_over_p * d / np.float64(d_over_p), d / np.float64(d_over_p)
        if not (np.isfinite(n) and np.isfinite(p)):
            given = f"that give n/p = {n_over_p:g}, d/p = {d_over_p:g}"
            raise InvalidArgumentError("ratios", given, "less extreme")
        sizes = cls(round(n), round(p), d)
        for name, value in (("n", sizes.n), ("p", sizes.p)):
            if value < 1:
                raise InvalidArgumentError(
                    "d", d, f"larger: at these ratios {name} rounds to {value}"
                )
        return sizes


@dataclass(frozen=True)
class Sample:
    """Features X (rows, p), labels y and noiseless labels."""

    X: Array
    y: Array
    clean: Array


@dataclass(frozen=True)
class World:
    """What a seed fixes before any sample is drawn: the matrix F and the teacher's weights."""

    model: Model
    sizes: Sizes
    F: LinearMap
    theta: Array
    equivalent: bool

    @classmethod
    def draw(
        cls, model: Model, sizes: Sizes, rng: np.random.Generator, *, equivalent: bool = False
    ) -> World:
        """Draw F and weights θ, the latter of squared norm ρd exactly."""
        F = model.projection.sample(sizes.d, sizes.p, rng)
        theta = rng.standard_normal(sizes.d)
        theta *= np.sqrt(model.teacher.rho * sizes.d) / np.linalg.norm(theta)
        return cls(model, sizes, F, theta, equivalent)

    def sample(self, rows: int, rng: np.random.Generator) -> Sample:
        """Draw fresh samples: x = σ(Fᵀc/√d), or κ0 + κ1 Fᵀc/√d + κ⋆ z for equivalent data."""
        d = self.sizes.d
        c = rng.standard_normal((rows, d))
        u = self.F.left(c) / np.sqrt(d)
        if self.equivalent:
            kappa_0, kappa_1, kappa_star = self.model.activation.kappas
            X = kappa_0 + kappa_1 * u + kappa_star * rng.standard_normal(u.shape)
        else:
            X = self.model.activation(u)
        nu = c @ self.theta / np.sqrt(d)
        teacher = self.model.teacher
        return Sample(X, teacher.sample(nu, rng), teacher.noiseless(nu))

    def blocks(self, rows: int, rng: np.random.Generator) -> Iterator[Sample]:
        """Draw many fresh samples in blocks of bounded memory."""
        most = max(1, BLOCK // max(self.sizes.p, self.sizes.d))
        for start in range(0, rows, most):
            yield self.sample(min(most, rows - start), rng)
