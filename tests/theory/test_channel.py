"""The labels' side: averages, their derivatives and closed forms against independent integrals."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf, erfc, expit, ndtr, owens_t

import oracle
from given import OF_RESIDUAL, OF_SHORTFALL
from hiddenmanifold import losses, teachers
from hiddenmanifold.checks import Task
from hiddenmanifold.theory.labels_side.kinds import kind_of
from hiddenmanifold.theory.labels_side.proximal_curve import RULES
from seeds import sampled

pytestmark = pytest.mark.usefixtures("each_engine")

FINE = len(RULES) - 3
LOSSES = {
    **OF_SHORTFALL,
    "huber 0.6": losses.Huber(0.6),
    "smoothed hinge 0.3": losses.SmoothedHinge(0.3),
}
# section 5 of the theory: h = -L'(prox) = clip((1 - m)/(V + c), low, high), as (c, low, high)
SHAPES = {
    "square": (1.0, -np.inf, np.inf),
    "squared_hinge": (1.0, 0.0, np.inf),
    "hinge": (0.0, 0.0, 1.0),
    "smoothed_hinge": (1.0, 0.0, 1.0),
    "smoothed hinge 0.3": (0.3, 0.0, 1.0),
    "absolute": (0.0, -1.0, 1.0),
    "huber": (1.0, -1.0, 1.0),
    "huber 0.6": (1.0, -0.6, 0.6),
}
KNOWN_TO_ORACLE = ("square", "huber", "absolute")
REGRESSION = [name for name in KNOWN_TO_ORACLE if Task.REGRESSION in LOSSES[name].tasks]

# teacher, and whether the intercept is free
RULES_OF_LABELS = {
    "sign": (teachers.Sign(), False),
    "noisy sign": (teachers.Sign(noise=0.3, flip=0.07, threshold=0.4, rho=1.7), True),
    "logistic": (teachers.Logistic(slope=2.0), False),
}
OF_LABELS = {name: loss for name, loss in LOSSES.items() if Task.CLASSIFICATION in loss.tasks}
every_loss = pytest.mark.parametrize("loss", OF_LABELS.values(), ids=OF_LABELS)
every_rule = pytest.mark.parametrize(
    ("teacher", "free"), RULES_OF_LABELS.values(), ids=RULES_OF_LABELS
)
regression_losses = pytest.mark.parametrize("loss", OF_RESIDUAL.values(), ids=OF_RESIDUAL)
known_losses = pytest.mark.parametrize("name", [*SHAPES, "logistic"])


def on_panels(teacher, loss, free=False):
    """The channel of a teacher and a loss, whose averages are sums over branches."""
    return kind_of(teacher, loss)(teacher, loss, free)


def closed_form(teacher, free=False):
    """That of the square loss, without an integral."""
    return kind_of(teacher, LOSSES["square"])(teacher, LOSSES["square"], free, closed_form=True)


def random_points(points, unknowns, decades=2.0, a=2.0, seed=0):
    """Unknowns with V and Q within so many decades of 1, and the intercept in the last column."""
    rng = np.random.default_rng(seed)
    logs = np.log(10.0) * rng.uniform(-decades, decades, (points, 2))
    rest = rng.uniform([-a, -1.5], [a, 1.5], (points, 2))
    return np.hstack([logs, rest])[:, :unknowns]


def without_field(x):
    """Points of a linear channel out of those of a binary one: the field `a` left out."""
    return np.delete(x, 2, axis=1)


def differences(function, x, step=1e-3):
    """Derivatives of function(x) by each column of x, by central differences of fourth order."""
    columns = []
    for shift in step * np.eye(x.shape[1]):
        near, far = (function(x + s * shift) - function(x - s * shift) for s in (1, 2))
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, axis=-1)


def slope_error(channel, x, rows=4):
    """Largest error of the derivatives of e, relative to the size of e and of its derivatives."""
    averages = channel.averages(x, FINE)
    expected = differences(lambda x: channel.averages(x, FINE).e, x)
    scale = np.abs(expected).max(2) + np.abs(averages.e) + 1e-3 * np.sqrt(averages.e[:, 1:2])
    return np.abs((averages.de - expected) / scale[..., None])[:, :rows].max()


@pytest.mark.slow
@every_rule
@every_loss
def test_derivatives_of_a_binary_channel_are_those_of_its_averages(loss, teacher, free):
    channel = on_panels(teacher, loss, free)
    x = random_points(sampled([12], [6])[0], channel.unknowns)
    assert slope_error(channel, x, rows=4 if free else 3) < 1e-9


@pytest.mark.parametrize("free", [False, True])
@regression_losses
def test_derivatives_of_a_linear_channel_are_those_of_its_averages(loss, free):
    channel = on_panels(teachers.Linear(noise=0.2), loss, free)
    x = without_field(random_points(12, 4))[:, : channel.unknowns]
    assert slope_error(channel, x) < 1e-9


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("rule", RULES_OF_LABELS)
def test_derivatives_of_the_square_closed_form_are_those_of_its_averages(rule, free):
    channel = closed_form(RULES_OF_LABELS[rule][0], free)
    assert slope_error(channel, random_points(12, channel.unknowns)) < 1e-9


def test_symmetric_labels_without_intercept_have_no_e0():
    channel = on_panels(teachers.Sign(), LOSSES["logistic"])
    averages = channel.averages(random_points(12, 3))
    np.testing.assert_array_equal(averages.e[:, 3], 0.0)
    np.testing.assert_array_equal(averages.de[:, 3], 0.0)


# --- the integrals, by brute force -----------------------------------------------------------


def response(name, V, m):
    """h = -L'(prox), its slope -dh/dm and the loss L(prox), at the margin m = y f."""
    if name == "logistic":
        eta = brentq(lambda s: s - m - V * expit(-s), m, m + V + 1, xtol=1e-15, rtol=1e-15)
        bend = expit(eta) * expit(-eta)
        return expit(-eta), bend / (1 + V * bend), np.logaddexp(0.0, -eta)
    c, low, high = SHAPES[name]
    h = min(max((1 - m) / (V + c), low), high)
    short = 1 - m - V * h  # 1 - prox, where the loss has slope h: L = h short - c h^2/2
    return h, (1 / (V + c) if low < h < high else 0.0), h * short - 0.5 * c * h**2


