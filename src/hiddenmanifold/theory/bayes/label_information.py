r"""Information in labels, for a predictor that knows the field up to a Gaussian posterior.

Given the training set the field of a new sample is :math:`N(\omega, V_0)`, and over samples
:math:`\omega \sim N(0, q)` with :math:`q + V_0 = \rho`. The Fisher information of a
label, and the error of predicting the more probable label (or the mean, if labels are real), are
functions of :math:`\ell = \log(q/V_0)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array, Integers, chunks
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import IncompatibleIngredientsError
from hiddenmanifold.numerics.panels import Panels, refine
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.teachers import BinaryTeacher, Law, Linear, Teacher, binary
from hiddenmanifold.teachers.averaging import (
    FINEST,
    ORDER,
    SETTLED,
    edges_along,
    fan_of,
    law_on_panels,
)
from hiddenmanifold.teachers.noises import Gaussian
from hiddenmanifold.theory.labels_side.channel import COLLAPSED
from hiddenmanifold.theory.labels_side.proximal_curve import RULES
from hiddenmanifold.theory.scores.errors_of_labels import test_error

STEP = 0.25
"""Distance of the nodes at which the labels' information is tabulated, in ℓ."""
TABLE_LEVEL = 1
"""Level of quadrature of the table."""
ENTROPY_LEVEL = 3
"""Fineness of the quadrature for the entropy of labels, which only ranks solutions."""
IMPOSSIBLE = 1e-290
"""A probability below this is zero."""
SILENT = 1e-200
"""Lower bound on the information, which vanishes if all labels are the same."""
NARROWEST = 1e-10
"""Rounding error of the nodes, relative to the width of a change of label, that is tolerable."""
ROUNDED = 1e-12
"""A probability below this may have been lost to rounding."""
STEEPEST = 16.0
"""What :math:`2\\log J` may be for a rule with J jumps, see `BinaryInformation.highest`."""
BLOCK = 512
"""Points whose nodes are handled together."""
EVEN = 1e-9
"""Difference of two probabilities below which the labels count as equally probable."""


@dataclass(frozen=True)
class Information:
    r"""Fisher information of labels about :math:`\omega`, arrays (points,).

    Attributes
    ----------
    log_share : array
        :math:`\log\eta`, with :math:`\eta = E V_0 \le 1` the share of the Fisher information that
        the field itself would give.
    slope : array
        Its derivative by :math:`\ell`.
    error : array
        Probability that the nodes miss, or relative rounding error of the nodes if larger.
    """

    log_share: Array
    slope: Array
    error: Array


@dataclass(frozen=True)
class LabelInformation:
    """Properties of a label rule that determine the Bayes-optimal predictor."""

    teacher: Any
    unique: ClassVar[bool]
    """Whether there is exactly one fixed point, however many labels there are."""

    @property
    def rho(self) -> float:
        """Second moment of the teacher's weights."""
        return float(self.teacher.rho)

    def moments(self, ell: Array) -> tuple[Array, Array]:
        r"""The overlap q and the remaining variance :math:`V_0`, both to full precision."""
        return self.rho * special.expit(ell), self.rho * special.expit(-ell)

    @property
    def prior_information(self) -> float:
        """The Fisher information E of a label when nothing is known, at q = 0."""
        raise NotImplementedError

    def highest(self, log_ratio: Array) -> Array:
        r"""An :math:`\ell` above all fixed points, given log(n/d)."""
        raise NotImplementedError

    def information(self, ell: Array, level: int) -> Information:
        """Information of the labels, on a given level of quadrature."""
        raise NotImplementedError

    def negentropy(self, ell: Array) -> Array:
        r""":math:`\sum_y E_\omega Z_y \log Z_y`."""
        raise NotImplementedError

    def errors(self, ell: Array) -> tuple[Array, Array]:
        """Least error against noisy labels, and against the noiseless rule."""
        raise NotImplementedError


