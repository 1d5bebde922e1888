"""Losses of label and score: derivatives, proximal points, minima, and what is refused."""

import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import expit, gammaln, xlogy

import hiddenmanifold as hm
from given import OF_LABEL
from hiddenmanifold import InvalidArgumentError, losses
from hiddenmanifold.losses import Binomial, Gamma, PerLabel, Poisson, check_label_loss
from hiddenmanifold.losses.predictors import Exp, Identity
from hiddenmanifold.losses.predictors import Logistic as Share

EPS = np.finfo(float).eps


def softplus(f):
    return np.maximum(np.logaddexp(0.0, f), 1e-300)


# counts with the mean log(1 + e^f): r - y log r is convex in f
SOFT_COUNTS = PerLabel(
    lambda y, f: softplus(f) - y * np.log(softplus(f)),
    lambda y, f: expit(f) * (1.0 - y / softplus(f)),
    lambda y, f: expit(f) * expit(-f) * (1.0 - y / softplus(f)) + y * (expit(f) / softplus(f)) ** 2,
)
# a square around a function of the label, with a quartic
LEVELS = PerLabel(
    lambda y, f: 0.5 * (f - np.sin(y)) ** 2 + 0.1 * f**4,
    lambda y, f: f - np.sin(y) + 0.4 * f**3,
    lambda y, f: 1.0 + 1.2 * f**2 + 0.0 * y,
    scale=0.8,
)
LOSSES = {
    "poisson": Poisson(),
    "gamma": Gamma(),
    "one trial": Binomial(),
    "five trials": Binomial(5),
    "soft counts": SOFT_COUNTS,
    "levels": LEVELS,
}
LABELS = {
    "poisson": np.array([0.0, 1.0, 2.5, 40.0, 1e5]),
    "gamma": np.array([1e-6, 0.3, 1.0, 7.0, 1e5]),
    "one trial": np.array([0.0, 0.3, 1.0]),
    "five trials": np.array([0.0, 1.0, 2.5, 5.0]),
    "soft counts": np.array([0.0, 1.0, 6.0]),
    "levels": np.array([-2.0, 0.0, 1.3, 50.0]),
}
every_loss = pytest.mark.parametrize("name", LOSSES)
F = np.linspace(-8.0, 8.0, 41) + 0.0137


def meshed(name):
    """All pairs of labels and scores."""
    return np.meshgrid(LABELS[name], F, indexing="ij")


def difference(function, f, h=1e-3):
    """Five-point difference quotient."""
    near, far = (function(f + s * h) - function(f - s * h) for s in (1, 2))
    return (8 * near - far) / (12 * h)


@every_loss
def test_derivatives_are_those_of_differences(name):
    loss, (y, f) = LOSSES[name], meshed(name)
    size = 1.0 + np.abs(loss.value(y, f))
    slope, bend = loss.derivative(y, f), loss.second_derivative(y, f)
    found = difference(lambda f: loss.value(y, f), f)
    assert (np.abs(slope - found) <= 1e-9 * (size + np.abs(slope))).all()
    found = difference(lambda f: loss.derivative(y, f), f)
    assert (np.abs(bend - found) <= 1e-9 * (1.0 + np.abs(slope) + np.abs(bend))).all()
    assert bend.min() >= 0.0


def test_values_are_negative_log_likelihoods():
    """Up to what does not depend on the score."""
    f = np.linspace(-3.0, 3.0, 13)
    mean = np.exp(f)
    k = 4.0
    poisson = -(k * f - mean - gammaln(k + 1.0))
    np.testing.assert_allclose(np.diff(Poisson().value(k, f)), np.diff(poisson), rtol=1e-12)
    exponential = f + k / mean  # -log of the density exp(-y/mean)/mean
    np.testing.assert_allclose(Gamma().value(k, f), exponential, rtol=1e-14)
    p = expit(f)
    binomial = -(xlogy(2.0, p) + xlogy(3.0, 1.0 - p))
    np.testing.assert_allclose(Binomial(5).value(2.0, f), binomial, rtol=1e-13)


