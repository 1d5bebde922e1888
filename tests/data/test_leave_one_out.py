"""Leave-one-out residuals, leverages, and the measures that they show."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Sklearn

from hiddenmanifold.checks import Task
from hiddenmanifold.data.analysis import Analysis
from hiddenmanifold.data.extrapolation import Fits, equivalent
from hiddenmanifold.data.ridge import Ridge


def sample(n, p, seed=0, decay=0.6, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.arange(1, p + 1) ** -decay + 3.0
    return X, X[:, :5].sum(1) + noise * rng.standard_normal(n)


@pytest.mark.parametrize("p", [20, 90])
@pytest.mark.parametrize("lam", [1e-3, 0.3, 20.0])
def test_left_out_residuals_are_those_of_refits(p, lam):
    X, y = sample(60, p)
    path = Ridge.of(X, y).path(np.array([lam]))
    for i in (0, 17, 59):
        others = np.arange(60) != i
        fit = Sklearn(lam * p, solver="svd").fit(X[others], y[others])
        assert path.left_out[i, 0, 0] == pytest.approx(y[i] - fit.predict(X[[i]])[0], rel=1e-7)
    fit = Sklearn(lam * p, solver="svd").fit(X, y)
    loss = np.sum((y - fit.predict(X)) ** 2) + lam * p * np.sum(fit.coef_**2)
    trained = Analysis(X, y, Task.REGRESSION).measured(np.array([lam]))[0][2, 0]
    assert trained == pytest.approx(loss / 120, rel=1e-7)


@pytest.mark.parametrize("p", [20, 90])
def test_without_regularisation_fits_are_the_shortest(p):
    X, y = sample(60, p)
    path = Ridge.of(X, y).path(np.zeros(1))
    for i in (3, 40):
        others = np.arange(60) != i
        centre, mean = X[others].mean(0), y[others].mean()
        w = np.linalg.pinv(X[others] - centre, rcond=1e-10) @ (y[others] - mean)
        expected = y[i] - mean - (X[i] - centre) @ w
        assert path.left_out[i, 0, 0] == pytest.approx(expected, rel=1e-6)


def test_D2_is_the_derivative_along_the_path():
    path = Ridge.of(*sample(80, 120)).path(0.2 * np.exp([-1e-4, 0.0, 1e-4]))
    slope = (path.D1[2] - path.D1[0]) / np.log(path.kappa[2] / path.kappa[0])
    assert path.D2[1] == pytest.approx(path.D1[1] + slope, rel=1e-6)


def test_best_regularisation_is_least_on_a_fine_grid():
    ridge = Ridge.of(*sample(80, 120))
    fine = ridge.path(ridge.best * np.geomspace(0.5, 2, 41))
    assert ridge.path(np.array([ridge.best])).error[0] <= fine.error.min() * (1 + 1e-5)


@pytest.mark.slow
def test_measures_are_those_of_the_population():
    """Degrees of freedom and bias of Gaussian data of known covariance, from half as many rows."""
    n, p = 150, 300
    w = np.arange(1, p + 1) ** -1.2
    tau = np.arange(1, p + 1) ** -1.0
    tau *= 0.8 / tau.sum()
    kappa = np.array([0.002, 0.01, 0.1])
    r = w / p / (w / p + kappa[:, None])
    D1, bias = r.sum(1), 0.2 + (tau * (1 - r) ** 2).sum(1)
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((n, p))
        y = z @ np.sqrt(tau) + np.sqrt(0.2) * rng.standard_normal(n)
        ridge = Ridge.of(z * np.sqrt(w), y)
        # a great many samples: their error is the bias
        lam = kappa * (1e9 - D1)
        fits = Fits.of(ridge, np.full(3, 1e9), lam, most=0.95)
        found.append([fits.path.D1, fits.error])
    mean, error = np.mean(found, 0), np.std(found, 0, ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(mean[0], D1, atol=3 * error[0].max(), rtol=0.01)
    assert (np.abs(mean[1] - bias) < 3 * error[1]).all()
    assert (error[1] < 0.05).all()


def test_columns_of_labels_are_fitted_alike():
    X, y = sample(60, 90)
    both = Ridge.of(X, np.column_stack([y, 2 * y])).path(np.array([0.1, 1.0]))
    one = Ridge.of(X, y).path(np.array([0.1, 1.0]))
    np.testing.assert_allclose(both.error, 5 * one.error)
    np.testing.assert_allclose(both.D2, one.D2)


@pytest.mark.parametrize("p", [20, 90])
def test_the_equivalent_regularisation_has_the_same_kappa(p):
    ridge = Ridge.of(*sample(60, p))
    n, lam = np.array([30.0, 60.0, 61.0, 1000.0]), np.array([0.5, 0.01, 2.0, 30.0])
    lam0 = equivalent(ridge, n, lam, np.full(4, float(p)))
    path = ridge.path(lam0)
    np.testing.assert_allclose(path.kappa * (n - 1 - path.D1), lam, rtol=1e-9)
    assert lam0[1] == pytest.approx(0.01, rel=1e-9)
