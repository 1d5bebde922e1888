"""Fits are exact minimisers: optimality conditions, scikit-learn, and honest failures."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear
from scipy.special import expit, xlogy
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC
from threadpoolctl import threadpool_limits

import hiddenmanifold as hm
from hiddenmanifold.checks import SCALAR_TASKS, Task
from hiddenmanifold.losses import (
    REGISTRY,
    Binomial,
    Custom,
    Expectile,
    Huber,
    Insensitive,
    Quantile,
    SmoothedHinge,
)
from hiddenmanifold.results.datasets import ACCEPTED
from hiddenmanifold.simulation import fit as fit_module
from hiddenmanifold.simulation import interior_point, newton_fit
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.newton_fit import newton_path
from hiddenmanifold.simulation.problem import GOOD, Shortfalls, certified
from seeds import sampled

CLASSIFICATION, REGRESSION = Task.CLASSIFICATION, Task.REGRESSION
SHAPES = {"p < n": (90, 40), "p = n": (60, 60), "p > n": (50, 90)}
WIDE_RANGE = np.logspace(-8, 4, 13)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The test processes fill the cores; to find the libraries takes longer than many a fit."""
    with threadpool_limits(1):
        yield


def cosh_loss(**options):
    """A smooth custom loss: log 2cosh of the margin's distance from one, or of the residual."""
    a = 0.0 if options.get("of") == "residual" else 1.0
    return Custom(
        lambda m: np.logaddexp(m - a, a - m),
        lambda m: np.tanh(m - a),
        lambda m: 1.0 - np.tanh(m - a) ** 2,
        **options,
    )


# value and derivative in the prediction f, written without the shortfall of the sources;
# at a kink the derivative is anything in between
LOSSES = {
    "square": (lambda y, f: 0.5 * (y - f) ** 2, lambda y, f: f - y),
    "logistic": (lambda y, f: np.logaddexp(0, -y * f), lambda y, f: -y * expit(-y * f)),
    "hinge": (lambda y, f: np.maximum(1 - y * f, 0), lambda y, f: -y * (y * f < 1)),
    "squared_hinge": (
        lambda y, f: 0.5 * np.maximum(1 - y * f, 0) ** 2,
        lambda y, f: -y * np.maximum(1 - y * f, 0),
    ),
    "smoothed_hinge": (
        lambda y, f: np.where(
            y * f > 1, 0, np.where(y * f > 0.3, (1 - y * f) ** 2 / 1.4, 0.65 - y * f)
        ),
        lambda y, f: -y * np.clip((1 - y * f) / 0.7, 0, 1),
    ),
    "huber": (
        lambda y, f: np.where(np.abs(y - f) < 0.8, 0.5 * (y - f) ** 2, 0.8 * (np.abs(y - f) - 0.4)),
        lambda y, f: -np.clip(y - f, -0.8, 0.8),
    ),
    "absolute": (lambda y, f: np.abs(y - f), lambda y, f: -np.sign(y - f)),
    "log_cosh": (lambda y, f: np.logaddexp(y - f, f - y) - np.log(2), lambda y, f: -np.tanh(y - f)),
    "quantile": (
        lambda y, f: np.maximum(0.7 * (y - f), 0.3 * (f - y)),
        lambda y, f: np.where(y > f, -0.7, 0.3),
    ),
    "expectile": (
        lambda y, f: np.where(y > f, 0.7, 0.3) * (y - f) ** 2 / 2,
        lambda y, f: np.where(y > f, 0.7, 0.3) * (f - y),
    ),
    "insensitive": (
        lambda y, f: np.maximum(np.abs(y - f) - 0.3, 0),
        lambda y, f: np.where(np.abs(y - f) > 0.3, np.sign(f - y), 0.0),
    ),
    "poisson": (lambda y, f: np.exp(f) - y * f, lambda y, f: np.exp(f) - y),
    "gamma": (lambda y, f: y / np.exp(f) + f, lambda y, f: 1 - y / np.exp(f)),
    "binomial": (
        lambda y, f: -y * np.log(expit(f)) - (3 - y) * np.log(expit(-f)),
        lambda y, f: 3 * expit(f) - y,
    ),
    "custom": (lambda y, f: np.log(2 * np.cosh(1 - y * f)), lambda y, f: -y * np.tanh(1 - y * f)),
    "custom residual": (lambda y, f: np.log(2 * np.cosh(y - f)), lambda y, f: -np.tanh(y - f)),
}
SLOPES_AT_KINK = {"hinge": (0.0, 1.0), "absolute": (-1.0, 1.0)}  # of the shortfall
SLOPES_AT_KINKS = {  # by shortfall
    **{name: {0.0: slopes} for name, slopes in SLOPES_AT_KINK.items()},
    "quantile": {0.0: (-0.3, 0.7)},
    "insensitive": {-0.3: (-1.0, 0.0), 0.3: (0.0, 1.0)},
}
OF_RESIDUALS = (
    *("square", "huber", "absolute", "custom residual"),
    *("log_cosh", "quantile", "expectile", "insensitive"),
)
# the least loss of each label
OF_LABELS = {
    "poisson": lambda y: y - xlogy(y, y),
    "gamma": lambda y: 1 + np.log(y),
    "binomial": lambda y: -xlogy(y, y / 3) - xlogy(3 - y, 1 - y / 3),
}
ONLY_REAL = ("quantile", "expectile", "insensitive", *OF_LABELS)
OF_CLASSES = [name for name in LOSSES if name not in ONLY_REAL]
CASES = [(name, CLASSIFICATION) for name in OF_CLASSES]
CASES += [(name, REGRESSION) for name in (*OF_RESIDUALS, *OF_LABELS)]


