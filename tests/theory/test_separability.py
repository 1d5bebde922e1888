"""The separability equations against trapezoidal sums, large precision, limits and differences."""

from math import inf, nan

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, ndtr
from scipy.stats import norm

import hiddenmanifold as hm
from given import random_features
from hiddenmanifold import teachers
from hiddenmanifold.features import projections
from hiddenmanifold.theory.separability import direction
from hiddenmanifold.theory.separability.direction import rectified, separating_direction
from seeds import sampled


def wavy(nu):
    return 0.5 + 0.45 * np.tanh(nu - 0.3 + 0.2 * np.sin(2 * nu))


def notched(nu):
    return np.where(nu < -0.5, 0.1, np.where(nu < 0.8, 0.9, 0.3))


TEACHERS = {
    "sign": teachers.Sign(),
    "noisy sign": teachers.Sign(noise=0.3, flip=0.07, threshold=0.4, rho=1.7),
    "flipped sign": teachers.Sign(flip=0.1, rho=0.3),
    "threshold": teachers.Sign(threshold=-0.8, rho=0.5),
    "logistic": teachers.Logistic(slope=2.0),
    "biased logistic": teachers.Logistic(slope=1.5, threshold=0.4, flip=0.05, rho=1.7),
    "wavy": teachers.Custom(wavy, rho=1.3),
    "notched": teachers.Custom(notched, kinks=(-0.5, 0.8)),
}
every_teacher = pytest.mark.parametrize("teacher", TEACHERS.values(), ids=TEACHERS)
either = pytest.mark.parametrize("free", [False, True], ids=["no intercept", "intercept"])


def step_law(field, hidden, changes, levels):
    """P(+) of a piecewise constant rule for fields of given mean and variance."""
    steps = zip(changes, np.diff(levels), strict=True)
    return levels[0] + sum(h * ndtr((field - c) / np.sqrt(hidden)) for c, h in steps)


def plus_given_x(teacher, x, chi):
    """P(+ | X = x), from the definition of the rule."""
    field, hidden = np.sqrt(teacher.rho * chi) * x, teacher.rho * (1 - chi)
    if isinstance(teacher, teachers.Sign):
        levels = (teacher.flip, 1 - teacher.flip)
        return step_law(field, hidden + teacher.noise, (-teacher.threshold,), levels)
    if isinstance(teacher, teachers.Custom) and teacher.probability is notched:
        return step_law(field, hidden, (-0.5, 0.8), (0.1, 0.9, 0.3))
    z = np.arange(-12, 12, 0.02)
    nu = field[:, None] + np.sqrt(hidden) * z
    if isinstance(teacher, teachers.Custom):
        p = wavy(nu)
    else:
        p = expit(teacher.slope * (nu + teacher.threshold))
        p = teacher.flip + (1 - 2 * teacher.flip) * p
    return p @ norm.pdf(z) * 0.02


def slow_least(teacher, chi, free):
    """Minimum and minimiser by the trapezoidal rule, which is exact here, and scipy."""
    x, step = np.arange(-12, 12, 0.01), 0.01
    plus = plus_given_x(teacher, x, chi)

    def average(t0, t):
        a = t0 + t * x
        up, down = ((1 + b * b) * norm.cdf(b) + b * norm.pdf(b) for b in (a, -a))
        return norm.pdf(x) @ (plus * up + (1 - plus) * down) * step

    if not free:
        found = minimize_scalar(lambda t: average(0.0, t), (-1.0, 0.0), tol=1e-9)
        return found.fun, found.x, 0.0
    options = {"xatol": 1e-8, "fatol": 1e-15, "maxiter": 2000}
    found = minimize(lambda v: average(*v), (0.1, -0.3), method="Nelder-Mead", options=options)
    assert found.success
    return found.fun, found.x[1], found.x[0]


