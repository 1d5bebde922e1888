"""Mean square errors of any prediction of any labels: closed forms, sums, and draws."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import hiddenmanifold as hm
from hiddenmanifold import losses, predictors, teachers
from hiddenmanifold.theory.labels_side.kinds import kind_of
from hiddenmanifold.theory.scores.square_errors import square_errors

POINTS = np.array(  # V, Q, correlation of score and field, intercept
    [(1.0, 0.8, 0.7, 0.0), (0.5, 0.3, -0.4, 0.6), (2.0, 2.5, 0.95, -0.8), (1.0, 0.05, 0.1, 0.2)]
)


def clipped(f):
    return np.clip(f, -0.5, 1.2)


CLIP = predictors.Custom(clipped, kinks=(-0.5, 1.2))
SINE = predictors.Custom(np.sin)


def channel_of(teacher, prediction=None, loss=None):
    """A channel of a loss that fits, with a free intercept, that predicts in a given way."""
    loss = loss or (losses.Logistic() if teacher.task == "classification" else losses.Huber())
    kind = kind_of(teacher, loss, linear=prediction is None)
    return kind(teacher, loss, True, prediction=prediction)


def unknowns(channel, points=POINTS):
    """The unknowns at which a channel has given overlaps."""
    V, Q, correlation, b = points.T
    x = np.column_stack([np.log(V), np.log(Q), np.arctanh(correlation), 0.0 * V])
    x[:, 3] = (b - channel.best_constant) / channel.intercept_unit(x)
    np.testing.assert_allclose(channel.intercept(x), b, rtol=1e-12, atol=1e-13)
    return x


def errors(teacher, prediction=None, points=POINTS):
    """Errors against new labels and against their means."""
    channel = channel_of(teacher, prediction)
    found = square_errors(channel, unknowns(channel, points))
    return found["generalisation_error"], found["clean_error"]


def M_of(teacher, points=POINTS):
    return np.sqrt(teacher.rho * points[:, 1]) * points[:, 2]


# ---------------------------------------------------------------- closed forms

Q, B = POINTS[:, 1], POINTS[:, 3]


@pytest.mark.parametrize("rho", [0.6, 1.0, 1.8])
def test_the_score_itself_sees_three_moments(rho):
    """Of y = ν³ + noise: E y = 0, E y² = 15ρ³ + Δ, c = 3ρ."""
    teacher = teachers.Real("cube", 0.3, rho=rho)
    error, clean = errors(teacher)
    expected = 15 * rho**3 + B**2 + Q - 2 * 3 * rho * M_of(teacher)
    np.testing.assert_allclose(clean, expected, rtol=1e-10)
    np.testing.assert_allclose(error, expected + 0.3, rtol=1e-10)
    again = errors(teacher, predictors.Identity())
    np.testing.assert_allclose(again, (error, clean), rtol=1e-12)


@pytest.mark.parametrize(("a", "c", "rho"), [(0.2, 0.5, 1.0), (-0.4, -0.7, 1.3)])
def test_exponentials_of_scores_and_a_logarithmic_link(a, c, rho):
    """Section 7: E e^2f and E[y e^f] are exponentials."""
    for teacher, extra in (
        (teachers.Poisson(intercept=a, slope=c, rho=rho), "counts"),
        (teachers.Gamma(shape=2.0, intercept=a, slope=c, rho=rho), "gamma"),
    ):
        M = M_of(teacher)
        mean, explained = np.exp(a + 0.5 * c**2 * rho), np.exp(2 * a + 2 * c**2 * rho)
        noise = mean if extra == "counts" else 0.5 * explained
        product = np.exp(a + B + 0.5 * (c**2 * rho + 2 * c * M + Q))
        expected = explained - 2 * product + np.exp(2 * B + 2 * Q)
        error, clean = errors(teacher, predictors.Exp())
        scale = explained + np.exp(2 * B + 2 * Q)
        np.testing.assert_allclose(clean / scale, expected / scale, rtol=0, atol=1e-10)
        np.testing.assert_allclose((error - clean) / scale, noise / scale, rtol=0, atol=1e-10)


@pytest.mark.parametrize("rho", [0.6, 1.8])
def test_signs_of_scores_and_linear_labels(rho):
    """E[ν sign f] = M/√Q · 2φ(b/√Q)."""
    teacher = teachers.Linear("laplace(0.4)", rho=rho)
    error, clean = errors(teacher, predictors.Sign())
    product = M_of(teacher) / np.sqrt(Q) * 2 * stats.norm.pdf(B / np.sqrt(Q))
    np.testing.assert_allclose(clean, rho + 1 - 2 * product, rtol=1e-10)
    np.testing.assert_allclose(error, rho + 0.32 + 1 - 2 * product, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "prediction",
    [CLIP, SINE, predictors.Logistic(2.0), predictors.Exp()],
    ids=["clip", "sine", "logistic", "exp"],
)
def test_any_prediction_of_linear_labels_is_a_simple_integral(prediction):
    """E[ν f̂] = (M/Q) E[(f - b) f̂], by Stein's lemma."""
    teacher = teachers.Linear(0.25, rho=1.4)
    error, clean = errors(teacher, prediction)
    for i, (_, q, _, b) in enumerate(POINTS):
        edges = sorted({b + np.sqrt(q) * t for t in (-12.0, -4.0, 0.0, 4.0, 12.0)} | {-0.5, 1.2})

        def mean(of, edges=edges, b=b, q=q):
            density = stats.norm(b, np.sqrt(q)).pdf
            return sum(
                integrate.quad(lambda f: of(f) * density(f), low, high, epsabs=1e-13)[0]
                for low, high in zip(edges[:-1], edges[1:], strict=True)
            )

        square = mean(lambda f: prediction(f) ** 2)
        product = M_of(teacher)[i] / q * mean(lambda f, b=b: (f - b) * prediction(f))
        expected = 1.4 - 2 * product + square
        assert clean[i] == pytest.approx(expected, rel=1e-10)
        assert error[i] == pytest.approx(expected + 0.25, rel=1e-10)


