"""Observables of scores, and the law of margins, are those of exact fits on drawn data."""

import numpy as np
import pytest

import hiddenmanifold as hm
from given import compared
from hiddenmanifold.checks import Task
from hiddenmanifold.results.observables import REGISTRY
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.samples import Sizes, World

Sign, Logistic, Linear = hm.teachers.Sign, hm.teachers.Logistic, hm.teachers.Linear
Mixture = hm.teachers.Mixture
WORST = 4.0  # standard errors


def observables(task):
    """Those that make sense of a kind of labels."""
    return tuple(name for name, observable in REGISTRY.items() if task in observable.tasks)


# activation, projection, teacher, loss, intercept; n/d, p/n, λ
CONFIGURATIONS = {
    "logistic": ("sign", "gaussian", Logistic(slope=3.0), "logistic", False, 2.0, 1.0, 1e-2),
    "hinge": ("tanh", "orthogonal", Sign(flip=0.1), "hinge", False, 2.0, 0.5, 0.3),
    "square": ("erf", "gaussian", Sign(noise=0.4, rho=2.0), "square", False, 2.0, 0.75, 0.1),
    "threshold": ("relu", "gaussian", Sign(threshold=0.5), "logistic", False, 2.0, 0.8, 0.02),
    "classes": ("erf", "gaussian", Mixture(0.3, 2.0), "logistic", True, 2.0, 0.75, 0.05),
    "intercept": ("erf", "gaussian", Logistic(threshold=0.7), "huber", True, 2.0, 0.75, 0.1),
}


def problem(name):
    return compared(CONFIGURATIONS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_theory_predicts_what_is_measured_of_scores(name):
    model, point = problem(name)
    how = {"d": 160, "seeds": 8, "seed": 3, "n_test": 3000, "workers": 1}
    asked = observables(Task.CLASSIFICATION)
    out = hm.compare(model, **point, **how, observables=asked)
    z = {q: float(out[f"{q}_z"]) for q in asked}
    assert all(abs(score) <= WORST for score in z.values()), z


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_theory_predicts_the_loss_of_real_labels(loss):
    model = hm.Model(
        activation="erf", projection="gaussian", teacher=Linear(noise=0.3, rho=1.7), loss=loss
    )
    point = {"n_over_d": 1.8, "p_over_n": 0.8, "regularisation": 0.05}
    out = hm.compare(model, **point, d=120, seeds=8, workers=1, observables="test_loss")
    assert abs(float(out.test_loss_z)) <= WORST


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinge", "threshold", "square", "classes"])
def test_margins_are_those_of_fits(name):
    model, point = problem(name)
    at = np.array([-1.0, 0.0, 0.5, 0.999, 1.001, 1.5, 2.5])
    d, seeds = 160, 6
    sizes = Sizes.nearest(1 / point["p_over_n"], 1 / (point["p_over_n"] * point["n_over_d"]), d)
    fractions = {"test_cdf": [], "train_cdf": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        world = World.draw(model, sizes, rng)
        train, test = world.sample(sizes.n, rng), world.sample(4000, rng)
        lams = np.array([point["regularisation"]])
        fit = fit_path(model.loss, model.task, train.X, train.y, lams, intercept=model.intercept)[0]
        for law, sample in (("train_cdf", train), ("test_cdf", test)):
            margin = sample.y * (sample.X @ fit.w / np.sqrt(sizes.p) + fit.b)
            fractions[law].append((margin[:, None] <= at).mean(0))
    ds = hm.margins(model, **point, at=at)
    for law, found in fractions.items():
        mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(seeds)
        z = (mean - ds[law].values) / np.maximum(error, 1e-3)
        assert np.abs(z).max() < 5.0, (law, z)
    if name == "hinge":  # a third of the samples sit on the margin
        assert float(ds.train_cdf[4] - ds.train_cdf[3]) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_simulated_margins_follow_their_law(loss):
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss=loss)
    asked = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": [0.01, 0.3]}
    at = [-0.5, 0.3, 0.97, 1.02]
    ds = hm.simulate(model, **asked, d=120, seeds=12, margins=at)
    assert ds.train_cdf.dims == (*ds.training_loss.dims, "y_f")
    mean = hm.summary(ds)
    expected = hm.margins(model, **asked, at=at)
    for law in ("test_cdf", "train_cdf"):
        error = np.maximum(mean[f"{law}_stderr"], 1e-3)
        assert float(np.abs((mean[law] - expected[law]) / error).max()) < 4.5, law
    plain = hm.simulate(model, **asked, d=120, seeds=2)
    np.testing.assert_array_equal(ds.training_loss[..., :2], plain.training_loss)


@pytest.mark.slow
def test_compare_judges_margins_but_for_the_kinks_that_training_samples_stand_on():
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="hinge")
    at = {"n_over_d": 2.0, "p_over_n": 0.5, "regularisation": [0.1, 0.3]}
    asked = {"d": 160, "seeds": 16, "workers": 1, "margins": [-0.5, 0.3, 1.0, 1.3]}
    ds = hm.compare(model, **at, **asked)
    expected = hm.margins(model, **at, at=asked["margins"])
    for law in ("test_cdf", "train_cdf"):
        assert ds[f"{law}_theory"].dims == ("regularisation", "y_f")
        np.testing.assert_allclose(ds[f"{law}_theory"], expected[law], rtol=0, atol=5e-3)
    assert np.abs(ds.test_cdf_z).max() < WORST
    assert np.abs(ds.train_cdf_z).max() < WORST
    np.testing.assert_array_equal(np.isnan(ds.train_cdf_z)[0], [False, False, True, False])


def test_margins_are_part_of_what_a_store_knows_a_fit_by(tmp_path):
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="hinge")
    asked = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": 0.1, "d": 20, "seeds": 2}
    asked |= {"store": tmp_path / "runs.db", "n_test": 50}
    first, again, other = (hm.simulate(model, **asked, margins=at) for at in ([0, 1], [0, 1], [2]))
    assert [ds.attrs["reused"] for ds in (first, again, other)] == [0, 2, 0]
    assert again.equals(first)


def test_real_labels_have_no_margins():
    model = hm.Model(activation="erf", projection="gaussian", teacher="linear", loss="square")
    with pytest.raises(hm.InvalidArgumentError, match="margins"):
        hm.simulate(model, n_over_d=2.0, p_over_n=1.0, regularisation=0.1, margins=[0.0])