@dataclass(frozen=True)
class Table:
    """The labels' information at equidistant ℓ, interpolated by cubics."""

    ell: Array
    log_share: Array
    slope: Array

    @classmethod
    def of(cls, labels: LabelInformation, ell: Array) -> Table:
        """The table of a label rule at nodes a `STEP` apart."""
        known = labels.information(ell, TABLE_LEVEL)
        return cls(ell, known.log_share, known.slope)

    def __call__(self, ell: Array) -> tuple[Array, Array]:
        """The interpolated log η and its slope."""
        position = (ell - self.ell[0]) / STEP
        i = np.clip(position.astype(np.intp), 0, len(self.ell) - 2)
        t = position - i
        low, high = self.log_share[i], self.log_share[i + 1]
        a, b = STEP * self.slope[i] - (high - low), (high - low) - STEP * self.slope[i + 1]
        mixed = a * (1 - t) + b * t
        value = low + t * (high - low) + t * (1 - t) * mixed
        slope = high - low + (1 - 2 * t) * mixed + t * (1 - t) * (b - a)
        return value, slope / STEP

    @property
    def growth(self) -> float:
        """Largest slope of log E, which is log η - log V0."""
        return float((self.slope + special.expit(self.ell)).max())


def information_of(teacher: Teacher) -> LabelInformation:
    """The `LabelInformation` of a teacher."""
    if isinstance(teacher, Linear) and isinstance(teacher.law, Gaussian):
        return RealInformation(teacher)
    if teacher.task is Task.REGRESSION:
        raise IncompatibleIngredientsError(
            f"teacher {teacher} has labels whose Bayes-optimal error is not known here: "
            "bayes_optimal takes labels ±1, and linear labels with normal noise"
        )
    if teacher.displaces:
        return ClassInformation(binary(teacher))
    return BinaryInformation(binary(teacher))


@dataclass(frozen=True)
class RealInformation(LabelInformation):
    r"""Real labels: :math:`E = 1/(\Delta + V_0)`, and the error is :math:`\Delta + V_0`.

    Then u(Δ + V0) grows with u, so that there is one fixed point.
    """

    teacher: Linear
    unique = True

    @property
    def prior_information(self) -> float:
        return 1.0 / (self.teacher.law.variance + self.rho)

    def highest(self, log_ratio: Array) -> Array:
        # q/V0 <= u <= rho (n/d)/noise; noiseless labels may be learned to the last digit
        bound: Array = log_ratio + np.log(self.rho / (self.teacher.law.variance + COLLAPSED))
        return bound

    def information(self, ell: Array, level: int) -> Information:
        q, V0 = self.moments(ell)
        noise = self.teacher.law.variance + COLLAPSED
        slope = -q / self.rho * noise / (noise + V0)
        return Information(-np.log1p(noise / V0), slope, np.zeros_like(ell))

    def negentropy(self, ell: Array) -> Array:
        _, V0 = self.moments(ell)
        return -0.5 * np.log(2 * math.pi * math.e * (self.teacher.law.variance + V0))

    def errors(self, ell: Array) -> tuple[Array, Array]:
        _, V0 = self.moments(ell)
        return self.teacher.law.variance + V0, V0


@dataclass(frozen=True)
class ClassInformation(LabelInformation):
    """Classes: a sample times its label is the centre plus white noise, and E = 1."""

    teacher: BinaryTeacher
    unique = True
    prior_information = 1.0

    def highest(self, log_ratio: Array) -> Array:
        bound: Array = log_ratio + np.log(self.rho)
        return bound

    def information(self, ell: Array, level: int) -> Information:
        q, V0 = self.moments(ell)
        return Information(np.log(V0), -q / self.rho, np.zeros_like(ell))

    def negentropy(self, ell: Array) -> Array:
        plus, minus, _ = self.teacher.label_marginals
        entropy = float(special.entr(plus) + special.entr(minus))
        return self.moments(ell)[0] / 2 - entropy

    def errors(self, ell: Array) -> tuple[Array, Array]:
        q, V0 = self.moments(ell)
        error = least_error(self.teacher, np.sqrt(q), V0)
        return error, error


