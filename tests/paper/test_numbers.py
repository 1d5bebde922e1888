"""Numbers of Gerace et al. 2020, and of the limits they stand for, typed in and never regenerated.

Where the paper prints two digits, the further ones are those of an independent solver.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import hiddenmanifold as hm


def model_of(activation="sign", projection="gaussian", teacher="sign", loss="square"):
    return hm.Model(activation=activation, projection=projection, teacher=teacher, loss=loss)


def best(model, low, high, **ratios):
    """Penalty of least test error between the bounds, and that error."""

    def error(log_lam):
        ds = hm.predict(model, **ratios, regularisation=np.exp(log_lam))
        return float(ds.generalisation_error)

    found = minimize_scalar(
        error, bounds=np.log([low, high]), method="bounded", options={"xatol": 1e-6}
    )
    return float(np.exp(found.x)), float(found.fun)


def peak(model, p_over_n, lam, n_over_d=3.0):
    """Where a curve has its highest local maximum inside the given range.

    Orthogonal features have a corner at p = d besides, where their spectrum changes form.
    """
    ds = hm.predict(model, n_over_d=n_over_d, p_over_n=p_over_n, regularisation=lam)
    error = ds.generalisation_error.values
    inside = 1 + np.flatnonzero((error[1:-1] > error[:-2]) & (error[1:-1] > error[2:]))
    assert inside.size, "no peak"
    return p_over_n[inside[error[inside].argmax()]]


# --- section 2.4: the Gaussian coefficients ------------------------------------------------------


def test_coefficients_of_the_error_function():
    k0, k1, ks = hm.activations.Erf().kappas
    assert k0 == 0.0
    np.testing.assert_allclose(k1, 2 / np.sqrt(3 * np.pi), rtol=1e-14)
    assert np.trunc(ks * 1e4) / 1e4 == 0.2003  # truncated in print, not rounded


def test_coefficients_of_the_sign_function():
    k0, k1, ks = hm.activations.Sign().kappas
    assert k0 == 0.0
    np.testing.assert_allclose([k1, ks], [np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi)], rtol=1e-14)


# --- section 3.1: double descent, n/d = 3, sign features of sign labels ---------------------------


def test_best_square_loss_at_ten_features_per_sample():
    lam, error = best(model_of(), 1e-2, 10.0, n_over_d=3.0, p_over_n=10.0)
    assert round(error, 2) == 0.17
    np.testing.assert_allclose(error, 0.16787942, atol=6e-9)
    np.testing.assert_allclose(lam, 0.447967, rtol=1e-4)


def test_best_logistic_loss_at_ten_features_per_sample():
    lam, error = best(model_of(loss="logistic"), 1e-6, 1e-2, n_over_d=3.0, p_over_n=10.0)
    assert round(error, 2) == 0.16
    np.testing.assert_allclose(error, 0.15978400, atol=6e-9)
    np.testing.assert_allclose(lam, 1.459e-4, rtol=1e-2)


def test_max_margin_is_the_end_of_the_hinge_loss():
    for p_over_n, expected in ((10.0, 0.16076233), (100.0, 0.142184)):
        ds = hm.predict(
            model_of(loss="hinge"), n_over_d=3.0, p_over_n=p_over_n, regularisation=1e-9
        )
        digits = 6e-9 if p_over_n == 10.0 else 6e-7
        np.testing.assert_allclose(ds.generalisation_error, expected, atol=digits)


@pytest.mark.parametrize(("lam", "height"), [(1e-4, 0.44), (1e-8, 0.49)])
def test_square_loss_peaks_where_features_are_as_many_as_samples(lam, height):
    p_over_n = np.linspace(0.6, 1.6, 101)
    np.testing.assert_allclose(peak(model_of(), p_over_n, lam), 1.0, atol=1e-9)
    ds = hm.predict(model_of(), n_over_d=3.0, p_over_n=[0.9, 1.0, 1.1], regularisation=1e-8)
    assert ds.generalisation_error[1] > height
    # the training loss vanishes beyond
    assert ds.training_loss[0] > 1e-2
    assert ds.training_loss[2] < 1e-6


@pytest.mark.parametrize(
    ("projection", "threshold"), [("gaussian", 0.3677), ("orthogonal", 0.3261)]
)
def test_logistic_loss_peaks_where_the_data_become_separable(projection, threshold):
    model = model_of(projection=projection, loss="logistic")
    p_over_n = threshold + np.linspace(-0.03, 0.03, 121)
    assert abs(peak(model, p_over_n, 1e-9) - threshold) < 1e-3
    # at the paper's penalty it has moved to the right, by less than 0.02
    shift = peak(model, p_over_n, 1e-4) - threshold
    assert 0 < shift < 0.02
    sides = hm.predict(
        model, n_over_d=3.0, p_over_n=[threshold - 0.02, threshold + 0.02], regularisation=1e-9
    )
    assert sides.training_error[0] > 1e-3
    assert sides.training_error[1] < 1e-6
    assert sides.training_loss[1] < 1e-4 < sides.training_loss[0]


def test_logistic_peak_tends_to_that_of_cover_where_samples_are_few():
    """n/d to 0: the data look independent of the labels, which n = 2p samples can separate."""
    p_over_n = np.linspace(0.45, 0.55, 101)
    assert abs(peak(model_of(loss="logistic"), p_over_n, 1e-8, n_over_d=0.01) - 0.5) < 3e-3


def test_logistic_beats_square_at_their_best_penalties():
    lam = np.logspace(-6, 1, 57)
    sweep = {"n_over_d": 3.0, "p_over_n": [1.0, 3.0, 10.0], "regularisation": lam}
    square, logistic = (
        hm.predict(model_of(loss=loss), **sweep).generalisation_error.min("regularisation")
        for loss in ("square", "logistic")
    )
    assert (logistic < square).all()


@pytest.mark.parametrize(("lam", "limit"), [(1e-2, 0.144843), (1e-4, 0.141918), (1e-8, 0.140789)])
def test_logistic_loss_approaches_its_kernel_limit(lam, limit):
    ratios = np.array([1e2, 1e4, 1e6])
    ds = hm.predict(model_of(loss="logistic"), n_over_d=3.0, p_over_n=ratios, regularisation=lam)
    gap = ds.generalisation_error.values - limit
    assert (np.diff(gap) < 0).all()
    assert abs(gap[-1]) < 1.5e-6
    assert gap[0] > 1e-3


def test_kernel_limits_are_below_the_values_read_off_the_figure():
    """0.1498 and 0.1400 (max margin), not the 0.17 and 0.16 of the curves' visible ends."""
    square = hm.predict(model_of(), n_over_d=3.0, p_over_n=1e6, regularisation=19.78e-6)
    hinge = hm.predict(model_of(loss="hinge"), n_over_d=3.0, p_over_n=1e6, regularisation=1e-9)
    np.testing.assert_allclose(square.generalisation_error, 0.149796219262, atol=5e-7)
    np.testing.assert_allclose(hinge.generalisation_error, 0.139959047965, atol=1e-6)