def corners(name, V):
    """Margins at which the response has a corner."""
    if name == "logistic":
        return []
    c, *bounds = SHAPES[name]
    return [1 - (V + c) * bound for bound in bounds if np.isfinite(bound)]


def label_probability(teacher, y, nu):
    """P(y | nu), from the definition of the rule."""
    if isinstance(teacher, teachers.Logistic):
        return expit(y * teacher.slope * nu)
    z = y * (nu + teacher.threshold)
    keep = (z > 0) if teacher.noise == 0 else ndtr(z / np.sqrt(teacher.noise))
    return teacher.flip + (1 - 2 * teacher.flip) * keep


def averaged_label(teacher, y, omega_0, V0):
    """Z0 and its derivative by omega_0: section 4; for the logistic rule a trapezoidal sum."""
    if isinstance(teacher, teachers.Logistic):
        step = 0.05
        z = np.arange(-10.0, 10.0, step)
        weight = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        p = expit(y * teacher.slope * (omega_0 + np.sqrt(V0) * z))
        return weight @ p, y * teacher.slope * (weight @ (p * (1 - p)))
    S, keep = np.sqrt(V0 + teacher.noise), 1 - 2 * teacher.flip
    z = (omega_0 + teacher.threshold) / S
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return teacher.flip + keep * ndtr(y * z), y * keep * density / S


