"""From a sample to predictions with error bars, for any loss.

An `Analysis` is a value, two arrays and a task, whose derived quantities are computed when they are
first asked for and then kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.data.class_heads import ClassHead, best_of_classes
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.heads import Head
from hiddenmanifold.data.leave_one_out import best, left_out
from hiddenmanifold.data.misclassification import (
    by_rows,
    classes_of,
    shared,
    with_half_an_error,
    wrong,
)
from hiddenmanifold.data.predicted_errors import (
    Prediction,
    deviation,
    from_here,
    log_of,
    no_classes,
    unless_none,
)
from hiddenmanifold.data.ridge import Path, Ridge
from hiddenmanifold.data.row_weights import RowWeights
from hiddenmanifold.data.scalar_heads import ScalarHead
from hiddenmanifold.losses import ConvexLoss, Square, of_shortfall

SQUARE = Square()
ENTRIES = 3e6
"""Entries of an array of samples and fits, at most as a rule."""


@dataclass(eq=False, repr=False)
class Analysis:
    """A sample, and the estimates of its population.

    Attributes
    ----------
    X : array (N, p)
        Features, finite and varying.
    y : array (N,) or (N, K)
        Labels; ±1 for two classes, and columns of 0 and 1 for K > 2.
    task : Task
        Whether they are numbers, two classes or more.
    weights : RowWeights, optional
        How many times each row counts in a fit.
    """

    X: Array
    y: Array
    task: Task
    weights: RowWeights | None = None

    @property
    def N(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def classified(self) -> bool:
        """Whether labels are classes."""
        return self.task is not Task.REGRESSION

    @cached_property
    def rows_of_classes(self) -> Integers:
        """Rows of each class."""
        K = self.y.shape[1] if self.y.ndim == 2 else 2
        return np.bincount(classes_of(self.y), minlength=K)

    @cached_property
    def ridge(self) -> Ridge:
        """Ridge regression on the whole sample."""
        return Ridge.of(self.X, self.y)

    def part(self, rows: Any) -> Analysis:
        """That of some of the rows, by features that have the same kernel and are not more."""
        X = self.ridge.scores[rows]
        weights = None if self.weights is None else self.weights.part(rows)
        return Analysis(X[:, np.ptp(X, axis=0) > 0], self.y[rows], self.task, weights)

    @property
    def best_regularisation(self) -> float:
        """The λ of least mean square leave-one-out error."""
        return self.ridge.best

    @cached_property
    def best_fit(self) -> Path:
        """The fit of ridge regression with this λ."""
        return self.ridge.path(np.array([self.best_regularisation]))

    def best_for(self, loss: ConvexLoss) -> float:
        """The λ of least leave-one-out loss, to a factor of three if it is not the square."""
        try:
            return self._best[loss]
        except KeyError:
            return self._best.setdefault(loss, self._sought(loss))
        except TypeError:  # one that cannot be hashed
            return self._sought(loss)

    @cached_property
    def _best(self) -> dict[ConvexLoss, float]:
        return {}  # the search takes most of the time of losses with a kink

    def _sought(self, loss: ConvexLoss) -> float:
        if self.task is Task.CLASSES and not loss.quadratic:
            return best_of_classes(loss, self.ridge, self.y)
        return best(loss, self.task, self.ridge, self.y, self.weights)

    def head(self, loss: ConvexLoss, lams: Array) -> Head:
        """Fits with some loss, kept for the last regularisations that were asked for."""
        kept: Head | None = self.__dict__.get("_head")
        if kept is None or kept.loss is not loss or not np.array_equal(kept.lams, lams):
            kept = self.__dict__["_head"] = self._fitted(loss, lams)
        return kept

    def _fitted(self, loss: ConvexLoss, lams: Array) -> Head:
        if self.task is Task.CLASSES:
            return ClassHead.of(loss, self.ridge, self.y, lams)
        found = left_out(loss, self.task, self.ridge, lams, labels=self.y, weights=self.weights)
        own = None if self.weights is None else self.weights.of(self.y)
        about = of_shortfall(loss), self.ridge, lams, found.objective
        return ScalarHead(*about, self.task, self.y, found, own)

    def of_ridge(self, loss: ConvexLoss) -> bool:
        """Whether fits with a loss are ridge regressions, in which every row counts once."""
        return loss.quadratic and self.weights is None

    def predicted(
        self, n: Array | float, lam: Array, p: float | None = None, *, loss: ConvexLoss = SQUARE
    ) -> Prediction:
        """Predict fits to n samples at some λ, whether or not the sample is `usable`."""
        lam = np.asarray(lam, dtype=float)
        ns = np.broadcast_to(np.asarray(n, dtype=float), lam.shape)
        lams, index = np.unique(lam, return_inverse=True)
        ps = None if p is None or p == self.p else np.full(lam.shape, float(p))
        at_once = max(1, int(ENTRIES / self.y.size))
        parts = []
        for start in range(0, len(lam), at_once):
            some = slice(start, start + at_once)
            which = (ns[some], index[some], None if ps is None else ps[some])
            if self.of_ridge(loss):
                parts.append(self._of_ridge(lams, *which))
            else:
                parts.append(self.head(loss, lams).predicted(*which))
        return Prediction.joined(parts)

    def _of_ridge(self, lams: Array, n: Array, index: Integers, p: Array | None) -> Prediction:
        """Fits of the square loss."""
        home = Fits.of(self.ridge, np.full(len(lams), float(self.N)), lams, own=True)
        here = Fits.of(self.ridge, n, lams[index], p, own=True)
        fall, now = here.fall(home, index), home.error[index]
        N, own = self.N, here.deviation
        hidden: dict[str, Any] = {"hidden": ~here.resolved}
        of_fall = {"shaken": here.deviation_of_fall(home, index), **hidden}
        s = deviation("square", own, fall, N, **hidden)
        s_fall = deviation("fall of square", own, fall, N, **of_fall)
        errors, falls, bars, fall_bars = [fall * now] * 2, [fall] * 2, [s, s], [s_fall] * 2
        parts = no_classes(len(n))
        if self.classified:
            falls[0] = here.fall_of_misclassified(home, index)
            rows = self._by_rows(wrong(self.ridge.classes, home.path.left_out))
            counted = rows.sum(0)[index] / N
            known = with_half_an_error(counted, N)
            # scores that were never wrong have no tail from which to tell more than the half error
            errors[0] = falls[0] * np.where(counted == 0, known, home.misclassified[index])
            own = np.sqrt((1.0 - errors[0]) / (errors[0] * N))
            of_fall["apart"] = log_of(fall)
            bar = self._bar_of_wrong("wrong", n, own, falls[0], **hidden)
            bars[0] = unless_none(counted, errors[0], N, bar)
            bar = self._bar_of_wrong("fall of wrong", n, own, falls[0], **of_fall)
            fall_bars[0] = unless_none(counted, errors[0], N, bar)
            parts = self._by_class(here.confusion, errors[0], falls[0], rows[:, index], n)
        objective, rows = here.path.objective, 0.5 * np.sum(here.path.residual**2, axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            trained = rows.std(0, ddof=1) / np.sqrt(N) / objective.mean(0)
        fitted = np.where(np.isnan(here.error), np.nan, here.training_loss)
        return Prediction(
            np.array([errors[0], 0.5 * errors[1], fitted]),
            np.array([*bars, np.nan_to_num(trained)]),
            *from_here(n == N if p is None else None, np.array(falls), np.array(fall_bars)),
            here.path.kappa,
            here.resolved,
            *parts,
        )

    def _by_rows(self, lost: Booleans) -> Array:
        return by_rows(self.ridge.classes, lost, len(self.rows_of_classes))

    def _by_class(
        self, confusion: Array, error: Array, fall: Array, lost: Array, n: Array
    ) -> tuple[Array, Array]:
        """Confusion (K, K, fits) at an error, and log-deviations of the errors of classes.

        They follow from how often rows of each class were wrong, `lost` (K, fits).
        """
        rows = self.rows_of_classes[:, None]
        taken, rate = shared(confusion, error, self.rows_of_classes)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.sqrt((1.0 - rate) / (rate * rows))
        bar = self._bar_of_wrong("wrong", n, own, fall)
        return taken, unless_none(lost, rate, rows, bar)

    def _bar_of_wrong(self, kind: str, n: Array, own: Array, fall: Array, **how: Any) -> Array:
        """That of a misclassification rate, or of its fall."""
        bar = deviation(kind, own, fall, self.N, **how)
        if self.task is not Task.CLASSES:
            return bar
        fewer = deviation(f"{kind}, fewer rows", own, fall, self.N, **how)
        return np.where(n < self.N, fewer, bar)

    def measured(self, lam: Array, loss: ConvexLoss = SQUARE) -> tuple[Array, Array]:
        """Leave-one-out means of `QUANTITIES` at N samples and their standard errors.

        The training loss is that of the fit itself.
        """
        if self.of_ridge(loss):
            path = self.ridge.path(lam)
            shown = path.square
            if self.classified:
                shown = wrong(self.ridge.classes, path.left_out).astype(float)
            samples = np.array([shown, 0.5 * path.square, path.objective])
            return samples.mean(1), samples.std(1, ddof=1) / np.sqrt(self.N)
        lams, index = np.unique(lam, return_inverse=True)
        head = self.head(loss, lams)
        samples = np.array([head.errors, head.losses, head.fitted_losses])
        means = samples.mean(1)
        means[2] = head.objective / self.N
        return means[:, index], (samples.std(1, ddof=1) / np.sqrt(self.N))[:, index]
