"""Fits to counts, positive labels and quantiles: independent solvers, extreme labels, refusals."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.data.sklearn_conventions import to_glm_alpha
from hiddenmanifold.losses import (
    Absolute,
    Binomial,
    Custom,
    Expectile,
    Gamma,
    Huber,
    Insensitive,
    LogCosh,
    Logistic,
    PerLabel,
    Poisson,
    Quantile,
    Square,
)
from hiddenmanifold.simulation.fit import fit_path, has_minimum, numbers_needed
from hiddenmanifold.simulation.problem import GOOD

REGRESSION = Task.REGRESSION
both = pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
shapes = pytest.mark.parametrize(("n", "p"), [(90, 40), (60, 60), (50, 90)])


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The test processes fill the cores; to find the libraries takes longer than many a fit."""
    with threadpool_limits(1):
        yield


def features(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.3
    return X, 0.4 + X @ rng.standard_normal(p) / np.sqrt(p), rng


def fitted(loss, X, y, lam, *, intercept=False):
    (fit,) = fit_path(loss, REGRESSION, X, y, np.array([lam]), intercept=intercept)
    return fit


def negative_binomial(size=2.0):
    """Counts of variance above their mean."""
    at = np.log(size)
    return PerLabel(
        lambda y, f: (y + size) * np.logaddexp(0.0, f - at) - y * f,
        lambda y, f: (y + size) * expit(f - at) - y,
        lambda y, f: (y + size) * expit(f - at) * expit(at - f),
    )


# ---------------------------------------------------------------- the same minimum by other means


@both
@shapes
@pytest.mark.parametrize("lam", [1e-2, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["poisson", "gamma"])
def test_scikit_learns_regressors_find_the_same_weights(kind, lam, n, p, intercept):
    X, f, rng = features(n, p)
    loss, theirs = Poisson(), PoissonRegressor
    y = rng.poisson(np.exp(f)).astype(float)
    if kind == "gamma":
        loss, theirs, y = Gamma(), GammaRegressor, np.exp(f) * rng.exponential(size=n)
    fit = fitted(loss, X, y, lam, intercept=intercept)
    other = theirs(
        alpha=to_glm_alpha(lam, p, n=n),
        fit_intercept=intercept,
        solver="newton-cholesky",
        tol=1e-10,
        max_iter=1000,
    ).fit(X, y)
    size = np.abs(other.coef_).max()
    np.testing.assert_allclose(fit.w / np.sqrt(p), other.coef_, rtol=1e-6, atol=1e-6 * size)
    assert fit.b == pytest.approx(other.intercept_, abs=1e-6)


@pytest.mark.parametrize("lam", [3.0, 10.0])
@shapes
def test_scikit_learns_support_vector_regression_finds_the_same_weights(n, p, lam):
    X, f, rng = features(n, p)
    y = f + rng.standard_normal(n)
    fit = fitted(Insensitive(0.4), X, y, lam, intercept=True)
    machine = SVR(C=hm.to_sklearn_C(lam, p), kernel="linear", epsilon=0.4, tol=1e-10).fit(X, y)
    w = np.ravel(machine.coef_)
    np.testing.assert_allclose(fit.w / np.sqrt(p), w, atol=1e-3 * np.abs(w).max())
    assert fit.optimality <= GOOD


def staircase():
    """A loss of the residual with three kinks, none of value zero, and its pieces a r + c."""
    kinks, slopes = np.array([-1.0, 0.2, 0.7]), np.array([-2.0, -0.5, 0.5, 3.0])
    offsets = 0.4 + np.cumsum(np.append(slopes[0], np.diff(slopes) * -kinks))
    loss = Custom(
        lambda r: (slopes * np.asarray(r)[..., None] + offsets).max(-1),
        lambda r: slopes[np.searchsorted(kinks, r)],
        np.zeros_like,
        of="residual",
        kinks=tuple(kinks),
    )
    return loss, list(zip(slopes, offsets, strict=True))


PIECEWISE = {
    "quantile": (Quantile(0.8), [(0.8, 0.0), (-0.2, 0.0)]),
    "insensitive": (Insensitive(0.5), [(1.0, -0.5), (-1.0, -0.5), (0.0, 0.0)]),
    "staircase": staircase(),
}


@both
@pytest.mark.parametrize("lam", [0.05, 2.0])
@pytest.mark.parametrize(("n", "p"), [(12, 4), (6, 9)])
@pytest.mark.parametrize("name", PIECEWISE)
def test_piecewise_linear_losses_are_quadratic_programmes(name, n, p, lam, intercept):
    """Minimise Σξ + λ|w|²/2 where ξ is above every straight piece a(y - f) + c of the loss."""
    loss, pieces = PIECEWISE[name]
    X, f, rng = features(n, p, seed=1)
    y, A = f + rng.standard_normal(n), X / np.sqrt(p)
    fit = fitted(loss, X, y, lam, intercept=intercept)
    assert fit.optimality <= GOOD
    design = np.column_stack([A, np.full(n, float(intercept))])
    rows = np.vstack([np.hstack([a * design, np.eye(n)]) for a, _ in pieces])
    offsets = np.concatenate([a * y + c for a, c in pieces])
    found = minimize(
        lambda z: z[p + 1 :].sum() + 0.5 * lam * z[:p] @ z[:p],
        np.concatenate([np.zeros(p + 1), np.full(n, 20.0)]),
        jac=lambda z: np.concatenate([lam * z[:p], [0.0], np.ones(n)]),
        constraints={"type": "ineq", "fun": lambda z: rows @ z - offsets, "jac": lambda z: rows},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert fit.objective == pytest.approx(found.fun, rel=1e-6)
    value = loss.value(y - A @ fit.w - fit.b).sum() + 0.5 * lam * fit.w @ fit.w
    assert fit.objective == pytest.approx(value, rel=1e-9)


@both
@shapes
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_special_cases_are_other_losses(n, p, lam, intercept):
    X, f, rng = features(n, p, seed=2)
    y = f + rng.standard_normal(n)
    counts = rng.binomial(1, expit(f)).astype(float)
    classes = 2 * counts - 1
    (logistic,) = fit_path(
        Logistic(), Task.CLASSIFICATION, X, classes, np.array([lam]), intercept=intercept
    )
    pairs = [
        (fitted(Quantile(0.5), X, y, lam, intercept=intercept), 0.5, Absolute(), 2 * lam),
        (fitted(Expectile(0.5), X, y, lam, intercept=intercept), 0.5, Square(), 2 * lam),
    ]
    for fit, factor, loss, other in pairs:
        same = fitted(loss, X, y, other, intercept=intercept)
        assert fit.objective == pytest.approx(factor * same.objective, rel=1e-9)
        np.testing.assert_allclose(fit.w, same.w, atol=1e-4 * np.abs(same.w).max())
    binomial = fitted(Binomial(1), X, counts, lam, intercept=intercept)
    assert binomial.objective == pytest.approx(logistic.objective, rel=1e-9)
    narrow = fitted(Insensitive(1e-9), X, y, lam, intercept=intercept)
    absolute = fitted(Absolute(), X, y, lam, intercept=intercept)
    assert narrow.objective == pytest.approx(absolute.objective, rel=1e-6)


@both
@shapes
def test_a_gamma_loss_is_one_of_the_residual_of_logarithms(n, p, intercept):
    X, f, rng = features(n, p, seed=3)
    y = np.exp(f) * rng.exponential(size=n)
    exponential = Custom(lambda r: np.exp(r) - r, np.expm1, np.exp, of="residual", scale=1.0)
    fit = fitted(Gamma(), X, y, 0.1, intercept=intercept)
    same = fitted(exponential, X, np.log(y), 0.1, intercept=intercept)
    assert fit.objective == pytest.approx(same.objective + np.log(y).sum(), rel=1e-9)
    np.testing.assert_allclose(fit.w, same.w, atol=1e-6 * np.abs(same.w).max())


@both
@shapes
def test_losses_of_ones_own_are_fitted(n, p, intercept):
    X, f, rng = features(n, p, seed=4)
    y = rng.poisson(np.exp(f)).astype(float)
    own = PerLabel(
        lambda y, f: np.exp(f) - y * f, lambda y, f: np.exp(f) - y, lambda y, f: np.exp(f)
    )
    fit = fitted(own, X, y, 0.1, intercept=intercept)
    same = fitted(Poisson(), X, y, 0.1, intercept=intercept)
    assert fit.objective == pytest.approx(same.objective, rel=1e-10)
    np.testing.assert_allclose(fit.w, same.w, atol=1e-6 * np.abs(same.w).max())
    loss, lam = negative_binomial(), 0.3
    fit = fitted(loss, X, y, lam, intercept=intercept)
    design = np.column_stack([X / np.sqrt(p), np.full(n, float(intercept))])

    def objective(z):
        return loss.value(y, design @ z).sum() + 0.5 * lam * z[:p] @ z[:p]

    def gradient(z):
        return design.T @ loss.derivative(y, design @ z) + lam * np.append(z[:p], 0.0)

    found = minimize(objective, np.zeros(p + 1), jac=gradient, method="BFGS")
    assert fit.objective == pytest.approx(found.fun, rel=1e-8)
    assert fit.optimality <= GOOD


# ---------------------------------------------------------------- far from zero


@both
@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1e6])
@pytest.mark.parametrize(("n", "p"), [(60, 20), (20, 60)])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_counts_far_from_the_start_are_fitted(n, p, unit, lam, intercept):
    X, f, rng = features(n, p, seed=5)
    y = rng.poisson(np.exp(f + 5.0)).astype(float)
    y[0] = 1e4
    fit = fitted(Poisson(), unit * X, y, lam * unit**2, intercept=intercept)
    assert fit.optimality <= 1e-8
    assert np.isfinite(fit.w).all()


@pytest.mark.parametrize("label", [1e-200, 1e10, 1e200])
def test_positive_labels_of_any_size_are_fitted(label):
    X, f, rng = features(40, 20, seed=6)
    y = label * np.exp(f) * rng.exponential(size=40)
    fit = fitted(Gamma(), X, y, 0.1, intercept=True)
    assert fit.optimality <= GOOD
    same = fitted(Gamma(), X, y / label, 0.1, intercept=True)
    assert fit.b == pytest.approx(same.b + np.log(label), abs=1e-6)


def test_an_unpenalised_intercept_starts_at_overflow_and_returns():
    # a feature of huge size: at the first steps, exponentials are beyond all numbers
    X, f, rng = features(50, 5, seed=7)
    X[0] *= 1e3
    y = rng.poisson(np.exp(f)).astype(float)
    for lam in (1e-4, 1.0):
        assert fitted(Poisson(), X, y, lam, intercept=True).optimality <= GOOD
        assert fitted(Gamma(), X, y + 0.1, lam, intercept=True).optimality <= GOOD


def test_the_objective_is_the_loss_itself_and_its_gap_that_above_the_least_loss():
    X, f, rng = features(30, 10, seed=8)
    y = rng.poisson(np.exp(f)).astype(float)
    fit = fitted(Poisson(), X, y, 0.5, intercept=True)
    score = X @ fit.w / np.sqrt(10) + fit.b
    assert fit.objective == pytest.approx(
        (np.exp(score) - y * score).sum() + 0.25 * fit.w @ fit.w, rel=1e-12
    )
    # labels all alike: fitted without error, so that nothing is left above the least loss
    (alone,) = fit_path(Poisson(), REGRESSION, X, np.full(30, 7.0), np.array([1.0]), intercept=True)
    assert not alone.w.any()
    assert alone.b == pytest.approx(np.log(7.0))
    assert alone.objective == pytest.approx(30 * (7 - 7 * np.log(7)))


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Quantile(0.3), Insensitive(0.01), Absolute()], ids=repr)
def test_small_labels_and_large_features_leave_a_linear_programme_that_is_solved(loss):
    """λ in units of the features is 1e-13: rounding hides it, and the method has to look above."""
    for seed in range(10):
        X, f, rng = features(46, 3, seed)
        y = 0.01 * (f + rng.standard_normal(46))
        fit = fitted(loss, 500 * X, y, 2e-8, intercept=True)
        assert fit.optimality <= GOOD
        design = np.column_stack([X, np.ones(46)])
        # the objective of any other weights is larger
        for _ in range(20):
            other = design @ (
                np.append(fit.w * 500 / np.sqrt(3), fit.b) + 1e-3 * rng.normal(size=4)
            )
            assert loss.value(y - other).sum() > fit.objective * (1 - 1e-9)


