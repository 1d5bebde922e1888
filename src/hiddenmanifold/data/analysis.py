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
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.heads import Head
from hiddenmanifold.data.leave_one_out import best, left_out
from hiddenmanifold.data.misclassification import classes_of, with_half_an_error, worst_rate, wrong
from hiddenmanifold.data.ridge import Path, Ridge
from hiddenmanifold.losses import Loss, Square

QUANTITIES = ("generalisation_error", "test_loss", "training_loss")
FALLING = QUANTITIES[:2]
"""Quantities whose fall, the ratio to that at N samples, is a result of its own."""
SQUARE = Square()
ENTRIES = 3e6
"""Entries of an array of samples and fits, at most as a rule."""
RULE_OF_THREE = 3.0
"""If none of N samples was wrong, the rate is below 3/N, nineteen times in twenty."""
BARS = {
    "square": (0.9, 3.0, 0.3),
    "wrong": (0.9, 6.0, 1.0),
    "head error": (1.1, 6.0, 0.3),
    "head loss": (0.9, 3.0, 0.7),
    "wrong, fewer rows": (0.9, 2.0, 1.0),
    "fall of square": (0.3, 3.0, 0.0),
    "fall of wrong": (1.0, 6.0, 0.2),
    "fall of wrong, fewer rows": (1.0, 3.0, 1.0),
    "fall of head error": (0.3, 6.0, 0.1),
    "fall of head loss": (0.3, 4.0, 0.0),
}
"""Numbers a, b and c of bars: see `_bar`. They were set on one half of the benchmark's sets.

Those for fewer rows are of several classes only.
"""
KINKED = 2.0
"""Losses with a kink are less like their twins: the power of their falls in bars."""


