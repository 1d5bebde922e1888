r"""Heads: linear models trained by any loss. The level is their own, the fall that of a ridge twin.

Leaving rows out, one by one or in tenths, gives the error of the very model. By how much it falls
with n is taken from ridge regression of strength :math:`\lambda/c`, where c is the mean curvature
of the loss: near its fit any smooth loss is a square. Only what a small part of the sample's
directions show is used, and more samples never make a fit worse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.misclassification import with_half_an_error, worst_rate
from hiddenmanifold.data.predicted_errors import (
    Prediction,
    deviation,
    from_here,
    log_of,
    no_classes,
    unless_none,
)
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.losses import ConvexLoss

KINKED = 1.5
"""Losses with a kink are less like their twins: the power of their falls in bars."""

Doubts = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Head(ABC):
    """A linear model trained by some loss, as the sample at hand shows it.

    Attributes
    ----------
    loss, ridge
        What is fitted, and to what.
    lams : array (λ,)
        Regularisations.
    objective : array (λ,)
        The minimum of the fit to all.
    """

    loss: ConvexLoss
    ridge: Ridge
    lams: Array
    objective: Array

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, str]:
        """The names of error and loss in the table of `deviation`."""

    @property
    @abstractmethod
    def classified(self) -> bool:
        """Whether labels are classes."""

    @property
    @abstractmethod
    def errors(self) -> Array:
        """Errors of rows left out, (N, λ): whether wrong, or squared residuals."""

    @property
    @abstractmethod
    def losses(self) -> Array:
        """Their losses, (N, λ)."""

    @property
    @abstractmethod
    def fitted_losses(self) -> Array:
        """The losses of rows in the fit to all, (N, λ)."""

    @property
    @abstractmethod
    def alone(self) -> float:
        """The minimum for an intercept alone."""

    @abstractmethod
    def twins(
        self, n: Array, index: Integers, p: Array | None = None
    ) -> tuple[Fits, Array, Array | None]:
        """Fits of the ridge twins, and the falls (2, fits) of error and loss to which they lead.

        Of several classes also the confusion (K, K, fits) of the moved scores.
        """

    def doubts(self, here: Fits, home: Fits, index: Integers) -> tuple[Doubts, Doubts]:
        """What more `deviation` is told of error and loss, and of their falls from `home`."""
        return ({}, {}), ({}, {})

    @property
    def levels(self) -> Array:
        """Error and loss (2, λ) at the number of rows that were fitted."""
        error = self.errors.mean(0)
        if self.classified:
            error = with_half_an_error(error, self.ridge.n)
        return np.array([error, self.losses.mean(0)])

    @property
    def deviations(self) -> Array:
        """Their relative standard errors."""
        N, level = self.ridge.n, self.levels
        spread = np.array([self.errors.std(0, ddof=1), self.losses.std(0, ddof=1)])
        relative: Array = spread / np.sqrt(N) / np.maximum(level, 1e-300)
        if self.classified:
            relative[0] = counting(level[0], N)
        return relative

    def predicted(self, n: Array, index: Integers, p: Array | None = None) -> Prediction:
        """Errors of fits to n samples, with their bars."""
        N, every = self.ridge.n, np.arange(len(self.lams))
        fits, falls, confusion = self.twins(n, index, p)
        home, now, _ = self.twins(np.full(len(every), float(N)), every)
        levels, falls = self.levels[:, index] * now[:, index], falls / now[:, index]
        if self.classified:
            chance = worst_rate(self.ridge.classes)
            levels[0] = np.minimum(levels[0], chance)
            falls[0] = np.minimum(falls[0], chance / levels[0])
        levels = levels * falls
        steeper = falls**KINKED if self.loss.has_jumps else falls
        own = self.deviations[:, index]
        known = self.doubts(fits, home, index)
        s, s_fall = (
            np.array(
                [
                    deviation(f"{of}{kind}", each, fall, N, **how)
                    for kind, each, fall, how in zip(self.kinds, own, steeper, some, strict=True)
                ]
            )
            for of, some in zip(("", "fall of "), known, strict=True)
        )
        if self.classified:
            counted = self.errors.sum(0)[index]
            for bars in (s, s_fall):
                bars[0] = unless_none(counted, levels[0], N, bars[0])
        ratio = fits.training_loss / home.training_loss[index]
        ratio = np.minimum(ratio, self._most_of_training(n, index))
        spread = self.fitted_losses.std(0, ddof=1) * np.sqrt(N) / self.objective
        s_trained = np.hypot(spread[index], 0.5 * log_of(ratio))
        trained = self.objective[index] / N * np.where(np.isnan(fits.error), np.nan, ratio)
        return Prediction(
            np.array([*levels, trained]),
            np.array([*s, s_trained]),
            *from_here(n == N if p is None else None, falls, s_fall),
            fits.path.kappa,
            fits.resolved,
            *self.by_class(confusion, levels[0], falls[0], index),
        )

    def by_class(
        self, confusion: Array | None, error: Array, fall: Array, index: Integers
    ) -> tuple[Array, Array]:
        """Confusion (K, K, fits) at an error, and deviations of the errors of several classes."""
        return no_classes(len(index))

    def _most_of_training(self, n: Array, index: Integers) -> Array:
        """The largest factor of training losses: those of intercepts alone are never exceeded."""
        found: Array = self.alone / self.objective[index]
        return found * (1.0 - 1.0 / n) / (1.0 - 1.0 / self.ridge.n)


def counting(rate: Array, rows: Integers | int) -> Array:
    """Relative deviation of a rate that is counted among so many rows; folds share fits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.1 * np.sqrt((1.0 - rate) / (rate * rows))