def made(name):
    special = {
        "smoothed_hinge": lambda: SmoothedHinge(0.7),
        "huber": lambda: Huber(0.8),
        "quantile": lambda: Quantile(0.7),
        "expectile": lambda: Expectile(0.7),
        "insensitive": lambda: Insensitive(0.3),
        "binomial": lambda: Binomial(3),
        "custom": cosh_loss,
        "custom residual": lambda: cosh_loss(of="residual"),
    }
    return special[name]() if name in special else REGISTRY[name]()


def problem(task, n, p, seed=0, name=""):
    """Features of non-zero mean, and noisy labels that are not balanced, such as a loss allows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.3
    field = X[:, : p // 2] @ rng.standard_normal(p // 2) / np.sqrt(p)
    field += 0.4 + 0.7 * rng.standard_normal(n)
    if name == "poisson":
        return X, rng.poisson(np.exp(field)).astype(float)
    if name == "gamma":
        return X, np.exp(field) * rng.exponential(size=n)
    if name == "binomial":
        return X, rng.binomial(3, expit(field)).astype(float)
    return X, field if task is REGRESSION else np.where(field > 0, 1.0, -1.0)


def objective(name, data, lam, w, b):
    X, y = data
    f = X @ w / np.sqrt(X.shape[1]) + b
    return LOSSES[name][0](y, f).sum() + 0.5 * lam * w @ w


def violation(name, data, fit, lam, *, intercept):
    """Norms of the gradient in (w, b), with the best choice of derivatives at a kink."""
    X, y = data
    A = X / np.sqrt(X.shape[1])
    f = A @ fit.w + fit.b
    g = LOSSES[name][1](y, f).astype(float)
    if name in SLOPES_AT_KINKS:
        s = 1 - y * f if name == "hinge" else y - f
        slopes = np.full((2, len(y)), np.nan)
        for kink, between in SLOPES_AT_KINKS[name].items():
            slopes[:, np.abs(s - kink) < 1e-7] = np.array(between)[:, None]
        on = np.isfinite(slopes[0])
        g[on] = 0.0
        # unknowns w and, if free, b; the equation of b counts more
        design = np.concatenate([A, np.full((len(y), 1), 1e3)], 1)[:, : A.shape[1] + intercept]
        rest = np.concatenate([lam * fit.w, [0.0] * intercept]) + design.T @ g
        low, high = slopes[:, on]
        sign = y[on] if name == "hinge" else np.ones(on.sum())
        if on.any():  # g = -sign h with h between the slopes at the kink
            best = lsq_linear(design[on].T * sign, rest, (low, high), tol=1e-14, method="bvls")
            g[on] = -sign * best.x
    return np.linalg.norm(lam * fit.w + A.T @ g), abs(g.sum()), np.abs(g).sum()


def attainable(fit, y, name=""):
    """1e-10, plus what rounding of every shortfall does to the certificate of a tiny objective."""
    least = OF_LABELS[name](y).sum() if name in OF_LABELS else 0.0
    return GOOD + 4e-15 * len(y) / (fit.objective - least)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_loss_reaches_its_optimum_for_every_regularisation(name, task, shape, intercept):
    X, y = problem(task, *SHAPES[shape], name=name)
    fits = fit_path(made(name), task, X, y, WIDE_RANGE, intercept=intercept)
    for lam, fit in zip(WIDE_RANGE, fits, strict=True):
        assert 0 <= fit.optimality <= attainable(fit, y, name), lam
        found = objective(name, (X, y), lam, fit.w, fit.b)
        assert fit.objective == pytest.approx(found, rel=1e-7, abs=0.0)
        assert (fit.b != 0) == intercept


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_stationarity_holds_with_slopes_of_the_loss(name, task, shape, intercept):
    X, y = problem(task, *SHAPES[shape], seed=1, name=name)
    least = OF_LABELS[name](y).sum() if name in OF_LABELS else 0.0
    lams = np.array([1e-3, 0.1, 10.0])
    fits = fit_path(made(name), task, X, y, lams, intercept=intercept)
    for lam, fit in zip(lams, fits, strict=True):
        in_w, in_b, size = violation(name, (X, y), fit, lam, intercept=intercept)
        # by strong convexity the objective is within |gradient|²/2λ of its minimum
        assert in_w**2 / (2 * lam) < GOOD * (fit.objective - least), lam
        if intercept:
            assert in_b < np.sqrt(GOOD) * size, lam


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize(("name", "task"), CASES)
def test_no_neighbour_has_a_smaller_objective(name, task, intercept):
    X, y = problem(task, 60, 50, seed=2, name=name)
    rng = np.random.default_rng(0)
    lam = 0.05
    (fit,) = fit_path(made(name), task, X, y, np.array([lam]), intercept=intercept)
    least = objective(name, (X, y), lam, fit.w, fit.b)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            w = fit.w + size * rng.standard_normal(50)
            b = fit.b + size * rng.standard_normal() * intercept
            assert objective(name, (X, y), lam, w, b) > least


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_path_in_any_order_is_the_separate_fits(name, task, shape, intercept):
    X, y = problem(task, *SHAPES[shape], seed=3, name=name)
    lams = np.array([0.1, 30.0, 1e-3, 1.0, 0.1])
    together = fit_path(made(name), task, X, y, lams, intercept=intercept)
    assert together[0].objective == pytest.approx(together[-1].objective, rel=1e-9)
    for lam, fit in zip(lams, together, strict=True):
        (alone,) = fit_path(made(name), task, X, y, np.array([lam]), intercept=intercept)
        assert fit.objective == pytest.approx(alone.objective, rel=1e-9)
        assert np.abs(fit.w - alone.w).max() < 1e-4 * np.abs(alone.w).max()


def sklearn_fit(estimator, X, y):
    estimator.fit(X, y)
    w = np.ravel(estimator.coef_) * np.sqrt(X.shape[1])
    return w, float(np.ravel(estimator.intercept_)[0]) if np.size(estimator.intercept_) else 0.0


def assert_same_optimum(name, task, estimator, lam, *, shape, intercept):
    X, y = problem(task, *SHAPES[shape], seed=4, name=name)
    (fit,) = fit_path(made(name), task, X, y, np.array([lam]), intercept=intercept)
    ours = objective(name, (X, y), lam, fit.w, fit.b)
    w, b = sklearn_fit(estimator(X.shape[1]), X, y)
    theirs = objective(name, (X, y), lam, w, b)
    assert ours == pytest.approx(theirs, rel=1e-8)
    assert ours <= theirs * (1 + 1e-11)
    assert np.abs(fit.w - w).max() < 1e-3 * np.abs(w).max()


both = pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
every_size = pytest.mark.parametrize("shape", SHAPES)
three_strengths = pytest.mark.parametrize("lam", [1e-2, 0.3, 10.0])
# libsvm keeps its kernel in single precision: below, its own objective is 1e-7 from the minimum
moderate_strengths = pytest.mark.parametrize("lam", [3.0, 10.0])


@both
@every_size
@three_strengths
@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
def test_square_loss_is_scikit_learns_ridge(task, lam, shape, intercept):
    def ridge(p):
        alpha = hm.to_ridge_alpha(lam, p)
        return Ridge(alpha, fit_intercept=intercept, solver="svd")

    assert_same_optimum("square", task, ridge, lam, shape=shape, intercept=intercept)


@both
@every_size
@three_strengths
def test_logistic_loss_is_scikit_learns_logistic_regression(lam, shape, intercept):
    def logistic(p):
        C = hm.to_sklearn_C(lam, p)
        solver = {"solver": "newton-cg", "tol": 1e-12, "max_iter": 10_000}
        return LogisticRegression(C=C, fit_intercept=intercept, **solver)

    assert_same_optimum("logistic", CLASSIFICATION, logistic, lam, shape=shape, intercept=intercept)


@every_size
@moderate_strengths
def test_hinge_loss_with_intercept_is_scikit_learns_svc(lam, shape):
    def machine(p):
        return SVC(C=hm.to_sklearn_C(lam, p), kernel="linear", tol=1e-10)

    assert_same_optimum("hinge", CLASSIFICATION, machine, lam, shape=shape, intercept=True)


@every_size
@pytest.mark.parametrize("lam", [0.3, 10.0])
def test_hinge_loss_without_intercept_is_scikit_learns_linear_svc(lam, shape):
    def machine(p):
        C = hm.to_sklearn_C(lam, p)
        options = {"tol": 1e-10, "max_iter": 200_000, "random_state": 0}
        return LinearSVC(C=C, loss="hinge", fit_intercept=False, **options)

    assert_same_optimum("hinge", CLASSIFICATION, machine, lam, shape=shape, intercept=False)


@every_size
@pytest.mark.parametrize("lam", [0.3, 10.0])
def test_squared_hinge_loss_is_scikit_learns_linear_svc_at_half_its_C(lam, shape):
    def machine(p):
        C = 0.5 * hm.to_sklearn_C(lam, p)  # theirs has no factor 1/2
        options = {"tol": 1e-12, "max_iter": 10_000, "dual": False}
        return LinearSVC(C=C, loss="squared_hinge", fit_intercept=False, **options)

    assert_same_optimum("squared_hinge", CLASSIFICATION, machine, lam, shape=shape, intercept=False)


@every_size
@moderate_strengths
def test_absolute_loss_is_scikit_learns_svr_without_tube(lam, shape):
    def machine(p):
        return SVR(C=hm.to_sklearn_C(lam, p), kernel="linear", epsilon=0.0, tol=1e-10)

    assert_same_optimum("absolute", REGRESSION, machine, lam, shape=shape, intercept=True)


@pytest.mark.slow
@both
@pytest.mark.parametrize("lam", [1e-6, 1e-2])
@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_single_fit_of_a_larger_problem_is_exact(name, task, lam, intercept):
    X, y = problem(task, 300, 220, seed=5, name=name)
    (fit,) = fit_path(made(name), task, X, y, np.array([lam]), intercept=intercept)
    assert fit.optimality <= attainable(fit, y, name)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_duplicate_samples_and_constant_features_are_fitted(name, task):
    X, y = problem(task, 40, 30, seed=6, name=name)
    X, y = np.concatenate([X, X]), np.concatenate([y, y])  # every Gram matrix is singular
    X[:, 0], X[:, 1] = 1.0, 0.0
    for fit in fit_path(made(name), task, X, y, np.array([1e-4, 1.0]), intercept=True):
        assert fit.optimality <= attainable(fit, y, name)


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
def test_certificate_grows_away_from_the_optimum(intercept):
    X, y = problem(CLASSIFICATION, 60, 40, seed=7)
    loss, lam = made("logistic"), 0.1
    (fit,) = fit_path(loss, CLASSIFICATION, X, y, np.array([lam]), intercept=intercept)
    data = Shortfalls.of(loss, CLASSIFICATION, X, y, intercept=intercept)
    for size in (1e-3, 1e-1):
        w = fit.w + size * np.random.default_rng(0).standard_normal(40)
        off = certified(loss, data, lam, w, fit.b)
        assert off.optimality >= (off.objective - fit.objective) / off.objective > 0


SMOOTH = [case for case in CASES if case[0] not in SLOPES_AT_KINKS]


@pytest.mark.parametrize("shift", [0.1, 1.0])
@pytest.mark.parametrize(("name", "task"), SMOOTH)
def test_certificate_is_a_bound_where_weights_and_intercept_are_wrong_together(name, task, shift):
    # the weights best for a wrong intercept: their own gradient vanishes
    X, y = problem(task, 200, 50, seed=8, name=name)
    X, lam, loss = X + 1.0, 1e-4, made(name)
    (fit,) = fit_path(loss, task, X, y, np.array([lam]), intercept=True)
    data, loss = Shortfalls.of(loss, task, X, y, intercept=True), loss.of_labels(y)
    wrong = Shortfalls(data.B, data.t - (fit.b + shift) * data.v, data.v, False, data.unit)
    (best,) = newton_path(loss, wrong, np.array([lam]))
    off = certified(loss, data, lam, best.w, fit.b + shift)
    away = objective(name, (X, y), lam, off.w, off.b) - objective(name, (X, y), lam, fit.w, fit.b)
    assert off.optimality * off.objective >= 0.999 * away > 0


def test_gap_of_corrected_weights_counts_their_distance_from_the_dual_variables():
    X, y = problem(CLASSIFICATION, 40, 30, seed=9)
    loss, lam = made("hinge"), 0.1
    (fit,) = fit_path(loss, CLASSIFICATION, X, y, np.array([lam]))
    data = Shortfalls.of(loss, CLASSIFICATION, X, y, intercept=False)
    h = np.full(40, 0.5)
    # all samples fitted: every term of the sum over samples vanishes, the weights are far too long
    w = 100.0 * np.linalg.lstsq(data.B, np.ones(40), rcond=None)[0]
    off = interior_point._with_gap(data, (0.0, 1.0), lam, (h, 0.0), w)
    assert off.optimality >= (off.objective - fit.objective) / off.objective > 0


@pytest.mark.parametrize("name", ["hinge", "absolute"])
def test_gap_is_a_bound_for_dual_variables_that_are_not_feasible(name):
    X, y = problem(CLASSIFICATION, 60, 20, seed=10)
    loss, lam = made(name), 0.1
    (fit,) = fit_path(loss, CLASSIFICATION, X, y, np.array([lam]), intercept=True)
    data = Shortfalls.of(loss, CLASSIFICATION, X, y, intercept=True)
    rng = np.random.default_rng(0)
    box = SLOPES_AT_KINK[name]
    for b in (0.0, fit.b, 2.0):
        off = interior_point._with_gap(data, box, lam, (rng.normal(0.5, 1.0, 60), b))
        assert off.optimality * off.objective >= 0.999 * (off.objective - fit.objective) > 0


def test_gap_is_a_bound_for_dual_variables_beyond_their_box():
    X, y = problem(CLASSIFICATION, 60, 20, seed=10)
    loss, lam = made("hinge"), 1e3  # so large that every sample falls short
    (fit,) = fit_path(loss, CLASSIFICATION, X, y, np.array([lam]))
    data = Shortfalls.of(loss, CLASSIFICATION, X, y, intercept=False)
    off = interior_point._with_gap(data, (0.0, 1.0), lam, (np.full(60, 6.0), 0.0), np.zeros(20))
    assert off.optimality * off.objective >= 0.999 * (off.objective - fit.objective) > 0


SHARP = [
    (loss(delta), task)
    for delta in sampled([1e-2, 1e-3], [1e-3])
    for loss, task in (
        (SmoothedHinge, CLASSIFICATION),
        (Huber, CLASSIFICATION),
        (Huber, REGRESSION),
    )
]


@pytest.mark.slow
@both
@pytest.mark.parametrize(("n", "p"), sampled([(300, 100), (150, 300)], [(150, 300)]))
@pytest.mark.parametrize(("loss", "task"), SHARP, ids=repr)
def test_losses_with_sharp_bends_are_fitted(loss, task, n, p, intercept):
    X, y = problem(task, n, p, seed=11)
    lams = np.array([1.0, 1e-2, 1e-4])
    for lam, fit in zip(lams, fit_path(loss, task, X, y, lams, intercept=intercept), strict=True):
        assert fit.optimality <= GOOD, lam


@pytest.mark.parametrize("seed", range(6))
def test_an_intercept_at_saturation_is_no_false_alarm(seed):
    # every slope is ±δ: nothing bends, and the sum of slopes is zero to rounding only
    rng = np.random.default_rng(seed)
    X, y = np.sign(rng.standard_normal((60, 120))), np.where(rng.random(60) < 0.5, -1.0, 1.0)
    (fit,) = fit_path(Huber(0.01), CLASSIFICATION, X, y, np.array([1.0]), intercept=True)
    assert fit.optimality <= GOOD


@pytest.mark.parametrize("name", ["square", "huber", "absolute"])
def test_tiny_labels_are_judged_by_their_own_size(name):
    X, y = problem(REGRESSION, 30, 12, seed=12)
    loss, lam = made(name), 1.0
    (fit,) = fit_path(loss, REGRESSION, X, 1e-9 * y, np.array([lam]), intercept=True)
    assert fit.optimality <= 1e-6
    data = Shortfalls.of(loss, REGRESSION, X, 1e-9 * y, intercept=True)
    assert data.relative(fit.objective, fit.objective) == pytest.approx(1.0)  # not hidden


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "smoothed_hinge", "huber"])
def test_features_that_say_nothing_leave_the_intercept(name):
    y = np.tile([1.0, -1.0, 1.0], 4)
    (fit,) = fit_path(
        made(name), CLASSIFICATION, np.zeros((12, 5)), y, np.array([1.0]), intercept=True
    )
    assert fit.optimality <= GOOD
    assert not fit.w.any()
    at = [objective(name, (np.zeros((12, 5)), y), 1.0, fit.w, fit.b + db) for db in (-0.1, 0, 0.1)]
    assert at[1] < min(at[0], at[2])


@both
@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "smoothed_hinge", "huber"])
def test_features_of_low_rank_are_fitted_in_the_space_of_the_samples(name, intercept):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 120))
        y = np.where(X[:, 0] + 2 * rng.standard_normal(60) > 0, 1.0, -1.0)
        lams = np.array([1.0, 1e-4])
        for fit in fit_path(made(name), CLASSIFICATION, X, y, lams, intercept=intercept):
            assert fit.optimality <= attainable(fit, y)
    X = np.outer(np.arange(12.0) - 5, np.ones(30))  # rank one: a square may come out negative
    y = np.tile([1.0, -1.0, 1.0], 4)
    for lam in np.logspace(-8, 2, 6):
        (fit,) = fit_path(made(name), CLASSIFICATION, X, y, np.array([lam]), intercept=intercept)
        assert fit.optimality <= 1e-7


def test_a_factorisation_that_fails_ends_the_iteration_and_the_certificate_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 60))
    y = np.where(rng.standard_normal(60) > 0, 1.0, -1.0)
    (fit,) = fit_path(made("squared_hinge"), CLASSIFICATION, X, y, np.array([1e-300]))
    assert np.isfinite(fit.w).all()
    assert fit.optimality > ACCEPTED


@pytest.mark.slow
def test_a_regularisation_of_next_to_nothing_is_no_error():
    X, y = problem(CLASSIFICATION, 20, 30)
    (fit,) = fit_path(made("logistic"), CLASSIFICATION, X, y, np.array([1e-320]))
    assert np.isfinite(fit.w).all()


@pytest.mark.parametrize("shape", [(3000, 50), (1000, 50)])
@both
def test_tall_piecewise_linear_fits_need_no_matrix_of_all_pairs_of_samples(shape, intercept):
    n, p = shape
    X, y = problem(CLASSIFICATION, n, p, seed=13)
    tracemalloc.start()
    (fit,) = fit_path(made("hinge"), CLASSIFICATION, X, y, np.array([1e-8]), intercept=intercept)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit.optimality <= attainable(fit, y)
    assert peak < 0.3 * 8 * n**2


@pytest.mark.parametrize("name", ["square", "logistic", "hinge"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_non_finite_features_and_labels_are_refused(name, wrong):
    X, y = problem(CLASSIFICATION, 20, 10)
    broken = X.copy()
    broken[3, 4] = wrong
    with pytest.raises(hm.InvalidArgumentError, match="^X has 1 non-finite entry: give finite"):
        fit_path(made(name), CLASSIFICATION, broken, y, np.array([1.0]))
    labels = y.copy()
    labels[[2, 5]] = wrong
    with pytest.raises(hm.InvalidArgumentError, match="^y has 2 non-finite entries: give finite"):
        fit_path(made(name), CLASSIFICATION, X, labels, np.array([1.0]))


@pytest.mark.parametrize("label", [1.0, -1.0])
@pytest.mark.parametrize("name", OF_CLASSES)
def test_one_class_is_refused_only_if_an_intercept_would_run_away(name, label):
    X, _ = problem(CLASSIFICATION, 20, 10)
    y, lams = np.full(20, label), np.array([1.0, 1e-3])
    if name == "logistic":
        with pytest.raises(hm.InvalidArgumentError, match="one class only.*both classes"):
            fit_path(made(name), CLASSIFICATION, X, y, lams, intercept=True)
    else:
        for fit in fit_path(made(name), CLASSIFICATION, X, y, lams, intercept=True):
            assert not fit.w.any()
            margins = np.linspace(-5, 5, 1001)
            least = LOSSES[name][0](label, label * margins).min()
            assert fit.objective == pytest.approx(20 * least, abs=1e-12)
            at = objective(name, (X, y), 1.0, fit.w, fit.b)
            assert at == pytest.approx(fit.objective, abs=1e-12)
    for fit in fit_path(made(name), CLASSIFICATION, X, y, lams):
        assert fit.optimality <= attainable(fit, y)


@pytest.mark.parametrize("name", OF_RESIDUALS)
def test_equal_real_labels_are_fitted_by_the_intercept_alone(name):
    X, _ = problem(REGRESSION, 30, 12)
    lams = np.array([1.0, 1e-2, 1e-4])
    for fit in fit_path(made(name), REGRESSION, X, np.full(30, 3.0), lams, intercept=True):
        assert fit.b == pytest.approx(3.0, abs=1e-9)
        assert not fit.w.any()
        assert fit.objective == pytest.approx(30 * LOSSES[name][0](0.0, 0.0), abs=1e-12)


def test_a_custom_loss_with_a_kink_and_curvature_is_refused_clearly():
    bent = Custom(
        lambda r: np.abs(r) + 0.5 * r**2,
        lambda r: np.sign(r) + r,
        np.ones_like,
        of="residual",
        kinks=(0.0,),
    )
    X, y = problem(REGRESSION, 20, 10)
    with pytest.raises(hm.InvalidArgumentError, match="^loss = .*smooth, or piecewise linear"):
        fit_path(bent, REGRESSION, X, y, np.array([1.0]))


@both
def test_a_custom_loss_with_corners_in_its_slope_only_is_fitted(intercept):
    same = Custom(
        lambda r: np.where(np.abs(r) < 0.8, 0.5 * r**2, 0.8 * (np.abs(r) - 0.4)),
        lambda r: np.clip(r, -0.8, 0.8),
        lambda r: np.where(np.abs(r) < 0.8, 1.0, 0.0),
        of="residual",
        kinks=(-0.8, 0.8),
    )
    X, y = problem(REGRESSION, 50, 40)
    lams = np.array([0.1])
    (fit,) = fit_path(same, REGRESSION, X, y, lams, intercept=intercept)
    (expected,) = fit_path(Huber(0.8), REGRESSION, X, y, lams, intercept=intercept)
    assert fit.objective == pytest.approx(expected.objective, rel=1e-9)


def test_a_custom_piecewise_linear_loss_with_one_kink_is_fitted():
    # the pinball loss of quantile regression is what the error message says can be fitted
    pinball = Custom(
        lambda r: np.maximum(0.8 * r, -0.2 * r),
        lambda r: np.where(r > 0, 0.8, -0.2),
        np.zeros_like,
        of="residual",
        kinks=(0.0,),
    )
    X, y = problem(REGRESSION, 60, 20)
    (fit,) = fit_path(pinball, REGRESSION, X, y, np.array([1e-3]), intercept=True)
    assert fit.optimality <= attainable(fit, y)
    below = (y < X @ fit.w / np.sqrt(20) + fit.b - 1e-9).mean()
    assert below <= 0.8  # the fitted quantile


@pytest.mark.parametrize(("n", "p"), [(100, 100), (300, 100)])
def test_ridge_with_a_singular_gram_matrix(n, p):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 20)) @ rng.standard_normal((20, p))
    y = X @ rng.standard_normal(p) + rng.standard_normal(n)
    (fit,) = fit_path(REGISTRY["square"](), REGRESSION, X, y, np.array([1e-16]))
    shortest = np.linalg.lstsq(X, y, rcond=1e-10)[0]
    np.testing.assert_allclose(X @ fit.w / np.sqrt(p), X @ shortest, atol=1e-6)


@both
@pytest.mark.parametrize("values", [1, 40], ids=["one", "many"])
@pytest.mark.parametrize(("n", "p"), [(120, 300), (300, 120)])
def test_ridge_on_features_of_low_rank_is_exact_for_any_regularisation(n, p, values, intercept):
    rng = np.random.default_rng(15)
    X = rng.standard_normal((n, 30)) @ rng.standard_normal((30, p)) / np.sqrt(30)
    y = np.where(rng.standard_normal(n) > 0, 1.0, -1.0)
    for lam in (1e-6, 1e-8, 1e-12, 1e-16):
        fit = fit_path(made("square"), REGRESSION, X, y, np.full(values, lam), intercept=intercept)[
            -1
        ]
        assert fit.optimality <= GOOD, lam
        A = np.column_stack([X / np.sqrt(p), np.ones(n)]) if intercept else X / np.sqrt(p)
        rest = y - A @ np.linalg.lstsq(A, y, rcond=1e-10)[0]
        assert fit.objective == pytest.approx(0.5 * rest @ rest, rel=1e-5)
        assert np.linalg.norm(fit.w) < 1e3


@both
@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
@pytest.mark.parametrize(("n", "p"), [(40, 90), (90, 40), (50, 50)])
def test_square_loss_without_regularisation_is_the_shortest_least_squares(n, p, task, intercept):
    X, y = problem(task, n, p, seed=16)
    zero, small = fit_path(made("square"), task, X, y, np.array([0.0, 1e-9]), intercept=intercept)
    A = X / np.sqrt(p)
    centre, mean = (A.mean(0), y.mean()) if intercept else (0.0, 0.0)
    expected = np.linalg.lstsq(A - centre, y - mean, rcond=1e-10)[0]
    np.testing.assert_allclose(zero.w, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(zero.w, small.w, atol=1e-4 * np.abs(expected).max())
    assert zero.b == pytest.approx(float(mean - np.mean(A @ expected) * intercept), abs=1e-8)
    assert zero.optimality <= GOOD


def test_other_losses_without_regularisation_are_refused_with_advice():
    X, y = problem(CLASSIFICATION, 20, 10)
    with pytest.raises(hm.InvalidArgumentError, match="positive.*square loss.*1e-8"):
        fit_path(made("logistic"), CLASSIFICATION, X, y, np.array([1.0, 0.0]))


@both
@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "huber"])
def test_wide_newton_steps_by_cholesky_are_those_of_the_weights(name, intercept):
    X, y = problem(CLASSIFICATION, 30, 50, seed=18)
    loss, lam = made(name), 1e-3
    data = Shortfalls.of(loss, CLASSIFICATION, X, y, intercept=intercept)
    rng = np.random.default_rng(0)
    g, bend, slope = data.B.T @ rng.standard_normal(30), rng.random(30), 0.3 * intercept
    step, shift = newton_fit.Wide(loss, data, data.B).newton_step(lam, (g, slope), bend)
    narrow = newton_fit.Space(loss, data, data.B).newton_step(lam, (g, slope), bend)
    design = np.column_stack([data.B, data.v]) if intercept else data.B
    hessian = design.T @ (bend[:, None] * design) + np.diag([lam] * 50 + [0.0] * intercept)
    exact = np.linalg.solve(hessian, -np.append(g, [slope] * intercept))
    for dx, db in ((step, shift), narrow):
        np.testing.assert_allclose(dx, exact[:50], atol=1e-9 * np.abs(exact).max())
        assert db == pytest.approx(exact[50] if intercept else 0.0, rel=1e-7)


@both
@pytest.mark.parametrize(("n", "p"), [(60, 40), (40, 60)])
@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "huber"])
def test_columns_of_very_different_sizes_are_fitted(name, n, p, intercept):
    """Newton's matrix is singular in single precision, and steps by it do not descend."""
    X, y = problem(CLASSIFICATION, n, p, seed=19)
    X *= np.logspace(-5, 5, p)
    (fit,) = fit_path(made(name), CLASSIFICATION, X, y, np.array([0.1]), intercept=intercept)
    assert fit.optimality <= attainable(fit, y)


