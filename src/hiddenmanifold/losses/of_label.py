r"""Losses :math:`\ell(y, f)` that are not functions of a residual or a margin.

Each is smooth and convex in the prediction f, for every label that it allows. Derivatives are by f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.checks import Task, check_count, check_scale
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import predictors
from hiddenmanifold.losses.base import ROUNDING, STEP, ConvexLoss, Loss
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

        def slope(end: float) -> Array:
            half, there = (self.derivative(y, np.full(y.shape, end * part)) for part in (0.5, 1.0))
            return np.where(np.abs(there) <= DECAYS * np.abs(half), 0.0, there)

        with np.errstate(over="ignore"):
            return slope(-FAR * self.scale), slope(FAR * self.scale)

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

    def minimiser(self, y: Array) -> Array:
        return self.loss.minimiser(y)

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * (self.minimiser(y) - f) ** 2

    def derivative(self, y: Array, f: Array) -> Array:
        return f - self.minimiser(y)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.ones_like(f)


@dataclass(frozen=True, init=False)
class PerLabel(LabelLoss):
    r"""Any loss :math:`\ell(y, f)` that is smooth and convex in f, given by vectorised functions.

    It is checked for the labels of a model when that is built: convex in f, and bounded below.

    Parameters
    ----------
    value, derivative, second_derivative : callable
        The loss and its derivatives by f; each takes arrays y and f of one shape.
    scale : float
        Length in f over which the second derivative changes.
    """

    functions: tuple[Callable[[Array, Array], Array], ...]
    scale: float

    def __init__(
        self,
        value: Callable[[Array, Array], Array],
        derivative: Callable[[Array, Array], Array],
        second_derivative: Callable[[Array, Array], Array],
        *,
        scale: float = 1.0,
    ) -> None:
        check_scale("scale", scale)
        functions = {
            "value": value,
            "derivative": derivative,
            "second_derivative": second_derivative,
        }
        for name, function in functions.items():
            if not callable(function):
                raise InvalidArgumentError(name, function, "a function of arrays y and f")
        object.__setattr__(self, "functions", tuple(functions.values()))
        object.__setattr__(self, "scale", float(scale))

    def value(self, y: Array, f: Array) -> Array:
        return self.functions[0](y, f)

    def derivative(self, y: Array, f: Array) -> Array:
        return self.functions[1](y, f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return self.functions[2](y, f)


def check_label_loss(loss: LabelLoss, y: Array) -> None:
    """Refuse a loss of labels y that is not finite, not convex, unbounded below or not matched.

    Raises
    ------
    InvalidArgumentError
        If a label or a function is wrong; the message names it, the label and the prediction.
    """
    allowed = loss.allows(y)
    if not allowed.all():
        raise InvalidArgumentError.because(
            "loss",
            f"{loss} does not allow the label {np.asarray(y)[~allowed][0]:g}",
            f"it needs {loss.labels}; choose another loss or label rule",
        )
    f, step = np.linspace(-12.0, 12.0, 97) * loss.scale, STEP * loss.scale
    Y, F = np.meshgrid(y, f, indexing="ij")

    def at(where: tuple[Any, ...]) -> str:
        return f"label {Y[where]:.4g} and prediction {F[where]:.4g}"

    values = {}
    for name in ("value", "derivative", "second_derivative"):
        try:
            found = np.asarray(getattr(loss, name)(Y, F), dtype=float)
        except Exception as error:
            raise InvalidArgumentError.because(
                name, f"raised {error!r} when it was given two arrays", "it must be vectorised"
            ) from error
        if found.shape != Y.shape or not np.isfinite(found).all():
            wrong = np.argwhere(~np.isfinite(np.broadcast_to(found, Y.shape)))
            where = f" at {at(tuple(wrong[0]))}" if len(wrong) else f", of shape {found.shape}"
            raise InvalidArgumentError.because(
                name,
                f"is not an array of finite numbers{where}",
                "it must be vectorised and finite",
            )
        values[name] = found
    bend = values["second_derivative"]
    if bend.min() < 0:
        raise InvalidArgumentError.because(
            "second_derivative",
            f"is {bend.min():.3g} at {at(np.unravel_index(bend.argmin(), bend.shape))}",
            "it must not be negative anywhere, because the theory needs a loss convex in f",
        )
    for name, of in (("derivative", "value"), ("second_derivative", "derivative")):
        function = getattr(loss, of)
        difference = (function(Y, F + step) - function(Y, F - step)) / (2 * step)
        size = 1.0 + np.abs(values[name]) + 1e-8 * np.abs(values[of]) / STEP
        distance = np.abs(difference - values[name]) / size
        if distance.max() > 1e-4 / min(1.0, loss.scale):
            where = at(np.unravel_index(distance.argmax(), distance.shape))
            raise InvalidArgumentError.because(
                name, f"is not the derivative of {of} at {where}", "correct one of the two"
            )
    left, right = loss.slopes_at_infinity(y)
    for slope, end in ((left, "-∞"), (-right, "∞")):
        if (slope > 0).any():
            raise InvalidArgumentError.because(
                "loss",
                f"{loss} falls without bound as f → {end} if the label is {y[slope > 0][0]:g}",
                "give a loss that is bounded below for every label",
            )
