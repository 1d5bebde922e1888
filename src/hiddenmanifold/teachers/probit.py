"""Rules that are sums of normal distribution functions: sign, probit, logistic, steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import EXTREME, check_kinks, check_number, check_scale
from hiddenmanifold.compiled import CompiledLaw
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.numerics.special import logistic_as_probits, normal_density
from hiddenmanifold.teachers.base import BinaryTeacher, CompiledRows, Law

# Z is resolved by panels of 4.5 widths; a mixture of widths needs a longer, geometric ladder
LADDER = np.array([-36.0, -18.0, -9.0, -4.5, 0.0, 4.5, 9.0, 18.0, 36.0])


class ProbitSum(BinaryTeacher):
    r"""Rules of the form :math:`P(+|\nu) = o + \sum_k w_k \Phi((\nu - \tau_k)/\sqrt{\Delta_k})`.

    A Gaussian average of such a rule is again a sum of normal distribution functions, with
    :math:`\Delta_k + V_0` in place of :math:`\Delta_k`: no inner integral is ever computed.
    """

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        """Offset, weights, thresholds, variances."""
        raise NotImplementedError

    def probability(self, nu: Array) -> Array:
        r""":math:`P(+|\nu)`."""
        offset, weights, thresholds, variances = self._terms
        out = np.full(nu.shape, offset)
        for weight, threshold, variance in zip(weights, thresholds, variances, strict=True):
            distance = nu - threshold
            out += weight * (
                scipy.special.ndtr(distance / np.sqrt(variance)) if variance else distance > 0
            )
        return out

    @cached_property
    def symmetric(self) -> bool:
        offset, weights, thresholds, _ = self._terms
        return bool(np.all(thresholds == 0) and np.isclose(2 * offset + weights.sum(), 1.0))

    @cached_property
    def _probits(self) -> dict[int, CompiledLaw]:
        offset, weights, thresholds, variances = self._terms
        offsets = {1: offset, -1: 1.0 - offset - float(weights.sum())}
        laws = {}
        for y, constant in offsets.items():
            terms = np.array([weights, y * thresholds, variances])
            laws[y] = CompiledLaw(np.array([constant, 0.0, 0.0]), terms)
        return laws

    def probits(self, y: int) -> CompiledLaw:
        return self._probits[y]

    def compiled(self, y: int, V0: Array) -> Iterable[CompiledRows]:
        return [(slice(None), self._probits[y])]

    def label_weight(self, y: int, x: Array, V0: Array) -> Array:
        probits = self.probits(y)
        Z = np.zeros(np.broadcast_shapes(x.shape, V0.shape))
        for weight, threshold, variance in probits.terms.T:
            Z += weight * scipy.special.ndtr((x - threshold) / np.sqrt(V0 + variance))
        found: Array = Z + probits.constant[0]
        return found

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        probits, laws = self.probits(y), []
        for weight, threshold, variance in probits.terms.T:
            inverse = 1.0 / np.sqrt(V0 + variance)
            t = (x - threshold) * inverse
            slope = (weight * inverse) * normal_density(t)
            laws.append((weight * scipy.special.ndtr(t), slope, -inverse * t * slope))
        Z, Z1, Z2 = (reduce(np.add, terms) for terms in zip(*laws, strict=True))
        return Z + probits.constant[0], Z1, Z2

    def error_without_bias(self, slope: Array, V0: Array) -> Array | None:
        if not self.symmetric:
            return None
        offset, weights, _, variances = self._terms
        angles = np.arctan2(np.sqrt(V0[:, None] + variances), slope[:, None])
        return offset + angles @ weights / np.pi

    def label_variance(self, x: Array, V0: Array) -> Array:
        offset, weights, thresholds, variances = self._terms
        if len(weights) > 1:
            return super().label_variance(x, V0)
        # the mean square of one probit is a bivariate normal probability
        weight, variance = float(weights[0]), float(variances[0])
        z = (x - thresholds[0]) / np.sqrt(V0 + variance)
        left = np.sqrt(variance / (2.0 * V0 + variance)) if variance else np.zeros_like(V0)
        common = 2.0 * scipy.special.owens_t(z, left)
        mean = weight * (1.0 - 2.0 * offset - weight) * scipy.special.ndtr(z)
        found: Array = 4.0 * (offset * (1.0 - offset) + mean + weight**2 * common)
        return found

    def landmarks(self, y: int, V0: Array) -> Array:
        _, weights, thresholds, variances = self._terms
        ladder = LADDER if len(weights) > len(set(thresholds)) else LADDER[2:-2]
        width = np.sqrt(V0 + variances.min())[:, None]
        return np.concatenate([y * t + width * ladder for t in sorted(set(thresholds))], axis=1)


class ThresholdRule(ProbitSum):
    """Rules whose label changes around a single field -t, some labels being flipped."""

    threshold: float
    flip: float

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        check_number("flip", self.flip, 0.0, 0.5)
        if self.flip == 0.5:
            raise InvalidArgumentError(
                "flip", self.flip, "below 1/2: at 1/2 labels carry no information"
            )
        check_number("threshold", self.threshold, -35.0, 35.0)

    @property
    def pivot(self) -> float:
        return -self.threshold

    @cached_property
    def clean(self) -> Sign:
        return Sign(threshold=self.threshold, rho=self.rho)


@dataclass(frozen=True)
class Sign(ThresholdRule):
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
        super().__post_init__()
        check_number("noise", self.noise, 0.0, EXTREME)

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        return (
            self.flip,
            np.array([1.0 - 2.0 * self.flip]),
            np.array([-self.threshold]),
            np.array([self.noise]),
        )


@dataclass(frozen=True)
class Logistic(ThresholdRule):
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
        super().__post_init__()
        check_scale("slope", self.slope)

    def probability(self, nu: Array) -> Array:
        """By the logistic function itself: labels are drawn many times as quickly."""
        share: Array = scipy.special.expit(self.slope * (nu + self.threshold))
        return self.flip + (1.0 - 2.0 * self.flip) * share

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        weights, deviations = logistic_as_probits()
        return (
            self.flip,
            (1.0 - 2.0 * self.flip) * weights,
            np.full(len(weights), -self.threshold),
            (deviations / self.slope) ** 2,
        )


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

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        if self.first not in (1, -1):
            raise InvalidArgumentError("first", self.first, "1 or -1")
        if list(self.changes) != sorted(set(check_kinks(self.changes))):
            raise InvalidArgumentError("changes", self.changes, "increasing")

    @cached_property
    def _terms(self) -> tuple[float, Array, Array, Array]:
        if not self.changes:  # one term of no weight
            return float(self.first > 0), np.zeros(1), np.zeros(1), np.ones(1)
        signs = -self.first * np.where(np.arange(len(self.changes)) % 2, -1.0, 1.0)
        return float(self.first > 0), signs, np.array(self.changes), np.zeros(len(self.changes))

    @cached_property
    def clean(self) -> Steps:
        return self