@both
@pytest.mark.parametrize("scale", [1e-25, 1e25])
@pytest.mark.parametrize(("n", "p"), [(300, 270), (270, 300)])
@pytest.mark.parametrize("name", ["logistic", "huber", "square"])
def test_scales_beyond_single_precision_are_fitted(name, n, p, scale, intercept):
    X, y = problem(CLASSIFICATION, n, p, seed=20)
    (fit,) = fit_path(made(name), CLASSIFICATION, X, y, np.array([0.1]), intercept=intercept)
    lams = np.array([0.1 * scale**2])
    (scaled,) = fit_path(made(name), CLASSIFICATION, scale * X, y, lams, intercept=intercept)
    assert scaled.optimality <= GOOD
    assert scaled.objective == pytest.approx(fit.objective, rel=1e-9)
    np.testing.assert_allclose(scaled.w * scale, fit.w, atol=1e-4 * np.abs(fit.w).max())


REGISTERED = [
    (name, task) for name in REGISTRY for task in sorted(REGISTRY[name].tasks & SCALAR_TASKS)
]


@pytest.mark.slow
@both
@pytest.mark.parametrize(("name", "task"), REGISTERED)
def test_features_of_any_scale_have_the_same_fit_to_the_bit(name, task, intercept):
    for n, p in ((40, 30), (30, 40)):
        X, y = problem(task, n, p, seed=22, name=name)
        lams = np.array([1.0, 1e-2, 1e-5])
        lams = np.append(lams, 0.0) if name == "square" else lams
        expected = fit_path(made(name), task, X, y, lams, intercept=intercept)
        for scale in (2.0**20, 2.0**64, 2.0**-64, 2.0**200):
            fits = fit_path(made(name), task, scale * X, y, scale**2 * lams, intercept=intercept)
            for fit, same in zip(fits, expected, strict=True):
                assert (scale * fit.w == same.w).all()
                assert (fit.b, fit.objective, fit.optimality) == (
                    same.b,
                    same.objective,
                    same.optimality,
                )
                assert fit.optimality <= attainable(fit, y, name)


