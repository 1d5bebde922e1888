"""Leave-one-out shortfalls for any loss: an estimate of the test error at n = N."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.data.row_weights import RowWeights
from hiddenmanifold.losses import ConvexLoss, Loss
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.problem import Weighted

FOLDS = 10
"""Number of folds, where no Newton step leads to the fit without a sample."""
FEWER_FOLDS = 5
"""The same for a choice among many regularisations."""
CANDIDATES = np.geomspace(1e-4, 1e3, 15)
"""Regularisations among which to choose, in units of the variance of a feature."""


@dataclass(frozen=True)
class LeftOut:
    """Fits at some regularisations, and the same without each sample: arrays (N, λ).

    Attributes
    ----------
    shortfall : array
        Shortfalls of samples in the fits without them, by one Newton step from the fit to all or,
        for losses whose slope jumps, by fits to nine tenths.
    fitted : array
        Their shortfalls in the fit to all.
    objective : array (λ,)
        The minimum of the fit to all.
    """

    shortfall: Array
    fitted: Array
    objective: Array


@one_thread
def left_out(
    loss: ConvexLoss,
    task: Task,
    ridge: Ridge,
    lams: Array,
    folds: int = FOLDS,
    *,
    labels: Array,
    weights: RowWeights | None = None,
) -> LeftOut:
    """Fit at some regularisations, with and without each sample."""
    y, features = labels, ridge.scores
    a = None if weights is None else weights.of(y)
    C = features / np.sqrt(features.shape[1])
    fits = fit_path(loss, task, features, y, lams, intercept=True, weights=a)
    fitted = np.array([loss.shortfall(task, y, C @ fit.w + fit.b) for fit in fits]).T
    objective = np.array([fit.objective for fit in fits])
    if not loss.has_jumps:
        each = loss.of_labels(y) if a is None else Weighted(loss.of_labels(y), a)
        steps = [_one_by_one(each, C, s, lam) for s, lam in zip(fitted.T, lams, strict=True)]
        return LeftOut(np.array(steps).T, fitted, objective)
    shortfall = fitted.copy()
    fold = np.random.default_rng(0).permutation(len(y)) % min(folds, len(y))
    for own, test in ((fold != i, fold == i) for i in range(fold.max() + 1)):
        if task is Task.CLASSIFICATION and np.ptp(y[own]) == 0:
            continue
        part = None if weights is None else weights.part(own).of(y[own])
        others = fit_path(loss, task, features[own], y[own], lams, intercept=True, weights=part)
        scores = [C[test] @ fit.w + fit.b for fit in others]
        shortfall[test] = np.array([loss.shortfall(task, y[test], f) for f in scores]).T
    return LeftOut(shortfall, fitted, objective)


def best(
    loss: ConvexLoss, task: Task, ridge: Ridge, labels: Array, weights: RowWeights | None = None
) -> float:
    """The regularisation of least leave-one-out loss."""
    if loss.quadratic and weights is None:
        return ridge.best
    lams = float(ridge.k.sum()) / ridge.n * CANDIDATES
    found = left_out(loss, task, ridge, lams, FEWER_FOLDS, labels=labels, weights=weights).shortfall
    own_loss = loss.of_labels(labels)
    losses = [own_loss.value(s).mean() for s in found.T]
    return float(lams[np.argmin(losses)])


def _one_by_one(loss: Loss, C: Array, s: Array, lam: float) -> Array:
    """Shortfalls of left-out samples, by one Newton step from the fit to all of them."""
    bend = loss.second_derivative(s)
    total = max(float(bend.sum()), 1e-12)
    centred = C - bend @ C / total
    matrix = centred.T @ (bend[:, None] * centred)
    matrix[np.diag_indices_from(matrix)] += lam
    response = 1.0 / total + (centred * np.linalg.solve(matrix, centred.T).T).sum(1)
    free = np.maximum(1.0 - bend * response, 1e-6)
    short: Array = s + loss.derivative(s) * response / free
    return short
