"""Vilucchio, Troiani, Erba and Krzakala, Asymptotic characterisation of robust ridge regression.

arXiv:2305.18974. White data in d dimensions, labels with noise of variance Δ_IN, or Δ_OUT for a
share ε of outliers (their β = 1), a ridge penalty λ|w|²/2 on a sum of losses, α = n/d:
m = m̂/(λ + Σ̂), q = (m̂² + q̂)/(λ + Σ̂)², Σ = 1/(λ + Σ̂), and m̂ = Σ̂ and q̂ are averages over the
residual, a mixture of N(0, 1 + q - 2m + Δ).

Mapping: p = d white features; Q = q, M = m, V = Σ.
"""

import numpy as np
import pytest
from scipy.special import erf, erfc

import hiddenmanifold as hm
from other_papers.gaussian import density

INSIDE, OUTSIDE = 0.5, 9.0


def hats(residual2, sigma, loss, size):
    """Σ̂/α and q̂/α of one normal residual: losses whose slope is clipped at ±size."""
    if loss == "l2":
        return 1 / (1 + sigma), residual2 / (1 + sigma) ** 2
    width = sigma if loss == "l1" else 1 + sigma
    g = width * size / np.sqrt(residual2)
    inside, outside = erf(g / np.sqrt(2)), erfc(g / np.sqrt(2))
    return inside / width, residual2 / width**2 * (inside - 2 * g * density(g)) + size**2 * outside


def fixed_point(alpha, lam, share, loss, size):
    m, q, sigma = 0.1, 0.2, 1.0
    for _ in range(20_000):
        parts = [
            hats(1 + q - 2 * m + variance, sigma, loss, size) for variance in (INSIDE, OUTSIDE)
        ]
        slope, square = alpha * ((1 - share) * np.array(parts[0]) + share * np.array(parts[1]))
        new = slope / (lam + slope), (slope**2 + square) / (lam + slope) ** 2, 1 / (lam + slope)
        moved = np.abs(np.subtract(new, (m, q, sigma))).max()
        m, q, sigma = 0.3 * np.array((m, q, sigma)) + 0.7 * np.array(new)
        if moved < 1e-14:
            return m, q, sigma
    raise AssertionError("the iteration did not end")


LOSSES = {"l2": ("square", 1.0), "l1": ("absolute", 1.0), "huber": (hm.losses.Huber(0.7), 0.7)}


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("name", LOSSES)
def test_overlaps(agree, name, share):
    loss, size = LOSSES[name]
    noise = hm.noises.Mixture((1 - share, share), (INSIDE, OUTSIDE))
    features = hm.features.Covariance((1.0,), (1.0,), 1.0)
    model = hm.Model(features=features, teacher=hm.teachers.Linear(noise), loss=loss)
    alphas, lams = [0.5, 1.0, 3.0, 30.0], [0.1, 1.0, 4.0]
    ds = hm.predict(model, n_over_p=alphas, regularisation=lams)
    expected = [[fixed_point(a, lam, share, name, size) for lam in lams] for a in alphas]
    agree(np.stack([ds.M, ds.Q, ds.V], axis=-1), expected)


def test_huber_beats_both_at_their_best_when_a_third_are_outliers():
    """At optimal penalties, and with its best δ, Huber's loss is no worse than either limit."""
    noise = hm.noises.Mixture((0.7, 0.3), (INSIDE, 100.0))
    features = hm.features.Covariance((1.0,), (1.0,), 1.0)

    def best(loss):
        model = hm.Model(features=features, teacher=hm.teachers.Linear(noise), loss=loss)
        return float(hm.predict(model, n_over_p=5.0, regularisation="optimal").clean_error)

    huber = min(best(hm.losses.Huber(delta)) for delta in (0.3, 1.0, 2.0))
    assert huber < min(best("absolute"), best("square"))