@every_loss
def test_functions_keep_the_shape_of_their_arguments(name):
    loss, y = LOSSES[name], LABELS[name][:2, None] * np.ones(3)
    f = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    for function in (loss.value, loss.derivative, loss.second_derivative):
        assert function(y, f).shape == (2, 3)
    assert loss.minimiser(y).shape == loss.least(y).shape == (2, 3)
    assert loss.proximal(y[:, :1], f, np.ones((2, 1))).shape == (2, 3)


# ---------------------------------------------------------------- proximal points

V = 10.0 ** np.arange(-12.0, 9.0)


@every_loss
def test_proximal_points_are_optimal_to_rounding(name):
    """η + V ℓ'(y, η) = ω, where the left side grows with η: it is ω between two neighbours of η."""
    loss = LOSSES[name]
    y, omega, v = np.meshgrid(LABELS[name], np.linspace(-8.0, 8.0, 17), V, indexing="ij")
    eta = loss.proximal(y, omega, v)
    assert np.isfinite(eta).all()
    ulp = 8 * EPS * np.abs(eta)
    before, after = np.nextafter(eta - ulp, -np.inf), np.nextafter(eta + ulp, np.inf)
    # rounding of ω, of η, and of the terms of the slope; PerLabel's functions add their own
    terms = {
        "poisson": y + np.exp(eta),
        "gamma": 1.0 + y * np.exp(-eta),
        "one trial": 1.0,
        "five trials": 5.0,
        "soft counts": expit(eta) * (1.0 + y / softplus(eta)),
        "levels": np.abs(eta) + 1.0 + np.abs(eta) ** 3,
    }[name]
    digits = np.abs(omega) + np.abs(eta) + v * terms
    if name in ("poisson", "gamma"):  # by logarithms, to the rounding of those
        digits += (1.0 + np.abs(np.log(v)) + np.abs(np.log(y + (y == 0)))) * (1.0 + v * terms)
    rounding = 16 * EPS * digits
    assert (before + v * loss.derivative(y, before) <= omega + rounding).all()
    assert (after + v * loss.derivative(y, after) >= omega - rounding).all()


@every_loss
@pytest.mark.parametrize("v", [1e-12, 1e-3, 1.0, 1e4, 1e8])
def test_proximal_points_beat_a_brute_force_search(name, v):
    loss = LOSSES[name]
    for y in LABELS[name]:
        for omega in (-3.0, 0.4, 5.0):
            eta = float(loss.proximal(np.array([y]), np.array([omega]), np.array([v]))[0])

            def objective(f, y=y, omega=omega):
                value = loss.value(np.array([y]), np.array([f]))[0]
                return float(value + 0.5 * (f - omega) ** 2 / v)

            reach = abs(eta - omega) + 1.0
            with np.errstate(over="ignore"):
                best = optimize.minimize_scalar(
                    objective,
                    bounds=(min(eta, omega) - reach, max(eta, omega) + reach),
                    method="bounded",
                    options={"xatol": 1e-12, "maxiter": 500},
                )
            found = objective(eta)
            assert found <= best.fun + 1e-13 * (1.0 + np.abs(found))


