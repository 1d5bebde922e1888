"""More than two classes: normal ones around their means."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task, check_count, check_number, finite_matrix, finite_vector
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.teachers.base import Teacher

MOST_CLASSES = 50
"""Largest number of classes: the integrals over scores were checked up to here."""
FARTHEST = 20.0
"""Largest distance of two means in standard deviations: the overlap beyond is below 1e-23."""
ROUNDING = 1e-9
"""Relative size of what is attributed to rounding of given numbers."""


class ClassTeacher(Teacher):
    """Base of the rules with K classes; labels are their numbers, 0 to K - 1."""

    task: ClassVar[Task] = Task.CLASSES
    rho: float = 1.0

    @property
    def number(self) -> int:
        """The number K of classes."""
        return len(self.shares)

    @property
    def shares(self) -> Array:
        """Probability of each class (K,)."""
        raise NotImplementedError

    @property
    def alike(self) -> bool:
        """Whether the problem is the same if any two classes are exchanged."""
        raise NotImplementedError

    def sample_classes(self, rows: int, rng: np.random.Generator) -> Integers:
        """The classes of `rows` samples, for a teacher that draws these first."""
        raise NotImplementedError


def several(teacher: Teacher) -> ClassTeacher:
    """A teacher of more than two classes."""
    return cast("ClassTeacher", teacher)


@dataclass(frozen=True)
class Classes(ClassTeacher):
    r"""K normal classes of the features' covariance around means in the latent space.

    The class is drawn first; latent data are :math:`c = \mu_y + z` with white z. The origin is the
    mean of all samples: :math:`\sum_c\pi_c\mu_c = 0`, whatever Gram matrix is given.

    Parameters
    ----------
    K : int, optional
        Number of classes, from 2 to 50; needed unless `gram` or `priors` give it.
    separation : float
        Distance of any two means, in standard deviations of a class along it: the means are the
        corners of a simplex. At most 20.
    gram : matrix (K, K)
        Instead, the scalar products of any means, in units of the variance within classes.
    means : matrix (K, p), optional
        Instead, for features of a `Covariance`, that within classes: the mean of the features in
        each class along its p eigenvectors. Only differences of means matter.
    priors : sequence of float, optional
        Probability of each class, positive and of sum 1; by default all are equal.

    Raises
    ------
    InvalidArgumentError
        If these are not the data of K classes, or no two means differ.

    Examples
    --------
    >>> Classes(K=5, separation=2.0).number
    5
    """

    K: int | None = None
    separation: float | None = None
    gram: tuple[tuple[float, ...], ...] | None = field(default=None, kw_only=True)
    priors: tuple[float, ...] | None = field(default=None, kw_only=True)
    means: tuple[tuple[float, ...], ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = [n for n in ("separation", "gram", "means") if getattr(self, n) is not None]
        if not given:
            raise InvalidArgumentError.because(
                "separation", "and gram are both missing", "give exactly one of them"
            )
        if len(given) > 1:
            told = " and ".join(given)
            raise InvalidArgumentError.because(told, "are both given", "give exactly one of them")
        if self.means is not None:
            means = finite_matrix("means", self.means, "(K, p)")
            object.__setattr__(self, "means", tuple(map(tuple, means.tolist())))
        elif self.gram is not None:
            gram = finite_matrix("gram", self.gram, "(K, K)")
            object.__setattr__(self, "gram", tuple(map(tuple, gram.tolist())))
        else:
            check_number("separation", self.separation, 0.0, FARTHEST, open_low=True)
        if self.priors is not None:
            priors = finite_vector("priors", self.priors)
            object.__setattr__(self, "priors", tuple(priors.tolist()))
        self._check_number()
        self._check_priors()
        self._check_means()

    def _check_number(self) -> None:
        """Raise unless all arguments agree on a number of classes."""
        given = {"K": self.K}
        given |= {
            name: len(v) for name in ("gram", "means", "priors") if (v := getattr(self, name))
        }
        numbers = {name: number for name, number in given.items() if number is not None}
        if not numbers:
            raise InvalidArgumentError.because(
                "K", "is missing", "give the number of classes, as Classes(K=3, separation=2.0)"
            )
        if len(set(numbers.values())) > 1:
            told = ", ".join(f"{name} is of {number} classes" for name, number in numbers.items())
            raise InvalidArgumentError.because(
                next(iter(numbers)), f"does not match: {told}", "give the same number of classes"
            )
        (name, number), *_ = numbers.items()
        if not 2 <= check_count(name, number) <= MOST_CLASSES:
            allowed = f"a number of classes from 2 to {MOST_CLASSES}"
            raise InvalidArgumentError(name, number, allowed)

    def _check_priors(self) -> None:
        """Raise unless the priors are probabilities."""
        if self.priors is None:
            return
        if min(self.priors) <= 0.0 or abs(sum(self.priors) - 1.0) > ROUNDING:
            problem = f"are {self.priors}, of sum {sum(self.priors):.6g}"
            raise InvalidArgumentError.because(
                "priors", problem, "give positive probabilities of sum 1"
            )

    def _check_means(self) -> None:
        """Raise unless the Gram matrix is one of vectors, of which at least two differ."""
        if self.means is not None and np.ptp(np.array(self.means), axis=0).max() == 0.0:
            problem = "are the same in all classes"
            raise InvalidArgumentError.because("means", problem, "give at least two that differ")
        if self.gram is None:
            return
        gram = np.array(self.gram)
        if gram.shape != (len(gram), len(gram)):
            raise InvalidArgumentError.because("gram", f"has shape {gram.shape}", "give K × K")
        size = float(np.abs(gram).max())
        values = np.linalg.eigvalsh(0.5 * (gram + gram.T))
        if np.abs(gram - gram.T).max() > ROUNDING * size or values[0] < -ROUNDING * size:
            problem = "is not symmetric with eigenvalues of at least zero"
            raise InvalidArgumentError.because(
                "gram", problem, "give the scalar products of the class means"
            )
        squares = np.diag(gram)
        distances = squares[:, None] + squares - 2.0 * gram
        if not ROUNDING * size < distances.max() <= FARTHEST**2:
            raise InvalidArgumentError.because(
                "gram",
                f"puts class means at distances up to {np.sqrt(max(distances.max(), 0.0)):.4g}",
                f"the largest must be positive and at most {FARTHEST:g} standard deviations",
            )

    @cached_property
    def shares(self) -> Array:
        if self.priors is None:
            given = self.gram if self.means is None else self.means
            number = self.K if given is None else len(given)
            assert number is not None
            return np.full(number, 1.0 / number)
        priors: Array = np.array(self.priors) / sum(self.priors)
        return priors

    @property
    def alike(self) -> bool:
        return self.gram is None and self.priors is None and self.means is None

    @cached_property
    def centred_gram(self) -> Array:
        """Scalar products of the means (K, K), with their mean at the origin."""
        K = self.number
        if self.means is not None:
            return self.coordinates @ self.coordinates.T
        if self.gram is None:
            assert self.separation is not None
            gram = 0.5 * self.separation**2 * np.eye(K)
        else:
            gram = np.array(self.gram)
        centring = np.eye(K) - self.shares  # rows minus the weighted mean of all
        found: Array = centring @ (0.5 * (gram + gram.T)) @ centring.T
        return found

    @cached_property
    def coordinates(self) -> Array:
        """Coordinates (K, rank) of the means in orthonormal directions of the latent space.

        If means along eigenvectors are given it is these, with their mean at the origin.
        """
        if self.means is not None:
            means = np.array(self.means)
            centred: Array = means - self.shares @ means
            return centred
        values, vectors = np.linalg.eigh(self.centred_gram)
        kept = values > ROUNDING * values[-1]
        found: Array = vectors[:, kept] * np.sqrt(values[kept])
        return found

    def sample_classes(self, rows: int, rng: np.random.Generator) -> Integers:
        drawn: Integers = rng.choice(self.number, size=rows, p=self.shares)
        return drawn
