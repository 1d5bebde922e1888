r"""Label rules: how a label is drawn from the teacher's field :math:`\nu = c\cdot\theta/\sqrt d`.

A binary teacher is known to the theory through the probability of the label `y` given a Gaussian
field, :math:`Z_0(y, \omega) = E_{\nu \sim N(\omega, V_0)} P(y|\nu)`. It is written along the label,
:math:`Z_y(x) = Z_0(y, y x)`, with derivatives in `x`: then both labels look alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .errors import InvalidArgumentError
from .numerics.panels import gauss_legendre
from .numerics.special import logistic_as_probits, normal_density
from .registry import Task, check_kinks, check_number, sampled

Array = NDArray[np.float64]
Law = tuple[Array, Array, Array]

# Z is resolved by panels of 4.5 widths; a mixture of widths needs a longer, geometric ladder
_LADDER = np.array([-36.0, -18.0, -9.0, -4.5, 0.0, 4.5, 9.0, 18.0, 36.0])


class Teacher:
    """Base of all label rules; `rho` is the second moment of the teacher's weights."""

    task: ClassVar[Task]
    rho: float


@dataclass(frozen=True)
class Linear(Teacher):
    r"""Real labels :math:`y = \nu + \sqrt{\Delta}\,\xi`.

    Parameters
    ----------
    noise : float
        Variance :math:`\Delta \ge 0`.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    noise: float = 0.0
    rho: float = 1.0
    task: ClassVar[Task] = Task.REGRESSION

    def __post_init__(self) -> None:
        check_number("rho", self.rho, 0.0, open_low=True)
        check_number("noise", self.noise, 0.0)


class BinaryTeacher(Teacher):
    """Base of the rules with labels ±1."""

    task: ClassVar[Task] = Task.CLASSIFICATION

    @property
    def symmetric(self) -> bool:
        r"""Whether :math:`P(+|\nu) = P(-|-\nu)`."""
        raise NotImplementedError

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

    def landmarks(self, y: int, V0: Array) -> Array:
        """Values of `x` where :math:`Z_y` bends, shape (points, landmarks)."""
        raise NotImplementedError

    @cached_property
    def at_rest(self) -> tuple[float, float, float]:
        """P(+), P(-) and the slope of P(+) in the field's mean, when nothing is known of it."""
        x, V0 = np.zeros(1), np.array([self.rho])
        (plus, slope, _), (minus, *_) = (self.label_law(y, x, V0) for y in (1, -1))
        return float(plus[0]), float(minus[0]), float(slope[0])

    def error_without_bias(self, k: Array, V0: Array) -> Array | None:
        """Test error of an unbiased predictor in closed form, or None if there is none.

        `k` is the covariance of the teacher's field with the standardised prediction.
        """
        return None


class ProbitSum(BinaryTeacher):
    r"""Rules of the form :math:`P(+|\nu) = o + \sum_k w_k \Phi((\nu - \tau_k)/\sqrt{\Delta_k})`.

    A Gaussian average of such a rule is again a sum of normal distribution functions, with
    :math:`\Delta_k + V_0` in place of :math:`\Delta_k`: no inner integral is ever computed.
    """

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        """Offset, weights, thresholds, variances."""
        raise NotImplementedError

    @property
    def symmetric(self) -> bool:
        offset, weights, thresholds, _ = self._terms
        return bool(np.all(thresholds == 0) and np.isclose(2 * offset + weights.sum(), 1.0))

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        offset, weights, thresholds, variances = self._terms
        laws = []
        for weight, threshold, variance in zip(weights, thresholds, variances, strict=True):
            inverse = 1.0 / np.sqrt(V0 + variance)
            t = (x - y * threshold) * inverse
            slope = (weight * inverse) * normal_density(t)
            laws.append((weight * special.ndtr(t), slope, -inverse * t * slope))
        Z, Z1, Z2 = (reduce(np.add, terms) for terms in zip(*laws, strict=True))
        return Z + (offset if y > 0 else 1.0 - offset - weights.sum()), Z1, Z2

    def error_without_bias(self, k: Array, V0: Array) -> Array | None:
        if not self.symmetric:
            return None
        offset, weights, _, variances = self._terms
        angles = np.arctan2(np.sqrt(V0[:, None] + variances), k[:, None])
        return offset + angles @ weights / np.pi

    def landmarks(self, y: int, V0: Array) -> Array:
        _, weights, thresholds, variances = self._terms
        ladder = _LADDER if len(weights) > len(set(thresholds)) else _LADDER[2:-2]
        width = np.sqrt(V0 + variances.min())[:, None]
        return np.concatenate([y * t + width * ladder for t in sorted(set(thresholds))], axis=1)


