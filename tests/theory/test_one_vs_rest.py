"""Binary fits of each class against all others, and how their scores vary together."""

import numpy as np
import pytest

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, Status
from hiddenmanifold.teachers import Argmax, Classes, Mixture

LOSSES = ("logistic", "hinge", "squared_hinge")
UNEQUAL = Classes(gram=np.diag([1.5, 6.0, 3.0]), priors=(0.5, 0.3, 0.2))


def one_vs_rest(teacher, loss, **options):
    parts = {"intercept": True, "scheme": "one-vs-rest", **options}
    return plain_model(teacher=teacher, loss=loss, **parts)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("lam", [0.05, 2.0])
def test_two_classes_are_one_binary_fit_twice(loss, lam):
    grid = {"n_over_d": 2.0, "p_over_n": 0.6, "regularisation": lam}
    ds = hm.predict(one_vs_rest(Classes(2, 2.5, priors=(0.3, 0.7)), loss), **grid)
    same = plain_model(teacher=Mixture(prior=0.3, rho=2.5**2 / 4), loss=loss, intercept=True)
    expected = hm.predict(same, **grid, observables="test_loss")
    for name in ("generalisation_error", "training_error"):
        np.testing.assert_allclose(ds[name], expected[name], rtol=1e-8, atol=1e-12, err_msg=name)
    for name in ("training_loss", "test_loss", "q_w", "Q"):
        np.testing.assert_allclose(ds[name], 2 * expected[name], rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("lam", [0.2, 10.0])  # the hinge has no curvature at the start of the last
def test_classes_of_a_simplex_are_mixtures(loss, lam):
    """The others have a mean of their own, but fits see them from a direction that is the same."""
    gap = 1.5  # of a class from the mean of the others, over two
    teacher = Classes(3, 2.0 * gap / np.sqrt(0.75))
    grid = {"n_over_d": 2.0, "p_over_n": 0.6, "regularisation": lam}
    ds = hm.predict(one_vs_rest(teacher, loss), **grid)
    one = plain_model(teacher=Mixture(prior=1 / 3, rho=gap**2), loss=loss, intercept=True)
    expected = hm.predict(one, **grid, observables="test_loss")
    # the two others differ along a direction in which no fit can gain
    assert np.ptp(np.diagonal(ds.score_covariance.values)) < 1e-12
    for name in ("training_loss", "test_loss", "q_w", "Q"):
        np.testing.assert_allclose(ds[name], 3 * expected[name], rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_training_loss_falls_as_weights_say(loss):
    model = one_vs_rest(UNEQUAL, loss, intercept=loss != "hinge")
    lam = 0.3 * np.exp(np.array([-1e-3, 0.0, 1e-3]))
    ds = hm.predict(model, n_over_p=1.5, d_over_p=0.7, regularisation=lam)
    slope = (ds.training_loss[2] - ds.training_loss[0]) / (lam[2] - lam[0])
    np.testing.assert_allclose(slope, ds.q_w[1] / 3.0, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_theory_with_terms_of_finite_size_agrees(loss):
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=UNEQUAL,
        loss=loss,
        scheme="one-vs-rest",
        intercept=True,
    )
    sizes = {"n": 300, "p": 150, "d": 150, "regularisation": 0.3}
    ds = hm.compare(model, **sizes, seeds=12, n_test=2000, workers=1, finite_size=True)
    names = ("generalisation_error", "test_loss", "training_loss", "training_error", "q_w", "M")
    for name in (*names, "score_covariance", "confusion"):
        assert np.abs(ds[f"{name}_z"]).max() < 4.5, name


def test_a_vanishing_penalty_is_known_where_samples_are_not_separable():
    model = one_vs_rest(Classes(3, 1.0), "logistic")
    grid = {"n_over_d": 8.0, "p_over_n": [0.05, 0.8], "regularisation": 0.0}
    ds = hm.predict(model, **grid, on_failure="keep")
    np.testing.assert_array_equal(ds.status, [Status.CONVERGED, Status.NO_LIMIT])


def test_what_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(InvalidArgumentError, match="'one-vs-rest', or left out"):
        one_vs_rest(UNEQUAL, "hinge", scheme="one-vs-one")
    with pytest.raises(IncompatibleIngredientsError, match="labels of several classes"):
        one_vs_rest("sign", "hinge")
    with pytest.raises(IncompatibleIngredientsError, match="one-hot targets"):
        one_vs_rest(UNEQUAL, "square")
    with pytest.raises(IncompatibleIngredientsError, match="scheme='one-vs-rest'"):
        plain_model(teacher=UNEQUAL, loss="hinge")
    with pytest.raises(IncompatibleIngredientsError, match="loss for labels ±1"):
        one_vs_rest(UNEQUAL, "poisson")
    with pytest.raises(InvalidArgumentError, match="predicted for normal classes"):
        hm.predict(one_vs_rest(Argmax(3), "hinge"), n_over_d=2.0, p_over_n=0.5, regularisation=0.1)
