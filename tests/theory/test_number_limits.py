"""Labels that are numbers, in limits: interpolation, constant predictions, heavy noise."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import ndtr

import hiddenmanifold as hm
from hiddenmanifold import losses, teachers


def model(teacher, loss, **options):
    parts = {"activation": "relu", "projection": "gaussian", "teacher": teacher, "loss": loss}
    return hm.Model(**parts, **options)


OVERLAPS = ("Q", "M", "q_w", "intercept", "clean_error", "generalisation_error")

# ---------------------------------------------------------------- interpolation

BEYOND = {"n_over_d": 2.0, "p_over_n": [1.3, 4.0], "regularisation": 0.0}
RULES = {
    "relu": teachers.Real("relu", "laplace(0.5)", rho=1.3),
    "counts": teachers.Poisson(intercept=0.2, slope=0.4),
    "linear": teachers.Linear("uniform(0.8)"),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "loss", [losses.Huber(0.3), losses.Expectile(0.2), losses.Quantile(0.8)], ids=str
)
@pytest.mark.parametrize("rule", RULES)
def test_losses_of_the_residual_share_the_interpolator(rule, loss, intercept):
    """Section 6: all are least where the residual vanishes."""
    ds, square = (
        hm.predict(model(RULES[rule], of, intercept=intercept), **BEYOND)
        for of in (loss, losses.Square())
    )
    for name in OVERLAPS:
        np.testing.assert_allclose(ds[name], square[name], rtol=1e-10, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(ds.training_loss, 0.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_small_regularisations_lead_to_the_interpolator(rule):
    """In proportion to λ, so that two of them extrapolate to it."""
    chosen, lam = model(RULES[rule], losses.Expectile(0.2)), 1e-7
    near = hm.predict(chosen, **BEYOND | {"regularisation": [lam, 0.5 * lam]})
    limit = hm.predict(chosen, **BEYOND)
    for name in OVERLAPS:
        first, second = near[name].transpose("regularisation", "p_over_n").values
        expected = limit[name].values
        close = {"rtol": 1e-7, "atol": 1e-9}  # symmetric labels have the intercept 0
        np.testing.assert_allclose(2 * second - first, expected, **close, err_msg=name)


def logarithm(nu):
    return 0.3 - 0.5 * 0.4 + 0.7 * nu


@pytest.mark.parametrize("intercept", [False, True])
def test_gamma_deviance_interpolates_logarithms(intercept):
    positive = teachers.LogNormal("exp", 0.4, 0.3, 0.7)
    options = {"intercept": intercept, "prediction": "identity"}
    ours = hm.predict(model(positive, "gamma", **options), **BEYOND)
    theirs = hm.predict(model(teachers.Real(logarithm, 0.4), "square", **options), **BEYOND)
    for name in ("Q", "M", "q_w", "intercept"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, err_msg=name)
    # the least loss of a label is 1 + log y
    np.testing.assert_allclose(ours.training_loss, 1.0 + 0.3 - 0.5 * 0.4, rtol=1e-9)


# ---------------------------------------------------------------- constant predictions

CUT, NOISE, D_OVER_P = 1.25, 0.25, 1.5
GRADES = teachers.Ordered((0.0, 1.0, 2.0), (-CUT, CUT), noise=NOISE)  # the middle has 0.736
T = np.arange(-9.0, 9.001, 0.01)


def shares():
    """Joint probabilities of the three labels and of fields."""
    ends = np.array([-np.inf, -CUT, CUT, np.inf])[:, None]
    return np.diff(ndtr((ends - T) / np.sqrt(NOISE)), axis=0) * 0.01 * stats.norm.pdf(T)


def averages(v, m):
    """Vₑ₁, e₂ and E[ν h] as Q → 0, for V = v√Q and M = m√Q: labels away from 1 push with ±1."""
    low, middle, high = shares()
    s, phi = np.sqrt(1.0 - m**2), stats.norm.pdf
    a, b = (-v - m * T) / s, (v - m * T) / s
    inside, first = ndtr(b) - ndtr(a), phi(a) - phi(b)
    second = inside + a * phi(a) - b * phi(b)
    z = m * T * inside + s * first
    z2 = (m * T) ** 2 * inside + 2.0 * m * T * s * first + s**2 * second
    h, h2 = ndtr(a) - ndtr(-b) - z / v, 1.0 - inside + z2 / v**2
    pushed = low.sum() + high.sum()
    return middle @ inside, middle @ h2 + pushed, middle @ (T * h) + T @ (high - low)


def collapse_at(chi):
    """The n/p from which on the prediction is constant: section 6 of the theory."""

    def equations(x):
        v, m = np.exp(x[0]), np.tanh(x[1])
        Ve1, e2, along = averages(v, m)
        alpha = 1.0 / Ve1
        e3 = along + m * Ve1 / v
        return m - alpha * chi * v * e3, alpha * v**2 * e2 + m**2 / chi - 1.0

    found = optimize.root(equations, (-0.5, 0.5), tol=1e-13)
    assert found.success
    return 1.0 / averages(np.exp(found.x[0]), np.tanh(found.x[1]))[0]


@pytest.fixture(scope="module")
def collapsing():
    """A model of grades and an absolute loss, and the n/p at which it predicts a constant."""
    chosen = model(GRADES, "absolute", intercept=True)
    chi = chosen.features.visible(np.array([D_OVER_P])).fraction[0]
    assert shares()[1].sum() == pytest.approx(0.736, abs=5e-4)
    return chosen, collapse_at(chi)


@pytest.mark.slow
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_a_median_at_a_frequent_label_is_constant_with_many_samples(collapsing, lam):
    """From an n/p on that does not depend on λ; before it Q grows as a square of the distance."""
    chosen, alpha = collapsing
    away = np.array([-0.01, -0.001, 0.001, 0.3])
    ds = hm.predict(chosen, n_over_p=alpha * (1 + away), d_over_p=D_OVER_P, regularisation=lam)
    np.testing.assert_allclose(ds.intercept, 1.0, rtol=1e-12)
    assert (ds.Q.values[:2] > 1e-9).all() and (ds.Q.values[2:] < 1e-90).all()
    if lam == 1.0:
        assert ds.Q.values[0] / ds.Q.values[1] == pytest.approx(100.0, rel=0.02)


@pytest.mark.slow
def test_a_constant_prediction_has_the_errors_of_a_constant(collapsing):
    chosen, alpha = collapsing
    ds = hm.predict(
        chosen,
        n_over_p=1.5 * alpha,
        d_over_p=D_OVER_P,
        regularisation=0.1,
        observables=("mean_absolute_error", "test_loss"),
    )
    outside = 1.0 - shares()[1].sum()
    for name in ("training_loss", "test_loss", "mean_absolute_error", "generalisation_error"):
        assert float(ds[name]) == pytest.approx(outside, rel=1e-10), name


# ---------------------------------------------------------------- coverage


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.2, 0.8])
def test_fitted_quantiles_cover_less_of_new_labels(level):
    """Of training labels the share `level` is covered, of new ones a share nearer to a half."""
    chosen = model(RULES["relu"], losses.Quantile(level), intercept=True)
    at = {"n_over_d": 3.0, "regularisation": 1e-2, "observables": "coverage"}
    ds = hm.predict(chosen, p_over_n=[0.01, 0.1, 0.3], **at)
    distance = np.abs(ds.coverage.values - 0.5)
    assert (np.diff(distance) < 0.0).all()
    assert distance[0] == pytest.approx(abs(level - 0.5), abs=0.02)


# ---------------------------------------------------------------- noise without moments

AT = {"n_over_d": 2.0, "p_over_n": 0.5, "regularisation": 0.5}


def teacher_of(kind, noise):
    return teachers.Linear(noise) if kind == "linear" else teachers.Real(kind, noise)


@pytest.mark.parametrize("kind", ["linear", "tanh"])
@pytest.mark.parametrize("loss", ["square", losses.Expectile(0.3)], ids=str)
def test_losses_that_need_a_variance_refuse_labels_without(kind, loss):
    for noise in ("student(2)", "student(1)"):
        with pytest.raises(hm.IncompatibleIngredientsError, match="infinite variance"):
            model(teacher_of(kind, noise), loss)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "absolute", "log_cosh"])
@pytest.mark.parametrize("kind", ["linear", "tanh"])
def test_noise_without_variance_leaves_the_clean_error(kind, loss):
    student = hm.predict(model(teacher_of(kind, "student(2,0.3)"), loss), **AT)
    assert float(student.generalisation_error) == np.inf
    assert 0.0 < float(student.training_loss) < 1.0
    cauchy = hm.predict(model(teacher_of(kind, "student(1,0.3)"), loss), **AT)
    assert float(cauchy.generalisation_error) == float(cauchy.training_loss) == np.inf
    for ds in (student, cauchy):
        m = teacher_of(kind, 0.0).moments
        expected = m.explained + float(ds.Q) - 2.0 * m.slope * float(ds.M)
        assert float(ds.clean_error) == pytest.approx(expected, rel=1e-9)
        assert float(ds.status) == hm.Status.CONVERGED
    assert float(cauchy.clean_error) > float(student.clean_error)
