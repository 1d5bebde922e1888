"""Predictions of a label from the linear score f: the function that a fitted model is used with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_kinks, check_scale, sampled


class Predictor:
    """Base of all functions from a score f to a prediction of the label.

    `kinks` are the scores where the function or its slope jumps.
    """

    kinks: tuple[float, ...] = ()

    def __call__(self, f: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Identity(Predictor):
    """The score itself."""

    def __call__(self, f: Array) -> Array:
        return f


@dataclass(frozen=True)
class Sign(Predictor):
    """The sign of the score; zero means -1."""

    kinks = (0.0,)

    def __call__(self, f: Array) -> Array:
        return np.where(f > 0, 1.0, -1.0)


@dataclass(frozen=True)
class Exp(Predictor):
    r"""The mean :math:`e^f` of positive labels and counts."""

    def __call__(self, f: Array) -> Array:
        return np.exp(f)


@dataclass(frozen=True)
class Logistic(Predictor):
    r"""The mean :math:`m/(1 + e^{-f})` of successes in m trials.

    Parameters
    ----------
    trials : float
        The number m.
    """

    trials: float = 1.0

    def __post_init__(self) -> None:
        check_scale("trials", self.trials)

    def __call__(self, f: Array) -> Array:
        return self.trials * np.asarray(scipy.special.expit(f))


@dataclass(frozen=True)
class Custom(Predictor):
    """Any function of the score.

    Parameters
    ----------
    function : callable
        Vectorised.
    kinks : tuple of float
        Scores where the function or its slope jumps.
    """

    function: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", check_kinks(self.kinks))
        sampled("prediction", self.function, np.linspace(-8.0, 8.0, 801))

    def __call__(self, f: Array) -> Array:
        return self.function(f)


REGISTRY: dict[str, type[Predictor]] = {
    "identity": Identity,
    "sign": Sign,
    "exp": Exp,
    "logistic": Logistic,
}
