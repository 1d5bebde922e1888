"""El Karoui, Bean, Bickel, Lim and Yu, On robust regression with high-dimensional predictors.

PNAS 110 (2013) 14557. The error r² of an M-estimator with p/n = κ < 1 and noise ε obeys
E[prox_c'(ε + rZ)] = 1 - κ and κ r² = E(ε + rZ - prox_c(ε + rZ))². For Laplace's noise the absolute
loss is maximum likelihood, yet least squares beats it once κ exceeds about 0.3 (their figure 3).

Mapping: white features, no ridge, linear labels; r² is the clean error, c is V. The density of
ε + rZ is known in closed form, and the proximal map of the absolute loss clips.
"""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import erfc, erfcx

import hiddenmanifold as hm
from other_papers.gaussian import solve

X, W = np.polynomial.legendre.leggauss(60)


def blurred_laplace(z, r):
    """Density of Laplace's noise of scale 1 plus r times a standard normal variable, at z >= 0."""
    far, near = (r + z / r) / np.sqrt(2), (r - z / r) / np.sqrt(2)
    tail = np.exp(-0.5 * (z / r) ** 2) * erfcx(far)
    return 0.25 * (tail + np.exp(0.5 * r**2 - z) * erfc(near))


def integral(function, low, high):
    """An integral over an interval, in sixty parts."""
    edges = np.linspace(low, high, 61)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + X)
    return float((half * W * function(x)).sum())


def absolute(kappa):
    """r² and c of the absolute loss: the residual is clipped at ±c."""

    def equations(r2, c):
        r = np.sqrt(r2)
        inside = 2 * integral(lambda z: blurred_laplace(z, r), 0, c)
        square = 2 * integral(lambda z: z**2 * blurred_laplace(z, r), 0, c)
        return (inside - kappa) / kappa, (square + c**2 * (1 - inside)) / (kappa * r2) - 1

    return solve(equations, (2 * kappa / (1 - kappa), 2 * kappa))


def predicted(loss, kappas):
    features = hm.features.Covariance((1.0,), (1.0,), 1.0)
    teacher = hm.teachers.Linear(noise=hm.noises.Laplace(1.0))
    model = hm.Model(features=features, teacher=teacher, loss=loss)
    ds = hm.predict(model, n_over_p=1 / np.asarray(kappas), regularisation=0)
    return np.transpose([ds.clean_error, ds.V])


KAPPAS = [0.05, 0.1, 0.3, 0.5, 0.7, 0.9]


def test_the_density_is_one():
    for r in (0.2, 1.0, 4.0):
        total = 2 * integral(lambda z, r=r: blurred_laplace(z, r), 0, 12 * r + 40)
        assert total == pytest.approx(1.0, abs=1e-12)
    assert blurred_laplace(0.0, 1e-3) == pytest.approx(0.5, abs=1e-3)


def test_absolute_loss_and_laplace_noise(agree):
    agree(predicted("absolute", KAPPAS), [absolute(kappa) for kappa in KAPPAS])


def test_least_squares_wins_beyond_three_tenths():
    """Its error is 2κ/(1 - κ), the noise having the variance 2."""

    def lead(kappa):
        return predicted("absolute", [kappa])[0, 0] / (2 * kappa / (1 - kappa)) - 1

    assert lead(0.1) < 0 < lead(0.5)
    assert brentq(lead, 0.1, 0.5, xtol=1e-6) == pytest.approx(0.3, abs=0.03)