@dataclass(frozen=True)
class Sign(ProbitSum):
    r"""Labels :math:`y = \mathrm{sign}(\nu + t + \sqrt\Delta\,\xi)`, some of them flipped.

    Parameters
    ----------
    noise : float
        Variance :math:`\Delta \ge 0` inside the sign: the probit rule.
    flip : float
        Probability in [0, 1/2) of flipping the label.
    threshold : float
        The shift `t`.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    noise: float = 0.0
    flip: float = 0.0
    threshold: float = 0.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        _check_rule(self.rho, self.flip, self.threshold)
        check_number("noise", self.noise, 0.0)

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        return (
            self.flip,
            np.array([1.0 - 2.0 * self.flip]),
            np.array([-self.threshold]),
            np.array([self.noise]),
        )

    @property
    def clean(self) -> Sign:
        return Sign(threshold=self.threshold, rho=self.rho)


@dataclass(frozen=True)
class Logistic(ProbitSum):
    r"""Labels +1 with probability :math:`1/(1 + e^{-\beta(\nu + t)})`, some of them flipped.

    The logistic law is a scale mixture of normal laws, so the rule is a sum of probits (to 1e-14).

    Parameters
    ----------
    slope : float
        The inverse temperature :math:`\beta > 0`.
    threshold : float
        The shift `t`.
    flip : float
        Probability in [0, 1/2) of flipping the label.
    rho : float
        Second moment of the teacher's weights, positive.
    """

    slope: float = 1.0
    threshold: float = 0.0
    flip: float = 0.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        _check_rule(self.rho, self.flip, self.threshold)
        check_number("slope", self.slope, 0.0, open_low=True)

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        weights, deviations = logistic_as_probits()
        return (
            self.flip,
            (1.0 - 2.0 * self.flip) * weights,
            np.full(len(weights), -self.threshold),
            (deviations / self.slope) ** 2,
        )

    @property
    def clean(self) -> Sign:
        return Sign(threshold=self.threshold, rho=self.rho)


def _check_rule(rho: float, flip: float, threshold: float) -> None:
    check_number("rho", rho, 0.0, open_low=True)
    check_number("flip", flip, 0.0, 0.5)
    if flip == 0.5:
        raise InvalidArgumentError("flip", flip, "below 1/2, where labels carry no information")
    check_number("threshold", threshold, -35.0, 35.0)


@dataclass(frozen=True)
class Steps(ProbitSum):
    """The noiseless rule whose label changes sign at each of the given fields.

    Parameters
    ----------
    changes : tuple of float
        Where the label changes, in increasing order.
    first : {1, -1}
        The label below all changes.
    rho : float
        Second moment of the teacher's weights.
    """

    changes: tuple[float, ...]
    first: int = -1
    rho: float = 1.0

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        if not self.changes:  # one term of no weight
            return float(self.first > 0), np.zeros(1), np.zeros(1), np.ones(1)
        signs = -self.first * np.where(np.arange(len(self.changes)) % 2, -1.0, 1.0)
        return float(self.first > 0), signs, np.array(self.changes), np.zeros(len(self.changes))

    @property
    def clean(self) -> Steps:
        return self


@dataclass(frozen=True)
class Custom(BinaryTeacher):
    r"""Labels +1 with any probability :math:`P(+|\nu)`.

    Its Gaussian averages are computed numerically, on panels that are made fine enough when the
    rule is built.

    Parameters
    ----------
    probability : callable
        Vectorised :math:`P(+|\nu)`, with values in [0, 1].
    kinks : tuple of float
        Fields where the probability or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.

    Raises
    ------
    InvalidArgumentError
        If the probability is not one, is constant, or its averages do not settle to 1e-12.
    """

    probability: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()
    rho: float = 1.0
    halvings: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("rho", self.rho, 0.0, open_low=True)
        object.__setattr__(self, "kinks", check_kinks(self.kinks))
        p = sampled("probability", self.probability, self._grid)
        if p.min() < 0.0 or p.max() > 1.0:
            raise InvalidArgumentError(
                "probability", f"from {p.min()} to {p.max()}", "within [0, 1] everywhere"
            )
        if p.min() == p.max():
            raise InvalidArgumentError("probability", f"constant {p[0]:g}", "informative")
        object.__setattr__(self, "halvings", self._enough_halvings())

    def _enough_halvings(self) -> int:
        """Fineness at which the averages have settled, for every mean and variance of the field."""
        x = np.sqrt(self.rho) * np.linspace(-6.0, 6.0, 25)[:, None]
        V0 = self.rho * np.array([1.0, 0.3, 0.01])
        previous = np.full((3, 25, 3), np.inf)
        for halvings in range(1, 11):
            object.__setattr__(self, "halvings", halvings)
            Z, Z1, Z2 = self.label_law(1, x, V0)
            found = np.array([Z, Z1 * np.sqrt(V0), Z2 * V0])
            if np.abs(found - previous).max() <= 1e-12:
                return halvings
            previous = found
        raise InvalidArgumentError(
            "probability",
            self.probability,
            "smooth between its kinks: its Gaussian averages did not settle to 1e-12; declare "
            "jumps and corners in Custom(probability, kinks=(...))",
        )

    @property
    def _grid(self) -> Array:
        half = np.sqrt(self.rho) * np.linspace(0.0, 9.0, 2001)
        return np.concatenate([-half[:0:-1], half])

    @cached_property
    def symmetric(self) -> bool:
        p = self.probability(self._grid)
        mirrored = all(-kink in self.kinks for kink in self.kinks)
        return bool(np.abs(p + p[::-1] - 1.0).max() < 1e-14) and mirrored

    @cached_property
    def clean(self) -> Steps:
        def excess(field: float) -> float:
            return float(self.probability(np.array([field]))[0]) - 0.5

        grid = self._grid
        above = self.probability(grid) > 0.5
        changes = np.flatnonzero(above[1:] != above[:-1])
        roots = (_change(excess, grid[i], grid[i + 1]) for i in changes)
        return Steps(tuple(roots), 1 if above[0] else -1, self.rho)

    @cached_property
    def _cuts(self) -> tuple[float, ...]:
        """Fields that cut the averages: kinks, and a ladder around each steep change of label."""
        ladder = np.array([-64.0, -16.0, -4.0, 0.0, 4.0, 16.0, 64.0])
        cuts = list(self.kinks)
        for change in self.clean.changes:
            step = 1e-6 * np.sqrt(self.rho)
            below, above = self.probability(np.array([change - step, change + step]))
            width = 0.5 * step / max(abs(above - below), 1e-300)
            if width < 0.2 * np.sqrt(self.rho):
                cuts.extend(change + width * ladder)
        return tuple(sorted(cuts))

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        x, V0 = np.broadcast_arrays(x, V0)
        deviation = np.sqrt(V0)
        reach = 9.0
        # along the label: fields y (x + deviation z)
        images = [np.clip((y * cut - x) / deviation, -reach, reach) for cut in self._cuts[::y]]
        cuts = [np.full(x.shape, -reach), *images, np.full(x.shape, reach)]
        nodes, weights = gauss_legendre(12, self.halvings)
        Z, Z1, Z2 = np.zeros((3, *x.shape))
        for low, high in zip(cuts[:-1], cuts[1:], strict=True):
            for node, weight in zip(nodes, weights, strict=True):
                z = low + (high - low) * node
                p = self.probability(y * (x + deviation * z))
                mass = (weight * (high - low)) * normal_density(z) * (p if y > 0 else 1.0 - p)
                Z += mass
                Z1 += mass * z
                Z2 += mass * (z * z - 1.0)
        return Z, Z1 / deviation, Z2 / V0

    def landmarks(self, y: int, V0: Array) -> Array:
        width = np.sqrt(V0)[:, None]
        centres = sorted({*self.kinks, *self.clean.changes})
        marks = [y * c + width * _LADDER[2:-2] for c in centres]
        return np.concatenate([np.empty((len(V0), 0)), *marks], axis=1)


def _change(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that has different signs at `low` and `high` changes it."""
    from scipy import optimize

    root: float = optimize.bisect(function, low, high, xtol=1e-15)
    return root


REGISTRY: dict[str, type[Teacher]] = {"linear": Linear, "sign": Sign, "logistic": Logistic}
