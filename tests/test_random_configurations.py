"""Any model, any ratios: a certified solution or a reported failure, never a silent wrong value."""

import numpy as np
from configurations import random_model, random_points
from hypothesis import given, settings
from hypothesis import strategies as st

import hiddenmanifold as hm
from hiddenmanifold.theory.saddle_point import TOLERANCE

SMALL = 1e-12


@settings(max_examples=120)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_points_converge_with_a_certificate_or_say_that_they_failed(seed):
    rng = np.random.default_rng(seed)
    model, where = random_model(rng), random_points(rng, 12)
    ds = hm.predict(model, **where, on_failure="keep")
    good = ds.where(ds.status == hm.Status.CONVERGED, drop=True)
    failed = ds.where(ds.status != hm.Status.CONVERGED, drop=True)
    quantities = [name for name in ds if ds[name].dtype.kind == "f"]

    assert (good.residual <= TOLERANCE).all()
    assert (good.quadrature_error <= TOLERANCE).all()
    assert all(np.isfinite(good[name]).all() for name in quantities)
    assert all(
        np.isnan(failed[name]).all()
        for name in quantities
        if name not in ("residual", "quadrature_error")
    )
    assert failed.sizes.get("point", 0) <= 1  # the certificate is no excuse for giving up

    rho = model.teacher.rho
    assert (good.Q >= 0).all() and (good.V > 0).all() and (good.training_loss >= 0).all()
    assert (rho * good.Q * (1 + SMALL) >= good.M**2).all()
    kappa_1, kappa_star = model.activation.kappas[1:]
    np.testing.assert_allclose(good.V, kappa_1**2 * good.V_s + kappa_star**2 * good.V_w, rtol=1e-9)
    np.testing.assert_allclose(good.Q, kappa_1**2 * good.q_s + kappa_star**2 * good.q_w, rtol=1e-9)
    if isinstance(model.teacher, hm.teachers.Linear):
        excess = good.generalisation_error - good.clean_error
        np.testing.assert_allclose(excess, model.teacher.noise, rtol=1e-9, atol=1e-9)
    else:
        for name in ("generalisation_error", "clean_error", "training_error"):
            assert ((good[name] >= 0) & (good[name] <= 1 + SMALL)).all(), name


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_slope_of_the_training_loss_in_lambda_is_half_the_norm(seed):
    """Envelope theorem: only the explicit dependence on the penalty counts."""
    rng = np.random.default_rng(seed)
    model, where = random_model(rng), random_points(rng, 12)
    where["regularisation"] = where["regularisation"].clip(1e-6, 1e2)
    step = 1e-3

    def at(factor):
        shifted = {**where, "regularisation": where["regularisation"] * factor}
        return hm.predict(model, **shifted, on_failure="keep")

    middle = at(1.0)
    # fourth-order central difference in log lambda
    slope = (
        8 * (at(np.exp(step)).training_loss - at(np.exp(-step)).training_loss)
        - (at(np.exp(2 * step)).training_loss - at(np.exp(-2 * step)).training_loss)
    ) / (12 * step)
    expected = where["regularisation"] * middle.q_w / (2 * where["n_over_p"])
    fine = np.isfinite(slope.values) & (middle.Q.values > 1e-30)
    noise = 1e-9 * middle.training_loss.values / step  # of the differences
    difference = np.abs(slope.values - expected.values)
    assert (difference <= 1e-6 * expected.values + noise)[fine].all()
    assert fine.sum() >= 6
