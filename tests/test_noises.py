"""Laws of noise: draws and mixtures of normals against scipy's laws, and what is refused."""

import pickle

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, noises
from hiddenmanifold.teachers.noises import REGISTRY, noise_of


def triangular(x):
    return np.maximum(1.0 - np.abs(x - 0.5), 0.0)


def draw_triangular(shape, rng):
    return 0.5 + rng.random(shape) - rng.random(shape)


TRIANGULAR = noises.Custom(triangular, draw_triangular, between=(-0.5, 0.5, 1.5))

# each law, and scipy's
LAWS = {
    "gaussian": (noises.Gaussian(0.49), stats.norm(scale=0.7)),
    "laplace": (noises.Laplace(0.7), stats.laplace(scale=0.7)),
    "cauchy": (noises.Student(1.0, 0.3), stats.cauchy(scale=0.3)),
    "student 0.5": (noises.Student(0.5), stats.t(0.5)),
    "student 2.5": (noises.Student(2.5, 2.0), stats.t(2.5, scale=2.0)),
    "student 30": (noises.Student(30.0), stats.t(30)),
    "student 3000": (noises.Student(3000.0, 1.5), stats.t(3000, scale=1.5)),
    "mixture": (noises.Mixture((0.8, 0.2), (0.25, 9.0)), None),
    "uniform": (noises.Uniform(1.3), stats.uniform(-1.3, 2.6)),
    "custom": (TRIANGULAR, stats.triang(0.5, loc=-0.5, scale=2.0)),
}
SCALE_MIXTURES = [name for name in LAWS if name not in ("uniform", "custom")]
X = np.concatenate([-np.geomspace(1e-3, 30.0, 25), [0.0], np.geomspace(1e-3, 30.0, 25)])


def cdf(name):
    """Distribution function of a law."""
    law, known = LAWS[name]
    if known is not None:
        return known.cdf
    normals = [stats.norm(scale=np.sqrt(v)).cdf for v in law.variances]
    return lambda x: sum(w * normal(x) for w, normal in zip(law.weights, normals, strict=True))


def characteristic(name, t):
    """Characteristic function of a law at positive t."""
    law, _ = LAWS[name]
    if name == "gaussian":
        return np.exp(-0.5 * 0.49 * t**2)
    if name == "laplace":
        return 1.0 / (1.0 + (0.7 * t) ** 2)
    if name == "mixture":
        return 0.8 * np.exp(-0.125 * t**2) + 0.2 * np.exp(-4.5 * t**2)
    if name == "uniform":
        return np.sinc(1.3 * t / np.pi)
    if name == "custom":
        return np.exp(0.5j * t) * np.sinc(0.5 * t / np.pi) ** 2
    order = 0.5 * mp.mpf(law.degrees)
    with mp.workdps(30):
        z = [mp.sqrt(2 * order) * law.scale * mp.mpf(at) for at in t]
        return [float(2 * (x / 2) ** order * mp.besselk(order, x) / mp.gamma(order)) for x in z]


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_the_law(name):
    law, _ = LAWS[name]
    draws = law.sample((40, 500), np.random.default_rng(5))
    assert draws.shape == (40, 500)
    assert stats.kstest(draws.ravel(), cdf(name)).pvalue > 1e-3


@pytest.mark.parametrize("name", SCALE_MIXTURES)
@pytest.mark.parametrize(("level", "close"), [(0, 2e-4), (2, 1e-5), (4, 1e-9), (6, 1e-12)])
def test_mixtures_of_normals_have_the_distribution_function(name, level, close):
    """On all scales, finer with the level: a certificate compares two levels."""
    weights, means, variances = LAWS[name][0].components(level)
    found = weights @ special.ndtr((X - means[:, None]) / np.sqrt(variances)[:, None])
    np.testing.assert_allclose(found, cdf(name)(X), rtol=0, atol=close)


@pytest.mark.parametrize("name", ["cauchy", "student 0.5", "student 2.5", "student 30"])
def test_far_tails_keep_their_relative_precision(name):
    """Where V is large, averages see little else."""
    weights, _, variances = LAWS[name][0].components(8)
    scale = LAWS[name][0].scale
    x = scale * np.array([1e1, 1e2, 1e3])
    found = weights @ special.ndtr(-x / np.sqrt(variances)[:, None])
    expected = LAWS[name][1].sf(x)
    seen = expected > 1e-14
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-11)


