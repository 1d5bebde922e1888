r"""Fits with other losses: the level is that of the loss itself, the fall that of a ridge twin.

Leaving samples out, one by one or in tenths, gives the error of the very model at N. By how much it
falls with n is taken from ridge regression of strength :math:`\lambda/c`, where c is the mean
curvature of the loss: near its fit any smooth loss is a square. Only what a small part of the
sample's directions show is used, and more samples never make a fit worse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.leave_one_out import FOLDS, LeftOut
from hiddenmanifold.data.misclassification import with_half_an_error
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.losses import Loss

RESOLVED = 0.3
"""Greatest D2/N' of the twin: beyond, a small sample's luck enters level and fall alike."""
POWERS = 0.5, 2.0
"""Range of `Head.power`: first order is too little for the largest falls."""


@dataclass(frozen=True)
class Head:
    """A linear model trained by some loss, as the sample at hand shows it.

    Attributes
    ----------
    task, loss, ridge
        What is fitted to what.
    found : LeftOut
        Fits at some regularisations `lams`, with and without samples.
    weights : array (N,), optional
        How many times each sample counts.
    """

    task: Task
    loss: Loss
    ridge: Ridge
    lams: Array
    found: LeftOut
    weights: Array | None = None

    @cached_property
    def curvature(self) -> Array:
        """The mean curvature of the loss; with kinks, its slope's over the scores' spread.

        A sample that counts several times has as many times the curvature.
        """
        short = self.found.shortfall
        a = np.ones((self.ridge.n, 1)) if self.weights is None else self.weights[:, None]
        if not self.loss.has_jumps:
            mean = (a * self.loss.second_derivative(self.found.fitted)).mean(0)
        else:
            away = short - short.mean(0)
            spread = np.maximum((away**2).mean(0), 1e-300)
            mean = (a * self.loss.derivative(short) * away).mean(0) / spread
        found: Array = np.maximum(mean, 1e-12)
        return found

    @cached_property
    def power(self) -> Array:
        r"""By how much faster the loss falls than the square error of the twin.

        An excess of square residuals :math:`\ell'/\ell''` costs half as much, times the curvature.
        """
        short = self.found.shortfall
        bend = self.loss.second_derivative(short).mean(0)
        own = replace(self, weights=None).curvature if self.loss.has_jumps else bend
        curvature = np.maximum(own, 1e-12)
        squares = (self.loss.derivative(short) ** 2).mean(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = squares / (2.0 * curvature * self.losses.mean(0))
        power: Array = np.clip(np.nan_to_num(found, nan=1.0), *POWERS)
        return power

    @cached_property
    def errors(self) -> Array:
        """Left-out errors (N, λ): whether wrong, or squared residuals."""
        short = self.found.shortfall
        if self.task is Task.CLASSIFICATION:
            return (short >= self.loss.anchor).astype(float)
        return short**2

    @cached_property
    def losses(self) -> Array:
        """Left-out losses (N, λ)."""
        return self.loss.value(self.found.shortfall)

    @property
    def fitted_losses(self) -> Array:
        """Those of the fit to all."""
        return self.loss.value(self.found.fitted)

    @property
    def objective(self) -> Array:
        """The minimum of the fit to all, (λ,)."""
        return self.found.objective

    @property
    def levels(self) -> Array:
        """Error and loss (2, λ) at the number of samples that were fitted."""
        error = self.errors.mean(0)
        if self.task is Task.CLASSIFICATION:
            error = with_half_an_error(error, self.ridge.n)
        return np.array([error, self.losses.mean(0)])

    @property
    def deviations(self) -> Array:
        """Their relative standard errors."""
        N = self.ridge.n
        level = self.levels
        spread = np.array([self.errors.std(0, ddof=1), self.losses.std(0, ddof=1)])
        relative = spread / np.sqrt(N) / np.maximum(level, 1e-300)
        if self.task is Task.CLASSIFICATION:
            relative[0] = 1.1 * np.sqrt((1.0 - level[0]) / (level[0] * N))
        found: Array = relative
        return found

    def twins(self, n: Array, index: Integers, p: Array | None = None) -> tuple[Fits, Array]:
        """Fits of the ridge twins, and the falls (2, fits) of error and loss to which they lead."""
        lam = self.lams / self.curvature
        share = 1.0 - 1.0 / FOLDS if self.loss.has_jumps else 1.0
        home = Fits.of(self.ridge, np.full(len(lam), share * self.ridge.n), lam, most=RESOLVED)
        fits = Fits.of(self.ridge, n, lam[index], p, RESOLVED)
        square = fits.fall(home, index)
        if self.task is Task.CLASSIFICATION:
            wrong = fits.fall_of_misclassified(home, index)
            # between both for errors, as measured, if there are any; to first order, the power
            # for losses is exact
            seen = np.where(self.errors.sum(0)[index] > 0, square, wrong)
            falls = np.array([np.sqrt(wrong * seen), square ** self.power[index]])
        else:
            losses = [
                self.loss.value(np.sqrt(f) * self.found.shortfall[:, i]).mean()
                for f, i in zip(square, index, strict=True)
            ]
            falls = np.array([square, losses / np.maximum(self.losses.mean(0)[index], 1e-300)])
        if p is None:  # more samples never make a fit worse
            falls = np.where(n >= self.ridge.n, np.minimum(falls, 1.0), np.maximum(falls, 1.0))
        return fits, falls
