"""Where an unregularised estimator ceases to exist: known thresholds, brute force, and refusals."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.integrate import quad
from scipy.special import expit

import hiddenmanifold as hm
from hiddenmanifold import losses, teachers
from hiddenmanifold.theory.separability.existence import existing_direction


def model(teacher, loss, *, intercept=True, activation="tanh"):
    return hm.Model(
        activation=activation,
        projection="gaussian",
        teacher=teacher,
        loss=loss,
        intercept=intercept,
    )


COUNTS = teachers.Poisson("exp", -0.5, 0.8)
SUCCESSES = teachers.Binomial(2, "logistic", 0.5, 2.0)
# at n/d = 3, with an intercept; linear programmes of 100 and 200 latent dimensions agree
KNOWN = {
    "poisson": (COUNTS, losses.Poisson(), 0.6579),
    "binomial": (SUCCESSES, losses.Binomial(2), 0.5335),
}


@pytest.mark.parametrize(("teacher", "loss", "threshold"), KNOWN.values(), ids=KNOWN)
def test_known_thresholds(teacher, loss, threshold):
    found = float(hm.existence_threshold(model(teacher, loss), n_over_d=3.0).p_over_n)
    assert found == pytest.approx(threshold, abs=5e-5)


# ---------------------------------------------------------------- brute force

X = np.arange(-10.0, 10.0, 0.02)
MASS = 0.02 * stats.norm.pdf(X)


def binomial(trials, probability):
    return lambda nu: stats.binom.pmf([[0], [trials]], trials, probability(nu))


# teacher, loss, and the probabilities given the field of losses that fall to the left, to the right
CASES = {
    "poisson": (
        COUNTS,
        losses.Poisson(),
        lambda nu: np.array([np.exp(-np.exp(0.8 * nu - 0.5)), 0.0 * nu]),
    ),
    "binomial": (SUCCESSES, losses.Binomial(2), binomial(2, lambda nu: expit(0.5 + 2.0 * nu))),
    "overdispersed": (
        teachers.NegativeBinomial("softplus", size=1.5, slope=1.5, rho=0.7),
        losses.Poisson(),
        lambda nu: np.array([(1.5 / (1.5 + np.logaddexp(0.0, 1.5 * nu))) ** 1.5, 0.0 * nu]),
    ),
    "one trial": (
        teachers.Binomial(intercept=-0.7, slope=3.0, rho=1.4),
        losses.Binomial(),
        binomial(1, lambda nu: expit(3.0 * nu - 0.7)),
    ),
}
every_case = pytest.mark.parametrize("case", CASES)
either_intercept = pytest.mark.parametrize("free", [False, True])


def least_distance(case, chi, *, free):
    """The least mean square distance from the cones, on a grid of X and the hidden field."""
    teacher, _, shares = CASES[case]
    coarse = slice(None, None, 10)
    seen = np.sqrt(teacher.rho * chi) * X[:, None]
    field = seen + np.sqrt(teacher.rho * (1.0 - chi)) * X[coarse]
    down, up = shares(field.ravel()).reshape(2, *field.shape) @ (10 * MASS[coarse])

    def distance(t):
        m = t[0] + t[1] * X
        plus = (1.0 + m**2) * stats.norm.cdf(m) + m * stats.norm.pdf(m)  # E (m + Z)_+²
        square = 1.0 + m**2
        return MASS @ (down * plus + up * (square - plus) + (1.0 - down - up) * square)

    options = {"xatol": 1e-8, "fatol": 1e-15, "maxiter": 2000}
    if free:
        return optimize.minimize(distance, (0.0, 0.3), method="Nelder-Mead", options=options).fun
    return optimize.minimize_scalar(lambda t: distance((0.0, t)), (-0.5, 0.5), tol=1e-9).fun


@pytest.mark.slow
@either_intercept
@every_case
def test_the_minimum_is_that_of_brute_force(case, free):
    teacher, loss, _ = CASES[case]
    chi = np.array([0.02, 0.4, 0.9])
    found = existing_direction(teacher, loss, chi, free, 1.0 - chi)
    expected = [least_distance(case, x, free=free) for x in chi]
    np.testing.assert_allclose(found.value, expected, rtol=1e-10)
    assert (found.status == hm.Status.CONVERGED).all()


@pytest.mark.parametrize("case", CASES)
def test_elasticities_are_slopes_of_the_minimum(case):
    """By the log-odds of the visible fraction."""
    teacher, loss, _ = CASES[case]
    odds, step = np.array([0.2, 1.0, 4.0]), 1e-3

    def logarithm(shift):
        chi = odds * np.exp(shift) / (1.0 + odds * np.exp(shift))
        return np.log(existing_direction(teacher, loss, chi, True, 1.0 - chi).value)

    chi = odds / (1.0 + odds)
    found = existing_direction(teacher, loss, chi, True, 1.0 - chi).elasticity
    slope = -(logarithm(step) - logarithm(-step)) / (2.0 * step)
    np.testing.assert_allclose(found, slope, rtol=1e-5)


def visible(kappas, gamma):
    """The visible fraction, by quadrature over the Marchenko-Pastur law of d eigenvalues."""
    k1, ks = kappas[1] ** 2, kappas[2] ** 2
    low, high = (1.0 - gamma**-0.5) ** 2, (1.0 + gamma**-0.5) ** 2
    centre, half = 0.5 * (low + high), 0.5 * (high - low)

    def integrand(angle):
        s = centre - half * np.cos(angle)
        return (half * np.sin(angle)) ** 2 * k1 / (2.0 * np.pi * (k1 * s + ks))

    return quad(integrand, 0.0, np.pi, epsabs=1e-13, epsrel=1e-12, limit=300)[0]


@pytest.mark.slow
@pytest.mark.parametrize("case", ["poisson", "binomial"])
def test_thresholds_are_those_of_brute_force(case):
    teacher, loss, _ = CASES[case]
    m = model(teacher, loss)
    kappas = m.activation.kappas_at(1.0)
    found = float(hm.existence_threshold(m, n_over_d=3.0).p_over_n)
    chi = visible(kappas, 1.0 / (3.0 * found))
    assert found == pytest.approx(least_distance(case, chi, free=True), rel=1e-8)


# ---------------------------------------------------------------- equal thresholds


@pytest.mark.slow
@either_intercept
def test_one_trial_is_two_classes(free):
    counted = model(teachers.Binomial(intercept=0.6, slope=2.0), "binomial", intercept=free)
    classes = model(teachers.Logistic(slope=2.0, threshold=0.3), "logistic", intercept=free)
    for at in ({"n_over_d": [0.3, 3.0]}, {"p_over_d": 1.5}, {"p_over_n": [0.2, 0.3]}):
        ours, theirs = hm.existence_threshold(counted, **at), hm.existence_threshold(classes, **at)
        again = hm.separability_threshold(classes, **at)
        for name in set(again.data_vars) - {"status"}:
            np.testing.assert_allclose(ours[name], again[name], rtol=1e-9)
            np.testing.assert_array_equal(theirs[name], again[name])


@either_intercept
def test_where_every_label_has_a_best_prediction_it_is_that_of_interpolation(free):
    positive = model(teachers.Gamma(shape=2.0), "gamma", intercept=free)
    found = hm.existence_threshold(positive, n_over_d=[0.1, 1.0, 10.0])
    np.testing.assert_allclose(found.p_over_n, 1.0, rtol=1e-12)


@pytest.mark.parametrize("case", ["poisson", "binomial"])
def test_ratios_that_name_one_line_have_one_threshold(case):
    teacher, loss, _ = CASES[case]
    m = model(teacher, loss)
    p_over_n = float(hm.existence_threshold(m, n_over_d=3.0).p_over_n)
    back = hm.existence_threshold(m, p_over_n=p_over_n).n_over_d
    assert float(back) == pytest.approx(3.0, rel=1e-8)
    by_features = hm.existence_threshold(m, p_over_d=3.0 * p_over_n).p_over_n
    assert float(by_features) == pytest.approx(p_over_n, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["poisson", "binomial"])
def test_the_limit_of_vanishing_regularisation_ends_there(case):
    teacher, loss, _ = CASES[case]
    m = model(teacher, loss)
    threshold = float(hm.existence_threshold(m, n_over_d=3.0).p_over_n)
    at = {"n_over_d": 3.0, "p_over_n": threshold * np.array([0.5, 0.8, 1.2]), "regularisation": 0.0}
    ds = hm.predict(m, **at, on_failure="keep")
    status = ds.status.values.tolist()
    assert status == [hm.Status.CONVERGED, hm.Status.CONVERGED, hm.Status.NO_LIMIT]
    finite = np.isfinite(ds.Q.values)
    assert finite.tolist() == [True, True, False]
    assert ds.Q.values[1] > ds.Q.values[0]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("loss", ["square", "huber", "quantile", "insensitive"])
def test_losses_of_the_residual_have_no_threshold_of_existence(loss):
    with pytest.raises(hm.IncompatibleIngredientsError, match="one of the residual.*as poisson"):
        hm.existence_threshold(model(COUNTS, loss), n_over_d=3.0)


@pytest.mark.parametrize("loss", ["square", "hinge", "huber"])
def test_losses_of_classes_that_have_a_minimum_have_none(loss):
    with pytest.raises(hm.IncompatibleIngredientsError, match="as the logistic one"):
        hm.existence_threshold(model("sign", loss), n_over_d=3.0)


def test_separability_is_of_classes():
    with pytest.raises(hm.IncompatibleIngredientsError):
        hm.separability_threshold(model(COUNTS, "poisson"), n_over_d=3.0)


def per_label(bend):
    """Half a square of f - y or of y (f - 1), as a loss of label and score."""
    if bend == "y":
        return losses.PerLabel(
            lambda y, f: 0.5 * y**2 * (f - 1) ** 2,
            lambda y, f: y**2 * (f - 1),
            lambda y, f: y**2 + 0 * f,
        )
    return losses.PerLabel(
        lambda y, f: 0.5 * (y - f) ** 2, lambda y, f: f - y, lambda y, f: 1 + 0 * f
    )


@pytest.mark.parametrize("large", [10.0, 35.0, 41.0, 1000.0])
def test_square_losses_of_large_labels_are_coercive(large):
    teacher = teachers.Discrete((0.0, large), lambda nu: np.stack([expit(-nu), expit(nu)]))
    parts = {"activation": "tanh", "projection": "gaussian", "teacher": teacher}
    model = hm.Model(**parts, loss=per_label("1"))
    assert float(hm.existence_threshold(model, n_over_d=3.0).p_over_n) == pytest.approx(1.0)


def test_labels_whose_loss_is_constant_bind_nothing():
    teacher = teachers.Discrete((0.0, 1.0), lambda nu: np.stack([0.6 + 0 * nu, 0.4 + 0 * nu]))
    parts = {"activation": "tanh", "projection": "gaussian", "teacher": teacher}
    model = hm.Model(**parts, loss=per_label("y"))
    assert float(hm.existence_threshold(model, n_over_d=3.0).p_over_n) == pytest.approx(0.4)


def test_a_flat_minimum_has_no_known_limit():
    loss = losses.PerLabel(
        lambda y, f: 0.25 * np.maximum(np.abs(y - f) - 1, 0) ** 4,
        lambda y, f: -np.sign(y - f) * np.maximum(np.abs(y - f) - 1, 0) ** 3,
        lambda y, f: 3 * np.maximum(np.abs(y - f) - 1, 0) ** 2,
    )
    model = hm.Model(
        activation="tanh", projection="gaussian", teacher=teachers.Binomial(3), loss=loss
    )
    found = hm.predict(model, n_over_d=3.0, p_over_n=2.0, regularisation=0, on_failure="keep")
    assert int(found.status) == hm.Status.NO_LIMIT