@pytest.mark.parametrize("name", sorted(set(LAWS) - {"student 3000"}))  # slow in mpmath
def test_mixtures_of_normals_have_the_characteristic_function(name):
    weights, means, variances = LAWS[name][0].components(6)
    assert weights.min() > 0 and variances.min() >= 0
    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    t = np.geomspace(1e-2, 12.0, 10)
    found = weights @ np.exp(1j * t * means[:, None] - 0.5 * t**2 * variances[:, None])
    np.testing.assert_allclose(found, characteristic(name, t), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["uniform", "custom"])
def test_points_of_a_bounded_law_become_finer_with_the_level(name):
    """Frequencies twice as high need twice as many points."""
    law = LAWS[name][0]
    for level in range(1, 9):
        weights, points, variances = law.components(level)
        assert not variances.any()
        t = 8.0 * 2.0 ** (level - 1)
        found = weights @ np.exp(1j * t * points)
        np.testing.assert_allclose(found, characteristic(name, np.array(t)), atol=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_mean_and_variance_are_those_of_the_law(name):
    law, known = LAWS[name]
    mean, variance = (0.0, 0.2 + 1.8) if known is None else known.stats("mv")
    if law.has_mean:
        assert law.mean == pytest.approx(float(mean), abs=1e-14)
    if name in ("cauchy", "student 0.5"):
        assert law.variance == np.inf
    else:
        assert law.variance == pytest.approx(float(variance), rel=1e-12)
    assert law.has_mean == (name not in ("cauchy", "student 0.5"))
    assert law.symmetric == (name != "custom")


@pytest.mark.parametrize("degrees", [1.5, 2.0])
def test_a_student_law_may_have_a_mean_but_no_variance(degrees):
    assert noises.Student(degrees).has_mean
    assert noises.Student(degrees).variance == np.inf


def test_no_noise_is_drawn_as_zero():
    silent = noises.Gaussian(0.0)
    assert not silent.sample((3, 2), np.random.default_rng(0)).any()
    assert silent.variance == 0.0


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("gaussian(0.3)", noises.Gaussian(0.3)),
        ("laplace(0.5)", noises.Laplace(0.5)),
        ("laplace", noises.Laplace()),
        ("student(3,1.5)", noises.Student(3.0, 1.5)),
        ("student(3; 1.5)", noises.Student(3.0, 1.5)),
        ("uniform(2)", noises.Uniform(2.0)),
        ("mixture(0.9,0.1;1,100)", noises.Mixture((0.9, 0.1), (1.0, 100.0))),
        (0.3, noises.Gaussian(0.3)),
        (np.float32(0.5), noises.Gaussian(0.5)),
        (2, noises.Gaussian(2.0)),
        (None, noises.Gaussian(0.0)),
        (noises.Uniform(2.0), noises.Uniform(2.0)),
    ],
    ids=str,
)
def test_a_number_or_a_text_stands_for_noise(text, meant):
    assert noise_of(text) == meant
    assert hm.teachers.Real("tanh", noise=text).law == meant
    assert hm.teachers.Linear(noise=0.0 if text is None else text).law == meant


@pytest.mark.parametrize("name", REGISTRY)
def test_every_registered_law_has_defaults_and_survives_pickling(name):
    law = noise_of(name)
    assert type(law) is REGISTRY[name]
    assert pickle.loads(pickle.dumps(law)) == law
    assert hash(law) == hash(REGISTRY[name]())


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("laplas(1)", "did you mean 'laplace'"),
        ("laplas", "did you mean 'laplace'"),
        ("qqq(1)", "one of 'gaussian', 'laplace'"),
        ("laplace(one)", "a name and numbers, as 'student"),
        ("laplace()", "a name and numbers"),
        ("laplace 1", "one of 'gaussian'"),
        (["laplace"], "or a Noise object"),
        (noises.Laplace, r"did you mean Laplace\(\)"),
        (-0.3, "a finite number of at least 0"),
        (float("nan"), "a finite number of at least 0"),
    ],
    ids=str,
)
def test_noise_that_is_not_understood_is_answered_with_what_is(text, hint):
    for make in (noise_of, lambda noise: hm.teachers.Linear(noise=noise)):
        with pytest.raises(InvalidArgumentError, match=hint) as caught:
            make(text)
        assert caught.value.argument == "noise"