@pytest.mark.slow
@every_teacher
@either
@pytest.mark.parametrize("chi", sampled([0.0, 1e-3, 0.3, 0.8, 0.97], [0.0, 0.3, 0.97]))
def test_minimum_is_that_of_trapezoidal_sums(teacher, free, chi):
    value, t, t0 = slow_least(teacher, chi, free)
    found = separating_direction(teacher, np.array([chi]), free)
    assert found.status == hm.Status.CONVERGED
    # the slow minimiser is never below the minimum, and as flat around it as a parabola
    np.testing.assert_allclose(found.value, value, rtol=2e-13)
    np.testing.assert_allclose([found.t[0], found.t0[0]], [t, t0], rtol=1e-6, atol=1e-6)
    length = np.hypot(1, t)
    np.testing.assert_allclose(found.alignment, -np.sqrt(chi) * t / length, atol=1e-6)
    np.testing.assert_allclose(found.bias, -t0 / length, atol=1e-6)


def fractions(features, gamma):
    """The visible and the hidden part of the field."""
    found = features.visible(gamma)
    return found.fraction, found.hidden


def test_rectified_moments_keep_their_digits():
    a = np.concatenate([np.linspace(-37, 4, 300), [-2.5, -2.5 + 1e-9, -2.5 - 1e-9, 1e6]])
    with mpmath.workdps(60):
        exact = []
        for x in map(mpmath.mpf, a.tolist()):
            P, f = mpmath.ncdf(x), mpmath.npdf(x)
            exact.append([(1 + x * x) * P + x * f, 2 * (x * P + f), 2 * P])
        relative = [
            [float(mpmath.mpf(float(v)) / e - 1) for v, e in zip(found, row, strict=True)]
            for found, row in zip(np.transpose(rectified(a)), exact, strict=True)
        ]
    rounding = 5e-14 + 2e-16 * np.minimum(a, 0.0) ** 2  # the latter is that of exp(-a²/2)
    assert np.all(np.abs(relative) < rounding[:, None])
    assert np.transpose(rectified(np.array([-1e200, -60.0]))).max() == 0.0


EXTREMES = 10.0 ** np.array([-30, -15, -6, -2, -0.3, 0, 0.01, 0.3, 2, 6, 15, 30])


@pytest.mark.parametrize("kappa_star", [2.0, 0.5, 1e-3, 1e-9])
def test_fractions_of_gaussian_features_keep_their_digits(kappa_star):
    found = fractions(random_features(projections.Gaussian(), 0.7, kappa_star), EXTREMES)
    with mpmath.workdps(120):
        X = mpmath.mpf((0.7 / kappa_star) ** 2)
        for gamma, visible, hidden in zip(EXTREMES.tolist(), *found, strict=True):
            # h = <1/(1+Xs)> over the d eigenvalues obeys 1/h = 1 + (X/gamma)/(1 + X h)
            b = 1 - X + X / mpmath.mpf(gamma)
            h = 2 / (b + mpmath.sqrt(b * b + 4 * X))
            assert float(hidden) == pytest.approx(float(h), rel=1e-13, abs=0)
            assert float(visible) == pytest.approx(float(1 - h), rel=1e-13, abs=0)


@pytest.mark.parametrize("kappa_star", [2.0, 0.5, 1e-3, 1e-9])
def test_fractions_of_orthogonal_features_keep_their_digits(kappa_star):
    features = random_features(projections.Orthogonal(), 0.7, kappa_star)
    visible, hidden = fractions(features, EXTREMES)
    X, size = (0.7 / kappa_star) ** 2, np.minimum(EXTREMES, 1.0)
    np.testing.assert_allclose(visible, size * X / (X + size) / EXTREMES, rtol=1e-14)
    few = EXTREMES <= 1
    np.testing.assert_allclose(hidden[few], (EXTREMES / (X + EXTREMES))[few], rtol=1e-14)
    np.testing.assert_allclose(hidden[~few], 1 - visible[~few], rtol=1e-13)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
