"""What the package says of itself, and its results of theirs."""

import pickle
import re
import sys

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold import compiled, versions

PARTS = {"activation": "sign", "projection": "gaussian", "teacher": "sign", "loss": "square"}
LAM = "regularisation"
POINT = {"n_over_d": 1.0, "p_over_n": 1.0, LAM: 0.1}


def model(**ingredients):
    return hm.Model(**{**PARTS, **ingredients})


def test_dir_shows_public_names_alone():
    assert dir(hm) == sorted(hm.__all__)
    assert {"predict", "__version__", "activations"} < set(dir(hm))
    for name in hm.__all__:
        assert getattr(hm, name) is not None
    with pytest.raises(AttributeError, match="attribute '?nothing"):
        _ = hm.nothing


def test_versions_are_shown(capsys, monkeypatch):
    monkeypatch.setattr(versions, "EXTRAS", ("matplotlib", "no-such-thing"))
    hm.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["hiddenmanifold"] == hm.__version__
    assert shown["engine"] == compiled.engine()
    assert shown["numpy"] == np.__version__
    assert shown["xarray"] == xr.__version__
    assert shown["python"].split()[-1] == sys.version.split()[0]
    assert "threads: " in shown["BLAS"]
    assert shown["no-such-thing"] == "not installed (optional)"
    assert {"platform", "scipy", "matplotlib"} < set(shown)