@pytest.mark.parametrize("loss", [Quantile(0.3), Absolute()], ids=repr)
def test_labels_in_any_unit_have_the_same_fit(loss):
    X, f, rng = features(60, 20, seed=10)
    y = f + rng.standard_normal(60)
    expected = fitted(loss, X, y, 0.1, intercept=True)
    for unit in (1e-200, 1e-6, 1e6, 1e200):
        fit = fitted(loss, X, unit * y, 0.1 / unit, intercept=True)
        assert fit.optimality <= GOOD
        np.testing.assert_allclose(fit.w, unit * expected.w, atol=1e-8 * unit)
        assert fit.objective == pytest.approx(unit * expected.objective, rel=1e-9)


def test_labels_within_the_tube_need_no_weights():
    X, _, rng = features(30, 10, seed=9)
    fit = fitted(Insensitive(1.0), X, 5.0 + rng.uniform(-0.9, 0.9, 30), 1.0, intercept=True)
    assert fit.objective <= 1e-9
    assert fit.optimality <= 1e-6
    assert np.abs(fit.w).max() < 1e-6


LOSSES = {
    "poisson": Poisson(),
    "gamma": Gamma(),
    "binomial": Binomial(5),
    "own": negative_binomial(),
    "quantile": Quantile(0.9),
    "expectile": Expectile(0.1),
    "log_cosh": LogCosh(),
    "insensitive": Insensitive(0.2),
    "huber": Huber(0.3),
}


