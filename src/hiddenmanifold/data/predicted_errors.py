"""Predicted errors of fits to n samples, with the deviations of their logarithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers

QUANTITIES = ("generalisation_error", "test_loss", "training_loss")
FALLING = QUANTITIES[:2]
"""Quantities whose fall, the ratio to that at N samples, is a result of its own."""
BARS = {
    "square": (0.82, 0.0, 0.45, 0.18),
    "wrong": (0.65, 2.0, 1.55, 0.0),
    "wrong, fewer rows": (0.9, 1.5, 1.0, 0.0),
    "head square": (1.1, 4.0, 0.3, 0.0),
    "head error": (0.95, 0.0, 0.8, 0.45),
    "head loss": (1.1, 6.5, 0.3, 0.1),
    "class error": (1.0, 0.0, 0.5**0.5, 0.5),
    "class loss": (1.0, 0.0, 0.5**0.5, 0.5),
    "fall of square": (0.4, 1.15, 0.0, 0.0),
    "fall of wrong": (1.1, 0.43, 0.0, 0.36),
    "fall of wrong, fewer rows": (0.0, 2.0, 1.0, 0.0),
    "fall of head square": (0.3, 4.0, 0.1, 0.0),
    "fall of head error": (0.96, 0.0, 0.0, 0.82),
    "fall of head loss": (0.67, 2.9, 0.0, 0.0),
    "fall of class error": (0.0, 0.0, 1.0, 0.7),
    "fall of class loss": (0.0, 0.0, 0.5**0.5, 0.3),
    "training": (1.1, 2.0, 0.7, 0.0),
}
"""Weights (a, b, c, d) of `deviation`.

They were set on one half of the sets of benchmarks/real_data.py; those for fewer rows and of
several classes on digits and embeddings of them (benchmarks/embeddings.py); those along training on
one half of the draws of benchmarks/training_of_rows.py, of whose other half 66 % are within one
deviation and 93 % within two.
"""
UNRESOLVED = 0.45
"""The part of the way by which an error that the sample does not resolve may be off."""
RULE_OF_THREE = 3.0
"""If none of N samples was wrong, the rate is below 3/N, nineteen times in twenty."""


@dataclass(frozen=True)
class Prediction:
    """Predicted `QUANTITIES` (quantities, fits), falls of the first two, and log-deviations.

    Of classes also the part of each that is predicted as each, (K, K, fits), and the deviations of
    their errors (K, fits).
    """

    value: Array
    deviation: Array
    fall: Array
    fall_deviation: Array
    kappa: Array
    resolved: Booleans
    confusion: Array
    class_deviation: Array

    @classmethod
    def joined(cls, parts: list[Prediction]) -> Prediction:
        """One of several."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in names))

    def interval(self, quantity: str, *, fall: bool = False) -> tuple[Array, Array, Array]:
        """A quantity, or its fall, with the ends of one standard deviation."""
        i = QUANTITIES.index(quantity)
        value, s = (self.fall, self.fall_deviation) if fall else (self.value, self.deviation)
        with np.errstate(over="ignore", invalid="ignore"):
            high = np.where(value[i] == 0, 0.0, value[i] * np.exp(s[i]))
        return value[i], value[i] * np.exp(-s[i]), high


def from_here(here: Booleans | None, falls: Array, bars: Array) -> tuple[Array, Array]:
    """Falls and their bars, exactly 1 and 0 `here`, for the sample itself."""
    if here is None:
        return falls, bars
    known = here & ~np.isnan(falls)
    return np.where(known, 1.0, falls), np.where(known, 0.0, bars)


def unless_none(counted: Array, error: Array, rows: Integers | int, bar: Array) -> Array:
    """The bar of a misclassification rate, which reaches 3/rows if none was counted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        none = np.log(RULE_OF_THREE / (rows * error))
    return np.where(counted == 0, np.fmax(bar, np.maximum(none, 0.0)), bar)


def no_classes(fits: int) -> tuple[Array, Array]:
    """Confusion and deviations where labels are numbers."""
    return np.empty((0, 0, fits)), np.empty((0, fits))


def deviation(
    kind: str,
    own: Array | float,
    fall: Array,
    N: int,
    *,
    shaken: Array | None = None,
    apart: Array | None = None,
    hidden: Booleans | None = None,
) -> Array:
    r"""Deviation of the logarithm of an error at n, or of its fall from N, by weights of its kind.

    .. math:: s^2 = (a\,u)^2 + (b\,o \log f)^2 + c^2/N + (d\,g)^2 + (0.45\,h \log f)^2

    The deviation o of the level at N makes the way :math:`\log f` as uncertain. u is what the rows
    at hand contribute, o itself or, to a fall, by how much they have `shaken` it. g is the way, or
    what is given as `apart`: the way of the square error beside that of a rate, or by how much
    both differ. h is 1 where the way is `hidden`, because the sample does not resolve it.
    """
    a, b, c, d = BARS[kind]
    way = log_of(fall)
    given = own if shaken is None else shaken
    gap = way if apart is None else apart
    most = 0.0 if hidden is None else UNRESOLVED * hidden
    with np.errstate(invalid="ignore"):
        squares = (a * given) ** 2 + (b * own * way) ** 2 + c**2 / N + (d * gap) ** 2
        found: Array = np.sqrt(squares + (most * way) ** 2)
    return found


def log_of(fall: Array) -> Array:
    """The logarithm of a fall, also of none and of one to zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.log(fall)
    return found
