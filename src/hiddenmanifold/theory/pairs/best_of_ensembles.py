r"""The regularisation of least error of an ensemble, which differs from that of one member.

The error is computed at some λ from where it is asymptotic at one end to where it is at the other.
The interval around the least is then divided again and again, until its width is that at which the
error no longer changes. The limits :math:`0^+` and :math:`\infty` are candidates as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.theory.pairs.mean_and_vote import Ensemble
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.scores.distribution import Observed

BOTTOM, TOP = 1e-8, 1e4
"""Least and largest λ of the first nodes, in units of the variance of features and max(1, n/p)."""
NODES, INSIDE = 41, 5
"""First nodes, 0.3 decades apart at n < p, and further ones between the neighbours of the best."""
ROUNDS = 9
"""How often an interval is divided: it is then 1e-4 decades wide, and errors at a minimum are exact
to 1e-8."""
TIE = 1e-10
"""Relative difference of two errors that does not count as evidence against a limit."""


@dataclass(frozen=True)
class EnsembleSearch:
    """The search at some points, for each number of members by itself.

    `target` names the error to make least, or one of the `observables`.
    """

    model: Model
    points: Points
    ensemble: Ensemble
    target: str
    bounds: tuple[float, float]
    copies: Copies = ONCE
    observables: Mapping[str, Observed] = field(default_factory=dict)

    def best(self, workers: Workers) -> Columns:
        """The `optimal_regularisation`, and all that is predicted there: (points, members)."""
        members, points = len(self.ensemble.members), len(self.points)
        row = np.repeat(np.arange(points), members)
        member = np.tile(np.arange(members), points)
        t = self._first_nodes()[row]
        value = self._values(row, member, t, workers)
        for _ in range(ROUNDS):
            t, value = self._divided(row, member, t, value, workers)
        best = np.nanargmin(np.where(np.isnan(value), np.inf, value), axis=1)
        lam = np.exp(np.take_along_axis(t, best[:, None], 1)[:, 0])
        lam, least = np.clip(lam, *self.bounds), np.nanmin(value, axis=1)
        for end, limit in zip(self.bounds, (0.0, np.inf), strict=True):
            if end == limit:
                t_end = np.full((len(row), 1), np.log(limit) if limit else -np.inf)
                found = self._values(row, member, t_end, workers)[:, 0]
                better = found <= least * (1.0 + TIE)
                lam, least = np.where(better, limit, lam), np.fmin(least, found)
        columns = self._predicted(row, lam, workers)
        chosen = {
            name: values[np.arange(len(row)), member] if values.ndim > 1 else values
            for name, values in columns.items()
        }
        chosen["optimal_regularisation"] = lam
        return {name: values.reshape(points, members) for name, values in chosen.items()}

    def _first_nodes(self) -> Array:
        """Logarithms of λ at each point (points, nodes)."""
        unit = self.model.features.variance
        low = np.full(len(self.points), max(self.bounds[0], BOTTOM * unit))
        high = np.minimum(self.bounds[1], TOP * unit * np.maximum(1.0, self.points.alpha))
        high = np.maximum(np.minimum(high, HUGE), low)
        nodes: Array = np.linspace(np.log(low), np.log(high), NODES, axis=1)
        return nodes

    def _divided(
        self, row: Integers, member: Integers, t: Array, value: Array, workers: Workers
    ) -> tuple[Array, Array]:
        """Nodes between the neighbours of the best one, and their values."""
        best = np.argmin(np.where(np.isnan(value), np.inf, value), axis=1)
        ends = np.clip([best - 1, best + 1], 0, t.shape[1] - 1)
        low, high = (np.take_along_axis(t, end[:, None], 1)[:, 0] for end in ends)
        finer = np.linspace(low, high, INSIDE, axis=1)
        return finer, self._values(row, member, finer, workers)

    def _values(self, row: Integers, member: Integers, t: Array, workers: Workers) -> Array:
        """The target at nodes (rows, nodes), each row with its own number of members."""
        flat = np.repeat(row, t.shape[1])
        found = self._predicted(flat, np.exp(t).ravel(), workers)[self.target]
        values: Array = found[np.arange(len(flat)), np.repeat(member, t.shape[1])]
        return values.reshape(t.shape)

    def _predicted(self, row: Integers, lam: Array, workers: Workers) -> Columns:
        return asymptotics(
            self.model,
            self.points[row].at(lam),
            workers,
            observables=self.observables,
            derived=self.ensemble,
            copies=self.copies,
        )
