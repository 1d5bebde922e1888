"""The Bayes-optimal equations: labels, features, free entropy, and the choice of a fixed point."""

from itertools import product

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr

import hiddenmanifold as hm
from given import random_features
from hiddenmanifold.errors import Status
from hiddenmanifold.theory.bayes.fixed_points import (
    Equations,
    bayes_optimal,
    fixed_points,
    tabulated,
)
from hiddenmanifold.theory.bayes.label_information import (
    BinaryInformation,
    RealInformation,
    Table,
    information_of,
    least_error,
)
from hiddenmanifold.theory.solver.settings import Tolerances
from seeds import sampled

T = hm.teachers
FINE = 3  # a level of quadrature


def lopsided(nu):
    return 0.1 + 0.85 * expit(3.0 * nu + 0.5)


RULES = {
    "sign": T.Sign(),
    "noisy": T.Sign(noise=0.3, flip=0.05, threshold=0.4, rho=1.7),
    "threshold": T.Sign(threshold=-0.6, rho=0.5),
    "logistic": T.Logistic(slope=2.0, threshold=0.3, flip=0.02),
    "window": T.Steps((-1.0, 1.0)),
    "three": T.Steps((-1.0, 0.0, 1.0)),
    "upside down": T.Steps((0.2,), 1),
    "custom": T.Custom(lopsided, rho=1.3),
}
any_rule = pytest.mark.parametrize("name", RULES)
ELLS = np.array([-20.0, -3.0, 0.0, 1.5, 4.0, 9.0])


def label_probability(teacher, omega, V0):
    """P(+) and its slope at fields of mean omega (an array), written for each kind of rule."""
    omega, S = np.atleast_1d(omega)[:, None], np.sqrt(V0)
    if isinstance(teacher, T.Steps):
        sign = -teacher.first * np.where(np.arange(len(teacher.changes)) % 2, -1.0, 1.0)
        t = (omega - np.array(teacher.changes)) / S
        return (teacher.first > 0) + ndtr(t) @ sign, normal(t) @ sign / S
    if isinstance(teacher, T.Sign):
        S = np.sqrt(V0 + teacher.noise)
        t, weight = (omega[:, 0] + teacher.threshold) / S, 1 - 2 * teacher.flip
        return teacher.flip + weight * ndtr(t), weight * normal(t) / S
    if isinstance(teacher, T.Logistic):
        weight = 1 - 2 * teacher.flip

        def probability(nu):
            return teacher.flip + weight * expit(teacher.slope * (nu + teacher.threshold))
    else:
        probability = teacher.probability
    z = np.arange(-9.5, 9.51, 0.05)  # for a smooth rule the trapezoidal one is exact
    mass = 0.05 * normal(z) * probability(omega + S * z)
    return mass.sum(1), mass @ z / S


def normal(x):
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def fisher_information(teacher, q):
    """The average of P'^2/(P (1 - P)) over the posterior's mean, on many short panels."""
    V0, k = teacher.rho - q, np.sqrt(q)
    changes = np.array(teacher.clean._terms[2]) / k
    widths = np.sqrt(V0 / q) * np.linspace(-9.0, 9.0, 61)
    cuts = np.concatenate([np.linspace(-9.0, 9.0, 61), (changes[:, None] + widths).ravel()])
    cuts = np.unique(np.clip(cuts, -9.0, 9.0))
    x, w = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(cuts)[:, None]
    xi = (cuts[:-1, None] + half + half * x).ravel()
    P, slope = label_probability(teacher, k * xi, V0)
    certain = np.minimum(P, 1 - P) < 1e-15
    score = slope**2 / np.where(certain, 1.0, P * (1 - P)) * ~certain
    return (half * w).ravel() @ (normal(xi) * score)


# --- labels ------------------------------------------------------------------------------------


@any_rule
def test_information_is_the_fisher_information_of_the_label(name):
    labels = information_of(RULES[name])
    known = labels.information(ELLS, FINE)
    q, V0 = labels.moments(ELLS)
    expected = [fisher_information(labels.teacher, value) for value in q]
    np.testing.assert_allclose(np.exp(known.log_share) / V0, expected, rtol=2e-9)
    assert (known.error < 1e-12).all()


