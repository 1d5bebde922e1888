"""Label rules whose labels are numbers: moments, draws and tables against other computations."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, ndtr

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, noises
from hiddenmanifold.checks import Task
from hiddenmanifold.teachers import (
    REGISTRY,
    Binomial,
    Density,
    Discrete,
    Gamma,
    Linear,
    LogNormal,
    NegativeBinomial,
    Ordered,
    PointTeacher,
    Poisson,
    Real,
    RealTeacher,
)


def steps(nu):
    return np.where(nu > 0.3, 2.0, -1.0)


def half(nu):
    return 0.5 + 0.5 * np.abs(nu)


def twice_tanh(nu):
    return np.tanh(2.0 * nu)


def grades(nu):
    p = np.exp([0.0 * nu, 0.5 * nu, nu - 0.3])
    return p / p.sum(0)


def jumping_grades(nu):
    up = np.where(nu > 0.5, 0.9, 0.2)
    return np.array([1.0 - up, up])


def skewed(y, nu):
    """A normal density of deviation 0.5 around tanh ν, tilted by the sine of y - tanh ν."""
    u = (y - np.tanh(nu)) / 0.5
    return np.exp(-0.5 * u**2) * (1.0 + 0.3 * np.sin(u)) / (0.5 * np.sqrt(2.0 * np.pi))


def draw_skewed(nu, rng):
    u = rng.standard_normal(nu.shape)
    u = np.where(rng.random(nu.shape) < 0.5 * (1.0 + 0.3 * np.sin(u)), u, -u)
    return np.tanh(nu) + 0.5 * u


SKEWED = Density(skewed, tuple(np.linspace(-6.0, 6.0, 13)), draw_skewed)
TEACHERS = {
    "tanh": Real("tanh", 0.2),
    "relu": Real("relu", "laplace(0.5)", rho=1.7),
    "jump": Real(steps, "uniform(0.4)", kinks=(0.3,)),
    "heteroscedastic": Real("sine", "student(5,0.3)", scale=half, kinks=(0.0,), rho=0.6),
    "shifted noise": Real(
        "cube", noises.Custom(lambda x: 2.0 * x, lambda n, rng: np.sqrt(rng.random(n)), (0.0, 1.0))
    ),
    "linear": Linear("mixture(0.9,0.1;0.2,4)", rho=1.4),
    "poisson": Poisson(intercept=0.3, slope=0.6),
    "softplus counts": Poisson("softplus", slope=2.0, rho=0.7),
    "relu counts": Poisson("relu"),
    "negative binomial": NegativeBinomial(size=1.5, intercept=-0.2, slope=0.5, rho=1.3),
    "binomial": Binomial(4, intercept=0.5, slope=2.0),
    "one trial": Binomial(slope=3.0, rho=0.8),
    "ordered": Ordered((0.0, 1.0, 5.0), (-0.5, 0.8), noise=0.3, rho=1.2),
    "sharp grades": Ordered(),
    "narrow grades": Ordered((-1.0, 0.0, 1.0), (-0.4, 0.4), noise=1e-3),
    "discrete": Discrete((-1.0, 0.5, 3.0), grades, rho=1.5),
    "jumping grades": Discrete((0.0, 2.0), jumping_grades, kinks=(0.5,)),
    "gamma": Gamma(shape=0.7, intercept=0.2, slope=0.5),
    "softplus gamma": Gamma("softplus", shape=4.0, rho=2.0),
    "log-normal": LogNormal(variance=0.4, intercept=-0.3, slope=0.6, rho=0.9),
    "density": SKEWED,
}
every_teacher = pytest.mark.parametrize("teacher", TEACHERS.values(), ids=TEACHERS)
POINTS = {name: teacher for name, teacher in TEACHERS.items() if isinstance(teacher, PointTeacher)}
every_point_teacher = pytest.mark.parametrize("teacher", POINTS.values(), ids=POINTS)


def over_field(function, rho, cuts=()):
    """Average of a function of the field, by adaptive quadrature."""
    sd = np.sqrt(rho)
    inner = [c for c in cuts if abs(c) < 14 * sd]
    edges = np.unique([*(sd * np.array([-14.0, -7.0, -3.0, 0.0, 3.0, 7.0, 14.0])), *inner])
    density = stats.norm(scale=sd).pdf
    return sum(
        integrate.quad(lambda nu: function(nu) * density(nu), a, b, epsabs=1e-14, epsrel=1e-12)[0]
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    )


# mean and variance of a label given the field, written anew from the definition of each rule
GIVEN_FIELD = {
    "tanh": (np.tanh, lambda nu: 0.2),
    "relu": (lambda nu: max(nu, 0.0), lambda nu: 2 * 0.5**2),
    "jump": (lambda nu: 2.0 if nu > 0.3 else -1.0, lambda nu: 0.4**2 / 3),
    "heteroscedastic": (np.sin, lambda nu: 0.09 * 5 / 3 * (0.5 + 0.5 * abs(nu)) ** 2),
    "shifted noise": (lambda nu: nu**3 + 2 / 3, lambda nu: 1 / 2 - 4 / 9),
    "linear": (lambda nu: nu, lambda nu: 0.9 * 0.2 + 0.1 * 4),
    "poisson": (lambda nu: np.exp(0.3 + 0.6 * nu), lambda nu: np.exp(0.3 + 0.6 * nu)),
    "softplus counts": (
        lambda nu: np.log1p(np.exp(2 * nu)),
        lambda nu: np.log1p(np.exp(2 * nu)),
    ),
    "relu counts": (lambda nu: max(nu, 0.0), lambda nu: max(nu, 0.0)),
    "negative binomial": (
        lambda nu: np.exp(0.5 * nu - 0.2),
        lambda nu: np.exp(0.5 * nu - 0.2) * (1 + np.exp(0.5 * nu - 0.2) / 1.5),
    ),
    "binomial": (
        lambda nu: 4 * expit(0.5 + 2 * nu),
        lambda nu: 4 * expit(0.5 + 2 * nu) * expit(-0.5 - 2 * nu),
    ),
    "one trial": (lambda nu: expit(3 * nu), lambda nu: expit(3 * nu) * expit(-3 * nu)),
    "softplus gamma": (
        lambda nu: np.log1p(np.exp(nu)),
        lambda nu: np.log1p(np.exp(nu)) ** 2 / 4,
    ),
    "gamma": (lambda nu: np.exp(0.2 + 0.5 * nu), lambda nu: np.exp(0.4 + nu) / 0.7),
    "log-normal": (
        lambda nu: np.exp(0.6 * nu - 0.3),
        lambda nu: np.exp(1.2 * nu - 0.6) * (np.exp(0.4) - 1),
    ),
    # E[u sin u] = E cos u = exp(-1/2) of a standard normal u
    "density": (
        lambda nu: np.tanh(nu) + 0.5 * 0.3 * np.exp(-0.5),
        lambda nu: 0.25 * (1 - (0.3 * np.exp(-0.5)) ** 2),
    ),
}


def of_values(values, shares):
    """Mean and variance of a label of a finite set."""

    def mean(nu):
        return float(np.dot(values, shares(nu)))

    return mean, lambda nu: float(np.dot(np.square(values), shares(nu))) - mean(nu) ** 2


def shares_of(cuts, noise):
    """Probabilities of intervals between the cuts."""

    def shares(nu):
        away = np.array([-np.inf, *cuts, np.inf]) - nu
        return np.diff(ndtr(away / np.sqrt(noise)) if noise else (away > 0).astype(float))

    return shares


GIVEN_FIELD |= {
    "ordered": of_values((0.0, 1.0, 5.0), shares_of((-0.5, 0.8), 0.3)),
    "sharp grades": of_values((0.0, 1.0, 2.0), shares_of((-0.5, 0.5), 0.0)),
    "narrow grades": of_values((-1.0, 0.0, 1.0), shares_of((-0.4, 0.4), 1e-3)),
    "discrete": of_values((-1.0, 0.5, 3.0), lambda nu: grades(np.array(nu))),
    "jumping grades": of_values((0.0, 2.0), lambda nu: jumping_grades(np.array(nu))),
}
CUTS = {"narrow grades": (-0.6, -0.5, -0.4, -0.3, -0.2, 0.2, 0.3, 0.4, 0.5, 0.6)}


@pytest.mark.parametrize("name", TEACHERS)
def test_mean_and_variance_given_the_field_follow_from_the_rule(name):
    teacher, (mean, variance) = TEACHERS[name], GIVEN_FIELD[name]
    nu = np.sqrt(teacher.rho) * np.linspace(-4.0, 4.0, 33)
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(teacher.label_mean(nu), [mean(x) for x in nu], **close)
    np.testing.assert_allclose(teacher.noiseless(nu), [mean(x) for x in nu], **close)
    np.testing.assert_allclose(teacher.label_variance(nu), [variance(x) for x in nu], **close)


@pytest.mark.parametrize("name", TEACHERS)
def test_moments_are_integrals_over_the_field(name):
    teacher, (mean, variance) = TEACHERS[name], GIVEN_FIELD[name]
    rho, cuts = teacher.rho, CUTS.get(name, teacher.kinks)
    m = teacher.moments
    explained = over_field(lambda nu: mean(nu) ** 2, rho, cuts)
    second = explained + over_field(variance, rho, cuts)
    slope = over_field(lambda nu: nu * mean(nu), rho, cuts) / rho
    found = (m.mean, m.second, m.slope, m.explained)
    expected = (over_field(mean, rho, cuts), second, slope, explained)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


# section 4 of the theory: c = E[y ν]/ρ


def sine_slope(rho):
    return np.exp(-0.5 * rho)


@pytest.mark.parametrize("rho", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(
    ("function", "slope"),
    [
        ("identity", lambda rho: 1.0),
        ("relu", lambda rho: 0.5),
        ("cube", lambda rho: 3.0 * rho),
        ("absolute", lambda rho: 0.0),
        ("square", lambda rho: 0.0),
        (np.cos, lambda rho: 0.0),
        ("sine", sine_slope),
        ("exp", lambda rho: np.exp(0.5 * rho)),
    ],
    ids=["identity", "relu", "cube", "absolute", "square", "cosine", "sine", "exp"],
)
def test_slopes_have_closed_forms(function, slope, rho):
    assert Real(function, rho=rho).moments.slope == pytest.approx(slope(rho), rel=1e-10, abs=1e-14)


def test_slopes_of_a_steep_tangent_and_of_a_sign():
    assert Real(twice_tanh).moments.slope == pytest.approx(0.72948, abs=5e-6)
    for rho in (0.3, 1.7):
        sign = Real(np.sign, kinks=(0.0,), rho=rho)
        assert sign.moments.slope == pytest.approx(np.sqrt(2 / (np.pi * rho)), rel=1e-10)


@settings(max_examples=8)
@given(a=st.floats(-1.0, 1.0), c=st.floats(-0.9, 0.9), rho=st.floats(0.2, 1.5))
def test_counts_of_an_exponential_rate_have_moments_in_closed_form(a, c, rho):
    m = Poisson(intercept=a, slope=c, rho=rho).moments
    mean = np.exp(a + 0.5 * c**2 * rho)
    assert m.mean == pytest.approx(mean, rel=1e-10)
    assert m.slope == pytest.approx(c * mean, rel=1e-10, abs=1e-13)
    assert m.second == pytest.approx(np.exp(2 * a + 2 * c**2 * rho) + mean, rel=1e-10)


def test_linear_labels_are_real_labels_of_the_identity():
    linear, real = Linear("laplace(0.4)", rho=1.6), Real("identity", "laplace(0.4)", rho=1.6)
    np.testing.assert_allclose(linear.moments, real.moments, rtol=1e-12, atol=1e-15)
    nu = np.linspace(-3.0, 3.0, 7)
    for ours, theirs in zip(linear.components(nu, 1), real.components(nu, 1), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-15)


def test_labels_without_variance_have_an_infinite_mean_square():
    for teacher in (Linear("student(1.5)"), Real("tanh", "student(1.5)")):
        assert teacher.moments.second == np.inf
        assert np.isfinite([teacher.moments.slope, teacher.moments.explained]).all()


# ---------------------------------------------------------------- draws


@every_teacher
def test_draws_have_the_mean_and_variance_given_the_field(teacher):
    rng, count = np.random.default_rng(8), 40_000
    for nu in np.sqrt(teacher.rho) * np.array([-1.5, 0.35, 1.1]):
        fields = np.full((2, count // 2), nu)
        y = teacher.sample(fields, rng)
        assert y.shape == fields.shape and y.dtype == float
        (mean,), (variance,) = (
            of(np.array([nu])) for of in (teacher.label_mean, teacher.label_variance)
        )
        assert y.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / count) + 1e-12)
        error = ((y - mean) ** 2).std() / np.sqrt(count)
        assert ((y - mean) ** 2).mean() == pytest.approx(variance, abs=5 * error + 1e-12)


@every_teacher
def test_draws_follow_the_components(teacher):
    """The law given the field as the theory has it, at some quantiles of the draws."""
    nu = np.sqrt(teacher.rho) * np.array([0.7])
    y = teacher.sample(np.repeat(nu, 20_000), np.random.default_rng(3))
    weights, means, variances = (part[:, 0] for part in teacher.components(nu, 6))
    # between labels, where these are discrete, and between points that stand for a density
    cuts = np.quantile(y, [0.1, 0.4, 0.7, 0.95]) + 0.001
    away = cuts - means[:, None]
    with np.errstate(divide="ignore"):
        below = np.where(
            variances[:, None] > 0, ndtr(away / np.sqrt(variances)[:, None]), away > 0.0
        )
    expected = weights @ below
    found = (y[:, None] <= cuts).mean(0)
    width = weights[variances == 0].max(initial=0.0) * (not teacher.discrete)
    error = np.sqrt(np.maximum(expected * (1 - expected), 0.0) / len(y))
    assert (np.abs(found - expected) <= 5 * error + 1e-3 + width).all()


@pytest.mark.parametrize(
    "name", ["poisson", "negative binomial", "binomial", "gamma", "log-normal"]
)
def test_the_law_is_scipys(name):
    nu, teacher = np.array([-0.8, 0.4, 1.3]), TEACHERS[name]
    y = (
        np.array([[0.0], [1.0], [3.0], [4.0]])
        if teacher.discrete
        else np.array([[0.2], [1.0], [4]])
    )
    mean = np.array([GIVEN_FIELD[name][0](x) for x in nu])
    expected = {
        "poisson": lambda: stats.poisson(mean).pmf(y),
        "negative binomial": lambda: stats.nbinom(1.5, 1.5 / (1.5 + mean)).pmf(y),
        "binomial": lambda: stats.binom(4, mean / 4).pmf(y),
        "gamma": lambda: stats.gamma(0.7, scale=mean / 0.7).pdf(y),
        "log-normal": lambda: stats.lognorm(np.sqrt(0.4), scale=mean * np.exp(-0.2)).pdf(y),
    }[name]()
    np.testing.assert_allclose(teacher.law(y, nu), expected, rtol=1e-12)


# ---------------------------------------------------------------- tables


@every_point_teacher
@pytest.mark.parametrize("level", [2, 3])
def test_tables_sum_to_one_and_have_the_moments(teacher, level):
    y, nu, T = teacher.table(level)
    m = teacher.moments
    assert T.shape == (len(y), len(nu)) and T.min() >= 0.0
    assert T.sum() == pytest.approx(1.0, rel=1e-11)
    p = T.sum(1)
    assert p @ y == pytest.approx(m.mean, rel=1e-10, abs=1e-11 * np.sqrt(m.second))
    assert p @ y**2 == pytest.approx(m.second, rel=1e-10)
    assert y @ T @ nu / teacher.rho == pytest.approx(m.slope, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("intercept", [3.0, 5.0, 7.0])
def test_sums_over_octaves_of_counts_are_sums_over_counts(intercept):
    """Gauss's rule stands for hundreds of counts: moments to the fourth are those of all."""
    teacher = Poisson(intercept=intercept, slope=0.3)
    y, _, T = teacher.table(3)
    assert len(y) < 400
    # factorial moments of counts are powers of the rate, which is log-normal
    falling, law = np.ones_like(y), T.sum(1)
    for power in range(1, 5):
        falling = falling * (y - (power - 1))
        exact = np.exp(power * intercept + 0.5 * (0.3 * power) ** 2)
        assert law @ falling == pytest.approx(exact, rel=1e-10)


