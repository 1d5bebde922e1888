"""Sizes instead of ratios: the same answers, wherever ratios are taken."""

import inspect

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import hiddenmanifold as hm
from given import power_law

PARTS = {"activation": "erf", "projection": "gaussian", "teacher": "sign", "loss": "square"}
MODEL = hm.Model(**PARTS)
F = np.random.default_rng(2).standard_normal((20, 30))
MATRIX = hm.Model(**{**PARTS, "projection": hm.projections.Matrix(F)})
PROJECTED = hm.Model(features=hm.features.Projected(power_law(12)), teacher="sign", loss="square")
SPECTRUM = hm.Model(
    **{**PARTS, "projection": hm.projections.Spectrum([0.0, 1.5, 1.5], d_over_p=0.7)}
)


def assert_same_values(one, other):
    for name in one.data_vars:
        if name != "seconds":
            assert_array_equal(one[name], other[name], err_msg=str(name))


CALLS = {
    "predict": lambda **r: hm.predict(MODEL, regularisation=[0.1, 1.0], **r),
    "optimal": lambda **r: hm.predict(MODEL, regularisation="optimal", **r),
    "sensitivity": lambda **r: hm.sensitivity(MODEL, regularisation=0.1, **r),
    "bayes_optimal": lambda **r: hm.bayes_optimal(MODEL, **r),
}


@pytest.mark.parametrize("name", CALLS)
def test_three_sizes_are_two_ratios(name):
    sized = CALLS[name](n=[300, 50], p=200, d=100)
    assert_same_values(sized, CALLS[name](n_over_p=[1.5, 0.25], d_over_p=0.5))
    assert sized.n.values.tolist() == [300, 50]
    assert (int(sized.p), int(sized.d)) == (200, 100)
    assert sized.n.attrs["long_name"] == "number of samples"
    assert "n_over_p" not in sized.coords


ONE_RATIO = {
    "separability_threshold": lambda **r: hm.separability_threshold(MODEL, **r),
    "interpolation_peak": lambda **r: hm.interpolation_peak(MODEL, regularisation=0.01, **r),
    "features_needed": lambda **r: hm.features_needed(MODEL, within=5.0, **r),
    "samples_needed": lambda **r: hm.samples_needed(
        MODEL, target_error=0.3, regularisation=0.1, **r
    ),
}


SLOW = {"features_needed": [pytest.mark.slow]}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW.get(name, ())) for name in ONE_RATIO]
)
def test_two_sizes_are_one_ratio(name):
    call, sizes, ratio = ONE_RATIO[name], {"n": 300, "d": 100}, {"n_over_d": 3.0}
    if name == "samples_needed":
        sizes, ratio = {"p": 400, "d": 100}, {"d_over_p": 0.25}
    assert_same_values(call(**sizes), call(**ratio))
    with pytest.raises(hm.InvalidArgumentError) as caught:
        call(**sizes, **ratio)
    assert caught.value.argument == "ratios"
    with pytest.raises(hm.InvalidArgumentError, match="two of n, p and d") as caught:
        call(d=100)
    assert caught.value.argument == "sizes"


def test_sizes_span_a_grid_and_follow_their_dimensions():
    ds = hm.predict(MODEL, n=[100, 200], p=[50, 100, 150], d=100, regularisation=0.1)
    assert ds.sizes == {"n": 2, "p": 3}
    run = {"n": xr.DataArray([10, 20], dims="run"), "p": xr.DataArray([5, 6], dims="run")}
    ds = hm.predict(MODEL, **run, d=7, regularisation=0.1)
    assert ds.sizes == {"run": 2}
    one = hm.predict(MODEL, n_over_p=20 / 6, d_over_p=7 / 6, regularisation=0.1)
    assert ds.generalisation_error[1] == one.generalisation_error


SMALL = {"regularisation": [0.1, 1.0], "seeds": 2, "n_test": 50, "workers": 1}


@pytest.mark.slow
@pytest.mark.parametrize("run", [hm.simulate, hm.compare])
def test_simulations_draw_the_sizes_they_are_given(run):
    sized = run(MODEL, n=[30, 45], p=20, d=15, **SMALL)
    ratios = run(MODEL, n_over_d=[2.0, 3.0], p_over_d=4 / 3, d=15, **SMALL)
    assert sized.n.values.tolist() == ratios.n.values.tolist() == [30, 45]
    assert_same_values(sized, ratios)
    both = run(MODEL, n=[30, 45], p=[20, 10], d=15, **SMALL)
    assert both.sizes["n"] == both.sizes["p"] == 2
    assert_array_equal(both.generalisation_error.sel(p=20), sized.generalisation_error)


