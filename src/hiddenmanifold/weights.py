"""Weights of samples: how many times the loss of each counts in the objective.

Weights are not normalised: twice all weights are half the λ. Each kind has two forms: at finite
size it gives every sample its weight, and in the limit it is a law of weights. A weight of two is a
sample that is there twice, so that weights and the copies of a bootstrap are one thing; but a
sample keeps its weight in every fit, while two fits draw their copies independently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, check_number
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.resampling import ONCE, Copies

ALLOWED = "'balanced', a weight for each class, as {-1: 1, 1: 5} or (1, 5), or one of hm.weights"


@dataclass(frozen=True)
class WeightLaw:
    """The law of the weight of a sample, given its label.

    It is the weight of the class, for labels ±1, times one that does not depend on the label.
    """

    negative: float = 1.0
    positive: float = 1.0
    values: Copies = ONCE

    @property
    def alike(self) -> bool:
        """Whether weights do not depend on the label."""
        return self.negative == self.positive

    def mean(self, positive: float) -> float:
        """The mean weight, if labels are +1 with a given probability."""
        drawn = sum(a * p for a, p in zip(*self.values, strict=True))
        return float(drawn * (positive * self.positive + (1.0 - positive) * self.negative))

    def of_class(self, y: int) -> float:
        """The weight of a label ±1."""
        return self.positive if y > 0 else self.negative


EQUAL = WeightLaw()
"""Every sample counts once."""


class Weights:
    """Base of all kinds of weights."""

    of_classes: bool = False
    """Whether weights are those of labels ±1."""

    def check(self, task: Task) -> None:
        """Raise if weights are not those of labels of a task."""
        if task is Task.CLASSES:
            raise InvalidArgumentError.because(
                "weights",
                "are not known for several classes",
                "leave them out, or give a teacher of labels ±1",
            )
        if self.of_classes and task is not Task.CLASSIFICATION:
            raise InvalidArgumentError.because(
                "weights",
                f"= {self} are those of labels ±1, and the labels are numbers",
                "give hm.weights.Independent, or leave them out",
            )

    def law(self, positive: float) -> WeightLaw:
        """The law of weights, if labels are +1 with a given probability."""
        raise NotImplementedError

    def of(self, y: Array, rng: np.random.Generator) -> Array:
        """The weights of samples with labels y."""
        raise NotImplementedError


@dataclass(frozen=True)
class ByClass(Weights):
    """A weight for each of two classes.

    Parameters
    ----------
    negative, positive : float
        The weights of the labels -1 and +1, above 0.
    """

    negative: float
    positive: float
    of_classes = True

    def __post_init__(self) -> None:
        for name in ("negative", "positive"):
            check_number(name, given := getattr(self, name), 0.0, open_low=True)
            object.__setattr__(self, name, float(given))

    def law(self, positive: float) -> WeightLaw:
        return _of_classes(self.negative, self.positive)

    def of(self, y: Array, rng: np.random.Generator) -> Array:
        return np.where(y > 0, self.positive, self.negative)


@dataclass(frozen=True)
class Balanced(Weights):
    """Weights with which both classes count the same.

    They are the number of samples over twice that of the class, as ``class_weight="balanced"`` of
    scikit-learn.
    """

    of_classes = True

    def law(self, positive: float) -> WeightLaw:
        return _of_classes(0.5 / (1.0 - positive), 0.5 / positive)

    def of(self, y: Array, rng: np.random.Generator) -> Array:
        share = np.mean(y > 0)
        return 0.5 / np.where(y > 0, share, 1.0 - share)


@dataclass(frozen=True)
class Independent(Weights):
    """Weights that are drawn for each sample, independently of all else.

    Parameters
    ----------
    values : sequence of float
        The weights that a sample may have, above 0.
    probabilities : sequence of float
        The probability of each.
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("values", "probabilities"):
            numbers = getattr(self, name)
            try:
                numbers = tuple(float(number) for number in numbers)
            except (TypeError, ValueError):
                raise InvalidArgumentError(name, numbers, "several numbers") from None
            for number in numbers:
                check_number(name, number, 0.0, open_low=True)
            object.__setattr__(self, name, numbers)
        if len(self.values) != len(self.probabilities):
            raise InvalidArgumentError.because(
                "probabilities",
                f"are {len(self.probabilities)} for {len(self.values)} values",
                "give one for each value",
            )
        if not np.isclose(sum(self.probabilities), 1.0, rtol=0.0, atol=1e-12):
            raise InvalidArgumentError.because(
                "probabilities", f"add up to {sum(self.probabilities):g}", "they must add up to 1"
            )

    def law(self, positive: float) -> WeightLaw:
        return WeightLaw(values=Copies(self.values, self.probabilities))

    def of(self, y: Array, rng: np.random.Generator) -> Array:
        drawn = rng.choice(len(self.values), size=len(y), p=np.array(self.probabilities))
        return np.array(self.values)[drawn]


def _of_classes(negative: float, positive: float) -> WeightLaw:
    """The law of weights of classes, in one form if both weigh the same."""
    if negative == positive:
        return WeightLaw(values=Copies((negative,), (1.0,)))
    return WeightLaw(negative, positive)


def weights_of(given: Any) -> Weights | None:
    """The weights that an argument stands for; None if every sample counts once.

    Raises
    ------
    InvalidArgumentError
        If it stands for none.
    """
    if given is None or isinstance(given, Weights):
        return given
    if isinstance(given, str):
        if given == "balanced":
            return Balanced()
    elif isinstance(given, Mapping):
        if set(given) == {-1, 1}:
            return ByClass(given[-1], given[1])
    elif isinstance(given, tuple | list) and len(given) == 2:
        return ByClass(*given)
    raise InvalidArgumentError("weights", given, ALLOWED)
