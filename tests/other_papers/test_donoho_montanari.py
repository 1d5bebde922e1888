"""Donoho and Montanari, High dimensional robust M-estimation: asymptotic variance.

arXiv:1310.7320 (PTRF 2016). The fixed point of state evolution, τ² = δ E Ψ(W + τZ; b)² and
1/δ = E Ψ'(W + τZ; b) with Ψ(z; b) = z - prox(z) of b times the loss, for δ = n/p > 1: τ² is the
extra Gaussian noise, τ²δ the variance of a coefficient in their units. Residuals are those that the
fixed point of message passing leaves, z - Ψ(z; b).

Mapping: white features, no ridge; linear labels of any ρ with noise W, normal or contaminated as in
their section 4 (5 % of the noise is ten times as wide); τ² is the clean error, and b is V.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import hiddenmanifold as hm
from other_papers.gaussian import density, solve


def clipped_square(c):
    """E min(|Z|, c)²."""
    return 2 * ndtr(c) - 1 - 2 * c * density(c) + 2 * c**2 * ndtr(-c)


def absolute(delta, noise):
    """τ², b and the mean residual of the absolute loss: Ψ clips at ±b."""
    c = ndtri((1 + 1 / delta) / 2)
    share = delta * clipped_square(c)
    tau2 = noise * share / (1 - share)
    spread = np.sqrt(noise + tau2)
    return tau2, c * spread, 2 * spread * (density(c) - c * ndtr(-c))


def huber(delta, noise, k):
    """τ² and b of Huber's loss: Ψ has the slope b/(1 + b) up to |z| = (1 + b) k."""

    def equations(tau2, b):
        spread = np.sqrt(noise + tau2)
        c = (1 + b) * k / spread
        shrunk = b / (1 + b) * spread
        return (
            delta * shrunk**2 * clipped_square(c) / tau2 - 1,
            delta * b / (1 + b) * (2 * ndtr(c) - 1) - 1,
        )

    tau2, b, _ = absolute(delta, noise)  # the limit of small k
    return solve(equations, (tau2, b / k + 1 / (delta - 1)))


def predicted(loss, deltas, noise):
    features = hm.features.Covariance((1.0,), (2.0,), 2.0)
    teacher = hm.teachers.Linear(noise=noise, rho=2.0)
    ds = hm.predict(
        hm.Model(features=features, teacher=teacher, loss=loss), n_over_p=deltas, regularisation=0
    )
    return np.transpose([ds.clean_error, ds.V, ds.training_loss])


DELTAS = [1.1, 1.5, 2.0, 5.0, 10.0, 100.0]


@pytest.mark.parametrize("noise", [0.25, 1.0])
def test_absolute_loss(agree, noise):
    expected = [absolute(delta, noise) for delta in DELTAS]
    agree(predicted("absolute", DELTAS, noise), expected)


@pytest.mark.parametrize("k", [0.3, 1.345, 3.0])
def test_huber_loss(agree, k):
    expected = [huber(delta, 1.0, k) for delta in DELTAS]
    agree(predicted(hm.losses.Huber(k), DELTAS, 1.0)[:, :2], expected)


def test_square_loss(agree):
    expected = [(1 / (delta - 1), 1 / (delta - 1), (1 - 1 / delta) / 2) for delta in DELTAS]
    agree(predicted("square", DELTAS, 1.0), expected)


def contaminated(delta, k, share, wide):
    """τ² and b of Huber's loss, the noise being N(0, 1) or, for a share of the samples, wider."""

    def equations(tau2, b):
        square = slope = 0.0
        for weight, variance in ((1 - share, 1.0), (share, wide)):
            spread = np.sqrt(variance + tau2)
            c = (1 + b) * k / spread
            square += weight * (b / (1 + b) * spread) ** 2 * clipped_square(c)
            slope += weight * b / (1 + b) * (2 * ndtr(c) - 1)
        return delta * square / tau2 - 1, delta * slope - 1

    return solve(equations, huber(delta, 1.0, k))


@pytest.mark.parametrize(("share", "wide"), [(0.05, 100.0), (0.3, 25.0)])
@pytest.mark.parametrize("k", [1.345, 3.0])
def test_huber_loss_and_contaminated_noise(agree, k, share, wide):
    noise = hm.noises.Mixture((1 - share, share), (1.0, wide))
    expected = [contaminated(delta, k, share, wide) for delta in DELTAS]
    agree(predicted(hm.losses.Huber(k), DELTAS, noise)[:, :2], expected)
