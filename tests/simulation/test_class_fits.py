"""Fits of several classes against other minimisers."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hiddenmanifold.losses import Softmax, Square
from hiddenmanifold.simulation.class_fits import fit_classes

K = 4


def problem(n, p, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((K, p))
    y = rng.integers(K, size=n)
    return rng.standard_normal((n, p)) + means[y], y


def objective(loss, sample, W, b, lam):
    X, y = sample
    f = X @ W / np.sqrt(X.shape[1]) + b
    if loss.quadratic:
        value = 0.5 * ((np.eye(K)[y] - f) ** 2).sum()
    else:
        value = (np.logaddexp.reduce(f, axis=1) - f[np.arange(len(f)), y]).sum()
    return value + 0.5 * lam * (W**2).sum()


@pytest.mark.parametrize("loss", [Square(), Softmax()], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(40, 6), (12, 20)])
def test_fits_are_minima(loss, intercept, n, p):
    X, y = problem(n, p)
    lams = np.array([0.03, 3.0])
    for fit, lam in zip(fit_classes(loss, X, y, K, lams, intercept=intercept), lams, strict=True):
        assert fit.optimality < 1e-10
        found = objective(loss, (X, y), fit.W, fit.b, lam)
        np.testing.assert_allclose(found, fit.objective, rtol=1e-10)

        def value(x, lam=lam):
            W, b = x[: p * K].reshape(p, K), x[p * K :] * intercept
            return objective(loss, (X, y), W, b, lam)

        start = np.append(fit.W.ravel(), fit.b) + 0.01
        other = minimize(value, start, method="L-BFGS-B", options={"maxfun": 10**5})
        assert fit.objective <= other.fun * (1 + 1e-12)
        np.testing.assert_allclose(fit.objective, other.fun, rtol=1e-4)


def test_a_path_is_the_fits_of_each_penalty():
    X, y = problem(30, 12, seed=1)
    lams = np.array([0.1, 10.0, 0.001, 1.0])
    path = fit_classes(Softmax(), X, y, K, lams, intercept=True)
    for fit, lam in zip(path, lams, strict=True):
        (alone,) = fit_classes(Softmax(), X, y, K, np.array([lam]), intercept=True)
        np.testing.assert_allclose(fit.W, alone.W, atol=1e-4 * np.abs(alone.W).max())
        np.testing.assert_allclose(fit.objective, alone.objective, rtol=1e-9)


def test_the_weights_of_softmax_add_up_to_zero():
    X, y = problem(60, 10, seed=2)
    (fit,) = fit_classes(Softmax(), X, y, K, np.array([0.1]), intercept=True)
    np.testing.assert_allclose(fit.W.sum(1), 0.0, atol=1e-8)
    np.testing.assert_allclose(fit.b.sum(), 0.0, atol=1e-12)


def test_the_shortest_of_all_interpolators_is_the_limit_of_a_small_penalty():
    X, y = problem(12, 20, seed=3)
    limit, near = fit_classes(Square(), X, y, K, np.array([0.0, 1e-9]), intercept=True)
    np.testing.assert_allclose(limit.W, near.W, atol=1e-6)
    assert limit.optimality < 1e-7
    assert limit.objective < 1e-20