def test_long_tails_of_counts_are_kept():
    teacher = Poisson(intercept=1.0, slope=1.0)
    y, _, T = teacher.table(3)
    assert y.max() > 1e4
    assert T.sum(1) @ y**2 == pytest.approx(np.exp(4.0) + np.exp(1.5), rel=1e-10)


# ---------------------------------------------------------------- symmetry, equality, copies

SYMMETRIC = {
    "tanh": (Real("tanh", 0.3), True),
    "identity": (Real("identity", "laplace(1)"), True),
    "cube": (Real("cube", "student(3,1)", rho=0.5), True),
    "even scale": (Real("sine", 0.1, scale=half, kinks=(0.0,)), True),
    "sign": (Real(np.sign, kinks=(0.0,)), True),
    "relu": (Real("relu", 0.3), False),
    "square": (Real("square"), False),
    "growing scale": (Real("tanh", 0.1, scale=np.exp), False),
    "shifted noise": (TEACHERS["shifted noise"], False),
    "linear": (Linear(0.3), True),
    "linear uniform": (Linear("uniform(0.4)"), True),
    "linear shifted": (Linear(TEACHERS["shifted noise"].noise), False),
    "poisson": (Poisson(), False),
    "gamma": (Gamma(), False),
    "log-normal": (LogNormal(), False),
    "binomial": (Binomial(3), False),
}


