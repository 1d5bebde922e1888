r"""Heads of several classes: the level is that of the head itself, the fall that of a ridge twin.

A head is trained by softmax, or by a loss of the margin on each class against all others. Its own
scores of rows that it did not see, in ten stratified folds, give its error and its loss. Their fall
with n is that of ridge regression on columns of 0 and 1 with strength :math:`\lambda/c`, where c is
the mean curvature of the loss, for softmax in the K - 1 contrasts of scores. The twin shows by how
much class means of scores grow and how much the scores within classes spread; the head's left-out
scores are moved likewise, and lose some of their loss and errors. The error falls by the geometric
mean of this and of the fall of the twin's own misclassification.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.heads import Head, counting
from hiddenmanifold.data.leave_one_out import FEWER_FOLDS, FOLDS
from hiddenmanifold.data.misclassification import (
    by_rows,
    centres,
    confusion_of_scores,
    shared,
    with_half_an_error,
)
from hiddenmanifold.data.predicted_errors import deviation, unless_none
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.losses import ConvexLoss, Loss
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.simulation.class_fits import fit_classes
from hiddenmanifold.simulation.fit import fit_path

CANDIDATES = np.geomspace(1e3, 1e-4, 15)
"""Regularisations among which to choose, in units of the variance of a feature."""
AT_ONCE = 3
"""Candidates that are tried before looking whether the best one is among them."""
RESOLVED = 0.1
"""Greatest D2/N' of the twin: beyond, a small sample's luck enters level and fall alike."""
SEEN = 1.0 - 1.0 / FOLDS
"""The part of the rows that the fits behind the level have seen."""
FEW_ERRORS = 20
"""Errors counted below which a rate is known to some 40 %."""


@dataclass(frozen=True)
class ClassHead(Head):
    """A head of several classes, with its scores of rows in ten stratified folds and in all.

    Attributes
    ----------
    scores : array (λ, N, K)
        Scores of the rows in fits that did not see them.
    fitted : array (λ, N, K)
        Their scores in the fit to all.
    """

    scores: Array
    fitted: Array
    kinds = "class error", "class loss"
    classified = True

    @classmethod
    @one_thread
    def of(cls, loss: ConvexLoss, ridge: Ridge, Y: Array, lams: Array) -> ClassHead:
        """Fit at some regularisations, with and without each tenth of the rows."""
        X = ridge.scores
        scores = left_out_scores(loss, X, Y, lams, FOLDS)
        fitted, objective = fitted_scores(loss, X, Y, lams, X)
        return cls(loss, ridge, lams, objective, scores, fitted)

    @cached_property
    def curvature(self) -> Array:
        """The mean curvature of the loss: along the contrasts of scores, or along each score."""
        if isinstance(self.loss, Loss):
            short = shortfalls(self.loss, self.ridge.classes, self.fitted)
            mean = self.loss.second_derivative(short).mean((1, 2))
        else:
            p = special.softmax(self.fitted, axis=2)
            mean = np.sum(p * (1.0 - p), axis=2).mean(1) / (p.shape[2] - 1.0)
        found: Array = np.maximum(mean, 1e-12)
        return found

    @cached_property
    def errors(self) -> Array:  # noqa: D102
        lost: Array = (self.scores.argmax(2) != self.ridge.classes).T.astype(float)
        return lost

    @cached_property
    def losses(self) -> Array:  # noqa: D102
        return loss_of_scores(self.loss, self.ridge.classes, self.scores).T

    @cached_property
    def fitted_losses(self) -> Array:  # noqa: D102
        return loss_of_scores(self.loss, self.ridge.classes, self.fitted).T

    @property
    def alone(self) -> float:  # noqa: D102
        nothing, Y = np.zeros((self.ridge.n, 1)), np.eye(self.scores.shape[2])[self.ridge.classes]
        return float(fitted_scores(self.loss, nothing, Y, np.ones(1), nothing)[1][0])

    def twins(self, n: Array, index: Integers, p: Array | None = None) -> tuple[Fits, Array, Array]:
        """Fits of the ridge twins, the falls (2, fits) of error and loss, and confusion."""
        lam = self.lams / self.curvature
        home = Fits.of(self.ridge, np.full(len(lam), SEEN * self.ridge.n), lam, most=RESOLVED)
        fits = Fits.of(self.ridge, n, lam[index], p, RESOLVED)
        wrong = fits.fall_without_intercepts(home, index)
        moved = self.moved(index, fits.moments / home.moments[:, index])
        confusion = confusion_of_scores(self.ridge.classes, moved)
        lost = self._rate(confusion) / self._rate(self.confusion)[index]
        now = self.losses.mean(0)[index]
        loss = loss_of_scores(self.loss, self.ridge.classes, moved).mean(1)
        loss = loss / np.maximum(now, 1e-300)
        falls = np.array([np.sqrt(wrong * lost), np.where(np.isnan(wrong), np.nan, loss)])
        if p is None:  # more samples never make a fit worse
            more = n >= home.n[index]
            falls = np.where(more, np.minimum(falls, 1.0), np.maximum(falls, 1.0))
        return fits, falls, confusion

    @cached_property
    def confusion(self) -> Array:
        """The part of each class that is predicted as each, of left-out scores (K, K, λ)."""
        return confusion_of_scores(self.ridge.classes, self.scores)

    def _rate(self, confusion: Array) -> Array:
        share = np.bincount(self.ridge.classes, minlength=len(confusion)) / self.ridge.n
        wrong = 1.0 - share @ np.einsum("ccf->cf", confusion)
        return with_half_an_error(wrong, self.ridge.n)

    def by_class(
        self, confusion: Array | None, error: Array, fall: Array, index: Integers
    ) -> tuple[Array, Array]:
        """Confusion (K, K, fits) at an error, and deviations of the errors of classes."""
        assert confusion is not None
        rows = np.bincount(self.ridge.classes, minlength=self.scores.shape[2])
        taken, rate = shared(confusion, error, rows)
        lost = by_rows(self.ridge.classes, self.errors, len(rows))[:, index]
        bar = deviation("class error", counting(rate, rows[:, None]), fall, self.ridge.n)
        return taken, unless_none(lost, rate, rows[:, None], bar)

    def moved(self, index: Integers, ratios: Array) -> Array:
        """Left-out scores whose class means grow and whose spread around them changes."""
        own, scores = self.ridge.classes, self.scores[index]
        means = centres(own, scores)
        share = np.bincount(own, minlength=means.shape[1]) / len(own)
        middle = np.einsum("c,fck->fk", share, means)[:, None]
        grow, spread = np.nan_to_num(ratios, nan=1.0)[:, :, None, None]
        moved: Array = middle + grow * (means - middle)[:, own] + spread * (scores - means[:, own])
        return moved


def left_out_scores(loss: ConvexLoss, X: Array, Y: Array, lams: Array, folds: int) -> Array:
    """Scores (λ, N, K) of rows in fits to the other folds, each with its share of every class."""
    own = Y.argmax(1)
    fold = stratified(own, folds)
    scores = np.empty((len(lams), *Y.shape))
    for test in (fold == i for i in range(fold.max() + 1)):
        found = class_scores(loss, X[~test], Y[~test], lams, X[test])
        absent = ~Y[~test].any(0)
        if absent.any() and isinstance(loss, Loss):  # as if only the intercept were fitted
            found[:, :, absent] = -1.0 - loss.anchor
        elif absent.any():  # as improbable as one row among all
            known = special.logsumexp(found[:, :, ~absent], axis=2, keepdims=True)
            found[:, :, absent] = known - np.log(len(own))
        scores[:, test] = found
    return scores


def stratified(own: Integers, folds: int) -> Integers:
    """The fold of each row, at random, with as many rows of a class in every fold as can be."""
    order = np.random.default_rng(0).permutation(len(own))
    order = order[np.argsort(own[order], kind="stable")]
    fold = np.empty(len(own), dtype=int)
    fold[order] = np.arange(len(own)) % folds
    return fold


def class_scores(loss: ConvexLoss, X: Array, Y: Array, lams: Array, others: Array) -> Array:
    """Scores (λ, rows, K) of other rows, in fits to features X and columns Y of 0 and 1.

    A class without rows is never predicted.
    """
    seen = np.flatnonzero(Y.any(0))
    scores = np.full((len(lams), len(others), Y.shape[1]), -np.inf)
    if len(seen) == 1:
        scores[:, :, seen] = 0.0
        return scores
    scores[:, :, seen] = fitted_scores(loss, X, Y[:, seen], lams, others)[0]
    return scores


def fitted_scores(
    loss: ConvexLoss, X: Array, Y: Array, lams: Array, others: Array
) -> tuple[Array, Array]:
    """Scores (λ, rows, K) of other rows, and the minimum of what is fitted (λ,).

    With a loss of the margin each class is fitted against all others.
    """
    size = np.sqrt(X.shape[1])
    if loss.quadratic or not isinstance(loss, Loss):
        fits = fit_classes(loss, X, Y.argmax(1), Y.shape[1], lams, intercept=True)
        scores = np.array([others @ fit.W / size + fit.b for fit in fits])
        return scores, np.array([fit.objective for fit in fits])
    signs = 2.0 * Y.T - 1.0
    apart = [fit_path(loss, Task.CLASSIFICATION, X, y, lams, intercept=True) for y in signs]
    scores = np.array([[others @ fit.w / size + fit.b for fit in path] for path in apart])
    return scores.transpose(1, 2, 0), np.array([[f.objective for f in path] for path in apart]).sum(
        0
    )


@one_thread
def best_of_classes(loss: ConvexLoss, ridge: Ridge, Y: Array) -> float:
    """The regularisation of least left-out log-loss, sought from the largest downwards."""
    lams = float(ridge.k.sum()) / ridge.n * CANDIDATES
    found = np.empty(0)
    while len(found) < len(lams) and (not found.size or found.argmin() >= len(found) - AT_ONCE):
        some = lams[len(found) : len(found) + AT_ONCE]
        scores = left_out_scores(loss, ridge.scores, Y, some, FEWER_FOLDS)
        found = np.append(found, loss_of_scores(loss, ridge.classes, scores).mean(1))
    return float(lams[found.argmin()])


def loss_of_scores(loss: ConvexLoss, own: Integers, scores: Array) -> Array:
    """Losses of rows, of scores (…, N, K).

    Of softmax minus the logarithms of the probabilities of their classes, and of a loss of the
    margin the sum over one class after the other against the rest.
    """
    if isinstance(loss, Loss):
        apart: Array = loss.value(shortfalls(loss, own, scores)).sum(-1)
        return apart
    mine = scores[..., np.arange(len(own)), own]
    together: Array = special.logsumexp(scores, axis=-1) - mine
    return together


def shortfalls(loss: Loss, own: Integers, scores: Array) -> Array:
    """Shortfalls of each class against the rest, of scores (…, N, K)."""
    found: Array = loss.anchor - (2.0 * np.eye(scores.shape[-1])[own] - 1.0) * scores
    return found