@cache  # for the other engine
def averages_by_quad(name, teacher, *, V, Q, a, b):
    """(e1, e2, e3, e0, data loss) by adaptive quadrature over xi, cut at the corners."""
    k, V0 = np.sqrt(teacher.rho) * np.tanh(a), teacher.rho / np.cosh(a) ** 2

    def integrand(xi, which, y):
        omega = np.sqrt(Q) * xi + b
        h, slope, value = response(name, V, y * omega)
        Z, dZ = averaged_label(teacher, y, k * xi, V0)
        term = (Z * slope, Z * h**2, dZ * y * h, Z * y * h, Z * value)[which]
        return term * np.exp(-0.5 * xi**2) / np.sqrt(2 * np.pi)

    totals = np.zeros(5)
    for y in (1, -1):
        cuts = {(y * m - b) / np.sqrt(Q) for m in corners(name, V)}
        edges = [-11.0, *sorted(c for c in {-4.0, 0.0, 4.0} | cuts if abs(c) < 11), 11.0]
        for which in range(5):
            for low, high in zip(edges[:-1], edges[1:], strict=True):
                arguments = {"epsabs": 1e-13, "epsrel": 1e-11, "full_output": 1}
                totals[which] += quad(integrand, low, high, args=(which, y), **arguments)[0]
    return totals


@pytest.mark.slow
@every_rule
@known_losses
def test_averages_are_the_integrals_of_the_theory(name, teacher, free):
    channel = on_panels(teacher, LOSSES[name], free)
    x = random_points(1, channel.unknowns, decades=1.0, a=1.5, seed=len(name))
    averages = channel.averages(x, 3, with_loss=True)
    V, Q = np.exp(x[0, :2])
    expected = averages_by_quad(name, teacher, V=V, Q=Q, a=x[0, 2], b=channel.intercept(x)[0])
    found = np.append(averages.e[0], averages.data_loss[0])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


def panels(low, high, width, cuts=()):
    """Gauss-Legendre nodes and weights on panels of at most the given width."""
    edges = np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)
    edges = np.unique([*edges, *(c for c in cuts if low < c < high)])
    x, w = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * x
    return nodes.ravel(), (half * w).ravel()


def bisected_prox(loss, u, V):
    """Proximal points by halving brackets, which needs nothing but a monotone derivative."""
    reach = 1.0
    while np.any(-reach + V * loss.derivative(-reach + 0 * u) > u) or np.any(
        reach + V * loss.derivative(reach + 0 * u) < u
    ):
        reach *= 2.0
    low, high = np.full_like(u, -reach), np.full_like(u, reach)
    for _ in range(100):
        middle = 0.5 * (low + high)
        below = middle + V * loss.derivative(middle) < u
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


@cache
def joint_averages(loss, teacher, *, V, Q, a, b):
    """E[nu f_out], E[f_out^2], E[f_out] and the data loss over the joint law of (nu, f)."""
    rho = teacher.rho
    slope, rest = (
        np.sqrt(Q / rho) * np.tanh(a),
        np.sqrt(Q) / np.cosh(a),
    )  # f = b + slope nu + rest z
    nu, weight_nu = panels(-9 * np.sqrt(rho), 9 * np.sqrt(rho), 1.0, [-0.4, 0.0])
    weight_nu = weight_nu * np.exp(-0.5 * nu**2 / rho) / np.sqrt(2 * np.pi * rho)
    sides = [(k, np.nextafter(k, side)) for k in loss.kinks for side in (-np.inf, np.inf)]
    kinks = [k + V * float(loss.derivative(np.array([at]))[0]) for k, at in sides]
    totals = np.zeros(4)
    for y in (1, -1):
        reach = 9.5 * np.sqrt(Q)
        m, weight_m = panels(
            y * b - reach, y * b + reach, min(rest, 1.0), [loss.anchor - u for u in kinks]
        )
        u = loss.anchor - m
        s = bisected_prox(loss, u, V)
        h = (u - s) / V
        rows = weight_m * np.array([y * h, h**2, y * h, loss.value(s)])
        distance = (m[:, None] - y * (b + slope * nu)) / rest
        law = np.exp(-0.5 * distance**2) / (np.sqrt(2 * np.pi) * rest)
        conditional = rows @ law
        conditional[0] *= nu
        totals += conditional @ (weight_nu * label_probability(teacher, y, nu))
    return totals


