"""Hard data, with the square and with another loss: refused or answered, with a reason."""

import warnings

import numpy as np
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
    refused(data, loss, "effective rows: a few rows determine the fit")
    assert ds.status.values[1] == 2
    bar = (ds.generalisation_error_high - ds.generalisation_error_low).values
    assert (bar > 0.2).all()


@pytest.mark.slow
@LOSSES
def test_duplicate_rows(loss):
    X, y = classes()
    data, _ = answered(np.vstack([X, X[:40]]), np.append(y, y[:40]), loss)
    refused(data, loss, "duplicate rows: some rows are duplicates")


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
    _, ds = answered(*classes(apart=8.0), loss)
    assert (ds.generalisation_error < 1e-6).all()
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
    assert data.diagnosis["spectral tail"].verdict == "warn"
    assert abs(ds.generalisation_error[0] - ds.generalisation_error_leave_one_out) < 0.1


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
    np.testing.assert_allclose(ds.generalisation_error, rare, rtol=1e-3)
    np.testing.assert_allclose(ds.test_loss, 2 * rare, rtol=1e-2)
