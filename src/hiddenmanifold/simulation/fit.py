"""Exact fits of a model to data, for a path of regularisations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from operator import attrgetter

import numpy as np
from scipy import linalg

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import InvalidArgumentError, plural
from hiddenmanifold.losses import ConvexLoss, LabelLoss, Loss, of_shortfall
from hiddenmanifold.losses.of_label import LossOfLabels
from hiddenmanifold.simulation.interior_point import LARGEST_GRAM, interior_point_path, jumps
from hiddenmanifold.simulation.newton_fit import newton_path
from hiddenmanifold.simulation.problem import (
    EPS,
    GOOD,
    Fit,
    Shortfalls,
    Weighted,
    certified,
    scaled,
    solver,
)

FEW = 8
"""Up to so many λ a factorisation each is cheaper than one eigendecomposition."""
LARGE = 256
"""From this size on, single precision and its refinement cost less than double."""
REFINEMENTS = 12
"""Steps of refinement after which double precision is tried instead."""
ONLY_SQUARE = (
    "positive: at zero only the square loss without weights is fitted (by the shortest least "
    "squares solution); a small one, such as 1e-8, comes close"
)


def fit_path(
    loss: ConvexLoss,
    task: Task,
    X: Array,
    y: Array,
    lams: Array,
    *,
    intercept: bool = False,
    weights: Array | None = None,
) -> list[Fit]:
    """Fit labels y to features X (n, p) at every λ, in any order, sharing what can be shared.

    The λ are positive; for the square loss without weights 0 means the shortest least squares
    solution. The task says whether the loss is of the residual or of the margin. An intercept is
    not penalised. The loss of a sample counts as many times as its weight, once by default.

    Raises
    ------
    InvalidArgumentError
        If features or labels are not finite, the loss does not allow a label, or no minimum exists.
    """
    _check(loss, task, X, y, intercept=intercept)
    lams = np.asarray(lams, dtype=float)
    by_least_squares = loss.quadratic and weights is None
    if not by_least_squares and not (lams > 0).all():
        raise InvalidArgumentError("lams", lams.min(), ONLY_SQUARE)
    order = np.argsort(lams)[::-1]
    scale, inner = scaled(X, lams)
    data = Shortfalls.of(loss, task, X, y, intercept=intercept, scale=scale)
    each = loss.of_labels(y) if weights is None else Weighted(loss.of_labels(y), weights)
    path = square_path if by_least_squares else newton_path
    if loss.has_jumps:
        path = interior_point_path
    if intercept and np.ptp(y) == 0:
        path = _intercept_alone
    fits = dict(zip(order, path(each, data, inner[order]), strict=True))
    least = 0.0
    if isinstance(loss, LabelLoss):
        least = float((loss.least(y) * (1.0 if weights is None else weights)).sum())
    return [
        replace(fits[i], w=fits[i].w / scale, objective=fits[i].objective + least)
        for i in range(len(order))
    ]


def _check(loss: ConvexLoss, task: Task, X: Array, y: Array, *, intercept: bool) -> None:
    """Refuse data that cannot be fitted."""
    for name, values in (("X", X), ("y", y)):
        if wrong := np.size(values) - np.count_nonzero(np.isfinite(values)):
            raise InvalidArgumentError.because(
                name,
                f"has {plural(int(wrong), 'non-finite entry', 'non-finite entries')}",
                "give finite numbers",
            )
    if isinstance(loss, LabelLoss):
        check_labels(loss, y)
    if has_minimum(loss, task, y, intercept=intercept):
        return
    if isinstance(loss, LabelLoss):
        end = "-∞" if not (loss.slopes_at_infinity(y)[0] < 0).any() else "∞"
        raise InvalidArgumentError.because(
            "y",
            f"has only labels, such as {y[0]:g}, whose loss falls all the way to f = {end}, so "
            "that no intercept minimises it",
            "give other labels as well, or fit without an intercept",
        )
    raise InvalidArgumentError.because(
        "y", f"has one class only ({y[0]:+g})", "give both classes where an intercept is fitted"
    )


def check_labels(loss: LabelLoss, y: Array) -> None:
    """Refuse labels that a loss does not allow.

    Raises
    ------
    InvalidArgumentError
        Naming one of them, and the labels that are allowed.
    """
    wrong = y[~np.asarray(loss.allows(y), dtype=bool)]
    if wrong.size:
        raise InvalidArgumentError.because(
            "y",
            f"has {plural(wrong.size, 'label', 'labels')} that the loss {loss} does not allow, "
            f"such as {wrong[0]:g}",
            f"give {loss.labels}, or choose another loss",
        )


def numbers_needed(loss: ConvexLoss, n: int, p: int) -> float:
    """Numbers that a fit holds at its peak, roughly."""
    if loss.has_jumps:
        n *= len(jumps(of_shortfall(loss))[0])
    size = min(n, p)
    if loss.quadratic:
        # three copies of the samples; the factors of a decomposition twice, and its workspace
        return 3 * n * p + 2 * size * (n + p) + 4 * size**2
    if loss.has_jumps and n**2 <= LARGEST_GRAM:
        size = n
    # half a copy in single precision, and for p > n an orthonormal basis of the samples
    return 2.5 * n * p + 4 * size**2 + 2 * n * p * (p > n)


def has_minimum(loss: ConvexLoss, task: Task, y: Array, *, intercept: bool) -> bool:
    """Whether the objective has a minimum.

    Not if the intercept can push all samples to where the loss still falls: there is one class
    only, or only labels such as counts of zero.
    """
    if not intercept:
        return True
    if isinstance(loss, LabelLoss):
        left, right = loss.slopes_at_infinity(y)
        return bool((left < 0).any() and (right > 0).any())
    alone = task is Task.CLASSIFICATION and np.ptp(y) == 0
    return not alone or bool(np.isfinite(of_shortfall(loss).minimisers).any())


def _intercept_alone(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Fit labels that are all equal: with zero weights, the intercept minimises every loss."""
    one = loss.loss if isinstance(loss, Weighted) else loss
    if isinstance(one, LossOfLabels):
        s = -float(one.minimum[0][0])
    else:
        low, high = one.minimisers
        s = 0.5 * (low + high) if np.isfinite(low) else high
        s = s if np.isfinite(s) else low
    b = float((data.t[0] - s) * data.v[0])
    objective = float(loss.value(np.full(len(data.t), s)).sum())
    return [Fit(np.zeros(data.B.shape[1]), b, objective, 0.0) for _ in lams]


