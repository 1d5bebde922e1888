"""The equations without cancellation, and the certificate that knows how rounding is magnified."""

from functools import cache

import numpy as np
import pytest
from configurations import random_model
from scipy.integrate import quad

import hiddenmanifold as hm
from hiddenmanifold import Status
from hiddenmanifold.numerics.newton import magnified
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.complements import Complements
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.strategy import rescue


def solved(model, alpha, gamma, lam):
    """Unknowns of a point, and its equations in all of their forms."""
    points = Points.of(*(np.array([value]) for value in (alpha, gamma, lam)))
    outcome = rescue(SaddlePoint.of(model, points))
    assert outcome.status[0] == Status.CONVERGED
    return outcome, Complements.of(outcome.problem)


@cache
def some_models():
    mixtures = [
        hm.Model(
            activation="tanh",
            projection="gaussian",
            teacher=hm.teachers.Mixture(prior=0.3, rho=2.0),
            loss=loss,
            intercept=intercept,
        )
        for loss in ("square", "logistic", "hinge")
        for intercept in (False, True)
    ]
    return mixtures + [random_model(np.random.default_rng([5, i])) for i in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(26))
def test_every_form_of_the_equations_holds_at_the_solutions_of_the_usual_ones(number):
    model, rng = some_models()[number], np.random.default_rng(number)
    point = *np.exp(rng.uniform(-3, 3, 2)), np.exp(rng.uniform(-8, 3))
    outcome, equations = solved(model, *point)
    assert outcome.x[0, 1] > -100  # no phase in which V and Q vanish
    turn = equations.turn(outcome.x, 3)
    np.testing.assert_allclose(turn.residual, 0.0, atol=2e-11)
    np.testing.assert_allclose(turn.sums[:, :3], outcome.e, rtol=1e-10)
    np.testing.assert_allclose(equations.refined(outcome.x + 0.1).x, outcome.x, atol=1e-9)


def test_noise_is_magnified_by_the_inverse():
    rng = np.random.default_rng(0)
    matrix, noise = rng.normal(size=(20, 3, 3)), rng.random((20, 3))
    expected = (np.abs(np.linalg.inv(matrix)) @ noise[..., None])[..., 0]
    np.testing.assert_allclose(magnified(matrix, noise), expected, rtol=1e-9)
    matrix[0], matrix[1, 0, 0] = 0.0, np.nan
    assert np.isinf(magnified(matrix, noise)[:2]).all()


# ---------------------------------------------------------------- points at which digits were lost


def white(teacher, loss, **options):
    return hm.Model(
        activation="identity", projection="orthogonal", teacher=teacher, loss=loss, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-6, 1e-10, 1e-16, 1e-20])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_infinite_data_with_almost_noiseless_labels_leave_the_error_of_the_noise(loss, noise):
    model = hm.Model(
        activation="identity",
        projection="gaussian",
        teacher=hm.teachers.Sign(noise=noise),
        loss=loss,
    )
    ds = hm.predict(model, n_over_p=[1e38, np.inf], d_over_p=0.5, regularisation=1e-3)
    np.testing.assert_allclose(
        ds.generalisation_error, np.arctan(np.sqrt(noise)) / np.pi, rtol=1e-9
    )
    np.testing.assert_allclose(ds.Q[0], ds.Q[1], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "absolute", "square"])