@pytest.mark.parametrize(("teacher", "symmetric"), SYMMETRIC.values(), ids=SYMMETRIC)
def test_symmetry_is_known(teacher, symmetric):
    assert teacher.symmetric is symmetric


@every_teacher
def test_a_rule_that_calls_itself_symmetric_has_symmetric_moments(teacher):
    if teacher.symmetric:
        nu = np.sqrt(teacher.rho) * np.linspace(0.0, 4.0, 41)[1:]
        np.testing.assert_allclose(teacher.label_mean(-nu), -teacher.label_mean(nu), rtol=1e-13)
        np.testing.assert_allclose(teacher.label_variance(-nu), teacher.label_variance(nu))
        assert teacher.moments.mean == pytest.approx(0.0, abs=1e-13)


PICKLED = {name: teacher for name, teacher in TEACHERS.items() if name != "shifted noise"}


@pytest.mark.parametrize("name", PICKLED)
def test_teachers_survive_pickling_and_equal_their_copies(name):
    teacher = PICKLED[name]
    _ = teacher.moments
    copy = pickle.loads(pickle.dumps(teacher))
    assert copy == teacher and hash(copy) == hash(teacher) and repr(copy) == repr(teacher)
    np.testing.assert_array_equal(copy.moments, teacher.moments)
    assert not any(name.startswith("_") for name in vars(pickle.loads(pickle.dumps(copy))))


