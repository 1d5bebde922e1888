"""Weights of samples: in the limit, at finite size, and against scikit-learn."""

import numpy as np
import pytest
from scipy import integrate, special
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import InvalidArgumentError, Status
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.weights import Balanced, ByClass, Independent

HERE = {"workers": 1, "progress": False}
AT = {"n_over_d": 2.0, "p_over_n": [0.4, 1.7]}
NAMES = ("generalisation_error", "training_error", "Q", "M", "intercept")
RARE = hm.teachers.Sign(noise=0.3, threshold=-0.8)


def model(loss="logistic", weights=None, teacher=RARE, **given):
    parts = {"activation": "erf", "projection": "gaussian", "intercept": True, **given}
    return hm.Model(**parts, teacher=teacher, loss=loss, weights=weights)


def predict(*args, lam=0.1, observables=(), **given):
    return hm.predict(
        model(*args, **given), **AT, **HERE, regularisation=lam, observables=observables
    )


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square"])
def test_a_common_factor_of_all_weights_divides_the_regularisation(loss):
    for weights in ((3.0, 3.0), Independent([3.0], [1.0])):
        ours, plain = predict(loss, weights, lam=0.3), predict(loss)
        for name in NAMES:
            assert np.allclose(ours[name], plain[name], rtol=1e-9, atol=1e-11), name
        assert np.allclose(ours.training_loss, 3.0 * plain.training_loss, rtol=1e-9)
    ours, thrice = predict(loss, (1.0, 5.0)), predict(loss, (3.0, 15.0), lam=0.3)
    assert np.allclose(ours.generalisation_error, thrice.generalisation_error, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "square"])
def test_weights_of_classes_that_are_almost_equal_are_none(loss):
    """The branches of both labels, without symmetry and closed form, give the same numbers."""
    ours, plain = predict(loss, (1.0, 1.0 + 1e-12)), predict(loss)
    for name in (*NAMES, "training_loss"):
        assert np.allclose(ours[name], plain[name], rtol=1e-9, atol=1e-10), name


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square", "absolute"])
def test_independent_weights_are_those_of_a_bootstrap(loss):
    """A member of an ensemble of bootstraps has weights of Poisson's law, zeros aside."""
    copies = hm.resampling.Bootstrap().copies
    probability = np.array(copies.probability[1:]) / (1.0 - np.exp(-1.0))
    teacher = RARE if loss in ("logistic", "hinge") else hm.teachers.Linear(noise=0.3)
    weights = Independent(copies.number[1:], probability / probability.sum())
    drawn = 1.0 - np.exp(-1.0)
    given = {"activation": "erf", "projection": "gaussian", "teacher": teacher, "loss": loss}
    at = {"n_over_d": 2.0, "p_over_n": 0.7, "regularisation": 0.1}
    bagged = hm.ensemble(
        hm.Model(**given), members=1, independent="none", resampling="bootstrap", **at, **HERE
    )
    less = {"n_over_d": 2.0 * drawn, "p_over_n": 0.7 / drawn, "regularisation": 0.1}
    ours = hm.predict(hm.Model(**given, weights=weights), **less, **HERE)
    for name in ("generalisation_error", "Q", "M"):
        assert float(ours[name]) == pytest.approx(float(bagged[name].squeeze()), rel=1e-8)


def logistic_slope(u, V):
    """h at the shortfall u, by bisection in the margin."""
    low, high = u - V - 1.0, u + 1.0
    for _ in range(200):
        s = 0.5 * (low + high)
        low, high = np.where(s + V * special.expit(s) < u, [s, high], [low, s])
    return special.expit(0.5 * (low + high))


@pytest.mark.slow
def test_the_intercept_balances_the_weighted_slopes():
    """Adaptive integrals with explicit proximal maps, from V, Q, M and b alone."""
    ds = hm.predict(model(weights=(0.7, 4.0)), n_over_d=2.0, p_over_n=0.8, regularisation=0.1)
    V, Q, M, b = (float(ds[name]) for name in ("V", "Q", "M", "intercept"))

    def slope(y, weight):
        def density(xi):
            spread = np.sqrt(1.0 - M**2 / Q + 0.3)
            label = special.ndtr(y * (M / np.sqrt(Q) * xi - 0.8) / spread)
            h = weight * logistic_slope(-y * (b + np.sqrt(Q) * xi), weight * V)
            return label * h * np.exp(-0.5 * xi * xi) / np.sqrt(2.0 * np.pi)

        return y * integrate.quad(density, -9.0, 9.0, epsabs=1e-13, limit=200)[0]

    terms = slope(1, 4.0), slope(-1, 0.7)
    assert abs(sum(terms)) < 1e-9 * terms[0]


