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
