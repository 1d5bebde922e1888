r"""Misclassification rates from the means, the deviation and the shape of the scores.

Real scores are not normal within classes: their tails, which make the errors, are longer or
shorter, and one class may spread more than the other. Leave-one-out residuals show the shape at
every κ. It is smoothed by a normal law of :math:`N_y^{-1/5}` of the class's deviation, the rule of
thumb for a density estimated from :math:`N_y` samples; the quantiles are shrunk so that the
variance stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array
from hiddenmanifold.data.ridge import Path

BINS = 128
"""Quantiles that a shape is known by, at most."""


@dataclass(frozen=True)
class Shape:
    """Scores of two classes around their means, in units of their common deviation, along κ.

    Attributes
    ----------
    log_kappa : array (κ,)
        Of fits that can be trusted.
    quantiles : pair of arrays (quantiles, κ)
        Of the scores of the classes +1 and -1, along the label.
    share : pair of arrays (quantiles,)
        The fraction of all samples that each quantile represents.
    width : pair of arrays (κ,)
        Deviation of the normal law that smooths them.
    """

    log_kappa: Array
    quantiles: tuple[Array, Array]
    share: tuple[Array, Array]
    width: tuple[Array, Array]

    @classmethod
    def of(cls, path: Path) -> Shape:
        """The shape of left-out scores."""
        good = np.flatnonzero(path.trusted)
        along = np.sign(path.y)[:, None] * (path.y[:, None] - path.left_out[:, good])
        parts = [along[path.y > 0], along[path.y < 0]]
        away = [np.sort(part - part.mean(0), axis=0) for part in parts]
        common = np.sqrt(sum((part**2).sum(0) for part in away) / (path.n - 2))
        common = np.maximum(common, 1e-300)
        quantiles, share, width = [], [], []
        for part in away:
            h = len(part) ** -0.2
            groups = np.array_split(part / common, min(BINS, len(part)))
            quantiles.append(np.sqrt(1.0 - h**2) * np.array([group.mean(0) for group in groups]))
            share.append(np.array([len(group) for group in groups]) / path.n)
            width.append(np.maximum(h * part.std(0) / common, 1e-9))
        pairs = ((one, other) for one, other in (quantiles, share, width))
        return cls(np.log(path.kappa[good]), *pairs)

    def wrong(self, kappa: Array, means: tuple[Array, Array], deviation: Array) -> Array:
        """Fraction of scores on the wrong side, given their means along the labels +1 and -1."""
        there = interpolation(self.log_kappa, kappa)
        total = np.zeros_like(kappa)
        for mean, q, share, w in zip(means, self.quantiles, self.share, self.width, strict=True):
            with np.errstate(divide="ignore", over="ignore"):
                margin = (mean / deviation + there(q)) / there(w)
            total += share @ special.ndtr(-margin)
        return total


def interpolation(log_kappa: Array, kappa: Array) -> Callable[[Array], Array]:
    """A function that interpolates arrays along κ, their last axis; constant beyond the ends."""
    last = len(log_kappa) - 1
    index = np.interp(np.log(kappa), log_kappa, np.arange(last + 1.0))
    low = index.astype(int)
    high, part = np.minimum(low + 1, last), index - low
    return lambda values: (1.0 - part) * values[..., low] + part * values[..., high]