@dataclass(frozen=True)
class BinaryInformation(LabelInformation):
    r"""Labels ±1: averages over panels; the error is :math:`E_\omega \min(Z_+, Z_-)`."""

    teacher: BinaryTeacher
    unique = False

    @property
    def prior_information(self) -> float:
        plus, minus, slope = self.teacher.label_marginals
        return sum(slope**2 / Z for Z in (plus, minus) if Z > 0)

    def highest(self, log_ratio: Array) -> Array:
        # J jumps of the rule have E <~ J/sqrt(q V0): there is no fixed point with q/V0 > (J n/d)²
        bound: Array = 2 * np.logaddexp(0.0, log_ratio) + STEEPEST
        return bound

    @cached_property
    def resolved(self) -> float:
        r"""The :math:`\ell` beyond which a change of label is too narrow for its place."""
        V0 = self.rho * 10.0 ** -np.arange(0.0, 100.0)
        fine = np.flatnonzero(rounding(self.teacher, V0) <= NARROWEST)
        some_are_not = 0 < len(fine) < len(V0)
        return float(np.log(self.rho / V0[fine[-1]])) if some_are_not else np.inf

    def information(self, ell: Array, level: int) -> Information:
        at = np.minimum(ell, self.resolved)
        parts = [self._information(at[i : i + BLOCK], level) for i in range(0, len(at), BLOCK)]
        E, dE, error = np.concatenate([np.empty((3, 0)), *parts], axis=1)
        q, V0 = self.moments(at)
        E = np.maximum(E, SILENT)
        slope = q / self.rho * (V0 * dE / E - 1.0)
        beyond = ell > at
        if beyond.any():  # jumps of the rule have E ~ 1/sqrt(V0), and smooth changes a constant E
            power = np.where(slope > -0.75, -0.5, -1.0)
            error = np.where(beyond, np.maximum(error, np.abs(slope - power)), error)
            slope = np.where(beyond, power, slope)
        return Information(np.log(V0) + np.log(E) + slope * (ell - at), slope, error)

    def _information(self, ell: Array, level: int) -> Array:
        r"""E, :math:`dE/dq = \sum_y E_\omega Z_y (\partial^2_\omega \log Z_y)^2`, and the error."""
        q, V0 = self.moments(ell)
        slope = np.sqrt(q)
        # if both labels are alike, one is averaged and counted twice
        both = not self.teacher.symmetric
        total = np.zeros((3, len(ell)))
        for y in (1, -1) if both else (1,):
            panels, (Z, Z1, Z2) = self._law(y, slope, V0, level)
            _raise_lost(Z, Z1, Z2, V0[panels.row])
            inverse = np.divide(1.0, Z, out=np.zeros_like(Z), where=Z > IMPOSSIBLE)
            score = Z1 * inverse
            terms = (Z1 * score, Z * (Z2 * inverse - score * score) ** 2, Z)
            total += np.array([panels.sum(term) for term in terms])
        E, dE, norm = total if both else 2 * total
        return np.array([E, dE, np.maximum(np.abs(norm - 1.0), rounding(self.teacher, V0))])

    def negentropy(self, ell: Array) -> Array:
        q, V0 = self.moments(ell)
        slope, total = np.sqrt(q), np.zeros(len(ell))
        for y in (1, -1):
            panels, (Z, _, _) = self._law(y, slope, V0, ENTROPY_LEVEL)
            Z = np.maximum(Z, 0.0)
            total += panels.sum(special.xlogy(Z, Z))
        return total

    def _law(self, y: int, slope: Array, V0: Array, level: int) -> tuple[Panels, Law]:
        """Panels of the posterior's mean, in its deviation, and the label law on them."""
        edges = edges_along(self.teacher, y, slope, V0, fan_of(self.teacher))
        return law_on_panels(self.teacher, y, slope, V0, edges, rule=RULES[level])

    def errors(self, ell: Array) -> tuple[Array, Array]:
        q, V0 = self.moments(ell)
        slope, clean = np.sqrt(q), self.teacher.clean
        noisy = least_error(self.teacher, slope, V0)
        return noisy, noisy if clean == self.teacher else least_error(clean, slope, V0)


