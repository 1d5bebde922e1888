"""Exact fits of a model to data, for a path of regularisations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss, Square
from hiddenmanifold.registry import Task
from hiddenmanifold.simulation.interior_point import interior_point_path
from hiddenmanifold.simulation.newton import newton_path
from hiddenmanifold.simulation.problem import ACCEPTED, GOOD, Fit, Shortfalls, certified

__all__ = ["ACCEPTED", "GOOD", "Fit", "Shortfalls", "certified", "fit_path", "square_path"]

Array = NDArray[np.float64]

FEW = 8
"""Up to so many λ a factorisation each is cheaper than one eigendecomposition."""


def fit_path(
    loss: Loss, task: Task, X: Array, y: Array, lams: Array, *, intercept: bool = False
) -> list[Fit]:
    """Fit every regularisation of `lams`, in any order, sharing what can be shared.

    Parameters
    ----------
    loss : Loss
        What is minimised.
    task : Task
        Whether the loss is of the residual or of the margin.
    X : array (n, p)
        Features.
    y : array (n,)
        Labels.
    lams : array
        Regularisations, positive.
    intercept : bool
        Whether an unpenalised intercept is fitted.

    Raises
    ------
    InvalidArgumentError
        If features or labels are not finite, or a classifier sees a single class.
    """
    if not np.isfinite(X).all():
        raise InvalidArgumentError(
            "X", f"with {np.sum(~np.isfinite(X))} non-finite entries", "finite"
        )
    if not np.isfinite(y).all():
        raise InvalidArgumentError(
            "y", f"with {np.sum(~np.isfinite(y))} non-finite entries", "finite"
        )
    if task is Task.CLASSIFICATION and intercept and np.ptp(y) == 0:
        raise InvalidArgumentError(
            "y", f"of one class only ({y[0]:+g})", "of both classes when an intercept is fitted"
        )
    order = np.argsort(lams)[::-1]
    data = Shortfalls.of(loss, task, X, y, intercept=intercept)
    solver = square_path if isinstance(loss, Square) else newton_path
    if (loss.knots[2] > loss.knots[1]).any():
        solver = interior_point_path
    fits = dict(zip(order, solver(loss, data, np.asarray(lams)[order]), strict=True))
    return [fits[i] for i in range(len(order))]


def square_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Ridge regression: for many λ one eigendecomposition of the smaller Gram matrix serves all."""
    A, r = (data.B, data.t) if (data.v == 1).all() else (data.B * data.v[:, None], data.t * data.v)
    centre, mean = np.zeros(A.shape[1]), 0.0
    if data.free:
        centre, mean = A.mean(0), r.mean()
        A, r = A - centre, r - mean
    wide = A.shape[1] > A.shape[0]
    gram, target = (A @ A.T, r) if wide else (A.T @ A, A.T @ r)
    fits = []
    for lam, x in zip(lams, _shifted_solutions(gram, target, lams), strict=True):
        w = A.T @ x if wide else x
        fits.append(certified(loss, data, lam, w, float(mean - centre @ w)))
    return fits


def _shifted_solutions(gram: Array, target: Array, lams: Array) -> list[Array]:
    """Solutions of (gram + λ) x = target, by Cholesky if they are few and it succeeds."""
    try:
        if len(lams) <= FEW:
            return [_cholesky_solution(gram, target, lam) for lam in lams]
    except linalg.LinAlgError:
        pass  # numerically singular
    values, U = np.linalg.eigh(gram)
    rotated = U.T @ target
    return [U @ (rotated / (np.maximum(values, 0.0) + lam)) for lam in lams]


def _cholesky_solution(gram: Array, target: Array, lam: float) -> Array:
    matrix = gram.copy()
    matrix[np.diag_indices_from(matrix)] += lam
    factor = linalg.cho_factor(matrix, check_finite=False, overwrite_a=True)
    x: Array = linalg.cho_solve(factor, target, check_finite=False)
    return x
