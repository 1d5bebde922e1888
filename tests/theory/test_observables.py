"""Test and training errors against integrals over the joint law of field and prediction."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import expit, ndtr

import hiddenmanifold as hm
from hiddenmanifold import losses, teachers
from hiddenmanifold.theory.scores import errors_of_labels


def probability_of_custom(nu):
    return 0.5 + 0.45 * np.tanh(nu - 0.3)


TEACHERS = {
    "sign": teachers.Sign(),
    "noisy sign": teachers.Sign(noise=0.3, flip=0.07, threshold=0.4, rho=1.7),
    "threshold": teachers.Sign(threshold=-0.8, rho=0.5),
    "logistic": teachers.Logistic(slope=2.0),
    "biased logistic": teachers.Logistic(slope=1.5, threshold=0.4, flip=0.05, rho=1.7),
    "custom": teachers.Custom(probability_of_custom, rho=1.3),
}
every_teacher = pytest.mark.parametrize("teacher", TEACHERS.values(), ids=TEACHERS)


def probability(teacher, y, nu):
    """P(y | nu), from the definition of the rule."""
    if isinstance(teacher, teachers.Custom):
        plus = probability_of_custom(nu)
        return plus if y > 0 else 1 - plus
    z = y * (nu + teacher.threshold)
    if isinstance(teacher, teachers.Logistic):
        keep = expit(teacher.slope * z)
    else:
        keep = np.where(z > 0, 1.0, 0.0)
        if teacher.noise > 0:
            keep = ndtr(z / np.sqrt(teacher.noise))
    return teacher.flip + (1 - 2 * teacher.flip) * keep


def jump(teacher):
    """Field at which the rule is steepest."""
    return -getattr(teacher, "threshold", 0.0)


def wrong_side(teacher, correlation, cuts):
    """Sum over labels of P(y xi < cut_y), integrated over the teacher's field.

    Given the field nu, the standardised prediction xi is normal; the library integrates the other
    way round, over xi, with the label law given xi.
    """
    rho = teacher.rho
    edges = np.unique([*np.linspace(-10, 10, 81) * np.sqrt(rho), jump(teacher)])
    x, w = np.polynomial.legendre.leggauss(24)
    half = 0.5 * np.diff(edges)[:, None]
    nu = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
    weight = (half * w).ravel() * np.exp(-0.5 * nu**2 / rho) / np.sqrt(2 * np.pi * rho)
    mean, rest = correlation * nu / np.sqrt(rho), np.sqrt(1 - correlation**2)
    return sum(
        weight @ (probability(teacher, y, nu) * ndtr((cut - y * mean) / rest))
        for y, cut in cuts.items()
    )


def random_points(points=12, seed=0):
    """Correlations of field and prediction, and intercepts in units of the deviation."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.97, 0.97, points), rng.uniform(-1.5, 1.5, points)


def slope_and_rest(teacher, correlation):
    """The library's arguments: k and V0 of the given correlation."""
    return np.sqrt(teacher.rho) * correlation, teacher.rho * (1 - correlation**2)


@every_teacher
def test_error_is_the_probability_of_the_wrong_sign(teacher):
    correlation, bias = random_points()
    k, V0 = slope_and_rest(teacher, correlation)
    for b in (bias, np.zeros_like(bias)):
        found = errors_of_labels.test_error(teacher, k, V0, b)
        points = zip(correlation, b, strict=True)
        expected = [wrong_side(teacher, c, {1: -at, -1: at}) for c, at in points]
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["noisy sign", "threshold", "biased logistic"])
def test_error_is_a_double_integral_over_field_and_prediction(name):
    teacher, correlation, bias = TEACHERS[name], 0.6, -0.35
    rho, k = teacher.rho, 0.6 * np.sqrt(teacher.rho)
    inverse = np.linalg.inv(np.array([[rho, k], [k, 1.0]]))
    height = np.sqrt(np.linalg.det(inverse)) / (2 * np.pi)

    def integrand(xi, nu, y):
        quadratic = inverse[0, 0] * nu**2 + 2 * inverse[0, 1] * nu * xi + inverse[1, 1] * xi**2
        return probability(teacher, y, nu) * height * np.exp(-0.5 * quadratic)

    total, reach = 0.0, 8.0
    for y, low, high in ((1, -reach, -bias), (-1, -bias, reach)):
        for left, right in ((-reach, jump(teacher)), (jump(teacher), reach)):
            total += dblquad(integrand, left, right, low, high, (y,), 1e-11, 1e-11)[0]
    k, V0 = (np.array([v]) for v in slope_and_rest(teacher, correlation))
    np.testing.assert_allclose(
        errors_of_labels.test_error(teacher, k, V0, np.array([bias])), total, rtol=1e-9
    )


@pytest.mark.parametrize(
    "teacher",
    [teachers.Sign(), teachers.Sign(noise=0.4, flip=0.1, rho=2.0), teachers.Logistic(slope=2.0)],
    ids=["sign", "noisy sign", "logistic"],
)
def test_closed_form_without_bias_is_the_quadrature(teacher):
    a = np.array([-3.0, -0.4, 0.0, 0.2, 1.0, 4.0, 9.0, 14.0])  # up to V0 = 1e-12
    k, V0 = np.sqrt(teacher.rho) * np.tanh(a), teacher.rho / np.cosh(a) ** 2
    closed = teacher.error_without_bias(k, V0)
    zero = np.zeros_like(k)
    np.testing.assert_allclose(
        errors_of_labels.misclassified(teacher, k, V0, {1: zero, -1: zero}), closed, rtol=1e-11
    )