@pytest.mark.slow
def test_scales_beyond_all_bounds_are_no_error():
    X, y = problem(CLASSIFICATION, 20, 30)
    for scale in (1e-300, 1e300):
        for name in (name for name in REGISTRY if name in OF_CLASSES):
            (fit,) = fit_path(made(name), CLASSIFICATION, scale * X, y, np.array([1e-30]))
            assert np.isfinite(fit.w).all()


@both
@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_walls_that_a_small_regularisation_leaves_are_met_by_short_steps(delta, intercept):
    # a step of Newton's that bends a straight sample is too long by the ratio of its bend to λ
    X, y = problem(CLASSIFICATION, 60, 50, seed=3)
    (fit,) = fit_path(
        SmoothedHinge(delta), CLASSIFICATION, X, y, np.array([1e-8]), intercept=intercept
    )
    assert fit.optimality <= GOOD


def test_a_minimum_below_rounding_is_soon_given_up():
    evaluations = []

    class Counting(SmoothedHinge):
        def value(self, s):
            evaluations.append(0)
            return super().value(s)

    X, y = problem(CLASSIFICATION, 60, 50)
    (fit,) = fit_path(Counting(), CLASSIFICATION, X, y, np.array([1e-2]))
    assert fit.optimality <= GOOD
    easy = len(evaluations)
    (fit,) = fit_path(Counting(), CLASSIFICATION, X, y, np.array([1e-30]))
    assert fit.optimality > ACCEPTED
    assert len(evaluations) - easy < 200 * easy


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled([1, 2, 5, 7, 8], [2, 8]))
def test_minima_that_are_missed_on_the_way_to_a_small_regularisation_are_found_again(seed):
    X, y = problem(REGRESSION, 24, 26, seed=seed)
    (fit,) = fit_path(Huber(0.5), REGRESSION, X, 1e6 * y, np.array([1e-8]), intercept=True)
    assert fit.optimality <= GOOD


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p", "seed"), [(40, 30, 0), (30, 60, 6)])
def test_an_intercept_at_the_edge_of_a_plateau_moves_with_the_weights(n, p, seed):
    # no sample is curved at the best intercept, which is an interval: only a joint step descends
    X, y = problem(REGRESSION, n, p, seed=seed)
    (fit,) = fit_path(Huber(1.0), REGRESSION, X, 1e6 * y, np.array([1e-4]), intercept=True)
    assert fit.optimality <= GOOD


