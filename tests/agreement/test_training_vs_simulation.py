"""Training on drawn samples, with the true features, against the theory of it."""

import numpy as np
import pytest

import hiddenmanifold as hm
from given import EXAMPLES
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.features import Kernel, RandomFeatures

LABELS = {
    "linear": {"teacher": hm.teachers.Linear(0.3)},
    "threshold": {"teacher": hm.teachers.Sign(noise=0.2, threshold=0.3), "intercept": True},
    "classes": {"teacher": hm.teachers.Mixture(0.3), "intercept": True},
    "counts": {"teacher": hm.teachers.Poisson(), "intercept": True},
}
QUANTITIES = ("generalisation_error", "training_loss", "Q", "M", "q_w")
METHODS = {
    "flow": {"times": [0.1, 1.0, 10.0, 300.0]},
    "late ridge": {"times": [0.5, 1e4], "regularisation": 0.1},
    "steps": {"times": [1, 5, 40, 200], "step": 0.4},
    "heavy ball": {"times": [2, 30], "step": 0.3, "momentum": 0.7},
    "nesterov": {"times": [2, 30], "step": 0.3, "momentum": 0.7, "nesterov": True},
}


def scores(model, **options):
    """The z-scores of all quantities, one row for each."""
    given = {"d": 100, "seeds": 8, "n_test": 600, "workers": 1, "progress": False}
    ds = hm.compare_training(model, **{"n_over_d": 1.2, **given, **options})
    assert (ds.theory_status == 0).all()
    assert (ds.dropped == 0).all()
    return np.array([ds[f"{name}_z"].values.ravel() for name in QUANTITIES])


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_every_kind_of_labels(labels):
    features = RandomFeatures("erf", "gaussian")
    model = hm.Model(features=features, loss="square", **labels)
    z = scores(model, p_over_n=1.5, **METHODS["flow"])
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 2.2  # times share seeds


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method(method):
    model = hm.Model(
        features=RandomFeatures("relu", "orthogonal"),
        teacher="linear",
        loss="square",
        intercept=True,
    )
    z = scores(model, p_over_n=0.6, **method)
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 2.2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deep", "covariance", "kernel"])
def test_other_kinds_of_features(name):
    features = Kernel("nngp") if name == "kernel" else EXAMPLES[name]
    model = hm.Model(features=features, teacher=hm.teachers.Linear(0.3), loss="square")
    free = {"p_over_n": 0.8, "d": 100} if name == "deep" else {"d": features.fixed_dimension or 100}
    z = scores(model, times=[0.1, 1.0, 10.0], **free)
    assert np.abs(z).max() < 4.5


ONE_PASS = {
    "linear": (EXAMPLES["random"], hm.teachers.Linear(0.3)),
    "signs": (RandomFeatures("tanh", "orthogonal"), hm.teachers.Sign(noise=0.2)),
    "classes": (EXAMPLES["deep"], hm.teachers.Mixture(0.3)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("features", "teacher"), ONE_PASS.values(), ids=ONE_PASS)
def test_one_pass(features, teacher):
    model = hm.Model(features=features, teacher=teacher, loss="square")
    z = scores(model, p_over_d=1.5, n_over_d=[0.5, 3.0], step=1.0, method="one-pass", seeds=12)
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 2.2


@pytest.mark.slow
def test_stopping_is_compared_at_its_best_time():
    model = hm.Model(features=EXAMPLES["random"], teacher=hm.teachers.Linear(0.3), loss="square")
    at = {"n_over_d": 1.0, "p_over_n": [0.5, 2.0]}
    ds = hm.compare(model, **at, regularisation=hm.EarlyStopping(), d=100, seeds=8, workers=1)
    best = hm.best_time(model, **at)
    np.testing.assert_allclose(ds.optimal_time, best.optimal_time, rtol=1e-12)
    np.testing.assert_allclose(ds.generalisation_error_theory, best.generalisation_error, rtol=1e-9)
    assert np.abs(ds.generalisation_error_z).max() < 4.5
    one = hm.compare(model, n=80, p=100, d=80, regularisation=hm.EarlyStopping(2.0), seeds=8)
    assert abs(one.generalisation_error_z) < 4.5
    with pytest.raises(InvalidArgumentError, match="best time inf"):
        white = hm.Model(
            features=hm.features.Covariance((0.5, 0.5), (0.25, 0.25)),
            teacher="linear",
            loss="square",
        )
        hm.compare(white, n_over_p=2.0, regularisation=hm.EarlyStopping())


@pytest.mark.slow
def test_points_that_share_samples_are_trained_on_the_same():
    model = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square")
    at = {"n_over_d": 1.0, "p_over_n": 1.0, "d": 10, "seeds": 2, "n_test": 5, "workers": 1}
    both = hm.compare_training(model, times=[2.0, 1.0], **at)
    one = hm.compare_training(model, times=1.0, **at)
    assert both.Q[1] == one.Q
    steps = hm.compare_training(model, times=[3], step=[0.1, 0.2], **at)
    assert steps.Q.sizes == {"steps": 1, "step": 2}
    assert steps.Q[0, 1] > steps.Q[0, 0]


@pytest.mark.parametrize("times", [0.0, np.inf])
def test_limits_are_not_simulated(times):
    model = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square")
    with pytest.raises(InvalidArgumentError, match="time"):
        hm.compare_training(model, n_over_d=1.0, p_over_n=1.0, times=times)
