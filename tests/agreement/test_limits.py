"""Limits of vanishing regularisation against fits that have none."""

import numpy as np
import pytest
from scipy import linalg
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import hiddenmanifold as hm
from given import plain_model as model
from hiddenmanifold.losses import Huber
from hiddenmanifold.simulation.samples import Sizes, World
from hiddenmanifold.teachers import Linear, Sign

D, SEEDS, N_TEST = 100, 32, 2_500


def fits(m, n_over_d, p_over_n, fit):
    """Margin, |w|²/p and test error of weights fitted by others, seed by seed."""
    n = round(n_over_d * D)
    sizes = Sizes(n, round(p_over_n * n), D)
    rows = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([2020, seed])
        world = World.draw(m, sizes, rng)
        train, test = world.sample(sizes.n, rng), world.sample(N_TEST, rng)
        v, b = fit(train.X, train.y)
        f = test.X @ v + b
        wrong = (
            np.mean((f > 0) != (test.y > 0))
            if set(test.y) == {-1, 1}
            else np.mean((test.y - f) ** 2)
        )
        margin = np.min(train.y * (train.X @ v + b)) / np.linalg.norm(v)
        rows.append((margin, v @ v, wrong))
    return np.array(rows).T


def z_scores(samples, expected):
    return (samples.mean(-1) - expected) / (samples.std(-1, ddof=1) / np.sqrt(samples.shape[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("p_over_n", [0.6, 2.0])
def test_largest_margin_of_a_support_vector_machine(p_over_n):
    m = model(teacher=Sign(threshold=0.4), intercept=True)

    def fit(X, y):
        machine = SVC(C=1e10, kernel="linear", tol=1e-10).fit(X, y)
        return machine.coef_[0], float(machine.intercept_[0])

    margin, _, error = fits(m, 3.0, p_over_n, fit)
    ds = hm.predict(m, n_over_d=3.0, p_over_n=p_over_n, regularisation=0)
    assert abs(z_scores(margin, float(ds.margin))) < 4
    assert abs(z_scores(error, float(ds.generalisation_error))) < 4


@pytest.mark.slow
def test_unregularised_logistic_regression():
    m = model()

    def fit(X, y):
        machine = LogisticRegression(C=np.inf, tol=1e-8, fit_intercept=False, max_iter=10_000)
        return machine.fit(X, y).coef_[0], 0.0

    _, q_w, error = fits(m, 4.0, 0.15, fit)
    ds = hm.predict(m, n_over_d=4.0, p_over_n=0.15, regularisation=0)
    assert abs(z_scores(q_w, float(ds.q_w))) < 4
    assert abs(z_scores(error, float(ds.generalisation_error))) < 4


@pytest.mark.slow
def test_unregularised_huber_regression():
    m = model(loss=Huber(0.5), teacher=Linear(noise=0.5))

    def fit(X, y):
        def objective(v):
            r = y - X @ v
            inside = np.abs(r) < 0.5
            loss = np.where(inside, 0.5 * r**2, 0.5 * (np.abs(r) - 0.25)).sum()
            return loss, -X.T @ np.clip(r, -0.5, 0.5)

        start = np.linalg.lstsq(X, y, rcond=None)[0]
        options = {"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-7}
        return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x, 0.0

    _, q_w, error = fits(m, 3.0, 0.5, fit)
    ds = hm.predict(m, n_over_d=3.0, p_over_n=0.5, regularisation=0)
    assert abs(z_scores(q_w, float(ds.q_w))) < 4
    assert abs(z_scores(error, float(ds.generalisation_error))) < 4


@pytest.mark.slow
@pytest.mark.parametrize("p_over_n", [0.5, 2.5])
def test_least_squares_and_shortest_interpolation(p_over_n):
    m = model(loss="square", teacher=Linear(noise=0.2), projection="orthogonal")

    def fit(X, y):
        if p_over_n < 1:
            return linalg.solve(X.T @ X, X.T @ y, assume_a="pos"), 0.0
        return X.T @ linalg.solve(X @ X.T, y, assume_a="pos"), 0.0

    _, q_w, error = fits(m, 3.0, p_over_n, fit)
    ds = hm.predict(m, n_over_d=3.0, p_over_n=p_over_n, regularisation=0)
    assert abs(z_scores(q_w, float(ds.q_w))) < 4
    assert abs(z_scores(error, float(ds.generalisation_error))) < 4


@pytest.mark.slow
def test_intercept_of_a_lopsided_loss_on_real_labels():
    """Residuals below zero cost four times as much: the prediction moves down."""
    loss = hm.losses.Custom(
        lambda s: 0.5 * s**2 * np.where(s < 0, 4.0, 1.0),
        lambda s: s * np.where(s < 0, 4.0, 1.0),
        lambda s: np.where(s < 0, 4.0, 1.0),
        of="residual",
        kinks=(0.0,),
    )
    model = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=hm.teachers.Linear(noise=0.5),
        loss=loss,
        intercept=True,
    )
    ds = hm.compare(model, n_over_d=3.0, p_over_d=1.0, regularisation=0.3, d=150, seeds=16)
    assert float(ds.intercept_theory) < -0.1
    for name in ("intercept", "generalisation_error", "training_loss", "Q"):
        assert abs(float(ds[f"{name}_z"])) < 4, name
