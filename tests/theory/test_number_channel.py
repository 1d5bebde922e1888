"""Labels that are numbers: averages against integrals by other means, equivalent models.

The reference knows the density of a label blurred by the score, and integrates over residuals; the
library sums over normal components of the label. For losses of label and score the reference sums
over all labels and finds proximal points by bisection.
"""

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit, log_ndtr, ndtr, voigt_profile

import hiddenmanifold as hm
from hiddenmanifold import losses, noises, teachers
from hiddenmanifold.theory.labels_side.kinds import kind_of
from hiddenmanifold.theory.labels_side.label_table import TableChannel
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.labels_side.number_channel import RowsChannel
from seeds import sampled

FINE = 4


def panels(edges, order=16):
    """Gauss-Legendre nodes and weights between edges."""
    x, w = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * x
    return nodes.ravel(), (half * w).ravel()


def fields(rho, cuts=()):
    """Fields and their probabilities."""
    sd = np.sqrt(rho)
    nu, w = panels(np.union1d(sd * np.linspace(-9.0, 9.0, 37), cuts), 8)
    return nu, w * stats.norm(scale=sd).pdf(nu)


# ---------------------------------------------------------------- densities of blurred labels


def normal(x, deviation):
    return np.exp(-0.5 * (x / deviation) ** 2) / (np.sqrt(2.0 * np.pi) * deviation)


def blurred_laplace(x, s, S):
    """Density of Laplace's law plus a normal one of deviation S."""
    far = 0.5 * (S / s) ** 2
    parts = (np.exp(far - t * x / s + log_ndtr(t * x / S - S / s)) for t in (1.0, -1.0))
    return sum(parts) / (2.0 * s)


def blurred_student(x, m, s, S):
    step = 0.25 * min(1.0, np.min(s) * np.sqrt(m) / S)  # resolves the poles of the density
    z = np.arange(-9.0, 9.0 + step, step)
    weight = step * normal(z, 1.0)
    return sum(w * stats.t.pdf((x - S * t) / s, m) / s for w, t in zip(weight, z, strict=True))


def blurred_uniform(x, width, S):
    return (ndtr((x + width) / S) - ndtr((x - width) / S)) / (2.0 * width)


def blurred_values(x, values, shares, S):
    return sum(p * normal(x - y, S) for y, p in zip(values, shares, strict=True))


def steps(nu):
    return np.where(nu > 0.3, 1.5, -1.0)


def half(nu):
    return 0.5 + 0.25 * nu**2


def grades(nu):
    p = np.exp([0.0 * nu, 0.5 * nu, nu - 0.3])
    return p / p.sum(0)


def outliers(x, S):
    return 0.9 * normal(x, np.hypot(S, np.sqrt(0.2))) + 0.1 * normal(x, np.hypot(S, 2.0))


K = np.arange(60.0)
ORDERED = teachers.Ordered((0.0, 1.0, 2.5), (-0.4, 0.7), noise=0.3, rho=1.3)


def ordered_shares(nu):
    ends = np.array([-np.inf, -0.4, 0.7, np.inf])[:, None]
    return np.diff(ndtr((ends - nu) / np.sqrt(0.3)), axis=0)


