"""Covariates of any covariance: sums, random features in other words, ridge regression."""

import mpmath as mp
import numpy as np
import pytest
import xarray as xr
from scipy import optimize

import hiddenmanifold as hm
import spectral_oracle as oracle
from given import power_law
from hiddenmanifold import IncompatibleIngredientsError, InvalidArgumentError
from hiddenmanifold.features import Covariance
from hiddenmanifold.features.projections import Matrix

Sign, Logistic, Linear = hm.teachers.Sign, hm.teachers.Logistic, hm.teachers.Linear
P = 60


def wishart(p, rank, rho, seed=0):
    """A covariance of given rank, the covariance of its features with a field of variance rho."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, rank)) * np.arange(1, rank + 1) ** -0.7
    Omega = A @ A.T
    g = A @ rng.standard_normal(rank)
    chi = g @ np.linalg.pinv(Omega, rcond=1e-12, hermitian=True) @ g
    return Omega, g * np.sqrt(0.8 * rho / chi)


def covariance_of(Omega, g, rho, **options):
    p = len(Omega)
    w, v = np.linalg.eigh(Omega)
    zero = w < 1e-12 * w[-1]
    t = np.where(zero, 0.0, (v.T @ g) ** 2)
    return Covariance(np.where(zero, 0.0, w) / p, t / p, rho, **options)


# sums


@pytest.mark.parametrize("rank", [20, P])
def test_sums_are_those_of_the_matrices(rank):
    rho = 1.7
    Omega, g = wishart(P, rank, rho)
    features = covariance_of(Omega, g, rho)
    visible = features.visible(np.ones(1))
    chi = g @ np.linalg.pinv(Omega, rcond=1e-12, hermitian=True) @ g / rho
    np.testing.assert_allclose(visible.fraction, chi, rtol=1e-10)
    np.testing.assert_allclose(visible.hidden, 0.2, rtol=1e-10)
    np.testing.assert_allclose(visible.rank, rank / P, rtol=1e-14)
    for k in (1e-2, 1.0, 30.0):
        m = features.sums(np.array([k]), np.ones(1))
        R = np.linalg.inv(Omega + k * np.eye(P))
        OR = Omega @ R
        expected = {
            "D1": np.trace(OR) / P,
            "D20": np.trace(OR @ OR) / P,
            "unlearned": k * np.trace(R) / P,
            "T1": g @ R @ g / rho,
            "T20": g @ R @ OR @ g / rho,
            "U1": 1.0 - g @ R @ g / rho,
            "T02": 1.0 - 2 * g @ R @ g / rho + g @ R @ OR @ g / rho,
            "W": g @ R @ OR @ g / rho - (g @ R @ g / rho) ** 2,
        }
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(m, name), value, rtol=1e-11, err_msg=name)
    assert features.variance == pytest.approx(np.trace(Omega) / P, rel=1e-13)


def test_sums_keep_all_their_digits_wherever_they_are_asked_for():
    """Eigenvalues over thirty decades, a sixth of the directions blank, a part hidden."""
    rng = np.random.default_rng(1)
    w = np.append(10.0 ** rng.uniform(-25.0, 5.0, 25), np.zeros(5))
    tau = np.append(rng.uniform(0.0, 1.0, 25), np.zeros(5))
    tau *= 0.75 / tau.sum()
    features = Covariance(w, tau * w)
    k = 10.0 ** np.arange(-90.0, 91.0, 9.0)
    found = features.sums(k, np.ones_like(k))
    with mp.workdps(250):
        for i, at in enumerate(k):
            expected = in_many_digits(features, mp.mpf(at))
            for name, value in expected.items():
                unit = expected["W"] if name == "dW" else value
                error = abs(mp.mpf(float(getattr(found, name)[i])) - value)
                assert error <= 1e-12 * unit, (name, at)


def in_many_digits(features, k):
    w = [len(features.eigenvalues) * mp.mpf(v) for v in features.eigenvalues]
    t = [len(w) * mp.mpf(v) / mp.mpf(features.rho) for v in features.teacher_weights]
    r = [v / (v + k) for v in w]
    tau = [b / a if a else mp.mpf(0) for a, b in zip(w, t, strict=True)]
    hidden = 1 - mp.fsum(tau)

    def D(a, b):
        return mp.fsum(v**a * (1 - v) ** b for v in r) / len(r)

    def T(a, b):
        return mp.fsum(x * v**a * (1 - v) ** b for x, v in zip(tau, r, strict=True))

    W = T(2, 0) - T(1, 0) ** 2
    out = {f"D{a}{b}": D(a, b) for a, b in ((2, 0), (0, 2), (2, 1), (1, 2))}
    out |= {f"T{a}{b}": T(a, b) for a, b in ((2, 0), (0, 2), (2, 1), (1, 2))}
    out["T02"] += hidden
    left = mp.fsum(1 - v for v in r if v) / len(r)
    dW = -2 * T(2, 1) + 2 * T(1, 0) * T(1, 1)
    more = {"B": D(1, 1), "A": T(1, 1), "S": T(2, 0), "left": left}
    return {**out, **more, "W": W, "dW": dW, "D1": D(1, 0), "T1": T(1, 0), "unlearned": D(0, 1)}


# random features with a given matrix, in other words


def normalised(d, p, seed=3):
    F = np.random.default_rng(seed).standard_normal((d, p))
    return F * np.sqrt(d / (F**2).sum(0))


def twins(activation, F, teacher, loss, **options):
    """The model with a given matrix, and the one with its two measures."""
    d, p = F.shape
    _, k1, ks = hm.activations.resolved(activation).kappas
    s = np.linalg.svd(F, compute_uv=False) ** 2 / d
    s = np.append(s, np.zeros(p - len(s)))
    rho = teacher.rho
    covariance = Covariance((k1**2 * s + ks**2) / p, rho * k1**2 * s / (d * p), rho)
    labels = {"teacher": teacher, "loss": loss, **options}
    by_matrix = hm.Model(activation=activation, projection=Matrix(F), **labels)
    return by_matrix, hm.Model(features=covariance, **labels)


WIDE, TALL = (30, 45), (45, 30)
TWINS = [
    ("erf", WIDE, Sign(rho=1.3), "logistic"),
    ("sign", TALL, Sign(noise=0.3, threshold=0.4), "hinge"),
    ("tanh", WIDE, Sign(flip=0.1), "square"),
    ("identity", TALL, Logistic(slope=2.0), "squared_hinge"),
    ("identity", WIDE, Logistic(threshold=0.2, rho=2.0), "smoothed_hinge"),
    ("erf", TALL, Linear(noise=0.2, rho=0.7), "square"),
    ("identity", WIDE, Linear(noise=0.2), "huber"),
    ("sign", TALL, Linear(), "absolute"),
    ("hard_tanh", WIDE, Sign(), "huber"),
    ("erf", WIDE, Sign(noise=0.1), "absolute"),
]
CERTIFICATES = {"residual", "quadrature_error", "conditioning_error", "iterations"}


def assert_equal(one, other, tolerance=1e-9):
    names = set(one.data_vars) & set(other.data_vars) - CERTIFICATES
    assert {"status", "generalisation_error", "Q"} <= names
    for name in names:
        # slopes are differences of observables, of absolute accuracy
        atol = 1e-10 if "_by_log_" in name else 1e-18
        np.testing.assert_allclose(
            other[name], one[name], rtol=tolerance, atol=atol, err_msg=str(name)
        )


@pytest.mark.parametrize(
    "case", TWINS, ids=[f"{c[0]} {c[2].__class__.__name__} {c[3]}" for c in TWINS]
)
def test_random_features_are_covariates_of_their_covariance(case):
    activation, shape, teacher, loss = case
    models = twins(activation, normalised(*shape), teacher, loss, intercept=True)
    n = [0.3, 0.9, 3.0, np.inf]
    assert_equal(*(hm.sensitivity(m, n_over_p=n, regularisation=[0, 1e-4, 1.0]) for m in models))
    assert_equal(*(hm.predict(m, n_over_p=[0.3, 3.0], regularisation=np.inf) for m in models))


@pytest.mark.parametrize(
    "case", [TWINS[0], TWINS[5], TWINS[3]], ids=["logistic", "linear", "identity"]
)
def test_their_best_regularisation_is_one(case):
    activation, shape, teacher, loss = case
    models = twins(activation, normalised(*shape), teacher, loss)
    one, other = (hm.predict(m, n_over_p=[0.5, 2.0], regularisation="optimal") for m in models)
    np.testing.assert_allclose(other.generalisation_error, one.generalisation_error, rtol=1e-9)
    np.testing.assert_allclose(other.optimal_regularisation, one.optimal_regularisation, rtol=1e-5)


@pytest.mark.parametrize("shape", [WIDE, TALL], ids=["wide", "tall"])
@pytest.mark.parametrize("activation", ["erf", "identity"])
@pytest.mark.parametrize("teacher", [Sign(), Sign(noise=0.5, threshold=0.4), Logistic()])
def test_their_data_become_separable_together(shape, activation, teacher):
    models = twins(activation, normalised(*shape), teacher, "logistic", intercept=True)
    one, other = (float(hm.separability_threshold(m).p_over_n) for m in models)
    np.testing.assert_allclose(other, one, rtol=1e-9)


# ridge regression in closed form


def ridge(features, n, lam, labels):
    """Errors and overlaps from lambda = kappa (n - D1), with n and D1 as counts."""
    w, t = np.array(features.eigenvalues), np.array(features.teacher_weights)

    def excess(kappa):
        return kappa * n - (kappa * w / (w + kappa)).sum() - lam

    bracket = lam / n, (lam + w.sum()) / n
    kappa = optimize.brentq(excess, *bracket, xtol=1e-300, rtol=1e-15)
    r = w / (w + kappa)
    seen, again = labels * (t / (w + kappa)).sum(), labels * (t / (w + kappa) * r).sum()
    D1, D2 = r.sum(), (r**2).sum()
    return kappa, D1, D2, seen, again


@pytest.mark.parametrize("n_over_p", [0.2, 0.9, 1.1, 5.0])
@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1.0, 1e3])
def test_ridge_regression_is_known_in_closed_form(n_over_p, lam):
    noise, rho, p = 0.3, 1.4, 80
    features = power_law(p, rho=rho, hidden=0.15)
    model = hm.Model(features=features, teacher=Linear(noise=noise, rho=rho), loss="square")
    ds = hm.predict(model, n_over_p=n_over_p, regularisation=lam)
    n = n_over_p * p
    kappa, D1, D2, T1, T2 = ridge(features, n, lam, 1.0)
    error = (rho + noise - 2 * T1 + T2) / (1 - D2 / n)
    expected = {
        "generalisation_error": error,
        "clean_error": error - noise,
        "M": T1,
        "Q": T2 + error * D2 / n,
        "V": D1 / (n - D1),
        "q_w": (error * (D1 - D2) / n + T1 - T2) / kappa / p,
    }
    expected["training_loss"] = 0.5 * error * (1 - D1 / n) ** 2
    expected["training_loss"] += 0.5 * lam * expected["q_w"] * p / n
    for name, value in expected.items():
        np.testing.assert_allclose(ds[name], value, rtol=1e-9, err_msg=name)


def test_ridge_classification_is_known_in_closed_form():
    noise, rho, p, n, lam = 0.5, 2.0, 80, 100, 0.1
    features = power_law(p, rho=rho)
    model = hm.Model(features=features, teacher=Sign(noise=noise, rho=rho), loss="square")
    ds = hm.predict(model, n_over_p=n / p, regularisation=lam)
    slope = np.sqrt(2 / np.pi / (rho + noise))  # of the labels by the field
    _, _, D2, T1, T2 = ridge(features, n, lam, slope**2)
    error = (1.0 - 2 * T1 + T2) / (1 - D2 / n)
    Q, M = T2 + error * D2 / n, T1 / slope
    np.testing.assert_allclose(ds.Q, Q, rtol=1e-10)
    np.testing.assert_allclose(ds.M, M, rtol=1e-10)
    wrong = np.arccos(M / np.sqrt((rho + noise) * Q)) / np.pi
    np.testing.assert_allclose(ds.generalisation_error, wrong, rtol=1e-10)


def test_the_order_and_the_split_of_directions_do_not_matter():
    """Directions of one eigenvalue span a plane: only the length of the signal in it counts."""
    labels = {"teacher": "sign", "loss": "logistic"}
    at = {"n_over_p": 0.8, "regularisation": 0.1}
    w, t = np.array([0.5, 0.5, 0.2, 0.1]), np.array([0.2, 0.0, 0.05, 0.01])
    one = hm.predict(hm.Model(features=Covariance(w, t), **labels), **at)
    t = np.array([0.01, 0.07, 0.05, 0.13])
    other = hm.predict(hm.Model(features=Covariance(w[[3, 0, 2, 1]], t), **labels), **at)
    assert_equal(one, other, 1e-11)


# the least error


@pytest.mark.parametrize("n_over_p", [0.3, 2.0, 40.0])
@pytest.mark.parametrize(
    "teacher", [Sign(rho=1.4), Sign(noise=0.3, rho=1.4), Linear(noise=0.3, rho=1.4)]
)
def test_bayes_optimal_error_is_that_of_plain_iteration(n_over_p, teacher):
    p = 90
    features = power_law(p, rho=1.4, hidden=0.1, drawn_teacher=True)
    model = hm.Model(features=features, teacher=teacher, loss="square")
    ds = hm.bayes_optimal(model, n_over_p=n_over_p)
    tau = np.array(features.teacher_weights) / (1.4 * np.array(features.eigenvalues))
    sign = isinstance(teacher, Sign)
    q = oracle.bayes_overlap(tau, n_over_p * p, 1.4, teacher.noise, sign=sign)
    np.testing.assert_allclose(ds.overlap, q, rtol=1e-9)
    total = 1.4 + teacher.noise
    error = np.arccos(np.sqrt(q / total)) / np.pi if sign else total - q
    np.testing.assert_allclose(ds.generalisation_error, error, rtol=1e-9)


def test_bayes_optimal_error_of_one_teacher_is_refused():
    model = hm.Model(features=power_law(20), teacher="sign", loss="logistic")
    with pytest.raises(IncompatibleIngredientsError, match="drawn_teacher=True"):
        hm.bayes_optimal(model, n_over_p=1.0)


@pytest.mark.filterwarnings("ignore::hiddenmanifold.BlindFeaturesWarning")
def test_bayes_optimal_error_of_blind_features_is_that_of_guessing():
    model = hm.Model(features=Covariance([1.0, 0.5], [0.0, 0.0]), teacher="sign", loss="logistic")
    assert float(hm.bayes_optimal(model, n_over_p=1.0).generalisation_error) == 0.5


# draws


@pytest.mark.slow
@pytest.mark.parametrize("random", [False, True])
def test_drawn_covariates_have_the_moments_they_are_said_to_have(random):
    p, rho = 40, 1.5
    features = power_law(p, rho=rho, hidden=0.0, drawn_teacher=random)
    drawn = features.draw(p, p, rho, np.random.default_rng(5))
    X, nu = drawn.sample(200_000, np.random.default_rng(6))
    variances = p * np.array(features.eigenvalues)
    np.testing.assert_allclose((X**2).mean(0), variances, rtol=0.03)
    np.testing.assert_allclose(nu.var(), rho, rtol=0.02)  # of every teacher
    g = X.T @ nu / len(nu)
    np.testing.assert_allclose((g**2 / variances).sum(), rho, rtol=0.02)
    if not random:
        weights = np.array(features.teacher_weights)
        np.testing.assert_allclose(g**2 / p, weights, atol=0.02 * weights.max())
    w = np.random.default_rng(7).standard_normal(p)
    f, overlaps = X @ w / np.sqrt(p), drawn.overlaps(w)
    np.testing.assert_allclose((f**2).mean(), overlaps["Q"], rtol=0.02)
    np.testing.assert_allclose((f * nu).mean(), overlaps["M"], atol=0.02 * np.sqrt(overlaps["Q"]))


def test_teachers_are_drawn_with_the_weights_as_mean_squares():
    p = 200
    features = power_law(p, hidden=0.3, drawn_teacher=True)
    rng = np.random.default_rng(8)
    drawn = (features.draw(p, p, 1.0, rng).inputs for _ in range(2000))
    g = np.array([inputs.field_covariance for inputs in drawn])
    ratio = (g**2).mean(0) / p / np.array(features.teacher_weights)
    np.testing.assert_allclose(ratio.mean(), 1.0, rtol=0.01)
    assert np.abs(ratio - 1.0).max() < 0.2


# what is refused

W, T, NAN, INF = [0.5, 0.2], [0.1, 0.02], float("nan"), float("inf")
BAD = {
    "no eigenvalues": (([], []), {}, "eigenvalues", "non-empty"),
    "a number": ((0.5, T), {}, "eigenvalues", "sequence"),
    "a matrix": (([W, W], T), {}, "eigenvalues", "sequence"),
    "NaN": (([NAN, 0.2], T), {}, "eigenvalues", "finite"),
    "infinite": (([INF, 0.2], T), {}, "eigenvalues", "finite"),
    "negative": (([0.5, -0.2], T), {}, "eigenvalues", "not negative"),
    "zero": (([0.0, 0.0], [0.0, 0.0]), {}, "eigenvalues", "one must be positive"),
    "NaN weight": ((W, [0.1, NAN]), {}, "teacher_weights", "finite"),
    "infinite weight": ((W, [0.1, INF]), {}, "teacher_weights", "finite"),
    "negative weight": ((W, [0.1, -0.02]), {}, "teacher_weights", "not negative"),
    "too few weights": ((W, [0.1]), {}, "teacher_weights", "one for each of the 2 eigenvalues"),
    "too many weights": (
        (W, [0.1, 0.0, 0.0]),
        {},
        "teacher_weights",
        "one for each of the 2 eigenvalues",
    ),
    "a signal without variance": (
        ([0.5, 0.0], T),
        {},
        "teacher_weights",
        "where the eigenvalue is zero",
    ),
    "more seen than there is": ((W, [0.4, 0.1]), {}, "rho", "at least what the features show.*1.3"),
    "no field": ((W, T), {"rho": 0.0}, "rho", "at least 1e-20"),
    "NaN field": ((W, T), {"rho": NAN}, "rho", "at least 1e-20"),
    "negative field": ((W, T), {"rho": -1.0}, "rho", "at least 1e-20"),
    "a word for a field": ((W, T), {"rho": "1"}, "rho", "at least 1e-20"),
    "a word for a teacher": ((W, T), {"drawn_teacher": "no"}, "drawn_teacher", "True or False"),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_measures_are_refused(case):
    arguments, options, argument, sentence = BAD[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        Covariance(*arguments, **options)
    assert caught.value.argument == argument


def test_usable_measures_are_accepted():
    features = Covariance(np.array(W), T, 0.3)  # or the cases above would prove nothing
    assert features.eigenvalues == (0.5, 0.2)
    assert features == Covariance(W, T, rho=0.3)
    assert features != Covariance(W, T, rho=0.3, drawn_teacher=True)


def test_rho_of_features_and_teacher_must_be_one():
    features = Covariance(W, T, rho=0.3)
    with pytest.raises(IncompatibleIngredientsError, match="rho = 0.3.*give the teacher the same"):
        hm.Model(features=features, teacher="sign", loss="logistic")
    assert hm.Model(features=features, teacher=Sign(rho=0.3), loss="logistic").features is features


def test_ratios_that_the_covariance_fixes_are_refused():
    model = hm.Model(features=Covariance(W, T), teacher="sign", loss="logistic")
    with pytest.raises(InvalidArgumentError, match="fix d/p = 1"):
        hm.predict(model, n_over_d=2.0, p_over_n=3.0, regularisation=0.1)
    with pytest.raises(InvalidArgumentError, match="2, which the features fix"):
        hm.simulate(model, n_over_p=2.0, regularisation=0.1, d=10)
    ds = hm.predict(model, n_over_p=xr.DataArray([2.0, 3.0], dims="size"), regularisation=0.1)
    assert ds.generalisation_error.dims == ("size",)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_features_does_not_matter_to_their_classes(unit):
    w, t = np.array([1.0, 0.5, 0.2]), np.array([0.1, 0.05, 0.02])
    one = Covariance.within_classes(w, t, 0.3)
    other = Covariance.within_classes(unit * w, unit * t, 0.3)
    np.testing.assert_allclose(other.eigenvalues, unit * np.array(one.eigenvalues), rtol=1e-12)
    np.testing.assert_allclose(other.teacher_weights, unit * np.array(one.teacher_weights), 1e-12)
    assert other.rho == pytest.approx(one.rho, rel=1e-12)