def drawn(name, seed):
    """A random problem: sizes, λ from 1e-8 to 1e6, scales of features and labels."""
    rng = np.random.default_rng([len(name), seed])
    n, p = int(rng.integers(2, 60)), int(rng.integers(1, 80))
    X, f, _ = features(n, p, seed)
    X *= 10.0 ** rng.integers(-1, 2)
    f += rng.choice([-3.0, 0.0, 3.0])
    y = f + rng.choice([0.1, 1.0, 10.0]) * rng.standard_t(2, n)
    if name in ("poisson", "own"):
        y = rng.poisson(np.exp(np.minimum(f, 9.0))).astype(float)
        y[0] = rng.choice([1.0, 1e4])
    if name == "gamma":
        y = np.exp(f) * rng.gamma(0.3, size=n) + 1e-12
    if name == "binomial":
        y = rng.binomial(5, expit(f)).astype(float)
        y[:2] = 0.0, 5.0
    return X, y, 10.0 ** rng.uniform(-8, 6), bool(rng.integers(2))


def excess(name, y, f):
    """Loss above its least value and its slope by f, written anew."""
    if name == "poisson":
        return np.exp(f) - y * f - y + xlogy(y, y), np.exp(f) - y
    if name == "gamma":
        u = np.log(y) - f
        return np.exp(u) - u - 1, 1 - np.exp(u)
    if name == "binomial":
        least = -xlogy(y, y / 5) - xlogy(5 - y, 1 - y / 5)
        return 5 * np.logaddexp(0, f) - y * f - least, 5 * expit(f) - y
    if name == "own":
        value, slope = LOSSES[name].value, LOSSES[name].derivative
        least = np.where(y > 0, value(y, np.log(np.maximum(y, 1e-9))), 0.0)  # at its mean
        return value(y, f) - least, slope(y, f)
    loss = LOSSES[name]
    return loss.value(y - f), -loss.derivative(y - f)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_random_problems_are_fitted_and_certificates_are_true(name):
    """Certified fits are stationary by an independent computation; the others are few."""
    short = 0
    for seed in range(60):
        X, y, lam, intercept = drawn(name, seed)
        fit = fitted(LOSSES[name], X, y, lam, intercept=intercept)
        assert np.isfinite(fit.w).all()
        A = X / np.sqrt(X.shape[1])
        loss, slope = excess(name, y, A @ fit.w + fit.b)
        above = loss.sum() + 0.5 * lam * fit.w @ fit.w
        short += fit.optimality > GOOD * (1 + 1e-4 * len(y) / above)
        if fit.optimality <= GOOD and name not in ("quantile", "insensitive"):
            gradient = lam * fit.w + A.T @ slope
            rounding = (1e-14 * np.abs(A).T @ (np.abs(slope) + np.abs(y) + 1.0)) ** 2
            assert gradient @ gradient <= 2 * lam * (2 * GOOD * above) + rounding.sum()
    assert short <= 3


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("loss", "y", "sentence"),
    [
        (Poisson(), [1.0, -1.0, -2.0], r"^y has 2 labels that the loss Poisson\(\) does not allow"),
        (Gamma(), [1.0, 0.0, 2.0], "^y has 1 label .* such as 0: give numbers above 0, or choose"),
        (Binomial(2), [3.0, 0.0, 2.0], "^y has 1 label .* such as 3: give numbers from 0 to 2"),
    ],
    ids=["poisson", "gamma", "binomial"],
)
def test_labels_that_a_loss_does_not_allow_are_refused(loss, y, sentence):
    with pytest.raises(hm.InvalidArgumentError, match=sentence) as caught:
        fitted(loss, np.eye(3), np.array(y), 1.0)
    assert caught.value.argument == "y"