def test_balanced_weights_leave_the_best_constant_at_zero():
    weak = {"teacher": hm.teachers.Logistic(slope=1.0, threshold=-1.5)}
    plain, balanced = (predict("logistic", w, lam=30.0, **weak) for w in (None, "balanced"))
    assert (plain.intercept < -1.0).all()
    assert (np.abs(balanced.intercept) < 0.1).all()


@pytest.mark.parametrize(("loss", "lam"), [("logistic", 1e12), ("square", np.inf), ("hinge", 1e3)])
def test_an_intercept_that_nothing_holds_fails_with_a_status(loss, lam):
    ds = hm.predict(model(loss, "balanced"), **AT, **HERE, regularisation=lam, on_failure="keep")
    assert (ds.status == Status.ILL_CONDITIONED).all()
    near = hm.predict(model("logistic", "balanced"), **AT, **HERE, regularisation=[1e4, 1e6])
    assert np.ptp(near.generalisation_error.values, axis=-1).max() < 1e-4


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square"])
def test_without_regularisation_weights_matter_only_where_samples_are_not_fitted(loss):
    at = {"n_over_d": 2.0, "p_over_n": [0.05, 5.0], "regularisation": 0, **HERE}
    ours, plain = (hm.predict(model(loss, w), **at) for w in ((1.0, 5.0), None))
    assert np.allclose(ours.generalisation_error[1], plain.generalisation_error[1], rtol=1e-12)
    assert abs(float(ours.generalisation_error[0] / plain.generalisation_error[0]) - 1) > 0.01
    near = hm.predict(model(loss, (1.0, 5.0)), **{**at, "regularisation": 1e-7})
    assert np.allclose(ours.generalisation_error[0], near.generalisation_error[0], rtol=1e-4)


def test_the_best_regularisation_of_weighted_fits():
    ds = hm.predict(model(weights="balanced"), **AT, **HERE, regularisation="optimal")
    others = hm.predict(
        model(weights="balanced"), **AT, **HERE, regularisation=np.logspace(-3, 2, 40)
    )
    assert (ds.generalisation_error <= others.generalisation_error.min("regularisation")).all()
    assert (ds.optimal_regularisation > 0).all()


def test_equations_without_cancellation_hold_for_weighted_samples():
    from hiddenmanifold.theory.points import Points
    from hiddenmanifold.theory.solver.complements import Complements
    from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
    from hiddenmanifold.theory.solver.strategy import solve

    one, bootstrap = np.ones(1), hm.resampling.Bootstrap().copies
    linear = {"teacher": hm.teachers.Linear(noise=0.2), "intercept": False}
    for weighted in (
        model(weights=(0.7, 4.0)),
        model("hinge", Independent([0.5, 3.0], [0.7, 0.3]), intercept=False),
        model("huber", Independent([0.5, 3.0], [0.7, 0.3]), **linear),
    ):
        points = Points.of(1.5 * one, 0.8 * one, 0.05 * one)
        solved = solve(SaddlePoint.of(weighted, points, copies=bootstrap))
        refined = Complements.of(solved.problem).refined(solved.x + 1e-3)
        assert refined.residual < 1e-12
        assert np.allclose(refined.x, solved.x, rtol=1e-9, atol=1e-9)


def drawn(n, p):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, p))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(n) + 0.8)
    return X, y, rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("size", [(120, 40), (60, 100)])
def test_fits_are_those_of_scikit_learn(size):
    X, y, weights = drawn(*size)
    A, lam = X / np.sqrt(X.shape[1]), 0.3

    def fit(loss, y, weights, task=Task.CLASSIFICATION):
        (found,) = fit_path(loss, task, X, y, np.array([lam]), intercept=True, weights=weights)
        assert found.optimality < 1e-10
        return np.append(found.w, found.b)

    def theirs(estimator, y, weights):
        estimator.fit(A, y, sample_weight=weights)
        return np.append(estimator.coef_, estimator.intercept_)

    logistic = {"C": 1 / lam, "tol": 1e-12, "max_iter": 10000}
    found = fit(hm.losses.Logistic(), y, weights)
    assert np.allclose(found, theirs(LogisticRegression(**logistic), y, weights), atol=1e-5)
    found = fit(hm.losses.Logistic(), y, Balanced().of(y, np.random.default_rng(0)))
    balanced = LogisticRegression(**logistic, class_weight="balanced")
    assert np.allclose(found, theirs(balanced, y, None), atol=1e-5)
    found = fit(hm.losses.Hinge(), y, weights)
    assert np.allclose(
        found, theirs(SVC(kernel="linear", C=1 / lam, tol=1e-8), y, weights), atol=1e-5
    )
    target = X[:, 1] + y
    found = fit(hm.losses.Square(), target, weights, Task.REGRESSION)
    assert np.allclose(found, theirs(Ridge(alpha=lam), target, weights), atol=1e-8)


