r"""Performance of many single fits of a binary outcome on their whole population, quickly.

Given a fit, its standardised score ξ and the linear predictor are jointly normal, so that every
quantity is an average over ξ, of which :math:`P(+1|\xi)` is known. Here one rule serves thousands
of fits, with six digits and more (three for `probability_error`); `theory.scores` refines panels
for each point until eleven digits are certain, which takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.numerics.logistic_line import logistic_line
from hiddenmanifold.numerics.panels import FAR, NEAR, gauss_legendre
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import BinaryTeacher

ORDER, COARSE = 15, 8
"""Nodes of a panel of ξ, and of the linear predictor where scores given that are summed, too."""
TRAPEZOID = np.linspace(-6.0, 6.0, 49)
"""Standardised scores given the linear predictor."""
TOGETHER = 100
"""Fits whose arrays are held at once."""


def binary_performance(
    teacher: BinaryTeacher, names: Sequence[str], Q: Array, M: Array, b: Array
) -> dict[str, Array]:
    """Quantities by name, (fits,), from the variance, covariance and mean of each fit's score."""
    parts = [
        _some(teacher, names, *(values[i : i + TOGETHER, None] for values in (Q, M, b)))
        for i in range(0, len(Q), TOGETHER)
    ]
    return {name: np.concatenate([np.empty(0), *(part[name] for part in parts)]) for name in names}


def _rule(teacher: BinaryTeacher, order: int) -> tuple[Array, Array]:
    """Nodes and lengths of panels in standard deviations."""
    edges = np.array(FAR if teacher.displaces else NEAR)
    t, w = gauss_legendre(order, 0)
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + width * t).ravel(), (width * w).ravel()


def _some(
    teacher: BinaryTeacher, names: Sequence[str], Q: Array, M: Array, b: Array
) -> dict[str, Array]:
    """The same for some fits, as columns."""
    x, lengths = _rule(teacher, ORDER)
    slope = M / np.sqrt(Q)
    V0 = np.maximum(teacher.rho - slope**2, 1e-12 * teacher.rho)
    law, tilt, _ = teacher.label_law(1, slope * x, V0)
    mass = normal_density(x) * lengths
    plus = mass * law
    minus = np.maximum(mass * (teacher.evidence(slope * x, V0) - law), 0.0)
    f = b + np.sqrt(Q) * x
    prior, other, _ = teacher.label_marginals
    found: dict[str, Array] = {}
    if {"brier_score", "r2"} & set(names):
        p = scipy.special.expit(f)
        brier = (plus * (1.0 - p) ** 2 + minus * p**2).sum(1)
        found |= {"brier_score": brier, "r2": 1.0 - brier / (prior * other)}
    if {"test_loss", "nagelkerke_r2"} & set(names):
        loss = (plus * np.logaddexp(0.0, -f) + minus * np.logaddexp(0.0, f)).sum(1)
        constant = float(scipy.special.entr(prior) + scipy.special.entr(other))
        explained = np.expm1(2.0 * (loss - constant)) / np.expm1(-2.0 * constant)
        found |= {"test_loss": loss, "nagelkerke_r2": explained}
    if "calibration_slope" in names:
        _, line = logistic_line(np.broadcast_to(x, f.shape), plus, minus)
        found["calibration_slope"] = line / np.sqrt(Q[:, 0])
    if "auc" in names and teacher.displaces:
        found["auc"] = scipy.special.ndtr(np.sqrt(2.0) * slope[:, 0])
    elif "auc" in names:  # half the Gini mean difference of P(+1|ξ), signed along ξ
        spread = scipy.special.ndtr(x) * scipy.special.ndtr(-x) * lengths * slope * tilt
        found["auc"] = 0.5 + 0.5 * spread.sum(1) / (prior * other)
    if "probability_error" in names:
        found["probability_error"] = _distance(teacher, Q, M, b)
    return {name: found[name] for name in names}


def _distance(teacher: BinaryTeacher, Q: Array, M: Array, b: Array) -> Array:
    """Mean distance of the logistic function of the score from the true probability."""
    t, lengths = _rule(teacher, COARSE)
    nu = np.sqrt(teacher.rho) * t
    weight = normal_density(t) * lengths * teacher.evidence(nu, np.zeros(len(nu)))
    inner = normal_density(TRAPEZOID) * (TRAPEZOID[1] - TRAPEZOID[0])
    deviation = np.sqrt(np.maximum(Q - M**2 / teacher.rho, 0.0))[..., None]
    f = (b + M / teacher.rho * nu)[..., None] + deviation * TRAPEZOID
    far: Array = np.abs(scipy.special.expit(f) - teacher.probability(nu)[:, None])
    distance: Array = far @ inner @ weight
    return distance
