"""Taheri, Pedarsani and Thrampoulidis, on convex losses for binary models.

arXiv:2002.07284, Sharp asymptotics and optimal performance for inference in binary models: least
squares in closed form, and the least α/μ of any convex loss, by the Fisher information of
αG/μ + SY; its abstract says that least squares is no worse than 0.997 (logistic) and 0.98 (probit)
times the best. arXiv:2006.08917, Fundamental limits of ridge-regularized empirical risk
minimization: the three equations of μ, α and λ for any loss of the margin and a ridge r.

Mapping: white features, δ = n/p, ρ = 1; r/2 |x|² beside a mean over samples is our λ = rδ; M = μ,
Q = μ² + α² and V = λ.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import hiddenmanifold as hm
from other_papers.gaussian import (
    JointLaw,
    LogisticLabel,
    ProbitLabel,
    prox_logistic,
    solve,
)

LABELS = {
    "signed": (ProbitLabel(), hm.teachers.Sign()),
    "logistic": (LogisticLabel(), hm.teachers.Logistic()),
    "steep logistic": (LogisticLabel(5.0), hm.teachers.Logistic(slope=5.0)),
    "probit": (ProbitLabel(1.0), hm.teachers.Sign(noise=1.0)),
}
PROXIMAL = {
    "logistic": (lambda x, lam: -prox_logistic(-x, lam), lambda lam: ()),
    "absolute": (
        lambda x, lam: x - np.clip(x - 1, -lam, lam),
        lambda lam: (1 - lam, 1 + lam),
    ),
    "hinge": (lambda x, lam: x + np.clip(1 - x, 0, lam), lambda lam: (1 - lam, 1.0)),
    "square": (lambda x, lam: (x + lam) / (1 + lam), lambda lam: ()),
}


def minimiser(delta, r, label, loss):
    """μ, α and λ of 2006.08917, with the derivative of the Moreau envelope (x - prox(x))/λ."""
    prox, kinks = PROXIMAL[loss]

    def equations(mu, alpha, lam):
        law = JointLaw(label, mu, alpha, kinks(lam))
        slope = (law.X - prox(law.X, lam)) / lam
        along = law.mean_with_field(slope)
        with_G = (law.mean(law.X * slope) - mu * along) / alpha
        return (
            along + r * mu,
            lam**2 * delta / alpha**2 * law.mean(slope**2) - 1,
            lam * delta / alpha * with_G - 1 + lam * delta * r,
        )

    return solve(equations, (0.6, 0.6, 1.0))


def predicted(label, loss, delta, r=0.0):
    model = hm.Model(
        activation="identity", projection="orthogonal", teacher=LABELS[label][1], loss=loss
    )
    return hm.predict(model, n_over_p=delta, d_over_p=1.0, regularisation=r * delta)


@pytest.mark.parametrize("loss", PROXIMAL)
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(("delta", "r"), [(0.6, 0.3), (5.0, 0.02)])
def test_ridge_regularised_losses(agree, loss, label, delta, r):
    mu, alpha, lam = minimiser(delta, r, LABELS[label][0], loss)
    ds = predicted(label, loss, delta, r)
    agree([ds.M, ds.Q, ds.V], [mu, mu**2 + alpha**2, lam])


def visible(label):
    """E[SY]."""
    return float(label.given(0.0, 1.0)[1])


def least_squares(delta, label):
    """(α/μ)² of least squares without ridge."""
    return (1 / visible(label) ** 2 - 1) / (delta - 1)


def fisher(sigma, label):
    """Fisher information of σG + SY."""
    law = JointLaw(label, 1.0, sigma)
    total = 1 + sigma**2
    score = -law.X / total + (law.V - law.X / total * law.one) / (sigma**2 * law.one)
    return law.mean(score**2)


def least_of_all(delta, label):
    """The least (α/μ)² of any convex loss."""

    def kappa(sigma):
        J = fisher(sigma, label)
        return sigma**2 * (sigma**2 * J + J - 1) / (1 + sigma**2 * (sigma**2 * J - 1))

    return brentq(lambda sigma: kappa(sigma) - 1 / delta, 1e-3, 100.0) ** 2


def squared_ratio(label, loss, delta):
    ds = predicted(label, loss, delta)
    return float(ds.Q / ds.M**2 - 1)


@pytest.mark.parametrize("label", LABELS)
def test_least_squares(agree, label):
    deltas = [1.2, 2.0, 6.0, 40.0]
    expected = [least_squares(delta, LABELS[label][0]) for delta in deltas]
    agree([squared_ratio(label, "square", delta) for delta in deltas], expected)


@pytest.mark.parametrize(("label", "printed"), [("logistic", 0.997), ("probit", 0.98)])
def test_least_squares_is_almost_the_best(label, printed):
    """The abstract, printed, of α/μ; the squares of the ratios are 0.9967 and 0.9717 at worst."""
    for delta in (1.01, 2.0, 6.0, 40.0, 1e3):
        best = least_of_all(delta, LABELS[label][0])
        assert printed < np.sqrt(best / squared_ratio(label, "square", delta)) < 1
    assert best < squared_ratio(label, "logistic", delta) < squared_ratio(label, "square", delta)
