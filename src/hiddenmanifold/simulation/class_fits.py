r"""Exact fits of K scores to one-hot targets or classes, for a path of regularisations.

The weights of all scores are fitted together: :math:`f = XW/\sqrt p + b`, with the penalty
:math:`\tfrac\lambda2|W|^2`. The bound on the distance from the minimum is that of strong convexity,
:math:`|\nabla|^2/2\lambda` at the best b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.problem import EPS, GOOD, ROUNDING
from hiddenmanifold.simulation.softmax_fit import softmax_path


@dataclass(frozen=True)
class ClassFit:
    """Weights (p, K), intercepts (K,), the objective and how far it may be above the minimum."""

    W: Array
    b: Array
    objective: float
    optimality: float


def fit_classes(
    loss: ConvexLoss,
    X: Array,
    y: Integers,
    K: int,
    lams: Array,
    *,
    intercept: bool,
    one_vs_rest: bool = False,
) -> list[ClassFit]:
    """Fit the classes y of features X (n, p) at every λ; zero means the shortest solution."""
    if one_vs_rest:
        return _against_others(loss, X, y, K, lams, intercept=intercept)
    A = X / np.sqrt(X.shape[1])
    if loss.quadratic:
        return ridge_classes(A, np.eye(K)[y], lams, intercept=intercept)
    return [ClassFit(*fit) for fit in softmax_path(A, y, K, lams, intercept=intercept)]


def _against_others(
    loss: ConvexLoss, X: Array, y: Integers, K: int, lams: Array, *, intercept: bool
) -> list[ClassFit]:
    """Binary fits of each class against all others."""
    paths = [
        fit_path(
            loss, Task.CLASSIFICATION, X, np.where(y == k, 1.0, -1.0), lams, intercept=intercept
        )
        for k in range(K)
    ]
    return [
        ClassFit(
            np.array([fit.w for fit in fits]).T,
            np.array([fit.b for fit in fits]),
            sum(fit.objective for fit in fits),
            max(fit.optimality for fit in fits),
        )
        for fits in zip(*paths, strict=True)
    ]


def ridge_classes(A: Array, targets: Array, lams: Array, *, intercept: bool) -> list[ClassFit]:
    """Ridge regression on targets (n, K): one decomposition for all classes and λ.

    It is that of the smaller Gram matrix; where squared singular values leave too few digits, and
    at λ = 0, it is a decomposition of A itself.
    """
    centre = A.mean(0) if intercept else np.zeros(A.shape[1])
    mean = targets.mean(0) if intercept else np.zeros(targets.shape[1])
    B, R = A - centre, targets - mean
    wide = B.shape[1] > B.shape[0]
    values, vectors = np.linalg.eigh(B @ B.T if wide else B.T @ B)
    values = np.maximum(values, 0.0)
    rotated = vectors.T @ (R if wide else B.T @ R)
    svd = None
    fits = []
    for lam in lams.tolist():
        fit = None
        if lam > 0:
            solved = vectors @ (rotated / (values + lam)[:, None])
            W = B.T @ solved if wide else solved
            fit = _certified(A, targets, lam, W, mean - centre @ W)
        if fit is None or fit.optimality > GOOD:
            svd = svd or np.linalg.svd(B, full_matrices=False)
            W, least = _by_svd(svd, R, lam)
            other = _certified(A, targets, lam, W, mean - centre @ W, curvature=least**2)
            fit = other if fit is None or other.optimality < fit.optimality else fit
        fits.append(fit)
    return fits


def _by_svd(svd: tuple[Array, Array, Array], R: Array, lam: float) -> tuple[Array, float]:
    """The minimiser, the shortest at λ = 0, by singular values above rounding, and their least."""
    U, s, Vt = svd
    kept = s > EPS * max(U.shape[0], Vt.shape[1]) * s[0]
    weights = s[kept] / (s[kept] ** 2 + lam)
    W: Array = Vt[kept].T @ (weights[:, None] * (U[:, kept].T @ R))
    return W, float(s[kept][-1])


def _certified(
    A: Array, targets: Array, lam: float, W: Array, b: Array, *, curvature: float = 0.0
) -> ClassFit:
    """The fit with its bound; the loss itself has a least curvature in the span of the samples."""
    residual = targets - A @ W - b
    gradient = lam * W - A.T @ residual
    objective = 0.5 * float((residual**2).sum()) + 0.5 * lam * float((W**2).sum())
    gap = 0.5 * float((gradient**2).sum()) / (lam + curvature)
    floor = max(ROUNDING * len(targets), float(np.finfo(float).tiny))
    return ClassFit(W, b, objective, gap / max(objective, floor))
