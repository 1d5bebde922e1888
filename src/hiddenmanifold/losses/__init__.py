r"""Convex losses and their proximal maps, and what is predicted from a score (`predictors`).

Most losses are a convex function :math:`\rho(s)` of one scalar, the *shortfall*

* regression: :math:`s = y - f`, the residual;
* classification, :math:`y = \pm 1`: :math:`s = a - y f`, how far the margin :math:`y f` falls short
  of the anchor :math:`a` (1 for square, Huber, absolute and the hinges, so that
  :math:`|y - f| = |1 - y f|`; 0 for the logistic loss).

Writing a loss around its own centre keeps full relative precision where the proximal point is
within :math:`10^{-10}` of the anchor, which happens when :math:`V \sim 10^{10}`.

A loss is defined by its value, two derivatives and its kinks (points where the first or the second
derivative jumps). Everything else, the proximal map included, follows from these.

Losses that depend on label and prediction in another way, as those of counts, are in `of_label`;
that of several scores is in `softmax`. `schemes` says which losses fit which labels.
"""

from typing import cast

from hiddenmanifold.losses.base import ConvexLoss, Loss, check_loss
from hiddenmanifold.losses.custom import Custom
from hiddenmanifold.losses.named import (
    Absolute,
    Expectile,
    Hinge,
    Huber,
    Insensitive,
    LogCosh,
    Logistic,
    Quantile,
    SmoothedHinge,
    Square,
    SquaredHinge,
)
from hiddenmanifold.losses.of_label import (
    Binomial,
    Gamma,
    LabelLoss,
    Poisson,
)
from hiddenmanifold.losses.per_label import PerLabel, check_label_loss
from hiddenmanifold.losses.softmax import Softmax

__all__ = [
    "Absolute",
    "Binomial",
    "ConvexLoss",
    "Custom",
    "Expectile",
    "Gamma",
    "Hinge",
    "Huber",
    "Insensitive",
    "LabelLoss",
    "LogCosh",
    "Logistic",
    "Loss",
    "PerLabel",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Softmax",
    "Square",
    "SquaredHinge",
    "check_label_loss",
    "check_loss",
    "of_shortfall",
]

REGISTRY: dict[str, type[ConvexLoss]] = {
    "square": Square,
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "smoothed_hinge": SmoothedHinge,
    "huber": Huber,
    "absolute": Absolute,
    "log_cosh": LogCosh,
    "quantile": Quantile,
    "expectile": Expectile,
    "insensitive": Insensitive,
    "poisson": Poisson,
    "gamma": Gamma,
    "binomial": Binomial,
    "softmax": Softmax,
}


def of_shortfall(loss: ConvexLoss) -> Loss:
    """A loss that is a function of the shortfall."""
    return cast("Loss", loss)