@both
@pytest.mark.parametrize(("n", "p"), [(400, 300), (300, 400)])
def test_large_ridge_fits_are_refined_to_rounding(n, p, intercept):
    X, y = problem(REGRESSION, n, p, seed=21)
    lam, A = 1e-3, X / np.sqrt(p)
    (fit,) = fit_path(made("square"), REGRESSION, X, y, np.array([lam]), intercept=intercept)
    A, r = (A - A.mean(0), y - y.mean()) if intercept else (A, y)
    exact = np.linalg.solve(A.T @ A + lam * np.eye(p), A.T @ r)
    np.testing.assert_allclose(fit.w, exact, atol=1e-9 * np.abs(exact).max())
    assert fit.optimality <= 1e-17
    X[:, 150:], lam = X[:, :1] * 1e3, 1e-6  # of low rank: no digits are left in single precision
    (fit,) = fit_path(made("square"), REGRESSION, X, y, np.array([lam]), intercept=intercept)
    assert fit.optimality <= GOOD


def test_a_solver_that_is_no_preconditioner_is_given_up():
    left = np.diag(np.logspace(0, 6, 50))
    target = np.random.default_rng(0).standard_normal(50)
    assert fit_module._refined(lambda r: r, left, target, 1.0) is None
    exact = fit_module._refined(lambda r: r / (np.diag(left) ** 2 + 1.0), left, target, 1.0)
    np.testing.assert_allclose(exact, target / (np.diag(left) ** 2 + 1.0), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "low"), [("hinge", 0.0), ("absolute", -1.0)])
def test_weights_are_zero_where_the_samples_hold_them_in_equilibrium(name, low):
    """w = 0 is best, at any λ, if slopes at the corner can balance those of the rarer label."""
    held = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(20, 70)), 6
        X = np.tanh(rng.standard_normal((n, p)))
        y = np.where(X[:, 0] + rng.standard_normal(n) + 0.8 > 0, 1.0, -1.0)
        pulls = np.vstack([X.T * y, y])  # on the weights, and on the intercept
        bounds = [(low, 1.0) if one > 0 else (1.0, 1.0) for one in y]
        balance = linprog(np.zeros(n), A_eq=pulls, b_eq=np.zeros(p + 1), bounds=bounds)
        lams = np.array([1e-3, 1.0, 1e3, 1e6])
        fits = fit_path(made(name), CLASSIFICATION, X, y, lams, intercept=True)
        assert [not fit.w.any() for fit in fits] == [balance.status == 0] * 4
        assert max(fit.optimality for fit in fits) <= GOOD
        held.append(balance.status == 0)
    assert 0 < sum(held) < 10
