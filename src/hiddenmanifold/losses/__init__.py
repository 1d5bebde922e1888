r"""Convex losses and their proximal maps.

Every loss is a convex function :math:`\rho(s)` of one scalar, the *shortfall*

* regression: :math:`s = y - f`, the residual;
* classification, :math:`y = \pm 1`: :math:`s = a - y f`, how far the margin :math:`y f` falls short
  of the anchor :math:`a` (1 for square, Huber, absolute and the hinges, so that
  :math:`|y - f| = |1 - y f|`; 0 for the logistic loss).

Writing a loss around its own centre keeps full relative precision where the proximal point is
within :math:`10^{-10}` of the anchor, which happens when :math:`V \sim 10^{10}`.

A loss is defined by its value, two derivatives and its kinks (points where the first or the second
derivative jumps). Everything else, the proximal map included, follows from these.
"""

from hiddenmanifold.losses.base import Loss, check_loss
from hiddenmanifold.losses.custom import Custom
from hiddenmanifold.losses.named import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    SmoothedHinge,
    Square,
    SquaredHinge,
)

__all__ = [
    "Absolute",
    "Custom",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "SmoothedHinge",
    "Square",
    "SquaredHinge",
    "check_loss",
]

REGISTRY: dict[str, type[Loss]] = {
    "square": Square,
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "smoothed_hinge": SmoothedHinge,
    "huber": Huber,
    "absolute": Absolute,
}
