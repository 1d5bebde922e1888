"""Grids that are computed when they are asked for."""

import sys

import dask
import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold.api import lazy
from hiddenmanifold.errors import MissingExtraError

MODEL = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
GRID = {"n_over_d": [1.0, 2.0, 3.0], "p_over_n": np.geomspace(0.2, 3.0, 7), "regularisation": 0.01}


def close(one, other):
    """Batches of other sizes start their points from other neighbours."""
    assert set(one.variables) == set(other.variables)
    for name in other.data_vars:
        if name not in ("iterations", "residual", "quadrature_error", "conditioning_error"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9, err_msg=str(name))
        assert one[name].dtype == other[name].dtype
        assert one[name].attrs == other[name].attrs
    assert {**one.attrs, "workers": 1} == {**other.attrs, "workers": 1}


@pytest.mark.parametrize("chunks", ["auto", {"p_over_n": 2}, {"p_over_n": 100, "n_over_d": 1}, {}])
@pytest.mark.parametrize("regularisation", [0.01, "optimal"])
def test_a_lazy_grid_is_the_grid(chunks, regularisation):
    asked = GRID | {"regularisation": regularisation}
    lazy = hm.predict(MODEL, **asked, chunks=chunks)
    assert all(dask.is_dask_collection(lazy[name].data) for name in lazy.data_vars)
    close(lazy.compute(), hm.predict(MODEL, **asked))


def test_nothing_is_computed_before_it_is_asked_for():
    solved = []

    def function(x, on_failure="raise"):
        solved.append(x.size)
        return xr.Dataset({"a": x + 0.0, "b": -x})

    x = xr.DataArray(np.arange(24.0), dims="x", coords={"x": np.arange(24.0)})
    with dask.config.set(scheduler="synchronous"):
        ds = lazy.chunked(function, {"x": x}, {"x": 3})
        assert sum(solved) == 1  # the first, to learn the names of the columns
        assert ds.a.isel(x=slice(3, 6)).compute().values.tolist() == [3.0, 4.0, 5.0]
        assert sum(solved) == 1 + 3
        ds.compute()  # all columns of a chunk come from one call
    assert sum(solved) == 1 + 3 + 24


def test_dimensions_of_data_arrays_are_kept():
    lam = xr.DataArray([1e-3, 1e-1, 1.0], dims="strength")
    ratio = xr.DataArray([[0.5, 1.0, 2.0], [1.0, 2.0, 4.0]], dims=("family", "strength"))
    asked = {"n_over_d": 2.0, "p_over_n": ratio, "regularisation": lam}
    close(hm.predict(MODEL, **asked, chunks={"strength": 2}).compute(), hm.predict(MODEL, **asked))


def test_observables_come_along():
    lazy = hm.predict(MODEL, **GRID, observables="auc", chunks={"p_over_n": 3})
    plain = hm.predict(MODEL, **GRID, observables="auc")
    np.testing.assert_allclose(lazy.auc.compute(), plain.auc, rtol=1e-9)


@pytest.mark.slow
def test_a_lazy_grid_can_be_written_as_zarr(tmp_path):
    lazy = hm.predict(MODEL, **GRID, chunks={"p_over_n": 3})
    lazy.to_zarr(tmp_path / "grid.zarr", zarr_format=2)
    with xr.open_zarr(tmp_path / "grid.zarr") as back:
        xr.testing.assert_equal(back.load(), lazy.compute(scheduler="synchronous"))


@pytest.mark.slow
def test_points_that_fail_are_told_or_kept():
    absolute = hm.Model(activation="erf", projection="gaussian", teacher="linear", loss="square")
    at_peak = {"n_over_p": [1.0, 2.0], "d_over_p": 0.5, "regularisation": 0.0}
    lazy = hm.predict(absolute, **at_peak, chunks={"n_over_p": 1})
    with pytest.raises(hm.ConvergenceError):
        lazy.compute(scheduler="synchronous")
    kept = hm.predict(absolute, **at_peak, chunks={"n_over_p": 1}, on_failure="keep").compute()
    assert (kept.status != 0).values.tolist() == [True, False]


def test_threads_and_processes_give_the_same_bits():
    lazy = hm.predict(MODEL, **GRID, chunks={"p_over_n": 3})
    threads, here = (lazy.compute(scheduler=s) for s in ("threads", "synchronous"))
    assert threads.equals(here)


@pytest.mark.parametrize(
    "chunks", [3, "large", {"q": 1}, {"p_over_n": 0}, {"p_over_n": 1.5}, {"p_over_n": True}]
)
def test_chunks_that_make_no_sense_are_refused(chunks):
    with pytest.raises(hm.InvalidArgumentError, match="chunks"):
        hm.predict(MODEL, **GRID, chunks=chunks)


def test_workers_are_left_to_dask():
    with pytest.raises(hm.InvalidArgumentError, match="cannot be combined with workers"):
        hm.predict(MODEL, **GRID, chunks="auto", workers=2)


def test_too_many_chunks_are_refused_at_once():
    axis = np.linspace(1.0, 2.0, 10**6)
    for chunks in ("auto", {"n_over_d": 1000, "p_over_n": 10}):
        with pytest.raises(hm.InvalidArgumentError, match=r"chunks.*at most 1e\+06"):
            hm.predict(MODEL, n_over_d=axis, p_over_n=axis, regularisation=1.0, chunks=chunks)


def test_columns_are_known_by_their_names():
    """Not by their order, which may be another at another point."""

    def function(x, on_failure="raise"):
        columns = {"a": x + 0.0, "b": -x}
        return xr.Dataset(columns if x.values[0] < 2 else dict(reversed(columns.items())))

    x = xr.DataArray([1.0, 2.0, 3.0], dims="x", coords={"x": [1.0, 2.0, 3.0]})
    ds = lazy.chunked(function, {"x": x}, {"x": 1}).compute()
    assert (ds.a.values.tolist(), ds.b.values.tolist()) == ([1, 2, 3], [-1, -2, -3])


def test_without_dask_there_is_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hiddenmanifold\[cluster\]'"):
        lazy.chunked(lambda **_: None, {}, "auto")
