"""Sur and Candès, A modern maximum-likelihood theory for high-dimensional logistic regression.

arXiv:1803.06964 (PNAS 2019). The three equations of the bias α, the deviation σ and λ of the
maximum-likelihood estimate, for κ = p/n and signal strength γ.

Mapping: white features, logistic labels of ρ = γ², logistic loss, λ → 0; then M = αγ²,
Q = α²γ² + κσ² and V = λ. An intercept, which this paper does not have, is in Zhao, Sur and Candès,
arXiv:2001.09351; the programs published with it (github.com/zq00/logisticMLE) state α and √κ σ of
one setting.
"""

import numpy as np
import pytest
from scipy.special import expit

import hiddenmanifold as hm
from other_papers.gaussian import normal, prox_logistic, solve


def mle(kappa, gamma):
    """α, σ and λ, of Q1 ~ N(0, γ²) and Q2 = κ^½ σ Z - α Q1."""

    def equations(alpha, sigma, lam):
        spread = np.hypot(alpha * gamma, kappa**0.5 * sigma)
        x, weights = normal()
        Q2, both = spread * x[:, None], np.outer(weights, weights)
        Q1 = gamma * (-alpha * gamma * x[:, None] + kappa**0.5 * sigma * x) / spread
        rho = expit(prox_logistic(Q2, lam))
        return (
            np.sum(both * 2 * expit(Q1) * (lam * rho) ** 2) / (kappa * sigma) ** 2 - 1,
            np.sum(both * expit(Q1) * Q1 * lam * rho),
            np.sum(both * 2 * expit(Q1) / (1 + lam * rho * (1 - rho))) - 1 + kappa,
        )

    return solve(equations, (1.2, 3.0, 1.0))


def mle_with_intercept(kappa, gamma, beta0):
    """α, σ, λ and the intercept b: the same with labels of both signs, and one more equation."""

    def equations(alpha, sigma, lam, b):
        spread = np.hypot(alpha * gamma, kappa**0.5 * sigma)
        x, weights = normal()
        f, both = b + spread * x[:, None], np.outer(weights, weights)
        Z1 = (alpha * gamma * x[:, None] + kappa**0.5 * sigma * x) / spread
        left = -np.array([1.0, 0.0, 1.0 - kappa, 0.0])
        for y in (1, -1):
            law = both * expit(y * (beta0 + gamma * Z1))
            rho = expit(prox_logistic(-y * f, lam))
            left[0] += np.sum(law * (lam * rho) ** 2) / (kappa * sigma) ** 2
            left[1] += y * np.sum(law * rho * Z1)
            left[2] += np.sum(law / (1 + lam * rho * (1 - rho)))
            left[3] += y * np.sum(law * rho)
        return left

    return solve(equations, (1.3, 4.0, 2.0, 1.3 * beta0))


def predicted(kappa, gamma, beta0=0.0):
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=hm.teachers.Logistic(rho=gamma**2, threshold=beta0),
        loss="logistic",
        intercept=beta0 != 0.0,
    )
    ds = hm.predict(model, p_over_n=kappa, d_over_p=1.0, regularisation=0)
    alpha = ds.M / gamma**2
    sigma = np.sqrt((ds.Q - alpha**2 * gamma**2) / kappa)
    return [float(alpha), float(sigma), float(ds.V), float(ds.intercept)]


POINTS = [
    (0.02, 1.0),
    (0.1, 1.0),
    (0.1, 5**0.5),
    (0.2, 5**0.5),
    (0.3, 1.0),
    (0.15, 2.5),
    (0.35, 0.5),
]


@pytest.mark.parametrize(("kappa", "gamma"), POINTS)
def test_bias_deviation_and_lambda(agree, kappa, gamma):
    agree(predicted(kappa, gamma)[:3], mle(kappa, gamma))


@pytest.mark.parametrize(
    ("kappa", "quoted"), [(0.1, [1.1678, 3.3466, 0.9605]), (0.2, [1.4994, 4.7436, 3.0269])]
)
def test_four_decimals(kappa, quoted):
    """α, σ and λ at γ² = 5, as they are quoted."""
    np.testing.assert_allclose(predicted(kappa, 5**0.5)[:3], quoted, atol=5.1e-5, rtol=0)


@pytest.mark.parametrize(("kappa", "gamma", "beta0"), [(0.1, 1.0, 0.5), (0.2, 5**0.5, 1.0)])
def test_intercept(agree, kappa, gamma, beta0):
    agree(predicted(kappa, gamma, beta0), mle_with_intercept(kappa, gamma, beta0))


def test_printed_with_intercept():
    """α and √κ σ as printed; the programs integrate to 1e-4, so only three digits can agree."""
    alpha, sigma, *_ = predicted(0.2, 5**0.5, beta0=1.0)
    np.testing.assert_allclose([alpha, 0.2**0.5 * sigma], [1.558095, 2.305896], rtol=1e-3)