def test_infinite_data_without_noise_leave_no_error(loss):
    ds = hm.predict(white("sign", loss), n_over_p=np.inf, d_over_p=1.0, regularisation=1e-3)
    assert float(ds.generalisation_error) < 1e-20


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("threshold", [0.3, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_infinite_data_and_a_threshold_are_the_limit_of_many(loss, threshold, intercept):
    model = white(hm.teachers.Sign(threshold=threshold), loss, intercept=intercept)
    ds = hm.predict(model, n_over_p=[1e12, np.inf], d_over_p=1.5, regularisation=1e-2)
    many, limit = ds.generalisation_error.values
    np.testing.assert_allclose(many, limit, rtol=1e-9)


def test_ridge_at_as_many_samples_as_features_has_its_closed_form():
    """White features: λV(1 + V) = 1, and the error follows from it."""
    lam = np.logspace(-30, -8, 12)
    ds = hm.predict(
        white(hm.teachers.Linear(noise=0.1), "square"),
        n_over_p=1.0,
        d_over_p=1.0,
        regularisation=lam,
    )
    V = (np.sqrt(1.0 + 4.0 / lam) - 1.0) / 2.0
    np.testing.assert_allclose(ds.V, V, rtol=1e-12)
    k = lam * (1.0 + V)
    tau2 = (0.1 + (k / (1 + k)) ** 2) / (1.0 / (1.0 + V) + k / (1.0 + k) ** 2)
    np.testing.assert_allclose(ds.generalisation_error, tau2, rtol=1e-12)
    assert (ds.conditioning_error < 1e-10).all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_a_walk_ends_at_the_ratio_that_was_asked_for(scale):
    """At n = rank and λ = 1e-9 the last bit of n/p decides; values of mpmath at 70 digits.

    Half the absolute loss at λ is the absolute loss at 2λ, with V doubled.
    """
    ratio = 0.0014840592370118063
    model = hm.Model(
        activation="identity",
        projection="gaussian",
        teacher=hm.teachers.Linear(noise=0.0),
        loss=hm.losses.Custom(
            lambda s: scale * np.abs(s),
            lambda s: scale * np.sign(s),
            lambda s: 0.0 * s,
            of="residual",
            kinks=(0.0,),
            scale=1.0,
        ),
    )
    given = {"n_over_p": ratio, "d_over_p": ratio, "regularisation": 2e-9 * scale}
    ds = hm.predict(model, **given)
    np.testing.assert_allclose(ds.V * scale, 0.5 * 1.38941e-7, rtol=1e-5)
    np.testing.assert_allclose(ds.generalisation_error, 7.06430e-17, rtol=1e-5)


def test_slowly_decaying_curvature_is_resolved_though_the_residual_does_not_feel_it():
    """At a large λ, Q is proportional to E[ρ'']², here an integral that quad knows."""
    delta, lam, alpha = 1e-4, 100.0, 0.01
    model = hm.Model(
        activation="sign",
        projection="gaussian",
        teacher=hm.teachers.Linear(noise=0.78),
        loss=hm.losses.Custom(
            lambda s: delta * (np.hypot(delta, s) - delta),
            lambda s: delta * s / np.hypot(delta, s),
            lambda s: delta**3 / np.hypot(delta, s) ** 3,
            of="residual",
            scale=delta,
        ),
    )
    ds = hm.predict(model, n_over_p=alpha, d_over_p=0.01, regularisation=lam)
    V, tau = float(ds.V), np.sqrt(float(ds.generalisation_error))

    def integrand(log_s):
        s = np.exp(log_s)
        u = s + V * delta * s / np.hypot(delta, s)
        density = np.exp(-0.5 * (u / tau) ** 2) / np.sqrt(2 * np.pi) / tau
        return 2 * s * density * delta**3 / np.hypot(delta, s) ** 3

    e1 = quad(integrand, np.log(delta) - 30, np.log(delta) + 30, epsabs=0, limit=400)[0]
    k = lam / (alpha * e1)
    sums = model.features.sums(np.array([k]), np.array([0.01]))
    np.testing.assert_allclose(ds.M, sums.T1[0], rtol=1e-8)


@pytest.mark.parametrize("weight", [1e-9, 1e-12, 1e-13, 1e-14])
def test_a_hidden_part_counts_however_small_it_is(weight):
    """With infinite data the error is that of the hidden part alone, here an exact number."""
    hidden = 2.0 ** np.round(np.log2(weight))
    w = 2.0 ** -np.arange(4.0)
    features = hm.features.Covariance(w, w * [1.0 - hidden, 0, 0, 0], 1.0)
    linear = hm.Model(features=features, teacher=hm.teachers.Linear(), loss="square")
    ds = hm.predict(linear, n_over_p=np.inf, regularisation=1e-3)
    np.testing.assert_allclose(ds.generalisation_error, hidden, rtol=1e-12)
    for loss in ("square", "logistic", "hinge"):
        model = hm.Model(features=features, teacher="sign", loss=loss)
        ds = hm.predict(model, n_over_p=np.inf, regularisation=1e-3)
        error = np.arctan(np.sqrt(hidden / (1 - hidden))) / np.pi
        np.testing.assert_allclose(ds.generalisation_error, error, rtol=1e-9)


@pytest.mark.slow
def test_what_rounding_decides_is_called_ill_conditioned():
    """Absolute loss at n = p: below λ = 1e-25 less than 1e-15 of the samples decides.

    Which of these points are solved at all is decided by rounding too, hence by the machine.
    """
    tiny = np.geomspace(1e-26, 1e-28, 12)
    given = {"n_over_p": 1.0, "d_over_p": 40.0, "regularisation": [1e-12, *tiny]}
    ds = hm.predict(white("sign", "absolute"), **given, on_failure="keep")
    ill = ds.status == Status.ILL_CONDITIONED
    assert ds.status[0] == Status.CONVERGED and ill.any()
    assert (ds.status[1:] != Status.CONVERGED).all()
    assert (ds.conditioning_error[ill] > 1e-7).all()
    assert np.isnan(ds.generalisation_error[ill]).all()
    with pytest.raises(hm.ConvergenceError, match="ill-conditioned"):
        hm.predict(white("sign", "absolute"), **given)


def test_slopes_that_rounding_decides_are_called_ill_conditioned():
    """The solution has its digits here, Newton's matrix has not."""
    model = white(hm.teachers.Linear(noise=0.1), "square")
    given = {"n_over_p": 1.0, "d_over_p": 1.0, "regularisation": 1e-20}
    assert int(hm.predict(model, **given).status) == Status.CONVERGED
    ds = hm.sensitivity(model, **given, on_failure="keep")
    assert int(ds.status) == Status.ILL_CONDITIONED
    assert np.isnan(ds.generalisation_error_by_log_n)
