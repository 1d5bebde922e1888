"""Estimates from ridge regressions on a sample, on its halves, and with groups of it left out.

An `Analysis` is a value, two arrays and a task, whose derived quantities are computed when they are
first asked for and then kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import Task
from hiddenmanifold.data.extrapolation import SQUARE, Forecast
from hiddenmanifold.data.leave_one_out import best, left_out
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.data.validation import GROUPS, SPLITS
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss

REMEDY = (
    "remove outliers, standardise columns of different scales (scale='standard'), or drop columns "
    "that are zero in almost every row"
)
"""Advice for a sample in which a few rows determine the fit."""


@dataclass(frozen=True)
class Prediction:
    """Predicted `QUANTITIES`, arrays (quantities, λ), with statistical and systematic errors."""

    value: Array
    statistical: Array
    systematic: Array
    kappa: Array
    resolved: Booleans

    @property
    def deviation(self) -> Array:
        """One standard deviation, of both kinds together."""
        return np.hypot(self.statistical, self.systematic)


@dataclass(eq=False, repr=False)
class Analysis:
    """A sample, and the estimates of its population.

    Attributes
    ----------
    X : array (N, p)
        Features, finite and varying.
    y : array (N,)
        Labels; ±1 for classes.
    task : Task
        Whether they are numbers or classes.
    """

    X: Array
    y: Array
    task: Task

    @property
    def N(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @cached_property
    def ridge(self) -> Ridge:
        """Ridge regression on the whole sample."""
        return Ridge.of(self.X, self.y)

    @cached_property
    def forecast(self) -> Forecast:
        """Spectral measures of the whole sample.

        Raises
        ------
        InvalidArgumentError
            If a few rows decide the fit at every λ.
        """
        found = self._read(self.ridge)
        if found is None:
            raise InvalidArgumentError.because(
                "data",
                "cannot be extrapolated, because a few rows determine the fit at every λ",
                REMEDY,
            )
        return found

    def forecast_of(self, rows: Any) -> Forecast | None:
        """The same of some of the rows, None if it cannot be read."""
        X, y = self.X[rows], self.y[rows]
        return None if np.ptp(y) == 0 else self._read(Ridge.of(X, y))

    def _read(self, ridge: Ridge) -> Forecast | None:
        return Forecast.of(ridge, classes=self.task is Task.CLASSIFICATION)

    @property
    def best_regularisation(self) -> float:
        """The λ of least mean square leave-one-out error."""
        return self.ridge.best

    def best_for(self, loss: Loss) -> float:
        """The λ of least leave-one-out loss, to a factor of three if it is not the square."""
        try:
            return self._best[loss]
        except KeyError:
            return self._best.setdefault(loss, best(loss, self.task, self.ridge))
        except TypeError:  # one that cannot be hashed
            return best(loss, self.task, self.ridge)

    @cached_property
    def _best(self) -> dict[Loss, float]:
        return {}  # the search takes most of the time of losses with a kink

    @cached_property
    def _without_groups(self) -> list[Forecast | None]:
        order = np.random.default_rng(0).permutation(self.N)
        return [
            self.forecast_of(np.sort(np.delete(order, np.s_[g::GROUPS]))) for g in range(GROUPS)
        ]

    def predicted(
        self,
        n: Array | float,
        lam: Array,
        p: float | None = None,
        *,
        loss: Loss = SQUARE,
        relative: bool = False,
    ) -> Prediction:
        """Predict fits to n samples at some λ, whether or not the sample is `usable`.

        With `relative`, in units of the same at N samples, in which much of the errors cancels.
        """

        def value(forecast: Forecast) -> Array:
            found = forecast.value(n, lam, p, loss)
            return found / forecast.value(self.N, lam, None, loss) if relative else found

        here, now = self.forecast.at(n, lam, p, loss), self.forecast.at(self.N, lam, None, loss)
        here = here.over(now) if relative else here
        spread = np.full_like(here.value, np.inf)  # if the sample without a group is unreadable
        others = [forecast for forecast in self._without_groups if forecast is not None]
        if len(others) == GROUPS:
            values = np.array([value(forecast) for forecast in others])
            spread = np.sqrt((GROUPS - 1.0) * values.var(0))
            spread = np.where(np.isfinite(spread), spread, np.inf)
        systematic = np.abs(here.halved)
        if self.task is Task.CLASSIFICATION:
            doubt = self._doubt(now.value[0], lam, loss)
            if relative:  # a level that is off is off at N, too
                doubt *= np.abs(1.0 - here.value[0]) / now.value[0]
            systematic[0] = np.hypot(systematic[0], doubt)
        return Prediction(here.value, spread, systematic, here.kappa, here.resolved)

    def _doubt(self, expected: Array, lam: Array, loss: Loss) -> Array:
        """How far misclassification may be from that expected for a mixture at N samples.

        It is the difference from leave-one-out, or the standard error of this if it is larger.
        """
        lams, index = np.unique(lam, return_inverse=True)
        counted, error = (part[0][index] for part in self.measured(lams, loss))
        doubt: Array = np.maximum(np.abs(counted - expected), error)
        return doubt

    def measured(self, lam: Array, loss: Loss = SQUARE) -> tuple[Array, Array]:
        """Leave-one-out means of `QUANTITIES` at N samples and their standard errors.

        The training loss is that of the fit itself.
        """
        if not loss.quadratic:
            found = left_out(loss, self.task, self.ridge, lam)
            wrong = (found.shortfall >= loss.anchor).astype(float)
            samples = np.array([wrong, loss.value(found.shortfall), loss.value(found.fitted)])
            means = samples.mean(1)
            means[2] = found.objective / self.N
            return means, samples.std(1, ddof=1) / np.sqrt(self.N)
        path = self.ridge.path(lam)
        square = path.left_out**2
        shown = square
        if self.task is Task.CLASSIFICATION:
            shown = (self.y[:, None] * (self.y[:, None] - path.left_out) <= 0).astype(float)
        products = path.y[:, None] * path.residual  # their sum is |residuals|² + λ|w|²
        samples = np.array([shown, 0.5 * square, 0.5 * products])
        return samples.mean(1), samples.std(1, ddof=1) / np.sqrt(self.N)

    @cached_property
    def backtest(self) -> float:
        """Relative error of the prediction, from halves, of the leave-one-out error of all."""
        lam, rng = np.array([self.best_regularisation]), np.random.default_rng(1)
        orders = [rng.permutation(self.N) for _ in range(SPLITS)]
        halves = [half for order in orders for half in np.array_split(order, 2)]
        found = [self.forecast_of(half) for half in halves]
        guesses = [np.nan if f is None else f.at(self.N, lam).value[1, 0] for f in found]
        return float(np.mean(guesses) / self.measured(lam)[0][1, 0] - 1.0)
