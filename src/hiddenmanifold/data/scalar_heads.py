r"""Heads of one score, for numbers and two classes.

Rows are left out one by one, or in tenths if the loss has a kink. Errors of classes fall by the
geometric mean of the twin's falls of square error and of misclassification, losses by a power of
the former. Residuals of numbers shrink as the twin's do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.heads import KINKED, Doubts, Head
from hiddenmanifold.data.leave_one_out import FOLDS, LeftOut
from hiddenmanifold.data.predicted_errors import log_of
from hiddenmanifold.losses import Loss
from hiddenmanifold.simulation.fit import fit_path

RESOLVED = 0.3
"""Greatest D2/N' of the twin: beyond, a small sample's luck enters level and fall alike."""
POWERS = 0.5, 2.0
"""Range of `ScalarHead.power`: first order is too little for the largest falls."""


@dataclass(frozen=True)
class ScalarHead(Head):
    """A head of one score, with what fits at some regularisations show with and without rows.

    Attributes
    ----------
    task : Task
        Whether labels are numbers or two classes.
    labels : array (N,)
        Those.
    found : LeftOut
        Shortfalls of the rows.
    weights : array (N,), optional
        How many times each row counts.
    """

    loss: Loss
    task: Task
    labels: Array
    found: LeftOut
    weights: Array | None = None

    @property
    def kinds(self) -> tuple[str, str]:  # noqa: D102
        return f"head {'error' if self.classified else 'square'}", "head loss"

    @property
    def classified(self) -> bool:  # noqa: D102
        return self.task is Task.CLASSIFICATION

    @cached_property
    def curvature(self) -> Array:
        """The mean curvature of the loss; with kinks, its slope's over the scores' spread.

        A row that counts several times has as many times the curvature.
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
    def errors(self) -> Array:  # noqa: D102
        short = self.found.shortfall
        return (short >= self.loss.anchor).astype(float) if self.classified else short**2

    @cached_property
    def losses(self) -> Array:  # noqa: D102
        return self.loss.value(self.found.shortfall)

    @property
    def fitted_losses(self) -> Array:  # noqa: D102
        return self.loss.value(self.found.fitted)

    @property
    def alone(self) -> float:  # noqa: D102
        nothing = np.zeros((self.ridge.n, 1))
        (fit,) = fit_path(
            self.loss,
            self.task,
            nothing,
            self.labels,
            np.ones(1),
            intercept=True,
            weights=self.weights,
        )
        return fit.objective

    def doubts(self, here: Fits, home: Fits, index: Integers) -> tuple[Doubts, Doubts]:
        """The influence of each row, and how far square error and misclassification disagree."""
        hidden: dict[str, Any] = {"hidden": ~here.resolved}
        loss = error = {"shaken": here.deviation_of_fall(home, index), **hidden}
        if self.classified:
            wrong = here.fall_of_misclassified(home, index)
            apart = log_of(here.fall(home, index)) - log_of(wrong)
            error = error | {"apart": (KINKED if self.loss.has_jumps else 1.0) * apart}
        return (hidden, hidden), (error, loss)

    def twins(self, n: Array, index: Integers, p: Array | None = None) -> tuple[Fits, Array, None]:
        """Fits of the ridge twins, and the falls (2, fits) of error and loss."""
        lam = self.lams / self.curvature
        share = 1.0 - 1.0 / FOLDS if self.loss.has_jumps else 1.0
        home = Fits.of(self.ridge, np.full(len(lam), share * self.ridge.n), lam, most=RESOLVED)
        fits = Fits.of(self.ridge, n, lam[index], p, RESOLVED)
        square = fits.fall(home, index)
        if self.classified:
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
            more = n >= home.n[index]
            falls = np.where(more, np.minimum(falls, 1.0), np.maximum(falls, 1.0))
        return fits, falls, None
