"""Deng, Kammoun and Thrampoulidis, A model of double descent for binary linear classification.

arXiv:1911.05822 (Information and Inference 2022). Of d Gaussian features κ = p/n per sample are
used. Labels are logistic in the strength r, of which s² = r² p/d is seen, or those of two classes
around ±r η. Below the threshold κ⋆ = min over t of E(G + tV)-² gradient descent on the logistic
loss ends at the maximum-likelihood estimate, beyond at the largest margin; both by their equations,
with V = YG along the seen signal, or V ~ N(s, 1). Least squares, by the same argument, is the
subject of Kini and Thrampoulidis, arXiv:2001.11572.

Mapping: identity activation, orthogonal projection to p of d directions, teacher logistic of ρ = r²
or a mixture of ρ = r²; λ → 0.
"""

import numpy as np
import pytest
from scipy.optimize import brentq, root
from scipy.special import expit, ndtr

import hiddenmanifold as hm
from other_papers.gaussian import (
    ClassLabel,
    JointLaw,
    LogisticLabel,
    PartLabel,
    law_of_field,
    positive_part,
    positive_square,
    prox_logistic,
    solve,
)

N_OVER_D = 0.8
"""Samples per feature that there is."""


def seen(kind, r, share):
    if kind == "classes":
        return ClassLabel(r * np.sqrt(share))
    return PartLabel(LogisticLabel(r), share)


def error(label, ratio):
    """P(V + G α/μ < 0)."""
    V, weights = law_of_field(label)
    return float(weights @ ndtr(-V / ratio))


def maximum_likelihood(kappa, label):
    """α/μ of the logistic loss below the threshold."""

    def equations(mu, alpha, lam):
        law = JointLaw(label, mu, alpha)
        prox = -prox_logistic(-law.X, lam)
        slope, bend = -expit(-prox), expit(prox) * expit(-prox)
        return (
            law.mean_with_field(slope),
            lam**2 / (kappa * alpha**2) * law.mean(slope**2) - 1,
            lam / kappa * law.mean(bend / (1 + lam * bend)) - 1,
        )

    mu, alpha, _ = solve(equations, (1.5, 1.5, 1.0))
    return alpha / mu


def largest_margin(kappa, label):
    """α/μ and the margin 1/q: E(√(1-ρ²) H + ρV - 1/q)-² = (1-ρ²) κ, stationary in ρ."""
    V, weights = law_of_field(label)

    def equations(t):
        rho, margin = np.tanh(t[0]), t[1]
        c = np.sqrt(1 - rho**2)
        a = (margin - rho * V) / c
        stationary = c * weights @ (V * positive_part(a)) + rho * (weights @ ndtr(a) - kappa)
        return stationary, weights @ positive_square(a) - kappa

    found = root(equations, (0.4, 0.1), options={"xtol": 1e-15})
    assert np.max(np.abs(found.fun)) < 1e-12, found
    return 1 / np.sinh(found.x[0]), found.x[1]


def least_squares(kappa, label):
    """α/μ: E(1 - X)², or beyond κ = 1 the shortest w with E(1 - X)² = κα²."""
    V, weights = law_of_field(label)
    first, second = weights @ V, weights @ V**2
    if kappa < 1:
        mu = first / second
        alpha2 = kappa / (1 - kappa) * (1 - 2 * mu * first + mu**2 * second)
    else:
        mu = first / (kappa - 1 + second)
        alpha2 = (1 - 2 * mu * first + mu**2 * second) / (kappa - 1)
    return np.sqrt(alpha2) / mu


def threshold(label):
    """min over t of E(G + tV)-²."""
    V, weights = law_of_field(label)
    t = brentq(lambda t: weights @ (V * positive_part(-t * V)), 0.0, 20.0, xtol=1e-15)
    return weights @ positive_square(-t * V)


def model(kind, r, loss):
    teacher = hm.teachers.Mixture if kind == "classes" else hm.teachers.Logistic
    return hm.Model(
        activation="identity", projection="orthogonal", teacher=teacher(rho=r**2), loss=loss
    )


KINDS = [("logistic", 5.0), ("logistic", 10.0), ("classes", 1.5), ("classes", 2.5)]


@pytest.mark.parametrize(("kind", "r"), KINDS)
def test_threshold(agree, kind, r):
    """Where κ is the threshold of what is seen with it, p/d = κ n/d."""

    def excess(kappa):
        return threshold(seen(kind, r, kappa * N_OVER_D)) - kappa

    expected = brentq(excess, 0.01, 0.6, xtol=1e-15)
    found = hm.separability_threshold(model(kind, r, "logistic"), n_over_d=N_OVER_D)
    agree(found.p_over_n, expected)


@pytest.mark.parametrize(("kind", "r"), KINDS)
def test_logistic_loss(agree, kind, r):
    edge = brentq(lambda k: threshold(seen(kind, r, k * N_OVER_D)) - k, 0.01, 0.6, xtol=1e-15)
    for kappa in (0.3 * edge, 0.8 * edge):
        label = seen(kind, r, kappa * N_OVER_D)
        ds = hm.predict(
            model(kind, r, "logistic"), n_over_d=N_OVER_D, p_over_n=kappa, regularisation=0
        )
        agree(ds.generalisation_error, error(label, maximum_likelihood(kappa, label)))
    for kappa in (1.3 * edge, 1.0):
        label = seen(kind, r, kappa * N_OVER_D)
        ratio, margin = largest_margin(kappa, label)
        ds = hm.predict(
            model(kind, r, "logistic"), n_over_d=N_OVER_D, p_over_n=kappa, regularisation=0
        )
        agree([ds.generalisation_error, ds.margin], [error(label, ratio), margin])


@pytest.mark.parametrize(("kind", "r"), KINDS)
def test_least_squares(agree, kind, r):
    kappas = [0.2, 0.7, 1.1, 1.2]
    labels = [seen(kind, r, kappa * N_OVER_D) for kappa in kappas]
    expected = [error(lb, least_squares(k, lb)) for lb, k in zip(labels, kappas, strict=True)]
    ds = hm.predict(model(kind, r, "square"), n_over_d=N_OVER_D, p_over_n=kappas, regularisation=0)
    agree(ds.generalisation_error, expected)
