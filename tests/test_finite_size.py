"""Deviations from the limit at given sizes: simulated there, or at smaller sizes."""

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold.api import finite_size
from hiddenmanifold.api.finite_size import Deviations

MODEL = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
SIZES = {"n": [24, 48], "p": 24, "d": 12}
HOW = {"regularisation": 0.1, "workers": 1}


def with_deviations(sizes, **more):
    ds = hm.predict(MODEL, **sizes, **HOW, observables="auc")
    return finite_size.with_deviations(MODEL, ds, ("auc",), {"workers": 1}, seeds=20, **more)


@pytest.mark.slow
def test_deviations_are_those_of_fits_of_these_sizes():
    ds = with_deviations(SIZES)
    both = hm.compare(MODEL, **SIZES, **HOW, observables="auc", seeds=20)
    for name in ("generalisation_error", "training_loss", "auc", "Q"):
        np.testing.assert_allclose(ds[f"{name}_finite_size"], both[name] - both[f"{name}_theory"])
        np.testing.assert_allclose(ds[f"{name}_finite_size_stderr"], both[f"{name}_stderr"])
    assert "these sizes" in ds.attrs["finite_size_method"]
    assert ds.attrs["finite_size_seeds"] == 20 and ds.attrs["finite_size_seconds"] > 0
    bare = hm.predict(MODEL, **SIZES, **HOW, observables="auc")
    assert ds.generalisation_error.identical(bare.generalisation_error)


@pytest.mark.slow
def test_large_sizes_have_the_deviations_of_smaller_ones_by_their_ratio():
    sizes = {"n": 640, "p": 640, "d": 320}
    ds = with_deviations(sizes, budget=0.1)
    told = ds.attrs["finite_size_method"]
    assert "and 1/d" in told
    scale = float(told.split()[3])
    small = {name: round(value * scale) for name, value in sizes.items()}
    both = hm.compare(MODEL, **small, **HOW, seeds=20)
    here = float(both.training_loss - both.training_loss_theory) * scale
    error = 4 * scale * float(both.training_loss_stderr)
    assert float(ds.training_loss_finite_size) == pytest.approx(here, abs=error)


@pytest.mark.slow
def test_predictions_take_the_argument():
    sizes, more = {"n": [8, 12], "p": 6, "d": 4}, {"decision_thresholds": [0.3, 0.5, 0.9]}
    ds = hm.predict(MODEL, **sizes, **HOW, **more, finite_size=True)
    assert np.isfinite(ds.generalisation_error_finite_size).all()
    assert ds.attrs["finite_size_seeds"] == finite_size.SEEDS
    both = hm.compare(MODEL, **sizes, **HOW, **more, seeds=finite_size.SEEDS)
    assert ds.net_benefit_finite_size.dims == ("n", "decision_threshold")
    np.testing.assert_allclose(
        ds.net_benefit_finite_size, both.net_benefit - both.net_benefit_theory
    )


@pytest.mark.parametrize(("noise", "widened"), [(0.0, False), (1.0, True)])
def test_deviations_that_do_not_fall_like_1_over_d_widen_the_error(noise, widened):
    large, small = (
        Deviations(xr.Dataset({"q": value}), xr.Dataset({"q": 0.01}))
        for value in (0.4 + noise, 0.8)
    )
    found = finite_size._extrapolated(large, small, 0.25)
    # 0.4 at a quarter of the sizes and 0.8 at an eighth are 0.1 at the sizes themselves
    if not widened:
        assert float(found.mean.q) == pytest.approx(0.1)
        assert float(found.stderr.q) == pytest.approx(0.01 * 0.25 / np.sqrt(5))
    else:
        assert float(found.stderr.q) > 0.1


def test_what_does_not_scatter_has_no_error():
    large, small = (
        Deviations(xr.Dataset({"q": value}), xr.Dataset({"q": 0.0})) for value in (0.4, 0.8)
    )
    found = finite_size._extrapolated(large, small, 0.25)
    assert float(found.mean.q) == pytest.approx(0.1) and float(found.stderr.q) == 0.0


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ({"n_over_d": 2.0, "p_over_n": 1.0}, {}, "needs sizes"),
        (SIZES, {"regularisation": np.inf}, "finite"),
        (SIZES, {"chunks": "auto"}, "cannot be combined with finite_size"),
        ({"n": 200_000, "p": 2000, "d": 20}, {}, "too long"),
    ],
)
def test_what_cannot_be_simulated_is_refused(given, more, message):
    with pytest.raises(hm.InvalidArgumentError, match=message):
        hm.predict(MODEL, **given, **{**HOW, **more}, finite_size=True)


def test_losses_without_a_minimum_are_refused():
    logistic = MODEL.with_loss("logistic")
    with pytest.raises(hm.InvalidArgumentError, match="finite_size"):
        hm.predict(logistic, **SIZES, regularisation=0.0, finite_size=True)


def test_sizes_are_told_to_be_those_of_the_limit():
    assert "limit" in hm.predict(MODEL, **SIZES, **HOW).attrs["sizes"]
    assert "sizes" not in hm.predict(MODEL, n_over_d=2.0, p_over_n=1.0, **HOW).attrs
