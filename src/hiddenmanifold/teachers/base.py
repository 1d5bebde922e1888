"""The interface of all label rules, at finite size and in the limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, cast

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.compiled import CompiledLaw
from hiddenmanifold.numerics.panels import NEAR, Panels, fanned, refine

ORDER, SETTLED, FINEST = 20, 1e-11, 9
"""Nodes of a panel of the field, the relative change at which an average over it has settled, and
how often its panels are halved."""
Law = tuple[Array, Array, Array]
CompiledRows = tuple[Integers | slice, CompiledLaw]
"""Some points, and their label law as compiled code takes it."""


class LabelLaw(Protocol):
    r"""The weight :math:`Z_y(x)` of a label given the mean x of a field along it."""

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        """The law and its first two derivatives in `x`, at means and variances that broadcast."""

    def landmarks(self, y: int, V0: Array) -> Array:
        """Values of `x` where the law bends, shape (points, landmarks)."""

    def compiled(self, y: int, V0: Array) -> Iterable[CompiledRows]:
        """The law at each variance, for compiled code; points left out are left to NumPy."""


@dataclass(frozen=True)
class ConstantLaw:
    """A law that is the same at any field, with derivatives that are set independently."""

    constant: tuple[float, float, float]

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        """The law and its first two derivatives."""
        Z, Z1, Z2 = (np.full_like(x, value) for value in self.constant)
        return Z, Z1, Z2

    def landmarks(self, y: int, V0: Array) -> Array:
        """No landmarks, since the law is constant."""
        return np.empty((len(V0), 0))

    def compiled(self, y: int, V0: Array) -> Iterable[CompiledRows]:
        """The law, for compiled code."""
        return [(slice(None), CompiledLaw(np.array(self.constant)))]


CERTAIN = ConstantLaw((1.0, 0.0, 0.0))
"""The law of real labels, which are known by their residual: one, everywhere."""


class Teacher:
    """Base of all label rules; `rho` is the second moment of the teacher's weights."""

    task: ClassVar[Task]
    displaces: ClassVar[bool] = False
    """Whether labels are classes, drawn first, that displace their samples by ±E[νx]."""
    rho: float
    means: tuple[tuple[float, ...], ...] | None = None
    """Means of classes along the eigenvectors of the features, if these are what describes them."""

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        """Labels drawn for the given fields."""
        raise NotImplementedError

    def noiseless(self, nu: Array) -> Array:
        """The labels that the rule gives without noise."""
        raise NotImplementedError

    def label_mean(self, nu: Array) -> Array:
        r"""The mean label :math:`E[y|\nu]`, against which a clean error is measured."""
        raise NotImplementedError

    @property
    def symmetric(self) -> bool:
        r"""Whether :math:`P(-y|-\nu) = P(y|\nu)`."""
        return False

    @property
    def typical_labels(self) -> Array:
        """Labels on which a loss is checked."""
        raise NotImplementedError

    def classes(self, rows: int, rng: np.random.Generator) -> Array:
        """Labels of `rows` samples, for a teacher whose classes displace them."""
        raise NotImplementedError


def binary(teacher: Teacher) -> BinaryTeacher:
    """A teacher of labels ±1."""
    return cast("BinaryTeacher", teacher)


class BinaryTeacher(Teacher):
    """Base of the rules with labels ±1."""

    task: ClassVar[Task] = Task.CLASSIFICATION
    skipped_levels: int = 0
    """Number of the finest quadrature levels to skip, because values of the law are costly."""

    probability: Callable[[Array], Array]

    def sample(self, nu: Array, rng: np.random.Generator) -> Array:
        return np.where(rng.random(nu.shape) < self.probability(nu), 1.0, -1.0)

    def noiseless(self, nu: Array) -> Array:
        return np.where(self.clean.probability(nu) > 0.5, 1.0, -1.0)

    def label_mean(self, nu: Array) -> Array:
        return 2.0 * self.probability(nu) - 1.0

    @property
    def typical_labels(self) -> Array:
        return np.array([-1.0, 1.0])

    @property
    def symmetric(self) -> bool:
        r"""Whether :math:`P(+|\nu) = P(-|-\nu)`."""
        raise NotImplementedError

    @property
    def pivot(self) -> float | None:
        r"""A field c with :math:`P(+|c+x) = P(-|c-x)`, growing in x; None if there is no such.

        The best guess from a field known up to a symmetric error then is the side of c it is on.
        """
        return None

    @property
    def clean(self) -> BinaryTeacher:
        """The same rule without noise: the more probable label."""
        raise NotImplementedError

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        r""":math:`Z_y(x)` and its first two derivatives in `x` (see the module's docstring).

        Parameters
        ----------
        y : {1, -1}
            The label.
        x, V0 : arrays that broadcast
            Mean of the teacher's field along the label, and its variance.
        """
        raise NotImplementedError

    def label_weight(self, y: int, x: Array, V0: Array) -> Array:
        r""":math:`Z_y(x)` alone, which may cost less."""
        return self.label_law(y, x, V0)[0]

    def label_variance(self, x: Array, V0: Array) -> Array:
        """Mean variance of the label given a normal field, at means and variances (rows,).

        NaN where the integral over the field did not settle.
        """

        def mean(some: Integers, halvings: int) -> tuple[Array, Array]:
            sd = np.sqrt(V0[some])
            with np.errstate(all="ignore"):  # a field that is known cuts no panel
                marks = (self.landmarks(1, np.zeros(1)) - x[some, None]) / sd[:, None]
            panels = Panels.between(fanned(NEAR, np.nan_to_num(marks)), (ORDER, halvings))
            at = panels.row[:, None]
            p = self.probability(x[some][at] + sd[at] * panels.nodes)
            value = panels.sum(4.0 * p * (1.0 - p))
            return value, SETTLED * value + 1e-15  # the rounding of 1 - p

        return refine(mean, x.shape, range(FINEST))

    def probits(self, y: int) -> CompiledLaw | None:
        """The probability of a label as a sum of probits, or None if it is not such a sum."""
        return None

    def compiled(self, y: int, V0: Array) -> Iterable[CompiledRows]:
        """The label law at each variance, for compiled code; points left out are left to NumPy."""
        return []

    def below(self, y: int, cut: Array, slope: Array, V0: Array) -> Array | None:
        r"""Probability of the label and a standardised prediction below the cut along it.

        This is :math:`E_\xi[1(\xi < \text{cut}) Z_y(x)]` with x = slope ξ;
        None if its landmarks suffice to integrate the label law.
        """
        return None

    def landmarks(self, y: int, V0: Array) -> Array:
        """Values of `x` where :math:`Z_y` bends, shape (points, landmarks)."""
        raise NotImplementedError

    def evidence(self, x: Array, V0: Array) -> Array | float:
        r""":math:`Z_0(+, x) + Z_0(-, x)`: one, unless labels displace their samples."""
        return 1.0

    @cached_property
    def label_marginals(self) -> tuple[float, float, float]:
        """P(+), P(-) and the slope of P(+) in the field's mean, under the prior of the field."""
        x, V0 = np.zeros(1), np.array([self.rho])
        (plus, slope, _), (minus, *_) = (self.label_law(y, x, V0) for y in (1, -1))
        return float(plus[0]), float(minus[0]), float(slope[0])

    def error_without_bias(self, slope: Array, V0: Array) -> Array | None:
        """Test error of an unbiased predictor in closed form, or None if there is none.

        `slope` is the covariance of the teacher's field with the standardised prediction.
        """
        return None
