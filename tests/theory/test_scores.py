"""Observables of scores against integrals over the teacher's field, which the library never does.

Given the field nu the score f is normal; the library goes the other way round, over f, with the law
of the label given f.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.special import expit, ndtr

from hiddenmanifold import losses, teachers
from hiddenmanifold.theory.labels_side.kinds import kind_of
from hiddenmanifold.theory.scores.calibration import best_temperature, calibration_error
from hiddenmanifold.theory.scores.distribution import MarginLaw, Scores, auc, observe
from hiddenmanifold.theory.scores.distribution import test_loss as mean_loss
from hiddenmanifold.theory.scores.numbers import test_loss as mean_loss_of_numbers

TEACHERS = {
    "sign": teachers.Sign(),
    "noisy sign": teachers.Sign(noise=0.3, flip=0.07, threshold=0.4, rho=1.7),
    "biased logistic": teachers.Logistic(slope=1.5, threshold=0.4, flip=0.05, rho=1.7),
    "custom": teachers.Custom(lambda nu: 0.5 + 0.45 * np.tanh(nu - 0.3), rho=1.3),
}


def positive(teacher, nu):
    """P(+1 | nu), from the definition of the rule."""
    if isinstance(teacher, teachers.Custom):
        return 0.5 + 0.45 * np.tanh(nu - 0.3)
    z = nu + teacher.threshold
    if isinstance(teacher, teachers.Logistic):
        keep = expit(teacher.slope * z)
    else:
        keep = ndtr(z / np.sqrt(teacher.noise)) if teacher.noise else np.where(z > 0, 1.0, 0.0)
    return teacher.flip + (1 - 2 * teacher.flip) * keep


# correlation of score and field, deviation and mean of the score
POINTS = ((0.3, 0.2, 0.0), (0.8, 1.5, 0.0), (0.6, 1.0, 0.7), (0.95, 6.0, -2.0), (-0.4, 2.0, 0.5))


def scores_of(teacher, loss, points=POINTS, V=1.0):
    """The library's description of such laws."""
    correlation, deviation, mean = np.array(points, dtype=float).T
    k, V0 = np.sqrt(teacher.rho) * correlation, teacher.rho * (1 - correlation**2)
    V = np.full(len(points), V)
    return Scores(teacher, loss, loss, 1.0, V, deviation, mean, k, V0)


class Joint:
    """Field and score of one point: nodes and weights of the field, and the score given it."""

    def __init__(self, teacher, correlation, deviation, mean, reach=10.0):
        rho = teacher.rho
        jump = -getattr(teacher, "threshold", 0.0)
        edges = np.unique([*np.linspace(-reach, reach, 65) * np.sqrt(rho), jump])
        x, w = np.polynomial.legendre.leggauss(14)
        half = 0.5 * np.diff(edges)[:, None]
        nu = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
        self.weight = (half * w).ravel() * np.exp(-0.5 * nu**2 / rho) / np.sqrt(2 * np.pi * rho)
        self.given = mean + deviation * correlation * nu / np.sqrt(rho)
        self.rest = deviation * np.sqrt(1 - correlation**2)
        plus = positive(teacher, nu)
        self.law = {1: plus, -1: 1 - plus}
        self.mean, self.deviation = mean, deviation

    def density(self, y, f):
        """Of a score f with the label y."""
        normal = np.exp(-0.5 * ((f - self.given) / self.rest) ** 2)
        return self.weight * self.law[y] @ normal / (self.rest * np.sqrt(2 * np.pi))

    def integral(self, function, cuts, reach=12.0):
        """Of a function of the score, cut where it is not smooth."""
        ends = self.mean + reach * self.deviation * np.array([-1.0, 1.0])
        inner = [c for c in cuts if ends[0] < c < ends[1]]
        edges = np.unique([*np.linspace(*ends, 25), *inner])
        return sum(
            integrate.quad(function, a, b, epsabs=1e-14, epsrel=1e-11)[0]
            for a, b in zip(edges[:-1], edges[1:], strict=True)
        )


