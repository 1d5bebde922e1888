"""The line in the plane of ratios on which the training data become linearly separable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.teachers import BinaryTeacher, binary
from hiddenmanifold.theory.points import RATIOS
from hiddenmanifold.theory.separability.direction import Direction, least

ODDS = 138.0
"""Largest modulus of the log-odds log((1 - chi)/chi) at which a threshold is sought."""
BATCH = 256
"""Points to solve together."""
LOWEST = -200.0
"""The least log(d/p) that is tried: some features hide a part of the field at any d/p."""
TOLERANCE = 1e-13
"""Distance from a root, in logarithms of ratios, at which the last Newton step is taken."""
SETTLED = 1e-12
"""Distance from log-odds that are sought at which the last Newton step is taken."""
ACCEPTED = 1e-10
"""Distance from a root, beyond rounding, above which a point did not converge."""
STEP = 1e-4
"""Half the distance, in log(d/p) and in units of it, over which log-odds are differenced."""
NEAREST = 1e-6
"""The least such unit."""


@dataclass(frozen=True)
class Line:
    r"""The line between data that are separable and data that are not.

    Along it runs the log-odds :math:`\ell = \log((1-\chi)/\chi)` that a part of the teacher's field
    is hidden. The rule gives the threshold p/n at each :math:`\ell`, the features the d/p at which
    they hide as much; both rise with :math:`\ell`, so each equation below has at most one root.
    """

    teacher: BinaryTeacher
    features: Features
    free_intercept: bool

    @classmethod
    def of(cls, model: Model) -> Line:
        """The line of a model with labels ±1."""
        return cls(binary(model.teacher), model.features, model.free_intercept)

    def p_over_n_at_gamma(self, gamma: Array) -> tuple[Array, Booleans]:
        """Threshold p/n at given d/p, and whether it was found."""
        visible = self.features.visible(gamma)
        found = least(self.teacher, visible.fraction, self.free_intercept, visible.hidden)
        return found.value / visible.rank, found.status == Status.CONVERGED

    def p_over_n(self, delta: Array) -> tuple[Array, Booleans]:
        """Threshold p/n at given n/d: the root of log(p/n) + log(d/p) = log(d/n)."""
        if self.features.blind:  # nothing is seen of the field, at any d/p
            return self.p_over_n_at_gamma(1.0 / delta)
        most = self.features.visible(np.array([0.5]))  # of linear features, that of any p > d
        seen, hidden = np.append([0.0, 0.5], most.fraction), np.append([1.0, 0.5], most.hidden)
        blind, half, seeing = least(self.teacher, seen, self.free_intercept, hidden).value
        # of linear features more than d do not help
        never = self.features.noiseless & (delta * seeing >= 1.0)
        # p/n is at most that of the blind; with few features, at least that of half the field
        low = np.maximum(self._odds(np.log(1.0 / (delta * blind))), -ODDS)
        high = self._odds(np.log(np.maximum(2.0 * self.features.focus, 1.0 / (delta * half))))

        def product(odds: Array, index: Integers) -> tuple[Array, Array]:
            found, (log_gamma, slope) = self._least(odds), self._log_gamma(odds)
            return np.log(found.value) + log_gamma - target[index], found.elasticity + slope

        target = -np.log(delta)
        bracket = low, np.where(never, low, high)
        odds = increasing_root(product, bracket, TOLERANCE)
        found = self._least(odds)
        distance = np.log(found.value) + self._log_gamma(odds)[0] - target
        good = np.abs(distance) <= ACCEPTED + found.accuracy
        return np.where(never, np.inf, found.value), good | never

    def n_over_d(self, p_over_n: Array) -> tuple[Array, Booleans]:
        """Threshold n/d at given p/n."""
        blind, seeing = least(self.teacher, np.array([0.0, 1.0]), self.free_intercept).value
        if self.features.blind:
            seeing = blind
        always, never = p_over_n >= blind, p_over_n <= seeing
        target = np.log(p_over_n)
        ends = np.where(always | never, 0.0, ODDS)

        def excess(odds: Array, index: Integers) -> tuple[Array, Array]:
            found = self._least(odds)
            return np.log(found.value) - target[index], found.elasticity

        odds = increasing_root(excess, (-ends, ends), TOLERANCE)
        found = self._least(odds)
        good = np.abs(np.log(found.value) - target) <= ACCEPTED + found.accuracy
        n_over_d = np.exp(-target - self._log_gamma(odds)[0])
        n_over_d = np.where(always, 0.0, np.where(never, np.inf, n_over_d))
        return n_over_d, good | always | never

    def _least(self, odds: Array) -> Direction:
        """The threshold p/n at given log-odds, and what belongs to it."""
        return least(self.teacher, special.expit(-odds), self.free_intercept, special.expit(odds))

    def _odds(self, log_gamma: Array) -> Array:
        """The log-odds that the field is hidden from features of given d/p."""
        visible = self.features.visible(np.exp(log_gamma))
        return np.log(visible.hidden) - np.log(visible.fraction)

    def _log_gamma(self, odds: Array) -> tuple[Array, Array]:
        r"""Logarithm of the d/p at which the log-odds are those given, and its slope by them.

        Minus infinity if there is none. Never is more seen than :math:`\chi = \min(1, 1/\gamma)`,
        times the features' focus.
        """
        high = np.logaddexp(0.0, odds) + np.log(self.features.focus)
        low, rise = np.full_like(odds, LOWEST), np.full_like(odds, np.nan)

        def excess(log_gamma: Array, index: Integers) -> tuple[Array, Array]:
            # of almost linear features the log-odds are steep near d = p, and those of linear jump
            step = STEP * np.clip(np.abs(log_gamma), NEAREST, 1.0)
            around = np.concatenate([log_gamma - step, log_gamma, log_gamma + step])
            below, here, above = self._odds(around).reshape(3, -1)
            slope = (above - below) / (2.0 * step)
            rise[index] = np.where(np.isfinite(slope), slope, np.nan)
            return here - odds[index], rise[index]

        found = increasing_root(excess, (low, high), SETTLED, high)
        return np.where(found < LOWEST + 1.0, -np.inf, found), np.nan_to_num(1.0 / rise)


@dataclass(frozen=True)
class Stretch:
    """Points of a line to find together: what a worker is asked to do."""

    line: Line
    ratio: str
    given: Array

    def run(self) -> tuple[Array, Booleans]:
        """The thresholds, and whether they were found."""
        to_alpha, to_gamma = RATIOS[self.ratio]
        with np.errstate(all="ignore"):  # what is not finite is not found
            if not to_alpha:
                return self.line.p_over_n_at_gamma(self.given**to_gamma)
            if to_gamma:
                return self.line.p_over_n(self.given**to_alpha)
            return self.line.n_over_d(self.given**-to_alpha)


def thresholds(line: Line, ratio: str, given: Array, workers: Workers) -> tuple[Array, Booleans]:
    """Thresholds at each value of the named ratio, and whether they were found.

    They are n/d where the ratio is one of p and n, else p/n.
    """
    # the same batches whoever runs them, so that results are the same to the bit
    chunks = np.array_split(given, -(-len(given) // BATCH))
    found = workers.run([Stretch(line, ratio, chunk) for chunk in chunks])
    value, good = (np.concatenate(column) for column in zip(*found, strict=True))
    return value, good
