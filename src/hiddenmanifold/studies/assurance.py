"""How many samples let a target be met with a given probability, from simulated studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.studies.targets import Target, met

Fits = Callable[[list[int], int], tuple[dict[str, Array], Booleans]]
"""From sizes and a number of draws to quantities of single fits, and whether labels separated."""
FIRST = np.array([0.7, 1.0, 1.4, 2.0, 2.8])
"""Sizes of a first look, in units of those of a typical study."""
AROUND = np.array([0.85, 1.0, 1.18])
"""Sizes of the second look, around what the first found."""
LOOKS = 3
"""How often that look is taken, if the size lies beyond those that were simulated."""
LARGEST = 64.0
"""How many times the size of a typical study is tried, at most."""


@dataclass(frozen=True)
class Assured:
    """The size at which a target is met with the probability asked for.

    Attributes
    ----------
    n : int
        Number of samples.
    stderr : float
        Its standard error, due to the finite number of simulated studies.
    sizes : tuple of int
        The sizes that were simulated last.
    met : tuple of float
        The share of studies that met the target at each of them.
    mean, deviation : float
        Of the quantity over studies of the middle one of these sizes.
    separable : float
        Share of the studies there whose labels were separable: they miss every target.
    draws : int
        Number of studies of each size.
    """

    n: int
    stderr: float
    sizes: tuple[int, ...]
    met: tuple[float, ...]
    mean: float
    deviation: float
    separable: float
    draws: int


def assured_size(
    fits: Fits, targets: Mapping[str, Target], typical: int, assurance: float, draws: int
) -> dict[str, Assured]:
    """The size for each target: a coarse look at some sizes, then many draws around the size.

    Raises
    ------
    InvalidArgumentError
        If many times the size of a typical study is not enough.
    """
    first = np.round(typical * FIRST).astype(int)
    found, _ = fits(first.tolist(), max(50, draws // 5))
    return {
        name: _Search(fits, name, goal, assurance, draws).run(first, met(name, goal, found[name]))
        for name, goal in targets.items()
    }


@dataclass(frozen=True)
class _Search:
    """The search for the size that one target needs."""

    fits: Fits
    name: str
    goal: Target
    assurance: float
    draws: int

    def run(self, sizes: Integers, good: Booleans) -> Assured:
        """The size, given which of a few draws at some sizes met the target."""
        largest = LARGEST * sizes[0]
        while (good.mean(1) < self.assurance).all():
            if sizes[-1] > largest:
                raise InvalidArgumentError.because(
                    "assurance",
                    f"= {self.assurance:g} for target[{self.name!r}] is not reached with "
                    f"{sizes[-1]} samples",
                    "choose a smaller assurance or a wider target",
                )
            sizes = np.round(2.0 * sizes).astype(int)
            good = met(self.name, self.goal, self.fits(sizes.tolist(), good.shape[1])[0][self.name])
        centre, _ = _crossing(sizes, good, self.assurance)
        for _ in range(LOOKS):
            sizes = np.unique(np.maximum(np.round(centre * AROUND).astype(int), 2))
            found, separable = self.fits(sizes.tolist(), self.draws)
            good = met(self.name, self.goal, found[self.name])
            centre, stderr = _crossing(sizes, good, self.assurance)
            if sizes[0] <= centre <= sizes[-1]:
                break
        middle = len(sizes) // 2
        values = found[self.name][middle]
        values = values[np.isfinite(values)]
        return Assured(
            n=int(np.ceil(centre)),
            stderr=stderr,
            sizes=tuple(sizes.tolist()),
            met=tuple(good.mean(1).tolist()),
            mean=float(values.mean()),
            deviation=float(values.std(ddof=1)),
            separable=float(separable[middle].mean()),
            draws=self.draws,
        )


def _crossing(sizes: Integers, good: Booleans, assurance: float) -> tuple[float, float]:
    """Where the probability of success, a probit of log n, is the assurance; with standard error.

    The line is fitted by weighted least squares to the probits of shares, which are kept away from
    0 and 1 by half a study.
    """
    draws = good.shape[1]
    share = (good.sum(1) + 0.5) / (draws + 1.0)
    z, density = scipy.special.ndtri(share), np.exp(-0.5 * scipy.special.ndtri(share) ** 2)
    weight = draws * density**2 / (2.0 * np.pi * share * (1.0 - share))
    x = np.log(sizes)
    mean = weight @ x / weight.sum()
    slope = weight @ ((x - mean) * z) / (weight @ (x - mean) ** 2)
    slope = max(slope, 0.1)  # more samples help, whatever few draws say
    level = weight @ z / weight.sum()
    at = mean + (scipy.special.ndtri(assurance) - level) / slope
    at = float(np.clip(at, x[0] - 0.5, x[-1] + 0.5))
    variance = 1.0 / weight.sum() + (at - mean) ** 2 / (weight @ (x - mean) ** 2)
    return float(np.exp(at)), float(np.exp(at) * np.sqrt(variance) / slope)