GRID = {"n_over_d": 3.0, "p_over_n": [1.0, 2.0]}
SMALL = {**GRID, "regularisation": [0.1, 1.0], "d": 12, "seeds": 2, "n_test": 20, "workers": 1}
RESULTS = {
    "predict": lambda m: hm.predict(m, **GRID, regularisation=[0.1, 1.0]),
    "observables": lambda m: hm.predict(
        m, **GRID, regularisation=0.1, observables=["test_loss", "auc"]
    ),
    "margins": lambda m: hm.margins(m, **GRID, regularisation=0.1, at=[0.0, 1.0]),
    "chunks": lambda m: hm.predict(m, **GRID, regularisation=[0.1, 1.0], chunks={"p_over_n": 1}),
    "best": lambda m: hm.predict(m, n_over_p=1.0, d_over_p=1.0, regularisation="optimal"),
    "sensitivity": lambda m: hm.sensitivity(m, **GRID, regularisation=0.1),
    "bayes_optimal": lambda m: hm.bayes_optimal(m, d_over_n=1.0, p_over_d=[1.0]),
    "simulate": lambda m: hm.simulate(m, **SMALL),
    "summary": lambda m: hm.summary(hm.simulate(m, **SMALL)),
    "compare": lambda m: hm.compare(m, **SMALL),
    "features_needed": lambda m: hm.features_needed(m, n_over_d=1.0, within=0.5),
    "samples_needed": lambda m: hm.samples_needed(
        m, target_error=0.3, d_over_p=[1.0], regularisation=0.1
    ),
    "peak": lambda m: hm.interpolation_peak(m, d_over_p=0.5, regularisation=0.1),
    "threshold": lambda m: hm.separability_threshold(m, n_over_d=[1.0]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_name_of_a_result_is_explained(name):
    ds = RESULTS[name](model())
    assert ds.coords
    assert not [name for name, values in ds.variables.items() if not values.attrs.get("long_name")]


def test_who_names_a_coordinate_says_what_it_means():
    given = xr.DataArray([1.0, 2.0], dims="run", attrs={"long_name": "my ratio"})
    bare = xr.DataArray([0.5, 1.0], dims="run")
    ds = hm.predict(model(), n_over_d=given, p_over_n=bare, regularisation=0.1)
    assert ds.n_over_d.attrs["long_name"] == "my ratio"
    assert ds.p_over_n.attrs["long_name"] == "features per sample"
    assert bare.attrs == {}


def test_coordinates_of_a_user_keep_their_attributes_in_every_result():
    widths = xr.DataArray([20, 40], dims="width", attrs={"units": "neurons"})
    given = xr.DataArray([0.5, 1.0], dims="width", coords={"width": widths})
    at = {"n_over_d": 3.0, "p_over_n": given, "regularisation": 0.1}
    drawn = hm.simulate(model(), **at, d=12, seeds=2, n_test=20, workers=1)
    compared = hm.compare(model(), **at, d=12, seeds=2, n_test=20, workers=1)
    for ds in (hm.predict(model(), **at), drawn, hm.summary(drawn), compared):
        assert ds.width.attrs["units"] == "neurons"


@pytest.mark.parametrize("argument", ["n_over_d", "regularisation"])
def test_masked_values_are_refused(argument):
    masked = np.ma.masked_equal([1.0, 2.0], 2.0)
    arguments = {"n_over_d": 1.0, "p_over_n": 1.0, "regularisation": 0.1}
    with pytest.raises(hm.InvalidArgumentError, match="has 1 masked entry") as caught:
        hm.predict(model(), **{**arguments, argument: masked})
    assert caught.value.argument == argument
    whole = np.ma.masked_array([1.0, 2.0])
    assert hm.predict(model(), **{**arguments, argument: whole}).sizes == {argument: 2}


def test_masked_ingredients_are_refused():
    F = np.random.default_rng(0).standard_normal((20, 10))
    with pytest.raises(hm.InvalidArgumentError, match="masked") as caught:
        hm.projections.Matrix(np.ma.masked_where(F > 1.0, F))
    assert caught.value.argument == "F"
    with pytest.raises(hm.InvalidArgumentError, match="masked") as caught:
        hm.projections.Spectrum(np.ma.masked_equal([1.0, 5.0], 5.0), d_over_p=1.0)
    assert caught.value.argument == "eigenvalues"


def test_models_of_the_same_matrix_are_the_same():
    F = np.random.default_rng(1).standard_normal((30, 20))
    one, other = (model(projection=hm.projections.Matrix(G)) for G in (F, np.asfortranarray(F)))
    sent = pickle.loads(pickle.dumps(one))
    assert one == other == sent
    assert len({one, other, sent}) == 1
    changed = F.copy()
    changed[-1, -1] += 1e-12
    assert one != model(projection=hm.projections.Matrix(changed))
    assert hm.projections.Matrix(F) != hm.projections.Gaussian()


def test_features_that_see_nothing_are_warned_of():
    with pytest.warns(hm.BlindFeaturesWarning, match="cos.*nothing of the teacher's field") as told:
        blind = model(activation=np.cos)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert float(hm.predict(blind, **{**GRID, "p_over_n": 1.0}, regularisation=0.1).M) == 0.0
    with pytest.warns(hm.BlindFeaturesWarning, match="Covariance"):
        hm.Model(features=hm.features.Covariance([1.0], [0.0]), teacher="sign", loss="square")
    # whoever has the model was told: nothing that is computed of it says so again
    logistic = blind.with_loss("logistic")
    for lam in (0.0, 0.1, np.inf):
        ds = hm.predict(logistic, n_over_d=3.0, p_over_n=0.1, regularisation=lam)
        assert float(ds.generalisation_error) == pytest.approx(0.5)
    assert pickle.loads(pickle.dumps(blind)) == blind


def test_another_loss_must_fit_the_teacher():
    with pytest.raises(hm.IncompatibleIngredientsError):
        model(teacher="linear").with_loss("logistic")
    with pytest.raises(hm.InvalidArgumentError) as caught:
        model().with_loss("logit")
    assert caught.value.argument == "loss"


@pytest.mark.parametrize("name", ["StoreError", "LostWorkerError", "MissingExtraError"])
def test_errors_that_calls_may_raise_are_public(name):
    assert name in hm.__all__
    assert issubclass(getattr(hm, name), hm.HiddenManifoldError)


@pytest.mark.parametrize(
    ("argument", "call", "hint"),
    [
        ("loss", lambda: model(loss=hm.losses.Hinge), "did you mean Hinge()"),
        ("teacher", lambda: model(teacher=np.sign), "teachers.Custom makes one of a function"),
        ("projection", lambda: model(projection=np.eye(3)), "projections.Matrix makes one"),
        ("F", lambda: hm.projections.Matrix("a"), "a d × p matrix of numbers"),
        ("ds", lambda: hm.summary(None), "a dataset returned by simulate"),
        ("store", lambda: hm.simulate(model(), **POINT, store=3), "the path of a file"),
        ("regularisation", lambda: hm.predict(model(), **{**POINT, LAM: "best"}), "'optimal'"),
        ("regularisation", lambda: hm.predict(model(), **{**POINT, LAM: hm.Optimal}), "'optimal'"),
        ("regularisation", lambda: hm.sensitivity(model(), **{**POINT, LAM: "optimal"}), "predict"),
        (
            "ratios",
            lambda: hm.predict(model(), **POINT, d=100),
            "cannot be combined with the sizes d",
        ),
    ],
)
def test_what_is_mistaken_is_told_what_to_do(argument, call, hint):
    with pytest.raises(hm.InvalidArgumentError, match=re.escape(hint)) as caught:
        call()
    assert caught.value.argument == argument


def test_values_are_shown_in_one_short_line():
    def shown(value):
        return str(hm.InvalidArgumentError("a", value, "b")).partition(" is not")[0]

    assert shown(np.float64(-1.0)) == "a = -1.0"
    assert shown(np.eye(2)) == "a = array([[1., 0.], [0., 1.]])"
    assert shown(hm.losses.Hinge().value) == "a = Hinge.value"


def test_every_error_of_the_package_can_be_named():
    assert issubclass(hm.StoreError, hm.HiddenManifoldError)
    assert issubclass(hm.MissingExtraError, ImportError)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            hm.InvalidArgumentError("loss", lambda: 0, "one of two"),
            r"loss = <function .*<lambda> at .*> is not allowed: it must be one of two",
        ),
        (
            hm.InvalidArgumentError.because("y", "has 3 missing values", "drop these rows"),
            "y has 3 missing values: drop these rows",
        ),
    ],
)
def test_both_forms_of_an_error_travel_between_processes(error, sentence):
    there = pickle.loads(pickle.dumps(error))
    assert re.fullmatch(sentence, str(error))
    assert (type(there), str(there), there.argument) == (type(error), str(error), error.argument)
    assert str(there) == f"{there.argument} {there.problem}: {there.remedy}"
