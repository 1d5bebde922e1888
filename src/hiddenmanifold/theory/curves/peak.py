"""The interpolation peak: where, as features are added, the test error is largest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples, hidden_turns, least_of_each, refined_minima
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.teachers import binary
from hiddenmanifold.theory.limits import Phase, fitted_phase
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.scores.errors_of_labels import test_error
from hiddenmanifold.theory.separability.direction import least
from hiddenmanifold.theory.separability.line import Line, thresholds
from hiddenmanifold.theory.solver.settings import STANDARD

SCAN = np.linspace(np.log(0.01), np.log(100.0), 47)
"""Values of log(p/n) that are tried first."""
AROUND = np.append(0.0, np.multiply.outer([-1, 1], [1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1]))
"""Tried too, from the threshold on: for small λ the peak is near it, and may be narrow."""
CORNER = np.array([-1e-3, 1e-3])
"""Tried on both sides of a corner, which curves of orthogonal features have at p = d."""
BESIDE = np.array([-1e-2, -1e-3, 1e-3, 1e-2])
"""Where on either side of a threshold, in log(p/n), the error must be lower for a peak."""
CERTIFIED = 10.0 * STANDARD.quadrature
"""Relative error that a solved one may have: that of its unknowns, somewhat magnified."""


@dataclass(frozen=True)
class ErrorByFeatures:
    """Minus the error as a function of t = log(p/n), with n/d or d/p held fixed."""

    model: Model
    held: str
    ratio: Array
    lam: Array
    workers: Workers

    def __getitem__(self, some: Booleans) -> ErrorByFeatures:
        return replace(self, ratio=self.ratio[some], lam=self.lam[some])

    def points(self, point: Integers, t: Array) -> Points:
        """The points as n/p, d/p and λ."""
        alpha = np.exp(-t)
        ratio = self.ratio[point]
        gamma = alpha / ratio if self.held == "n_over_d" else ratio
        return Points.of(alpha, gamma, self.lam[point])

    def __call__(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """Minus the error and its slope by t."""
        along, sign = ("p", 1.0) if self.held == "n_over_d" else ("n", -1.0)
        found = asymptotics(self.model, self.points(point, t), self.workers, slopes=(along,))
        slope = sign * found[f"generalisation_error_by_log_{along}"]
        return -found["generalisation_error"], -slope

    def error(self, point: Integers, t: Array) -> Array:
        """The error; NaN where it cannot be solved for."""
        if not point.size:
            return np.empty(0)
        points = self.points(point, t)
        error: Array = asymptotics(self.model, points, self.workers)["generalisation_error"]
        return error


def highest(curve: ErrorByFeatures, threshold: Array) -> tuple[Array, Array, Booleans]:
    """Place log(p/n) and height of the highest peak at each point; NaN if there is none.

    Also whether a part of the curve could not be solved, so that a peak may have been missed.
    """
    points = np.arange(len(curve.ratio))
    tried = [np.add.outer(SCAN, 0.0 * curve.ratio), np.add.outer(AROUND, threshold)]
    if curve.held == "n_over_d":
        corner = curve.model.features.corner or 1.0
        tried.append(np.add.outer(CORNER, -np.log(corner * curve.ratio)))
    t = np.concatenate(tried)
    value, point = np.nonzero(np.isfinite(t))
    scan = Samples.of(curve, point, t[value, point]).ordered()
    scan = (scan + hidden_turns(curve, scan)).ordered()
    peaks = refined_minima(curve, *scan.pairs())
    peaks = peaks[stand_out(peaks, scan)]
    place, height = np.full((2, len(points)), np.nan)
    best = peaks[least_of_each(peaks.point, peaks.value)]
    place[best.point], height[best.point] = best.t, -best.value
    unsolved = np.zeros(len(points), dtype=bool)
    unsolved[scan.point[np.isnan(scan.value)]] = True
    return place, height, unsolved & np.isnan(height)


def stand_out(peaks: Samples, scan: Samples) -> Booleans:
    """Whether peaks rise above both of their sides by more than certified numbers may be wrong.

    A side reaches as far as no sample of the ordered `scan` is higher. Values are minus errors.
    """
    found = np.zeros(len(peaks.t), dtype=bool)
    first, last = (np.searchsorted(scan.point, peaks.point, s) for s in ("left", "right"))
    for i, (start, end) in enumerate(zip(first, last, strict=True)):
        middle = np.searchsorted(scan.t[start:end], peaks.t[i])
        fall, doubt = scan.value[start:end] - peaks.value[i], CERTIFIED * np.abs(peaks.value[i])
        sides = fall[:middle][::-1], fall[middle:]
        reach = [np.append(side < -doubt, True).argmax() for side in sides]
        found[i] = all((s[:r] > doubt).any() for s, r in zip(sides, reach, strict=True))
    return found


def at_threshold(curve: ErrorByFeatures, place: Array, separating: bool) -> tuple[Array, Booleans]:
    """Height at λ → 0⁺ of a peak at the threshold of fitting all samples; NaN if it is none.

    Also whether the curve beside it could not be solved.

    Where data become separable the direction is still that of a separating one. Where they can
    just be interpolated the weights are infinite and blind.
    """
    points = np.flatnonzero(np.isfinite(place))
    height = np.full_like(place, np.inf if curve.model.task is Task.REGRESSION else 0.5)
    if separating and points.size:
        teacher = binary(curve.model.teacher)
        gamma = curve.points(points, place[points]).gamma
        visible = curve.model.features.visible(gamma)
        found = least(teacher, visible.fraction, curve.model.free_intercept, visible.hidden)
        k = np.sqrt(teacher.rho) * found.alignment
        height[points] = test_error(
            teacher, k, teacher.rho * (1.0 - found.alignment**2), found.bias
        )
    peak = np.zeros(len(place), dtype=bool)
    peak[points], unsolved = True, np.zeros(len(place), dtype=bool)
    t = np.add.outer(BESIDE, place[points])
    error = curve.error(np.tile(points, len(BESIDE)), t.ravel()).reshape(t.shape)
    # the error must rise towards the threshold, and end below it
    for far, near in (error[:2], error[:1:-1]):
        certain = CERTIFIED * near
        peak[points] &= (near - far > certain) & (height[points] - near > certain)
    unsolved[points] = np.isnan(error).any(0)
    return np.where(peak, height, np.nan), unsolved


def peaks(curve: ErrorByFeatures) -> tuple[Array, Array, Booleans]:
    """Place and height at each point: the threshold where λ vanishes, else near it or anywhere."""
    zero = curve.lam == 0
    separating = fitted_phase(curve.model)[0] in (Phase.SEPARATED, Phase.DIVERGING)
    place, height = threshold(curve, separating), np.full(len(zero), np.nan)
    unsolved = np.zeros(len(zero), dtype=bool)
    if zero.any():
        height[zero], unsolved[zero] = at_threshold(curve[zero], place[zero], separating)
    if not zero.all():
        place[~zero], height[~zero], unsolved[~zero] = highest(curve[~zero], place[~zero])
    return np.where(np.isnan(height), np.nan, place), height, unsolved


def threshold(curve: ErrorByFeatures, separating: bool) -> Array:
    """Logarithm of the p/n from which on all samples can be fitted; NaN if there is none."""
    model, ratio = curve.model, curve.ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        if separating:
            found = np.log(thresholds(Line.of(model), curve.held, ratio, curve.workers)[0])
        elif curve.held == "d_over_p":
            found = -np.log(model.features.visible(ratio).rank)
        else:  # noiseless features are no more independent than d
            found = np.where(model.features.noiseless & (ratio >= 1), np.nan, 0.0)
    return np.where(np.isfinite(found), found, np.nan)
