r"""Exact minimisers of :math:`\sum_i \rho(s_i) + \tfrac\lambda2|w|^2` with a certificate.

Classification and regression share one form: the shortfalls are :math:`s = t - Bw - bv`, with
:math:`B = \mathrm{diag}(y)A, t = a, v = y` or :math:`B = A, t = y, v = 1`, where
:math:`A = X/\sqrt p`. The optimum obeys :math:`\lambda w = B^\top h` with
:math:`h_i \in \partial\rho(s_i)`, and :math:`v\cdot h = 0` if the intercept is free.

The certificate is a bound on the relative distance of the objective from its minimum: by strong
convexity :math:`|\lambda w - B^\top h|^2/2\lambda` for smooth losses, the duality gap otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.losses import Loss
from hiddenmanifold.registry import Task

Array = NDArray[np.float64]

GOOD = 1e-10
"""Relative distance from the minimum that every fit aims for, and most stay far below."""
ACCEPTED = 1e-7
"""The largest that counts as exact: rounding allows no better when λ makes the objective tiny."""
MAX_ITERATIONS = 60


@dataclass(frozen=True)
class Fit:
    """A minimiser: weights, intercept, objective and how far it may be above the minimum."""

    w: Array
    b: float
    objective: float
    optimality: float


@dataclass(frozen=True)
class Shortfalls:
    """The data of a fit in the form s = t - B w - b v."""

    B: Array
    t: Array
    v: Array
    free: bool

    @classmethod
    def of(cls, loss: Loss, task: Task, X: Array, y: Array, *, intercept: bool) -> Shortfalls:
        """Bring features and labels into the common form."""
        root = np.sqrt(X.shape[1])
        if task is Task.REGRESSION:
            return cls(X / root, y, np.ones(len(y)), intercept)
        return cls(X * (y / root)[:, None], np.full(len(y), loss.anchor), y, intercept)

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

    def gram_of(self, rows: NDArray[np.intp]) -> Array:
        """The block of BBᵀ of some samples."""
        return self.B[rows] @ self.B[rows].T if self.tall else self.gram[np.ix_(rows, rows)]

    def through_weights(self, h: Array) -> Array:
        """BBᵀh, by the cheaper way."""
        return self.B @ (self.B.T @ h) if self.tall else self.gram @ h


def gap_of(fit: Fit) -> float:
    """How far a fit may be above its minimum, for choosing the better of two."""
    return fit.optimality


def relative(gap: float, objective: float, data: Shortfalls) -> float:
    """A gap in units of the objective, or of rounding if the objective itself vanishes."""
    return float(gap / max(objective, 1e-14 * (1.0 + np.abs(data.t).sum())))


def certified(loss: Loss, data: Shortfalls, lam: float, w: Array, b: float) -> Fit:
    """A fit of a smooth loss with its bound: strong convexity in w, Newton decrement in b."""
    s = data(w, b)
    h = loss.derivative(s)
    gradient = lam * w - data.B.T @ h
    objective = float(loss.value(s).sum() + 0.5 * lam * (w @ w))
    gap = float(gradient @ gradient) / (2 * lam)
    if data.free:
        curvature = max(float(loss.second_derivative(s).sum()), 1e-300)
        gap += float(data.v @ h) ** 2 / (2 * curvature)
    return Fit(w, b, objective, relative(gap, objective, data))