# --- section 3.3: the hidden manifold model, erf, d/p = 0.1, square loss --------------------------


@pytest.mark.slow
def test_hidden_manifold_saturates_at_the_error_of_the_paper():
    errors = {
        n_over_p: best(model_of("erf"), 1e-2, 1e6, d_over_p=0.1, n_over_p=n_over_p)[1]
        for n_over_p in (1e2, 1e4, 1e7)
    }
    assert round(errors[1e7], 4) == 0.0325
    np.testing.assert_allclose(errors[1e7], 0.0325006, atol=2e-7)
    assert errors[1e2] > errors[1e4] > errors[1e7]


def test_hidden_manifold_peaks_at_as_many_samples_as_features():
    n_over_p = np.linspace(0.7, 1.4, 71)
    ds = hm.predict(model_of("erf"), d_over_p=0.1, n_over_p=n_over_p, regularisation=1e-8)
    np.testing.assert_allclose(n_over_p[ds.generalisation_error.values.argmax()], 1.0, atol=1e-9)


# --- appendix: square classification in the ten equations ----------------------------------------


def literal_q_w(alpha, gamma, lam, factor):
    """Norm q_w by iterating the printed equations, with 1 + Q - factor M in hat q_w."""
    k1, ks = np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi)
    V, Q, M, q_w = 1.0, 0.5, 0.3, np.nan
    for _ in range(20000):
        before = q_w
        V_s_hat = alpha / gamma * k1**2 / (1 + V)
        q_s_hat = alpha / gamma * k1**2 * (1 + Q - 2 * np.sqrt(2 / np.pi) * M) / (1 + V) ** 2
        m_s_hat = alpha / gamma * np.sqrt(2 / np.pi) * k1 / (1 + V)
        V_w_hat = alpha * ks**2 / (1 + V)
        q_w_hat = alpha * ks**2 * (1 + Q - factor * M) / (1 + V) ** 2
        L = lam + V_w_hat
        z = L / V_s_hat
        R = np.sqrt((z + 1 + gamma) ** 2 - 4 * gamma)
        g = (R - (1 + z - gamma)) / (2 * z * gamma)
        dg = g * (1 + gamma * g) / R
        signal, cross = m_s_hat**2 + q_s_hat, -z * g + z**2 * dg
        V_s, V_w = (1 - z * g) / V_s_hat, gamma / L * (1 / gamma - 1 + z * g)
        q_s = signal / V_s_hat**2 * (1 - 2 * z * g + z**2 * dg) - q_w_hat / (L * V_s_hat) * cross
        q_w = gamma * q_w_hat / L**2 * (1 / gamma - 1 + z**2 * dg)
        q_w -= gamma * signal / (L * V_s_hat) * cross
        M = k1 * m_s_hat / V_s_hat * (1 - z * g)
        V, Q = k1**2 * V_s + ks**2 * V_w, k1**2 * q_s + ks**2 * q_w
        if abs(q_w - before) < 1e-13:
            break
    return q_w


def test_norm_of_the_weights_is_not_that_of_the_misprinted_equation():
    """Simulated 0.3963(34); hat q_w is printed with 2M/sqrt(pi) instead of 2 sqrt(2) M/sqrt(pi)."""
    ds = hm.predict(model_of(), n_over_p=0.3, d_over_p=0.1, regularisation=0.01)
    np.testing.assert_allclose(ds.q_w, 0.3962, atol=6e-5)
    point = {"alpha": 0.3, "gamma": 0.1, "lam": 0.01}
    np.testing.assert_allclose(
        ds.q_w, literal_q_w(**point, factor=2 * np.sqrt(2 / np.pi)), rtol=1e-8
    )
    np.testing.assert_allclose(literal_q_w(**point, factor=2 / np.sqrt(np.pi)), 0.5668, atol=6e-5)