def test_fractions_of_a_matrix_are_those_of_the_best_linear_guess(shape):
    # the field theta.c/sqrt(d) given features k1 F'c/sqrt(d) + ks z, averaged over theta
    F = np.random.default_rng(3).standard_normal(shape)
    d = shape[0]
    noise = 0.4**2 * np.eye(shape[1]) + 0.7**2 * F.T @ F / d
    seen = np.trace(0.7**2 * F @ np.linalg.solve(noise, F.T)) / d**2
    features = random_features(projections.Matrix(F), 0.7, 0.4)
    visible, hidden = fractions(features, np.array([d / shape[1]]))
    assert visible[0] == pytest.approx(seen, rel=1e-12)
    assert hidden[0] == pytest.approx(1 - seen, rel=1e-12)


@pytest.mark.parametrize("projection", [projections.Gaussian(), projections.Orthogonal()])
def test_linear_features_show_what_they_span(projection):
    features = random_features(projection, -1.3, 0.0)
    gamma = np.array([1e-30, 1e-3, 0.5, 1.0, 2.0, 1e3, 1e30])
    visible, hidden = fractions(features, gamma)
    np.testing.assert_allclose(visible, np.minimum(1, 1 / gamma), rtol=1e-13)
    np.testing.assert_allclose(hidden, np.maximum(0, 1 - 1 / gamma), rtol=1e-13)
    np.testing.assert_allclose(features.visible(gamma).rank, np.minimum(1, gamma), rtol=1e-13)
    noisy = random_features(projection, -1.3, 1e-9)
    np.testing.assert_array_equal(noisy.visible(gamma).rank, 1.0)


def test_linear_features_of_deficient_rank_never_show_all():
    # d/p = 1/2, but a quarter of the p eigenvalues only are positive: rank d/2
    spectrum = projections.Spectrum((0.0, 4.0), (0.75, 0.25), d_over_p=0.5)
    features, gamma = random_features(spectrum, 1.0, 0.0), np.array([0.5])
    np.testing.assert_allclose(fractions(features, gamma), [[0.5], [0.5]], rtol=1e-14)
    np.testing.assert_allclose(features.visible(gamma).rank, 0.25, rtol=1e-14)


def test_even_activations_show_nothing():
    features = random_features(projections.Gaussian(), 0.0, 0.5)
    np.testing.assert_array_equal(fractions(features, np.array([0.1, 10.0])), [[0, 0], [1, 1]])


@pytest.mark.slow
@every_teacher
@either
def test_elasticity_is_the_slope_of_the_minimum(teacher, free):
    odds, step = np.array([-3.0, -1.0, 0.5, 4.0]), 1e-4

    def log_value(odds):
        return np.log(separating_direction(teacher, expit(-odds), free, expit(odds)).value)

    slope = (log_value(odds + step) - log_value(odds - step)) / (2 * step)
    found = separating_direction(teacher, expit(-odds), free, expit(odds)).elasticity
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-9)
    assert np.all(found > 0)


@pytest.mark.slow
@given(
    st.sampled_from(list(TEACHERS.values())[:6]),
    st.booleans(),
    st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
)
def test_the_more_is_seen_the_fewer_features_separate(teacher, free, ends):
    odds = np.sort(ends)
    seen = separating_direction(teacher, expit(-odds), free, expit(odds))
    assert np.all(seen.status == hm.Status.CONVERGED)
    assert seen.value[0] <= seen.value[1] * (1 + 1e-12)
    assert np.all(seen.value <= 0.5 + 1e-14)
    assert np.all(np.abs(seen.alignment) <= np.sqrt(expit(-odds)))


def sharp_constant():
    """Limit of the minimum over the root of the hidden fraction, for noiseless labels."""
    v = np.arange(-40, 40, 0.001)

    def average(tau):
        b = np.maximum(-tau * v, -38.0)
        # below zero the closed form cancels to 1e-16, which does not matter in a sum of order 1
        return 2 * norm.pdf(0) * ndtr(v) @ ((1 + b * b) * ndtr(b) + b * norm.pdf(b)) * 0.001

    found = minimize_scalar(average, (0.3, 1.0), tol=1e-9)
    return found.fun, found.x


