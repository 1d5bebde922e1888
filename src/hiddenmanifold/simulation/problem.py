r"""Exact minimisers of :math:`\sum_i \rho(s_i) + \tfrac\lambda2|w|^2` with a certificate.

Classification and regression share one form: the shortfalls are :math:`s = t - Bw - bv`, with
:math:`B = \mathrm{diag}(y)A, t = a, v = y` or :math:`B = A, t = y, v = 1`, where
:math:`A = X/\sqrt p`. Losses of label and prediction have :math:`B = A, t = 0, v = 1` and a
:math:`\rho` of each label, the loss of :math:`f = -s` in excess of its least value. The optimum
obeys :math:`\lambda w = B^\top h` with :math:`h_i \in \partial\rho(s_i)`, and
:math:`v\cdot h = 0` if the intercept is free.

The certificate bounds the relative distance of the objective from its minimum, up to rounding. For
smooth losses :math:`\min_b` of the objective is :math:`\lambda`-strongly convex in w, which leaves
:math:`|\lambda w - B^\top h|^2/2\lambda` at the best b; for the others it is the duality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import ConvexLoss, LabelLoss, Loss, of_shortfall

GOOD = 1e-10
"""Relative distance from the minimum that every fit aims for, and most stay far below."""
ROUNDING = 1e-14
"""Relative size of an objective that is known to no digit, in units of `Shortfalls.unit`."""
USUAL = 8
"""Binary exponents of scales at which features are fitted as they are. No step overflows there;
yet the steps of an intercept and of weights are measured against one another, so that other units
would change the last digits of fits that need none."""
LARGEST = 1000
"""Binary exponent of a number that leaves some room below the largest, as its inverse does."""
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Fit:
    """A minimiser: weights, intercept, objective and how far it may be above the minimum.

    That distance is relative to the objective, for losses of label and prediction to its part above
    the least loss of the labels.
    """

    w: Array
    b: float
    objective: float
    optimality: float


@dataclass(frozen=True)
class Weighted(Loss):
    """The loss of samples that have a weight each."""

    loss: Loss
    weights: Array

    def value(self, s: Array) -> Array:
        return self.weights * self.loss.value(s)

    def derivative(self, s: Array) -> Array:
        return self.weights * self.loss.derivative(s)

    def second_derivative(self, s: Array) -> Array:
        return self.weights * self.loss.second_derivative(s)


@dataclass(frozen=True)
class Shortfalls:
    """The data of a fit in the form s = t - B w - b v; `unit` is the size of the labels."""

    B: Array
    t: Array
    v: Array
    free: bool
    unit: float

    @classmethod
    def of(
        cls,
        loss: ConvexLoss,
        task: Task,
        X: Array,
        y: Array,
        *,
        intercept: bool,
        scale: float = 1.0,
    ) -> Shortfalls:
        """Bring features, in units of `scale`, and labels into the common form."""
        root = scale * np.sqrt(X.shape[1])
        if isinstance(loss, LabelLoss):
            unit = float((1.0 + np.abs(loss.least(y))).sum())
            return cls(X / root, np.zeros(len(y)), np.ones(len(y)), intercept, unit)
        if task is Task.REGRESSION:
            return cls(X / root, y, np.ones(len(y)), intercept, float(np.abs(y).sum()))
        t = np.full(len(y), of_shortfall(loss).anchor)
        return cls(X * (y / root)[:, None], t, y, intercept, 1.0 + float(np.abs(t).sum()))

    def __call__(self, w: Array, b: float) -> Array:
        return self.t - self.B @ w - b * self.v

    @property
    def tall(self) -> bool:
        """Whether there are more samples than weights."""
        return len(self.B) > len(self.B.T)

    @cached_property
    def gram(self) -> Array:
        """BBᵀ."""
        return self.B @ self.B.T

    @cached_property
    def squares(self) -> Array:
        """Squared lengths of the rows of B."""
        lengths: Array = np.einsum("ij,ij->i", self.B, self.B)
        return lengths

    def gram_of(self, rows: Integers) -> Array:
        """The block of BBᵀ of some samples."""
        return self.B[rows] @ self.B[rows].T if self.tall else self.gram[np.ix_(rows, rows)]

    def through_weights(self, h: Array) -> Array:
        """BBᵀh, by the cheaper way."""
        return self.B @ (self.B.T @ h) if self.tall else self.gram @ h

    def relative(self, gap: float, objective: float) -> float:
        """A gap in units of the objective, or of a floor that rounding sets if that is larger.

        An objective far smaller than the labels is a sum of shortfalls that are mostly rounding:
        it is judged by the floor, 1e-14 of the labels' size, not by its own digits.
        """
        floor = max(ROUNDING * self.unit, float(np.finfo(float).tiny))
        return float(gap) / max(float(objective), floor)

    def best_intercept(self, loss: Loss, fields: Array, b: float) -> float:
        """The intercept that is best for given fields B w, to rounding, starting from `b`.

        Rounding of every shortfall, too, moves the slope.
        """
        size = float(np.abs(fields).max() + np.abs(self.t).max()) + 1.0

        def slope(b: float) -> tuple[float, float, float]:
            s = self.t - fields - b * self.v
            h, bend = loss.derivative(s), float(loss.second_derivative(s).sum())
            return -float(self.v @ h), bend, max(float(np.abs(h).sum()), bend * (size + abs(b)))

        return convex_minimum(slope, b, reach=size)


def convex_minimum(
    slope: Callable[[float], tuple[float, float, float]], x: float, *, reach: float
) -> float:
    """Where a convex function of one number is least, to rounding, starting from `x`.

    Its slope is monotone: Newton's method in a bracket, bisection where the slope is constant.
    `slope` returns the slope, its derivative, and the size of the terms that may cancel in it;
    `reach` is the longest of the first steps.
    """
    low, high = -np.inf, np.inf
    for turn in range(100):
        here, bend, terms = slope(x)
        if abs(here) <= EPS * terms < np.inf:
            break
        low, high = (low, x) if here > 0 else (x, high)
        guess = x - here / bend if bend > 0 and turn < 20 else np.nan
        guess = x + np.clip(guess - x, -reach, reach)
        if not low < guess < high:
            unbounded = np.isinf(high - low)
            guess = x - np.copysign(reach, here) if unbounded else 0.5 * (low + high)
        if guess in (low, high):
            break
        x, reach = float(guess), 4 * reach
    return x


def scaled(X: Array, lams: Array) -> tuple[float, Array]:
    """The power of two c next to the root mean square of features of unusual size, and λ/c².

    The fit of X/c at λ/c² is that of X at λ, with c times the weights, and no digit is lost. Where
    λ/c² would be no number, it is taken to be so small that no objective knows.
    """
    rms = linalg.norm(X.ravel("K"), check_finite=False) / np.sqrt(X.size)  # does not overflow
    exponent = np.rint(np.log2(rms)) if rms else 0.0
    if abs(exponent) <= USUAL:
        return 1.0, lams
    least = 2.0**-LARGEST
    finite = 0.5 * (np.log2(max(lams.max(), least)) - LARGEST)  # nor does λ/c²
    c = float(2.0 ** np.clip(exponent, np.ceil(finite), LARGEST))
    return c, np.maximum(lams / c / c, least * (lams > 0))


def solver(matrix: Array, ridge: float) -> Callable[[Array], Array]:
    """Solver of (matrix + ridge) x = r by Cholesky's factors, which overwrite the matrix."""
    matrix[np.diag_indices_from(matrix)] += ridge
    # by columns, as LAPACK wants it: a symmetric matrix need not be copied for that
    factor = linalg.cho_factor(matrix.T, check_finite=False, overwrite_a=True)
    return lambda r: linalg.cho_solve(factor, r, check_finite=False)


def certified(loss: Loss, data: Shortfalls, lam: float, w: Array, b: float) -> Fit:
    """The fit of a smooth loss with given weights and, if it is free, the intercept best for them.

    Its bound is that of strong convexity.
    """
    fields = data.B @ w
    b = data.best_intercept(loss, fields, b) if data.free else b
    s = data.t - fields - b * data.v
    gradient = lam * w - data.B.T @ loss.derivative(s)
    objective = float(loss.value(s).sum() + 0.5 * lam * (w @ w))
    return Fit(w, b, objective, data.relative(float(gradient @ gradient) / (2 * lam), objective))
