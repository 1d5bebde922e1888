"""Any model, any ratios: a certified solution that obeys the laws of all solutions."""

import numpy as np
import pytest
import xarray as xr
from configurations import random_model, random_points

import hiddenmanifold as hm
from hiddenmanifold import compiled
from hiddenmanifold.theory.solver.settings import STANDARD
from seeds import some_slow

SMALL = 1e-12


@pytest.mark.parametrize("seed", some_slow(60))
def test_random_points_converge_with_a_certificate(seed):
    rng = np.random.default_rng(seed)
    model, where = random_model(rng), random_points(rng, 12)
    ds = hm.predict(model, **where)
    assert (ds.status == hm.Status.CONVERGED).all()
    assert (ds.residual <= STANDARD.residual).all()
    assert (ds.quadrature_error <= STANDARD.quadrature).all()
    # a margin is one of limits, and a constant prediction has no direction
    assert all(np.isfinite(ds[name]).all() for name in ds if name not in ("margin", "alignment"))
    assert (np.isfinite(ds.alignment) == (ds.Q > 1e-96)).all()

    rho = model.teacher.rho
    assert (ds.Q >= 0).all() and (ds.V > 0).all() and (ds.training_loss >= 0).all()
    assert (rho * ds.Q * (1 + SMALL) >= ds.M**2).all()
    kappa_1, kappa_star = model.activation.kappas[1:]
    np.testing.assert_allclose(ds.V, kappa_1**2 * ds.V_s + kappa_star**2 * ds.V_w, rtol=1e-9)
    np.testing.assert_allclose(ds.Q, kappa_1**2 * ds.q_s + kappa_star**2 * ds.q_w, rtol=1e-9)
    if isinstance(model.teacher, hm.teachers.Linear):
        excess = ds.generalisation_error - ds.clean_error
        np.testing.assert_allclose(excess, model.teacher.noise, rtol=1e-9, atol=1e-9)
    else:
        for name in ("generalisation_error", "clean_error", "training_error"):
            assert ((ds[name] >= 0) & (ds[name] <= 1 + SMALL)).all(), name


@pytest.mark.parametrize("seed", some_slow(25))
def test_slope_of_the_training_loss_in_lambda_is_half_the_norm(seed):
    """Envelope theorem: only the explicit dependence on the penalty counts."""
    rng = np.random.default_rng(1000 + seed)
    model, where = random_model(rng), random_points(rng, 12)
    lam = where["regularisation"] = where["regularisation"].clip(1e-6, 1e2)
    step = 1e-3
    shifts = xr.DataArray(np.exp(step * np.arange(-2, 3)), dims="shift")
    ds = hm.predict(model, **{**where, "regularisation": lam * shifts}, on_failure="keep")
    loss, middle = ds.training_loss.transpose("shift", "point").values, ds.isel(shift=2)
    # fourth-order central difference in log lambda
    slope = np.array([1, -8, 0, 8, -1]) @ loss / (12 * step)
    expected = (lam * middle.q_w / (2 * where["n_over_p"])).values
    fine = np.isfinite(slope) & (middle.Q.values > 1e-30)
    noise = 1e-9 * loss[2] / step  # of the differences
    assert (np.abs(slope - expected) <= 1e-6 * expected + noise)[fine].all()
    assert fine.sum() >= 6


@pytest.mark.parametrize("seed", range(0, 48, 12))
def test_numpy_alone_obeys_the_same_laws(seed, monkeypatch):
    monkeypatch.setattr(compiled, "_extension", None)
    test_random_points_converge_with_a_certificate(seed)
    test_slope_of_the_training_loss_in_lambda_is_half_the_norm(seed)