@pytest.mark.slow
@every_rule
@every_loss
def test_averages_follow_from_the_joint_law_of_field_and_prediction(loss, teacher, free):
    channel = on_panels(teacher, loss, free)
    x = random_points(3, channel.unknowns, decades=1.0, a=1.5, seed=7)
    averages = channel.averages(x, 3, with_loss=True)
    for i, (row, b) in enumerate(zip(x, channel.intercept(x), strict=True)):
        V, Q = np.exp(row[:2])
        expected = joint_averages(loss, teacher, V=V, Q=Q, a=row[2], b=b)
        M = np.sqrt(teacher.rho * Q) * np.tanh(row[2])
        e1, e2, e3, e0 = averages.e[i]
        # e3 = (E[nu f_out] + M e1)/rho: Stein's lemma, which ties e1 to e3 as well
        found = np.array([teacher.rho * e3 - M * e1, e2, e0, averages.data_loss[i]])
        if not free and teacher.threshold == 0.0:
            assert e0 == 0.0
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


# --- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("rule", RULES_OF_LABELS)
def test_square_closed_form_is_the_generic_channel_at_its_best_intercept(rule, free):
    teacher = RULES_OF_LABELS[rule][0]
    closed = closed_form(teacher, free)
    generic = on_panels(teacher, LOSSES["square"], free)
    x = random_points(40, 3)
    at = np.pad(x, ((0, 0), (0, 1))) if free else x
    found, expected = closed.averages(x, with_loss=True), generic.averages(at, 3, with_loss=True)
    np.testing.assert_allclose(found.e[:, :3], expected.e[:, :3], rtol=1e-12)
    np.testing.assert_allclose(found.data_loss, expected.data_loss, rtol=1e-12)
    np.testing.assert_allclose(found.de[:, :3], expected.de[:, :3, :3], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(closed.intercept(x), generic.intercept(at), rtol=1e-13, atol=1e-15)
    if free or teacher.threshold == 0.0:
        np.testing.assert_allclose(expected.e[:, 3], 0.0, atol=1e-13)


def test_square_closed_form_of_real_labels_is_the_generic_channel():
    teacher = teachers.Linear(noise=0.2, rho=1.3)
    x = random_points(40, 2)
    found = closed_form(teacher).averages(x, with_loss=True)
    expected = on_panels(teacher, LOSSES["square"]).averages(x, 3, with_loss=True)
    np.testing.assert_allclose(found.e, expected.e, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.de, expected.de, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.data_loss, expected.data_loss, rtol=1e-12)


def owen_averages(name, teacher, V, Q, M):
    """(e1, e2, e3) of a piecewise linear response on labels without bias: section 5."""
    edges = [-np.inf, *sorted(corners(name, V)), np.inf]
    pieces = []
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        inside = 0.5 * (max(low, min(high, 0.0) - 2.0) + min(high, max(low, 0.0) + 2.0))
        h, slope, _ = response(name, V, inside)
        pieces.append((h + slope * inside, -slope, low, high))
    sd, eps, keep = np.sqrt(Q), teacher.flip, 1 - 2 * teacher.flip
    S = np.sqrt(teacher.rho - M**2 / Q + teacher.noise)
    k = M / (sd * S)
    r1 = np.hypot(1.0, k)
    root = np.sqrt(2 * np.pi)

    def primitives(x):
        x = min(max(x, -40.0), 40.0)  # as good as infinite
        phi, Phi = np.exp(-0.5 * x**2) / root, ndtr(x)
        tail = np.exp(-0.5 * r1**2 * x**2) / (2 * np.pi * r1**2)
        B0 = Phi / 2 - owens_t(x, k)
        B1 = -phi * ndtr(k * x) + k * ndtr(r1 * x) / (r1 * root)
        B2 = -x * phi * ndtr(k * x) + B0 - k * tail
        return np.array(
            [
                eps * Phi + keep * B0,
                -eps * phi + keep * B1,
                eps * (Phi - x * phi) + keep * B2,
                keep * ndtr(r1 * x) / (S * r1 * root),
                -keep * tail / S,
            ]
        )

    e1 = e2 = e3 = 0.0
    for a0, a1, low, high in pieces:
        J0, J1, J2, C0, C1 = 2 * (primitives(high / sd) - primitives(low / sd))
        e1 -= a1 * J0
        e2 += a0**2 * J0 + 2 * a0 * a1 * sd * J1 + a1**2 * Q * J2
        e3 += a0 * C0 + a1 * sd * C1
    return e1, e2, e3


@pytest.mark.parametrize(
    "teacher",
    [teachers.Sign(), teachers.Sign(noise=0.3, flip=0.1, rho=1.7)],
    ids=["plain", "noisy"],
)
@pytest.mark.parametrize("name", SHAPES)
def test_piecewise_linear_losses_have_the_closed_form_in_owens_function(name, teacher):
    x = random_points(40, 3, decades=1.0)
    e = on_panels(teacher, LOSSES[name]).averages(x, 3).e
    V, Q = np.exp(x[:, :2]).T
    M = np.sqrt(teacher.rho * Q) * np.tanh(x[:, 2])
    expected = [owen_averages(name, teacher, *point) for point in zip(V, Q, M, strict=True)]
    # the closed form subtracts terms of order 1/V^2
    np.testing.assert_allclose(e[:, :3], expected, rtol=1e-10, atol=2e-12)


@pytest.mark.parametrize(
    ("loss", "stiffness", "D"),
    [
        (losses.Huber(), 1.0, 1.0),
        (losses.Huber(0.6), 1.0, 0.6),
        (losses.Absolute(), 0.0, 1.0),
    ],
    ids=["huber", "huber 0.6", "absolute"],
)
def test_robust_regression_has_a_closed_form_in_error_functions(loss, stiffness, D):
    x = random_points(60, 2)
    V, tau = np.exp(x[:, 0]), np.exp(0.5 * x[:, 1])
    U = stiffness + V
    g = U * D / tau
    inside, density = erf(g / np.sqrt(2)), np.exp(-0.5 * g**2) / np.sqrt(2 * np.pi)
    e = on_panels(teachers.Linear(), loss).averages(x, 3).e
    np.testing.assert_allclose(e[:, 0], inside / U, rtol=1e-12)
    np.testing.assert_array_equal(e[:, 2], e[:, 0])
    np.testing.assert_allclose(e[:, 3], 0.0, atol=1e-15)
    # the first term keeps its digits only where g is not small
    expected = (tau / U) ** 2 * (inside - 2 * g * density) + D**2 * erfc(g / np.sqrt(2))
    np.testing.assert_allclose(e[:, 1], expected, rtol=1e-9)


# --- fineness and extremes ----------------------------------------------------------------------


@every_rule
@every_loss
def test_levels_of_quadrature_agree(loss, teacher, free):
    channel = on_panels(teacher, loss, free)
    x = random_points(40, channel.unknowns, a=2.5, seed=3)
    found = {level: channel.averages(x, level, with_loss=True) for level in (1, 2, 3, 4)}
    for level, tolerance in ((2, 1e-11), (1, 2e-8)):
        rough, fine = found[level], found[level + 2]
        scale = np.abs(fine.e) + 1e-3 * np.sqrt(fine.e[:, 1:2])
        assert np.abs((rough.e - fine.e) / scale).max() < tolerance
        np.testing.assert_allclose(rough.data_loss, fine.data_loss, rtol=tolerance)


@regression_losses
def test_levels_of_quadrature_agree_for_real_labels(loss):
    channel = on_panels(teachers.Linear(noise=0.2), loss)
    x = random_points(60, 2, decades=4.0)
    rough, fine = (channel.averages(x, level, with_loss=True) for level in (2, 4))
    np.testing.assert_allclose(rough.e[:, :3], fine.e[:, :3], rtol=1e-11)
    np.testing.assert_allclose(rough.data_loss, fine.data_loss, rtol=1e-11)


EXTREMES = np.array(
    [
        (np.log(V), np.log(Q), a, 0.3)
        for V, Q, a in product(
            (1e-8, 1e-3, 1.0, 1e5, 1e10), (1e-10, 1e-4, 1.0, 1e3, 1e6), (0.3, 6.0)
        )
    ]
)


def problem_of(name, teacher, free):
    """The same channel for the reference solver."""
    loss = LOSSES[name]
    base = next(key for key, kind in losses.REGISTRY.items() if isinstance(loss, kind))
    settings = {"loss": base, "delta": getattr(loss, "delta", 1.0), "intercept": free}
    if isinstance(teacher, teachers.Linear):
        return oracle.Problem(teacher="linear", noise=teacher.noise, rho=teacher.rho, **settings)
    rule = {"noise": teacher.noise, "flip": teacher.flip, "threshold": teacher.threshold}
    return oracle.Problem(teacher="sign", rho=teacher.rho, **rule, **settings)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-200)


