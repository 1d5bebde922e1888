"""The interpolation peak: where, as features are added, the test error is largest."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import Task
from hiddenmanifold.numerics.minima import (
    Samples,
    least_of_each,
    minima,
    negated,
    sampler,
)
from hiddenmanifold.teachers import binary
from hiddenmanifold.theory.curves.error_curve import ErrorCurve
from hiddenmanifold.theory.limits import Phase, fitted_phase
from hiddenmanifold.theory.scores.errors_of_labels import test_error
from hiddenmanifold.theory.separability.direction import separating_direction
from hiddenmanifold.theory.separability.line import Line, thresholds
from hiddenmanifold.theory.solver.settings import STANDARD

SCAN = np.linspace(np.log(0.01), np.log(100.0), 47)
"""Values of t = log(p/n), or of log(n/p), that are tried first."""
AROUND = np.append(0.0, np.multiply.outer([-1, 1], [1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1]))
"""Tried too, from the threshold on: for small λ the peak is near it, and may be narrow."""
CORNER = np.array([-1e-3, 1e-3])
"""Tried on both sides of a corner, which curves of orthogonal features have at p = d."""
BESIDE = np.array([-1e-2, -1e-3, 1e-3, 1e-2])
"""Where on either side of a threshold, in t, the error must be lower for a peak."""
CERTIFIED = 10.0 * STANDARD.quadrature
"""Relative accuracy of a solved test error: that of the unknowns, somewhat magnified."""


def highest(curve: ErrorCurve, threshold: Array) -> tuple[Array, Array, Booleans]:
    """Place t and height of the highest peak at each point; NaN if there is none.

    Also whether a part of the curve could not be solved, so that a peak may have been missed.
    """
    points = np.arange(len(curve))
    tried = [np.add.outer(SCAN, 0.0 * curve.held), np.add.outer(AROUND, threshold)]
    if curve.along == "p":
        corner = curve.model.features.corner or 1.0
        tried.append(np.add.outer(CORNER, -np.log(corner * curve.held)))
    t = np.concatenate(tried)
    value, point = np.nonzero(np.isfinite(t))
    scan = Samples.of(negated(curve), point, t[value, point])
    scan, peaks = minima(sampler(negated(curve)), scan)
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


def at_threshold(curve: ErrorCurve, place: Array) -> tuple[Array, Booleans]:
    """Height at λ → 0⁺ of a peak at the threshold of fitting all samples; NaN if it is none.

    Also whether the curve beside it could not be solved.

    At the separability threshold the weights have the separating direction. At the interpolation
    threshold they are infinite, and uncorrelated with the teacher.
    """
    points = np.flatnonzero(np.isfinite(place))
    height = np.full_like(place, np.inf if curve.model.task is Task.REGRESSION else 0.5)
    if _separating(curve) and points.size:
        teacher = binary(curve.model.teacher)
        gamma = curve.points(points, place[points]).gamma
        visible = curve.model.features.visible(gamma)
        found = separating_direction(
            teacher, visible.fraction, curve.model.free_intercept, visible.hidden
        )
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


def peaks(curve: ErrorCurve) -> tuple[Array, Array, Booleans]:
    """Place t and height at each point: the threshold where λ vanishes, else near it or anywhere.

    Also whether a part of a curve that shows no peak could not be solved.
    """
    zero = curve.lam == 0
    place, height = threshold(curve), np.full(len(zero), np.nan)
    unsolved = np.zeros(len(zero), dtype=bool)
    if zero.any():
        height[zero], unsolved[zero] = at_threshold(curve[zero], place[zero])
    if not zero.all():
        place[~zero], height[~zero], unsolved[~zero] = highest(curve[~zero], place[~zero])
    return np.where(np.isnan(height), np.nan, place), height, unsolved


def threshold(curve: ErrorCurve) -> Array:
    """The t beyond which, or before which along n, all samples can be fitted; NaN if none."""
    features, held = curve.model.features, curve.held
    with np.errstate(divide="ignore", invalid="ignore"):
        if _separating(curve):
            name = "d_over_p" if curve.along == "n" else "n_over_d"
            p_over_n = thresholds(Line.of(curve.model), name, held, curve.workers)["p_over_n"]
        elif curve.along == "n":
            p_over_n = 1.0 / features.visible(held).rank
        else:  # noiseless features are no more independent than d
            p_over_n = np.where(features.noiseless & (held >= 1), np.nan, 1.0)
        found = np.log(p_over_n) if curve.along == "p" else -np.log(p_over_n)
    return np.where(np.isfinite(found), found, np.nan)


def _separating(curve: ErrorCurve) -> bool:
    """Whether the threshold is that of separability, rather than that of interpolation."""
    return fitted_phase(curve.model)[0] in (Phase.SEPARATED, Phase.DIVERGING)
