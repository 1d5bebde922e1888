"""Several classes: closed forms anew, rates by other integrals, numbers of other papers."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm

import hiddenmanifold as hm
from given import FINITE, plain_model
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, Status
from hiddenmanifold.teachers import Classes, Mixture
from hiddenmanifold.theory.classes.score_rates import rates

RHO = 1.3
SIMPLEX = Classes(3, 2.5)
UNEQUAL = Classes(separation=2.5, priors=(0.1, 0.2, 0.3, 0.4))


def ridge(teacher, **options):
    return plain_model(teacher=teacher, loss="square", **{"intercept": True, **options})


def at(lam, *, p_over_n=0.6):
    return {"n_over_d": 2.0, "p_over_n": p_over_n, "regularisation": lam}


# two classes are those of `Mixture`


@pytest.mark.parametrize("priors", [None, (0.3, 0.7)])
@pytest.mark.parametrize("lam", [1e-3, 0.5, 0, np.inf, "optimal"])
def test_two_classes_have_the_numbers_of_a_mixture(priors, lam):
    model = ridge(Classes(2, 2.0 * np.sqrt(RHO), priors=priors))
    same = ridge(Mixture(prior=priors[0] if priors else 0.5, rho=RHO))
    point = at(lam, p_over_n=[0.3, 1.2, np.inf])
    ds, expected = hm.predict(model, **point), hm.predict(same, **point)
    rtol = 1e-6 if lam == "optimal" else 1e-9
    for name in ("generalisation_error", "clean_error"):
        np.testing.assert_allclose(ds[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(ds.training_error, expected.training_error, rtol=rtol, atol=1e-12)
    half = expected.training_loss / 2  # two scores, of half the size each
    np.testing.assert_allclose(ds.training_loss, half, rtol=rtol, atol=1e-15)
    np.testing.assert_allclose(2 * ds.q_w, expected.q_w, rtol=rtol, atol=1e-15)
    difference = ds.score_mean.sel(score=0) - ds.score_mean.sel({"score": 1})
    own = difference.isel({"class": 0}) - difference.isel({"class": 1})
    np.testing.assert_allclose(own, 2 * expected.M, rtol=rtol, atol=1e-12)
    if lam == "optimal":
        found, known = ds.optimal_regularisation, expected.optimal_regularisation
        np.testing.assert_allclose(found, known, rtol=1e-5)


@pytest.mark.parametrize("kind", FINITE)
def test_all_features_of_white_data_agree_with_a_mixture(kind):
    features = FINITE[kind]
    if features.rho is not None:
        with pytest.raises(IncompatibleIngredientsError, match="features of white data"):
            hm.Model(features=features, teacher=SIMPLEX, loss="square")
        return
    ratios = {"n_over_p": 1.7, "d_over_p": 0.8, "regularisation": [0.0, 0.1]}
    found = hm.Model(features=features, teacher=Classes(2, 2.0), loss="square", intercept=True)
    same = hm.Model(features=features, teacher=Mixture(), loss="square", intercept=True)
    ds, expected = hm.predict(found, **ratios), hm.predict(same, **ratios)
    np.testing.assert_allclose(ds.generalisation_error, expected.generalisation_error, rtol=1e-9)


P = 30
W = np.arange(1, P + 1) ** -0.6 / P
CENTRE = 0.15 * np.random.default_rng(0).standard_normal(P)


@pytest.mark.parametrize(
    ("loss", "binary", "penalty", "options"),
    [
        ("square", "square", 1.0, {}),
        ("softmax", "logistic", 0.5, {}),
        ("hinge", "hinge", 1.0, {"scheme": "one-vs-rest"}),
    ],
)
def test_means_of_two_classes_are_weights_of_a_mixture(loss, binary, penalty, options):
    weights = CENTRE**2 / P
    rho = float((weights / W).sum())
    means = np.array([1.0 + 1.4 * CENTRE, 1.0 - 0.6 * CENTRE])
    found = hm.Model(
        features=hm.features.Covariance(W),
        teacher=Classes(means=means, priors=(0.3, 0.7)),
        loss=loss,
        intercept=True,
        **options,
    )
    same = hm.Model(
        features=hm.features.Covariance(W, weights, rho),
        teacher=Mixture(prior=0.3, rho=rho),
        loss=binary,
        intercept=True,
    )
    ds = hm.predict(found, n_over_p=1.7, regularisation=0.4)
    expected = hm.predict(same, n_over_p=1.7, regularisation=0.4 * penalty)
    for name in ("generalisation_error", "training_error"):
        np.testing.assert_allclose(ds[name], expected[name], rtol=1e-8, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(("separation", "lam"), [(8.0, 0.1), (20.0, 1.0)])
def test_softmax_of_classes_far_apart_is_that_of_any_means(separation, lam):
    one, other = (
        hm.predict(
            hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss="softmax"),
            n_over_d=3.0,
            p_over_n=1.0,
            regularisation=lam,
        )
        for teacher in (Classes(3, separation), Classes(gram=0.5 * separation**2 * np.eye(3)))
    )
    for name in ("generalisation_error", "training_loss", "q_w"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6, err_msg=name)


def test_a_counted_training_error_of_zero_is_not_certain():
    ds = hm.predict(
        hm.Model(
            activation="erf",
            projection="gaussian",
            teacher=Classes(gram=np.outer([-2, 0, 1], [-2, 0, 1]), priors=(0.2, 0.3, 0.5)),
            loss="logistic",
            scheme="one-vs-rest",
        ),
        n_over_d=3.0,
        p_over_n=1.0,
        regularisation=1e-4,
    )
    assert ds.training_error == 0.0
    assert 1e-4 < ds.rates_integration_error < 1e-2


@pytest.mark.parametrize("loss", ["square", "softmax"])
def test_means_in_white_features_are_their_gram_matrix(loss):
    means = 0.4 * np.random.default_rng(1).standard_normal((3, P))
    models = (
        hm.Model(
            features=hm.features.Covariance(np.ones(P) / P),
            teacher=Classes(means=means, priors=(0.2, 0.3, 0.5)),
            loss=loss,
            intercept=True,
        ),
        hm.Model(
            activation="identity",
            projection="orthogonal",
            teacher=Classes(gram=means @ means.T, priors=(0.2, 0.3, 0.5)),
            loss=loss,
            intercept=True,
        ),
    )
    one, other = (
        hm.predict(m, n_over_p=1.7, regularisation=0.4, **ratio)
        for m, ratio in zip(models, ({}, {"d_over_p": 1.0}), strict=True)
    )
    for name in ("generalisation_error", "training_loss", "q_w", "score_covariance"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, err_msg=name)


@pytest.mark.slow
def test_means_of_a_covariance_agree_with_fits():
    p = 120
    w = np.arange(1, p + 1) ** -0.6 / p
    means = np.random.default_rng(2).standard_normal((3, p)) * np.sqrt(4.0 * w)
    teacher = Classes(means=means, priors=(0.2, 0.3, 0.5))
    model = hm.Model(
        features=hm.features.Covariance(w), teacher=teacher, loss="softmax", intercept=True
    )
    sizes = {"n": 240, "p": p, "regularisation": 0.05}
    ds = hm.compare(model, **sizes, seeds=12, n_test=2000, workers=1, finite_size=True)
    for name in ("generalisation_error", "test_loss", "training_loss", "q_w", "M", "Q"):
        assert np.abs(ds[f"{name}_z"]).max() < 4.5, name


def test_means_that_fit_no_features_are_refused():
    three = Classes(means=np.arange(6.0).reshape(3, 2))
    with pytest.raises(IncompatibleIngredientsError, match="means= is for features.Covariance"):
        plain_model(teacher=three, loss="square")
    with pytest.raises(IncompatibleIngredientsError, match="covariance of 3"):
        hm.Model(features=hm.features.Covariance([0.1] * 3), teacher=three, loss="square")
    with pytest.raises(IncompatibleIngredientsError, match="eigenvalue zero"):
        hm.Model(features=hm.features.Covariance([0.1, 0.0]), teacher=three, loss="square")
    with pytest.raises(InvalidArgumentError, match="at least two that differ"):
        Classes(means=np.ones((3, 2)))
    with pytest.raises(InvalidArgumentError, match="gram and means are both given"):
        Classes(gram=np.eye(3), means=np.eye(3))


def test_a_kernel_has_several_classes_too():
    point = {"n_over_d": 2.0, "regularisation": 0.1}
    ds, expected = (
        hm.predict(hm.Model(kernel="ntk", teacher=t, loss="square", intercept=True), **point)
        for t in (Classes(2, 2.0), Mixture())
    )
    np.testing.assert_allclose(ds.generalisation_error, expected.generalisation_error, rtol=1e-9)


# the equations anew


@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_regression_is_that_of_all_samples_together(intercept):
    """Of which only covariances of x with itself and with one-hot labels matter."""
    p, n, lam, rng = 60, 90, 0.05, np.random.default_rng(4)
    teacher = Classes(gram=np.diag([1.0, 4.0, 2.0, 0.5]), priors=(0.1, 0.2, 0.3, 0.4))
    shares, K = teacher.shares, 4
    # p white features beside the K - 1 directions of the means, in the limit a share 1/p each
    w, alpha = 1.0 / p, n / p
    kappa = brentq(lambda k: k * (n - p * w / (w + k)) - lam, 1e-12, 1e3, xtol=1e-17)
    r = w / (w + kappa)
    means = np.linalg.cholesky(teacher.centred_gram + 1e-12 * np.eye(K))[:, : K - 1]
    omega = np.eye(K - 1) / p + means.T @ (shares[:, None] * means) / p
    cross = (shares[:, None] * means).T / np.sqrt(p)  # Cov(x, one-hot y)
    inverse = np.linalg.inv(omega + kappa * np.eye(K - 1))
    T1, T2 = cross.T @ inverse @ cross, cross.T @ inverse @ omega @ inverse @ cross
    C = np.diag(shares) - np.outer(shares, shares)
    R = (C - 2 * T1 + T2 + (not intercept) * np.outer(shares, shares)) / (1 - r**2 / alpha)
    model = ridge(teacher, activation="identity", projection="orthogonal", intercept=intercept)
    ds = hm.predict(model, n_over_p=alpha, d_over_p=1.0, regularisation=lam)
    np.testing.assert_allclose(ds.mean_square_error, np.trace(R), rtol=1e-6)
    mean = T1 / shares + shares[:, None] * intercept  # score, class
    np.testing.assert_allclose(ds.score_mean.values.T, mean, atol=1e-6)
    whole = T2 + R * r**2 / alpha  # covariance of the scores of all samples
    between = (T1 / shares) @ np.diag(shares) @ (T1 / shares).T
    np.testing.assert_allclose(ds.score_covariance, whole - between, atol=1e-6)
    train = 0.5 * np.trace(R) * (1 - r / alpha) ** 2
    np.testing.assert_allclose(ds.training_loss - train, lam * ds.q_w / (2 * alpha), rtol=1e-4)
    del rng


def test_the_training_loss_is_the_integral_of_its_slope():
    """By the envelope theorem its derivative by λ is q_w/2α."""
    lam = 0.1 * np.exp(np.array([-1e-3, 0.0, 1e-3]))
    ds = hm.predict(ridge(UNEQUAL), n_over_p=1.5, d_over_p=0.7, regularisation=lam)
    slope = (ds.training_loss[2] - ds.training_loss[0]) / (lam[2] - lam[0])
    np.testing.assert_allclose(slope, ds.q_w[1] / 3.0, rtol=1e-6)


def test_numbers_of_loureiro_et_al():
    """arXiv:2106.03791: x ~ N(μ, I/2), three orthonormal means, square loss, λ = .001."""
    model = ridge(Classes(gram=2.0 * np.eye(3)), activation="identity", projection="orthogonal")
    alpha = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    ds = hm.predict(model, n_over_p=alpha, d_over_p=1.0, regularisation=2e-3)
    published = [0.5377, 0.5223, 0.5163, 0.5168, 0.5230, 0.5341]
    np.testing.assert_allclose(ds.generalisation_error, published, atol=1.5e-3)


# limits


def test_no_penalty_is_the_limit_of_a_small_one():
    grid = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0]}
    ds = hm.predict(ridge(UNEQUAL), **grid, regularisation=0)
    near = hm.predict(ridge(UNEQUAL), **grid, regularisation=1e-9)
    for name in ("generalisation_error", "score_mean", "score_covariance", "q_w"):
        np.testing.assert_allclose(ds[name], near[name], rtol=1e-6, atol=1e-8, err_msg=name)
    np.testing.assert_array_equal(ds.training_loss > 0, [True, False])


def test_at_the_threshold_there_is_no_limit():
    model = ridge(SIMPLEX)
    ds = hm.predict(model, n_over_d=2.0, p_over_n=1.0, regularisation=0, on_failure="keep")
    assert ds.status == Status.THRESHOLD
    assert np.isnan(ds.generalisation_error)
    with pytest.raises(hm.ConvergenceError, match="threshold"):
        hm.predict(model, n_over_d=2.0, p_over_n=1.0, regularisation=0)


def test_with_many_samples_scores_are_those_of_the_population():
    ds = hm.predict(ridge(SIMPLEX), d_over_p=0.5, n_over_p=[1e8, np.inf], regularisation=0.1)
    np.testing.assert_allclose(*ds.generalisation_error.values, rtol=1e-6)
    gap, sd = SIMPLEX.separation, 1.0  # the error of the nearest mean, if features show all

    def right(x):
        return norm.pdf(x) * norm.cdf(x + gap / np.sqrt(2) / sd) ** 2

    assert float(ds.generalisation_error[1]) > 1 - quad(right, -9, 9)[0]


# softmax


@pytest.mark.parametrize("lam", [0.05, 2.0, np.inf])
def test_softmax_of_two_classes_is_logistic_regression_with_half_the_penalty(lam):
    model = plain_model(teacher=Classes(2, 2.0), loss="softmax")
    same = plain_model(teacher=Mixture(), loss="logistic")
    grid = {"n_over_d": 2.0, "p_over_n": 0.6}
    ds = hm.predict(model, **grid, regularisation=lam)
    expected = hm.predict(same, **grid, regularisation=lam / 2, observables="test_loss")
    for name in ("generalisation_error", "training_error", "training_loss", "test_loss"):
        np.testing.assert_allclose(ds[name], expected[name], rtol=1e-9, atol=1e-13, err_msg=name)
    np.testing.assert_allclose(2 * ds.q_w, expected.q_w, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(2 * ds.Q, expected.Q, rtol=1e-9, atol=1e-15)
    assert ds.integration_error < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 5])
def test_the_loss_of_softmax_falls_as_its_weights_say(K):
    """By the envelope theorem the derivative of the training loss by λ is q_w/2α."""
    model = plain_model(teacher=Classes(K, 3.0), loss="softmax")
    lam = 0.3 * np.exp(np.array([-1e-3, 0.0, 1e-3]))
    ds = hm.predict(model, n_over_p=1.5, d_over_p=0.7, regularisation=lam)
    slope = (ds.training_loss[2] - ds.training_loss[0]) / (lam[2] - lam[0])
    # of K = 5 the average is over the same points, whose weights are not quite normal
    np.testing.assert_allclose(slope, ds.q_w[1] / 3.0, rtol=1e-6 if K == 3 else 1e-3)
    assert (ds.quadrature_error < (1e-8 if K == 3 else 1e-3)).all()


@pytest.mark.parametrize("lam", [1e-4, 0.05, 2.0, np.inf])
def test_softmax_of_two_unequal_classes_is_logistic_regression(lam):
    model = plain_model(teacher=Classes(2, 2.0, priors=(0.2, 0.8)), loss="softmax", intercept=True)
    same = plain_model(teacher=Mixture(prior=0.2), loss="logistic", intercept=True)
    grid = {"n_over_d": 2.0, "p_over_n": 0.6}
    ds = hm.predict(model, **grid, regularisation=lam)
    expected = hm.predict(same, **grid, regularisation=lam / 2, observables="test_loss")
    for name in ("generalisation_error", "training_error", "training_loss", "test_loss"):
        np.testing.assert_allclose(ds[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(2 * ds.Q, expected.Q, rtol=1e-9, atol=1e-15)
    assert ds.integration_error < 1e-9


@pytest.mark.parametrize("lam", [0.01, 0.3, 0.0])
def test_matrices_of_equal_classes_are_numbers(lam):
    """The equations of any classes agree with those of three numbers, which share no line."""
    grid = {"n_over_p": 7.0, "d_over_p": 0.8, "regularisation": lam}
    alike = hm.predict(plain_model(teacher=Classes(3, 1.2), loss="softmax", intercept=True), **grid)
    same = Classes(gram=0.72 * np.eye(3), priors=[1 / 3] * 3)
    ds = hm.predict(plain_model(teacher=same, loss="softmax", intercept=True), **grid)
    for name in (
        "generalisation_error",
        "training_loss",
        "test_loss",
        "q_w",
        "Q",
        "M",
        "top_error",
    ):
        np.testing.assert_allclose(ds[name], alike[name], rtol=1e-8, err_msg=name)
    np.testing.assert_allclose(ds.score_mean, alike.score_mean, atol=1e-8)
    off = np.abs(ds.training_error - alike.training_error)
    assert 0 < off < ds.rates_integration_error


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
def test_softmax_of_any_classes_obeys_the_envelope_theorem(intercept):
    teacher = Classes(gram=np.diag([1.0, 4.0, 2.0]), priors=(0.2, 0.3, 0.5))
    model = plain_model(teacher=teacher, loss="softmax", intercept=intercept)
    lam = 0.3 * np.exp(np.array([-1e-3, 0.0, 1e-3]))
    ds = hm.predict(model, n_over_p=1.5, d_over_p=0.7, regularisation=lam)
    slope = (ds.training_loss[2] - ds.training_loss[0]) / (lam[2] - lam[0])
    np.testing.assert_allclose(slope, ds.q_w[1] / 3.0, rtol=1e-6)
    np.testing.assert_allclose(ds.score_intercept.sum("score"), 0.0, atol=1e-12)
    assert (np.abs(ds.score_intercept) > 1e-9).any() == intercept


@pytest.mark.slow
def test_the_error_of_the_averages_of_softmax_is_estimated():
    """Of five classes that are alike, but not known to be, against the more precise numbers."""
    grid = {"n_over_p": 1.5, "d_over_p": 0.7, "regularisation": 0.05}
    alike, ds = (
        hm.predict(plain_model(teacher=t, loss="softmax", intercept=True), **grid)
        for t in (Classes(5, 2.5), Classes(gram=3.125 * np.eye(5), priors=[0.2] * 5))
    )
    bound = float(ds.quadrature_error + alike.quadrature_error)
    assert 1e-6 < bound < 1e-2
    np.testing.assert_allclose(np.log(ds.Q / alike.Q), 0.0, atol=bound)
    bound = float(ds.integration_error + alike.integration_error)
    np.testing.assert_allclose(ds.generalisation_error, alike.generalisation_error, atol=bound)


@pytest.mark.slow
def test_softmax_says_what_it_does_not_know():
    model = plain_model(teacher=SIMPLEX, loss="softmax")
    ds = hm.predict(model, **at(0.0, p_over_n=[0.1, 2.0]), on_failure="keep")
    np.testing.assert_array_equal(ds.status, [Status.CONVERGED, Status.NO_LIMIT])
    with pytest.raises(IncompatibleIngredientsError, match="labels for classification"):
        plain_model(teacher="sign", loss="softmax")


@pytest.mark.parametrize(
    ("K", "threshold"), [(2, 2.0), (3, 12 / 5), (5, 3.0887), (10, 4.518)], ids=str
)
def test_without_a_signal_samples_are_separable_by_chance(K, threshold):
    """The squared distance from the cone in which one number is the largest, for any loss."""
    model = plain_model(
        teacher=Classes(K, 1e-9), loss="softmax", activation="identity", projection="orthogonal"
    )
    ds = hm.separability_threshold(model, p_over_d=1.0)
    np.testing.assert_allclose(1.0 / ds.p_over_n, threshold, rtol=6e-4)


@pytest.mark.slow
def test_two_classes_are_separable_from_the_threshold_of_a_mixture_on():
    two, one = plain_model(teacher=Classes(2, 1.5), loss="softmax"), Mixture(rho=1.5**2 / 4)
    same = plain_model(teacher=one, loss="logistic")
    ds, expected = (hm.separability_threshold(m, p_over_d=0.7) for m in (two, same))
    np.testing.assert_allclose(ds.p_over_n, expected.p_over_n, rtol=6e-4)


@pytest.mark.slow
def test_softmax_without_a_penalty_exists_up_to_the_threshold():
    model = plain_model(teacher=Classes(2, 1.5), loss="softmax")
    end = float(hm.separability_threshold(model, p_over_d=1.0).p_over_n)
    grid = {"d_over_p": 1.0, "p_over_n": [0.9 * end, 1.1 * end], "regularisation": 0.0}
    ds = hm.predict(model, **grid, on_failure="keep")
    np.testing.assert_array_equal(ds.status, [Status.CONVERGED, Status.NO_LIMIT])


def test_other_thresholds_of_classes_are_refused():
    with pytest.raises(IncompatibleIngredientsError, match="all alike"):
        hm.separability_threshold(plain_model(teacher=UNEQUAL, loss="softmax"), n_over_d=2.0)


# finite size


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "softmax"])
def test_terms_of_finite_size_fall_like_one_over_n(loss):
    model = plain_model(teacher=Classes(3, 2.5), loss=loss, intercept=True)
    shifts = []
    for n in (200, 400):
        sizes = {"n": n, "p": n // 2, "d": n // 4, "regularisation": 0.3}
        limit, finite = (hm.predict(model, **sizes, finite_size=f) for f in (False, True))
        shifts.append(float(finite.generalisation_error - limit.generalisation_error))
        assert finite.top_error.sel(top=1) == pytest.approx(float(finite.generalisation_error))
    assert shifts[0] > 0
    np.testing.assert_allclose(shifts[0] / shifts[1], 2.0, rtol=0.03)


def test_finite_size_needs_sizes_and_classes():
    with pytest.raises(InvalidArgumentError, match="give n, p and d instead of ratios"):
        hm.predict(ridge(SIMPLEX), **at(0.1), finite_size=True)
    binary = plain_model()
    with pytest.raises(InvalidArgumentError, match="known for several classes, and not for Sign"):
        hm.compare(binary, **at(0.1), finite_size=True)
    with pytest.raises(InvalidArgumentError, match="True or False"):
        hm.compare(binary, **at(0.1), finite_size="yes")


# the best regularisation


@pytest.mark.slow
@pytest.mark.parametrize("minimise", ["generalisation_error", "test_loss"])
def test_the_best_penalty_is_no_worse_than_others(minimise):
    best = hm.predict(ridge(SIMPLEX), **at(hm.Optimal(minimise=minimise), p_over_n=[0.5, 1.0, 2.0]))
    lam = np.append(0.0, np.geomspace(1e-4, 1e3, 60))
    others = hm.predict(ridge(SIMPLEX), **at(lam, p_over_n=[0.5, 1.0, 2.0]), on_failure="keep")
    assert (best[minimise] <= others[minimise].min("regularisation") + 1e-12).all()
    assert (np.abs(best[minimise] - others[minimise].min("regularisation")) < 1e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_the_best_penalty_of_other_losses(loss):
    scheme = {} if loss == "softmax" else {"scheme": "one-vs-rest"}
    teacher = Classes(separation=2.5, priors=(0.2, 0.3, 0.5))
    model = plain_model(teacher=teacher, loss=loss, intercept=True, **scheme)
    best = hm.predict(model, **at("optimal"))
    lam = float(best.optimal_regularisation) * np.exp([-0.2, -0.02, 0.02, 0.2])
    others = hm.predict(model, **at(lam)).generalisation_error
    assert (others > best.generalisation_error - 1e-8).all()
    narrow = hm.predict(model, **at(hm.Optimal(bounds=(1.0, 2.0))))
    assert float(narrow.optimal_regularisation) == pytest.approx(1.0, rel=1e-2)


def test_bounds_of_the_best_penalty_are_kept():
    bounds = (1.0, 2.0)
    best = hm.predict(ridge(SIMPLEX), **at(hm.Optimal(bounds=bounds), p_over_n=[0.2, 0.5]))
    assert ((best.optimal_regularisation >= 1.0) & (best.optimal_regularisation <= 2.0)).all()


# rates


def drawn(K, spread, seed=1):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((K, 3 * K))
    S = (1 - spread) * np.eye(K) + spread * A @ A.T / (3 * K)
    return 1.2 * np.eye(K) + 0.3 * rng.standard_normal((K, K)), S


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3, 4, 6])
def test_rates_are_those_of_another_integration(K):
    mean, S = drawn(K, 0.8)
    found = rates(np.arange(K), mean, np.array([S] * K), min(5, K - 1))
    for c in range(0, K, 2):
        D = np.delete(np.eye(K), c, axis=0)
        D[:, c] = -1.0
        law = multivariate_normal(D @ mean[c], D @ S @ D.T, maxpts=60_000, abseps=1e-6)
        expected = 1.0 - law.cdf(np.zeros(K - 1), rng=np.random.default_rng(0))
        error = max(float(found.wrong_error[c]), 1e-5 if K > 3 else 1e-9)
        assert abs(found.wrong[c] - expected) <= error
    np.testing.assert_allclose(found.highest.sum(1), 1.0, atol=4 * found.error.max() + 1e-12)
    np.testing.assert_allclose(found.beyond[:, 0], found.wrong, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 5, 10])
def test_rates_are_frequencies(K):
    mean, S = drawn(K, 0.6, seed=2)
    found = rates(np.arange(K), mean, np.array([S] * K), min(5, K - 1))
    rows, rng = 200_000, np.random.default_rng(3)
    noise = rng.standard_normal((rows, K)) @ np.linalg.cholesky(S).T
    for c in range(0, K, 3):
        f = noise + mean[c]
        rank = (f > f[:, c : c + 1]).sum(1)
        measured = [*((rank > k).mean() for k in range(min(5, K - 1)))]
        measured = np.append(measured, np.bincount(f.argmax(1), minlength=K) / rows)
        predicted = np.append(found.beyond[c], found.highest[c])
        sd = np.sqrt(measured * (1 - measured) / rows)
        assert (np.abs(predicted - measured) < 4.5 * sd + found.error[c]).all()


@pytest.mark.parametrize("K", [3, 10, 50])
def test_symmetric_rates_are_one_integral(K):
    gap, q = 1.4, 0.3
    S = q * (np.eye(K) - 1.0 / K)
    mean = np.zeros((1, K))
    mean[0, 2] = gap
    found = rates(np.array([2]), mean, S[None], 2)
    right = quad(lambda z: norm.pdf(z) * norm.cdf(z + gap / np.sqrt(q)) ** (K - 1), -9, 9)[0]
    np.testing.assert_allclose(found.wrong, 1.0 - right, rtol=1e-6)
    np.testing.assert_allclose(found.highest[0, 0], (1.0 - right) / (K - 1), rtol=1e-6)

    def second(z):
        p = norm.cdf(z + gap / np.sqrt(q))
        return norm.pdf(z) * (p ** (K - 1) + (K - 1) * (1 - p) * p ** (K - 2))

    np.testing.assert_allclose(found.beyond[0, 1], 1.0 - quad(second, -9, 9)[0], rtol=1e-6)


def test_rates_do_not_depend_on_what_all_scores_share():
    mean, S = drawn(4, 0.5)
    one, other = (
        rates(np.arange(4), mean + shift, np.array([S + shift] * 4), 2) for shift in (0.0, 3.0)
    )
    np.testing.assert_allclose(one.wrong, other.wrong, atol=1e-9)


def test_scores_without_variance_share_their_places():
    mean = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    found = rates(np.array([0, 0]), mean, np.zeros((2, 3, 3)), 2)
    np.testing.assert_allclose(found.highest, [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    np.testing.assert_allclose(found.wrong, [0.5, 1.0])
    np.testing.assert_allclose(found.beyond, [[0.5, 0.0], [1.0, 1.0]])


# the answers belong together


def test_rates_of_a_prediction_belong_together():
    ds = hm.predict(ridge(UNEQUAL), **at(0.1))
    shares = UNEQUAL.shares
    bound = float(ds.rates_integration_error)
    assert 0 < float(ds.integration_error) < 1e-4
    np.testing.assert_allclose(ds.class_error.values @ shares, ds.generalisation_error)
    np.testing.assert_allclose(ds.confusion.sum("predicted"), 1.0, atol=4 * bound)
    right = np.diagonal(ds.confusion.values)
    np.testing.assert_allclose(ds.class_error, 1.0 - right, atol=4 * bound)
    np.testing.assert_allclose(ds.top_error.sel(top=1), ds.generalisation_error, rtol=1e-12)
    assert (np.diff(ds.top_error) < 0).all()
    np.testing.assert_allclose(ds.test_loss, ds.mean_square_error / 2)
    np.testing.assert_allclose(np.trace(ds.score_covariance), ds.Q)
    np.testing.assert_allclose(ds.score_mean.sum("score"), 1.0)  # one-hot labels add up to one


def test_equal_classes_have_equal_errors():
    ds = hm.predict(ridge(Classes(6, 3.0)), **at(0.1))
    np.testing.assert_allclose(ds.class_error, ds.generalisation_error)
    same = Classes(gram=4.5 * np.eye(6), priors=[1 / 6] * 6)  # not known to be alike
    other = hm.predict(ridge(same), **at(0.1))
    for name in ("generalisation_error", "confusion", "top_error", "training_error"):
        np.testing.assert_allclose(ds[name], other[name], atol=1e-9, err_msg=name)


# what is refused


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "separation and gram are both missing"),
        ({"K": 3, "separation": 1.0, "gram": np.eye(3)}, "are both given"),
        ({"separation": 1.0}, "K is missing"),
        ({"K": 1, "separation": 1.0}, "from 2 to 50"),
        ({"K": 2.5, "separation": 1.0}, "whole number"),
        ({"K": 3, "separation": -1.0}, "above 0 and at most 20"),
        ({"K": 3, "gram": np.eye(4)}, "K is of 3 classes, gram is of 4 classes"),
        ({"separation": 1.0, "priors": (0.5, 0.6)}, "of sum 1.1"),
        ({"separation": 1.0, "priors": (0.0, 1.0)}, "positive probabilities"),
        ({"gram": np.ones((3, 3))}, "the largest must be positive"),
        ({"gram": [[1.0, 2.0], [2.0, 1.0]]}, "eigenvalues of at least zero"),
        ({"gram": np.ones((2, 3))}, "give K × K"),
        ({"gram": "many"}, r"matrix \(K, K\)"),
    ],
)
def test_what_describes_no_classes_is_refused(given, complaint):
    with pytest.raises(InvalidArgumentError, match=complaint):
        Classes(**given)


def test_what_is_not_covered_is_refused_in_a_sentence():
    model = ridge(SIMPLEX)
    with pytest.raises(InvalidArgumentError, match="ask predict, simulate or compare"):
        hm.sensitivity(model, **at(0.1))
    with pytest.raises(InvalidArgumentError, match="cannot be combined with several classes"):
        hm.predict(model, **at(0.1), chunks="auto")
    with pytest.raises(InvalidArgumentError, match="the numbers of several classes"):
        hm.predict(model, **at(0.1), observables="auc")
    with pytest.raises(InvalidArgumentError, match="one of 'generalisation_error'"):
        hm.predict(model, **at(hm.Optimal(minimise="calibration_error")))
    with pytest.raises(InvalidArgumentError, match="class of the highest score"):
        ridge(SIMPLEX, prediction="exp")
    with pytest.raises(IncompatibleIngredientsError, match="labels for classes"):
        plain_model(teacher=SIMPLEX, loss="hinge")
    assert hm.predict(model, **at(0.1), observables="test_loss").test_loss > 0