# the rule, and the density at x, given the field, of a label that is blurred by a deviation S
RULES = {
    "tanh": (
        teachers.Real("tanh", 0.2),
        lambda x, nu, S: normal(x - np.tanh(nu), np.hypot(S, 0.2**0.5)),
    ),
    "relu laplace": (
        teachers.Real("relu", "laplace(0.5)", rho=1.7),
        lambda x, nu, S: blurred_laplace(x - np.maximum(nu, 0.0), 0.5, S),
    ),
    "jump uniform": (
        teachers.Real(steps, "uniform(0.4)", kinks=(0.3,)),
        lambda x, nu, S: blurred_uniform(x - steps(nu), 0.4, S),
    ),
    "heteroscedastic student": (
        teachers.Real("sine", "student(5,0.3)", scale=half, rho=0.6),
        lambda x, nu, S: blurred_student(x - np.sin(nu), 5, 0.3 * half(nu), S),
    ),
    "square outliers": (
        teachers.Real("square", "mixture(0.9,0.1;0.2,4)", rho=0.5),
        lambda x, nu, S: outliers(x - nu**2, S),
    ),
    "linear laplace": (
        teachers.Linear("laplace(0.7)", rho=1.4),
        lambda x, nu, S: blurred_laplace(x - nu, 0.7, S),
    ),
    "linear cauchy": (
        teachers.Linear("student(1,0.3)"),
        lambda x, nu, S: voigt_profile(x - nu, S, 0.3),
    ),
    "linear uniform": (
        teachers.Linear("uniform(0.8)", rho=0.6),
        lambda x, nu, S: blurred_uniform(x - nu, 0.8, S),
    ),
    "ordered": (ORDERED, lambda x, nu, S: blurred_values(x, ORDERED.values, ordered_shares(nu), S)),
    "counts": (
        teachers.Poisson(intercept=0.2, slope=0.4),
        lambda x, nu, S: blurred_values(
            x, K, [stats.poisson.pmf(k, np.exp(0.2 + 0.4 * nu)) for k in K], S
        ),
    ),
    "discrete": (
        teachers.Discrete((-1.0, 0.5, 2.0), grades, rho=1.2),
        lambda x, nu, S: blurred_values(x, (-1.0, 0.5, 2.0), grades(nu), S),
    ),
}
# rule, loss, whether the intercept is free; the kind of channel
CASES = {
    "tanh huber": ("tanh", losses.Huber(0.6), False, RowsChannel),
    "tanh absolute": ("tanh", losses.Absolute(), True, RowsChannel),
    "relu quantile": ("relu laplace", losses.Quantile(0.8), True, RowsChannel),
    "tanh log_cosh": ("tanh", losses.LogCosh(), False, RowsChannel),
    "jump huber": ("jump uniform", losses.Huber(), True, RowsChannel),
    "student expectile": ("heteroscedastic student", losses.Expectile(0.3), True, RowsChannel),
    "square insensitive": ("square outliers", losses.Insensitive(0.4), True, RowsChannel),
    "linear quantile": ("linear laplace", losses.Quantile(0.3), True, LinearChannel),
    "linear huber": ("linear laplace", losses.Huber(0.4), False, LinearChannel),
    "cauchy absolute": ("linear cauchy", losses.Absolute(), False, LinearChannel),
    "uniform expectile": ("linear uniform", losses.Expectile(0.7), True, LinearChannel),
    "ordered insensitive": ("ordered", losses.Insensitive(0.2), True, RowsChannel),
    "counts huber": ("counts", losses.Huber(0.5), True, RowsChannel),
    "ordered log_cosh": ("ordered", losses.LogCosh(), True, RowsChannel),
    "discrete log_cosh": ("discrete", losses.LogCosh(), False, RowsChannel),
}
every_case = pytest.mark.parametrize("case", CASES)


def channel_of(case):
    """The channel of a case, without a closed form."""
    rule, loss, free, kind = CASES[case]
    teacher = RULES[rule][0]
    channel = kind_of(teacher, loss)(teacher, loss, free)
    assert type(channel) is kind
    return channel


def random_points(channel, points, decades=0.7, seed=0):
    """Unknowns around one."""
    rng = np.random.default_rng(seed)
    x = np.log(10.0) * rng.uniform(-decades, decades, (points, 2))
    if channel.overlap_unknowns == 3:
        x = np.column_stack([x, rng.uniform(-1.2, 1.2, points)])
    else:
        x[:, 1] = np.log(channel.floor + np.exp(x[:, 1]))
    if channel.free_intercept:
        x = np.column_stack([x, rng.uniform(-0.8, 0.8, points)])
    return x