def square_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Ridge regression: by Gram matrix, one decomposition for all λ if they are many.

    The Gram matrix squares singular values; where that leaves too few digits, an SVD is used.
    """
    A, r = (data.B, data.t) if (data.v == 1).all() else (data.B * data.v[:, None], data.t * data.v)
    centre, mean = np.zeros(A.shape[1]), 0.0
    if data.free:
        centre, mean = A.mean(0), float(r.mean())
        A, r = A - centre, r - mean
    with np.errstate(over="ignore", invalid="ignore"):  # scales beyond single precision
        found = _by_gram(A, r, lams)
    fits, ridge = [], None
    for lam, weights in zip(lams, found, strict=True):
        fit = None
        if weights is not None:
            fit = certified(loss, data, lam, weights, mean - float(centre @ weights))
        if fit is None or fit.optimality > GOOD:
            ridge = ridge or _by_svd(loss, data, A, r, centre=centre, mean=mean)
            other = ridge(lam)
            fit = min(fit or other, other, key=attrgetter("optimality"))
        fits.append(fit)
    return fits


def _by_gram(A: Array, r: Array, lams: Array) -> list[Array | None]:
    """Weights for each λ by the smaller Gram matrix, None where it is numerically singular."""
    wide = A.shape[1] > A.shape[0]
    left, target = (A, r) if wide else (A.T, A.T @ r)
    gram = cache(lambda kind: (half := left.astype(kind, copy=False)) @ half.T)
    if len(lams) > FEW:
        values, vectors = np.linalg.eigh(gram(np.float64))
        rotated = vectors.T @ target

    def solution(lam: float) -> Array | None:
        if lam == 0:
            return None
        if len(lams) > FEW:
            x: Array = vectors @ (rotated / (np.maximum(values, 0.0) + lam))
            return x
        for kind in (np.float32, np.float64) if len(target) >= LARGE else (np.float64,):
            try:
                solve = solver(gram(kind).copy(), lam)
            except linalg.LinAlgError:
                continue
            found = solve(target) if kind is np.float64 else _refined(solve, left, target, lam)
            if found is not None:
                return found
        return None

    found = [solution(lam) for lam in lams.tolist()]
    return [A.T @ x if wide and x is not None else x for x in found]


def _refined(
    solve: Callable[[Array], Array], left: Array, target: Array, lam: float
) -> Array | None:
    """Solution of (LLᵀ + λ)x = target to rounding, by a solver in single precision.

    It preconditions conjugate gradients; None if these need more than a few steps.
    """
    x, r, p, last = np.zeros_like(target), target, np.zeros_like(target), np.inf
    enough = EPS * np.linalg.norm(target)
    for _ in range(REFINEMENTS):
        if (unit := float(np.linalg.norm(r))) <= enough:
            return x
        z = unit * solve((r / unit).astype(np.float32)).astype(float)
        product = float(r @ z)
        p, last = z + product / last * p, product
        q = left @ (left.T @ p) + lam * p
        curvature = float(p @ q)
        if not (product > 0 and curvature > 0):
            break
        x, r = x + product / curvature * p, r - product / curvature * q
    return None


def _by_svd(
    loss: Loss, data: Shortfalls, A: Array, r: Array, *, centre: Array, mean: float
) -> Callable[[float], Fit]:
    """Minimiser of |r - Aw|² + λ|w|² at any λ, the shortest at zero.

    Its gap is known in the basis of the singular vectors whose values are above rounding.
    """
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    rank = int((s > EPS * max(A.shape) * s[0]).sum())
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    rotated = U.T @ r

    def fit(lam: float) -> Fit:
        w: Array = Vt.T @ (s / (s**2 + lam) * rotated)
        b = mean - float(centre @ w)
        short = data(w, b)
        gradient = lam * (Vt @ w) - s * (U.T @ (data.v * short))
        gap = 0.5 * float((gradient**2 / (s**2 + lam)).sum())
        gap += 0.5 * float(data.v @ short) ** 2 / len(short) if data.free else 0.0
        objective = float(loss.value(short).sum() + 0.5 * lam * (w @ w))
        return Fit(w, b, objective, data.relative(gap, objective))

    return fit
