"""Salehi, Abbasi and Hassibi, The impact of regularization on high-dimensional logistic regression.

arXiv:1906.03761 (NeurIPS 2019). The three equations of α, σ and γ to which their six reduce for the
regulariser w²/2, with δ = n/p and signal strength κ.

Mapping: their features have variance 1/p, as ours over √p; λ/p |w|²/2 beside a mean over samples is
our λ = theirs times δ; logistic labels of ρ = κ²; M = κ²α, Q = κ²α² + σ² and V = γ.
"""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

import hiddenmanifold as hm
from other_papers.gaussian import normal, prox_logistic, solve


def regularised(delta, kappa, lam):
    """α, σ and γ, followed from a strong regularisation to the one asked for."""

    def equations(strength, alpha, sigma, gamma):
        # Z1 given κα Z1 + σ Z2, so that the proximal map is needed along one axis only
        spread = np.hypot(kappa * alpha, sigma)
        x, weights = normal()
        U, both = spread * x[:, None], np.outer(weights, weights)
        Z1 = (kappa * alpha * x[:, None] + sigma * x) / spread
        prox, rate = prox_logistic(U, gamma), expit(-kappa * Z1)
        bend = expit(prox) * expit(-prox)
        return (
            2 * delta / sigma**2 * np.sum(both * rate * (U - prox) ** 2) - 1,
            2 * delta / alpha * np.sum(both * rate * (1 - rate) * prox) + 1,
            np.sum(both * 2 * rate / (1 + gamma * bend)) - 1 + 1 / delta - strength * gamma,
        )

    found = (0.5, 0.5, 1.0)
    for strength in np.geomspace(0.5, lam, 1 + int(4 * np.log10(0.5 / lam))):
        found = solve(partial(equations, strength), found)
    return found


POINTS = [
    (delta, kappa, lam) for delta in (0.5, 2.0, 8.0) for kappa in (1.0, 2.0) for lam in (0.03, 0.5)
]


@pytest.mark.parametrize(("delta", "kappa", "lam"), POINTS)
def test_bias_deviation_and_gamma(agree, delta, kappa, lam):
    rho = kappa**2
    model = hm.Model(
        features=hm.features.Covariance((1.0,), (rho,), rho),
        teacher=hm.teachers.Logistic(rho=rho),
        loss="logistic",
    )
    ds = hm.predict(model, n_over_p=delta, regularisation=lam * delta)
    alpha = float(ds.M) / rho
    sigma = np.sqrt(float(ds.Q) - rho * alpha**2)
    agree([alpha, sigma, float(ds.V)], regularised(delta, kappa, lam))