@pytest.mark.parametrize("v", [1e-12, 1e-5, 0.3, 1e4, 1e8])
@pytest.mark.parametrize("y", [0.0, 1.0, 30.0, 1e5])
def test_proximal_points_of_counts_against_mpmath(y, v):
    for omega in (-30.0, -1.0, 0.7, 8.0):
        eta = float(Poisson().proximal(np.array([y]), np.array([omega]), np.array([v]))[0])
        with mp.workdps(40):
            x = mp.mpf(omega) + mp.mpf(v) * mp.mpf(y)
            t = mp.mpf(eta)
            for _ in range(60):  # Newton's method for the t with t + V e^t = x
                t -= (t + v * mp.exp(t) - x) / (1 + v * mp.exp(t))
        assert eta == pytest.approx(float(t), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("v", [1e-12, 1e-5, 0.3, 1e4, 1e8])
@pytest.mark.parametrize("y", [1e-6, 1.0, 1e5])
def test_proximal_points_of_positive_labels_against_mpmath(y, v):
    for omega in (-30.0, -1.0, 0.7, 8.0):
        eta = float(Gamma().proximal(np.array([y]), np.array([omega]), np.array([v]))[0])
        with mp.workdps(40):
            # t = log y - η solves t + V e^t = log y - ω + V
            x = mp.log(mp.mpf(y)) - mp.mpf(omega) + mp.mpf(v)
            t = mp.mpf(float(np.log(y) - eta))
            for _ in range(60):
                t -= (t + v * mp.exp(t) - x) / (1 + v * mp.exp(t))
            exact = mp.log(mp.mpf(y)) - t
        assert eta == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(LOSSES)),
    which=st.integers(0, 2),
    omega=st.floats(-20, 20),
    step=st.floats(1e-6, 10),
    log_v=st.floats(-12, 8),
)
def test_proximal_maps_increase_and_never_expand(name, which, omega, step, log_v):
    y, ends = LABELS[name][which], np.array([omega, omega + step])
    eta = LOSSES[name].proximal(np.full(2, y), ends, np.full(2, 10.0**log_v))
    rounding = 1e-12 * np.abs([*ends, *eta]).max()
    assert -rounding <= eta[1] - eta[0] <= step + rounding


def test_one_trial_is_the_logistic_loss():
    """Of y = ±1, label (1 + y)/2: values, slopes and proximal points."""
    f, v = np.meshgrid(np.linspace(-9.0, 9.0, 19), V, indexing="ij")
    logistic = losses.Logistic()
    for sign, label in ((1.0, 1.0), (-1.0, 0.0)):
        y = np.full_like(f, label)
        np.testing.assert_allclose(
            Binomial().value(y, f), logistic.value(-sign * f), rtol=1e-13, atol=1e-15
        )
        np.testing.assert_allclose(
            Binomial().derivative(y, f), -sign * logistic.derivative(-sign * f), rtol=1e-13
        )
        found = Binomial().proximal(y, f, v)
        expected = -sign * logistic.proximal(-sign * f, v)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


# ---------------------------------------------------------------- minima and tails


@every_loss
def test_minimisers_are_where_the_slope_vanishes(name):
    loss, y = LOSSES[name], LABELS[name]
    f = loss.minimiser(y)
    inside = np.isfinite(f)
    slope = loss.derivative(y[inside], f[inside])
    bend = loss.second_derivative(y[inside], f[inside])
    assert (np.abs(slope) <= 1e-12 * (1.0 + bend * (1.0 + np.abs(f[inside])))).all()
    least = loss.least(y)
    for y_j, lowest in zip(y, least, strict=True):
        values = loss.value(np.full(2001, y_j), np.linspace(-30.0, 30.0, 2001))
        assert values.min() >= lowest - 1e-12 * (1.0 + abs(lowest))


def test_minimisers_and_least_values_in_closed_form():
    y = np.array([0.5, 1.0, 9.0])
    np.testing.assert_allclose(Poisson().minimiser(y), np.log(y), rtol=1e-15)
    np.testing.assert_allclose(Poisson().least(y), y - y * np.log(y), rtol=1e-15)
    np.testing.assert_allclose(Gamma().minimiser(y), np.log(y), rtol=1e-15)
    np.testing.assert_allclose(Gamma().least(y), 1.0 + np.log(y), rtol=1e-15)
    k = np.array([1.0, 2.0, 4.0])
    p = k / 5.0
    np.testing.assert_allclose(Binomial(5).minimiser(k), np.log(p / (1 - p)), rtol=1e-13)
    entropy = -5.0 * (p * np.log(p) + (1 - p) * np.log1p(-p))
    np.testing.assert_allclose(Binomial(5).least(k), entropy, rtol=1e-14)