def over_field_and_score(teacher, of, points=POINTS):
    """Averages of of(ν, f) by a product of trapezoidal rules, for what is smooth."""
    t = np.arange(-13.5, 13.51, 0.09)
    w = 0.09 * stats.norm.pdf(t)
    nu = np.sqrt(teacher.rho) * t[:, None]
    found = []
    for _, q, correlation, b in points:
        f = b + np.sqrt(q) * (correlation * t[:, None] + np.sqrt(1 - correlation**2) * t)
        found.append(w @ of(nu, f) @ w)
    return np.array(found)


SMOOTH = {
    "tanh": (teachers.Real("tanh", 0.2), np.tanh),
    "counts": (teachers.Poisson("softplus"), lambda nu: np.logaddexp(0.0, nu)),
    "successes": (
        teachers.Binomial(3, intercept=0.4, slope=1.5, rho=1.3),
        lambda nu: 3 * expit(0.4 + 1.5 * nu),
    ),
    "log-normal": (teachers.LogNormal(variance=0.4, slope=0.6), lambda nu: np.exp(0.6 * nu)),
    "logistic classes": (teachers.Logistic(slope=1.5), lambda nu: np.tanh(0.75 * nu)),
}


@pytest.mark.parametrize("prediction", [predictors.Logistic(3.0), SINE, predictors.Exp()], ids=str)
@pytest.mark.parametrize("name", SMOOTH)
def test_clean_errors_are_averages_over_field_and_score(name, prediction):
    teacher, mean = SMOOTH[name]
    error, clean = errors(teacher, prediction)
    expected = over_field_and_score(teacher, lambda nu, f: (mean(nu) - prediction(f)) ** 2)
    np.testing.assert_allclose(clean, expected, rtol=1e-10)
    if name == "logistic classes":
        noise = 1.0 - over_field_and_score(teacher, lambda nu, f: mean(nu) ** 2 + 0.0 * f)
    else:
        noise = teacher.moments.second - teacher.moments.explained
    np.testing.assert_allclose(error - clean, noise, rtol=1e-8, atol=1e-10 * np.abs(error).max())


# ---------------------------------------------------------------- labels ±1


@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_mean_square_errors_of_two_classes(flip):
    """Labels sign ν, some flipped: E[y f] = (1 - 2 flip) M √(2/πρ)."""
    teacher = teachers.Sign(flip=flip, rho=1.6)
    error, clean = errors(teacher, predictors.Identity())
    keep = 1 - 2 * flip
    product = keep * M_of(teacher) * np.sqrt(2 / (np.pi * 1.6))
    np.testing.assert_allclose(error, 1.0 + B**2 + Q - 2 * product, rtol=1e-10)
    np.testing.assert_allclose(clean, keep**2 + B**2 + Q - 2 * product, rtol=1e-10)


# ---------------------------------------------------------------- draws


def grades(nu):
    p = np.exp([0.0 * nu, 0.5 * nu, nu - 0.3])
    return p / p.sum(0)


