"""Prevalence, AUC and R² of binary outcomes whose linear predictor is normal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.numerics.panels import FAR, Panels, fanned
from hiddenmanifold.numerics.special import normal_density

KNOTS = np.arange(-40.0, 41.0, 4.0)
"""Values of a linear predictor between which the logistic function is resolved."""
RULE = (20, 1)
"""Gauss–Legendre nodes of a panel, and halvings: 1e-14, as `RULE` with more shows."""


def entropy(p: float) -> float:
    """Mean log-loss of the best constant."""
    return float(scipy.special.entr(p) + scipy.special.entr(1.0 - p))


def _averages(mean: float, deviation: float, *functions: Callable[[Array, Array], Array]) -> Array:
    """Averages over a normal g of functions of g and of its standardised value."""
    cuts = (KNOTS - mean) / max(deviation, 1e-300)
    panels = Panels.between(fanned(FAR, cuts[None]), RULE)
    g = mean + deviation * panels.nodes
    return np.array([float(panels.sum(f(g, panels.nodes))[0]) for f in functions])


def intercept_of(prevalence: float, deviation: float) -> float:
    """The mean of a linear predictor of given deviation for which P(+1) is the prevalence."""
    goal = float(scipy.special.logit(prevalence))

    def excess(mean: float) -> float:
        plus, minus = _averages(
            mean,
            deviation,
            lambda g, _: scipy.special.expit(g),
            lambda g, _: scipy.special.expit(-g),
        )
        return float(np.log(plus) - np.log(minus)) - goal

    far = abs(goal) * (1.0 + 0.7 * deviation) + 1.0
    return float(scipy.optimize.brentq(excess, -far, far, xtol=1e-14, rtol=1e-14))


def logistic_auc(mean: float, deviation: float) -> float:
    r"""AUC of a normal linear predictor: half the Gini mean difference of :math:`\sigma(g)`.

    With :math:`p = \sigma(g)` it is
    :math:`\frac12 + E|p - p'|/(4\pi(1-\pi))`, and
    :math:`E|p - p'| = 2\int\Phi(z)\Phi(-z)\,dp`.
    """
    plus, minus, spread = _averages(
        mean,
        deviation,
        lambda g, _: scipy.special.expit(g),
        lambda g, _: scipy.special.expit(-g),
        lambda g, z: (
            deviation
            * scipy.special.expit(g)
            * scipy.special.expit(-g)
            * scipy.special.ndtr(z)
            * scipy.special.ndtr(-z)
            / np.maximum(normal_density(z), 1e-320)
        ),
    )
    return float(0.5 + 0.5 * spread / (plus * minus))


def logistic_r2(mean: float, deviation: float) -> float:
    """Cox and Snell's R² of a normal linear predictor."""
    plus, loss = _averages(
        mean,
        deviation,
        lambda g, _: scipy.special.expit(g),
        lambda g, _: (
            scipy.special.expit(g) * np.logaddexp(0.0, -g)
            + scipy.special.expit(-g) * np.logaddexp(0.0, g)
        ),
    )
    return -float(np.expm1(2.0 * (loss - entropy(plus))))


def binormal_r2(prior: float, rho: float) -> float:
    """Cox and Snell's R² of two normal classes at the squared distance rho from their midpoint."""
    offset = float(scipy.special.logit(prior))
    loss = 0.0
    for share, y in ((prior, 1.0), (1.0 - prior, -1.0)):
        # the margin of the true linear predictor is normal of mean 2 rho and variance 4 rho
        (part,) = _averages(
            2.0 * rho + y * offset, 2.0 * np.sqrt(rho), lambda g, _: np.logaddexp(0.0, -g)
        )
        loss += share * float(part)
    return -float(np.expm1(2.0 * (loss - entropy(prior))))