def test_labels_at_the_edge_are_only_approached():
    assert Poisson().minimiser(np.array([0.0]))[0] == -np.inf
    assert Poisson().least(np.array([0.0]))[0] == 0.0
    np.testing.assert_array_equal(Binomial(3).minimiser(np.array([0.0, 3.0])), [-np.inf, np.inf])
    np.testing.assert_array_equal(Binomial(3).least(np.array([0.0, 3.0])), [0.0, 0.0])
    assert SOFT_COUNTS.minimiser(np.array([0.0]))[0] == -np.inf
    assert SOFT_COUNTS.least(np.array([0.0]))[0] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("poisson", lambda y: -y, lambda y: np.full_like(y, np.inf)),
        ("gamma", lambda y: np.full_like(y, -np.inf), np.ones_like),
        ("one trial", lambda y: -y, lambda y: 1.0 - y),
        ("five trials", lambda y: -y, lambda y: 5.0 - y),
    ],
)
def test_slopes_at_infinity(name, left, right):
    found = LOSSES[name].slopes_at_infinity(LABELS[name])
    np.testing.assert_array_equal(found[0], left(LABELS[name]))
    np.testing.assert_array_equal(found[1], right(LABELS[name]))


@pytest.mark.parametrize("name", ["poisson", "gamma", "five trials"])
def test_slopes_at_infinity_are_found_without_closed_forms(name):
    """Those of any functions have the same signs, and are zero where these only approach zero."""
    loss, y = LOSSES[name], LABELS[name][LABELS[name] < 100]
    general = PerLabel(loss.value, loss.derivative, loss.second_derivative)
    for found, exact in zip(general.slopes_at_infinity(y), loss.slopes_at_infinity(y), strict=True):
        np.testing.assert_array_equal(np.sign(found), np.sign(exact))
    np.testing.assert_allclose(general.minimiser(y), loss.minimiser(y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(general.least(y), loss.least(y), rtol=1e-12, atol=1e-12)


@every_loss
def test_losses_of_given_labels_are_functions_of_the_negative_score(name):
    loss, y = LOSSES[name], LABELS[name]
    of_sample = loss.of_labels(y)
    for f in (-2.0, 0.3, 4.0):
        score = np.full_like(y, f)
        excess = loss.value(y, score) - loss.least(y)
        size = np.abs(loss.value(y, score)) + np.abs(loss.least(y))
        assert (np.abs(of_sample.value(-score) - excess) <= 1e-13 * (1.0 + size)).all()
        np.testing.assert_array_equal(of_sample.derivative(-score), -loss.derivative(y, score))
        np.testing.assert_array_equal(
            of_sample.second_derivative(-score), loss.second_derivative(y, score)
        )


def test_the_excess_of_large_counts_keeps_its_digits():
    y = np.array([1e12])
    near = np.log(y) + 1e-4
    with mp.workdps(40):
        u = mp.mpf(float(near[0])) - mp.log(mp.mpf(1e12))
        exact = float(mp.mpf(1e12) * (mp.expm1(u) - u))
    found = Poisson().of_labels(y).value(-near)[0]
    assert found == pytest.approx(exact, rel=1e-6)  # of the rounding of log y alone


# ---------------------------------------------------------------- predictions, equality


def test_predictions_are_the_means_that_losses_estimate():
    assert Poisson().predictor == Exp() and Gamma().predictor == Exp()
    assert Binomial(3).predictor == Share(3.0)
    assert LEVELS.predictor == Identity()


def test_losses_equal_their_copies():
    for loss in OF_LABEL.values():
        assert pickle.loads(pickle.dumps(loss)) == loss
    assert Binomial(2) == Binomial(2) != Binomial(3)
    assert Poisson() != Gamma()


# ---------------------------------------------------------------- checks

REFUSED = {
    "negative count": (
        lambda: check_label_loss(Poisson(), np.array([0.0, -1.0])),
        "loss",
        r"does not allow the label -1: it needs numbers of at least 0; choose another",
    ),
    "zero of a positive label": (
        lambda: check_label_loss(Gamma(), np.array([1.0, 0.0])),
        "loss",
        "does not allow the label 0: it needs numbers above 0",
    ),
    "more successes than trials": (
        lambda: check_label_loss(Binomial(3), np.arange(5.0)),
        "loss",
        "does not allow the label 4: it needs numbers from 0 to 3",
    ),
    "label NaN": (lambda: check_label_loss(LEVELS, np.array([np.nan])), "loss", "any number"),
    "concave": (
        lambda: check_label_loss(
            PerLabel(
                lambda y, f: -0.5 * (y - f) ** 2,
                lambda y, f: y - f,
                lambda y, f: np.full_like(f, -1.0),
            ),
            np.array([0.0]),
        ),
        "second_derivative",
        r"is -1 at label 0 and prediction .*convex in f",
    ),
    "slope of the wrong sign": (
        lambda: check_label_loss(
            PerLabel(
                lambda y, f: 0.5 * (y - f) ** 2, lambda y, f: y - f, lambda y, f: np.ones_like(f)
            ),
            np.array([0.5]),
        ),
        "derivative",
        "is not the derivative of value at label 0.5 .*correct one of the two",
    ),
    "curvature off by a factor": (
        lambda: check_label_loss(
            PerLabel(
                lambda y, f: 0.5 * (y - f) ** 2,
                lambda y, f: f - y,
                lambda y, f: np.full_like(f, 1.01),
            ),
            np.array([0.5]),
        ),
        "second_derivative",
        "is not the derivative of derivative",
    ),
    "unbounded below": (
        lambda: check_label_loss(
            PerLabel(
                lambda y, f: softplus(f) - y * f,
                lambda y, f: expit(f) - y,
                lambda y, f: expit(f) * expit(-f) + 0.0 * y,
            ),
            np.array([0.0, 1.0, 2.0]),
        ),
        "loss",
        "falls without bound as f → ∞ if the label is 2: give a loss that is bounded below",
    ),
    "value NaN": (
        lambda: check_label_loss(
            PerLabel(
                lambda y, f: np.where(f > 3, np.nan, f**2),
                lambda y, f: 2 * f,
                lambda y, f: 2 + 0 * f,
            ),
            np.array([0.0]),
        ),
        "value",
        "is not an array of finite numbers at label 0 and prediction",
    ),
    "a scalar out of arrays": (
        lambda: check_label_loss(
            PerLabel(lambda y, f: 1.0, lambda y, f: 2 * f, lambda y, f: 2 + 0 * f), np.array([0.0])
        ),
        "value",
        "vectorised",
    ),
    "a function that raises": (
        lambda: check_label_loss(
            PerLabel(lambda y, f: y.absent, lambda y, f: 2 * f, lambda y, f: 2 + 0 * f),
            np.array([0.0]),
        ),
        "value",
        "raised AttributeError.*vectorised",
    ),
    "no function": (lambda: PerLabel(1.0, np.add, np.add), "value", "a function of arrays y and f"),
    "no slope": (lambda: PerLabel(np.add, None, np.add), "derivative", "a function of arrays"),
    "scale": (lambda: PerLabel(np.add, np.add, np.add, scale=0.0), "scale", "at least 1e-20"),
    "trials": (lambda: Binomial(0), "trials", "whole number of at least 1"),
    "half a trial": (lambda: Binomial(0.5), "trials", "whole number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_argument_and_the_remedy(case):
    make, argument, remedy = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=remedy) as caught:
        make()
    assert caught.value.argument == argument


@every_loss
def test_decent_losses_are_accepted(name):
    check_label_loss(LOSSES[name], LABELS[name])


@pytest.mark.parametrize(
    ("loss", "teacher"),
    [
        (Poisson(), hm.teachers.Ordered((-1.0, 0.0, 1.0))),
        (Gamma(), hm.teachers.Poisson()),
        (Binomial(2), hm.teachers.Binomial(3)),
        (Binomial(2), hm.teachers.Poisson()),
    ],
    ids=str,
)
def test_a_model_checks_the_loss_on_its_labels(loss, teacher):
    with pytest.raises(InvalidArgumentError, match="does not allow the label"):
        hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)


@pytest.mark.parametrize("loss", OF_LABEL)
@pytest.mark.parametrize("teacher", ["sign", "logistic", "mixture"])
def test_losses_of_numbers_do_not_fit_labels_of_two_classes(loss, teacher):
    with pytest.raises(hm.IncompatibleIngredientsError, match="classification"):
        hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)
