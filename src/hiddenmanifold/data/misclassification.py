r"""Misclassification: the left-out scores of a sample, moved to where those of n samples lie.

A class has the score :math:`f_k` that was fitted to its column of 0 and 1, and the highest score is
predicted. The mean scores of classes depend on κ alone, so that they are those of the sample's own
fits. The second moment of the left-out residuals changes by as much as the mean square error, and
so does, less its means, the covariance S of scores within classes. Real scores are not normal
within classes: their tails, which make the errors, are kept. The scores are moved by the linear map
of least displacement, :math:`S_0^{-1/2}(S_0^{1/2} S S_0^{1/2})^{1/2} S_0^{-1/2}`.

The margin, a row's own score less the best of the others, is smoothed by a normal law of
:math:`N_c^{-1/5}` of the class's deviation, the rule of thumb for a density estimated from
:math:`N_c` samples (0.7 of it for more than two classes), and shrunk so that its variance stays the
same.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array, Booleans, Integers

LEAST = 0.5
"""Least part of the variance of scores that is left with more samples."""
SEVERAL = 0.7
"""Bandwidth of several classes in units of the rule of thumb.

Margins of several classes are skewed, as the least of several differences. With the whole bandwidth
rates were 3 to 5 % low on digits and embeddings of them, with 0.7 half of this and no noisier.
MNIST confirmed it.
"""
NULL = 1e-10
"""Part of the largest eigenvalue below which one is rounding: the scores of a row add to 1."""


def classes_of(y: Array) -> Integers:
    """Classes from 0 of labels: ±1, or columns of 0 and 1, centred or not."""
    return y.argmax(1) if y.ndim == 2 and y.shape[1] > 1 else (y.ravel() > 0).astype(int)


def by_columns(left_out: Array) -> Array:
    """Left-out residuals of columns of 0 and 1, which are half of those of labels ±1."""
    return left_out if left_out.shape[-1] > 1 else left_out * np.array([-0.5, 0.5])


def wrong(own: Integers, left_out: Array) -> Booleans:
    """Whether rows are predicted wrongly, (N, fits)."""
    columns = by_columns(left_out)
    scores = np.eye(columns.shape[-1])[own][:, None] - columns
    at = np.arange(len(own))
    mine = scores[at, :, own]
    scores[at, :, own] = -np.inf
    lost: Booleans = mine <= scores.max(2)
    return lost


def confusion(own: Integers, left_out: Array, change: Array) -> Array:
    """The part of each class that is predicted as each.

    Parameters
    ----------
    own : array of int (N,)
        The classes of the rows, from 0.
    left_out : array (N, fits, K)
        Left-out residuals of columns of 0 and 1.
    change : array (fits,)
        That of the mean square error.

    Returns
    -------
    array (K, K, fits)
        Of each class, the parts predicted as each.
    """
    residual = left_out.transpose(1, 0, 2)
    means, away = _around(own, residual)
    freedom = len(own) - len(means[0])
    return confusion_of_scores(own, means[:, own] + away @ _map(residual, away, change, freedom))


def moments(own: Integers, left_out: Array, change: Array) -> Array:
    """Covariance of scores with their columns, and spread of scores within classes, (2, fits).

    Traces of the matrices, the spread as a deviation; parameters are those of `confusion`.
    """
    residual = left_out.transpose(1, 0, 2)
    means, away = _around(own, residual)
    share = np.bincount(own, minlength=means.shape[1]) / len(own)
    with_column = np.einsum("c,fck,ck->f", share, means, np.eye(len(share)) - share)
    inside = np.sum(away**2, axis=(1, 2)) / (len(own) - len(share))
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.maximum(1.0 + np.nan_to_num(change / inside), LEAST)
    return np.array([with_column, np.sqrt(inside * grown)])


def confusion_of_scores(own: Integers, scores: Array) -> Array:
    """The part of each class that is predicted as each (K, K, fits), of scores (fits, N, K)."""
    N, K = scores.shape[1:]
    share = _members(own, K)
    count = np.bincount(own, minlength=K)
    at = np.arange(N)
    mine = scores[:, at, own]
    others = scores.copy()
    others[:, at, own] = -np.inf
    rival = others.argmax(2)
    margin = mine - others.max(2)
    middle = margin @ share.T  # (fits, class)
    spread = np.sqrt(np.maximum(margin**2 @ share.T - middle**2, 0.0))
    h = (1.0 if K == 2 else SEVERAL) * np.maximum(count, 1.0) ** -0.2
    score = middle[:, own] + np.sqrt(1.0 - h[own] ** 2) * (margin - middle[:, own])
    lost = special.ndtr(-score / np.maximum(h * spread, 1e-9)[:, own])
    found = np.array([share @ (lost * (rival == k)).T for k in range(K)]).transpose(1, 0, 2)
    found[np.arange(K), np.arange(K)] = 1.0 - found.sum(1)
    return found


def centres(own: Integers, scores: Array) -> Array:
    """Mean scores of classes (fits, class, score), of scores (fits, N, K)."""
    means: Array = _members(own, scores.shape[2]) @ scores
    return means


def _members(own: Integers, K: int) -> Array:
    """Weights (K, N) that average over each class."""
    member = np.eye(K)[own]
    average: Array = member.T / np.maximum(member.sum(0), 1.0)[:, None]
    return average


def _around(own: Integers, residual: Array) -> tuple[Array, Array]:
    """Mean scores of classes, and the scores around them, of residuals (fits, N, K)."""
    columns = np.eye(residual.shape[2])
    means = columns - centres(own, residual)
    return means, (columns[own] - means[:, own]) - residual


def _map(residual: Array, away: Array, change: Array, freedom: int) -> Array:
    """The map of scores around their class means, (fits, K, K)."""
    S0 = away.transpose(0, 2, 1) @ away / freedom
    second = residual.transpose(0, 2, 1) @ residual / residual.shape[1]
    total = np.trace(second, axis1=1, axis2=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(np.where(total > 0, change / total, 0.0))  # NaN: no such fit
    root, inverse = _roots(S0)
    ratio, turn = np.linalg.eigh(relative[:, None, None] * (inverse @ second @ inverse))
    grown = np.maximum(1.0 + np.nan_to_num(ratio), LEAST)
    S = root @ (turn * grown[:, None]) @ turn.transpose(0, 2, 1) @ root
    found: Array = inverse @ _roots(root @ S @ root)[0] @ inverse
    return found


def _roots(S: Array) -> tuple[Array, Array]:
    """Square roots of covariances, and their pseudo-inverses."""
    values, vectors = np.linalg.eigh(S)
    kept = values > NULL * values[:, -1:]
    root = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.where(kept, 1.0 / np.where(kept, root, 1.0), 0.0)
    across = vectors.transpose(0, 2, 1)
    return (vectors * root[:, None]) @ across, (vectors * inverse[:, None]) @ across


def worst_rate(own: Integers) -> float:
    """The misclassification rate of a die, which no fit exceeds.

    Leave-one-out may: of balanced classes, that of the row left out is the rarest among the others.
    """
    return 1.0 - 1.0 / (int(own.max()) + 1)


def shared(confusion: Array, error: Array, rows: Integers) -> tuple[Array, Array]:
    """Confusion (K, K, fits) that makes so much error, and the rate of each class, (K, fits).

    Half an error is that of any row.
    """
    K, N = len(confusion), rows.sum()
    same = np.eye(K)[:, :, None]
    taken = (1.0 - same) * (N * confusion + 0.5 / (K - 1)) / (N + 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        taken = taken * (error / np.einsum("c,ckf->f", rows / N, taken))
        taken = taken / np.maximum(taken.sum(1, keepdims=True), 1.0)
    rate = np.minimum(taken.sum(1), 1.0)
    return taken + same * (1.0 - rate)[:, None], rate


def by_rows(own: Integers, lost: Array | Booleans, K: int) -> Array:
    """How many rows of each class were wrong, of booleans (N, fits)."""
    found: Array = np.eye(K)[own].T @ lost
    return found


def with_half_an_error(rate: Array, N: int | Array) -> Array:
    """A rate among N samples, none of which is known never to be wrong."""
    return (N * rate + 0.5) / (N + 1.0)
