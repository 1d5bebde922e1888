"""Two classes and any loss: real data as a mixture, against populations that are known."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import hiddenmanifold as hm
from hiddenmanifold.data.spectrum import Measures
from hiddenmanifold.data.two_class_features import Kernel, Within, mixed
from hiddenmanifold.losses import REGISTRY

P, PRIOR, LAM = 40, 0.35, 0.3
SPREAD = np.arange(1, P + 1) ** -0.4
MU = np.where(np.arange(P) < 8, 0.3, 0.0)
U = 4 * PRIOR * (1 - PRIOR)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < PRIOR, 1.0, -1.0)
    return rng.standard_normal((n, P)) * SPREAD + y[:, None] * MU, y


def population():
    """The measures of all samples together, in the basis of their covariance."""
    w, v = np.linalg.eigh((np.diag(SPREAD**2) + U * np.outer(MU, MU)) / P)
    t = (v.T @ (U * MU)) ** 2 / P
    return Measures(w, np.ones(P), t / w, U, 0.0)


@pytest.fixture(scope="module")
def within():
    return Within.of(population(), PRIOR, P, projected=False)


@pytest.fixture(scope="module")
def data():
    return hm.Data(*draw(200, 0))


def pull(loss, margin, V):
    """How far a sample's fitted margin is from the one without it, over V."""
    if loss == "hinge":
        return np.clip((1 - margin) / V, 0, 1)
    return optimize.brentq(lambda g: g - 1 / (1 + np.exp(margin + V * g)), 0, 1)


def fixed_point(loss, n):
    """Error of the mixture by plain iteration and scipy's quadrature."""
    w, t = SPREAD**2 / P, MU**2 / P
    V, Q, M, b = 0.5, 0.3, 0.5, 0.0

    def mean(function):
        def at(xi, y):
            return function(y, xi, pull(loss, M + y * b + np.sqrt(Q) * xi, V)) * stats.norm.pdf(xi)

        total = 0.0
        for y, share in ((1, PRIOR), (-1, 1 - PRIOR)):
            kinks = [(m - M - y * b) / np.sqrt(Q) for m in (1, 1 - V)]
            total += share * integrate.quad(at, -7, 7, (y,), points=kinks, epsabs=1e-8)[0]
        return total

    for _ in range(200):
        before = np.array([V, Q, M, b])
        e1 = -mean(lambda y, xi, g: xi * g) / np.sqrt(Q)  # by parts
        e2, e3, e0 = (mean(lambda y, xi, g, k=k: (g * g, g, y * g)[k]) for k in range(3))
        r = w / (w + LAM / (n * e1))
        D1, D2, T1, T2 = r.sum() + 1, (r**2).sum() + 1, (t / w) @ r, (t / w) @ r**2
        V, Q = D1 / (n * e1), e2 / (n * e1**2) * D2 + (e3 / e1) ** 2 * T2
        M, b = M + (e3 / e1 * T1 - M) / (1 + T1), b + 0.7 * e0 / e1
        if np.abs(np.array([V, Q, M, b]) - before).max() < 1e-6:
            wrong = {y: stats.norm.cdf(-(M + y * b) / np.sqrt(Q)) for y in (1, -1)}
            return PRIOR * wrong[1] + (1 - PRIOR) * wrong[-1], M, Q
    raise AssertionError("not converged")


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_an_independent_solution_of_the_mixture(within, loss):
    found = mixed(within, PRIOR, REGISTRY[loss](), np.array([100.0]), np.array([LAM]))
    wrong, M, Q = fixed_point(loss, 100)
    assert found["generalisation_error"][0] == pytest.approx(wrong, rel=2e-4)
    assert (found["M"][0], found["Q"][0]) == pytest.approx((M, Q), rel=5e-4)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "square"])
def test_classes_are_taken_away_from_the_measures_of_all(within, loss):
    """Against the covariance and the means within classes themselves."""
    rho = float(np.sum(MU**2 / SPREAD**2))
    w, t = (np.append(part / P, last) for part, last in ((SPREAD**2, 1e9), (MU**2, 0.0)))
    features = hm.features.Covariance(w, t, rho)  # a feature that fluctuates freely: the intercept
    teacher = hm.teachers.Mixture(PRIOR, rho)
    model = hm.Model(features=features, teacher=teacher, loss=loss, intercept=True)
    ns = np.array([80.0, 200.0, 2000.0])
    found = mixed(within, PRIOR, REGISTRY[loss](), ns, np.full(3, LAM))
    expected = hm.predict(model, n=ns, regularisation=LAM, observables="test_loss")
    for name in ("generalisation_error", "test_loss", "training_loss"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4)