@pytest.mark.parametrize(
    ("noise", "flip", "rho"), [(0.0, 0.0, 1.0), (0.4, 0.0, 2.0), (0.4, 0.1, 0.6)]
)
def test_error_without_bias_is_an_angle(noise, flip, rho):
    teacher = teachers.Sign(noise=noise, flip=flip, rho=rho)
    correlation = np.linspace(-0.99, 0.99, 23)
    k, V0 = slope_and_rest(teacher, correlation)
    Q = 1.7
    M = correlation * np.sqrt(rho * Q)
    noisy = flip + (1 - 2 * flip) * np.arccos(M / np.sqrt((rho + noise) * Q)) / np.pi
    clean = np.arccos(M / np.sqrt(rho * Q)) / np.pi
    zero = np.zeros_like(k)
    np.testing.assert_allclose(errors_of_labels.test_error(teacher, k, V0, zero), noisy, rtol=1e-12)
    np.testing.assert_allclose(
        errors_of_labels.test_error(teacher.clean, k, V0, zero), clean, rtol=1e-12
    )


def test_error_of_an_almost_learned_teacher_keeps_its_digits():
    a = np.array([12.0, 16.0, 18.0])
    k, V0 = np.tanh(a), 1 / np.cosh(a) ** 2
    zero = np.zeros_like(k)
    # the angle whose tangent is sqrt(V0)/k
    np.testing.assert_allclose(
        errors_of_labels.test_error(teachers.Sign(), k, V0, zero), 2 * np.exp(-a) / np.pi, rtol=1e-9
    )


# slope of each loss at margin zero: the prox of m is below zero where m + V slope < 0
PUSH = {
    "square": (losses.Square(), 1.0),
    "logistic": (losses.Logistic(), 0.5),
    "hinge": (losses.Hinge(), 1.0),
    "squared hinge": (losses.SquaredHinge(), 1.0),
    "smoothed hinge": (losses.SmoothedHinge(0.3), 1.0),
    "wide smoothed hinge": (losses.SmoothedHinge(4.0), 0.25),
    "huber": (losses.Huber(0.6), 0.6),
    "wide huber": (losses.Huber(3.0), 1.0),
    "absolute": (losses.Absolute(), 1.0),
}


@every_teacher
@pytest.mark.parametrize(("loss", "slope"), PUSH.values(), ids=PUSH)
def test_training_error_counts_negative_proximal_margins(loss, slope, teacher):
    rng = np.random.default_rng(2)
    correlation, intercept = random_points(4, seed=1)
    k, V0 = slope_and_rest(teacher, correlation)
    V, deviation = 10 ** rng.uniform(-1.5, 0.3, 4), 10 ** rng.uniform(-0.5, 0.7, 4)
    for b in (intercept, np.zeros(4)):
        law = errors_of_labels.Predictions(V, deviation, b, slope=k, V0=V0)
        found = errors_of_labels.training_error(teacher, loss, law)
        expected = [
            wrong_side(
                teacher,
                correlation[i],
                {y: (-V[i] * slope - y * b[i]) / deviation[i] for y in (1, -1)},
            )
            for i in range(4)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("loss", ["square", "huber", "absolute"])
def test_regression_error_counts_the_noise_of_new_labels(loss):
    teacher = teachers.Linear(noise=0.3, rho=1.7)
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)
    ds = hm.predict(model, n_over_d=[0.7, 3.0], p_over_n=[0.4, 2.0], regularisation=0.1)
    excess = teacher.rho + ds.Q - 2 * ds.M
    np.testing.assert_allclose(ds.clean_error, excess, rtol=1e-12)
    np.testing.assert_allclose(ds.generalisation_error, excess + teacher.noise, rtol=1e-12)


@every_teacher
@pytest.mark.parametrize("intercept", [False, True])
def test_predicted_errors_follow_from_the_predicted_overlaps(teacher, intercept):
    model = hm.Model(
        activation="erf", projection="gaussian", teacher=teacher, loss="hinge", intercept=intercept
    )
    ds = hm.predict(model, n_over_d=2.0, p_over_n=[0.3, 1.5], regularisation=[0.01, 1.0])
    flat = {name: ds[name].values.ravel() for name in ds}
    for i in range(4):
        M, Q, V, b = (flat[name][i] for name in ("M", "Q", "V", "intercept"))
        correlation, sd = M / np.sqrt(teacher.rho * Q), np.sqrt(Q)
        expected = {
            "generalisation_error": wrong_side(teacher, correlation, {1: -b / sd, -1: b / sd}),
            "training_error": wrong_side(
                teacher, correlation, {y: (-V - y * b) / sd for y in (1, -1)}
            ),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(flat[name][i], value, rtol=1e-9, atol=1e-15, err_msg=name)
    if not intercept:
        assert not flat["intercept"].any()


def test_clean_error_is_that_against_the_more_probable_label():
    teacher = TEACHERS["custom"]
    correlation, bias = random_points()
    k, V0 = slope_and_rest(teacher, correlation)
    found = errors_of_labels.test_error(teacher.clean, k, V0, bias)
    clean = teachers.Sign(threshold=-0.3, rho=teacher.rho)  # P(+|nu) = 1/2 at nu = 0.3
    points = zip(correlation, bias, strict=True)
    expected = [wrong_side(clean, c, {1: -at, -1: at}) for c, at in points]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
