"""Classes that are the largest of K fields: two of them, many of them, and counted rates."""

import numpy as np
import pytest

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.teachers import Argmax, Custom, Sign, Softmax
from hiddenmanifold.theory.classes.field_rates import FieldScores

RHO, T = 1.3, 0.7
RULES = {
    "argmax": (Argmax(2, rho=RHO), Sign(rho=RHO)),
    "softmax": (
        Softmax(2, T, rho=RHO),
        Custom(lambda nu: 1.0 / (1.0 + np.exp(-np.sqrt(2.0) * nu / T)), rho=RHO),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lam", [0.05, 2.0])
@pytest.mark.parametrize("loss", ["square", "softmax"])
def test_two_classes_are_a_rule_of_one_field(rule, loss, lam):
    grid = {"n_over_d": 2.0, "p_over_n": 0.6}
    two, one = RULES[rule]
    ds = hm.predict(plain_model(teacher=two, loss=loss, intercept=True), **grid, regularisation=lam)
    binary, half = ("square", 1.0) if loss == "square" else ("logistic", 0.5)
    same = plain_model(teacher=one, loss=binary, intercept=True)
    expected = hm.predict(same, **grid, regularisation=half * lam)
    for name in ("generalisation_error", "clean_error", "training_error"):
        np.testing.assert_allclose(ds[name], expected[name], rtol=1e-9, err_msg=name)
    scale = 0.5 if loss == "square" else 1.0
    np.testing.assert_allclose(ds.training_loss, scale * expected.training_loss, rtol=1e-9)
    np.testing.assert_allclose(2 * ds.q_w, expected.q_w, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [Argmax(4), Softmax(3, 0.5)])
@pytest.mark.parametrize("loss", ["square", "softmax"])
def test_the_training_loss_falls_as_weights_say(teacher, loss):
    """By the envelope theorem its derivative by the regularisation is q_w/2α."""
    model = plain_model(teacher=teacher, loss=loss)
    lam = 0.3 * np.exp(np.array([-1e-3, 0.0, 1e-3]))
    ds = hm.predict(model, n_over_p=1.5, d_over_p=0.7, regularisation=lam)
    slope = (ds.training_loss[2] - ds.training_loss[0]) / (lam[2] - lam[0])
    # softmax averages over the same points, whose weights are not quite normal
    np.testing.assert_allclose(slope, ds.q_w[1] / 3.0, rtol=1e-6 if loss == "square" else 2e-2)
    np.testing.assert_allclose(ds.confusion.sum("predicted"), 1.0)
    np.testing.assert_allclose(
        ds.score_covariance.sum("score") * (loss == "softmax"), 0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("K", "m", "s", "temperature", "moved"),
    [(3, 0.6, 0.8, 0.0, 0.4), (10, 0.3, 0.9, 0.0, 0.0), (5, 0.9, 0.2, 0.1, 0.3), (4, 1, 0.5, 3, 0)],
)
def test_rates_are_frequencies(K, m, s, temperature, moved):
    tops, rows, rng = min(5, K - 1), 40_000, np.random.default_rng(0)
    found, error = FieldScores(K, m, s, temperature).wrong_tops(tops, moved)
    nu = rng.standard_normal((rows, K))
    y = (nu + temperature * rng.gumbel(size=nu.shape)).argmax(1)
    f = m * nu + s * rng.standard_normal((rows, K))
    f[np.arange(rows), y] += moved
    rank = (f > f[np.arange(rows), y][:, None]).sum(1)
    measured = np.array([(rank > k).mean() for k in range(tops)])
    assert (np.abs(found - measured) < 4.5 * np.sqrt(found / rows) + error).all()
    assert error < 1e-6


def test_means_of_winners():
    assert Argmax(2).advantage == pytest.approx(1.0 / np.sqrt(np.pi), abs=1e-12)
    assert Argmax(3, rho=4.0).advantage == pytest.approx(3.0 / np.sqrt(np.pi), abs=1e-12)
    warm = [Softmax(5, t).advantage for t in (0.05, 0.5, 5.0)]
    assert np.all(np.diff([Argmax(5).advantage, *warm]) < 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "loss", "intercept"),
    [(Argmax(3), "square", False), (Softmax(4, 0.5), "softmax", True)],
)
def test_theory_agrees_with_fits(teacher, loss, intercept):
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=teacher,
        loss=loss,
        intercept=intercept,
    )
    sizes = {"n": 400, "p": 200, "d": 200, "regularisation": 0.5}
    ds = hm.compare(model, **sizes, seeds=10, n_test=2000, workers=1)
    for name in ("generalisation_error", "clean_error", "test_loss", "training_loss", "q_w", "M"):
        assert np.abs(ds[f"{name}_z"]).max() < 4.5, name
    for name in ("Q", "score_covariance", "score_mean"):
        off = np.abs(ds[name] - ds[f"{name}_theory"]) > 0.03 * float(ds.Q)
        assert not (off & (np.abs(ds[f"{name}_z"]) > 4.5)).any(), name


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Argmax(1), "from 2 to 50"),
        (lambda: Argmax(3, rho=0.0), "rho"),
        (lambda: Softmax(3, 0.0), "temperature"),
        (lambda: Softmax(2.5), "whole number"),
    ],
)
def test_what_describes_no_classes_is_refused(build, complaint):
    with pytest.raises(InvalidArgumentError, match=complaint):
        build()


def test_finite_size_is_for_normal_classes():
    with pytest.raises(InvalidArgumentError, match="known for normal classes, and not for Argmax"):
        hm.predict(
            plain_model(teacher=Argmax(3), loss="square"),
            **{"n": 100, "p": 50, "d": 50, "regularisation": 0.1},
            finite_size=True,
        )