@pytest.mark.slow
def test_minimum_of_noiseless_labels_vanishes_with_what_is_hidden():
    constant, tau = sharp_constant()
    hidden = 10.0 ** np.array([-16, -24, -40, -59])
    found = separating_direction(teachers.Sign(rho=2.0), np.ones(4), True, hidden)
    np.testing.assert_allclose(found.value / np.sqrt(hidden), constant, rtol=1e-11)
    np.testing.assert_allclose(found.t * np.sqrt(hidden), -tau, rtol=1e-6)
    np.testing.assert_allclose(found.elasticity, 0.5, rtol=1e-9)


@pytest.mark.slow
def test_minimum_at_a_far_threshold_follows_the_density_there():
    constant, _ = sharp_constant()
    hidden = np.array([1e-10, 1e-13])
    found = separating_direction(teachers.Sign(threshold=1.2), np.ones(2) - hidden, True, hidden)
    # the density changes over the width sqrt(hidden) of what is left in doubt
    expected = constant * np.exp(-0.5 * 1.2**2)
    np.testing.assert_allclose(found.value / np.sqrt(hidden), expected, rtol=1e-8)
    np.testing.assert_allclose(found.bias, 1.2, rtol=1e-9)


@pytest.mark.parametrize(("threshold", "bias"), [(0.0, 0.0), (0.6, 0.6), (-7.0, -7.0)])
def test_wholly_visible_noiseless_labels_are_separable_by_the_rule_itself(threshold, bias):
    found = separating_direction(teachers.Sign(threshold=threshold), np.ones(1), True)
    assert (found.value[0], found.t[0], found.status[0]) == (0.0, -inf, hm.Status.CONVERGED)
    assert found.t0[0] == (0.0 if bias == 0 else -np.sign(bias) * inf)
    assert found.alignment[0] == pytest.approx(1.0, abs=1e-12)
    assert found.bias[0] == pytest.approx(bias, rel=1e-11)


def test_wholly_visible_labels_need_features_if_noise_or_a_missing_intercept_spoils_them():
    for teacher in (teachers.Sign(flip=0.01), teachers.Sign(threshold=0.6), teachers.Logistic()):
        found = separating_direction(teacher, np.ones(1), False)
        assert found.value[0] > 0.03
        assert found.value[0] == pytest.approx(
            separating_direction(teacher, np.array([1 - 1e-14]), False).value[0]
        )


@pytest.mark.parametrize("threshold", [3.0, 6.0, 12.0, 30.0])
def test_rare_labels_keep_their_digits(threshold):
    found = separating_direction(teachers.Sign(threshold=threshold), np.zeros(1), True)
    with mpmath.workdps(40):
        minus = mpmath.ncdf(-threshold)

        def slope(t0):
            up, down = (a * mpmath.ncdf(a) + mpmath.npdf(a) for a in (t0, -t0))
            return (1 - minus) * up - minus * down

        t0 = mpmath.findroot(slope, float(found.t0[0]))
        up, down = (
            (1 + a * a) * mpmath.ncdf(a) + a * mpmath.npdf(a) for a in (mpmath.mpf(t0), -t0)
        )
        value = (1 - minus) * up + minus * down
        assert float(found.value[0] / value) == pytest.approx(1.0, abs=1e-11)
    assert found.status[0] == hm.Status.CONVERGED


@pytest.mark.parametrize("teacher", [teachers.Sign(), teachers.Sign(noise=1e-9)])
def test_few_steps_lead_to_the_minimum_however_little_is_hidden(teacher, monkeypatch):
    monkeypatch.setattr(direction, "MAX_ITERATIONS", 8)
    hidden = np.logspace(-60, 0, 31)
    found = separating_direction(teacher, 1 - hidden, False, hidden)
    assert np.all(found.status == hm.Status.CONVERGED)