def thin_kink(name, teacher, *, V, Q, a, b):
    """e1 of a loss with a kink, as an integral over the slope h that the kink spans.

    The margin 1 - V h crosses the kink within V: the reference, which integrates over the field,
    knows so thin an interval to rounding errors only.
    """
    _, low, high = SHAPES[name]
    h, weight = panels(low, high, 0.25)
    k, V0 = np.sqrt(teacher.rho) * np.tanh(a), teacher.rho / np.cosh(a) ** 2
    total = 0.0
    for y in (1, -1):
        xi = ((1 - y * b) - V * h) / (y * np.sqrt(Q))
        density = np.exp(-0.5 * xi**2) / np.sqrt(2 * np.pi * Q)
        total += weight @ (density * averaged_label(teacher, y, k * xi, V0)[0])
    return total


@cache
def averages_at_extremes(name, rule):
    """Those of the reference, and of a thin kink by another integral."""
    teacher, free = RULES_OF_LABELS[rule]
    channel = on_panels(teacher, LOSSES[name], free)
    x = EXTREMES[:, : channel.unknowns]
    points = np.column_stack([x[:, :3], channel.intercept(x)])[:, : 3 + free]
    problem = problem_of(name, teacher, free)
    expected = np.array([oracle.classification_channel(problem, p, 1e-13) for p in points])
    if name in ("hinge", "absolute"):
        for i, (V, Q) in enumerate(np.exp(x[:, :2])):
            if np.sqrt(Q) > 100 * V:
                b = channel.intercept(x)[i]
                expected[i, 0] = thin_kink(name, teacher, V=V, Q=Q, a=x[i, 2], b=b)
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sign", "noisy sign"])
@known_losses
def test_averages_and_data_loss_hold_for_extreme_unknowns(name, rule):
    teacher, free = RULES_OF_LABELS[rule]
    channel = on_panels(teacher, LOSSES[name], free)
    averages = channel.averages(EXTREMES[:, : channel.unknowns], FINE, with_loss=True)
    expected = averages_at_extremes(name, rule)
    assert_close(averages.e[:, :3], expected[:, :3])
    assert_close(averages.data_loss, expected[:, 4])
    if free:
        scale = np.sqrt(expected[:, 1])
        np.testing.assert_allclose(averages.e[:, 3] / scale, expected[:, 3] / scale, atol=1e-9)


@pytest.mark.parametrize("name", REGRESSION)
def test_averages_of_real_labels_hold_for_extreme_unknowns(name):
    teacher = teachers.Linear()
    averages = on_panels(teacher, LOSSES[name]).averages(EXTREMES[:, :2], 3, with_loss=True)
    problem = problem_of(name, teacher, False)
    points = EXTREMES[:, :2]
    expected = np.array([oracle.regression_channel(problem, p, 1e-13) for p in points])
    found = np.column_stack([averages.e[:, :3], averages.data_loss])
    assert_close(found, expected[:, [0, 1, 2, 4]])
