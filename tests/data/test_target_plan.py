"""Targets of prediction models for a sample at hand, against refits without each row."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

import hiddenmanifold as hm
from hiddenmanifold.data import signal
from hiddenmanifold.data.target_plan import _answer, target_plan


def sample(population, n, seed):
    rng, teacher, p = np.random.default_rng(seed), population.teacher, population.predictors
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3)  # correlated
    nu = X @ np.linalg.solve(np.eye(p) + 0.3, np.full(p, np.sqrt(teacher.rho / p)))
    return hm.Data(X, teacher.sample(nu, rng))


BINARY = hm.Population(prevalence=0.3, auc=0.8, predictors=6)
LINEAR = hm.Population(outcome="continuous", r2=0.4, predictors=6)


def logistic_fit(X, y):
    Z = np.column_stack([np.ones(len(X)), X])
    found = optimize.minimize(
        lambda w: np.logaddexp(0, -y * (Z @ w)).sum(),
        np.zeros(Z.shape[1]),
        jac=lambda w: -Z.T @ (y * expit(-y * (Z @ w))),
        method="BFGS",
        options={"gtol": 1e-8},
    )
    return found.x


@pytest.mark.slow
def test_left_out_scores_are_those_of_refits():
    data = sample(BINARY, 120, 0)
    rows = np.arange(data.N)
    whole = logistic_fit(data.X, data.y)
    centre = expit(data.X @ whole[1:] + whole[0])
    centre = (centre * (1 - centre)) @ data.X / (centre * (1 - centre)).sum()
    exact = []
    for i in rows:
        w = logistic_fit(data.X[rows != i], data.y[rows != i])
        exact.append(whole[0] + centre @ whole[1:] + (data.X[i] - centre) @ w[1:])
    # to second order in what a row changes
    found = signal._left_out_scores(data)
    np.testing.assert_allclose(found, exact, atol=0.05 * np.std(exact))
    fitted = data.X @ whole[1:] + whole[0]
    assert np.std(found - exact) < 0.1 * np.std(fitted - exact)
    plus, minus = (found[data.y == y] for y in (1, -1))
    wins = (plus[:, None] > minus).astype(float)
    auc, error = signal._auc(data)
    assert auc == pytest.approx(wins.mean())
    parts = [wins.mean(1).var(ddof=1) / len(plus), wins.mean(0).var(ddof=1) / len(minus)]
    assert error == pytest.approx(np.sqrt(sum(parts)))


def test_left_out_r2_is_that_of_refits():
    data = sample(LINEAR, 60, 0)
    rows = np.arange(data.N)
    errors = []
    for i in rows:
        Z = np.column_stack([np.ones(data.N), data.X])
        w = np.linalg.lstsq(Z[rows != i], data.y[rows != i], rcond=None)[0]
        errors.append((data.y[i] - Z[i] @ w) ** 2)
    r2, error = signal._r2(data)
    assert r2 == pytest.approx(1 - np.mean(errors) / data.y.var(ddof=1))
    assert 0.05 < error < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("population", [BINARY, LINEAR], ids=["binary", "linear"])
def test_the_true_model_is_found(population):
    known = population.auc or population.r2
    for seed, n in ((0, 200), (1, 3000)):
        found = signal.signal_of(sample(population, n, seed))
        assert found.low < found.true < found.high
        assert abs(found.true - known) < 1.5 * (found.high - found.low)
    assert found.high - found.low < 0.04


@pytest.mark.slow
def test_a_plan_answers_the_targets_of_studies():
    data = sample(BINARY, 300, 1)
    plan = target_plan(data, {"calibration_slope": 0.9, "auc": 0.99})
    assert plan.n == math.inf and plan.report is None
    assert "of at least 0.99 is out of reach with more samples alone" in str(plan)
    n, low, high = plan.needed["calibration_slope"]
    truth = hm.sample_size(BINARY, target={"calibration_slope": 0.9}, finite_size=False).n
    assert low < n < high and low / 1.5 < truth < 1.5 * high
    assert plan.population.prevalence == (data.y > 0).mean()
    assert plan.sentence in plan._repr_html_().replace("&#x27;", "'") and "∞" in plan._repr_html_()


@pytest.mark.slow
def test_the_units_of_errors_are_those_of_the_sample():
    data = sample(LINEAR, 200, 2)
    larger = hm.Data(data.X, 10.0 * data.y)
    goal = 0.7 * data.y.var(ddof=1)
    plans = [
        hm.plan(d, target={"generalisation_error": g}, on_refusal="keep")
        for d, g in ((data, goal), (larger, 100 * goal))
    ]
    assert plans[0].needed == plans[1].needed
    at = plans[0].report.curve.sel(n=200)
    error = float(f"{100 * data.y.var(ddof=1) * float(at.generalisation_error):.3g}")
    assert f"reaches a mean square error of {error:g}." in plans[1].sentence


@pytest.mark.slow
def test_an_assurance_widens_the_interval_in_proportion():
    data = sample(LINEAR, 200, 2)
    how = {"draws": 40, "workers": 1}
    typical, often = (target_plan(data, {"r2": 0.25}, assurance=a, **how) for a in (None, 0.8))
    assert often.n == often.report.n > typical.n
    assert often.n_high / often.n == pytest.approx(typical.n_high / typical.n)
    assert "with probability 0.8 needs about" in often.sentence


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        ((506.0, 452.0, 571.0), "A calibration slope of at least 0.9 needs about 510 samples (450"),
        ((506.0, 452.0, math.inf), "needs about 510 samples, and at least 450"),
        ((math.inf, 452.0, math.inf), "needs at least 450 samples and may be out of reach"),
        ((math.inf,) * 3, "is out of reach"),
    ],
)
def test_intervals_in_words(needed, words):
    assert words in _answer("calibration_slope", 0.9, needed, None)


def test_samples_without_such_a_regression_are_refused():
    rng = np.random.default_rng(0)
    how = {"target": {"calibration_slope": 0.9}, "on_refusal": "keep"}
    X, noise = rng.standard_normal((80, 4)), rng.standard_normal(80)
    for data, message in (
        (hm.Data(X, np.where(X[:, 0] > 0, 1, -1)), "that its features separate"),
        (hm.Data(X, noise), "shows no signal: regression without a penalty has a left-out R²"),
        (hm.Data(rng.standard_normal((60, 70)), noise[:60]), "too few rows"),
        (hm.Data(X, X @ [1.0, 2.0, 0.5, -1.0] + 3.0), "that its features determine"),
    ):
        with pytest.raises(hm.UnusableDataError, match=message):
            hm.plan(data, **how)
    with pytest.raises(hm.InvalidArgumentError, match="for numbers or two classes"):
        hm.plan(hm.Data(X, np.arange(80) % 3, task="classification"), **how)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"target": {"auc": 0.8}}, "target = 'auc'"),
        ({"target": {"r2": 0.4}, "loss": "huber"}, "loss cannot be chosen with target="),
        ({"target": {"r2": 0.4}, "target_gain": 0.1}, "are several: give exactly one"),
        ({"target_gain": 0.1, "assurance": 0.8}, "assurance needs target="),
        ({"target": {"r2": 0.4}, "on_refusal": "no"}, "on_refusal = 'no'"),
    ],
)
def test_impossible_requests_are_refused(more, message):
    with pytest.raises(hm.InvalidArgumentError, match=message):
        hm.plan(sample(LINEAR, 60, 0), **more)
