"""Mei and Montanari, The generalization error of random features regression.

arXiv:1908.05355 (CPAM 2022). The risk F1² B + (τ² + F⋆²) V + F⋆² by χ = ν1 ν2 and the polynomials
E0, E1, E2; its limits λ → 0, infinitely many features, and infinitely many samples.

Mapping: ψ1 = p/d, ψ2 = n/d, ζ = κ1/κ⋆; a = w/√p makes their (Nλ/d)|a|² beside a mean our
λψ2/2 |w|² beside a sum of halves; ρ = F1² and noise τ² + F⋆²; their risk is without τ², ours is
against noisy labels, which is the same as F1² B + noise (1 + V).
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import hiddenmanifold as hm

F1_SQUARED, NOISE = 1.7, 0.3


def kappas(name):
    """Variance of the linear part, and of the rest, of an activation, typed in."""
    linear, second = {
        "erf": (4 / (3 * np.pi), 2 / np.pi * np.arcsin(2 / 3)),
        "sign": (2 / np.pi, 1.0),
        "relu": (1 / 4, 1 / 2 - 1 / (2 * np.pi)),
    }[name]
    return linear, second - linear


def chi(zeta2, psi1, psi2, lam_bar):
    """ν1 ν2 at ξ = i sqrt(ψ1 ψ2 λ/κ⋆²): the ν are i times positive numbers a and b."""
    x = np.sqrt(psi1 * psi2 * lam_bar)

    def partner(a):
        """The b of the first equation, of a (x + b + ζ² b/(1 + ζ² a b)) = ψ1: a quadratic."""
        A, B, C = a**2 * zeta2, a * (1 + zeta2) + zeta2 * a * (a * x - psi1), a * x - psi1
        return -2 * C / (B + np.sqrt(B**2 - 4 * A * C))

    def second(a):
        b = partner(a)
        return b * (x + a + zeta2 * a / (1 + zeta2 * a * b)) - psi2

    a = brentq(second, psi1 / x * 1e-14, psi1 / x * (1 - 1e-16), xtol=1e-300, rtol=1e-15)
    return -a * partner(a)


def chi_ridgeless(zeta2, psi1, psi2):
    linear = (min(psi1, psi2) - 1) * zeta2 - 1
    return -(np.sqrt(linear**2 + 4 * zeta2 * min(psi1, psi2)) + linear) / (2 * zeta2)


def bias_and_variance(c, zeta2, psi1, psi2):
    z2, z4, z6, both = zeta2, zeta2**2, zeta2**3, psi1 * psi2
    E0 = -(c**5) * z6 + 3 * c**4 * z4 + (both - psi2 - psi1 + 1) * c**3 * z6
    E0 += -2 * c**3 * z4 - 3 * c**3 * z2 + (psi1 + psi2 - 3 * both + 1) * c**2 * z4
    E0 += 2 * c**2 * z2 + c**2 + 3 * both * c * z2 - both
    E1 = psi2 * c**3 * z4 - psi2 * c**2 * z2 + both * c * z2 - both
    E2 = c**5 * z6 - 3 * c**4 * z4 + (psi1 - 1) * c**3 * z6 + 2 * c**3 * z4 + 3 * c**3 * z2
    E2 += (-psi1 - 1) * c**2 * z4 - 2 * c**2 * z2 - c**2
    return E1 / E0, E2 / E0


def risk(bias, variance):
    return F1_SQUARED * bias + NOISE * (1 + variance)


def omega(zeta2, psi, shrunk):
    """ω of the last two limits, with ψ = ψ2 and ψ1, and the ridge λψ/κ⋆²."""
    linear = (psi - 1) * zeta2 - shrunk - 1
    root = np.sqrt(linear**2 + 4 * psi * zeta2 * (shrunk + 1))
    return -(root + linear) / (2 * (shrunk + 1))


def cubic(w, psi):
    return (psi - 1) * w**3 + (1 - 3 * psi) * w**2 + 3 * psi * w - psi


def predicted(activation, lam, **ratios):
    teacher = hm.teachers.Linear(noise=NOISE, rho=F1_SQUARED)
    model = hm.Model(activation=activation, projection="gaussian", teacher=teacher, loss="square")
    return hm.predict(model, regularisation=lam, **ratios).generalisation_error


RIDGE = [
    (activation, psi1, psi2, lam)
    for activation in ("erf", "sign", "relu")
    for psi1, psi2, lam in [(0.5, 2, 0.1), (2, 2, 1e-3), (5, 1.5, 0.02), (3, 8, 1), (20, 3, 1e-2)]
]


@pytest.mark.parametrize(("activation", "psi1", "psi2", "lam"), RIDGE)
def test_ridge(agree, activation, psi1, psi2, lam):
    linear, rest = kappas(activation)
    c = chi(linear / rest, psi1, psi2, lam / rest)
    expected = risk(*bias_and_variance(c, linear / rest, psi1, psi2))
    agree(predicted(activation, lam * psi2, p_over_d=psi1, n_over_d=psi2), expected)


@pytest.mark.parametrize("activation", ["erf", "sign", "relu"])
def test_ridgeless(agree, activation):
    linear, rest = kappas(activation)
    for psi1, psi2 in [(0.5, 3), (2, 3), (3, 2), (4, 3), (30, 3)]:
        c = chi_ridgeless(linear / rest, psi1, psi2)
        expected = risk(*bias_and_variance(c, linear / rest, psi1, psi2))
        agree(predicted(activation, 0, p_over_d=psi1, n_over_d=psi2), expected)


@pytest.mark.parametrize(("psi2", "lam"), [(0.5, 0.3), (3, 0.01), (3, 1), (20, 0.1), (2, 0)])
def test_infinitely_many_features(agree, psi2, lam):
    linear, rest = kappas("erf")
    w = omega(linear / rest, psi2, lam * psi2 / rest)
    below = cubic(w, psi2)
    expected = risk(psi2 * (w - 1) / below, (w**3 - w**2) / below)
    agree(predicted("erf", lam * psi2, p_over_n=np.inf, n_over_d=psi2), expected)


@pytest.mark.parametrize(("psi1", "lam"), [(0.5, 0.3), (3, 0.01), (3, 1), (20, 0.1), (2, 0)])
def test_infinitely_many_samples(agree, psi1, lam):
    """No variance is left. Their λ stays while ours grows like n/d, which 1e12 makes large."""
    linear, rest = kappas("erf")
    w = omega(linear / rest, psi1, lam * psi1 / rest)
    bias = ((w**3 - w**2) * rest / linear + psi1 * (w - 1)) / cubic(w, psi1)
    agree(predicted("erf", lam * 1e12, p_over_d=psi1, n_over_d=1e12), risk(bias, 0.0))
