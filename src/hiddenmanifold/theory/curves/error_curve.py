"""The generalisation error as samples or features are added, at a fixed λ or at the best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.best_lambda.search import Search, best_regularisation
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import asymptotics

ERROR = "generalisation_error"
END = np.log(HUGE)
"""The t that represents infinitely many samples or features."""


@dataclass(frozen=True)
class ErrorCurve:
    """The error along t = log(n/p) with d/p `held` fixed, or along t = log(p/n) with n/d.

    It is the error at λ, or if there are `bounds`, at the best λ between them.
    """

    model: Model
    along: Literal["n", "p"]
    held: Array
    lam: Array
    workers: Workers
    bounds: tuple[float, float] | None = None

    def __getitem__(self, some: Integers | Booleans) -> ErrorCurve:
        return replace(self, held=self.held[some], lam=self.lam[some])

    def __len__(self) -> int:
        return len(self.held)

    def points(self, point: Integers, t: Array) -> Points:
        """The points as n/p, d/p and λ."""
        alpha = np.exp(t if self.along == "n" else -t)
        gamma = self.held[point] if self.along == "n" else alpha / self.held[point]
        return Points.of(alpha, gamma, self.lam[point], t >= END)

    def __call__(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """The error and its slope by t, which an optimal λ does not change."""
        found = self._predicted(point, t, (self.along,))
        return found[ERROR], found[f"{ERROR}_by_log_{self.along}"]

    def error(self, point: Integers, t: Array) -> Array:
        """The error alone, which may be known where its slope is not."""
        found: Array = self._predicted(point, t, ())[ERROR] if point.size else np.empty(0)
        return found

    def scan(self, t: Array) -> Samples:
        """Samples at each of t (values, points), where it is finite."""
        value, point = np.nonzero(np.isfinite(t))
        return Samples.of(self, point, t[value, point])

    def _predicted(self, point: Integers, t: Array, slopes: tuple[str, ...]) -> Columns:
        points = self.points(point, t)
        if self.bounds is None:
            return asymptotics(self.model, points, self.workers, slopes=slopes)
        search = Search(self.model, points, ERROR, self.bounds, slopes)
        return best_regularisation(search, self.workers)
