"""Resampling: how each fit of an ensemble draws its own samples from common ones.

Each scheme has two forms: at finite size it draws rows, and in the limit it is the law of how often
a sample is drawn. Two fits draw independently, but for the parts of a split, which are disjoint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Integers
from hiddenmanifold.checks import check_count, check_number
from hiddenmanifold.errors import InvalidArgumentError

MOST = 19
"""Copies of a sample that a bootstrap has, at most: more have a probability of 2e-19."""


class Copies(NamedTuple):
    """How often a fit draws a sample: numbers of copies and their probabilities."""

    number: tuple[float, ...]
    probability: tuple[float, ...]

    @property
    def drawn(self) -> float:
        """Probability that a sample is drawn at all."""
        pairs = zip(self.number, self.probability, strict=True)
        return float(sum(p for a, p in pairs if a > 0.0))


ONCE = Copies((1.0,), (1.0,))
"""Every sample, once."""


class Resampling:
    """Base of all schemes."""

    disjoint: bool = False
    """Whether no sample is drawn by two fits."""

    @property
    def copies(self) -> Copies:
        """The law of the number of copies of a sample."""
        raise NotImplementedError

    def rows(self, n: int, member: int, rng: np.random.Generator) -> Integers:
        """The rows, out of n, that a member of an ensemble is fitted to."""
        raise NotImplementedError

    def check(self, members: float) -> None:
        """Raise if so many fits cannot draw their samples."""


@dataclass(frozen=True)
class Whole(Resampling):
    """Every fit uses all samples."""

    @property
    def copies(self) -> Copies:
        return ONCE

    def rows(self, n: int, member: int, rng: np.random.Generator) -> Integers:
        return np.arange(n)


@dataclass(frozen=True)
class SubSample(Resampling):
    """A random part of the samples, without replacement.

    Parameters
    ----------
    fraction : float
        How large it is, in (0, 1].
    """

    fraction: float

    def __post_init__(self) -> None:
        check_number("fraction", self.fraction, 0.0, 1.0, open_low=True)

    @property
    def copies(self) -> Copies:
        if self.fraction == 1.0:
            return ONCE
        return Copies((0.0, 1.0), (1.0 - self.fraction, self.fraction))

    def rows(self, n: int, member: int, rng: np.random.Generator) -> Integers:
        return rng.permutation(n)[: max(1, round(self.fraction * n))]


@dataclass(frozen=True)
class Bootstrap(Resampling):
    """As many samples as there are, with replacement: bagging."""

    @property
    def copies(self) -> Copies:
        number = range(MOST + 1)
        probability = (math.exp(-1.0) / math.factorial(a) for a in number)
        return Copies(tuple(map(float, number)), tuple(probability))

    def rows(self, n: int, member: int, rng: np.random.Generator) -> Integers:
        return rng.integers(n, size=n)


@dataclass(frozen=True)
class Split(Resampling):
    """The samples are divided among the fits.

    Parameters
    ----------
    parts : int
        Number of parts, of equal size; there cannot be more fits than parts.
    """

    parts: int
    disjoint = True

    def __post_init__(self) -> None:
        check_count("parts", self.parts, 2)

    @property
    def copies(self) -> Copies:
        return Copies((0.0, 1.0), (1.0 - 1.0 / self.parts, 1.0 / self.parts))

    def rows(self, n: int, member: int, rng: np.random.Generator) -> Integers:
        return np.array_split(np.arange(n), self.parts)[member]

    def check(self, members: float) -> None:
        if members > self.parts:
            raise InvalidArgumentError(
                "members", members, f"at most {self.parts}, the number of parts of the split"
            )


REGISTRY: dict[str, type[Resampling]] = {"whole": Whole, "bootstrap": Bootstrap}
"""Schemes without parameters, by name."""
SCHEMES: dict[str, type[Resampling]] = {**REGISTRY, "sub_sample": SubSample, "split": Split}
"""All schemes, by name."""