@pytest.mark.parametrize(
    ("loss", "label", "end"),
    [(Poisson(), 0.0, "-∞"), (Binomial(3), 0.0, "-∞"), (Binomial(3), 3.0, "∞")],
)
def test_labels_that_push_the_intercept_to_infinity_are_refused(loss, label, end):
    X, y = features(20, 5)[0], np.full(20, label)
    assert not has_minimum(loss, REGRESSION, y, intercept=True)
    with pytest.raises(hm.InvalidArgumentError, match=f"such as {label:g}, .* f = {end}, .*inter"):
        fitted(loss, X, y, 1.0, intercept=True)
    assert has_minimum(loss, REGRESSION, y, intercept=False)
    assert fitted(loss, X, y, 1.0).optimality <= GOOD
    y[0] = 1.0
    assert fitted(loss, X, y, 1.0, intercept=True).optimality <= GOOD


def test_rare_counts_however_small_have_a_minimum():
    X, y = features(20, 5)[0], np.zeros(20)
    y[3] = 1e-15
    assert fitted(Poisson(), X, y, 1.0, intercept=True).b == pytest.approx(
        np.log(1e-15 / 20), rel=0.01
    )


def test_each_kink_counts_as_memory():
    assert numbers_needed(Insensitive(), 100, 30) > 1.9 * numbers_needed(Absolute(), 100, 30)
