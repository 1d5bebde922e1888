"""Trials with counts, and with predictions of one's choice: which errors they measure."""

import numpy as np
import pytest
from scipy.special import expit

import hiddenmanifold as hm
from hiddenmanifold.simulation.experiment import Trial, measured
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.samples import Sizes, World

SIZES = Sizes(60, 40, 30)


COUNTS = hm.teachers.Poisson(intercept=0.3, slope=0.5)


def model(teacher, loss, **options):
    return hm.Model(activation="tanh", projection="gaussian", teacher=teacher, loss=loss, **options)


def run(some, lams=(0.5,), seed=1):
    sequence = np.random.SeedSequence(0, spawn_key=(seed,))
    return Trial(some, SIZES, lams, sequence, 400, equivalent=False).run()


def repeated(some, lam=0.5, seed=1):
    """The samples of the same trial, and the scores of its fit on them."""
    rngs = [np.random.default_rng(np.random.SeedSequence(0, spawn_key=(seed, k))) for k in range(3)]
    world = World.draw(some, SIZES, rngs[0])
    train, test = world.sample(SIZES.n, rngs[1]), world.sample(400, rngs[2])
    (fit,) = fit_path(
        some.loss, some.task, train.X, train.y, np.array([lam]), intercept=some.intercept
    )
    f_train, f = (sample.X @ fit.w / np.sqrt(SIZES.p) + fit.b for sample in (train, test))
    return train, test, fit, f_train, f


def test_errors_of_counts_are_those_of_the_exponential_of_the_score():
    poisson = model(COUNTS, "poisson", intercept=True)
    found = run(poisson)
    train, test, fit, f_train, f = repeated(poisson)
    wrong = (np.exp(f) - test.y) ** 2
    expected = {
        "generalisation_error": wrong.mean(),
        "generalisation_error_test_stderr": np.sqrt(wrong.var(ddof=1) / 400),
        "clean_error": np.mean((np.exp(f) - test.clean) ** 2),
        "training_loss": (np.exp(f_train) - train.y * f_train).mean() + fit.w @ fit.w / 4 / SIZES.n,
    }
    for name, value in expected.items():
        assert found[name][0] == pytest.approx(value, rel=1e-9), name
    assert "training_error" not in found
    assert set(found) == set(measured(poisson))
    # the mean, of which counts differ by their own variance
    assert np.mean((test.y - test.clean) ** 2) == pytest.approx(test.clean.mean(), rel=0.2)


@pytest.mark.parametrize(
    ("prediction", "function"),
    [("identity", lambda f: f), (lambda f: 2 * expit(f) - 1, lambda f: 2 * expit(f) - 1)],
    ids=["score", "mean"],
)
def test_predictions_other_than_signs_have_mean_square_errors(prediction, function):
    teacher = hm.teachers.Logistic(slope=2.0)
    scores = model(teacher, "logistic", prediction=prediction)
    found = run(scores)
    _, test, _, _, f = repeated(scores)
    assert found["generalisation_error"][0] == pytest.approx(
        np.mean((function(f) - test.y) ** 2), rel=1e-10
    )
    clean = np.mean((function(f) - test.clean) ** 2)
    assert found["clean_error"][0] == pytest.approx(clean, rel=1e-10)
    assert 0 < np.abs(test.clean).max() < 1  # 2P - 1, not a label
    assert "training_error" not in found
    signs = model(teacher, "logistic")
    assert "training_error" in measured(signs)
    assert set(np.unique(repeated(signs)[1].clean)) == {-1.0, 1.0}
    # the same fit
    assert run(signs)["training_loss"][0] == found["training_loss"][0]


def test_counts_that_are_all_zero_leave_no_minimum_with_an_intercept():
    rare = hm.teachers.Poisson(intercept=-20.0, slope=0.5)
    found = run(model(rare, "poisson", intercept=True), lams=(0.1, 1.0))
    assert np.isinf(found["optimality"]).all()
    assert np.isnan(found["generalisation_error"]).all()
    found = run(model(rare, "poisson"), lams=(0.1, 1.0))
    assert (found["optimality"] < 1e-10).all()
    assert np.isfinite(found["generalisation_error"]).all()


def test_predictions_whose_squares_overflow_are_measured_without_a_warning():
    wild = model(COUNTS, "square", prediction=lambda f: 1e200 * f)
    found = run(wild)
    assert found["generalisation_error"][0] == np.inf
