"""Sur and Candès, A modern maximum-likelihood theory for high-dimensional logistic regression.

arXiv:1803.06964 (PNAS 2019). Equations (5): bias α, deviation σ and λ of the maximum-likelihood
estimate, for κ = p/n and signal strength γ.

Mapping: white features, logistic labels of ρ = γ², logistic loss, λ → 0; then M = αγ²,
Q = α²γ² + κσ² and V = λ.
"""

import numpy as np
import pytest
from other_papers.gaussian import normal, prox_logistic, solve
from scipy.special import expit

import hiddenmanifold as hm


def pair(variance, covariance, other):
    """Grids of two joint normal variables, the second along the first axis, and weights."""
    x, weights = normal()
    second = np.sqrt(other) * x[:, None]
    first = covariance / np.sqrt(other) * x[:, None]
    first = first + np.sqrt(variance - covariance**2 / other) * x
    return first, second, np.outer(weights, weights)


def mle(kappa, gamma):
    def equations(alpha, sigma, lam):
        Q1, Q2, weights = pair(gamma**2, -alpha * gamma**2, (alpha * gamma) ** 2 + kappa * sigma**2)
        rho = expit(prox_logistic(Q2, lam))
        return (
            np.sum(weights * 2 * expit(Q1) * (lam * rho) ** 2) / (kappa * sigma) ** 2 - 1,
            np.sum(weights * expit(Q1) * Q1 * lam * rho),
            np.sum(weights * 2 * expit(Q1) / (1 + lam * rho * (1 - rho))) - 1 + kappa,
        )

    return solve(equations, (1.2, 3.0, 1.0))


def predicted(kappa, gamma):
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=hm.teachers.Logistic(rho=gamma**2),
        loss="logistic",
    )
    ds = hm.predict(model, p_over_n=kappa, d_over_p=1.0, regularisation=0)
    alpha = ds.M / gamma**2
    sigma = np.sqrt((ds.Q - alpha**2 * gamma**2) / kappa)
    return [float(alpha), float(sigma), float(ds.V)]


POINTS = [(0.02, 1.0), (0.1, 1.0), (0.1, 5**0.5), (0.2, 5**0.5), (0.3, 1.0), (0.15, 2.5), (0.35, 0.5)]


@pytest.mark.parametrize(("kappa", "gamma"), POINTS)
def test_bias_deviation_and_lambda(agree, kappa, gamma):
    agree(predicted(kappa, gamma), mle(kappa, gamma))
