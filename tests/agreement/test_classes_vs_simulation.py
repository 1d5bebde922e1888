"""The theory of several classes predicts what exact fits on drawn data measure."""

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold.teachers import Classes

WORST = 4.5  # standard errors
FINITE_SIZE = 0.02
"""Relative deviation that a few samples of each class explain, at n = 360."""
NUMBERS = ("mean_square_error", "training_loss", "q_w", "Q", "M")
TANH = hm.features.Layer("tanh", width=2.0)
CASES = {
    "simplex": (
        {"activation": "erf", "projection": "gaussian"},
        Classes(3, 2.5),
        {"n_over_d": 3.0, "p_over_n": 0.6, "d": 120},
    ),
    "five unequal": (
        {"activation": "relu", "projection": "orthogonal"},
        Classes(separation=3.0, priors=(0.1, 0.15, 0.2, 0.25, 0.3)),
        {"n_over_d": 3.0, "p_over_n": 0.4, "d": 120},
    ),
    "ten": (
        {"activation": "tanh", "projection": "orthogonal"},
        Classes(10, 3.0),
        {"n_over_d": 3.0, "p_over_n": 0.4, "d": 120},
    ),
    "deep, no intercept": (
        {
            "features": hm.features.Deep(
                [hm.features.Layer("tanh", width=2.0), hm.features.Layer("erf")]
            )
        },
        Classes(gram=np.diag([1.0, 4.0, 2.0])),
        {"n_over_d": 3.0, "p_over_d": 1.2, "d": 120},
    ),
}


def compared(name, **options):
    features, teacher, sizes = CASES[name]
    with_b = "no intercept" not in name
    model = hm.Model(**features, teacher=teacher, loss="square", intercept=with_b)
    drawn = {"seeds": 10, "n_test": 2000, "workers": 1, **options}
    return hm.compare(model, **sizes, regularisation=[0.05, 1.0], **drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_theory_agrees_with_fits(name):
    # class means make the inputs of neurons longer, by a share 1/d that layers accumulate
    ds = compared(name, data="equivalent" if "deep" in name else "original")
    assert (ds.dropped == 0).all()
    for quantity in NUMBERS:
        off = np.abs(ds[quantity] / ds[f"{quantity}_theory"] - 1.0) > FINITE_SIZE
        assert not (off & (np.abs(ds[f"{quantity}_z"]) > WORST)).any(), quantity
    for quantity in ("score_mean", "score_covariance"):
        assert np.sqrt(np.mean(ds[f"{quantity}_z"].values ** 2)) < 2.2, quantity
    # at this size intercepts fluctuate, so that errors lie above the limit by a few hundredths
    for quantity in ("generalisation_error", "class_error", "confusion", "top_error"):
        off = np.abs(ds[quantity] - ds[f"{quantity}_theory"]) > 0.05
        assert not (off & (np.abs(ds[f"{quantity}_z"]) > WORST)).any(), quantity


def test_simulations_have_the_names_of_predictions():
    model = hm.Model(
        activation="tanh",
        projection="gaussian",
        teacher=Classes(3, 2.0),
        loss="square",
        intercept=True,
    )
    point = {"n_over_d": 2.0, "p_over_n": [0.5, 1.5], "regularisation": [0.0, 0.1]}
    drawn = hm.simulate(model, **point, d=20, seeds=2, n_test=50, workers=1)
    assert (drawn.optimality < 1e-7).all()
    predicted = hm.predict(model, **point)
    own = {"optimality", "seconds", "generalisation_error_test_stderr", "clean_error_test_stderr"}
    assert set(drawn.data_vars) - own < set(predicted.data_vars)
    for name in set(drawn.data_vars) - own:
        assert drawn[name].dims[3:] == predicted[name].dims[2:], name
        assert drawn[name].attrs["long_name"] == predicted[name].attrs["long_name"]
    fitted = drawn.sel(regularisation=0.0, p_over_n=1.5)
    np.testing.assert_allclose(fitted.training_loss, 0.0, atol=1e-20)
    np.testing.assert_array_equal(fitted.training_error, 0.0)
    square = drawn.mean_square_error.values
    np.testing.assert_allclose(drawn.test_loss, square / 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "teacher"),
    [
        ("softmax", Classes(3, 3.0)),
        ("softmax", Classes(6, 3.0)),
        ("softmax", Classes(gram=np.diag([2.0, 8.0, 4.0, 6.0]), priors=(0.15, 0.2, 0.3, 0.35))),
        ("square", Classes(6, 3.0)),
    ],
)
def test_theory_with_terms_of_finite_size_agrees(loss, teacher):
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=teacher,
        loss=loss,
        intercept=True,
    )
    sizes = {"n": 300, "p": 150, "d": 150, "regularisation": 0.3}
    drawn = {"seeds": 16, "n_test": 3000, "workers": 1}
    ds = hm.compare(model, **sizes, **drawn, finite_size=True)
    for name in ("generalisation_error", "test_loss", "training_loss", "q_w", "M", "top_error"):
        assert np.abs(ds[f"{name}_z"]).max() < 4.0, name
