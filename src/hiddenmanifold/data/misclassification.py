r"""Misclassification rates: the left-out scores of a sample, moved to where those of n samples lie.

The mean scores of classes depend on κ alone, so that they are those of the sample's own fits. The
scores' variance around them changes by as much as the mean square error. Real scores are not
normal within classes: their tails, which make the errors, are kept. The scores are smoothed by a
normal law of :math:`N_y^{-1/5}` of the class's deviation, the rule of thumb for a density estimated
from :math:`N_y` samples, and shrunk so that their variance stays the same.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array

LEAST = 0.5
"""Least part of the variance of scores that is left with more samples."""


def misclassified(y: Array, left_out: Array, change: Array) -> Array:
    """The part of scores on the wrong side.

    Parameters
    ----------
    y : array (N,)
        Labels ±1, centred or not.
    left_out : array (N, fits)
        Left-out residuals.
    change : array (fits,)
        That of the mean square error.
    """
    y = np.sign(y)
    along = 1.0 - y[:, None] * left_out
    classes = [along[y > 0], along[y < 0]]
    away = [part - part.mean(0) for part in classes]
    spread = sum((part**2).sum(0) for part in away) / (len(y) - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.sqrt(np.maximum(1.0 + change / spread, LEAST))
    factor = np.where(spread > 0, factor, 1.0)
    wrong = np.zeros(along.shape[1])
    for part, rest in zip(classes, away, strict=True):
        h = len(part) ** -0.2
        score = part.mean(0) + np.sqrt(1.0 - h**2) * factor * rest
        width = np.maximum(h * factor * part.std(0), 1e-9)
        wrong += special.ndtr(-score / width).sum(0)
    return wrong / len(y)


def with_half_an_error(rate: Array, N: int | Array) -> Array:
    """A rate among N samples, none of which is known never to be wrong."""
    return (N * rate + 0.5) / (N + 1.0)