def bisected(slope, low, high):
    """The root of an increasing function, by halving brackets."""
    for _ in range(80):
        middle = 0.5 * (low + high)
        below = slope(middle) < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def proximal(loss, u, V):
    """Proximal points of residuals; those of a corner have the slope (u - s)/V."""
    far = np.abs(u) + V * (np.abs(loss.derivative(np.array([-1e3, 1e3]))).max() + 1.0)
    if isinstance(loss, losses.Expectile | losses.Square):
        far = np.abs(u) + 1.0
    return bisected(lambda s: s + V * loss.derivative(s) - u, -far, far)


def corners(loss, V):
    """Residuals at which the response has a corner."""
    sides = [(k, np.nextafter(k, side)) for k in loss.kinks for side in (-np.inf, np.inf)]
    return [k + V * float(loss.derivative(np.array([at]))[0]) for k, at in sides]


def reference(rule, loss, *, V, Q, a, b, reach):
    """E[ν h], E h², E h, E g and the mean loss, as integrals over the residual."""
    teacher, blurred = RULES[rule]
    rho = teacher.rho
    r, S = np.sqrt(Q / rho) * np.tanh(a), np.sqrt(Q) / np.cosh(a)
    nu, w = fields(rho, teacher.kinks)
    narrow = min(S, 0.5)
    edges = np.concatenate([-np.geomspace(10.0, reach, 60)[::-1], np.arange(-10, 10, narrow)])
    edges = np.concatenate([edges, np.geomspace(10.0, reach, 60)])
    u, lengths = panels(np.unique([*edges, *corners(loss, V)]), 14)
    density = np.empty((len(u), len(nu)))
    for some in np.array_split(np.arange(len(nu)), 24):
        at = nu[some]
        density[:, some] = blurred(u[:, None] + b + r * at, at, S)
    p, along = density @ w, density @ (w * nu)
    s = proximal(loss, u, V)
    bend = loss.second_derivative(s)
    on_corner = np.isclose(s[:, None], [*loss.kinks, np.inf], rtol=0, atol=1e-9).any(1)
    on_corner &= loss.has_jumps
    g = np.where(on_corner, 1.0 / V, bend / (1.0 + V * bend))
    h = np.where(on_corner, (u - s) / V, loss.derivative(s))
    rows = np.array([h * along, h**2 * p, h * p, g * p, loss.value(s) * p])
    return rows @ lengths


def overlaps_of(channel, x):
    """Q and a of a point; linear labels depend on both by their residual alone."""
    if channel.overlap_unknowns == 3:
        return np.exp(x[1]), x[2]
    rho, excess = channel.rho, np.exp(x[1]) - channel.floor  # ρ + Q - 2M
    M = 0.8 * rho
    return excess - rho + 2.0 * M, np.arctanh(M / np.sqrt(rho * (excess - rho + 2.0 * M)))


@pytest.mark.slow
@every_case
def test_averages_are_integrals_over_the_residual(case):
    rule, loss, *_ = CASES[case]
    channel = channel_of(case)
    points = 1 if rule == "heteroscedastic student" else sampled([2], [1])[0]
    x = random_points(channel, points, decades=0.5, seed=len(case))
    averages = channel.averages(x, FINE, with_loss=True)
    np.testing.assert_allclose(averages.norm, 1.0, rtol=1e-9)
    for i, (point, b) in enumerate(zip(x, channel.intercept(x), strict=True)):
        Q, a = overlaps_of(channel, point)
        M = np.sqrt(channel.rho * Q) * np.tanh(a)
        heavy = rule in ("linear cauchy", "heteroscedastic student")
        reach = 1e11 if heavy else 60.0
        V = np.exp(point[0])
        along, e2, e0, e1, mean = reference(rule, loss, V=V, Q=Q, a=a, b=b, reach=reach)
        found = averages.e[i]
        close = {"rtol": 1e-9, "atol": 1e-10}
        np.testing.assert_allclose(found[[0, 1, 3]], [e1, e2, e0], **close)
        np.testing.assert_allclose(found[2], (along + M * e1) / channel.rho, **close)
        if rule == "linear cauchy":
            assert averages.data_loss[i] == np.inf
        else:
            np.testing.assert_allclose(averages.data_loss[i], mean, **close)


