"""Any loss of label and score, given by its functions; and the check of such losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_scale
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses.base import STEP
from hiddenmanifold.losses.of_label import LabelLoss


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