@pytest.mark.parametrize("text", ["laplace(1,2)", "gaussian(1,2,3)", "uniform(1,1)"])
def test_too_many_numbers_are_refused(text):
    with pytest.raises(InvalidArgumentError) as caught:
        noise_of(text)
    assert caught.value.argument == "noise"


@pytest.mark.parametrize("text", ["mixture(0.9,0.1,1)", "mixture(0.5,0.6,1,1)"])
def test_a_mixture_in_words_is_checked_as_others(text):
    with pytest.raises(InvalidArgumentError):
        noise_of(text)


NAN, INF = float("nan"), float("inf")
REFUSED = {
    "weights sum to 0.9": (
        lambda: noises.Mixture((0.5, 0.4), (1.0, 2.0)),
        "weights",
        "positive, with the sum 1",
    ),
    "negative weight": (lambda: noises.Mixture((1.5, -0.5), (1.0, 2.0)), "weights", "positive"),
    "weights without variances": (
        lambda: noises.Mixture((0.5, 0.5), (1.0,)),
        "variances",
        "one variance for each weight",
    ),
    "negative variance": (lambda: noises.Mixture((0.5, 0.5), (1.0, -2.0)), "variances", "from 0"),
    "no weights": (lambda: noises.Mixture((), ()), "weights", "non-empty"),
    "words": (lambda: noises.Mixture(("a", "b"), (1.0, 2.0)), "weights", "finite numbers"),
    "variance below zero": (lambda: noises.Gaussian(-1.0), "variance", "at least 0"),
    "infinite variance": (lambda: noises.Gaussian(INF), "variance", "finite"),
    "no scale": (lambda: noises.Laplace(0.0), "scale", "at least 1e-20"),
    "scale NaN": (lambda: noises.Student(3.0, NAN), "scale", "finite"),
    "few degrees": (lambda: noises.Student(0.4), "degrees", "at least 0.5"),
    "no width": (lambda: noises.Uniform(0.0), "half_width", "at least 1e-20"),
    "negative density": (
        lambda: noises.Custom(lambda x: 0.5 + x, draw_triangular, (-1.0, 1.0)),
        "density",
        "must not be negative",
    ),
    "density of mass 1.2": (
        lambda: noises.Custom(lambda x: np.full_like(x, 0.6), draw_triangular, (-1.0, 1.0)),
        "density",
        r"integrates to 1.2 .*must integrate to one",
    ),
    "density with an undeclared corner": (
        lambda: noises.Custom(triangular, draw_triangular, (-0.5, 1.7)),
        "density",
        "jumps and corners in `between`",
    ),
    "density NaN": (
        lambda: noises.Custom(lambda x: x * NAN, draw_triangular, (-1.0, 1.0)),
        "density",
        "finite",
    ),
    "density that is not vectorised": (
        lambda: noises.Custom(lambda x: 0.5, draw_triangular, (-1.0, 1.0)),
        "density",
        "vectorised",
    ),
    "no interval": (
        lambda: noises.Custom(triangular, draw_triangular, (1.0,)),
        "between",
        "an interval",
    ),
    "empty interval": (
        lambda: noises.Custom(triangular, draw_triangular, (1.0, 1.0)),
        "between",
        "an interval",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_argument_and_the_remedy(case):
    make, argument, remedy = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=remedy) as caught:
        make()
    assert caught.value.argument == argument


def test_a_law_without_variance_needs_a_loss_of_bounded_slope():
    cauchy = hm.teachers.Linear("student(1)")
    parts = {"activation": "erf", "projection": "gaussian", "teacher": cauchy}
    with pytest.raises(hm.IncompatibleIngredientsError, match="infinite variance.* huber or abs"):
        hm.Model(**parts, loss="square")
    assert hm.Model(**parts, loss="huber").teacher == cauchy