def slope_error(channel, x, level=3, step=1e-3):
    """Largest error of the derivatives of e, relative to the size of e and of its derivatives."""
    averages, columns = channel.averages(x, level), []
    for shift in step * np.eye(x.shape[1]):
        near, far = (
            channel.averages(x + s * shift, level).e - channel.averages(x - s * shift, level).e
            for s in (1, 2)
        )
        columns.append((8 * near - far) / (12 * step))
    expected = np.stack(columns, axis=-1)
    scale = np.abs(expected).max(2) + np.abs(averages.e) + 1e-3 * np.sqrt(averages.e[:, 1:2])
    return np.abs((averages.de - expected) / scale[..., None]).max()


@pytest.mark.slow
@every_case
def test_derivatives_are_those_of_the_averages(case):
    channel, points = channel_of(case), sampled([2], [1])[0]
    assert slope_error(channel, random_points(channel, points, seed=3)) < 1e-8


# ---------------------------------------------------------------- losses of label and score

LEVELS = losses.PerLabel(
    lambda y, f: 0.5 * (f - np.sin(y)) ** 2 + 0.1 * f**4,
    lambda y, f: f - np.sin(y) + 0.4 * f**3,
    lambda y, f: 1.0 + 1.2 * f**2 + 0.0 * y,
    scale=0.8,
)
T = np.arange(-18.0, 8.0, 0.08)  # logarithms of positive labels


def positive(pdf):
    """Labels and their probabilities given the field, of a density, by the trapezoidal rule."""
    y = np.exp(T)
    return y, lambda nu: 0.08 * y[:, None] * pdf(y[:, None], nu)


# rule; labels and their probabilities given fields; loss, intercept
TABLES = {
    "poisson": (
        teachers.Poisson(intercept=0.2, slope=0.4),
        (K, lambda nu: stats.poisson.pmf(K[:, None], np.exp(0.2 + 0.4 * nu))),
        losses.Poisson(),
        True,
    ),
    "negative binomial levels": (
        teachers.NegativeBinomial("softplus", size=3.0, rho=0.8),
        (
            np.arange(160.0),
            lambda nu: stats.nbinom.pmf(
                np.arange(160.0)[:, None], 3.0, 3.0 / (3.0 + np.logaddexp(0.0, nu))
            ),
        ),
        LEVELS,
        True,
    ),
    "binomial": (
        teachers.Binomial(3, intercept=0.4, slope=1.5, rho=1.3),
        (
            np.arange(4.0),
            lambda nu: stats.binom.pmf(np.arange(4)[:, None], 3, expit(0.4 + 1.5 * nu)),
        ),
        losses.Binomial(3),
        False,
    ),
    "gamma": (
        teachers.Gamma(shape=2.0, intercept=0.3, slope=0.5),
        positive(lambda y, nu: stats.gamma.pdf(y, 2.0, scale=0.5 * np.exp(0.3 + 0.5 * nu))),
        losses.Gamma(),
        True,
    ),
    "log-normal": (
        teachers.LogNormal(variance=0.4, slope=0.5),
        positive(lambda y, nu: stats.lognorm.pdf(y, np.sqrt(0.4), scale=np.exp(0.5 * nu - 0.2))),
        losses.Poisson(),
        False,
    ),
}
every_table = pytest.mark.parametrize("case", TABLES)


def table_channel(case):
    teacher, _, loss, free = TABLES[case]
    channel = kind_of(teacher, loss)(teacher, loss, free)
    assert type(channel) is TableChannel
    return channel