@dataclass(frozen=True)
class Prediction:
    """Predicted `QUANTITIES` (quantities, fits), falls of the first two, and log-deviations.

    Of classes also the part of each that is predicted as each, (K, K, fits), and the deviations of
    their errors (K, fits).
    """

    value: Array
    deviation: Array
    fall: Array
    fall_deviation: Array
    kappa: Array
    resolved: Booleans
    confusion: Array
    class_deviation: Array

    @classmethod
    def joined(cls, parts: list[Prediction]) -> Prediction:
        """One of several."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in names))

    def interval(self, quantity: str, *, fall: bool = False) -> tuple[Array, Array, Array]:
        """A quantity, or its fall, with the ends of one standard deviation."""
        i = QUANTITIES.index(quantity)
        value, s = (self.fall, self.fall_deviation) if fall else (self.value, self.deviation)
        with np.errstate(over="ignore"):
            return value[i], value[i] * np.exp(-s[i]), value[i] * np.exp(s[i])


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
        return Analysis(X[:, np.ptp(X, axis=0) > 0], self.y[rows], self.task)

    @property
    def best_regularisation(self) -> float:
        """The λ of least mean square leave-one-out error."""
        return self.ridge.best

    @cached_property
    def best_fit(self) -> Path:
        """The fit of ridge regression with this λ."""
        return self.ridge.path(np.array([self.best_regularisation]))

    def best_for(self, loss: Loss) -> float:
        """The λ of least leave-one-out loss, to a factor of three if it is not the square."""
        try:
            return self._best[loss]
        except KeyError:
            return self._best.setdefault(loss, best(loss, self.task, self.ridge, self.y))
        except TypeError:  # one that cannot be hashed
            return best(loss, self.task, self.ridge, self.y)

    @cached_property
    def _best(self) -> dict[Loss, float]:
        return {}  # the search takes most of the time of losses with a kink

    def head(self, loss: Loss, lams: Array) -> Head:
        """Fits with some loss, kept for the last regularisations that were asked for."""
        kept = self.__dict__.get("_head")
        if kept is None or kept.loss is not loss or not np.array_equal(kept.lams, lams):
            found = left_out(loss, self.task, self.ridge, lams, labels=self.y)
            kept = self.__dict__["_head"] = Head(self.task, loss, self.ridge, lams, found)
        return kept

    def predicted(
        self, n: Array | float, lam: Array, p: float | None = None, *, loss: Loss = SQUARE
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
            predict = self._of_ridge if loss.quadratic else self._of_head
            parts.append(predict(loss, lams, *which))
        return Prediction.joined(parts)

    def _of_ridge(
        self, loss: Loss, lams: Array, n: Array, index: Integers, p: Array | None
    ) -> Prediction:
        """Fits of the square loss."""
        home = Fits.of(self.ridge, np.full(len(lams), float(self.N)), lams, own=True)
        here = Fits.of(self.ridge, n, lams[index], p, own=True)
        fall, now = here.fall(home, index), home.error[index]
        s = _bar("square", here.deviation, fall, self.N)
        s_fall = _bar("fall of square", _shaken(here, home, index), fall, self.N)
        errors, falls, bars, fall_bars = [fall * now] * 2, [fall] * 2, [s, s], [s_fall] * 2
        parts = _no_classes(len(n))
        if self.classified:
            falls[0] = here.fall_of_misclassified(home, index)
            rows = self._by_rows(wrong(self.ridge.classes, home.path.left_out))
            counted = rows.sum(0)[index] / self.N
            known = with_half_an_error(counted, self.N)
            # scores that were never wrong have no tail from which to tell more than the half error
            errors[0] = falls[0] * np.where(counted == 0, known, home.misclassified[index])
            counting = np.sqrt((1.0 - errors[0]) / (errors[0] * self.N))
            bar = self._bar_of_wrong("wrong", counting, errors[0] / known, n)
            bars[0] = self._unless_none(counted, errors[0], bar)
            raw = here.misclassified / home.misclassified[index]  # before it was put in order
            bar = self._bar_of_wrong("fall of wrong", np.zeros_like(fall), raw, n)
            fall_bars[0] = self._unless_none(counted, errors[0], bar)
            lost = rows[:, index]
            parts = self._by_class(here.confusion, errors[0], errors[0] / known, lost, n)
        objective, rows = here.path.objective, 0.5 * np.sum(here.path.residual**2, axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            trained = rows.std(0, ddof=1) / np.sqrt(self.N) / objective.mean(0)
        return Prediction(
            np.array([errors[0], 0.5 * errors[1], here.training_loss]),
            np.array([*bars, np.nan_to_num(trained)]),
            *self._from_here(n, p, np.array(falls), np.array(fall_bars)),
            here.path.kappa,
            here.resolved,
            *parts,
        )

    def _of_head(
        self, loss: Loss, lams: Array, n: Array, index: Integers, p: Array | None
    ) -> Prediction:
        """Fits of any other loss."""
        head = self.head(loss, lams)
        every, home = np.arange(len(lams)), np.full(len(lams), float(self.N))
        fits, falls = head.twins(n, index, p)
        twins, now = head.twins(home, every)
        levels, falls = head.levels[:, index] * now[:, index], falls / now[:, index]
        if self.classified:
            chance = worst_rate(self.ridge.classes)
            levels[0] = np.minimum(levels[0], chance)
            falls[0] = np.minimum(falls[0], chance / levels[0])
        levels = levels * falls
        ratio = fits.training_loss / twins.training_loss[index]
        trained = head.found.objective[index] / self.N * ratio
        spread = loss.value(head.found.fitted).std(0, ddof=1) * np.sqrt(self.N)
        own, shaken = head.deviations[:, index], np.tile(_shaken(fits, twins, index), (2, 1))
        steeper = falls**KINKED if loss.has_jumps else falls
        s, s_fall = (
            np.array(
                [
                    _bar(f"{of}head {part}", each, fall, self.N)
                    for part, each, fall in zip(("error", "loss"), noise, steeper, strict=True)
                ]
            )
            for of, noise in (("", own), ("fall of ", shaken))
        )
        if self.task is Task.CLASSIFICATION:
            counted = head.errors.sum(0)[index]
            for bars in (s, s_fall):
                bars[0] = self._unless_none(counted, levels[0], bars[0])
        s_trained = np.hypot((spread / head.found.objective)[index], 0.5 * np.log(ratio))
        return Prediction(
            np.array([*levels, np.where(np.isnan(fits.error), np.nan, trained)]),
            np.array([*s, s_trained]),
            *self._from_here(n, p, falls, s_fall),
            fits.path.kappa,
            fits.resolved,
            *_no_classes(len(n)),
        )

    def _by_rows(self, lost: Array | Booleans) -> Array:
        """How many rows of each class were wrong, of booleans (N, fits)."""
        found: Array = np.eye(len(self.rows_of_classes))[self.ridge.classes].T @ lost
        return found

    def _by_class(
        self, confusion: Array, error: Array, fall: Array, lost: Array, n: Array
    ) -> tuple[Array, Array]:
        """Confusion (K, K, fits) at an error, and log-deviations of the errors of classes.

        They follow from how often rows of each class were wrong, `lost` (K, fits).
        """
        K, N, rows = len(confusion), self.N, self.rows_of_classes[:, None]
        same = np.eye(K)[:, :, None]
        # half an error, of any row
        taken = (1.0 - same) * (N * confusion + 0.5 / (K - 1)) / (N + 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            taken = taken * (error / np.einsum("c,ckf->f", self.rows_of_classes / N, taken))
            taken = taken / np.maximum(taken.sum(1, keepdims=True), 1.0)
            rate = taken.sum(1)
            bar = self._bar_of_wrong("wrong", np.sqrt((1.0 - rate) / (rate * rows)), fall, n)
            bar = np.where(lost > 0, bar, np.maximum(bar, np.log(RULE_OF_THREE / (rows * rate))))
        return taken + same * (1.0 - rate)[:, None], bar

    def _bar_of_wrong(self, kind: str, own: Array, fall: Array, n: Array) -> Array:
        """That of a misclassification rate, or of its fall."""
        bar = _bar(kind, own, fall, self.N)
        if self.task is not Task.CLASSES:
            return bar
        return np.where(n < self.N, _bar(f"{kind}, fewer rows", own, fall, self.N), bar)

    def _unless_none(self, counted: Array, error: Array, bar: Array) -> Array:
        """The bar of a misclassification rate, which reaches 3/N if none was counted."""
        none = np.log(RULE_OF_THREE / (self.N * error))
        return np.where(counted == 0, np.maximum(bar, none), bar)

    def _from_here(
        self, n: Array, p: Array | None, falls: Array, bars: Array
    ) -> tuple[Array, Array]:
        """Falls and their bars, exactly 1 and 0 for the sample itself."""
        here = (n == self.N) & (p is None) & ~np.isnan(falls)
        return np.where(here, 1.0, falls), np.where(here, 0.0, bars)

    def measured(self, lam: Array, loss: Loss = SQUARE) -> tuple[Array, Array]:
        """Leave-one-out means of `QUANTITIES` at N samples and their standard errors.

        The training loss is that of the fit itself.
        """
        if loss.quadratic:
            path = self.ridge.path(lam)
            shown = path.square
            if self.classified:
                shown = wrong(self.ridge.classes, path.left_out).astype(float)
            samples = np.array([shown, 0.5 * path.square, path.objective])
            return samples.mean(1), samples.std(1, ddof=1) / np.sqrt(self.N)
        lams, index = np.unique(lam, return_inverse=True)
        head = self.head(loss, lams)
        samples = np.array([head.errors, head.losses, loss.value(head.found.fitted)])
        means = samples.mean(1)
        means[2] = head.found.objective / self.N
        return means[:, index], (samples.std(1, ddof=1) / np.sqrt(self.N))[:, index]


def _no_classes(fits: int) -> tuple[Array, Array]:
    """Confusion and deviations where labels are numbers."""
    return np.empty((0, 0, fits)), np.empty((0, fits))


def _shaken(here: Fits, home: Fits, index: Integers) -> Array:
    """Deviation of the logarithm of a fall, by the influence of each row."""
    with np.errstate(invalid="ignore"):
        change = here.influence - home.influence[:, index]
    found: Array = np.sqrt(np.sum(np.nan_to_num(change) ** 2, axis=0))
    return found


def _bar(kind: str, own: Array, fall: Array, N: int) -> Array:
    """Deviation of a logarithm: a times its own noise, and (b log(fall) and c)/√N."""
    a, b, c = BARS[kind]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((a * own) ** 2 + ((b * np.log(fall)) ** 2 + c**2) / N)
