"""Dobriban and Wager, High-dimensional asymptotics of prediction: ridge regression, classification.

arXiv:1507.03003 (Annals of Statistics 2018). The predictive risk of ridge regression with random
effects of strength α² and unit noise, by the companion Stieltjes transform v(-λ), and at the best
λ = γ/α²; the error Φ(-Θ) of regularised discriminant analysis.

Mapping: γ = p/n and our λ = theirs/γ. Eigenvalues s of Σ are s/p; random effects make the teacher
weights s² α²/p². The discriminant's direction (Σ̂ + λ)⁻¹ δ̂ is that of least squares on the labels of
two equal classes around ±δ, |δ|² = α²: a mixture of teacher weights α²/p².
"""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import hiddenmanifold as hm


def companion(gamma, lam, s):
    """v(-λ) and v'(-λ): -z = 1/v - γ ∫ s/(1 + s v) dH, with H uniform on s."""
    v = brentq(
        lambda v: 1 / v - gamma * np.mean(s / (1 + s * v)) - lam, 1e-9, 1e9, xtol=1e-300, rtol=1e-15
    )
    return v, 1 / (1 / v**2 - gamma * np.mean((s / (1 + s * v)) ** 2))


def ridge_risk(gamma, lam, alpha2, s):
    v, slope = companion(gamma, lam, s)
    return (1 + (lam * alpha2 / gamma - 1) * (1 - lam * slope / v)) / (lam * v)


def discriminant_error(gamma, lam, alpha2, s):
    v, slope = companion(gamma, lam, s)
    m = (v - (1 - gamma) / lam) / gamma
    tau, eta, xi = lam * m * v, (v - lam * slope) / gamma, slope / v**2 - 1
    return ndtr(-alpha2 * tau / np.sqrt(alpha2 * eta + xi))


def ridge_model(alpha2, s):
    p, rho = len(s), alpha2 * np.mean(s)
    features = hm.features.Covariance(s / p, s**2 * alpha2 / p**2, rho)
    return hm.Model(
        features=features, teacher=hm.teachers.Linear(noise=1.0, rho=rho), loss="square"
    )


def discriminant_model(alpha2, s):
    p, rho = len(s), alpha2 * np.mean(1 / s)
    features = hm.features.Covariance(s / p, np.full(p, alpha2 / p**2), rho)
    return hm.Model(features=features, teacher=hm.teachers.Mixture(rho=rho), loss="square")


SPECTRA = {
    "identity": np.ones(1),
    "two levels": np.array([0.2, 1.8]),
    "exponential law": -np.log((np.arange(40) + 0.5) / 40),  # its quantiles
    "autoregressive, 0.9": 0.19 / (1.81 - 1.8 * np.cos(np.pi * (np.arange(64) + 0.5) / 64)),
}
POINTS = [(0.5, 0.1, 1.0), (0.5, 2.0, 4.0), (2.0, 0.05, 3.0), (5.0, 1.0, 0.5)]


@pytest.mark.parametrize("s", SPECTRA.values(), ids=SPECTRA)
def test_risk_of_ridge_regression(agree, s):
    for gamma, lam, alpha2 in POINTS:
        ds = hm.predict(ridge_model(alpha2, s), p_over_n=gamma, regularisation=lam / gamma)
        agree(ds.generalisation_error, ridge_risk(gamma, lam, alpha2, s))


@pytest.mark.parametrize("s", SPECTRA.values(), ids=SPECTRA)
def test_best_ridge(agree, s):
    gamma, alpha2 = 1.5, 2.5
    ds = hm.predict(ridge_model(alpha2, s), p_over_n=gamma, regularisation="optimal")
    agree(ds.generalisation_error, 1 / (gamma / alpha2 * companion(gamma, gamma / alpha2, s)[0]))
    # at a minimum the error knows its place to the root of its own accuracy
    agree(ds.optimal_regularisation, 1 / alpha2, rtol=1e-7)


@pytest.mark.parametrize("s", SPECTRA.values(), ids=SPECTRA)
def test_error_of_discriminant_analysis(agree, s):
    for gamma, lam, alpha2 in POINTS:
        ds = hm.predict(discriminant_model(alpha2, s), p_over_n=gamma, regularisation=lam / gamma)
        agree(ds.generalisation_error, discriminant_error(gamma, lam, alpha2, s))