def scikit_learn(loss, X, y):
    """Scores of a fit, on other rows."""
    if loss == "logistic":
        return LogisticRegression(C=1 / (LAM * P), tol=1e-8, max_iter=1000).fit(X, y)
    return SVC(kernel="linear", C=1 / (LAM * P)).fit(X, y)


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


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_fits_do_what_the_population_predicts(within, loss):
    """Fits of scikit-learn to fresh draws: z-scores of error and loss."""
    found = mixed(within, PRIOR, REGISTRY[loss](), np.array([300.0]), np.array([LAM]))
    measured = np.array([exact(loss, scikit_learn(loss, *draw(300, s))) for s in range(40)])
    error = measured.std(0, ddof=1) / np.sqrt(40)
    expected = [found["generalisation_error"][0], found["test_loss"][0]]
    assert (np.abs(measured.mean(0) - expected) < 3 * error).all()
    assert (error < 0.015 * measured.mean(0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_samples_are_right_about_the_population_on_average(within, loss):
    """From N = 200, at half and at 4 N."""
    n, lam = np.array([100.0, 800.0]), np.full(2, LAM)
    truth = mixed(within, PRIOR, REGISTRY[loss](), n, lam)
    samples = [hm.Data(*draw(200, seed)).forecast for seed in range(16)]
    found = [sample.value(n, lam, None, REGISTRY[loss]())[:2] for sample in samples]
    error = np.std(found, 0, ddof=1) / 4
    expected = np.array([truth["generalisation_error"], truth["test_loss"]])
    assert (np.abs(np.mean(found, 0) - expected) < 3 * error).all()
    assert (error < 0.1 * expected).all()


@pytest.mark.slow
def test_the_truth_is_within_the_bars(within):
    n, inside = np.array([100.0, 800.0]), []
    truth = mixed(within, PRIOR, REGISTRY["logistic"](), n, np.full(2, LAM))
    for seed in range(3):
        sample = hm.Data(*draw(200, seed))
        found = sample.predicted(n, np.full(2, LAM), loss=REGISTRY["logistic"]())
        off = found.value[:2] - [truth["generalisation_error"], truth["test_loss"]]
        inside.append(np.abs(off) <= 2 * found.deviation[:2])
        assert (found.statistical > 0).all()
    assert np.mean(inside) >= 0.85


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
        at = seen.forecast.at(300, np.array([LAM]), other, REGISTRY["logistic"]())
        guesses.append(at.value[:2, 0])
        F = matrix(other)
        fit = LogisticRegression(C=1 / (LAM * other)).fit(*draw(300, F))
        X, y = draw(4000, F)
        margin = y * fit.decision_function(X)
        truths.append([np.mean(margin <= 0), np.log1p(np.exp(-margin)).mean()])
    spread = np.hypot(np.std(guesses, 0), np.std(truths, 0)) / np.sqrt(8)
    assert (np.abs(np.mean(guesses, 0) - np.mean(truths, 0)) < 3 * spread).all()
    np.testing.assert_allclose(np.mean(guesses, 0)[1], np.mean(truths, 0)[1], rtol=0.08)


def test_a_kernel_is_found_from_its_features():
    """The measures of 60 random features of a kernel that is known, 20 times."""
    rng, p, w = np.random.default_rng(0), 60, np.arange(1, 401) ** -1.3 / 10
    tau = 0.6 * w**0.4 / np.sum(w**0.4)
    spectra, energies = [], []
    for _ in range(20):
        maps = rng.standard_normal((p, 400)) * np.sqrt(w / p)
        values, vectors = np.linalg.eigh(maps @ maps.T)
        spectra.append(values)
        labels = np.sqrt(tau) * rng.choice([-1, 1], 400)
        energies.append((vectors.T @ maps @ labels) ** 2 / values / 20)
    shown = (np.concatenate(spectra), np.full(20 * p, 0.05), np.concatenate(energies))
    kernel, whole = Kernel.of(Measures(*shown, 1.0, 0.0), p), Measures(w, 1 + 0 * w, tau, 1.0, 0.0)
    gamma = np.geomspace(3e-3, 1.0, 7)
    found, expected = kernel.measures.at(gamma), whole.at(gamma)
    assert kernel.gamma[0] < gamma[0]
    np.testing.assert_allclose(found.D1, expected.D1, rtol=0.02)
    np.testing.assert_allclose(found.T1, expected.T1, rtol=0.05)
    np.testing.assert_allclose(kernel.seen_at(gamma), gamma * (1 - expected.D1 / p), rtol=0.02)
    assert np.isnan(kernel.seen_at(0.5 * kernel.gamma[:1]))[0]


@pytest.mark.slow
def test_other_features_in_a_curve():
    draw, matrix = tanh_features()
    data = hm.Data(*draw(300, matrix(150)), random_features=True)
    at = {"n": 300, "regularisation": 0.03, "loss": "logistic", "on_refusal": "keep"}
    ds = hm.learning_curve(data, p=[75, 150], **at)
    here = data.forecast.value(300, np.array([0.03]), None, REGISTRY["logistic"]())
    assert float(ds.test_loss[1]) == here[1, 0]
    assert float(ds.test_loss[0]) > 1.1 * here[1, 0]
    assert (ds.test_loss_low < ds.test_loss).all()
    nearly = data.forecast.at(300, np.array([0.03]), 150.001, REGISTRY["logistic"]())
    off = abs(nearly.value[1, 0] - here[1, 0])
    assert 0.99 * off <= abs(nearly.halved[1, 0]) < 0.1 * nearly.value[1, 0]


@pytest.mark.slow
def test_plans_take_the_loss():
    data = hm.Data(*draw(120, 7))
    plan = hm.plan(data, target_gain=0.05, loss="logistic", on_refusal="keep")
    assert plan.curve.attrs["loss"] == "logistic"
    assert plan.regularisation == data.best_for(REGISTRY["logistic"]())
    assert plan.n_low <= plan.n <= plan.n_high
    assert plan.n_low < np.inf


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
