"""The line of ratios beyond which data are separable, or an estimator ceases to exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers, chunks, joined
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.losses import LabelLoss
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.teachers import PointTeacher, Teacher, binary
from hiddenmanifold.theory.points import RATIOS
from hiddenmanifold.theory.separability.direction import Direction, separating_direction
from hiddenmanifold.theory.separability.existence import existing_direction

BATCH = 256
"""Points to solve together."""
LOWEST, HIGHEST = -200.0, 138.0
"""The log(d/p) at which thresholds are sought. Some features hide a part of the field at any d/p;
beyond the highest they show less than 1e-60 of it, and its effect on labels is lost to rounding."""
TOLERANCE = 1e-13
"""Value of the equation, in logarithms of ratios, at which the last Newton step is taken."""
ACCEPTED = 1e-10
"""Newton step, beyond rounding, above which a point did not converge: ten digits are promised."""
STEP = 1e-4
"""Half the distance, in log(d/p) and in units of it, over which log-odds are differenced. It costs
an eighth digit of the slope, which only guides the search."""
NEAREST = 1e-6
"""The least such unit: the log-odds of almost linear features are steep near d = p."""


@dataclass(frozen=True)
class Line:
    r"""The line between data that are separable and data that are not.

    The line is parametrised by d/p. Features at that ratio hide a part :math:`1-\chi` of the
    teacher's field, and the label rule determines the threshold p/n at :math:`\chi`. It rises with
    d/p, so that each equation below has at most one root.
    """

    teacher: Teacher
    features: Features
    free_intercept: bool
    loss: LabelLoss | None = None
    """The loss of labels that are no classes, whose minimiser may not exist."""

    @classmethod
    def of(cls, model: Model) -> Line:
        """The line of a model with labels ±1, or with a loss of label and score."""
        loss = model.loss if isinstance(model.loss, LabelLoss) else None
        return cls(model.teacher, model.features, model.free_intercept, loss)

    def p_over_n_at_gamma(self, gamma: Array) -> tuple[Array, Integers]:
        """Threshold p/n at given d/p, and how its search ended."""
        visible = self.features.visible(gamma)
        found = self.direction(visible.fraction, visible.hidden)
        return found.value / visible.rank, found.status

    def p_over_n(self, delta: Array) -> tuple[Array, Integers]:
        """Threshold p/n at given n/d: the root of log(p/n) + log(d/p) = log(d/n)."""
        if self.features.blind:  # nothing is seen of the field, at any d/p
            return self.p_over_n_at_gamma(1.0 / delta)
        most = self.features.visible(np.array([0.5]))  # of linear features, that of any p > d
        seen, hidden = np.append([0.0, 0.5], most.fraction), np.append([1.0, 0.5], most.hidden)
        blind, half, seeing = self.direction(seen, hidden).value
        # of linear features more than d do not help
        never = self.features.noiseless & (delta * seeing >= 1.0)
        # p/n is at most that of the blind; with few features, at least that of half the field
        low = -np.log(delta * blind)
        high = np.log(np.maximum(2.0 * self.features.visibility_bound, 1.0 / (delta * half)))
        bracket = np.where(never, 0.0, low), np.where(never, 0.0, high)
        log_gamma, status = self._root(-np.log(delta), bracket, 1.0)
        status[never] = Status.CONVERGED
        return np.where(never, np.inf, np.exp(-log_gamma) / delta), status

    def n_over_d(self, p_over_n: Array) -> tuple[Array, Integers]:
        """Threshold n/d at given p/n, the root of log(p/n) = that of the line."""
        blind = self.direction(np.zeros(1), np.ones(1)).value
        most = self.features.visible(np.exp([LOWEST]))
        seeing = blind if self.features.blind else self.direction(most.fraction, most.hidden).value
        always, never = p_over_n >= blind, p_over_n <= seeing
        ends = (np.where(always | never, 0.0, end) for end in (LOWEST, HIGHEST))
        log_gamma, status = self._root(np.log(p_over_n), tuple(ends), 0.0)
        status[always | never] = Status.CONVERGED
        n_over_d = np.exp(-log_gamma) / p_over_n
        return np.where(always, 0.0, np.where(never, np.inf, n_over_d)), status

    def _root(
        self, target: Array, bracket: tuple[Array, ...], power: float
    ) -> tuple[Array, Integers]:
        """The log(d/p) at which log(p/n) of the line plus `power` log(d/p) is the target."""

        def equation(log_gamma: Array, index: Integers) -> tuple[Array, Array, Direction]:
            step = STEP * np.clip(np.abs(log_gamma), NEAREST, 1.0)
            around = np.concatenate([log_gamma - step, log_gamma, log_gamma + step])
            seen = self.features.visible(np.exp(around))
            below, _, above = np.log(seen.hidden / seen.fraction).reshape(3, -1)
            here = slice(len(step), 2 * len(step))
            found = self.direction(seen.fraction[here], seen.hidden[here])
            slope = found.elasticity * (above - below) / (2.0 * step) + power
            return np.log(found.value) + power * log_gamma - target[index], slope, found

        low, high = bracket
        start = np.clip(0.5 * (low + high), -1.0, 1.0)  # most lines cross where p is about d
        root = increasing_root(lambda x, i: equation(x, i)[:2], (low, high), TOLERANCE, start)
        excess, slope, found = equation(root, np.arange(len(root)))
        good = np.abs(excess) <= ACCEPTED * np.fmax(slope, 1.0) + found.accuracy
        failed = np.where(found.status == Status.CONVERGED, Status.SEARCH, found.status)
        return root, np.where(good, Status.CONVERGED, failed)

    def direction(self, seen: Array, hidden: Array) -> Direction:
        """The direction that separates at the threshold, given what is seen of the field."""
        if self.loss is not None:
            teacher = cast("PointTeacher", self.teacher)
            return existing_direction(teacher, self.loss, seen, self.free_intercept, hidden)
        return separating_direction(binary(self.teacher), seen, self.free_intercept, hidden)


def sought(ratio: str) -> str:
    """Name of the ratio to find: n/d if the given ratio is one of p and n, else p/n."""
    return "p_over_n" if RATIOS[ratio][1] else "n_over_d"


@dataclass(frozen=True)
class ThresholdBatch:
    """Points of a line to find together: one job of a worker."""

    line: Line
    ratio: str
    given: Array

    def run(self) -> Columns:
        """The thresholds under the name of their ratio, NaN where none was found, and status."""
        to_alpha, to_gamma = RATIOS[self.ratio]
        with np.errstate(all="ignore"):  # what is not finite is not found
            if not to_alpha:
                value, status = self.line.p_over_n_at_gamma(self.given**to_gamma)
            elif to_gamma:
                value, status = self.line.p_over_n(self.given**to_alpha)
            else:
                value, status = self.line.n_over_d(self.given**-to_alpha)
        value = np.where(status == Status.CONVERGED, value, np.nan)
        return {sought(self.ratio): value, "status": status.astype(np.int8)}


def thresholds(line: Line, ratio: str, given: Array, workers: Workers) -> Columns:
    """The threshold at each value of the named ratio, and its status: see `ThresholdBatch`."""
    parts = chunks(np.arange(len(given)), BATCH)
    return joined(workers.run([ThresholdBatch(line, ratio, given[part]) for part in parts]))