LOSSES = {
    "logistic": (losses.Logistic(), lambda m: np.logaddexp(0, -m), ()),
    "hinge": (losses.Hinge(), lambda m: max(0.0, 1 - m), (1.0,)),
    "square": (losses.Square(), lambda m: 0.5 * (1 - m) ** 2, ()),
    "absolute": (losses.Absolute(), lambda m: abs(1 - m), (1.0,)),
    "huber": (
        losses.Huber(0.5),
        lambda m: 0.5 * (1 - m) ** 2 if abs(1 - m) < 0.5 else 0.5 * abs(1 - m) - 0.125,
        (0.5, 1.5),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("teacher", ["sign", "biased logistic"])
def test_loss_is_the_mean_over_scores_and_labels(name, teacher):
    teacher, (loss, value, kinks) = TEACHERS[teacher], LOSSES[name]
    found = observe(mean_loss, scores_of(teacher, loss))
    for i, point in enumerate(POINTS[1:4], start=1):
        joint = Joint(teacher, *point)
        expected = sum(
            joint.integral(
                lambda f, y=y, joint=joint: joint.density(y, f) * value(y * f),
                [y * k for k in kinks],
            )
            for y in (1, -1)
        )
        assert found[i] == pytest.approx(expected, rel=1e-9)


def exponential():
    return losses.Custom(lambda m: np.exp(-m), lambda m: -np.exp(-m), lambda m: np.exp(-m))


def test_losses_that_grow_fast_reach_far_into_the_tail_or_are_refused():
    # without a threshold and correlation E exp(-y f) = E exp(f) = exp(deviation²/2)
    points = [(1e-9, deviation, 0.0) for deviation in (1.0, 8.0, 16.0, 20.0)]
    found = observe(mean_loss, scores_of(teachers.Sign(), exponential(), points))
    np.testing.assert_allclose(found[:3], np.exp([0.5, 32.0, 128.0]), rtol=1e-7)
    assert np.isnan(found[3])  # a loss that counts is more than a double can hold


def test_loss_of_real_labels_is_the_mean_over_residuals():
    tau, b = np.array([0.3, 1.0, 5.0]), np.array([0.0, 0.4, -2.0])
    zero = np.zeros(3)
    for loss, value in (
        (losses.Square(), 0.5 * (tau**2 + b**2)),
        (
            losses.Absolute(),
            tau * np.sqrt(2 / np.pi) * np.exp(-0.5 * (b / tau) ** 2) + b * (1 - 2 * ndtr(-b / tau)),
        ),
    ):
        law = {"V": zero, "deviation": tau, "intercept": b, "slope": zero, "V0": zero}
        scores = Scores(teachers.Linear(), loss, loss, 1.0, **law, residual=True)
        found = observe(mean_loss_of_numbers, scores)
        np.testing.assert_allclose(found, value, rtol=1e-12)


@pytest.mark.parametrize("teacher", TEACHERS.values(), ids=TEACHERS)
def test_auc_is_the_chance_of_a_pair_in_order(teacher):
    found = observe(auc, scores_of(teacher, losses.Logistic()))
    for i, point in enumerate(POINTS):
        joint = Joint(teacher, *point)
        plus, minus = (joint.weight * joint.law[y] for y in (1, -1))
        gap = joint.given[:, None] - joint.given
        order = plus @ ndtr(gap / (np.sqrt(2) * joint.rest)) @ minus
        assert found[i] == pytest.approx(order / (plus.sum() * minus.sum()), rel=1e-10)


def test_auc_of_plain_signs_is_an_angle():
    correlation = np.linspace(-0.999, 0.999, 31)
    points = [(c, 1.0, 0.3) for c in correlation]
    found = observe(auc, scores_of(teachers.Sign(rho=1.4), losses.Hinge(), points))
    expected = 0.5 + 2 / np.pi * np.arcsin(correlation / np.sqrt(2))  # an orthant of three normals
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_auc_of_a_rare_class_keeps_its_digits():
    teacher = teachers.Sign(threshold=7.0)  # one label in 1e12 is negative
    joint = Joint(teacher, 0.5, 1.0, 0.0, reach=16.0)
    negative = joint.weight * joint.law[-1]
    # positives are everybody: their score is standard normal
    above = 1 - ndtr(joint.given / np.sqrt(1 + joint.rest**2))
    expected = negative @ above / negative.sum()
    found = observe(auc, scores_of(teacher, losses.Logistic(), [(0.5, 1.0, 0.0)]))
    assert found[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sign", "noisy sign", "biased logistic", "custom"])
def test_calibration_error_is_the_mean_distance_of_probabilities(name):
    teacher = TEACHERS[name]
    found = observe(calibration_error, scores_of(teacher, losses.Logistic()))
    for i, point in enumerate(POINTS[1:], start=1):
        joint = Joint(teacher, *point)

        def excess(f, joint=joint):
            plus, minus = joint.density(1, f), joint.density(-1, f)
            return expit(f) * (plus + minus) - plus

        grid = joint.mean + joint.deviation * np.linspace(-8.0, 8.0, 400)
        values = np.array([excess(f) for f in grid])
        turns = np.flatnonzero(np.diff(np.sign(values)) != 0)
        roots = [optimize.brentq(excess, grid[j], grid[j + 1], xtol=1e-13) for j in turns]
        expected = joint.integral(lambda f: abs(excess(f)), roots)
        assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["sign", "noisy sign", "biased logistic"])
def test_best_temperature_has_the_least_log_loss(name):
    teacher = TEACHERS[name]
    points = POINTS[:4]
    found = observe(best_temperature, scores_of(teacher, losses.Hinge(), points))
    for T, point in zip(found, points, strict=True):
        joint = Joint(teacher, *point)
        f = joint.mean + joint.deviation * np.linspace(-12.0, 12.0, 1501)  # trapezoidal: exact here
        law = {y: np.array([joint.density(y, at) for at in f]) for y in (1, -1)}

        def slope(log_t, law=law, f=f):
            return sum(-law[y] @ (y * f * expit(-np.exp(log_t) * y * f)) for y in (1, -1))

        expected = np.exp(-optimize.brentq(slope, -8.0, 8.0, xtol=1e-13))
        assert pytest.approx(expected, rel=1e-8) == T


def test_temperature_of_an_almost_learned_rule_is_the_width_of_its_doubt():
    """Near the boundary doubt is a probit of width sqrt(V0); the best logistic one is a number."""

    def slope(c):
        return integrate.quad(
            lambda u: u * (expit(-c * u) * ndtr(u) - expit(c * u) * ndtr(-u)), 0.0, 40.0
        )[0]

    c = optimize.brentq(slope, 1.0, 3.0, xtol=1e-13)
    width = np.array([1e-3, 1e-6, 1e-9, 1e-12])
    one = np.ones_like(width)
    law = {"V": one, "deviation": 2.0 * one, "intercept": 0.0 * one, "slope": one, "V0": width**2}
    loss = losses.Logistic()
    found = observe(best_temperature, Scores(teachers.Sign(), loss, loss, 1.0, **law))
    np.testing.assert_allclose(found[1:], 2.0 * width[1:] / c, rtol=1e-8)
    assert found[0] == pytest.approx(2.0 * width[0] / c, rel=1e-4)


def test_a_score_that_says_nothing_or_the_opposite_is_best_ignored():
    points = [(0.0, 1.0, 0.0), (-0.5, 1.0, 0.0)]
    scores = scores_of(teachers.Sign(), losses.Logistic(), points)
    assert (observe(best_temperature, scores) == np.inf).all()
    np.testing.assert_allclose(observe(auc, scores)[0], 0.5, rtol=1e-14)


@pytest.mark.slow
def test_scores_of_any_size_have_the_same_order_and_proportional_temperature():
    teacher = TEACHERS["biased logistic"]
    one = scores_of(teacher, losses.Logistic(), [(0.7, 1.0, 0.4)])
    for scale in (1e-40, 1e-6, 1e6, 1e40):
        other = replace(one, scale=scale)
        np.testing.assert_allclose(observe(auc, other), observe(auc, one), rtol=1e-13)
        ratio = observe(best_temperature, other) / observe(best_temperature, one)
        np.testing.assert_allclose(ratio, scale, rtol=1e-10)


OBSERVED = (mean_loss, auc, calibration_error, best_temperature)


@pytest.mark.parametrize("observed", OBSERVED, ids=lambda f: f.__name__)
def test_a_point_that_failed_spoils_no_other(observed):
    scores = scores_of(TEACHERS["noisy sign"], losses.Huber(), POINTS)
    lost = replace(scores, deviation=np.where(np.arange(5) == 1, np.nan, scores.deviation))
    lost = replace(lost, slope=np.where(np.arange(5) == 1, np.nan, scores.slope))
    found, expected = observe(observed, lost), observe(observed, scores)
    assert np.isnan(found[1])
    others = [0, 2, 3, 4]
    np.testing.assert_allclose(found[others], expected[others], rtol=1e-13)


def test_a_label_that_loses_almost_nothing_is_no_obstacle():
    # the loss of positives comes from beyond 37 deviations, that of negatives from everywhere
    scores = scores_of(teachers.Sign(threshold=0.5), losses.Hinge(), [(0.6, 0.1, 4.75)])
    joint = Joint(teachers.Sign(threshold=0.5), 0.6, 0.1, 4.75)
    expected = joint.weight * joint.law[-1] @ (1 + joint.given)
    assert observe(mean_loss, scores)[0] == pytest.approx(expected, rel=1e-10)


def test_a_constant_prediction_tells_nothing_of_the_label():
    teacher = TEACHERS["biased logistic"]
    channel = kind_of(teacher, losses.Hinge())(teacher, losses.Hinge(), True)
    beta = (1.0 - channel.best_constant) / 1e-50
    x = np.array([[0.0, 2.0 * np.log(1e-50), np.arctanh(0.7), beta]])
    scores = Scores.of(channel, x)
    plus = Joint(teacher, 0.0, 1.0, 0.0)
    plus = plus.weight @ plus.law[1]
    assert observe(auc, scores)[0] == pytest.approx(0.5, rel=1e-12)
    assert observe(calibration_error, scores)[0] == pytest.approx(abs(expit(1.0) - plus), rel=1e-10)
    T = observe(best_temperature, scores)[0]
    assert expit(1.0 / T) == pytest.approx(plus, rel=1e-9)


# margin of the proximal point -> field: the field minus V times the pull of the loss
PULL = {
    "logistic": (losses.Logistic(), lambda m: expit(-m)),
    "square": (losses.Square(), lambda m: 1 - m),
    "hinge": (losses.Hinge(), lambda m: 1.0 if m < 1 else 0.0),
    "absolute": (losses.Absolute(), lambda m: 1.0 if m < 1 else -1.0),
}


@pytest.mark.parametrize("name", PULL)
@pytest.mark.parametrize("teacher", ["sign", "noisy sign"])
def test_margins_of_training_samples_are_proximal_points(name, teacher):
    (loss, pull), teacher, V = PULL[name], TEACHERS[teacher], 0.8
    scores = scores_of(teacher, loss, V=V)
    for m in (-1.3, 0.0, 0.4, 1.0 - 1e-12, 1.0, 2.2):
        new, trained = (MarginLaw((m, 9.0), training=t)(scores)[:, 0] for t in (False, True))
        for i, point in enumerate(POINTS):
            joint = Joint(teacher, *point)
            for found, field in ((new[i], m), (trained[i], m - V * pull(m))):
                expected = sum(
                    joint.weight @ (joint.law[y] * ndtr((field - y * joint.given) / joint.rest))
                    for y in (1, -1)
                )
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-13)
