"""How many samples let a target be met with a given probability, from simulated studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.studies.performance import Simulated
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
        Of the quantity over studies of n samples, between those of these sizes.
    separable : float
        Share of the studies there whose labels were separable: they miss every target.
    draws : int
        Number of studies of each size.
    enclosed : bool
        Whether n lies among these sizes. If not, it is extrapolated from them.
    """

    n: int
    stderr: float
    sizes: tuple[int, ...]
    met: tuple[float, ...]
    mean: float
    deviation: float
    separable: float
    draws: int
    enclosed: bool = True


def assured_size(
    fits: Fits,
    targets: Mapping[str, Target],
    typical: Mapping[str, int],
    assurance: float,
    draws: int,
) -> dict[str, Assured]:
    """The size for each target: a coarse look around a typical one, then many draws around it.

    Raises
    ------
    InvalidArgumentError
        If many times the size of a typical study is not enough.
    """
    return {
        name: _Search(fits, name, goal, assurance, draws).run(typical[name])
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

    def run(self, typical: int) -> Assured:
        """The size, given that of a typical study."""
        centre = self.first_look(typical)
        for _ in range(LOOKS):
            sizes = np.unique(np.maximum(np.round(centre * AROUND).astype(int), 2))
            found, separable = self.fits(sizes.tolist(), self.draws)
            good = met(self.name, self.goal, found[self.name])
            centre, stderr = _crossing(sizes, good, self.assurance)
            if enclosed := bool(sizes[0] <= centre <= sizes[-1]):
                break
        some = [Simulated.of(*row) for row in zip(found[self.name], separable, strict=True)]
        mean, deviation, share = (
            float(np.interp(np.log(centre), np.log(sizes), [getattr(one, name) for one in some]))
            for name in ("mean", "deviation", "separable")
        )
        return Assured(
            n=int(np.ceil(centre)),
            stderr=stderr,
            sizes=tuple(sizes.tolist()),
            met=tuple(good.mean(1).tolist()),
            mean=mean,
            deviation=deviation,
            separable=share,
            draws=self.draws,
            enclosed=enclosed,
        )

    def first_look(self, typical: int) -> float:
        """Roughly the size, from few draws at some sizes, which are doubled until they suffice."""
        sizes = np.unique(np.maximum(np.round(typical * FIRST).astype(int), 2))
        few, largest = max(50, self.draws // 5), LARGEST * sizes[0]
        good = self.met(sizes, few)
        while (good.mean(1) < self.assurance).all():
            if sizes[-1] > largest:
                raise InvalidArgumentError.because(
                    "assurance",
                    f"= {self.assurance:g} for target[{self.name!r}] is not reached with "
                    f"{sizes[-1]} samples",
                    "choose a smaller assurance or a wider target",
                )
            sizes = np.round(2.0 * sizes).astype(int)
            good = self.met(sizes, few)
        return _crossing(sizes, good, self.assurance)[0]

    def met(self, sizes: Integers, draws: int) -> Booleans:
        """Which of some draws at each size meet the target."""
        found, _ = self.fits(sizes.tolist(), draws)
        return met(self.name, self.goal, found[self.name])


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
