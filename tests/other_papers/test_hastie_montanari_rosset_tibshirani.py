"""Hastie, Montanari, Rosset and Tibshirani, Surprises in high-dimensional ridgeless least squares.

arXiv:1903.08560 (Annals of Statistics 2022). Isotropic features: the risk of the shortest
interpolator and of ridge regression; correlated features: the predicted bias and variance of both,
by the spectral measures H of Σ and G of β; the misspecified model, of which a part is seen.

Mapping: γ = p/n, r² = |β|², σ² the noise; β = w/√p turns their λ|β|² beside a mean of squares into
our λ = theirs/γ; their risk is the generalisation error less σ². A direction of Σ with eigenvalue s
and share g of |β|² has the eigenvalue s/p and the teacher weight s² g r²/p. Seeing p of d isotropic
features is an orthogonal projection: κ = p/d.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import hiddenmanifold as hm

R2, SIGMA2 = 5.0, 0.8


def isotropic(gamma, *, r2=R2, sigma2=SIGMA2):
    """Risk of the shortest interpolator."""
    if gamma < 1:
        return sigma2 * gamma / (1 - gamma)
    return r2 * (1 - 1 / gamma) + sigma2 / (gamma - 1)


def misspecified(gamma, kappa):
    """The same with the share κ of the signal seen: the rest is noise, and risk."""
    hidden = R2 * (1 - kappa)
    return hidden + isotropic(gamma, r2=R2 * kappa, sigma2=SIGMA2 + hidden)


def isotropic_ridge(gamma, lam):
    """Integral of their limit over the Marchenko-Pastur law, the angle as its variable."""
    angle, weights = np.polynomial.legendre.leggauss(400)
    angle, weights = (angle + 1) * np.pi / 2, weights * np.pi / 2
    s = 1 + gamma + 2 * np.sqrt(gamma) * np.cos(angle)
    law = weights * 2 * np.sin(angle) ** 2 / (np.pi * s)
    at_zero = max(0.0, 1 - 1 / gamma)
    bias = law @ (lam**2 / (s + lam) ** 2) + at_zero
    return R2 * bias + SIGMA2 * gamma * law @ (s / (s + lam) ** 2)


def correlated(gamma, s, g):
    """Predicted bias and variance of the shortest interpolator, γ > 1; H is uniform on s."""

    def seen(c):
        return np.mean(1 / (1 + c * gamma * s)) - 1 + 1 / gamma

    c = brentq(seen, 1e-12, 1e12, xtol=1e-300, rtol=1e-15)
    square = (1 + c * gamma * s) ** 2
    ratio = np.mean(s**2 / square) / np.mean(s / square)
    return R2 * (1 + gamma * c * ratio) * g @ (s / square) + SIGMA2 * gamma * c * ratio


def correlated_ridge(gamma, lam, s, g):
    """Predicted bias and variance at λ, by m(-λ), its derivative and m1(-λ)."""

    def shrink(m):
        return 1 - gamma + gamma * lam * m

    def fixed(m):
        return np.mean(1 / (s * shrink(m) + lam)) - m

    m = brentq(fixed, max(0.0, 1 - 1 / gamma) / lam, 1 / lam, xtol=1e-300, rtol=1e-15)
    square = (s * shrink(m) + lam) ** 2
    below = 1 + gamma * lam * np.mean(s / square)
    slope = np.mean((1 + gamma * m * s) / square) / below
    m1 = shrink(m) * np.mean(s**2 / square) / below
    bias = lam**2 * R2 * (1 + gamma * m1) * g @ (s / square)
    return bias + SIGMA2 * gamma * (1 - gamma + gamma * lam**2 * slope) * np.mean(s**2 / square)


def predicted(features, r2=R2, sigma2=SIGMA2, lam=0.0, **ratios):
    rho = features.rho if isinstance(features, hm.features.Covariance) else r2
    teacher = hm.teachers.Linear(noise=sigma2, rho=rho)
    model = hm.Model(features=features, teacher=teacher, loss="square")
    return hm.predict(model, regularisation=lam, **ratios).generalisation_error - sigma2


def white(r2=R2):
    return hm.features.Covariance((1.0,), (r2,), r2)


def coloured(s, g):
    visible = s * g * R2
    return hm.features.Covariance(s / len(s), visible * s / len(s), visible.sum())


SEEN = hm.features.RandomFeatures("identity", "orthogonal")
GAMMAS = [0.05, 0.5, 0.9, 1.1, 2.0, 30.0]


def test_shortest_interpolator_of_isotropic_features(agree):
    agree(predicted(white(), p_over_n=GAMMAS), [isotropic(gamma) for gamma in GAMMAS])


@pytest.mark.parametrize("snr", [2.0, 9.0, 100.0])
def test_least_risk_beyond_interpolation(agree, snr):
    """It is at γ = √SNR/(√SNR - 1), and σ² (2 √SNR - 1)."""
    gamma = snr**0.5 / (snr**0.5 - 1)
    agree(predicted(white(snr), sigma2=1.0, p_over_n=gamma), 2 * snr**0.5 - 1)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 4.0])
def test_ridge_of_isotropic_features(agree, gamma):
    lams = np.array([0.01, 0.3, 5.0])
    expected = [isotropic_ridge(gamma, lam) for lam in lams]
    agree(predicted(white(), lam=lams / gamma, p_over_n=gamma), expected)


@pytest.mark.parametrize("kappa", [0.1, 0.7])
def test_misspecified_model(agree, kappa):
    expected = [misspecified(gamma, kappa) for gamma in GAMMAS]
    agree(predicted(SEEN, p_over_n=GAMMAS, p_over_d=kappa), expected)


SPECTRA = {
    "two levels, β in the large one": ([1.0, 0.1, 0.1, 0.1], [1.0, 0.0, 0.0, 0.0]),
    "ten levels, β anywhere": (np.linspace(0.2, 3.0, 10), np.linspace(1.0, 0.1, 10) / 5.5),
    "power law, β in the small ones": (np.arange(1, 31) ** -1.5, np.arange(1, 31) / 465),
}


@pytest.mark.parametrize(("s", "g"), SPECTRA.values(), ids=SPECTRA)
def test_correlated_features(agree, s, g):
    s, g = np.array(s), np.array(g)
    gammas, lams = [1.2, 2.0, 8.0], np.array([0.02, 0.5])
    expected = [correlated(gamma, s, g) for gamma in gammas]
    agree(predicted(coloured(s, g), p_over_n=gammas), expected)
    for gamma in (0.5, 2.0):
        expected = [correlated_ridge(gamma, lam, s, g) for lam in lams]
        agree(predicted(coloured(s, g), lam=lams / gamma, p_over_n=gamma), expected)