@np.errstate(divide="ignore")  # a derivative may vanish
def _raise_lost(Z: Array, Z1: Array, Z2: Array, V0: Array) -> None:
    r"""Raise, in place, a tiny Z that rounding has left too small for its derivatives.

    Of all rules with a given Z a threshold has the largest slope, :math:`\sqrt{V_0}|Z'| \le
    \phi(t)` with :math:`\Phi(-t) = Z`, and a window or its complement the largest curvature,
    :math:`V_0|Z''| \le 2t\phi(t)` with :math:`2\Phi(-t) = Z`, so that :math:`V_0|Z''| \le (1 +
    t^2) Z`. Where Z is a difference of numbers near one it may break this: :math:`Z'^2/Z` explodes.
    """
    row, column = np.nonzero(Z < ROUNDED)
    slope = np.minimum(np.sqrt(2 * np.pi * V0[row]) * np.abs(Z1[row, column]), 1.0)
    bend = np.minimum(V0[row] * np.abs(Z2[row, column]), 1.0)
    by_slope = special.ndtr(-np.sqrt(-2.0 * np.log(slope)))
    by_bend = bend / (5.0 - 2.0 * np.log(bend))  # t² < 4 - 2 log(V0 |Z''|)
    Z[row, column] = np.maximum(Z[row, column], np.maximum(by_slope, by_bend))


def rounding(teacher: BinaryTeacher, V0: Array) -> Array:
    """Relative rounding error of nodes where the label changes within a short interval."""
    marks = teacher.landmarks(1, V0)
    if marks.shape[1] < 2:
        return np.zeros(len(V0))
    with np.errstate(divide="ignore"):
        relative: Array = np.finfo(float).eps * np.abs(marks).max(1) / (marks[:, 1] - marks[:, 0])
    return relative


def least_error(teacher: BinaryTeacher, slope: Array, V0: Array) -> Array:
    r"""Error :math:`E_\omega \min(Z_+, Z_-)` of predicting the more probable label.

    Parameters
    ----------
    teacher : BinaryTeacher
        The rule of the labels.
    slope, V0 : arrays (points,)
        Deviation of the posterior's mean, and the posterior's variance.

    Returns
    -------
    array (points,)
        NaN where the integral did not settle.
    """
    if teacher.pivot is not None:  # the side of it decides
        with np.errstate(divide="ignore"):
            bias = -teacher.pivot / slope if teacher.pivot else np.zeros_like(slope)
        return test_error(teacher, slope, V0, bias)

    def error(some: Integers, halvings: int) -> tuple[Array, Array]:
        parts = [_least_error(teacher, slope[i], V0[i], halvings) for i in chunks(some, BLOCK)]
        found = np.concatenate(parts)
        return found, SETTLED * found + np.finfo(float).eps

    return refine(error, slope.shape, range(FINEST + 1))


def _least_error(teacher: BinaryTeacher, slope: Array, V0: Array, halvings: int) -> Array:
    """The same on panels that are halved, and cut where the more probable label changes."""

    def both(xi: Array, row: Integers) -> tuple[Array, Array, Array]:
        """Z of both labels, and the slope of their difference in the deviation xi."""
        (plus, up, _), (minus, down, _) = (
            teacher.label_law(y, y * slope[row, None] * xi, V0[row, None]) for y in (1, -1)
        )
        return plus, minus, slope[row, None] * (up + down)

    cuts = edges_along(teacher, 1, slope, V0, fan_of(teacher))
    inner = np.linspace(0.0, 1.0, 2**halvings, endpoint=False)
    split = cuts[:, :-1, None] + np.diff(cuts)[..., None] * inner
    cuts = np.concatenate([split.reshape(len(slope), -1), cuts[:, -1:]], axis=1)
    plus, minus, _ = both(cuts, np.arange(len(slope)))
    ahead = np.sign(plus - minus)
    row, column = np.nonzero(ahead[:, :-1] * ahead[:, 1:] < 0)
    direction = ahead[row, column + 1]

    def lead(xi: Array, i: Integers) -> tuple[Array, Array]:
        plus, minus, rise = (law[:, 0] for law in both(xi[:, None], row[i]))
        return direction[i] * (plus - minus), direction[i] * rise

    bracket = cuts[row, column], cuts[row, column + 1]
    changes = cuts[:, :-1].copy()  # the same cuts again, where the label does not change
    changes[row, column] = increasing_root(lead, bracket, EVEN)
    panels = Panels.between(np.sort(np.concatenate([cuts, changes], axis=1)), (ORDER, 0))
    plus, minus, _ = both(panels.nodes, panels.row)
    return panels.sum(np.minimum(plus, minus))
