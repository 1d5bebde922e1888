"""Observables of scores, and the law of margins, are those of exact fits on drawn data."""

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold.observables import REGISTRY
from hiddenmanifold.simulation.data import Sizes, World
from hiddenmanifold.simulation.fit import fit_path

Sign, Logistic, Linear = hm.teachers.Sign, hm.teachers.Logistic, hm.teachers.Linear
Mixture = hm.teachers.Mixture
WORST = 4.0  # standard errors

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
    activation, projection, teacher, loss, intercept, n_over_d, p_over_n, lam = CONFIGURATIONS[name]
    model = hm.Model(
        activation=activation,
        projection=projection,
        teacher=teacher,
        loss=loss,
        intercept=intercept,
    )
    return model, {"n_over_d": n_over_d, "p_over_n": p_over_n, "regularisation": lam}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_theory_predicts_what_is_measured_of_scores(name):
    model, point = problem(name)
    how = {"d": 160, "seeds": 8, "seed": 3, "n_test": 3000, "workers": 1}
    out = hm.compare(model, **point, **how, observables=tuple(REGISTRY))
    z = {q: float(out[f"{q}_z"]) for q in REGISTRY}
    assert all(abs(score) <= WORST for score in z.values()), z


@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_theory_predicts_the_loss_of_real_labels(loss):
    model = hm.Model(
        activation="erf", projection="gaussian", teacher=Linear(noise=0.3, rho=1.7), loss=loss
    )
    point = {"n_over_d": 1.8, "p_over_n": 0.8, "regularisation": 0.05}
    out = hm.compare(model, **point, d=120, seeds=8, workers=1, observables="test_loss")
    assert abs(float(out.test_loss_z)) <= WORST


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