@pytest.mark.slow
def test_the_best_regularisation_of_given_sizes_is_compared():
    few = {"regularisation": "optimal", "seeds": 2, "n_test": 50, "workers": 1}
    sized = hm.compare(MODEL, n=[30, 45], p=20, d=15, **few)
    ratios = hm.compare(MODEL, n_over_d=[2.0, 3.0], p_over_d=4 / 3, d=15, **few)
    np.testing.assert_allclose(
        sized.optimal_regularisation, ratios.optimal_regularisation, rtol=1e-9
    )
    np.testing.assert_allclose(sized.generalisation_error, ratios.generalisation_error)


def test_sizes_that_the_features_fix_may_be_left_out():
    for sizes in ({"n": 60}, {"n": 60, "p": 30}, {"n": 60, "d": 20}, {"n": 60, "p": 30, "d": 20}):
        ds = hm.predict(MATRIX, **sizes, regularisation=0.1)
        assert_same_values(ds, hm.predict(MATRIX, n_over_p=2.0, regularisation=0.1))
        assert [int(ds[name]) for name in ("n", "p", "d")] == [60, 30, 20]
    drawn = hm.simulate(MATRIX, n=60, **SMALL)
    assert [int(drawn[name]) for name in ("n", "p", "d")] == [60, 30, 20]
    for sizes in ({"n": 60, "p": 30}, {"n": 60, "d": 21}):
        ds = hm.predict(SPECTRUM, **sizes, regularisation=0.1)
        assert_same_values(ds, hm.predict(SPECTRUM, n_over_p=2.0, regularisation=0.1))
        assert (int(ds.p), int(ds.d)) == (30, 21)
    covariates = hm.Model(features=power_law(12), teacher="sign", loss="square")
    assert hm.simulate(covariates, n=24, **SMALL).p == 12
    ds = hm.predict(covariates, n=[24, 60], regularisation=0.1)
    assert_same_values(ds, hm.predict(covariates, n_over_p=[2.0, 5.0], regularisation=0.1))
    assert (ds.n.values.tolist(), int(ds.p), int(ds.d)) == ([24, 60], 12, 12)


REFUSED = {
    "two of three": (MODEL, {"n": 10, "p": 5}, "sizes", "lack d"),
    "one of three": (MODEL, {"p": 5}, "sizes", "lack n and d"),
    "n alone": (MODEL, {"n": 10}, "sizes", "lack p and d"),
    "n alone of any p": (PROJECTED, {"n": 10}, "sizes", "lack p"),
    "beside a ratio": (MODEL, {"n": 10, "p_over_d": 2.0}, "ratios", "give either ratios or sizes"),
    "a part": (MODEL, {"n": 10.5, "p": 5, "d": 5}, "n", "whole number"),
    "none": (MODEL, {"n": 0, "p": 5, "d": 5}, "n", "positive"),
    "infinite": (MODEL, {"n": np.inf, "p": 5, "d": 5}, "n", "finite"),
    "another d": (MATRIX, {"n": 10, "d": 21}, "d", "20, which the features fix"),
    "another p": (MATRIX, {"n": 10, "p": 31}, "p", "features fix d/p"),
    "another ratio": (SPECTRUM, {"n": 10, "p": 30, "d": 30}, "p", "features fix d/p"),
    "no p": (SPECTRUM, {"n": 10}, "sizes", "lack p and d"),
    "other lengths": (
        MODEL,
        {"n": xr.DataArray([1, 2], dims="k"), "p": xr.DataArray([1, 2, 3], dims="k"), "d": 5},
        "n, p, d",
        "do not match",
    ),
    "other labels": (
        MODEL,
        {
            "n": xr.DataArray([1, 2], {"k": [0, 1]}, "k"),
            "p": xr.DataArray([1, 2], {"k": [1, 2]}, "k"),
            "d": 5,
        },
        "n, p, d",
        "do not match",
    ),
    "a name that is taken": (
        MODEL,
        {"n": xr.DataArray([1, 2], dims="p"), "p": 5, "d": 5},
        "n",
        "rename it",
    ),
}


@pytest.mark.parametrize("run", [hm.predict, hm.simulate])
@pytest.mark.parametrize("case", REFUSED)
def test_sizes_that_make_no_sense_are_refused(run, case):
    model, sizes, argument, sentence = REFUSED[case]
    with pytest.raises(hm.InvalidArgumentError, match=sentence) as caught:
        run(model, **sizes, regularisation=0.1)
    assert caught.value.argument == argument


def test_signatures_name_them():
    for function in (hm.predict, hm.simulate, hm.compare, hm.samples_needed):
        assert {"n", "p", "d", "n_over_d"} < set(inspect.signature(function).parameters)
