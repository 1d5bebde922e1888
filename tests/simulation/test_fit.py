"""Fits are exact minimisers: optimality conditions, scikit-learn, and honest failures."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC
from threadpoolctl import threadpool_limits

import hiddenmanifold as hm
from hiddenmanifold.losses import REGISTRY, Custom, Huber, SmoothedHinge
from hiddenmanifold.registry import Task
from hiddenmanifold.simulation.fit import GOOD, fit_path

CLASSIFICATION, REGRESSION = Task.CLASSIFICATION, Task.REGRESSION
SHAPES = {"p < n": (90, 40), "p = n": (60, 60), "p > n": (50, 90)}
WIDE_RANGE = np.logspace(-8, 4, 13)


@pytest.fixture(autouse=True)
def one_thread():
    """The test processes fill the cores."""
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
    "custom": (lambda y, f: np.log(2 * np.cosh(1 - y * f)), lambda y, f: -y * np.tanh(1 - y * f)),
    "custom residual": (lambda y, f: np.log(2 * np.cosh(y - f)), lambda y, f: -np.tanh(y - f)),
}
SLOPES_AT_KINK = {"hinge": (0.0, 1.0), "absolute": (-1.0, 1.0)}  # of the shortfall
OF_RESIDUALS = ("square", "huber", "absolute", "custom residual")
CASES = [(name, CLASSIFICATION) for name in LOSSES] + [(name, REGRESSION) for name in OF_RESIDUALS]


def made(name):
    special = {
        "smoothed_hinge": lambda: SmoothedHinge(0.7),
        "huber": lambda: Huber(0.8),
        "custom": cosh_loss,
        "custom residual": lambda: cosh_loss(of="residual"),
    }
    return special[name]() if name in special else REGISTRY[name]()


def problem(task, n, p, seed=0):
    """Features of non-zero mean, and noisy labels that are not balanced."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.3
    field = X[:, : p // 2] @ rng.standard_normal(p // 2) / np.sqrt(p)
    field += 0.4 + 0.7 * rng.standard_normal(n)
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
    if name in SLOPES_AT_KINK:
        on = np.abs(1 - y * f if name == "hinge" else y - f) < 1e-7
        g[on] = 0.0
        # unknowns w and, if free, b; the equation of b counts more
        design = np.concatenate([A, np.full((len(y), 1), 1e3)], 1)[:, : A.shape[1] + intercept]
        rest = np.concatenate([lam * fit.w, [0.0] * intercept]) + design.T @ g
        low, high = SLOPES_AT_KINK[name]
        sign = y[on] if name == "hinge" else np.ones(on.sum())
        if on.any():  # g = -sign h with h between the slopes at the kink
            best = lsq_linear(design[on].T * sign, rest, (low, high), tol=1e-14, method="bvls")
            g[on] = -sign * best.x
    return np.linalg.norm(lam * fit.w + A.T @ g), abs(g.sum()), np.abs(g).sum()


def attainable(fit, y):
    """1e-10, plus what rounding of every shortfall does to the certificate of a tiny objective."""
    return GOOD + 4e-15 * len(y) / fit.objective


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_loss_reaches_its_optimum_for_every_regularisation(name, task, shape, intercept):
    X, y = problem(task, *SHAPES[shape])
    fits = fit_path(made(name), task, X, y, WIDE_RANGE, intercept=intercept)
    for lam, fit in zip(WIDE_RANGE, fits, strict=True):
        assert 0 <= fit.optimality <= attainable(fit, y), lam
        found = objective(name, (X, y), lam, fit.w, fit.b)
        assert fit.objective == pytest.approx(found, rel=1e-7)
        assert (fit.b != 0) == intercept


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_stationarity_holds_with_slopes_of_the_loss(name, task, shape, intercept):
    X, y = problem(task, *SHAPES[shape], seed=1)
    lams = np.array([1e-3, 0.1, 10.0])
    fits = fit_path(made(name), task, X, y, lams, intercept=intercept)
    for lam, fit in zip(lams, fits, strict=True):
        in_w, in_b, size = violation(name, (X, y), fit, lam, intercept=intercept)
        # by strong convexity the objective is within |gradient|²/2λ of its minimum
        assert in_w**2 / (2 * lam) < GOOD * fit.objective, lam
        if intercept:
            assert in_b < np.sqrt(GOOD) * size, lam


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize(("name", "task"), CASES)
def test_no_neighbour_has_a_smaller_objective(name, task, intercept):
    X, y = problem(task, 60, 50, seed=2)
    rng = np.random.default_rng(0)
    lam = 0.05
    (fit,) = fit_path(made(name), task, X, y, np.array([lam]), intercept=intercept)
    least = objective(name, (X, y), lam, fit.w, fit.b)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            w = fit.w + size * rng.standard_normal(50)
            b = fit.b + size * rng.standard_normal() * intercept
            assert objective(name, (X, y), lam, w, b) > least


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_path_in_any_order_is_the_separate_fits(name, task, shape, intercept):
    X, y = problem(task, *SHAPES[shape], seed=3)
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
    X, y = problem(task, *SHAPES[shape], seed=4)
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


@both
@pytest.mark.parametrize("lam", [1e-6, 1e-2])
@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_single_fit_of_a_larger_problem_is_exact(name, task, lam, intercept):
    X, y = problem(task, 300, 220, seed=5)
    (fit,) = fit_path(made(name), task, X, y, np.array([lam]), intercept=intercept)
    assert fit.optimality <= attainable(fit, y)


@pytest.mark.parametrize("name", LOSSES)
def test_duplicate_samples_and_constant_features_are_fitted(name):
    X, y = problem(CLASSIFICATION, 40, 30, seed=6)
    X, y = np.concatenate([X, X]), np.concatenate([y, y])  # every Gram matrix is singular
    X[:, 0], X[:, 1] = 1.0, 0.0
    for fit in fit_path(made(name), CLASSIFICATION, X, y, np.array([1e-4, 1.0]), intercept=True):
        assert fit.optimality <= attainable(fit, y)


@pytest.mark.parametrize("intercept", [False, True], ids=["bare", "intercept"])
def test_certificate_grows_away_from_the_optimum(intercept):
    from hiddenmanifold.simulation.fit import Shortfalls, certified

    X, y = problem(CLASSIFICATION, 60, 40, seed=7)
    loss, lam = made("logistic"), 0.1
    (fit,) = fit_path(loss, CLASSIFICATION, X, y, np.array([lam]), intercept=intercept)
    data = Shortfalls.of(loss, CLASSIFICATION, X, y, intercept=intercept)
    for size in (1e-3, 1e-1):
        w = fit.w + size * np.random.default_rng(0).standard_normal(40)
        off = certified(loss, data, lam, w, fit.b)
        assert off.optimality >= (off.objective - fit.objective) / off.objective > 0


@pytest.mark.parametrize("name", ["square", "logistic", "hinge"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_non_finite_features_and_labels_are_refused(name, wrong):
    X, y = problem(CLASSIFICATION, 20, 10)
    broken = X.copy()
    broken[3, 4] = wrong
    with pytest.raises(hm.InvalidArgumentError, match="^X = .*1 non-finite.*finite"):
        fit_path(made(name), CLASSIFICATION, broken, y, np.array([1.0]))
    labels = y.copy()
    labels[[2, 5]] = wrong
    with pytest.raises(hm.InvalidArgumentError, match="^y = .*2 non-finite.*finite"):
        fit_path(made(name), CLASSIFICATION, X, labels, np.array([1.0]))


@pytest.mark.parametrize("label", [1.0, -1.0])
@pytest.mark.parametrize("name", ["square", "logistic", "hinge"])
def test_one_class_is_refused_only_if_an_intercept_would_run_away(name, label):
    X, _ = problem(CLASSIFICATION, 20, 10)
    y = np.full(20, label)
    with pytest.raises(hm.InvalidArgumentError, match="one class only.*both classes"):
        fit_path(made(name), CLASSIFICATION, X, y, np.array([1.0]), intercept=True)
    (fit,) = fit_path(made(name), CLASSIFICATION, X, y, np.array([1.0]))
    assert fit.optimality <= attainable(fit, y)


def test_equal_real_labels_are_fitted_by_the_intercept_alone():
    X, _ = problem(REGRESSION, 20, 10)
    for name in ("huber", "absolute"):
        (fit,) = fit_path(
            made(name), REGRESSION, X, np.full(20, 3.0), np.array([1.0]), intercept=True
        )
        assert fit.b == pytest.approx(3.0, abs=1e-4)
        assert np.abs(fit.w).max() < 1e-4


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
