"""Any loss: its own level and the fall of a ridge twin, against populations that are known."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR

import hiddenmanifold as hm
from hiddenmanifold.losses import REGISTRY

P, PRIOR, LAM = 40, 0.35, 0.3
SPREAD = np.arange(1, P + 1) ** -0.4
MU = np.where(np.arange(P) < 8, 0.3, 0.0)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < PRIOR, 1.0, -1.0)
    return rng.standard_normal((n, P)) * SPREAD + y[:, None] * MU, y


@pytest.fixture(scope="module")
def data():
    return hm.Data(*draw(200, 0))


def scikit_learn(loss, X, y, lam=LAM):
    """The same model by other code."""
    if loss == "logistic":
        return LogisticRegression(C=1 / (lam * P), tol=1e-8, max_iter=1000).fit(X, y)
    return SVC(kernel="linear", C=1 / (lam * P)).fit(X, y)


def exact(loss, fit):
    """Error and mean loss of a fit on the whole population, whose margins are normal."""
    v, b, xi = fit.coef_[0], fit.intercept_[0], np.linspace(-7, 7, 2001)
    weight = stats.norm.pdf(xi) / stats.norm.pdf(xi).sum()
    error = value = 0.0
    for y, share in ((1, PRIOR), (-1, 1 - PRIOR)):
        margin = v @ MU + y * b + np.linalg.norm(SPREAD * v) * xi
        error += share * stats.norm.cdf(-(v @ MU + y * b) / np.linalg.norm(SPREAD * v))
        cost = np.logaddexp(0, -margin) if loss == "logistic" else np.maximum(1 - margin, 0)
        value += share * weight @ cost
    return error, value


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_samples_are_right_about_the_population_on_average(loss):
    """From N = 200 at half and at 4 N, against fits of scikit-learn; bars hold.

    The λ is about the best one. At ten times as large a λ scores still grow with n, and the losses
    of normal classes fall by 29 % where 17 % is predicted, a known failure (docs/real_data.md).
    """
    n, lam = np.array([100.0, 800.0]), np.full(2, 0.1 * LAM)
    fits = [[scikit_learn(loss, *draw(m, 50 + s), lam[0]) for s in range(12)] for m in (100, 800)]
    truth = np.array([np.mean([exact(loss, fit) for fit in some], 0) for some in fits]).T
    samples = [
        hm.Data(*draw(200, seed)).predicted(n, lam, loss=REGISTRY[loss]()) for seed in range(8)
    ]
    off = np.log([found.value[:2] / truth for found in samples])
    assert (np.abs(off.mean(0)) < 3 * off.std(0, ddof=1) / np.sqrt(8) + 0.05).all()
    z = off / [found.deviation[:2] for found in samples]
    assert (
        0.5 < np.sqrt(np.mean(z**2)) < 2.0
    )  # over many data sets it is one: benchmarks/real_data.py


@pytest.mark.slow
def test_residual_losses_are_predicted_for_numbers():
    """The absolute loss at 4 N, against fits of scikit-learn to fresh rows."""
    rng = np.random.default_rng(0)

    def numbers(n):
        X = rng.standard_normal((n, 15))
        return X, X[:, :4].sum(1) + rng.laplace(size=n)

    test, labels = numbers(20_000)
    found, truth = [], []
    for _ in range(4):
        ds = hm.learning_curve(hm.Data(*numbers(150)), n=600, regularisation=LAM, loss="absolute")
        found.append([float(ds.generalisation_error), float(ds.test_loss)])
        fit = SVR(kernel="linear", epsilon=0.0, C=1 / (LAM * 15)).fit(*numbers(600))
        error = labels - fit.predict(test)
        truth.append([np.mean(error**2), np.mean(np.abs(error))])
    np.testing.assert_allclose(np.mean(found, 0), np.mean(truth, 0), rtol=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_curve_has_what_that_of_the_square_loss_has(data, loss):
    options = {"n": [200, 800], "regularisation": [0.1, 1.0]}
    ds = hm.learning_curve(data, loss=loss, **options)
    assert set(ds.data_vars) == set(hm.learning_curve(data, **options).data_vars)
    for name in ("generalisation_error", "test_loss", "training_loss"):
        assert (ds[f"{name}_low"] < ds[name]).all()
        assert (ds[name] < ds[f"{name}_high"]).all()
        at_N = ds.sel(n=200)
        np.testing.assert_allclose(at_N[name], at_N[f"{name}_leave_one_out"], rtol=0.35)
    assert ds.attrs["loss"] == loss
    assert ds.resolved.all()
    assert (ds.status == 0).all()
    assert (ds.kappa.sel(n=800) < ds.kappa.sel(n=200)).all()


@pytest.mark.slow
def test_left_out_errors_of_the_logistic_loss_are_those_of_refits(data):
    (wrong, loss, _), (_, error, _) = data.measured(np.array([LAM]), REGISTRY["logistic"]())
    margins = []
    for i in range(200):
        fit = scikit_learn("logistic", np.delete(data.X, i, 0), np.delete(data.y, i))
        margins.append(data.y[i] * fit.decision_function(data.X[[i]])[0])
    losses = np.logaddexp(0, -np.array(margins))
    assert wrong[0] == pytest.approx(np.mean(np.array(margins) <= 0), abs=0.0051)
    assert loss[0] == pytest.approx(losses.mean(), rel=2e-3)
    assert error[0] == pytest.approx(losses.std(ddof=1) / np.sqrt(200), rel=0.01)


def test_left_out_errors_of_the_hinge_are_those_of_ten_fits(data):
    (wrong, loss, training), _ = data.measured(np.array([LAM]), REGISTRY["hinge"]())
    fold, margins = np.random.default_rng(0).permutation(200) % 10, np.empty(200)
    for i in range(10):
        test = fold == i
        fit = scikit_learn("hinge", data.X[~test], data.y[~test])
        margins[test] = data.y[test] * fit.decision_function(data.X[test])
    assert loss[0] == pytest.approx(np.maximum(1 - margins, 0).mean(), rel=5e-3)
    assert wrong[0] == pytest.approx(np.mean(margins <= 0), abs=0.0051)
    fit = scikit_learn("hinge", data.X, data.y)
    cost = np.maximum(1 - data.y * fit.decision_function(data.X), 0).mean()
    assert training[0] == pytest.approx(cost + LAM / 2 * P * np.sum(fit.coef_**2) / 200, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_best_regularisation_is_that_of_the_loss(data, loss):
    chosen = data.best_for(REGISTRY[loss]())
    near = data.measured(chosen * np.array([0.1, 1.0, 10.0]), REGISTRY[loss]())[0][1]
    assert near.argmin() == 1
    assert data.best_for(REGISTRY["square"]()) == data.best_regularisation


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "logistic", "regularisation": 0}, r"regularisation = 0\.0"),
        ({"loss": "log"}, "loss = 'log'"),
        ({"loss": 3}, "loss = 3"),
    ],
)
def test_arguments_that_make_no_sense(data, options, words):
    with pytest.raises(hm.InvalidArgumentError, match=words):
        hm.learning_curve(data, **options)


def tanh_features(d=40):
    rng = np.random.default_rng(3)
    mu = 1.3 * rng.standard_normal(d) / np.sqrt(d)

    def draw(n, F):
        y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
        return np.tanh((rng.standard_normal((n, d)) + y[:, None] * mu) @ F / np.sqrt(d)), y

    return draw, lambda p: rng.standard_normal((d, p))


@pytest.mark.slow
@pytest.mark.parametrize("other", [75, 300])
def test_other_numbers_of_random_features(other):
    """Half and twice the random features of the sample, against fits with such features."""
    draw, matrix = tanh_features()
    guesses, truths = [], []
    for _ in range(8):
        seen = hm.Data(*draw(300, matrix(150)), random_features=True)
        at = seen.predicted(300, np.array([LAM]), other, loss=REGISTRY["logistic"]())
        guesses.append(at.value[:2, 0])
        F = matrix(other)
        fit = LogisticRegression(C=1 / (LAM * other)).fit(*draw(300, F))
        X, y = draw(4000, F)
        margin = y * fit.decision_function(X)
        truths.append([np.mean(margin <= 0), np.log1p(np.exp(-margin)).mean()])
    spread = np.hypot(np.std(guesses, 0), np.std(truths, 0)) / np.sqrt(8)
    assert (np.abs(np.mean(guesses, 0) - np.mean(truths, 0)) < 3 * spread).all()
    np.testing.assert_allclose(np.mean(guesses, 0)[1], np.mean(truths, 0)[1], rtol=0.08)


@pytest.mark.slow
def test_other_features_in_a_curve():
    draw, matrix = tanh_features()
    data = hm.Data(*draw(300, matrix(150)), random_features=True)
    at = {"n": 300, "regularisation": 0.03, "loss": "logistic", "on_refusal": "keep"}
    ds = hm.learning_curve(data, p=[75, 150], **at)
    here = data.predicted(300, np.array([0.03]), loss=REGISTRY["logistic"]()).value
    assert float(ds.test_loss[1]) == here[1, 0]
    assert (ds.test_loss_low < ds.test_loss).all()


@pytest.mark.slow
def test_plans_take_the_loss():
    data = hm.Data(*draw(200, 7))
    plan = hm.plan(data, target_gain=0.05, loss="logistic", on_refusal="keep")
    assert plan.curve.attrs["loss"] == "logistic"
    assert plan.regularisation == data.best_for(REGISTRY["logistic"]())
    assert plan.n_low <= plan.n <= plan.n_high < np.inf


@pytest.mark.slow
def test_hold_outs_take_the_loss():
    data = hm.Data(*draw(240, 7))
    ds = hm.backtest(data, n=[120], loss="hinge", regularisation=[LAM], seeds=2)
    wrong = []
    for number in range(2):
        rest = np.random.default_rng((0, number)).permutation(240)[60:]
        fit = scikit_learn("hinge", data.X[rest[:120]], data.y[rest[:120]])
        wrong.append(np.mean(data.y[rest[120:]] * fit.decision_function(data.X[rest[120:]]) <= 0))
    assert float(ds.generalisation_error[0, 0]) == pytest.approx(np.mean(wrong), abs=0.009)
    assert ds.inside_2.values[0, 0] == 1
    with pytest.raises(hm.InvalidArgumentError, match="a loss for regression"):
        hm.backtest(hm.Data(data.X, data.X[:, 0] + data.y), loss="logistic")
