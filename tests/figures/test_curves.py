"""Axes, side-by-side datasets, scores, and what is kept on disk."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold.figures import figure_cache, figure_data
from hiddenmanifold.figures.drawing import used_ratio
from hiddenmanifold.figures.figure_data import (
    Axis,
    Setting,
    Size,
    paper_model,
    predicted,
    scores,
    side_by_side,
    simulated,
    stacked,
)
from hiddenmanifold.storage import Store

SQUARE, HINGE = paper_model(loss="square"), paper_model(loss="hinge")
SIZE = Size(d=12, seeds=3, n_test=20)
POINTS = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": 0.1}


def test_axes_include_their_ends():
    assert Axis(1.0, 3.0, 3).values.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(Axis(0.1, 10.0, 3, logarithmic=True).values, [0.1, 1.0, 10.0])


def test_models_lie_side_by_side():
    error = ("generalisation_error",)
    models = {"square": SQUARE, "hinge": HINGE}
    ds = side_by_side({name: predicted(m, error, **POINTS) for name, m in models.items()}, "loss")
    assert ds.generalisation_error.dims == ("loss", "p_over_n")
    for name, model in (("square", SQUARE), ("hinge", HINGE)):
        alone = hm.predict(model, **POINTS)
        one = ds.sel(loss=name)
        np.testing.assert_array_equal(one.generalisation_error, alone.generalisation_error)
        assert f"{name}: {model!r}" in ds.attrs["model"]
    assert ds.n_over_d == 2.0
    assert "training_loss" not in ds


def test_each_model_keeps_its_own_regularisation():
    error = ("generalisation_error",)
    parts = {
        str(lam): {
            name: {"theory": predicted(model, error, **POINTS | {"regularisation": lam})}
            for name, model in (("a", SQUARE), ("b", HINGE))
        }
        for lam in (0.1, 0.2)
    }
    ds = stacked({lam: stacked(of, "loss") for lam, of in parts.items()}, "strength")["theory"]
    assert ds.regularisation.values.tolist() == [[0.1, 0.1], [0.2, 0.2]]


@pytest.fixture(scope="module")
def simulation():
    return simulated(SQUARE, ("training_loss",), size=SIZE, **POINTS)


@pytest.mark.slow
def test_simulations_are_those_of_compare(simulation):
    alone = hm.compare(SQUARE, d=12, seeds=3, n_test=20, seed=0, **POINTS)
    for end in ("", "_stderr", "_theory", "_z"):
        np.testing.assert_array_equal(
            simulation[f"training_loss{end}"], alone[f"training_loss{end}"]
        )
    assert used_ratio(simulation, "p_over_n").values.tolist() == [0.5, 2.0]


def changed(monkeypatch, interrupted=0, **columns):
    """Let simulations end otherwise than they did."""
    compare = figure_data.compare

    def changing(*args, **options):
        return compare(*args, **options).assign(columns).assign_attrs(interrupted=interrupted)

    monkeypatch.setattr(figure_data, "compare", changing)


def test_an_interrupted_simulation_is_no_result(monkeypatch):
    changed(monkeypatch, interrupted=1)
    with pytest.raises(KeyboardInterrupt):
        simulated(SQUARE, ("training_loss",), size=SIZE, **POINTS)


def test_fits_that_were_left_out_are_reported(monkeypatch):
    changed(monkeypatch, seeds=("p_over_n", [3, 2]), dropped=("p_over_n", [0, 1]))
    with pytest.warns(UserWarning, match="1 simulated fits of Model"):
        simulated(SQUARE, ("training_loss",), size=SIZE, **POINTS)


def test_scores_collect_every_point():
    first = xr.Dataset({"Q": ("x", [1.0, 2.0]), "Q_z": ("x", [0.5, -7.0])})
    second = xr.Dataset({"M_z": (("x", "y"), [[1.0], [2.0]])})
    z = scores({"one": first, "nothing": first[["Q"]], "two": second})
    assert z.values.tolist() == [0.5, -7.0, 1.0, 2.0]
    assert z.part.values.tolist() == ["one", "one", "two", "two"]
    assert z.quantity.values.tolist() == ["Q", "Q", "M", "M"]
    assert float(abs(z).max()) == 7.0
    assert scores({"nothing": first[["Q"]]}).size == 0


@pytest.mark.parametrize("name", ["n", "n_over_x", "x_over_n", "regularisation"])
def test_only_ratios_of_sizes_are_ratios(simulation, name):
    with pytest.raises(hm.InvalidArgumentError, match="a ratio such as p_over_n"):
        used_ratio(simulation, name)


@pytest.mark.slow
def test_datasets_survive_the_disk(tmp_path):
    models = {"square": SQUARE, "hinge": HINGE}
    parts = {
        name: {
            "theory": predicted(model, ("Q",), **POINTS | {"regularisation": "optimal"}),
            "simulation": simulated(model, ("Q",), size=SIZE, **POINTS),
        }
        for name, model in models.items()
    }
    data = stacked(parts, "loss")
    setting = Setting(at={}, lines={"p_over_n": Axis(0.5, 2.0, 2)}, size=SIZE)
    files = {part: tmp_path / f"figure_9_{part}.nc" for part in data}
    made_by = figure_cache.digest(setting, "figure_1")
    assert figure_cache.recalled(files, made_by) is None
    figure_cache.keep(data, files, made_by)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in files.values()}
    back = figure_cache.recalled(files, made_by)
    for part, ds in data.items():
        xr.testing.assert_equal(back[part], ds)
        assert set(back[part].attrs) == set(ds.attrs)
        for name, value in ds.attrs.items():
            assert np.array_equal(back[part].attrs[name], value)
    other = replace(setting, size=Size(d=12, seeds=4))
    for changed in (("figure_2", setting), ("figure_1", other)):
        assert figure_cache.recalled(files, figure_cache.digest(*changed[::-1])) is None


@pytest.mark.slow
def test_an_interrupted_figure_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "results.db"
    asked = {"size": SIZE, **POINTS, "store": path}
    first, again = (simulated(SQUARE, ("Q",), **asked) for _ in range(2))
    assert first.drop_attrs().equals(again.drop_attrs())
    assert (first.attrs["computed"], again.attrs["reused"]) == (6, 6)
    assert len(list(Store(path).rows())) == 6
