"""Every dataset states its kind, and of every variable a meaning and a role, also in files."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold.model import BASES
from hiddenmanifold.results.ingredients import model_attributes
from hiddenmanifold.results.observables import REGISTRY
from hiddenmanifold.results.schema import (
    OF_KIND,
    VARIABLES,
    Kind,
    Role,
    described,
    is_result,
    of_role,
)

DOCS = Path(__file__).parents[2] / "docs"
MODEL = hm.Model(
    activation="erf", projection="gaussian", teacher=hm.teachers.Sign(noise=0.2), loss="hinge"
)
SQUARE = MODEL.with_loss("square")
POINT = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0], "regularisation": 0.1}
DRAWN = {**POINT, "d": 12, "seeds": 2, "n_test": 20, "workers": 1}


def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    return hm.Data(X, X @ np.ones(6) + rng.standard_normal(120))


MAKERS = {
    Kind.PREDICTION: lambda: hm.predict(MODEL, **POINT, observables=["auc", "test_loss"]),
    Kind.ENSEMBLE: lambda: hm.ensemble(MODEL, **POINT, members=[1, np.inf], observables="auc"),
    Kind.BIAS_VARIANCE: lambda: hm.bias_variance(MODEL, **POINT),
    Kind.INSTABILITY: lambda: hm.instability(MODEL, **POINT),
    Kind.PAIR: lambda: hm.pair(MODEL, MODEL, **POINT, observables="auc"),
    Kind.SENSITIVITY: lambda: hm.sensitivity(MODEL, **POINT, observables="auc"),
    Kind.MARGINS: lambda: hm.margins(MODEL, **POINT, at=[0.0, 1.0]),
    Kind.SIMULATION: lambda: hm.simulate(MODEL, **DRAWN, margins=[0.0]),
    Kind.SUMMARY: lambda: hm.summary(hm.simulate(MODEL, **DRAWN)),
    Kind.COMPARISON: lambda: hm.compare(MODEL, **DRAWN, margins=[0.0], observables="auc"),
    Kind.THRESHOLD: lambda: hm.separability_threshold(MODEL, n_over_d=[1.0, 2.0]),
    Kind.PEAK: lambda: hm.interpolation_peak(SQUARE, n_over_d=[2.0], regularisation=1e-3),
    Kind.FEATURES_NEEDED: lambda: hm.features_needed(SQUARE, n_over_d=1.0, within=0.5),
    Kind.SAMPLES_NEEDED: lambda: hm.samples_needed(
        SQUARE, target_error=[0.3], p_over_d=2.0, regularisation=0.1
    ),
    Kind.BAYES_OPTIMAL: lambda: hm.bayes_optimal(MODEL, n_over_d=2.0, p_over_n=[0.5, 1.0]),
    Kind.TRAINING: lambda: hm.training(SQUARE, n_over_d=2.0, p_over_n=0.5, times=[1, 20], step=0.1),
    Kind.LEARNING_CURVE: lambda: hm.learning_curve(sample(), on_refusal="keep"),
    Kind.BACKTEST: lambda: hm.backtest(sample(), n=[40], seeds=2, rows=50),
}


def described_alike(one, other):
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        assert one[name].attrs.get("long_name") == other[name].attrs.get("long_name"), name
        assert one[name].attrs["role"] == other[name].attrs["role"], name
    for name, value in one.attrs.items():
        assert np.array_equal(other.attrs[name], value), name


def test_every_kind_of_dataset_is_made_here():
    assert set(MAKERS) == set(Kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", Kind)
def test_every_variable_has_a_meaning_and_a_role_that_files_keep(kind, tmp_path):
    ds = MAKERS[kind]()
    assert ds.attrs["kind"] == kind
    for name, values in ds.variables.items():
        assert values.attrs["long_name"], name
        assert values.attrs["role"] in set(Role), name
        assert (values.attrs["role"] == Role.COORDINATE) == (name in ds.coords), name
    for name in of_role(ds, Role.STATUS):
        assert "flag_meanings" in ds[name].attrs
    ds.to_netcdf(tmp_path / "kept.nc")
    with xr.open_dataset(tmp_path / "kept.nc") as kept:
        described_alike(ds, kept)
    pytest.importorskip("zarr")
    ds.to_zarr(tmp_path / "kept.zarr", zarr_format=2)
    described_alike(ds, xr.open_zarr(tmp_path / "kept.zarr"))


def test_chunks_have_the_schema_of_the_whole():
    pytest.importorskip("dask")
    whole = hm.predict(MODEL, **POINT)
    chunked = hm.predict(MODEL, **POINT, chunks="auto").assign_attrs(workers=1)
    described_alike(whole.assign_attrs(workers=1), chunked)


@pytest.mark.slow
def test_roles_are_those_of_the_question():
    assert MAKERS[Kind.THRESHOLD]().p_over_n.attrs["role"] == Role.ANSWER
    ds = hm.predict(SQUARE, **{**POINT, "regularisation": "optimal"})
    assert of_role(ds, Role.ANSWER) == ("optimal_regularisation",)
    assert ds.p_over_n.attrs["role"] == Role.COORDINATE
    both = MAKERS[Kind.COMPARISON]()
    assert of_role(both, Role.STATUS) == ("theory_status",)
    assert {"auc_theory", "test_cdf_theory", "train_cdf_theory"} < {*of_role(both, Role.THEORY)}
    assert of_role(MAKERS[Kind.LEARNING_CURVE](), Role.LOWER_BOUND) == (
        "generalisation_error_low",
        "test_loss_low",
        "training_loss_low",
        "generalisation_error_fall_low",
        "test_loss_fall_low",
    )


def test_a_name_beside_another_takes_its_meaning():
    found = described("auc_by_log_n", Kind.SENSITIVITY)
    assert found == ("derivative of auc with respect to log n", Role.DERIVATIVE)
    with pytest.raises(KeyError):
        described("nothing_stderr", Kind.SUMMARY)
    assert is_result("auc_stderr")
    assert not is_result("n_over_d")
    assert not is_result("run")


def test_ingredients_are_attributes():
    found = model_attributes(MODEL)
    assert {kind: found[kind] for kind in BASES} == {
        "activation": "erf",
        "projection": "gaussian",
        "teacher": "sign",
        "loss": "hinge",
    }
    assert (found["teacher_noise"], found["teacher_flip"], found["intercept"]) == (0.2, 0.0, 0)
    steps = MODEL.with_loss(hm.losses.Huber(delta=0.3))
    assert model_attributes(steps)["loss_delta"] == 0.3
    custom = hm.Model(
        activation=lambda x: x, projection="gaussian", teacher="linear", loss="square"
    )
    assert "0x" not in model_attributes(custom)["activation_function"]
    assert all(isinstance(value, str | int | float) for value in found.values())


def test_the_reference_names_every_kind_role_and_variable():
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    own = (name for of_kind in OF_KIND.values() for name in of_kind)
    for name in (*Kind, *Role, *VARIABLES, *own):
        assert f"`{name}`" in text, name


def test_the_guide_explains_every_observable():
    text = (DOCS / "guide.md").read_text(encoding="utf-8")
    for name in REGISTRY:
        assert f"| `{name}` |" in text, name
