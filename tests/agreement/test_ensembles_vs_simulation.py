"""Ensembles of the theory and of simulated fits are the same, within standard errors."""

import numpy as np
import pytest

import hiddenmanifold as hm

Bootstrap, SubSample = hm.resampling.Bootstrap, hm.resampling.SubSample
CONFIGURATIONS = [
    ("erf", "gaussian", hm.teachers.Sign(noise=0.3), "square", "none", Bootstrap()),
    ("relu", "orthogonal", hm.teachers.Sign(threshold=0.3), "logistic", "features", None),
    ("tanh", "gaussian", hm.teachers.Linear(noise=0.2), "huber", "features", SubSample(0.6)),
    ("sign", "gaussian", hm.teachers.Mixture(prior=0.4, rho=2.0), "square", "both", None),
]


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_ensembles_agree_with_simulations(configuration):
    *parts, independent, resampling = configuration
    names = ("activation", "projection", "teacher", "loss")
    model = hm.Model(**dict(zip(names, parts, strict=True)), intercept=True)
    ds = hm.compare(
        model,
        n_over_d=2.5,
        p_over_n=0.6,
        regularisation=0.1,
        members=[1, 2, 4],
        independent=independent,
        resampling=resampling,
        d=60,
        seeds=12,
        n_test=1000,
        workers=1,
    )
    of_labels = ["vote_error", "disagreement"] if "vote_error" in ds else []
    errors = ["generalisation_error", "overlap", *of_labels]
    for name in errors:
        assert np.abs(ds[f"{name}_z"]).max() < 4.0, name


NOISY = hm.teachers.Sign(noise=0.2, threshold=0.2)
LINEAR = hm.teachers.Linear(noise=0.3)
PAIRS = [
    (("erf", "gaussian", NOISY, "hinge"), ("relu", "orthogonal", NOISY, "square"), "features", 0.5),
    (("erf", "gaussian", NOISY, "hinge"), ("erf", "gaussian", NOISY, "logistic"), "none", None),
    (
        ("tanh", "gaussian", LINEAR, "huber"),
        ("tanh", "gaussian", LINEAR, "square"),
        "samples",
        None,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "independent", "features"), PAIRS)
def test_two_models_agree_with_simulations(first, second, independent, features):
    names = ("activation", "projection", "teacher", "loss")
    models = [hm.Model(**dict(zip(names, parts, strict=True))) for parts in (first, second)]
    ds = hm.compare(
        models[0],
        second=models[1],
        n_over_d=2.0,
        p_over_d=1.2,
        p_2_over_d=features,
        regularisation=0.1,
        regularisation_2=0.5,
        independent=independent,
        resampling=SubSample(0.8),
        d=80,
        seeds=12,
        n_test=1000,
        workers=1,
    )
    assert int(ds.p_2) == round(80 * (features or 1.2))
    differences = {"probability_difference", "disagreement", "score_difference"}.intersection(ds)
    for name in ("overlap", "generalisation_error", "Q", "M", *differences):
        assert np.abs(ds[f"{name}_z"]).max() < 4.0, name


@pytest.mark.slow
def test_pairs_of_models_are_kept_apart_in_a_store(tmp_path):
    parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign"}
    model, second = (hm.Model(**parts, loss=loss) for loss in ("square", "hinge"))
    given = {"n_over_d": 2.0, "p_over_n": 0.5, "d": 12, "seeds": 2, "n_test": 50, "workers": 1}
    given |= {"regularisation": [0.1, 0.2], "regularisation_2": 0.3, "store": tmp_path / "fits"}
    once = hm.simulate(model, second=second, **given)
    assert once.Q.dims == ("regularisation", "seed", "fit")
    again = hm.simulate(model, second=second, **given)
    assert (again.attrs["computed"], again.attrs["reused"]) == (0, 4)
    assert np.array_equal(once.generalisation_error, again.generalisation_error)
    for other in ({"regularisation_2": 0.4}, {"share": 0.3}, {"independent": "both"}):
        assert hm.simulate(model, second=second, **{**given, **other}).attrs["reused"] == 0
    alone = {**given, "regularisation": 0.1}
    del alone["regularisation_2"]
    assert hm.simulate(model, **alone).attrs["reused"] == 0
    with pytest.raises(hm.InvalidArgumentError, match="second"):
        hm.simulate(model, **given)
    with pytest.raises(hm.InvalidArgumentError, match="second"):
        hm.simulate(model, second=second, members=2, **given)
    with pytest.raises(hm.InvalidArgumentError, match="regularisation_2"):
        hm.simulate(model, second=second, **{**given, "regularisation_2": 0.0})


@pytest.mark.slow
def test_ensembles_along_a_grid_are_compared():
    model = hm.Model(activation="erf", projection="gaussian", teacher="linear", loss="square")
    at = {"n_over_d": 2.0, "p_over_n": [0.4, 0.8], "regularisation": [0.1, 1.0], "d": 12}
    ds = hm.compare(model, members=[1, 2, 3], **at, seeds=3, n_test=20, workers=1)
    assert ds.generalisation_error_z.sizes == {"p_over_n": 2, "regularisation": 2, "members": 3}
    assert np.isfinite(ds.score_difference_z).all()


@pytest.mark.slow
def test_an_ensemble_is_compared_at_its_own_best_regularisation():
    teacher = hm.teachers.Linear(noise=0.5)
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss="square")
    at = {"n_over_d": 2.0, "p_over_n": 0.5, "regularisation": "optimal"}
    given = {**at, "d": 20, "seeds": 3, "n_test": 50, "workers": 1}
    ds = hm.compare(model, members=8, **given)
    best = hm.ensemble(model, members=8, **at)
    single = hm.predict(model, **at)
    assert float(ds.optimal_regularisation) == float(best.optimal_regularisation[0])
    assert float(ds.optimal_regularisation) < 0.5 * float(single.optimal_regularisation)
    with pytest.raises(hm.InvalidArgumentError, match="different best λ"):
        hm.compare(model, members=[1, 8], **given)


def test_an_ensemble_does_not_depend_on_others_and_is_kept_apart_from_single_fits(tmp_path):
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    at = {"n_over_d": 2.0, "p_over_n": 0.5, "regularisation": 0.1, "d": 12, "seeds": 2}
    given = {**at, "n_test": 50, "workers": 1, "store": tmp_path / "fits"}
    once = hm.simulate(model, members=[1, 3], **given)
    again = hm.simulate(model, members=[1, 3], **given)
    assert (again.attrs["computed"], again.attrs["reused"]) == (0, 2)
    assert np.array_equal(once.generalisation_error, again.generalisation_error)
    assert hm.simulate(model, **given).attrs["reused"] == 0
    assert hm.simulate(model, members=[1, 3], independent="samples", **given).attrs["reused"] == 0
    bagged = hm.simulate(model, members=[1, 3], resampling=Bootstrap(), **given)
    assert bagged.attrs["reused"] == 0
    assert once.generalisation_error.dims == ("seed", "members")
    with pytest.raises(hm.InvalidArgumentError, match="members"):
        hm.simulate(model, members=np.inf, **given)
    with pytest.raises(hm.InvalidArgumentError, match="observables"):
        hm.simulate(model, members=2, observables="auc", **given)
    with pytest.raises(hm.InvalidArgumentError, match="resampling is given without members"):
        hm.simulate(model, resampling=Bootstrap(), **given)