@any_rule
def test_prior_information_is_the_limit(name):
    labels = information_of(RULES[name])
    nothing = np.exp(labels.information(np.array([-60.0]), FINE).log_share[0]) / labels.rho
    assert labels.prior_information == pytest.approx(nothing, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("teacher", [*RULES.values(), T.Linear(noise=0.2, rho=0.7), T.Linear()])
def test_slope_of_the_information_is_its_derivative(teacher):
    labels, step = information_of(teacher), 1e-3
    ell = np.array([-6.0, -3.0, 0.0, 1.5, 4.0, 9.0])

    def share(offset):
        return labels.information(ell + offset, FINE).log_share

    slope = (8 * (share(step) - share(-step)) - (share(2 * step) - share(-2 * step))) / (12 * step)
    np.testing.assert_allclose(labels.information(ell, FINE).slope, slope, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@any_rule
def test_labels_tell_less_than_the_field_and_more_where_more_is_known(name):
    labels = information_of(RULES[name])
    ell = np.arange(-20.0, 60.0, 0.5)
    known = labels.information(ell, 2)
    log_information = known.log_share - np.log(labels.moments(ell)[1])
    assert np.isfinite(known.log_share).all()  # not even where labels are certain, or windows close
    assert (known.log_share <= 1e-12).all()
    assert (np.diff(log_information) >= -1e-9).all()


@pytest.mark.parametrize(
    ("rule", "power"), [("threshold", -0.5), ("window", -0.5), ("noisy", -1.0), ("custom", -1.0)]
)
def test_information_of_a_narrow_change_follows_its_power_law(rule, power):
    labels = information_of(RULES[rule])
    edge = min(labels.resolved, 40.0)
    ell = edge + np.array([-2.0, 0.0, 3.0, 30.0])
    known = labels.information(ell, 3)
    expected = known.log_share[0] + power * (ell - ell[0])
    np.testing.assert_allclose(known.log_share, expected, atol=3e-9)
    assert (known.error < 1e-9).all()


def test_power_law_that_does_not_hold_is_reported():
    """Near a corner where P vanishes linearly E grows like log(1/V0)."""
    ramp = T.Custom(lambda nu: np.clip(0.5 + nu, 0.0, 1.0), kinks=(-0.5, 0.5))
    labels = information_of(ramp)
    assert labels.information(np.array([labels.resolved + 5.0]), 3).error > 1e-3


@pytest.mark.slow
@any_rule
def test_table_follows_the_quadrature(name):
    labels = information_of(RULES[name])
    table = Table.of(labels, 0.25 * np.arange(-20, 41))
    ell = np.linspace(-4.9, 9.9, 321)
    known = labels.information(ell, FINE)
    value, slope = table(ell)
    np.testing.assert_allclose(value, known.log_share, atol=2e-3)
    np.testing.assert_allclose(slope, known.slope, atol=4e-2)
    np.testing.assert_allclose(table(table.ell)[0], table.log_share, rtol=1e-13, atol=1e-13)


def test_entropy_of_linear_labels_is_that_of_a_normal_law():
    teacher = T.Linear(noise=0.2, rho=0.7)
    ell = np.array([-1.0, 2.0])
    variance = 0.2 + 0.7 / (1 + np.exp(ell))
    entropy = -0.5 * np.log(variance) - 0.5 * np.log(2 * np.pi) - 0.5
    np.testing.assert_allclose(RealInformation(teacher).negentropy(ell), entropy, rtol=1e-14)


@any_rule
@pytest.mark.parametrize("q_share", [0.3, 0.9])
def test_negentropy_is_the_average_of_z_log_z(name, q_share):
    teacher = RULES[name]
    q = q_share * teacher.rho
    ell = np.array([np.log(q_share / (1 - q_share))])

    def integrand(xi):
        P = label_probability(teacher, np.sqrt(q) * xi, teacher.rho - q)[0][0]
        return normal(xi) * sum(Z * np.log(Z) for Z in (P, 1 - P) if 0 < Z < 1)

    expected = quad(integrand, -8.5, 8.5, epsabs=1e-13, limit=400)[0]
    assert BinaryInformation(teacher).negentropy(ell)[0] == pytest.approx(expected, rel=1e-10)


# --- errors ------------------------------------------------------------------------------------

K = np.array([1e-6, 0.3, 0.7, 0.95, np.sqrt(1 - 1e-6)])
V0 = 1 - K**2


def test_closed_form_of_the_sign_rule_is_the_generic_path():
    generic = least_error(T.Steps((0.0,)), K, V0)
    np.testing.assert_allclose(least_error(T.Sign(), K, V0), generic, rtol=1e-10)
    np.testing.assert_allclose(generic, np.arctan2(np.sqrt(V0), K) / np.pi, rtol=1e-10)


def test_rule_upside_down_is_learned_as_well():
    np.testing.assert_allclose(
        least_error(T.Steps((0.0,), 1), K, V0), least_error(T.Sign(), K, V0), rtol=1e-10
    )


@pytest.mark.parametrize("threshold", [0.3, -1.2])
def test_threshold_that_decides_is_the_generic_path(threshold):
    generic = least_error(T.Steps((-threshold,)), K, V0)
    np.testing.assert_allclose(least_error(T.Sign(threshold=threshold), K, V0), generic, rtol=1e-9)


def test_logistic_rule_is_the_same_as_a_custom_one():
    logistic = T.Logistic(slope=2.0, threshold=0.3, flip=0.05)
    custom = T.Custom(lambda nu: 0.05 + 0.9 * expit(2.0 * (nu + 0.3)))
    k, variance = K[1:4], V0[1:4]
    np.testing.assert_allclose(
        least_error(logistic, k, variance), least_error(custom, k, variance), rtol=1e-10
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["window", "three", "custom", "noisy", "logistic"])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_error_is_the_average_of_the_less_probable_label(name, share):
    """On a grid so fine that the kinks do not matter."""
    teacher = RULES[name]
    k, variance = np.sqrt(share * teacher.rho), (1 - share) * teacher.rho
    step = 5e-4
    xi = np.arange(-8.5, 8.5, step) + step / 2
    P = label_probability(teacher, k * xi, variance)[0]
    expected = step * normal(xi) @ np.minimum(P, 1 - P)
    found = least_error(teacher, np.array([k]), np.array([variance]))
    np.testing.assert_allclose(found, expected, rtol=3e-6)


@pytest.mark.parametrize("teacher", [T.Sign(threshold=6.5), T.Steps((-6.5,)), T.Steps((-6.5, 7.0))])
def test_rare_label_is_never_predicted_and_keeps_its_digits(teacher):
    rare = min(teacher.label_marginals[:2])
    error = least_error(teacher, np.array([0.0, 1e-3, 0.1]), 1 - np.array([0.0, 1e-3, 0.1]) ** 2)
    np.testing.assert_allclose(error, rare, rtol=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_knowing_more_never_hurts(seed):
    rng = np.random.default_rng(seed)
    changes = np.unique(rng.normal(size=rng.integers(1, 5)).round(3))
    labels = information_of(T.Steps(tuple(changes.tolist()), int(rng.choice([1, -1]))))
    error, clean = labels.errors(np.linspace(-8.0, 12.0, 60))
    assert (np.diff(error) <= 1e-10).all()
    assert error[0] <= min(labels.teacher.label_marginals[:2]) + 1e-12
    np.testing.assert_array_equal(error, clean)


# --- features ----------------------------------------------------------------------------------


def exact_log_odds_gap(s, weights_d, zeros, snr, u):
    """w and its derivative to 60 digits, from eigenvalues."""
    with mp.workdps(60):
        u = mp.mpf(u)
        G = [mp.mpf(snr) * x / (1 + mp.mpf(snr) * x) for x in map(mp.mpf, s)]
        c = [mp.mpf(x) for x in weights_d]

        def average(f):
            return sum(w * f(g) for w, g in zip(c, G, strict=True))

        A = average(lambda g: g**2 / (1 + u * g))
        B = average(lambda g: 1 - g + g / (1 + u * g)) + zeros
        dA = -average(lambda g: g**3 / (1 + u * g) ** 2)
        dB = -average(lambda g: g**2 / (1 + u * g) ** 2)
        return float(mp.log(A / B)), float(u * (dA / A - dB / B))


@pytest.mark.parametrize("kappas", [(0.8, 0.6), (1e-3, 1.0), (1.0, 1e-3), (1.0, 1e-9)])
@pytest.mark.parametrize("gamma", [1e-20, 1e-3, 0.6, 1.0, 1e3])
def test_log_odds_gap_keeps_its_digits_for_any_spectrum_and_precision(kappas, gamma):
    visible = min(gamma, 1.0)
    s, share = np.array([0.2, 0.9, 2.2]), np.array([0.3, 0.5, 0.2])
    s = s / (share @ s) / visible
    weights = (*(share * visible), 1.0 - visible)
    projection = hm.projections.Spectrum((*s, 0.0), weights, d_over_p=gamma)
    s, weights = projection._positive
    zeros = max(0.0, 1 - 1 / gamma)
    posterior = random_features(projection, *kappas).posterior(np.array([gamma]))
    for u in (1e-30, 1e-6, 0.03, 1.0, 20.0, 1e6, 1e15):
        w, dw = posterior.log_odds_gap(np.array([np.log(u)]))
        expected = exact_log_odds_gap(s, weights / gamma, zeros, kappas[0] ** 2 / kappas[1] ** 2, u)
        # the derivative is -1 plus a part that matters, or small by itself
        assert w[0] == pytest.approx(expected[0], rel=3e-13, abs=3e-13 * (u <= 1)), u
        assert dw[0] == pytest.approx(expected[1], rel=1e-11, abs=3e-13 * (u <= 1)), u


@pytest.mark.parametrize("gamma", [1e-30, 0.3, 1.0, 5.0])
def test_log_odds_gap_of_gaussian_features_follows_marchenko_and_pastur(gamma):
    posterior = random_features(hm.projections.Gaussian(), 0.8, 0.6).posterior(np.array([gamma]))

    def average(f):
        """Over the eigenvalues of F F^T/d, with the law's square roots substituted away."""

        def integrand(phi):
            root, sine, cosine = np.sqrt(gamma), np.sin(phi / 2), np.cos(phi / 2)
            lam = (1 - root) ** 2 + 4 * root * cosine**2
            return 8 / np.pi * (sine * cosine) ** 2 / lam * f(lam / gamma)

        zeros = max(0.0, 1 - 1 / gamma)
        return quad(integrand, 0, np.pi, epsabs=0, epsrel=1e-11, limit=300)[0] + zeros * f(0.0)

    def G(s):
        return 0.64 * s / (0.64 * s + 0.36)

    for u in (1e-8, 0.1, 3.0, 1e3):
        A = average(lambda s, u=u: G(s) ** 2 / (1 + u * G(s)))
        B = average(lambda s, u=u: 0.36 / (0.64 * s + 0.36) + G(s) / (1 + u * G(s)))
        w, _ = posterior.log_odds_gap(np.array([np.log(u)]))
        assert w[0] == pytest.approx(np.log(A / B), rel=1e-10, abs=1e-10)
        if u > 0.01:  # else it cancels
            entropy = average(lambda s, u=u: u * G(s) / (1 + u * G(s)) - np.log1p(u * G(s))) / 2
            assert posterior.free_entropy(np.array([np.log(u)]))[0] == pytest.approx(
                entropy, rel=1e-9, abs=0.0
            )


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("kind", ["Gaussian", "Orthogonal"])
def test_linear_features_are_the_limit_of_almost_linear_ones(kind, gamma):
    projection = getattr(hm.projections, kind)()
    log_u = np.log([0.1, 2.0, 50.0])
    gammas = np.full(3, gamma)
    linear = random_features(projection, 1.0, 0.0).posterior(gammas)
    almost = random_features(projection, 1.0, 1e-9).posterior(gammas)
    np.testing.assert_allclose(
        linear.log_odds_gap(log_u)[0], almost.log_odds_gap(log_u)[0], atol=1e-6
    )
    np.testing.assert_allclose(linear.free_entropy(log_u), almost.free_entropy(log_u), atol=1e-6)
    np.testing.assert_allclose(linear.shown, min(1.0, 1 / gamma), rtol=1e-12)
    np.testing.assert_allclose(linear.hidden, max(0.0, 1 - 1 / gamma), rtol=1e-12)


# --- free entropy and fixed points --------------------------------------------------------------


def equations_of(teacher, n_over_d, gamma=1.0, activation="identity", projection="orthogonal"):
    model = hm.Model(activation=activation, projection=projection, teacher=teacher, loss="square")
    n_over_d = np.atleast_1d(np.asarray(n_over_d, dtype=float))
    posterior = model.features.posterior(np.full_like(n_over_d, gamma))
    return Equations(information_of(teacher), posterior, np.log(n_over_d))


def slope_of_the_free_entropy(equations, log_u):
    def at(step):
        return equations.free_entropy(log_u + step)

    step = 2e-3
    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)


MODELS = [("erf", "gaussian", 0.4), ("sign", "orthogonal", 1.7), ("identity", "orthogonal", 1.0)]


@pytest.mark.parametrize("teacher", [*RULES.values(), T.Linear(noise=0.1, rho=0.7)])
@pytest.mark.parametrize(("activation", "projection", "gamma"), sampled(MODELS, MODELS[:2]))
def test_fixed_points_are_where_the_free_entropy_is_stationary(
    teacher, activation, projection, gamma
):
    equations = equations_of(teacher, [1.5, 6.0], gamma, activation, projection)
    found = fixed_points(equations, tabulated([equations]))
    there = found.ell > -np.inf
    assert (found.status == Status.CONVERGED).all()
    assert there.any()
    own = equations[found.owner[there]]
    slope = slope_of_the_free_entropy(own, found.log_u[there])
    np.testing.assert_allclose(slope, 0.0, atol=1e-9)
    # and a little aside the free entropy is lower: the fixed points are stable
    for step in (-0.05, 0.05):
        aside = own.free_entropy(found.log_u[there] + step)
        assert (aside < own.free_entropy(found.log_u[there])).all()


def test_slope_of_the_free_entropy_is_the_mismatch_of_the_two_sides():
    """d phi/d log u = (dq/d log u)(n/d E - u/rho)/2, anywhere."""
    equations = equations_of(RULES["noisy"], 2.0, 0.4, "erf", "gaussian")
    log_u, step = np.array([0.7]), 1e-4
    rho = equations.labels.rho

    def overlap(shift):
        ell = log_u + shift + equations.posterior.log_odds_gap(log_u + shift)[0]
        return equations.labels.moments(ell)[0][0]

    ell = log_u + equations.posterior.log_odds_gap(log_u)[0]
    information = fisher_information(RULES["noisy"], overlap(0.0))
    dq = (overlap(step) - overlap(-step)) / (2 * step)
    expected = 0.5 * dq * (2.0 * information - np.exp(log_u[0]) / rho)
    assert slope_of_the_free_entropy(equations, log_u)[0] == pytest.approx(expected, rel=1e-6)
    assert abs(expected) > 1e-3
    assert ell[0] < 5.0


def test_free_entropy_is_that_of_the_scalar_problems():
    """Its value, from eigenvalues and adaptive quadrature."""
    teacher, gamma, n_over_d, u = RULES["noisy"], 1.7, 2.0, 1.9
    equations = equations_of(teacher, n_over_d, gamma, "sign", "orthogonal")
    G = 2 / np.pi  # eigenvalues are 1, on a fraction 1/gamma
    q = teacher.rho * u * G**2 / (1 + u * G) / gamma

    def integrand(xi):
        P = label_probability(teacher, np.sqrt(q) * xi, teacher.rho - q)[0][0]
        return normal(xi) * (P * np.log(P) + (1 - P) * np.log(1 - P))

    labels = quad(integrand, -8.5, 8.5, epsabs=1e-13)[0]
    prior = (u * G / (1 + u * G) - np.log1p(u * G)) / (2 * gamma)
    found = equations.free_entropy(np.array([np.log(u)]))[0]
    assert found == pytest.approx(prior + n_over_d * labels, rel=1e-11)


def optimum(
    teacher, n_over_d, gamma=1.0, activation="identity", projection="orthogonal", **options
):
    model = hm.Model(activation=activation, projection=projection, teacher=teacher, loss="square")
    n_over_d = np.atleast_1d(np.asarray(n_over_d, dtype=float))
    return bayes_optimal(model, n_over_d * gamma, np.full_like(n_over_d, gamma), **options)


def test_the_fixed_point_of_largest_free_entropy_is_chosen():
    """A rule of three changes learns suddenly: two stable fixed points, and Maxwell's rule."""
    n_over_d = np.array([2.0, 2.9, 4.0, 6.0, 10.0])
    equations = equations_of(RULES["three"], n_over_d)
    found = fixed_points(equations, tabulated([equations]))
    assert np.bincount(found.owner).tolist() == [1, 2, 2, 2, 1]
    chosen = optimum(RULES["three"], n_over_d)["overlap"]
    for point in (1, 2, 3):
        mine = np.flatnonzero(found.owner == point)
        entropy = equations[found.owner[mine]].free_entropy(found.log_u[mine])
        best = equations.labels.moments(found.ell[mine[np.argmax(entropy)]])[0]
        assert chosen[point] == pytest.approx(best, rel=1e-9)
        assert np.ptp(entropy) > 1e-2
    # first the ignorant one, then the other
    assert (chosen[:2] < 0.1).all()
    assert (chosen[2:] > 0.9).all()


@pytest.mark.slow
def test_at_the_transition_the_free_entropies_cross():
    low, high = 2.0, 6.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        learned = optimum(RULES["three"], middle)["overlap"][0] > 0.5
        low, high = (low, middle) if learned else (middle, high)
    equations = equations_of(RULES["three"], [low, high])
    found = fixed_points(equations, tabulated([equations]))
    entropy = equations[found.owner].free_entropy(found.log_u)
    for point in (0, 1):
        assert np.ptp(entropy[found.owner == point]) < 1e-8
        assert np.ptp(found.ell[found.owner == point]) > 3.0


@pytest.mark.parametrize("half_width", [0.67449, 2.0])
@pytest.mark.parametrize(
    ("activation", "gamma", "G"), [("identity", 1.0, 1.0), ("sign", 1.4, 2 / np.pi)]
)
def test_an_even_rule_is_learned_from_where_its_curvature_suffices(
    half_width, activation, gamma, G
):
    """Around q = 0 a turn multiplies q by (n/d) rho² <G²> sum Z''²/Z."""
    t = half_width
    curvature = 2 * t * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    window = 2 * ndtr(t) - 1
    critical = gamma / (G**2 * curvature**2 * (1 / window + 1 / (1 - window)))
    found = optimum(
        T.Steps((-t, t)), critical * np.array([0.5, 0.9999, 1.001, 1.1]), gamma, activation
    )
    assert (found["status"] == Status.CONVERGED).all()
    assert (found["overlap"][:2] == 0).all()
    assert 0 < found["overlap"][2] < 0.01 < found["overlap"][3]
    guess = min(window, 1 - window)
    np.testing.assert_allclose(found["generalisation_error"][:2], guess, rtol=1e-11)


@pytest.mark.slow
def test_an_even_rule_given_by_its_probability_tells_exactly_nothing_at_first():
    """Its slope at q = 0 is rounding: there is no fixed point where that puts one."""
    ratios = np.geomspace(0.01, 100.0, 9)
    n_over_d, gamma = (a.ravel() for a in np.meshgrid(ratios, ratios))
    for rho in (1.0, 2.7):
        even = T.Custom(lambda nu: 0.5 + 0.4 * np.cos(nu), rho=rho)
        assert even.label_marginals[2] == 0.0
        found = optimum(even, n_over_d, gamma, "tanh", "gaussian")
        assert (found["status"] == Status.CONVERGED).all()
        assert (found["overlap"][n_over_d < 1] == 0.0).all()
        assert (found["overlap"] > 0.5).any()


def test_a_point_is_lost_if_one_of_its_fixed_points_is():
    found = optimum(RULES["three"], 4.0, tolerances=Tolerances(quadrature=1e-20))
    assert found["status"][0] != Status.CONVERGED
    assert np.isnan(found["generalisation_error"][0])
    assert np.isnan(found["overlap"][0])
    assert np.isfinite(found["residual"][0])


# --- all the way -------------------------------------------------------------------------------


EVERY_RULE = {**RULES, "linear": T.Linear(), "noisy linear": T.Linear(noise=0.3)}
EVERY_RULE |= {"far threshold": T.Sign(threshold=9.0), "one label": T.Steps(())}
FEATURES = list(product(["identity", "sign"], ["gaussian", "orthogonal"]))
# each rule with two of the four kinds of features, which share neither part
TWO_OF_FEATURES = [
    (name, *FEATURES[which])
    for k, name in enumerate(EVERY_RULE)
    for which in ((0, 3), (1, 2))[k % 2]
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "activation", "projection"),
    sampled([(name, *both) for name, both in product(EVERY_RULE, FEATURES)], TWO_OF_FEATURES),
)
def test_every_ratio_from_nothing_to_infinity_converges(name, activation, projection):
    teacher = EVERY_RULE[name]
    ratios = np.array([1e-30, 1e-10, 0.01, 0.5, 1.0, 1 + 1e-9, 3.0, 1e3, 1e10, 1e30])
    cheap = not isinstance(teacher, T.Custom)
    n_over_d, gamma = (a.ravel() for a in np.meshgrid(ratios, ratios if cheap else ratios[1::3]))
    model = hm.Model(activation=activation, projection=projection, teacher=teacher, loss="square")
    found = bayes_optimal(model, n_over_d * gamma, gamma)
    assert (found["status"] == Status.CONVERGED).all()
    error = found["generalisation_error"].reshape(-1, len(ratios))
    guess = np.nanmax(error)
    # more samples and more features never hurt
    assert (np.diff(error, axis=1) <= 1e-10 * guess).all()
    assert (np.diff(error, axis=0) >= -1e-10 * guess).all()
    assert (found["overlap"] >= 0).all()
    assert (found["overlap"] <= teacher.rho * (1 + 1e-15)).all()
    assert (found["clean_error"] <= found["generalisation_error"] + 1e-10 * guess).all()


def test_small_overlaps_keep_their_digits():
    """For few samples q = (n/d) rho² E <G²>, whatever the magnitude."""
    n_over_d = np.array([1e-30, 1e-20, 1e-12])
    found = optimum(T.Sign(), n_over_d, 0.3, "sign", "gaussian")
    kappas = np.sqrt([2 / np.pi, 1 - 2 / np.pi])
    G = random_features(hm.projections.Gaussian(), *kappas).posterior(np.array([0.3]))
    second = np.exp(G.log_odds_gap(np.array([-60.0]))[0][0])
    np.testing.assert_allclose(found["overlap"], n_over_d * 2 / np.pi * second, rtol=1e-11)


def test_noiseless_linear_labels_are_learned_at_once_and_for_all():
    """V0 = rho (1 - n/d) up to n/d = 1, and nothing is left beyond; the threshold is critical."""
    n_over_d = np.array([0.25, 0.5, 1.0, 1.5])
    found = optimum(T.Linear(rho=2.0), n_over_d)
    assert (found["status"] == Status.CONVERGED).all()
    np.testing.assert_allclose(found["clean_error"], 2.0 * np.maximum(0, 1 - n_over_d), atol=1e-40)
    # in the kernel limit too
    kernel = optimum(T.Linear(rho=2.0), n_over_d, 1e-40, "sign", "gaussian")
    assert (kernel["status"] == Status.CONVERGED).all()
    np.testing.assert_allclose(kernel["clean_error"], found["clean_error"], rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_a_point_does_not_depend_on_its_batch():
    rng = np.random.default_rng(5)
    gamma, ratio = 10.0 ** rng.uniform(-2, 2, (2, 30))
    model = hm.Model(activation="erf", projection="gaussian", teacher=RULES["three"], loss="square")
    together = bayes_optimal(model, ratio * gamma, gamma)
    for i in (0, 7, 29):
        alone = bayes_optimal(model, ratio[[i]] * gamma[[i]], gamma[[i]])
        for name in ("generalisation_error", "overlap"):
            assert alone[name][0] == pytest.approx(together[name][i], rel=1e-11, abs=0.0)
