r"""More than two classes that depend on K fields: the largest one, perhaps with noise.

The K fields :math:`\nu_k = c\cdot\theta_k/\sqrt d` are independent, of variance rho. The label is
the k of the largest :math:`\nu_k + \text{temperature}\cdot\xi_k` with Gumbel noise :math:`\xi`,
which is drawn with the probabilities :math:`\mathrm{softmax}(\nu/\text{temperature})`. All classes
are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import check_count, check_number, check_scale
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.teachers.several_classes import MOST_CLASSES, ClassTeacher

COLDEST = 0.05
"""Least temperature in deviations of a field: sums over colder rules would need more terms."""
HOTTEST = 50.0
"""Largest one: labels of hotter rules are random to some 1e-2 of their chance."""


class FieldClasses(ClassTeacher):
    """Base of the rules of K independent fields that are symmetric in them.

    Attributes
    ----------
    temperature : float
        Scale of the Gumbel noise that is added to the fields; zero for none.
    """

    K: int
    temperature: float

    @property
    def number(self) -> int:
        return self.K

    @cached_property
    def shares(self) -> Array:
        return np.full(self.K, 1.0 / self.K)

    @property
    def alike(self) -> bool:
        return True

    @cached_property
    def advantage(self) -> float:
        """Mean of the field of the class to which a sample belongs."""
        from hiddenmanifold.teachers.gumbel_noise import mean_of_winner

        return float(np.sqrt(self.rho)) * mean_of_winner(
            self.K, self.temperature / float(np.sqrt(self.rho))
        )

    @cached_property
    def coordinates(self) -> Array:
        """Mean latent data (K, K) of each class along the weights of the fields, of length one."""
        K = self.K
        centring = np.eye(K) - 1.0 / K
        found: Array = self.advantage * K / ((K - 1.0) * np.sqrt(self.rho)) * centring
        return found

    def classes_of(self, nu: Array, rng: np.random.Generator) -> Integers:
        """Classes of samples with fields nu (rows, K)."""
        noise = self.temperature * rng.gumbel(size=nu.shape) if self.temperature else 0.0
        found: Integers = (nu + noise).argmax(1)
        return found

    def _check(self) -> None:
        """Raise unless the number of classes and the variance are possible."""
        check_scale("rho", self.rho)
        if not 2 <= check_count("K", self.K) <= MOST_CLASSES:
            allowed = f"a number of classes from 2 to {MOST_CLASSES}"
            raise InvalidArgumentError("K", self.K, allowed)


@dataclass(frozen=True)
class Argmax(FieldClasses):
    r"""The class is the number of the largest of K fields: labels without noise.

    Parameters
    ----------
    K : int
        Number of classes and of fields, from 2 to 50.
    rho : float
        Variance of each field.

    Examples
    --------
    >>> round(Argmax(K=3).advantage, 4)
    0.8463
    """

    K: int = 3
    rho: float = 1.0

    temperature = 0.0

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True)
class Softmax(FieldClasses):
    r"""The class is drawn with the probabilities :math:`\mathrm{softmax}(\nu/\text{temperature})`.

    Parameters
    ----------
    K : int
        Number of classes and of fields, from 2 to 50.
    temperature : float
        From 0.05 to 50 deviations of a field; the limit zero is `Argmax`.
    rho : float
        Variance of each field.

    Examples
    --------
    >>> Softmax(K=3, temperature=0.5).advantage < Argmax(K=3).advantage
    True
    """

    K: int = 3
    temperature: float = 1.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        self._check()
        scale = float(np.sqrt(self.rho))
        check_number("temperature", self.temperature, COLDEST * scale, HOTTEST * scale)