def table_reference(case, *, V, Q, a, b):
    """The same averages as sums over all labels, with proximal points by bisection."""
    teacher, (y, law), loss, _ = TABLES[case]
    rho = teacher.rho
    r, S = np.sqrt(Q / rho) * np.tanh(a), np.sqrt(Q) / np.cosh(a)
    nu, w = fields(rho)
    away, lengths = panels(np.sqrt(Q) * np.linspace(-8.8, 8.8, 45), 8)
    score = normal(away - (r * nu)[:, None], S) * lengths
    joint = law(nu) * w
    W, W1 = joint @ score, (joint * nu) @ score
    labels, omega = np.meshgrid(y, b + away, indexing="ij")
    push = V * loss.derivative(labels, omega)
    ends = np.minimum(omega, omega - push), np.maximum(omega, omega - push)
    with np.errstate(over="ignore"):
        eta = bisected(lambda f: f + V * loss.derivative(labels, f) - omega, *ends)
    h, bend = -loss.derivative(labels, eta), loss.second_derivative(labels, eta)
    g = bend / (1.0 + V * bend)
    return [(x * of).sum() for x, of in ((W1, h), (W, h**2), (W, h), (W, g))] + [
        (W * loss.value(labels, eta)).sum()
    ]


@pytest.mark.slow
@every_table
def test_averages_over_labels_and_scores_are_those_of_brute_force(case):
    channel = table_channel(case)
    x = random_points(channel, 3, decades=0.5, seed=len(case))
    averages = channel.averages(x, FINE, with_loss=True)
    for i, (point, b) in enumerate(zip(x, channel.intercept(x), strict=True)):
        V, Q, a = np.exp(point[0]), np.exp(point[1]), point[2]
        M = np.sqrt(channel.rho * Q) * np.tanh(a)
        along, e2, e0, e1, mean = table_reference(case, V=V, Q=Q, a=a, b=b)
        expected = [e1, e2, (along + M * e1) / channel.rho, e0]
        np.testing.assert_allclose(averages.e[i], expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(averages.data_loss[i], mean, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@every_table
def test_derivatives_of_tables_are_those_of_the_averages(case):
    channel = table_channel(case)
    assert slope_error(channel, random_points(channel, 2, seed=5)) < 1e-8


# ---------------------------------------------------------------- closed form of the square loss

SQUARES = {
    "tanh": teachers.Real("tanh", 0.2),
    "relu": teachers.Real("relu", "laplace(0.5)", rho=1.7),
    "heteroscedastic": RULES["heteroscedastic student"][0],
    "even": teachers.Real("absolute", 0.1),
    "jump": RULES["jump uniform"][0],
    "ordered": ORDERED,
    "counts": RULES["counts"][0],
    "gamma": TABLES["gamma"][0],
}


@pytest.mark.slow
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", SQUARES)
def test_square_closed_form_is_that_of_rows_at_the_mean_label(name, free):
    teacher, square = SQUARES[name], losses.Square()
    kind = kind_of(teacher, square)
    closed, rows = (kind(teacher, square, free, closed_form=closed) for closed in (True, False))
    x = random_points(closed, 2)[:, :3]
    assert closed.unknowns == 3
    at = x
    if free:
        beta = (teacher.moments.mean - rows.best_constant) / rows.intercept_unit(x)
        at = np.column_stack([x, beta])
        np.testing.assert_allclose(rows.intercept(at), closed.intercept(x), rtol=1e-12, atol=1e-13)
    found, expected = closed.averages(x, 0, True), rows.averages(at, FINE, True)
    close = {"rtol": 1e-10, "atol": 1e-11}
    np.testing.assert_allclose(found.e[:, :3], expected.e[:, :3], **close)
    np.testing.assert_allclose(found.de[:, :3], expected.de[:, :3, :3], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.data_loss, expected.data_loss, **close)
    if free:
        np.testing.assert_allclose(expected.e[:, 3], 0.0, atol=1e-10)


AT = {"n_over_d": 2.0, "p_over_n": [0.4, 1.6], "regularisation": [0.05, 1.0]}
OVERLAPS = ("V", "Q", "M", "q_w", "intercept", "training_loss")


def model(teacher, loss, **options):
    return hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss, **options)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", sorted(set(SQUARES) - {"even"}))  # which has c = 0
def test_square_loss_sees_three_moments_of_the_labels(name, intercept):
    """Section 4: linear labels of variance c²ρ and normal noise of what is left, M' = cM."""
    teacher = SQUARES[name]
    m = teacher.moments
    size = m.second - m.mean**2 if intercept else m.second
    c = m.slope
    linear = teachers.Linear(rho=c**2 * teacher.rho, noise=size - c**2 * teacher.rho)
    ours = hm.predict(model(teacher, "square", intercept=intercept), **AT)
    theirs = hm.predict(model(linear, "square"), **AT)
    for quantity in ("generalisation_error", "training_loss", "V", "Q", "q_w"):
        np.testing.assert_allclose(ours[quantity], theirs[quantity], rtol=1e-10, err_msg=quantity)
    np.testing.assert_allclose(theirs.M, c * ours.M, rtol=1e-10)
    np.testing.assert_allclose(ours.intercept, m.mean if intercept else 0.0, rtol=1e-12, atol=1e-13)


def test_of_an_even_function_nothing_is_learned():
    even = model(teachers.Real("absolute", 0.1), "square", intercept=True)
    ds = hm.predict(even, **AT)
    np.testing.assert_allclose(ds.M, 0.0, atol=1e-12)
    assert (ds.Q > 1e-3).all()
    assert (ds.generalisation_error > 0.1 + 1.0 - 2.0 / np.pi).all()


# ---------------------------------------------------------------- equivalent models


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "loss", "free"),
    [
        (teachers.Linear(0.3, rho=1.7), losses.Huber(0.6), False),
        (teachers.Linear("laplace(0.5)"), losses.Quantile(0.8), True),
        (teachers.Linear("student(2.5,0.4)", rho=0.6), losses.Absolute(), False),
        (teachers.Linear("mixture(0.8,0.2;0.1,2)"), losses.LogCosh(), False),
        (teachers.Linear("uniform(0.7)"), losses.Expectile(0.2), True),
    ],
    ids=str,
)
def test_linear_labels_by_rows_of_the_field_are_those_of_the_residual(teacher, loss, free):
    line = kind_of(teacher, loss)(teacher, loss, free)
    rows = kind_of(teacher, loss, linear=False)(teacher, loss, free)
    assert type(line) is LinearChannel and type(rows) is RowsChannel
    x = random_points(rows, 5, decades=0.6, seed=2)
    b = rows.intercept(x)
    Q = np.exp(x[:, 1])
    M = np.sqrt(teacher.rho * Q) * np.tanh(x[:, 2])
    y = np.column_stack([x[:, 0], np.log(teacher.rho + line.floor + Q - 2.0 * M)])
    if free:
        y = np.column_stack([y, (b - line.best_constant) / line.intercept_unit(y)])
        np.testing.assert_allclose(line.intercept(y), b, rtol=1e-12)
    found, expected = rows.averages(x, FINE, True), line.averages(y, FINE, True)
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(found.e, expected.e, **close)
    np.testing.assert_allclose(found.data_loss, expected.data_loss, **close)
    np.testing.assert_allclose(found.e[:, 2], found.e[:, 0], **close)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "loss", "intercept"),
    [(0.3, "huber", False), ("laplace(0.5)", losses.Quantile(0.7), True), (0.2, "log_cosh", True)],
    ids=str,
)
def test_linear_labels_with_a_prediction_have_the_same_solution(noise, loss, intercept):
    """The score itself in disguise needs the field, and changes nothing."""
    parts = {"teacher": teachers.Linear(noise, rho=1.3), "loss": loss, "intercept": intercept}
    plain = hm.predict(model(**parts), **AT)
    other = hm.predict(model(**parts, prediction=lambda f: 1.0 * f), **AT)
    for name in (*OVERLAPS, "generalisation_error", "clean_error"):
        np.testing.assert_allclose(other[name], plain[name], rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("intercept", [False, True])
def test_one_trial_is_the_logistic_loss_of_two_classes(intercept):
    counted = model(
        teachers.Binomial(intercept=0.6, slope=2.0, rho=1.2), "binomial", intercept=intercept
    )
    classes = model(
        teachers.Logistic(slope=2.0, threshold=0.3, rho=1.2), "logistic", intercept=intercept
    )
    ours, theirs = (hm.predict(m, **AT, observables="test_loss") for m in (counted, classes))
    for name in (*OVERLAPS, "test_loss"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("intercept", [False, True])
def test_estimators_of_one_trial_exist_where_classes_are_not_separable(intercept):
    counted = model(teachers.Binomial(intercept=0.6, slope=2.0), "binomial", intercept=intercept)
    classes = model(teachers.Logistic(slope=2.0, threshold=0.3), "logistic", intercept=intercept)
    at = {"n_over_d": [1.5, 4.0]}
    ours, theirs = hm.existence_threshold(counted, **at), hm.separability_threshold(classes, **at)
    np.testing.assert_allclose(ours.p_over_n, theirs.p_over_n, rtol=1e-10)


def exponential_residual():
    """The loss e^u - u of a residual u: Gamma's deviance of log y."""
    return losses.Custom(lambda u: np.exp(u) - u, np.expm1, np.exp, of="residual")


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [False, True])
def test_gamma_deviance_is_a_loss_of_the_logarithm(intercept):
    """y e^-f + f = e^u - u + log y with u = log y - f; log y of log-normal labels is normal."""
    shift = 0.3 - 0.5 * 0.4
    positive = model(
        teachers.LogNormal(variance=0.4, intercept=0.3, slope=0.7),
        losses.Gamma(),
        intercept=intercept,
    )
    logarithms = model(
        teachers.Real(lambda nu: shift + 0.7 * nu, 0.4), exponential_residual(), intercept=intercept
    )
    ours, theirs = hm.predict(positive, **AT), hm.predict(logarithms, **AT)
    for name in OVERLAPS[:-1]:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(ours.training_loss, theirs.training_loss + shift, rtol=1e-9)


@pytest.mark.slow
def test_gamma_labels_are_linear_ones_with_noise_of_a_logarithm():
    """log y = ν + log G with G of Gamma's law: noise of any density, on an interval."""
    shape = 3.0
    law = stats.loggamma(shape, scale=1.0, loc=-np.log(shape))
    noise = noises.Custom(
        law.pdf,
        lambda n, rng: np.log(rng.gamma(shape, 1.0 / shape, n)),
        (-13.0, -6.0, -2.0, 0.0, 3.0),
    )
    positive = model(teachers.Gamma(shape=shape), losses.Gamma(), intercept=True)
    logarithms = model(teachers.Linear(noise), exponential_residual(), intercept=True)
    ours, theirs = hm.predict(positive, **AT), hm.predict(logarithms, **AT)
    for name in OVERLAPS[:-1]:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(ours.training_loss, theirs.training_loss + law.mean(), rtol=1e-9)


ENVELOPE = {
    "rows quantile": (RULES["relu laplace"][0], losses.Quantile(0.8)),
    "rows huber": (RULES["jump uniform"][0], losses.Huber(0.5)),
    "student": (RULES["heteroscedastic student"][0], losses.LogCosh()),
    "grades": (ORDERED, losses.Insensitive(0.2)),
    "counts": (RULES["counts"][0], losses.Poisson()),
    "table log_cosh": (ORDERED, losses.LogCosh()),
    "levels": (TABLES["negative binomial levels"][0], LEVELS),
    "linear": (RULES["linear uniform"][0], losses.Huber(0.3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ENVELOPE)
def test_slope_of_the_training_loss_is_the_norm_of_the_weights(case):
    """Envelope theorem: d(training loss)/d λ = q_w/(2 α)."""
    step, lam = 0.02, 0.3
    steps = xr.DataArray(step * np.arange(-2, 3), dims="step")
    ds = hm.predict(
        model(*ENVELOPE[case], intercept=True),
        n_over_p=1.5,
        d_over_p=0.7,
        regularisation=lam * np.exp(steps),
    )
    far_below, below, _, above, far_above = ds.training_loss.values
    slope = (8 * (above - below) - (far_above - far_below)) / (12 * step * lam)
    np.testing.assert_allclose(slope, ds.q_w.values[2] / (2 * 1.5), rtol=1e-7)


# ---------------------------------------------------------------- levels and extremes


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, *TABLES])
def test_levels_of_quadrature_agree(case):
    channel = channel_of(case) if case in CASES else table_channel(case)
    x = random_points(channel, 3, decades=0.5, seed=9)
    rough, fine = (channel.averages(x, level, with_loss=True) for level in (2, 4))
    scale = np.abs(fine.e) + 1e-3 * np.sqrt(fine.e[:, 1:2])
    assert np.abs((rough.e - fine.e) / scale).max() < 1e-8
    finite = np.isfinite(fine.data_loss)
    np.testing.assert_allclose(
        rough.data_loss[finite], fine.data_loss[finite], rtol=1e-8, atol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "loss"),
    [("student(1,0.3)", "huber"), ("student(2.5,0.3)", "log_cosh"), ("laplace(0.5)", "absolute")],
)
def test_tails_and_peaks_of_noise_are_resolved_where_they_count(noise, loss):
    """Hardly regularised, V is a million: residuals count only that are as large. With many samples
    it is small: only residuals count that are as small. Two computations by different components.
    """
    chosen = hm.Model(
        activation="identity", projection="gaussian", teacher=teachers.Linear(noise), loss=loss
    )
    law = chosen.teacher.law
    for at in (
        {"n_over_d": 2.0, "p_over_d": 6.0, "regularisation": 1e-3},
        {"n_over_d": 300.0, "p_over_d": 30.0, "regularisation": 0.1},
    ):
        ds = hm.predict(chosen, **at)
        channel = LinearChannel(chosen.teacher, chosen.loss)
        x = np.log([[float(ds.V), float(ds.clean_error) + channel.floor]])
        e = channel.averages(x, 6).e[0]
        # the residual, as a sum of many normals: variances on a fine logarithmic grid
        t = np.arange(-75.0, 75.0, 0.05)
        if isinstance(law, noises.Laplace):
            weights, variances = (
                np.exp(t - np.exp(np.minimum(t, 9.0))),
                2.0 * law.scale**2 * np.exp(t),
            )
        else:
            precision = stats.gamma(0.5 * law.degrees, scale=2.0 / law.degrees)
            weights, variances = precision.pdf(np.exp(t)) * np.exp(t), law.scale**2 * np.exp(-t)
        kept = weights > 1e-40
        weights, deviations = 0.05 * weights[kept], np.sqrt(float(ds.clean_error) + variances[kept])
        V = float(ds.V)
        edges = [0.0, *np.geomspace(1e-8, 1e14, 200), *corners(chosen.loss, V)]
        u, lengths = panels(np.unique(np.maximum(edges, 0.0)), 10)
        density = 2.0 * sum(w * normal(u, s) for w, s in zip(weights, deviations, strict=True))
        s = proximal(chosen.loss, u, V)
        h = (u - s) / V
        assert e[1] == pytest.approx((density * h**2) @ lengths, rel=1e-9)
