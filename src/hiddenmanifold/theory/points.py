"""The points at which a model is evaluated: ratios of its sizes, regularisation, and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array, Booleans, Rows
from hiddenmanifold.errors import InvalidArgumentError

# exponents of (alpha, gamma) in each ratio: n/p = alpha, d/p = gamma
RATIOS: Mapping[str, tuple[int, int]] = {
    "n_over_d": (1, -1),
    "d_over_n": (-1, 1),
    "p_over_n": (-1, 0),
    "n_over_p": (1, 0),
    "p_over_d": (0, -1),
    "d_over_p": (0, 1),
}
HUGE = 1e40
"""Ratio or regularisation that represents infinity."""


class Limit(IntFlag):
    """Which parameters of a point are taken to a limit, where their numbers are placeholders."""

    NONE = 0
    RATIO = 1
    """A ratio is infinite."""
    VANISHING = 2
    """λ → 0⁺."""
    UNBOUNDED = 4
    """λ → ∞."""
    FITTED = 8
    """With λ → 0⁺, and every training sample reaches the least value of its loss."""


@dataclass(frozen=True)
class Points(Rows):
    """A batch of points, arrays of one length; `limit` has a `Limit` of each."""

    alpha: Array
    gamma: Array
    lam: Array
    limit: NDArray[np.int8]

    @classmethod
    def of(
        cls, alpha: Array, gamma: Array, lam: Array, infinite: Booleans | bool = False
    ) -> Points:
        """Points at n/p, d/p and any λ in [0, inf]; `infinite` marks infinite ratios."""
        limit = (
            Limit.RATIO * np.asarray(infinite)
            + Limit.VANISHING * (lam == 0)
            + Limit.UNBOUNDED * np.isinf(lam)
        )
        return cls(alpha, gamma, lam, np.broadcast_to(limit, lam.shape).astype(np.int8))

    def __len__(self) -> int:
        return len(self.lam)

    def has(self, limit: Limit) -> Booleans:
        """Where any of some limits is taken."""
        taken: Booleans = (self.limit & np.int8(limit)) != 0
        return taken

    def at(self, lam: Array) -> Points:
        """The same ratios with other regularisations."""
        return Points.of(self.alpha, self.gamma, lam, self.has(Limit.RATIO))

    def standing_in(self, lam: Array | float, limit: Limit = Limit.NONE) -> Points:
        """The same points with numbers in place of λ, and more known of their limit."""
        lam = np.broadcast_to(lam, self.lam.shape).astype(float)
        return replace(self, lam=lam, limit=self.limit | np.int8(limit))


def exponents(
    names: tuple[str, ...], fixed_ratio: float | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Exponents with which the given ratios (then a fixed d/p) multiply to alpha and to gamma.

    Raises
    ------
    InvalidArgumentError
        If the ratios do not determine n/p and d/p, or determine them twice.
    """
    all_names = names
    remedy = "give exactly two independent ratios among " + ", ".join(RATIOS)
    if fixed_ratio is not None:
        all_names = (*names, "d_over_p")
        fixed = f"the features fix d/p = {fixed_ratio:.6g} themselves"
        remedy = f"give exactly one ratio other than d/p: {fixed}"
    if len(all_names) != 2:
        raise InvalidArgumentError.because("ratios", given_ratios(names), remedy)
    (a, b), (c, d) = (RATIOS[name] for name in all_names)
    determinant = a * d - b * c
    if determinant == 0:
        problem = f"{' and '.join(all_names)} say the same thing twice"
        raise InvalidArgumentError.because("ratios", problem, remedy)
    return (d // determinant, -b // determinant), (-c // determinant, a // determinant)


def given_ratios(names: Iterable[str]) -> str:
    """The problem with these ratios, for an error message: some were given, or none."""
    text = ", ".join(names)
    return f"{text} were given" if text else "are missing"
