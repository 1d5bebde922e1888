"""Hard data, with the square and with another loss: refused or answered, with a reason."""

import warnings

import numpy as np
import pandas as pd
import pytest

import hiddenmanifold as hm
from hiddenmanifold import UnusableDataError

LOSSES = pytest.mark.parametrize("loss", ["square", "logistic"])


def classes(n=120, p=12, apart=0.5, seed=1):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.45, 1, -1)
    return rng.standard_normal((n, p)) + apart * y[:, None] * (np.arange(p) < 4), y


def answered(X, y, loss, **options):
    """A curve to 4 N that is finite, in order, and raises no warning."""
    data = hm.Data(X, y)
    at = {"n": [data.N, 4 * data.N], "regularisation": 0.3, "loss": loss, "on_refusal": "keep"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = hm.learning_curve(data, **(at | options))
    for name in ("generalisation_error", "test_loss", "training_loss"):
        assert np.isfinite(ds[name]).all()
        assert (ds[f"{name}_low"] <= ds[name]).all()
        assert (ds[name] <= ds[f"{name}_high"]).all()
    assert ((ds.generalisation_error >= 0) & (ds.generalisation_error <= 1)).all()
    return data, ds


def refused(data, loss, question):
    with pytest.raises(UnusableDataError, match=question):
        hm.learning_curve(data, n=4 * data.N, regularisation=0.3, loss=loss)


@pytest.mark.slow
@LOSSES
def test_planted_outliers(loss):
    X, y = classes()
    X[:3] *= 100
    data, ds = answered(X, y, loss)
    assert data.diagnosis["effective rows"].verdict == "warn"
    assert "of equal weight, of 120: remove outliers" in data.diagnosis["effective rows"].meaning
    assert data.diagnosis["heavy tails"].value < 1.8  # their labels are as good as others


@pytest.mark.slow
@LOSSES
def test_duplicate_rows(loss):
    X, y = classes()
    data, _ = answered(np.vstack([X, X[:40]]), np.append(y, y[:40]), loss)
    assert data.diagnosis["duplicate rows"].verdict == "warn"
    data, _ = answered(np.vstack([X, X[:60]]), np.append(y, y[:60]), loss)
    refused(data, loss, "duplicate rows: 33 % of the rows repeat another one")


@pytest.mark.slow
@LOSSES
def test_pure_noise(loss):
    rng = np.random.default_rng(0)
    data, ds = answered(rng.standard_normal((150, 12)), rng.random(150) < 0.5, loss)
    assert data.diagnosis["signal"].verdict == "warn"
    assert (ds.generalisation_error_high > 0.45).all()
    assert (ds.generalisation_error > 0.35).all()


@pytest.mark.slow
@LOSSES
def test_perfectly_separable_classes(loss):
    data, ds = answered(*classes(apart=8.0), loss)
    plan = hm.plan(data, target_gain=0.1, loss=loss)
    assert plan.sentence.startswith("None of the 120 rows is predicted wrongly when it is left out")
    assert "falls by" not in plan.sentence
    assert "10 %" not in plan.sentence
    np.testing.assert_allclose(plan.curve["generalisation_error_fall"], 1.0, atol=0.01)
    assert ds.generalisation_error.values[0] == pytest.approx(0.5 / 121, rel=1e-6)
    assert ds.generalisation_error_high.values[0] >= 2.9 / 121
    assert (ds.test_loss < 0.01).all()


@pytest.mark.slow
@LOSSES
def test_sixty_rows(loss):
    _, ds = answered(*classes(60), loss)
    bar = (ds.generalisation_error_high - ds.generalisation_error).values
    assert (bar > 0.03).all()
    assert abs(ds.generalisation_error[0] - ds.generalisation_error_leave_one_out) < 0.1


@pytest.mark.slow
@LOSSES
def test_ten_thousand_columns(loss):
    X, y = classes(100, 10_000)
    data, ds = answered(X * np.arange(1, 10_001) ** -0.5, y, loss, regularisation=1e-3)
    assert data.diagnosis["resolution"].verdict == "warn"
    assert abs(ds.generalisation_error[0] - ds.generalisation_error_leave_one_out) < 0.1


@pytest.mark.parametrize("odd", [1, 4])  # in the same half as the other odd row, and not
def test_features_that_vary_in_one_half_only(odd):
    X, y = np.zeros((60, 1)), np.zeros(60)
    X[0], y[odd] = 1.0, 1.0
    finding = hm.Data(X, y, task="regression").diagnosis["backtest"]
    assert finding.verdict == "warn"
    assert ("few rows are different" in finding.meaning) == np.isnan(finding.value)


def test_a_constant_column():
    X, y = classes()
    X[:, 3] = 2.0
    with pytest.warns(UserWarning, match="left out 1 column that does not vary: 3"):
        data = hm.Data(X, y)
    np.testing.assert_array_equal(data.X, np.delete(X, 3, axis=1))


@pytest.mark.slow
def test_a_loss_whose_best_score_is_a_constant():
    """The hinge at a λ that leaves no weights: all are counted to the larger class."""
    X, y = classes(60, 200)
    _, ds = answered(X, y, "hinge", regularisation=1000.0)
    rare = min(np.mean(y > 0), np.mean(y < 0))
    np.testing.assert_allclose(ds.generalisation_error, rare, rtol=0.1)
    np.testing.assert_allclose(ds.test_loss, 2 * rare, rtol=0.1)


@pytest.mark.slow
def test_sorted_rows_and_groups_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    drift = np.cumsum(rng.standard_normal(200)) / 4
    assert hm.Data(X, X[:, 0] + drift).diagnosis["order of rows"].verdict == "warn"
    groups = np.repeat(rng.standard_normal(20), 10)
    assert hm.Data(X, X[:, 0] + groups).diagnosis["order of rows"].verdict == "warn"
    shuffled = rng.permutation(200)
    finding = hm.Data(X, X[:, 0] + groups[shuffled]).diagnosis["order of rows"]
    assert finding.verdict == "pass"
    outliers = X[:, 0] + rng.standard_normal(200) + 100.0 * (np.arange(200) < 4)
    assert hm.Data(X, outliers).diagnosis["order of rows"].verdict == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("p", [5, 80])
def test_exact_relations_are_recognised(p):
    X = np.random.default_rng(0).standard_normal((60 + 2 * p, p))
    data = hm.Data(X, X @ np.arange(1, p + 1))
    assert data.diagnosis["exact relation"].verdict == "warn"
    ds = hm.learning_curve(data, n=4 * data.N, on_refusal="keep")
    assert float(ds.generalisation_error) < 1e-6 * data.y.var()


def test_a_column_of_large_numbers_does_not_hide_the_others():
    rng = np.random.default_rng(0)
    few = rng.random((200, 4))
    y = 3 * few[:, 0] - 2 * few[:, 1] + 0.2 * rng.standard_normal(200)
    data = hm.Data(np.column_stack([rng.gamma(4, 15e6, 200), few]), y)
    assert float(hm.learning_curve(data, n=200).generalisation_error) < 0.06


@pytest.mark.parametrize("lam", [0, 1e-9, 1e-3, 1.0])
def test_a_level_seen_once_leaves_bars_as_they_are(lam):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.standard_normal((100, 4)), np.arange(100) == 7])
    data = hm.Data(X, X[:, 0] + 0.5 * rng.standard_normal(100))
    ds = hm.learning_curve(data, n=[100, 400], regularisation=lam, on_refusal="keep")
    bar = np.log(ds.generalisation_error_high / ds.generalisation_error)
    assert ((bar > 0.05) & (bar < 0.5)).all()


def test_the_class_of_interest_may_be_named_others():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(80) < 0.5, "others", "x")
    data = hm.Data(rng.standard_normal((80, 3)), y, positive="others")
    np.testing.assert_array_equal(data.y > 0, y == "others")
    assert data.classes == ("all others", "others")


def test_rates_do_not_jump_beside_the_sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = np.r_[np.ones(31), -np.ones(29)]
    rng.shuffle(y)
    ds = hm.learning_curve(hm.Data(X, y), n=[59, 60, 61], on_refusal="keep")
    assert np.ptp(ds.generalisation_error.values) < 0.02


def test_losses_of_label_and_score_and_missing_labels_are_refused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    with pytest.raises(hm.InvalidArgumentError, match="margin or the residual"):
        hm.learning_curve(hm.Data(X, X[:, 0]), loss="poisson")
    with pytest.raises(hm.InvalidArgumentError, match="30 missing"):
        hm.Data(X, pd.Series(["a", None] * 30, dtype="string"))
    with pytest.raises(hm.InvalidArgumentError, match="45 missing"):
        hm.Data(X, pd.Series(["a", None, "", " "] * 15, dtype=object))
