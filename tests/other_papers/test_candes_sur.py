"""Candès and Sur, The phase transition for the existence of the maximum likelihood estimate.

arXiv:1804.09753 (Annals of Statistics 2020). With an intercept the estimate exists if and only if
κ = p/n < h(β0, γ0) = min over t0, t1 of E(t0 Y + t1 YX - Z)+²; without one, t0 = 0. Without signal
this is Cover's 1/2.

Mapping: white features, logistic labels of ρ = γ0² and threshold β0; h is our threshold of
separability.
"""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit

import hiddenmanifold as hm
from other_papers.gaussian import normal, positive_part, positive_square


def h(beta0, gamma0, intercept=True):
    x, weights = normal()
    Y = np.array([[1.0], [-1.0]])
    law = weights * expit(Y * (beta0 + gamma0 * x))

    def gradient(t):
        slope = law * positive_part(t[0] * Y + t[1] * Y * x)
        return np.sum(slope * Y) if intercept else t[0], np.sum(slope * Y * x)

    found = root(gradient, (-0.1 * beta0, -0.3 * gamma0), options={"xtol": 1e-15})
    assert np.max(np.abs(found.fun)) < 1e-12, found
    return np.sum(law * positive_square(found.x[0] * Y + found.x[1] * Y * x))


def predicted(beta0, gamma0, intercept=True):
    rho = gamma0**2
    model = hm.Model(
        features=hm.features.Covariance((1.0,), (rho,), rho),
        teacher=hm.teachers.Logistic(rho=rho, threshold=beta0),
        loss="logistic",
        intercept=intercept,
    )
    return hm.separability_threshold(model).p_over_n


@pytest.mark.parametrize("gamma0", [0.5, 1.0, 2.0, 5**0.5, 4.0])
def test_threshold(agree, gamma0):
    agree(predicted(0.0, gamma0, intercept=False), h(0.0, gamma0, intercept=False))


@pytest.mark.parametrize("gamma0", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("beta0", [0.0, 0.5, 1.5])
def test_threshold_with_intercept(agree, beta0, gamma0):
    agree(predicted(beta0, gamma0), h(beta0, gamma0))


def test_no_signal_is_the_threshold_of_cover(agree):
    """1/2 as printed; h differs from it by the order of γ0²."""
    agree(predicted(0.0, 1e-6, intercept=False), 0.5)
