"""Two normal classes, against equations written anew and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtr
from scipy.stats import norm

import hiddenmanifold as hm
from given import FINITE, power_law
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.features import Covariance
from hiddenmanifold.losses import Hinge, Huber, Logistic, Square
from hiddenmanifold.simulation.samples import Sizes, World
from hiddenmanifold.teachers import Mixture, Sign
from hiddenmanifold.theory.labels_side.two_labels import ClassChannel
from hiddenmanifold.theory.separability.direction import separating_direction


def classes(teacher, loss="logistic", *, features=None, intercept=True):
    features = features or power_law(60, rho=teacher.rho)
    return hm.Model(features=features, teacher=teacher, loss=loss, intercept=intercept)


# the equations, anew, by quadrature and bisection

# slope of the loss at a margin, and where it jumps
SLOPES = {
    "logistic": (lambda m: -expit(-m), ()),
    "hinge": (lambda m: -1.0 * (m < 1.0), (1.0,)),
    "squared_hinge": (lambda m: min(m - 1.0, 0.0), ()),
}


def pushed(loss, V, field):
    """How far the proximal point moves ahead of its field, over V."""
    slope, jumps = SLOPES[loss]
    for jump in jumps:
        if jump + V * slope(jump - 1e-9) <= field <= jump + V * slope(jump + 1e-9):
            return (jump - field) / V
    ends = field - 1.0, field + V * max(1.0, 1.0 - field) + 1.0
    return (brentq(lambda m: m + V * slope(m) - field, *ends, xtol=1e-13) - field) / V


def average(loss, V, mean, deviation):
    """Means of h and h², and minus that of dh/dω, of fields N(mean, deviation²) along the label."""
    cuts = [0.0] if loss != "hinge" else sorted((m - mean) / deviation for m in (1.0 - V, 1.0))
    points = [c for c in cuts if abs(c) < 9]

    def over(f):
        def weighted(xi):
            return f(xi, pushed(loss, V, mean + deviation * xi)) * norm.pdf(xi)

        return quad(weighted, -9, 9, points=points, limit=200, epsabs=1e-11, epsrel=1e-11)[0]

    # E[dh/dω] = E[h ξ]/deviation
    return over(lambda _, h: h), over(lambda _, h: h * h), -over(lambda xi, h: h * xi) / deviation


def turned(features, prior, loss, point, found):
    """The overlaps and e0 that follow from some overlaps."""
    alpha, lam = point
    w, t = np.array(features.eigenvalues), np.array(features.teacher_weights)
    n, deviation = alpha * len(w), np.sqrt(found["Q"])
    plus, minus = (
        np.array(average(loss, found["V"], found["M"] + y * found["intercept"], deviation))
        for y in (1, -1)
    )
    e3, e2, e1 = prior * plus + (1 - prior) * minus
    kappa = lam / (n * e1)
    D1, D2 = np.sum(w / (w + kappa)), np.sum((w / (w + kappa)) ** 2)
    T1, T2 = np.sum(t / (w + kappa)), np.sum(t * w / (w + kappa) ** 2)
    noise, signal = e2 / (n * e1**2), e3 / e1
    return {
        "V": D1 / (n * e1),
        "M": signal * T1,
        "Q": noise * D2 + signal**2 * T2,
        "q_w": (noise * (D1 - D2) + signal**2 * (T1 - T2)) / kappa / len(w),
        "e0": prior * plus[0] - (1 - prior) * minus[0],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "prior", "rho", "alpha", "lam"),
    [
        ("logistic", 0.3, 1.0, 1.5, 0.1),
        ("hinge", 0.6, 4.0, 2.0, 0.3),
        ("squared_hinge", 0.15, 2.0, 0.6, 0.02),
    ],
)
def test_predictions_solve_the_equations_written_anew(loss, prior, rho, alpha, lam):
    features = power_law(20, rho=rho)
    ds = hm.predict(classes(Mixture(prior, rho), loss, features=features), **at(alpha, lam))
    found = {name: float(ds[name]) for name in ("V", "Q", "M", "intercept", "q_w")}
    again = turned(features, prior, loss, (alpha, lam), found)
    assert abs(again.pop("e0")) < 1e-9
    for name, value in again.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-8, err_msg=name)
    M, b, deviation = found["M"], found["intercept"], np.sqrt(found["Q"])
    error = prior * ndtr(-(M + b) / deviation) + (1 - prior) * ndtr(-(M - b) / deviation)
    np.testing.assert_allclose(ds.generalisation_error, error, rtol=1e-12)
    assert float(ds.clean_error) == float(ds.generalisation_error)


@pytest.mark.parametrize("prior", [0.5, 0.2])
@pytest.mark.parametrize("lam", [0.003, 0.3])
def test_square_loss_is_ridge_regression_on_all_samples(prior, lam):
    """Which asks for the covariances of x with itself and with y, whatever their law.

    The spike that the classes add is one direction of p, and counts for the field alone.
    """
    p, alpha, rng = 40, 1.4, np.random.default_rng(3)
    root, mu = rng.standard_normal((p, p)), rng.standard_normal(p)
    sigma = root @ root.T / p + 0.1 * np.eye(p)
    mu *= np.sqrt(2.0 / (mu @ np.linalg.solve(sigma, mu)))
    w, vectors = np.linalg.eigh(sigma)
    features = Covariance(w / p, (vectors.T @ mu) ** 2 / p, 2.0)
    ds = hm.predict(classes(Mixture(prior, 2.0), "square", features=features), **at(alpha, lam))

    n, w = alpha * p, w / p
    kappa = brentq(lambda k: k * (n - np.sum(w / (w + k))) - lam, 1e-12, 1e3, xtol=1e-16)
    r = w / (w + kappa)
    u = 1.0 - (2 * prior - 1) ** 2
    w, vectors = np.linalg.eigh((sigma + u * np.outer(mu, mu)) / p)
    t = (vectors.T @ (u * mu)) ** 2 / p
    T1, T2 = np.sum(t / (w + kappa)), np.sum(t * w / (w + kappa) ** 2)
    test = (u - 2 * T1 + T2) / (1 - np.sum(r**2) / n)
    M, Q, b = (float(ds[name]) for name in ("M", "Q", "intercept"))
    np.testing.assert_allclose(u * (1 - M) ** 2 + Q, test, rtol=1e-9)
    np.testing.assert_allclose(b, (2 * prior - 1) * (1 - M), atol=1e-12)
    train = test * (1 - np.sum(r) / n) ** 2
    q_w = float(ds.q_w)
    np.testing.assert_allclose(ds.training_loss, 0.5 * (train + lam * q_w / alpha), rtol=1e-9)


def at(alpha, lam):
    return {"n_over_p": alpha, "regularisation": lam}


def test_classes_are_known_from_all_samples_together():
    p, prior, rng = 30, 0.2, np.random.default_rng(5)
    root, mu = rng.standard_normal((p, p)), rng.standard_normal(p) / 4
    sigma, u = root @ root.T / p, 4 * prior * (1 - prior)
    sigma[0] = sigma[:, 0] = mu[0] = 0.0  # a feature that is constant
    w, vectors = np.linalg.eigh(sigma + u * np.outer(mu, mu))
    w[0] = 0.0
    found = Covariance.within_classes(w / p, (vectors.T @ (u * mu)) ** 2 / p, prior)
    rest = np.linalg.solve(sigma[1:, 1:], mu[1:])
    np.testing.assert_allclose(found.rho, mu[1:] @ rest, rtol=1e-9)
    within, vectors = np.linalg.eigh(sigma)
    expected = Covariance(np.append(0.0, within[1:] / p), (vectors.T @ mu) ** 2 / p, found.rho)
    k = np.logspace(-3, 3, 7)
    for name in ("D20", "D02", "T20", "T02", "W"):
        one, other = (getattr(f.sums(k, np.ones(7)), name) for f in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13, err_msg=name)


def test_a_label_that_is_a_linear_function_has_no_classes():
    with pytest.raises(InvalidArgumentError, match=r"less than its variance.* 0\.84") as caught:
        Covariance.within_classes([1.0, 0.5], [0.5, 0.17], 0.3)
    assert caught.value.argument == "teacher_weights"


# averages

UNKNOWNS = np.array([[0.3, -0.4, 0.7, 0.2], [-1.0, 1.1, 1.6, -0.5], [2.0, -6.0, 0.1, 3.0]])


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Huber(0.4)])
@pytest.mark.parametrize("free", [True, False])
def test_derivatives_of_averages_are_differences(loss, free):
    channel = ClassChannel(Mixture(0.3, 2.0), loss, free)
    x, step = UNKNOWNS[:, : channel.unknowns], 1e-3
    averages = channel.averages(x, 4)
    for i in range(channel.unknowns):
        shift = step * np.eye(channel.unknowns)[i]
        ahead, behind, far, near = (channel.averages(x + m * shift, 4).e for m in (1, -1, 2, -2))
        slope = (8 * (ahead - behind) - (far - near)) / (12 * step)
        some = slice(None) if free else slice(3)  # e0 means nothing without an intercept
        np.testing.assert_allclose(averages.de[:, some, i], slope[:, some], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("prior", [0.5, 0.2])
def test_square_loss_in_closed_form_is_that_of_the_panels(prior):
    teacher = Mixture(prior, 2.0)
    closed = ClassChannel(teacher, Square(), prior != 0.5, closed_form=True)
    panels = replace(closed, closed_form=False)
    x = UNKNOWNS[:, :3]
    b = closed.intercept(x)
    full = x
    if panels.free_intercept:
        beta = (b - panels.constant_prediction) / np.exp(0.5 * x[:, 1])
        full = np.column_stack([x, beta])
    one, other = closed.averages(x), panels.averages(full, 3, with_loss=True)
    np.testing.assert_allclose(one.e, other.e, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(one.data_loss, other.data_loss, rtol=1e-12)
    step = 1e-4
    for i in range(3):
        shift = step * np.eye(3)[i]
        slope = (closed.averages(x + shift).e - closed.averages(x - shift).e) / (2 * step)
        np.testing.assert_allclose(one.de[..., i], slope, rtol=1e-6, atol=1e-8)


# what follows


def test_far_classes_are_as_accurate_as_near_ones():
    """The middle of the panels follows the classes, up to the largest distance allowed."""
    features = power_law(60, hidden=0.0, rho=100.0)
    ds = hm.predict(classes(Mixture(0.3, 100.0), features=features), **at(2.0, [0.01, 1.0]))
    sd = np.sqrt(ds.Q)
    ahead, behind = ndtr(-(ds.M + ds.intercept) / sd), ndtr(-(ds.M - ds.intercept) / sd)
    expected = 0.3 * ahead + 0.7 * behind
    np.testing.assert_allclose(ds.generalisation_error, expected, rtol=1e-9)
    assert (ds.generalisation_error < 1e-9).all()


@pytest.mark.slow
def test_scores_are_normal_in_each_class():
    model = classes(Mixture(0.3, 2.0))
    ds = hm.predict(
        model,
        **at(2.0, [0.01, 1.0]),
        observables=("auc", "test_loss", "calibration_error", "best_temperature"),
    )
    laws = hm.margins(model, **at(2.0, [0.01, 1.0]), at=[0.0, 1.0])
    for i in range(2):
        M, b, sd = float(ds.M[i]), float(ds.intercept[i]), float(np.sqrt(ds.Q[i]))
        law = {y: (p, M + y * b) for y, p in ((1, 0.3), (-1, 0.7))}

        def mean(f, law=law, sd=sd):
            return sum(p * norm(m, sd).expect(f, epsabs=1e-13) for p, m in law.values())

        def gap(f, M=M, b=b, sd=sd):
            plus, minus = (p * norm.pdf(f, m, sd) for p, m in ((0.3, b + M), (0.7, b - M)))
            return abs(expit(f) * (plus + minus) - plus)

        np.testing.assert_allclose(ds.auc[i], ndtr(np.sqrt(2) * M / sd), rtol=1e-10)
        np.testing.assert_allclose(ds.test_loss[i], mean(lambda m: np.logaddexp(0, -m)), rtol=1e-9)
        changes = quad(gap, b - M - 12 * sd, b + M + 12 * sd, limit=500, epsabs=1e-9)[0]
        np.testing.assert_allclose(ds.calibration_error[i], changes, rtol=1e-5)
        T = float(ds.best_temperature[i])
        assert abs(mean(lambda m, T=T: m * expit(-m / T))) < 1e-9
        for j, value in enumerate((0.0, 1.0)):
            below = sum(p * ndtr((value - m) / sd) for p, m in law.values())
            np.testing.assert_allclose(laws.test_cdf[i, j], below, rtol=1e-10)


@pytest.mark.parametrize("chi", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("prior", [0.5, 0.3])
def test_separability_of_normal_classes(prior, chi):
    teacher = Mixture(prior, 2.0)
    k = np.sqrt(2.0 * chi)

    def value(t):
        """E(m + s Z)₊² over both classes."""
        s = np.hypot(1.0, t[1])
        a = np.array([t[0] * y + t[1] * k for y in (1, -1)]) / s
        return s**2 * np.array([prior, 1 - prior]) @ ((1 + a**2) * ndtr(a) + a * norm.pdf(a))

    options = {"method": "Nelder-Mead", "options": {"xatol": 1e-8, "fatol": 1e-14}}
    found = separating_direction(teacher, np.array([chi]), free_intercept=True)
    np.testing.assert_allclose(found.value, minimize(value, [0.1, -0.1], **options).fun, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square"])
@pytest.mark.parametrize("alpha", [1.2, 8.0])
def test_no_penalty_is_the_limit_of_a_small_one(loss, alpha):
    model = classes(Mixture(0.3, 2.0), loss)
    limit, near = (hm.predict(model, **at(alpha, lam)) for lam in (0, [2e-9, 1e-9]))
    fitted = loss == "logistic" and alpha < 2  # its direction approaches the limit as 1/log(1/λ)
    for name in () if fitted else ("generalisation_error", "M", "Q"):
        far, close = near[name].values
        np.testing.assert_allclose(2 * close - far, limit[name], rtol=1e-7, err_msg=name)
    assert np.isfinite(limit.margin) == (loss != "square" and alpha < 2)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_an_infinite_penalty_points_along_the_difference_of_means(loss):
    """Then w is proportional to the mean of y x, of which half is noise if n is p/ρ."""
    features = Covariance(np.full(50, 1 / 50), np.full(50, 2.0 / 50**2), 2.0)
    ds = hm.predict(classes(Mixture(rho=2.0), loss, features=features), **at(0.5, np.inf))
    np.testing.assert_allclose(ds.alignment, np.sqrt(0.5), rtol=1e-9)
    np.testing.assert_allclose(ds.generalisation_error, ndtr(-1.0), rtol=1e-9)


@pytest.mark.parametrize("teacher", [Mixture(0.3, 2.0), Sign(threshold=1.0, rho=2.0)], ids=str)
def test_rounding_of_an_intercept_is_not_magnified_by_a_vanishing_prediction(teacher):
    features = power_law(40, hidden=0.0, rho=2.0, decay=0.5)
    alpha = np.geomspace(0.1, 10, 13)
    ds = hm.predict(classes(teacher, features=features), **at(alpha, [1e6, np.inf]))
    near, limit = ds.alignment.T.values
    np.testing.assert_allclose(near, limit, rtol=1e-4)
    assert (ds.quadrature_error < 1e-11).all()


@pytest.mark.slow
def test_the_best_penalty_and_the_slopes_are_those_of_predictions():
    model = classes(Mixture(0.3, 2.0))
    best = hm.predict(model, n_over_p=1.5, regularisation="optimal").generalisation_error
    lam = np.logspace(-6, 4, 41)
    assert float(best) <= float(hm.predict(model, **at(1.5, lam)).generalisation_error.min())
    found = hm.sensitivity(model, **at(1.5, 0.1)).generalisation_error_by_log_n
    ahead, behind = hm.predict(
        model, **at(1.5 * np.exp([1e-3, -1e-3]), 0.1)
    ).generalisation_error.values
    np.testing.assert_allclose(found, (ahead - behind) / 2e-3, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FINITE)
def test_the_peak_of_every_kind_of_features_is_as_high_as_its_place(kind):
    """At the threshold of separability the error is p/n."""
    features = FINITE[kind]
    ratios = {} if features.fixed_ratio else {"d_over_p": 0.8}
    model = hm.Model(features=features, teacher=Mixture(), loss="logistic")
    threshold = float(hm.separability_threshold(model, **ratios).p_over_n)
    near = threshold * np.array([1 - 1e-6, 1 + 1e-6])
    ds = hm.predict(model, p_over_n=near, **ratios, regularisation=0)
    np.testing.assert_allclose(ds.generalisation_error, threshold, rtol=1e-3)


def test_the_best_guess_knows_white_classes_by_the_mean_of_their_samples():
    model = hm.Model(
        activation="identity", projection="orthogonal", teacher=Mixture(0.3, 2.0), loss="logistic"
    )
    delta = np.array([0.1, 1.0, 30.0])
    ds = hm.bayes_optimal(model, n_over_d=delta, p_over_d=1.0)
    q = 2.0 * 2.0 * delta / (1.0 + 2.0 * delta)
    np.testing.assert_allclose(ds.overlap, q, rtol=1e-9)
    k, shift = np.sqrt(q), 0.5 * np.log(0.3 / 0.7) / np.sqrt(q)
    expected = 0.3 * ndtr(-k - shift) + 0.7 * ndtr(-k + shift)
    np.testing.assert_allclose(ds.generalisation_error, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize("equivalent", [False, True])
def test_samples_of_a_class_are_displaced_along_the_field(kind, equivalent):
    features, rows = FINITE[kind], 40_000
    d = features.fixed_dimension or 60
    sizes = Sizes(1, round(d / (features.fixed_ratio or 0.8)), d)
    model = hm.Model(features=features, teacher=Mixture(0.3), loss="logistic")
    world = World.draw(model, sizes, np.random.default_rng(1), equivalent=equivalent)
    sample = world.sample(rows, np.random.default_rng(2))
    assert np.array_equal(sample.y, sample.clean)
    assert abs(np.mean(sample.y > 0) - 0.3) < 0.01
    w = np.random.default_rng(3).standard_normal(sizes.p)
    f, overlaps = sample.X @ w / np.sqrt(sizes.p), world.features.overlaps(w)
    means = {y: f[sample.y == y].mean() for y in (1, -1)}
    spread = f[sample.y == 1].std() / np.sqrt(0.2 * rows)
    slack = 4 * spread + (0.0 if equivalent else 0.04)  # features of few neurons are not normal
    assert abs((means[1] - means[-1]) / 2 - overlaps["M"]) < slack
    assert abs(f[sample.y == -1].var() / overlaps["Q"] - 1) < (0.05 if equivalent else 0.2)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, float("nan"), "half"])
def test_a_class_must_be_possible(prior):
    with pytest.raises(InvalidArgumentError) as caught:
        Mixture(prior)
    assert caught.value.argument == "prior"


@pytest.mark.parametrize("rho", [0.0, 101.0, float("inf")])
def test_classes_stand_apart_and_overlap(rho):
    with pytest.raises(InvalidArgumentError) as caught:
        Mixture(rho=rho)
    assert caught.value.argument == "rho"


def test_the_field_tells_the_class_as_bayes_says():
    teacher, nu = Mixture(0.3, 2.0), np.linspace(-3.0, 3.0, 7)
    plus, minus = (p * norm.pdf(nu, y * 2.0, np.sqrt(2.0)) for p, y in ((0.3, 1), (0.7, -1)))
    np.testing.assert_allclose(teacher.probability(nu), plus / (plus + minus), rtol=1e-12)
    V0 = np.full(7, 2.0)
    law = teacher.label_law(1, nu, 0 * V0)[0] / teacher.evidence(nu, 0 * V0)
    np.testing.assert_allclose(law, teacher.probability(nu), rtol=1e-12)
    assert teacher.label_marginals[:2] == pytest.approx((0.3, 0.7), abs=1e-15)