def test_symmetric_rules_ask_for_no_intercept():
    chi = np.array([0.2, 0.7])
    free, fixed = (
        separating_direction(teachers.Logistic(slope=3.0), chi, f) for f in (True, False)
    )
    np.testing.assert_array_equal(free.value, fixed.value)
    np.testing.assert_array_equal(free.t0, 0.0)


def test_mirrored_rules_mirror_the_intercept():
    chi = np.array([0.2, 0.7])
    up, down = (
        separating_direction(teachers.Sign(threshold=t, flip=0.1), chi, True) for t in (0.4, -0.4)
    )
    np.testing.assert_allclose(up.value, down.value, rtol=1e-13)
    np.testing.assert_allclose(up.t0, -down.t0, rtol=1e-9)
    assert np.all(up.bias > 0)


def test_labels_against_the_field_turn_the_direction():
    against = teachers.Custom(lambda nu: 1 - wavy(nu), rho=1.3)
    chi = np.array([0.5])
    along, turned = (
        separating_direction(teacher, chi, True) for teacher in (TEACHERS["wavy"], against)
    )
    np.testing.assert_allclose(turned.value, along.value, rtol=1e-11)
    np.testing.assert_allclose(turned.alignment, -along.alignment, rtol=1e-7)
    np.testing.assert_allclose(turned.bias, -along.bias, rtol=1e-7)
    assert along.alignment[0] > 0.1


@pytest.mark.slow
def test_points_of_a_batch_do_not_touch_one_another():
    chi = np.linspace(0, 1, 2 * direction.BLOCK + 3)
    together = separating_direction(TEACHERS["threshold"], chi, True)
    for i in (0, 17, direction.BLOCK, len(chi) - 1):
        alone = separating_direction(TEACHERS["threshold"], chi[[i]], True)
        assert alone.value[0] == pytest.approx(together.value[i], rel=1e-14)
    empty = separating_direction(TEACHERS["threshold"], np.empty(0), True)
    assert empty.value.shape == empty.status.shape == (0,)


class Unannounced(teachers.Sign):
    """A rule that does not say where its label changes."""

    def landmarks(self, y, V0):
        return np.empty((len(V0), 0))


def test_a_change_of_label_too_narrow_for_the_panels_gives_no_wrong_number():
    statuses = []
    for noise in (1e-2, 1e-4, 1e-6, 1e-8):
        parameters = {"noise": noise, "flip": 0.3, "threshold": -0.7}
        found = separating_direction(Unannounced(**parameters), np.ones(1), False)
        statuses.append(found.status[0])
        if statuses[-1] == hm.Status.CONVERGED:
            expected = separating_direction(teachers.Sign(**parameters), np.ones(1), False).value
            np.testing.assert_allclose(found.value, expected, rtol=1e-11)
    assert set(statuses) == {hm.Status.CONVERGED, hm.Status.QUADRATURE}


def test_a_minimum_that_was_not_found_says_so(monkeypatch):
    chi = np.array([0.9, nan])
    status = separating_direction(TEACHERS["threshold"], chi, True).status
    assert status.tolist() == [hm.Status.CONVERGED, hm.Status.NON_FINITE]
    monkeypatch.setattr(direction, "MAX_ITERATIONS", 2)
    lost = separating_direction(TEACHERS["threshold"], chi, True)
    assert lost.status[0] == hm.Status.MAX_ITERATIONS
    assert np.isnan([lost.value, lost.t, lost.t0, lost.alignment, lost.bias]).all()
    monkeypatch.undo()
    monkeypatch.setattr(direction, "RULES", (*[(7, 0)] * 3, (8, 0)))
    assert separating_direction(TEACHERS["threshold"], chi, True).status[0] == hm.Status.QUADRATURE
