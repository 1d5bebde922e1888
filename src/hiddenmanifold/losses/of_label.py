r"""Losses :math:`\ell(y, f)` that are not functions of a residual or a margin.

Each is smooth and convex in the prediction f, for every label that it allows. Derivatives are by f.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.checks import Task, check_count
from hiddenmanifold.losses import predictors
from hiddenmanifold.losses.base import ROUNDING, ConvexLoss, Loss
from hiddenmanifold.numerics.roots import increasing_root

FAR = 40.0
"""How far out, in units of `scale`, a loss is taken to have the slope that it has at infinity."""
DECAYS = 0.9
"""A slope that falls by more than this factor on the second half of the way out decays to zero."""


class LabelLoss(ConvexLoss):
    r"""A loss :math:`\ell(y, f)`, smooth and convex in f.

    Attributes
    ----------
    scale : float
        Length in f over which the second derivative changes.
    labels : str
        The labels that the loss allows, in words, for error messages.
    """

    scale: float = 1.0
    labels: str = "any number"

    def allows(self, y: Array) -> Booleans:
        """Where the loss is defined for a label."""
        return np.isfinite(y)

    def value(self, y: Array, f: Array) -> Array:
        r""":math:`\ell(y, f)`."""
        raise NotImplementedError

    def derivative(self, y: Array, f: Array) -> Array:
        r""":math:`\partial_f\ell(y, f)`."""
        raise NotImplementedError

    def second_derivative(self, y: Array, f: Array) -> Array:
        r""":math:`\partial_f^2\ell(y, f)`."""
        raise NotImplementedError

    def minimiser(self, y: Array) -> Array:
        """The prediction of least loss for each label; ±inf if it is only approached there."""
        left, right = self.slopes_at_infinity(y)
        y = np.asarray(y, dtype=float)
        low, high = np.where(left < 0, -1e6, -np.inf), np.where(right > 0, 1e6, np.inf)
        known = np.isfinite(low) & np.isfinite(high)
        found = np.where(np.isinf(low), low, high)
        some = y[known]
        with np.errstate(over="ignore"):
            found[known] = increasing_root(
                lambda f, i: (self.derivative(some[i], f), self.second_derivative(some[i], f)),
                (low[known] * self.scale, high[known] * self.scale),
                start=np.zeros_like(some),
            )
        return found

    def least(self, y: Array) -> Array:
        """The least loss of each label."""
        with np.errstate(invalid="ignore"):
            return self.value(
                y, np.clip(self.minimiser(y), -700.0 * self.scale, 700.0 * self.scale)
            )

    def excess(self, y: Array, f: Array, minimum: tuple[Array, Array]) -> Array:
        """The loss above its least value; `minimum` is the `minimiser` and the `least` of y."""
        return self.value(y, f) - minimum[1]

    def slopes_at_infinity(self, y: Array) -> tuple[Array, Array]:
        """The slope as f → -∞ and as f → ∞, zero where it decays."""
        y = np.asarray(y, dtype=float)

        far = FAR * self.scale + 2.0 * np.abs(y)  # beyond predictions of the size of the label

        def slope(end: Array) -> Array:
            half, there = self.derivative(y, 0.5 * end), self.derivative(y, end)
            falls = np.abs(there) <= DECAYS * np.abs(half)
            return np.where(falls & np.isfinite(there) & (there * half >= 0.0), 0.0, there)

        with np.errstate(over="ignore"):
            return slope(-far), slope(far)

    def proximal(self, y: Array, omega: Array, V: Array) -> Array:
        r"""The η with :math:`\eta + V\ell'(y, \eta) = \omega`, for arrays that broadcast."""
        y, omega, V = np.broadcast_arrays(y, omega, V)
        shape = omega.shape
        y, omega, V = (np.ravel(a) for a in (y, omega, V))
        with np.errstate(over="ignore"):
            other = omega - V * self.derivative(y, omega)
        bracket = np.minimum(omega, other), np.maximum(omega, other)

        def curve(eta: Array, i: Integers) -> tuple[Array, Array]:
            with np.errstate(over="ignore"):
                push = V[i] * self.derivative(y[i], eta)
                return push - (omega[i] - eta), 1.0 + V[i] * self.second_derivative(y[i], eta)

        return increasing_root(curve, bracket, ROUNDING * np.abs(omega), omega).reshape(shape)

    def shortfall(self, task: Task, y: Array, f: Array) -> Array:
        return -f

    def of_labels(self, y: Array) -> Loss:
        return LossOfLabels(self, y)


@dataclass(frozen=True)
class LossOfLabels(Loss):
    """The loss of samples with given labels, in excess of its least value, of the shortfall -f."""

    loss: LabelLoss
    y: Array
    anchor = 0.0

    @cached_property
    def minimum(self) -> tuple[Array, Array]:
        """Where the loss of each label is least, and its least value."""
        return self.loss.minimiser(self.y), self.loss.least(self.y)

    def value(self, s: Array) -> Array:
        with np.errstate(over="ignore"):
            return self.loss.excess(self.y, -s, self.minimum)

    def derivative(self, s: Array) -> Array:
        with np.errstate(over="ignore"):
            return -self.loss.derivative(self.y, -s)

    def second_derivative(self, s: Array) -> Array:
        with np.errstate(over="ignore"):
            return self.loss.second_derivative(self.y, -s)


@dataclass(frozen=True)
class Poisson(LabelLoss):
    r"""Poisson deviance of counts with mean :math:`e^f`: :math:`e^f - y f`."""

    labels = "numbers of at least 0"
    predictor = predictors.Exp()

    def allows(self, y: Array) -> Booleans:
        return np.isfinite(y) & (np.asarray(y) >= 0)

    def value(self, y: Array, f: Array) -> Array:
        return np.exp(f) - y * f

    def derivative(self, y: Array, f: Array) -> Array:
        return np.exp(f) - y

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.exp(f) + 0.0 * y

    def minimiser(self, y: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(y)

    def least(self, y: Array) -> Array:
        found: Array = y - scipy.special.xlogy(y, y)
        return found

    def excess(self, y: Array, f: Array, minimum: tuple[Array, Array]) -> Array:
        with np.errstate(invalid="ignore"):  # of y = 0, which has no minimiser
            u = f - minimum[0]
            return np.where(y > 0, y * (np.expm1(u) - u), np.exp(f))  # keeps digits of large counts

    def slopes_at_infinity(self, y: Array) -> tuple[Array, Array]:
        return -np.asarray(y, dtype=float), np.full(np.shape(y), np.inf)

    def proximal(self, y: Array, omega: Array, V: Array) -> Array:
        return _log_of_wright(omega + V * y, V)


def _log_of_wright(x: Array, V: Array) -> Array:
    """The t with t + V e^t = x, which loses no digits however large V is."""
    W = scipy.special.wrightomega(x + np.log(V))
    with np.errstate(divide="ignore"):
        found: Array = np.where(W > 1e-3, np.log(W / V), x - W)
        return found


@dataclass(frozen=True)
class Gamma(LabelLoss):
    r"""Gamma deviance of positive labels with mean :math:`e^f`: :math:`y e^{-f} + f`."""

    labels = "numbers above 0"
    predictor = predictors.Exp()

    def allows(self, y: Array) -> Booleans:
        return np.isfinite(y) & (np.asarray(y) > 0)

    def value(self, y: Array, f: Array) -> Array:
        return y * np.exp(-f) + f

    def derivative(self, y: Array, f: Array) -> Array:
        return 1.0 - y * np.exp(-f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return y * np.exp(-f)

    def minimiser(self, y: Array) -> Array:
        return np.log(y)

    def least(self, y: Array) -> Array:
        return 1.0 + np.log(y)

    def excess(self, y: Array, f: Array, minimum: tuple[Array, Array]) -> Array:
        u = minimum[0] - f
        return np.expm1(u) - u

    def slopes_at_infinity(self, y: Array) -> tuple[Array, Array]:
        return np.full(np.shape(y), -np.inf), np.ones(np.shape(y))

    def proximal(self, y: Array, omega: Array, V: Array) -> Array:
        return np.log(y) - _log_of_wright(np.log(y) - omega + V, V)


@dataclass(frozen=True)
class Binomial(LabelLoss):
    r"""Binomial deviance of y successes in m trials: :math:`m\log(1 + e^f) - y f`.

    Parameters
    ----------
    trials : int
        The number m of trials.
    """

    trials: int = 1

    def __post_init__(self) -> None:
        check_count("trials", self.trials)

    @property
    def labels(self) -> str:  # type: ignore[override]
        return f"numbers from 0 to {self.trials}"

    @property
    def predictor(self) -> predictors.Predictor:  # type: ignore[override]
        return predictors.Logistic(float(self.trials))

    def allows(self, y: Array) -> Booleans:
        return (np.asarray(y) >= 0) & (np.asarray(y) <= self.trials)

    def value(self, y: Array, f: Array) -> Array:
        return self.trials * np.logaddexp(0.0, f) - y * f

    def derivative(self, y: Array, f: Array) -> Array:
        # of each side by its own tail, which keeps the digits of a slope that decays
        found: Array = np.where(
            f < 0,
            self.trials * scipy.special.expit(f) - y,
            (self.trials - y) - self.trials * scipy.special.expit(-f),
        )
        return found

    def second_derivative(self, y: Array, f: Array) -> Array:
        found: Array = self.trials * scipy.special.expit(f) * scipy.special.expit(-f) + 0.0 * y
        return found

    def minimiser(self, y: Array) -> Array:
        found: Array = scipy.special.logit(np.asarray(y) / self.trials)
        return found

    def least(self, y: Array) -> Array:
        m = self.trials
        share = np.asarray(y) / m
        found: Array = -m * (
            scipy.special.xlogy(share, share) + scipy.special.xlogy(1 - share, 1 - share)
        )
        return found

    def slopes_at_infinity(self, y: Array) -> tuple[Array, Array]:
        return -np.asarray(y, dtype=float), self.trials - np.asarray(y, dtype=float)


@dataclass(frozen=True)
class Interpolation(LabelLoss):
    """Half the square distance from each label's prediction of least loss.

    Without a penalty, models that can fit every sample minimise it together with the loss itself.
    """

    loss: LabelLoss
    quadratic = True

    def slopes_at_infinity(self, y: Array) -> tuple[Array, Array]:
        return np.full(np.shape(y), -np.inf), np.full(np.shape(y), np.inf)

    def minimiser(self, y: Array) -> Array:
        return self.loss.minimiser(y)

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * (self.minimiser(y) - f) ** 2

    def derivative(self, y: Array, f: Array) -> Array:
        return f - self.minimiser(y)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.ones_like(f)