DRAWN = {
    "relu laplace": teachers.Real("relu", "laplace(0.5)", rho=1.7),
    "jump uniform": teachers.Real(
        lambda nu: np.where(nu > 0.3, 2.0, -1.0), "uniform(0.4)", kinks=(0.3,)
    ),
    "heteroscedastic": teachers.Real(
        "sine", "student(6,0.3)", scale=lambda nu: 0.5 + 0.25 * nu**2, rho=0.6
    ),
    "linear mixture": teachers.Linear("mixture(0.9,0.1;0.2,4)", rho=1.4),
    "wide counts": teachers.NegativeBinomial("softplus", size=1.5),
    "grades": teachers.Ordered((0.0, 1.0, 5.0), (-0.5, 0.8), noise=0.3, rho=1.2),
    "discrete": teachers.Discrete((-1.0, 0.5, 3.0), grades, rho=1.5),
    "sharp classes": teachers.Sign(threshold=0.4, flip=0.05, rho=1.3),
}
PREDICTIONS = {
    "identity": predictors.Identity(),
    "sign": predictors.Sign(),
    "logistic": predictors.Logistic(2.0),
    "clip": CLIP,
}


def drawn(teacher, count=300_000, seed=6):
    """Labels, their means and standardised scores of all points."""
    rng = np.random.default_rng(seed)
    t, z = rng.standard_normal((2, count))
    nu = np.sqrt(teacher.rho) * t
    y = teacher.sample(nu, rng)
    for _, q, correlation, b in POINTS:
        f = b + np.sqrt(q) * (correlation * t + np.sqrt(1 - correlation**2) * z)
        yield y, teacher.label_mean(nu), f


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_errors_are_those_of_draws(name):
    teacher = DRAWN[name]
    found = {
        key: errors(teacher, prediction)
        for key, prediction in PREDICTIONS.items()
        if not (name == "sharp classes" and key == "sign")  # counted, not squared
    }
    for i, (y, mean, f) in enumerate(drawn(teacher)):
        for key, (error, clean) in found.items():
            for value, label in ((error[i], y), (clean[i], mean)):
                square = (label - PREDICTIONS[key](f)) ** 2
                sigma = square.std() / np.sqrt(len(f))
                assert abs(square.mean() - value) < 4.5 * sigma, (key, i)


# ---------------------------------------------------------------- whole models


@pytest.mark.parametrize(
    ("teacher", "loss", "prediction"),
    [
        (teachers.Poisson(intercept=0.2, slope=0.4), "poisson", predictors.Exp()),
        (teachers.Gamma(shape=3.0, slope=0.4), "gamma", predictors.Exp()),
        (teachers.Binomial(2, slope=1.5), losses.Binomial(2), predictors.Logistic(2.0)),
        (teachers.Real("tanh", 0.1), "huber", predictors.Identity()),
    ],
    ids=lambda value: getattr(value, "__name__", str(value))[:20],
)
def test_models_predict_by_the_mean_that_their_loss_estimates(teacher, loss, prediction):
    model = hm.Model(
        activation="erf", projection="gaussian", teacher=teacher, loss=loss, intercept=True
    )
    assert model.prediction == prediction
    ds = hm.predict(model, n_over_d=2.0, p_over_n=0.5, regularisation=0.5)
    correlation = float(ds.M / np.sqrt(teacher.rho * ds.Q))
    point = np.array([[float(ds.V), float(ds.Q), correlation, float(ds.intercept)]])

    expected = over_field_and_score(
        teacher, lambda nu, f: (teacher.label_mean(nu) - prediction(f)) ** 2, point
    )
    assert float(ds.clean_error) == pytest.approx(expected[0], rel=1e-9)
    noise = teacher.moments.second - teacher.moments.explained
    assert float(ds.generalisation_error) == pytest.approx(expected[0] + noise, rel=1e-9)


def test_labels_without_variance_have_a_clean_error_alone():
    teacher = teachers.Linear("student(1.5,0.3)")
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss="huber")
    ds = hm.predict(model, n_over_d=2.0, p_over_n=0.5, regularisation=0.5)
    assert float(ds.generalisation_error) == np.inf
    expected = 1.0 + float(ds.Q) - 2.0 * float(ds.M)
    assert float(ds.clean_error) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_a_prediction_with_an_undeclared_jump_is_not_guessed():
    teacher = teachers.Real("tanh", 0.2)
    jumping = predictors.Custom(lambda f: np.where(f > 0.1237, 1.0, -0.3))
    assert np.isnan(errors(teacher, jumping, POINTS[:1])).all()
    declared = predictors.Custom(jumping.function, kinks=(0.1237,))
    assert np.isfinite(errors(teacher, declared, POINTS[:1])).all()