def test_teachers_that_differ_are_different():
    assert Poisson() == Poisson() != Poisson(slope=0.9)
    assert Real("tanh") != Real("relu") and Real("tanh", 0.1) != Real("tanh", 0.2)
    assert Gamma() != LogNormal() and NegativeBinomial() != Poisson()
    assert Linear(0.1) == Linear(noise=0.1) != Linear("gaussian(0.2)")


@pytest.mark.parametrize("name", REGISTRY)
def test_every_registered_teacher_of_numbers_is_one(name):
    teacher = REGISTRY[name]()
    assert (teacher.task is Task.REGRESSION) == isinstance(teacher, RealTeacher)


@every_teacher
def test_typical_labels_are_finite_and_possible(teacher):
    y = teacher.typical_labels
    assert np.isfinite(y).all() and len(y) <= 64
    if isinstance(teacher, Poisson | NegativeBinomial | Gamma | LogNormal | Binomial):
        assert y.min() >= 0.0


# ---------------------------------------------------------------- what is refused

NAN = float("nan")


def broken(nu):
    return np.where(nu > 2.0, NAN, 1.0)


REFUSED = {
    "function not finite": (lambda: Real(broken), "function", "finite everywhere"),
    "function not vectorised": (lambda: Real(lambda nu: 1.0), "function", "vectorised"),
    "function that raises": (lambda: Real(lambda nu: nu.absent), "function", "vectorised"),
    "no function": (lambda: Real(3.0), "function", "a name or a function"),
    "unknown name": (lambda: Real("tahn"), "function", "one of 'identity'.*did you mean 'tanh'"),
    "undeclared jump": (lambda: Real(steps), "teacher", "declare jumps and corners by kinks"),
    "undeclared corner": (
        lambda: Real(lambda nu: np.maximum(nu - 0.123, 0.0)),
        "teacher",
        "declare jumps and corners",
    ),
    "negative scale": (lambda: Real("tanh", 0.1, scale=np.sin), "scale", "not be negative"),
    "scale NaN": (lambda: Real("tanh", 0.1, scale=broken), "scale", "finite everywhere"),
    "kinks NaN": (lambda: Real("tanh", kinks=(NAN,)), "kinks", "finite numbers"),
    "bad noise": (lambda: Real("tanh", "laplas(1)"), "noise", "did you mean 'laplace'"),
    "rho zero": (lambda: Real("tanh", rho=0.0), "rho", "at least"),
    "growth": (lambda: Real(lambda nu: np.exp(nu**2)), "teacher", "grows more slowly"),
    "steep counts": (lambda: Poisson(slope=40.0), "teacher", "grows more slowly"),
    "steep mean": (lambda: Gamma(slope=40.0), "teacher", "grows more slowly"),
    "negative rate": (lambda: Poisson("identity"), "rate", "mean count: not negative"),
    "rate NaN": (lambda: Poisson(broken), "rate", "finite everywhere"),
    "unknown rate": (lambda: NegativeBinomial("exq"), "rate", "did you mean 'exp'"),
    "intercept of a callable": (
        lambda: Poisson(np.exp, intercept=0.3),
        "intercept and slope",
        "write them into the function rate itself",
    ),
    "slope of a callable": (
        lambda: Binomial(2, expit, slope=2.0),
        "intercept and slope",
        "write them into the function probability itself",
    ),
    "size": (lambda: NegativeBinomial(size=0.0), "size", "at least 0.01"),
    "probability above one": (
        lambda: Binomial(2, lambda nu: 1.1 * expit(nu)),
        "probability",
        r"within \[0, 1\]",
    ),
    "probability below zero": (lambda: Binomial(2, np.tanh), "probability", r"within \[0, 1\]"),
    "undeclared jump of a probability": (
        lambda: Binomial(2, lambda nu: np.where(nu > 0.123, 0.8, 0.1)),
        "teacher",
        "declare jumps",
    ),
    "no trials": (lambda: Binomial(0), "trials", "at least 1"),
    "half a trial": (lambda: Binomial(1.5), "trials", "whole number"),
    "many trials": (lambda: Binomial(1001), "trials", "at most 1000"),
    "one value": (lambda: Ordered((1.0,), ()), "values", "at least two different numbers"),
    "equal values": (lambda: Ordered((1.0, 1.0), (0.0,)), "values", "two different"),
    "cuts too many": (lambda: Ordered(cuts=(0.0, 1.0, 2.0)), "cuts", "2 increasing numbers"),
    "cuts not sorted": (lambda: Ordered(cuts=(1.0, -1.0)), "cuts", "2 increasing numbers"),
    "noise of grades": (lambda: Ordered(noise=-1.0), "noise", "at least 0"),
    "probabilities sum to 0.9": (
        lambda: Discrete((0.0, 1.0), lambda nu: np.array([0.5 + 0 * nu, 0.4 + 0 * nu])),
        "probabilities",
        "must sum to one",
    ),
    "negative probabilities": (
        lambda: Discrete((0.0, 1.0), lambda nu: np.array([1.0 + nu, -nu])),
        "probabilities",
        "correct the function",
    ),
    "rows of probabilities": (
        lambda: Discrete((0.0, 1.0, 2.0), lambda nu: np.array([0.5 + 0 * nu, 0.5 + 0 * nu])),
        "probabilities",
        "one row for each of the 3 values",
    ),
    "jumping probabilities": (
        lambda: Discrete((0.0, 2.0), lambda nu: jumping_grades(nu + 0.2)),
        "teacher",
        "declare jumps",
    ),
    "mean zero": (lambda: Gamma("relu"), "mean", "positive mean"),
    "shape": (lambda: Gamma(shape=0.01), "shape", "at least 0.05"),
    "variance": (lambda: LogNormal(variance=0.0), "variance", "at least 1e-06"),
    "density of mass 2": (
        lambda: Density(lambda y, nu: 2 * skewed(y, nu), SKEWED.grid, draw_skewed),
        "density",
        "extend the grid, or add edges",
    ),
    "density on a short grid": (
        lambda: Density(skewed, (-1.0, 0.0, 1.0), draw_skewed),
        "density",
        "extend the grid",
    ),
    "negative density": (
        lambda: Density(lambda y, nu: skewed(y, nu) - 0.1, SKEWED.grid, draw_skewed),
        "density",
        "finite numbers of at least 0",
    ),
    "grid": (lambda: Density(skewed, (1.0, -1.0), draw_skewed), "grid", "increasing edges"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_argument_and_the_remedy(case):
    make, argument, remedy = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=remedy) as caught:
        make()
    assert caught.value.argument == argument


def test_a_jump_at_zero_where_panels_end_anyway_needs_no_kink():
    for rho in (0.3, 1.0):
        plain, declared = Real(np.sign, rho=rho), Real(np.sign, kinks=(0.0,), rho=rho)
        np.testing.assert_allclose(plain.moments, declared.moments, rtol=1e-14)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "binomial"])
def test_a_loss_of_label_and_score_needs_labels_at_points(loss):
    parts = {"activation": "erf", "projection": "gaussian"}
    with pytest.raises(hm.IncompatibleIngredientsError, match=r"as teachers\.Density"):
        hm.Model(**parts, teacher=Real("exp"), loss=loss)


def test_declared_kinks_and_those_of_named_functions_are_merged():
    assert Real("relu", kinks=(1.0,)).kinks == (0.0, 1.0)
    assert Poisson("relu", intercept=0.5, slope=2.0).kinks == (-0.25,)
    assert Real("tanh").kinks == ()