@pytest.mark.parametrize("loss", [hm.losses.Quantile(0.3), hm.losses.Huber(), hm.losses.Absolute()])
def test_a_weight_of_two_is_a_sample_that_is_there_twice(loss):
    X, y, weights = drawn(50, 30)
    y, twice, lams = y + X[:, 1], 1 + (weights > 1), np.array([0.05, 1.0])
    ours = fit_path(loss, Task.REGRESSION, X, y, lams, intercept=True, weights=1.0 * twice)
    rows = np.repeat(np.arange(50), twice)
    for one, other in zip(
        ours, fit_path(loss, Task.REGRESSION, X[rows], y[rows], lams, intercept=True), strict=True
    ):
        assert np.allclose(one.w, other.w, atol=1e-7)
        assert one.objective == pytest.approx(other.objective, rel=1e-9)


CONFIGURATIONS = [
    ("tanh", "gaussian", RARE, "logistic", "balanced", {}),
    ("sign", "orthogonal", RARE, "square", {-1: 1.0, 1: 5.0}, {"members": [1, 2]}),
    ("erf", "gaussian", hm.teachers.Mixture(prior=0.3), "hinge", (3.0, 1.0), {}),
    (
        "erf",
        "gaussian",
        hm.teachers.Linear(noise=0.3),
        "huber",
        Independent([0.3, 4.0], [0.6, 0.4]),
        {"members": [1, 2], "independent": "none", "resampling": "bootstrap"},
    ),
    ("tanh", "gaussian", hm.teachers.Poisson(), "poisson", Independent([0.3, 4.0], [0.6, 0.4]), {}),
]


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_theory_and_simulation_agree(configuration):
    *parts, weights, given = configuration
    names = ("activation", "projection", "teacher", "loss")
    weighted = hm.Model(**dict(zip(names, parts, strict=True)), weights=weights)
    at = {"n_over_d": 2.5, "p_over_n": 0.6, "regularisation": 0.3}
    ds = hm.compare(weighted, **at, **given, d=80, seeds=16, n_test=1000, **HERE)
    for name in ("generalisation_error", "training_loss", "training_error", "Q", "M", "overlap"):
        if f"{name}_z" in ds:
            assert np.abs(ds[f"{name}_z"]).max() < 4.0, name


def test_training_margins_of_weighted_samples():
    at = {"n_over_d": 2.0, "p_over_n": 0.6, "regularisation": 0.1, **HERE}
    for weights in ((1.0, 5.0), Independent([0.3, 4.0], [0.6, 0.4])):
        one = model(weights=weights)
        law, ds = hm.margins(one, at=[0.0], **at), hm.predict(one, **at)
        assert float(law.train_cdf.squeeze()) == pytest.approx(float(ds.training_error), rel=1e-9)


def test_what_makes_no_sense_is_refused():
    for wrong in ("equal", {0: 1.0, 1: 2.0}, (1.0,), 3.0, {"a": 1}):
        with pytest.raises(InvalidArgumentError, match="weights"):
            model(weights=wrong)
    for low in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidArgumentError, match="positive"):
            ByClass(1.0, low)
    with pytest.raises(InvalidArgumentError, match="add up"):
        Independent([1.0, 2.0], [0.5, 0.4])
    with pytest.raises(InvalidArgumentError, match="one for each"):
        Independent([1.0, 2.0], [1.0])
    with pytest.raises(InvalidArgumentError, match="numbers"):
        model("square", "balanced", hm.teachers.Linear())
    with pytest.raises(InvalidArgumentError, match="several classes"):
        hm.Model(
            activation="erf",
            projection="gaussian",
            teacher=hm.teachers.Classes(K=3, separation=1.0),
            loss="square",
            weights="balanced",
        )
    weighted = model("square", Independent([1.0, 2.0], [0.5, 0.5]))
    with pytest.raises(InvalidArgumentError, match="curves of training"):
        hm.training(weighted, n_over_d=1.0, p_over_n=1.0, times=[1.0])
    with pytest.raises(InvalidArgumentError, match="without weights"):
        hm.simulate(weighted, n_over_d=1.0, p_over_n=1.0, regularisation=0, d=10)


def test_weights_are_told():
    text = repr(model(weights=(1, 5)))
    assert text.endswith("weights=ByClass(negative=1.0, positive=5.0))")
    assert predict(weights="balanced").attrs["weights"] == "balanced"
