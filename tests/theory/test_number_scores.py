"""Observables of labels that are numbers: closed forms, sums over labels and fields, and draws."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr, voigt_profile, xlogy

import hiddenmanifold as hm
from hiddenmanifold import losses, noises, predictors, teachers
from hiddenmanifold.checks import Task
from hiddenmanifold.results.observables import REGISTRY
from hiddenmanifold.theory.labels_side.kinds import kind_of
from hiddenmanifold.theory.scores.distribution import Scores, observe
from hiddenmanifold.theory.scores.numbers import coverage, deviance, mean_absolute_error, r2
from hiddenmanifold.theory.scores.numbers import test_loss as mean_loss
from seeds import sampled

POINTS = np.array(  # V, Q, correlation of score and field, intercept
    [(1.0, 0.8, 0.7, 0.0), (0.5, 0.3, -0.4, 0.6), (2.0, 1.5, 0.95, -0.8)]
)
Q, B = POINTS[:, 1], POINTS[:, 3]


def scores_of(teacher, loss, prediction=None, points=POINTS):
    """The law of labels and scores at points, by a channel with a free intercept."""
    kind = kind_of(teacher, loss, linear=prediction is None)
    channel = kind(teacher, loss, True, prediction=prediction)
    V, q, correlation, b = points.T
    if channel.overlap_unknowns == 2:  # residual of linear labels
        M = np.sqrt(teacher.rho * q) * correlation
        x = np.column_stack([np.log(V), np.log(teacher.rho + channel.floor + q - 2 * M), 0 * V])
    else:
        x = np.column_stack([np.log(V), np.log(q), np.arctanh(correlation), 0 * V])
    x[:, -1] = (b - channel.best_constant) / channel.intercept_unit(x)
    return Scores.of(channel, x)


def M_of(teacher):
    return np.sqrt(teacher.rho * Q) * POINTS[:, 2]


def given_field(teacher):
    """Slope and deviation of the score given the field."""
    return M_of(teacher) / teacher.rho, np.sqrt(Q * (1 - POINTS[:, 2] ** 2))


# ---------------------------------------------------------------- closed forms


@pytest.mark.slow
@pytest.mark.parametrize(("a", "c", "rho"), [(0.2, 0.5, 1.0), (-0.4, -0.6, 1.3)])
def test_loss_of_counts(a, c, rho):
    """exp(b + Q/2) - b E y - c M of the Poisson loss, for labels of any law (section 7)."""
    for teacher in (
        teachers.Poisson(intercept=a, slope=c, rho=rho),
        teachers.NegativeBinomial("softplus", rho=rho),
        teachers.Binomial(3, rho=rho),
        teachers.Gamma(intercept=a, slope=c, rho=rho),
    ):
        m = teacher.moments
        expected = np.exp(B + 0.5 * Q) - B * m.mean - m.slope * M_of(teacher)
        found = observe(mean_loss, scores_of(teacher, losses.Poisson()))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "c", "rho"), [(0.2, 0.5, 1.0), (-0.4, -0.6, 1.3)])
def test_loss_of_positive_labels(a, c, rho):
    """E[y e^-f] + b of the Gamma loss, with a logarithmic link."""
    for teacher in (
        teachers.Gamma(shape=1.5, intercept=a, slope=c, rho=rho),
        teachers.LogNormal(variance=0.3, intercept=a, slope=c, rho=rho),
    ):
        expected = np.exp(a - B + 0.5 * (c**2 * rho - 2 * c * M_of(teacher) + Q)) + B
        found = observe(mean_loss, scores_of(teacher, losses.Gamma()))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_deviance_is_twice_the_loss_above_the_least_of_each_label():
    teacher = teachers.Poisson(intercept=0.2, slope=0.5)
    scores = scores_of(teacher, losses.Poisson())
    nu = np.linspace(-9.0, 9.0, 721)
    k = np.arange(0.0, 400.0)[:, None]
    law = stats.poisson.pmf(k, np.exp(0.2 + 0.5 * nu)) @ stats.norm.pdf(nu) * (nu[1] - nu[0])
    least = law @ (k - xlogy(k, k))[:, 0]
    m = teacher.moments
    loss = np.exp(B + 0.5 * Q) - B * m.mean - m.slope * M_of(teacher)
    np.testing.assert_allclose(observe(deviance, scores), 2 * (loss - least), rtol=1e-10)


def test_deviance_of_positive_labels_in_closed_form():
    """Least loss 1 + log y; E log y of log-normal labels is that of its exponent."""
    a, c, v = 0.1, 0.6, 0.3
    teacher = teachers.LogNormal(variance=v, intercept=a, slope=c)
    loss = np.exp(a - B + 0.5 * (c**2 - 2 * c * M_of(teacher) + Q)) + B
    found = observe(deviance, scores_of(teacher, losses.Gamma()))
    np.testing.assert_allclose(found, 2 * (loss - 1 - (a - 0.5 * v)), rtol=1e-10)


@pytest.mark.parametrize("by_rows", [False, True])
def test_normal_residuals_have_closed_forms(by_rows):
    """Linear labels and normal noise, by their residual or given the field."""
    teacher = teachers.Linear(0.25, rho=1.4)
    if by_rows:
        teacher = teachers.Real("identity", 0.25, rho=1.4)
    variance = 1.4 + 0.25 + Q - 2 * M_of(teacher)
    tau = np.sqrt(variance)
    found = scores_of(teacher, losses.Absolute())
    absolute = 2 * tau * stats.norm.pdf(B / tau) + B * (2 * ndtr(B / tau) - 1)
    np.testing.assert_allclose(observe(mean_absolute_error, found), absolute, rtol=1e-10)
    np.testing.assert_allclose(observe(mean_loss, found), absolute, rtol=1e-10)
    np.testing.assert_allclose(observe(coverage, found), ndtr(B / tau), rtol=1e-10)
    np.testing.assert_allclose(observe(r2, found), 1 - (variance + B**2) / 1.65, rtol=1e-10)
    np.testing.assert_allclose(observe(deviance, found), 2 * absolute, rtol=1e-10)
    square = scores_of(teacher, losses.Expectile(0.5))
    np.testing.assert_allclose(observe(mean_loss, square), 0.25 * (variance + B**2), rtol=1e-10)


@pytest.mark.parametrize("level", [0.2, 0.9])
def test_quantile_loss_of_normal_residuals(level):
    teacher = teachers.Linear(0.25, rho=1.4)
    tau = np.sqrt(1.65 + Q - 2 * M_of(teacher))
    upper = tau * stats.norm.pdf(B / tau) - B * ndtr(-B / tau)  # E (y - f)_+
    expected = level * upper + (1 - level) * (upper + B)
    found = observe(mean_loss, scores_of(teacher, losses.Quantile(level)))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_noise_without_a_mean_has_a_coverage_and_no_loss():
    teacher = teachers.Linear("student(1,0.3)")
    scores = scores_of(teacher, losses.Huber())
    for observed in (mean_loss, mean_absolute_error, deviance):
        assert (observe(observed, scores) == np.inf).all()
    tau = np.sqrt(1.0 + Q - 2 * M_of(teacher))
    for found, b, S in zip(observe(coverage, scores), B, tau, strict=True):
        above = integrate.quad(lambda x, S=S: voigt_profile(x, S, 0.3), 0.0, b, epsabs=1e-13)[0]
        assert found == pytest.approx(0.5 + above, rel=1e-9)


def test_laplace_noise_has_its_tails():
    """E|y - f| of the sum of a Laplace and a normal variable, by quadrature of the density."""
    teacher = teachers.Linear("laplace(0.7)", rho=1.4)
    scores, law = scores_of(teacher, losses.Huber()), stats.laplace(scale=0.7).pdf
    tau = np.sqrt(1.4 + Q - 2 * M_of(teacher))
    for i, (S, b) in enumerate(zip(tau, B, strict=True)):

        def absolute(e, S=S, b=b):
            m = e - b
            return 2 * S * stats.norm.pdf(m / S) + m * (2 * ndtr(m / S) - 1)

        both = [
            integrate.quad(lambda e: absolute(e) * law(e), low, high, epsabs=1e-13, epsrel=1e-12)[0]
            for low, high in ((-30.0, 0.0), (0.0, 30.0))
        ]
        assert observe(mean_absolute_error, scores)[i] == pytest.approx(sum(both), rel=1e-9)


# ---------------------------------------------------------------- sums over labels and fields

FIELD = np.arange(-9.0, 9.01, 0.04)
WEIGHT = 0.04 * stats.norm.pdf(FIELD)


@pytest.mark.slow
@pytest.mark.parametrize("prediction", [None, predictors.Exp()], ids=str)
def test_counts_and_predictions_of_them_meet(prediction):
    """P(y ≤ f̂) and E|y - f̂| given count and field are known: those of a (log-)normal variable."""
    teacher = teachers.Poisson(intercept=0.2, slope=0.5)
    scores = scores_of(teacher, losses.Poisson(), prediction)
    r, S = given_field(teacher)
    k = np.arange(300.0)[:, None]
    joint = stats.poisson.pmf(k, np.exp(0.2 + 0.5 * FIELD)) * WEIGHT
    covered, absolute = (observe(of, scores) for of in (coverage, mean_absolute_error))
    for i, b in enumerate(B):
        m = b + r[i] * FIELD
        if prediction is None:
            d = (k - m) / S[i]
            below = ndtr(-d)
            away = 2 * S[i] * stats.norm.pdf(d) + (k - m) * (2 * ndtr(d) - 1)
        else:
            with np.errstate(divide="ignore"):
                d = (np.log(k) - m) / S[i]
            below = ndtr(-d)
            away = k * (2 * ndtr(d) - 1) - np.exp(m + 0.5 * S[i] ** 2) * (2 * ndtr(d - S[i]) - 1)
        assert covered[i] == pytest.approx((joint * below).sum(), rel=1e-9)
        assert absolute[i] == pytest.approx((joint * away).sum(), rel=1e-9)


def test_grades_against_normal_scores():
    teacher = teachers.Ordered((0.0, 1.0, 2.5), (-0.4, 0.7), noise=0.3)
    scores = scores_of(teacher, losses.Insensitive(0.2))
    r, S = given_field(teacher)
    y = np.array([[0.0], [1.0], [2.5]])
    ends = np.array([-np.inf, -0.4, 0.7, np.inf])[:, None]
    joint = np.diff(ndtr((ends - FIELD) / np.sqrt(0.3)), axis=0) * WEIGHT
    for i, b in enumerate(B):
        m = y - b - r[i] * FIELD
        assert observe(coverage, scores)[i] == pytest.approx(
            (joint * ndtr(-m / S[i])).sum(), rel=1e-9
        )

        def upper(shift, m=m, i=i):
            """E (u - shift)_+ of a normal u."""
            t = (m - shift) / S[i]
            return S[i] * stats.norm.pdf(t) + (m - shift) * ndtr(t)

        # (|u| - w)_+ = (u - w)_+ + (-u - w)_+, and (-u - w)_+ = (u + w)_+ - (u + w)
        loss = upper(0.2) + upper(-0.2) - (m + 0.2)
        assert observe(mean_loss, scores)[i] == pytest.approx((joint * loss).sum(), rel=1e-9)


# ---------------------------------------------------------------- draws


def clipped(f):
    return np.clip(f, -0.5, 1.2)


LEVELS = losses.PerLabel(
    lambda y, f: 0.5 * (f - np.sin(y)) ** 2 + 0.1 * f**4,
    lambda y, f: f - np.sin(y) + 0.4 * f**3,
    lambda y, f: 1.0 + 1.2 * f**2 + 0.0 * y,
    scale=0.8,
)
SHIFTED = noises.Custom(lambda x: 2.0 * x, lambda n, rng: np.sqrt(rng.random(n)), (0.0, 1.0))
# teacher, loss, and a prediction that is not the score itself
DRAWN = {
    "relu laplace": (teachers.Real("relu", "laplace(0.5)", rho=1.7), losses.Quantile(0.8), None),
    "jump uniform clip": (
        teachers.Real(lambda nu: np.where(nu > 0.3, 2.0, -1.0), "uniform(0.4)", kinks=(0.3,)),
        losses.Huber(0.5),
        predictors.Custom(clipped, kinks=(-0.5, 1.2)),
    ),
    "heteroscedastic": (
        teachers.Real("sine", "student(6,0.3)", scale=lambda nu: 0.5 + 0.25 * nu**2, rho=0.6),
        losses.LogCosh(),
        None,
    ),
    "shifted": (teachers.Real("tanh", SHIFTED), losses.Expectile(0.3), None),
    "student logistic": (  # Laplace's law takes ten seconds: its peak is a corner in two variables
        teachers.Real("tanh", "student(5,0.4)"),
        losses.Expectile(0.3),
        predictors.Logistic(2.0),
    ),
    "linear mixture": (
        teachers.Linear("mixture(0.9,0.1;0.2,4)", rho=1.4),
        losses.Insensitive(0.3),
        None,
    ),
    "linear sign": (teachers.Linear(0.3), losses.Absolute(), predictors.Sign()),
    "counts exp": (teachers.Poisson("softplus"), losses.Poisson(), predictors.Exp()),
    "wide counts": (teachers.NegativeBinomial("softplus", size=1.5), LEVELS, None),
    "successes logistic": (
        teachers.Binomial(3, intercept=0.4, slope=1.5),
        losses.Binomial(3),
        predictors.Logistic(3.0),
    ),
    "gamma exp": (teachers.Gamma(shape=3.0, slope=0.4), losses.Gamma(), predictors.Exp()),
    "grades sign": (
        teachers.Ordered((-2.0, 0.0, 1.0), (-0.5, 0.8), noise=0.3),
        losses.Huber(),
        predictors.Sign(),
    ),
}


def least_of(loss, y):
    """The least loss of labels."""
    return loss.least(y) if isinstance(loss, losses.LabelLoss) else 0.0


def value_of(loss, y, f):
    return loss.value(y, f) if isinstance(loss, losses.LabelLoss) else loss.value(y - f)


AT_POINTS = [(case, point) for case in DRAWN for point in range(len(POINTS))]
AT_A_POINT = [(case, k % len(POINTS)) for k, case in enumerate(DRAWN)]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "point"), sampled(AT_POINTS, AT_A_POINT))
def test_observables_are_those_of_draws(case, point):
    teacher, loss, prediction = DRAWN[case]
    scores = scores_of(teacher, loss, prediction, POINTS[[point]])
    named = {"loss": mean_loss, "deviance": deviance, "absolute": mean_absolute_error}
    found = {name: observe(of, scores) for name, of in named.items()}
    found |= {"coverage": observe(coverage, scores), "r2": observe(r2, scores)}
    rng, count = np.random.default_rng(17), 300_000
    t, z = rng.standard_normal((2, count))
    y, m = teacher.sample(np.sqrt(teacher.rho) * t, rng), teacher.moments
    least = least_of(loss, y)
    _, q, correlation, b = POINTS[point]
    f = b + np.sqrt(q) * (correlation * t + np.sqrt(1 - correlation**2) * z)
    predicted, value = f if prediction is None else prediction(f), value_of(loss, y, f)
    drawn = {
        "loss": value,
        "deviance": 2 * (value - least),
        "absolute": np.abs(y - predicted),
        "coverage": (y <= predicted).astype(float),
        "r2": 1 - (y - predicted) ** 2 / (m.second - m.mean**2),
    }
    for name, values in drawn.items():
        sigma = values.std() / np.sqrt(count)
        assert abs(values.mean() - found[name][0]) < 4.5 * sigma, name


# ---------------------------------------------------------------- whole models

OF_NUMBERS = tuple(name for name, of in REGISTRY.items() if Task.REGRESSION in of.tasks)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_derivatives_of_observables_are_those_of_differences(loss):
    """By the logarithm of λ; tests of other labels differentiate by n and p."""
    model = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=teachers.Poisson(intercept=0.2, slope=0.4),
        loss=loss,
        intercept=True,
    )
    at = {"n_over_d": 2.0, "p_over_n": 0.6}
    ds = hm.sensitivity(model, **at, regularisation=0.5, observables=OF_NUMBERS, workers=1)
    h = 1e-2
    lam = 0.5 * np.exp(h * np.arange(-2, 3))
    around = hm.predict(model, **at, regularisation=lam, observables=OF_NUMBERS)
    for name in OF_NUMBERS:
        slope = np.array([1, -8, 0, 8, -1]) @ around[name].values / (12 * h)
        found = float(ds[f"{name}_by_log_regularisation"])
        assert found == pytest.approx(slope, rel=1e-6, abs=1e-9), name


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "huber"])
def test_observables_of_a_model_follow_from_its_errors(loss):
    teacher = teachers.Real("tanh", 0.2)
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)
    at = {"n_over_d": 2.0, "p_over_n": 0.6, "regularisation": [0.1, 1.0]}
    ds = hm.predict(model, **at, observables=OF_NUMBERS)
    share = 1.0 - ds.generalisation_error / (teacher.moments.second - teacher.moments.mean**2)
    np.testing.assert_allclose(ds.r2, share, rtol=1e-12)
    np.testing.assert_allclose(ds.deviance, 2.0 * ds.test_loss, rtol=1e-12)
    np.testing.assert_allclose(ds.coverage, 0.5, rtol=1e-10)  # of symmetric labels
    if loss == "square":
        np.testing.assert_allclose(ds.test_loss, 0.5 * ds.generalisation_error, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["test_loss", "deviance"])
def test_an_observable_can_be_what_the_best_regularisation_makes_least(target):
    model = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=teachers.Poisson(intercept=0.2, slope=0.4),
        loss="poisson",
        intercept=True,
    )
    at = {"n_over_d": 2.0, "p_over_n": 0.5}
    best = hm.predict(model, **at, regularisation=hm.Optimal(target))
    lam, least = float(best.optimal_regularisation), float(best[target])
    around = lam * np.exp([-1.0, -0.1, -0.01, 0.01, 0.1, 1.0])
    scan = hm.predict(model, **at, regularisation=around, observables=target)
    assert (scan[target] >= least - 1e-11 * abs(least)).all()
