r"""Labels by their probability or density at points: the table that sums over labels run through.

A discrete label has probabilities :math:`P(y_j|\nu)`, a continuous one a density
:math:`p(y_j|\nu)` at the nodes of a quadrature over y. Both are point masses to the theory, as many
as a level of quadrature asks for.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.teachers.noises import NormalMixture
from hiddenmanifold.teachers.real import FIELD_RULES, RealTeacher

NORM = 1e-11
"""Largest deviation of the sum of all probabilities from one."""
MOST_HALVINGS = 7
"""How often panels of the field are halved on every level, at most, for the sake of a table."""
SINGLE = 32
"""Counts below this are summed one by one."""
OCTAVES = 48
"""Number of octaves of counts after which a rule is refused."""
TAIL = 1e-14
"""Part of the mean square of a count that may lie beyond the last octave."""
COUNTS_OF_OCTAVE = (10, 12, 16, 22, 32, 48, 64, 96, 128)
"""Nodes that stand for the counts of an octave, on each level of quadrature."""


class PointTeacher(RealTeacher):
    """Base of the rules that give the probability, or the density, of each label."""

    def points(self, level: int) -> tuple[Array, Array]:
        """Labels (J,) and weights, with which sums over labels are computed on a level."""
        raise NotImplementedError

    def law(self, y: Array, nu: Array) -> Array:
        """Probability or density of labels given fields, arrays that broadcast."""
        raise NotImplementedError

    def components(self, nu: Array, level: int) -> NormalMixture:
        y, weights = self.points(level)
        law = weights[:, None] * self.law(y[:, None], nu)
        return NormalMixture(law, np.broadcast_to(y[:, None], law.shape), np.zeros(law.shape))

    def table(self, level: int, extra: int = 0) -> tuple[Array, Array, Array]:
        """Labels (J,), fields (N,) and their joint probabilities (J, N) on a level."""
        if (level, extra) not in self._tables:
            y, weights = self.points(level)
            nu, w = self.field(level, extra)
            self._tables[level, extra] = y, nu, weights[:, None] * self.law(y[:, None], nu) * w
        return self._tables[level, extra]

    @cached_property
    def _tables(self) -> dict[tuple[int, int], tuple[Array, Array, Array]]:
        return {}

    @cached_property
    def halvings(self) -> int:  # type: ignore[override]
        """So often are panels halved that a table has the moments of the labels.

        Raises
        ------
        InvalidArgumentError
            If it never has, because probabilities do not sum to one, or jump.
        """
        moments = self.moments
        sizes = np.array([1.0, moments.second, np.sqrt(self.rho * moments.second)])
        exact = np.array([1.0, moments.second, self.rho * moments.slope])
        y, weights = self.points(2)
        order, base = FIELD_RULES[2]
        for halvings in range(MOST_HALVINGS + 1):
            nu, w = self.panels(order, base + halvings)
            marginal = weights * (self.law(y[:, None], nu) @ w)
            along = weights * (self.law(y[:, None], nu) @ (w * nu))
            found = np.array([marginal.sum(), marginal @ y**2, along @ y])
            if (np.abs(found - exact) <= NORM * sizes).all():
                return halvings
        raise InvalidArgumentError.because(
            "teacher",
            f"{self} has probabilities that sum to {found[0]:.12g}, with the mean square "
            f"{found[1]:.12g} of a label, where its mean and variance give {exact[1]:.12g}",
            "probabilities must sum to one; declare jumps and corners by kinks=(...), and choose a "
            "rule whose labels vary less if they reach over many orders of magnitude",
        )

    @property
    def typical_labels(self) -> Array:
        y, _ = self.points(0)
        return y if len(y) <= 64 else y[np.unique(np.linspace(0, len(y) - 1, 64).astype(int))]


@lru_cache(maxsize=128)
def counts_rule(count: int, nodes: int) -> tuple[Array, Array]:
    """Gauss's rule of the sum over 0, 1, …, count - 1: nodes and weights."""
    if nodes >= count:
        return np.arange(count, dtype=float), np.ones(count)
    from scipy import linalg  # slow to import, and few models need it

    k = np.arange(1.0, nodes)
    beside = np.sqrt(k**2 * (count**2 - k**2) / (4.0 * (4.0 * k**2 - 1.0)))  # discrete Chebyshev
    x, vectors = linalg.eigh_tridiagonal(np.full(nodes, 0.5 * (count - 1)), beside)
    return x, count * vectors[0] ** 2


class CountTeacher(PointTeacher):
    """Base of the rules whose labels are 0, 1, 2, … without bound.

    Counts of an octave beyond the first are summed by Gauss's rule, so that a table of some hundred
    labels reaches millions. The law is defined between whole numbers, too.
    """

    discrete: ClassVar[bool] = True

    def points(self, level: int) -> tuple[Array, Array]:
        parts = [counts_rule(SINGLE, SINGLE)]
        for octave in range(self._octaves):
            first = SINGLE * 2**octave
            y, weights = counts_rule(first, COUNTS_OF_OCTAVE[level])
            parts.append((first + y, weights))
        y, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        return y, weights

    @cached_property
    def _octaves(self) -> int:
        """The number of octaves beyond which counts do not matter."""
        nu, w = self.panels(20, 2)
        total = self.moments.second
        for octave in range(OCTAVES):
            first = SINGLE * 2**octave
            y, weights = counts_rule(first, 24)
            size = weights * (1.0 + (first + y) ** 2)
            share = float(size @ (self.law((first + y)[:, None], nu) @ w))
            if share <= TAIL * total and (self.label_mean(nu) @ w) < first:
                return octave
        raise InvalidArgumentError.because(
            "teacher", f"{self} has counts without end", "choose a rule that grows more slowly"
        )
