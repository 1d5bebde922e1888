"""Real data along training: refits of every row, measured errors of more rows, and refusals."""

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, UnusableDataError
from hiddenmanifold.data.flow_of_rows import FlowOfRows
from hiddenmanifold.data.learning_curve import Support

TIMES = np.array([0.0, 0.03, 0.4, 6.0, 80.0, 1e5, np.inf])


def trained(X, y, times, lam=0.0):
    """Weights (times, p), means of features and label after gradient flow on some rows."""
    Z = (X - X.mean(0)) / np.sqrt(X.shape[1])
    x, V = np.linalg.eigh(Z.T @ Z)
    x = np.where(x > 1e-10 * x.max(), x, 0.0)
    with np.errstate(all="ignore"):
        late = -np.expm1(-np.outer(times, x + lam)) / (x + lam)
    w = np.where(x + lam > 0, late, 0.0) * (V.T @ (Z.T @ (y - y.mean()))) @ V.T
    return np.where(times[:, None] > 0, w, 0.0), X.mean(0), y.mean()


def residuals(fit, X, y):
    """Residuals (rows, times) of new rows."""
    w, centre, mean = fit
    return y[:, None] - mean - (X - centre) @ w.T / np.sqrt(X.shape[1])


def sample(N, p, rng, noise=1.0):
    X = rng.standard_normal((N, p)) * np.geomspace(2.0, 0.2, p)
    return X, X @ rng.standard_normal(p) / np.sqrt(p) + noise * rng.standard_normal(N)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "lam"), [(12, 0.0), (60, 0.0), (60, 0.3)])
def test_left_out_rows_are_those_of_refits(p, lam):
    X, y = sample(50, p, np.random.default_rng(p))
    data = hm.Data(X, y, task="regression")
    ds = hm.training_curve(data, times=TIMES, regularisation=lam)
    kept = [np.arange(50) != i for i in range(50)]
    left = np.array([residuals(trained(X[k], y[k], TIMES, lam), X[~k], y[~k])[0] for k in kept])
    np.testing.assert_allclose(ds.generalisation_error, (left**2).mean(0), rtol=1e-9)
    np.testing.assert_allclose(ds.test_loss_leave_one_out, 0.5 * (left**2).mean(0), rtol=1e-9)
    stderr = (left**2).std(0, ddof=1) / np.sqrt(50)
    np.testing.assert_allclose(ds.generalisation_error_leave_one_out_stderr, stderr, rtol=1e-8)
    assert (ds.generalisation_error_low < ds.generalisation_error).all()


@pytest.mark.slow
def test_classes_are_counted_and_the_end_is_ridge_regression():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 8))
    for y in (np.where(X[:, 0] + 0.5 * X[:, 1] > 0.3, "b", "a"), np.digitize(X[:, 0], [-0.5, 0.5])):
        data = hm.Data(X, y, task=None if y.dtype.kind == "U" else "classification")
        ds = hm.training_curve(data, times=[1.0, np.inf], regularisation=0.2)
        ridge = hm.learning_curve(data, n=60, regularisation=0.2)
        for name in ("generalisation_error", "test_loss"):
            value = ds[f"{name}_leave_one_out"][-1]
            assert value == pytest.approx(float(ridge[f"{name}_leave_one_out"]), rel=1e-12)
        assert ds.generalisation_error[-1] == ds.generalisation_error_leave_one_out[-1]


@pytest.mark.slow
def test_the_best_time_is_that_of_a_fine_scan():
    X, y = sample(60, 100, np.random.default_rng(0), noise=0.7)
    data = hm.Data(X, y, task="regression")
    whole = hm.training_curve(data, regularisation=[0.0, 0.1])
    fine = hm.training_curve(data, times=np.geomspace(0.03, 30.0, 400), regularisation=[0, 0.1])
    near = fine.time[fine.test_loss.argmin("time")]
    np.testing.assert_allclose(whole.optimal_time, near, rtol=0.02)
    assert (whole.test_loss.min("time") > 0.999 * fine.test_loss.min("time")).all()
    assert "optimal_time" not in hm.training_curve(data, times=3.0)


@pytest.mark.slow
def test_more_rows_have_the_predicted_error():
    """Of samples of a known population, within the bars."""
    rng, times, z = np.random.default_rng(5), np.array([0.004, 0.03, 0.3, 3.0, 30.0]), []
    X, y = sample(6000, 40, rng)
    signs = np.where(y > 0.2, "yes", "no")
    for labels in (y, signs):
        number = labels if labels is y else np.where(y > 0.2, 1.0, -1.0)
        for i in range(2):
            own = np.arange(150 * i, 150 * i + 150)
            data = hm.Data(X[own], labels[own])
            found = hm.training_curve(data, times=times, n=[75, 450], on_refusal="keep")
            assert (found.status[:, :4] == Support.SAMPLE).all()
            for rows, predicted in zip((75, 450), found.generalisation_error, strict=True):
                more = np.arange(1000, 1000 + rows) + 500 * i
                fit = trained(X[more], number[more], times)
                left = residuals(fit, X[3500:], number[3500:])
                wrong = (np.sign(number[3500:, None] - left) != number[3500:, None]).mean(0)
                error = (left**2).mean(0) if labels is y else wrong
                at = found.sel(n=rows)
                bar = np.log(at.generalisation_error_high / at.generalisation_error)
                z.append((np.log(predicted / error) / bar).values[:4])
    z = np.array(z)
    assert np.abs(z).max() < 3.5
    assert 0.4 < np.sqrt((z**2).mean()) < 1.5


@pytest.mark.slow
def test_early_training_of_twice_the_rows_is_that_of_twice_the_time():
    """Gradients are sums, so that classes are told apart in half the time."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((200, 20)) * np.append(3.0, np.full(19, 0.3))
    y = X[:, 0] + rng.standard_normal(200) > 2.5
    times = np.array([0.008, 0.01, 0.013])
    data = hm.Data(X, y)
    more = hm.training_curve(data, times=times, n=400).generalisation_error
    longer = hm.training_curve(data, times=2.0 * times).generalisation_error
    now = hm.training_curve(data, times=times).generalisation_error
    np.testing.assert_allclose(more, longer, rtol=0.15)  # of 20 errors that are counted
    assert (more < 0.8 * now).all()


@pytest.mark.slow
def test_times_too_late_for_more_rows_are_refused():
    X, y = sample(80, 200, np.random.default_rng(1))
    data = hm.Data(X, y, task="regression")
    with pytest.raises(UnusableDataError, match="as late as 1000"):
        hm.training_curve(data, times=[0.01, 1000.0], n=320)
    ds = hm.training_curve(data, times=[0.01, 1000.0], n=[80, 320], on_refusal="keep")
    assert ds.status.values.tolist() == [[0, 0], [0, Support.LATE]]
    assert np.isnan(ds.test_loss.values).tolist() == [[False, False], [False, True]]
    assert np.isfinite(ds.optimal_time.values).tolist() == [True, False]


def test_the_fall_begins_with_the_mean_label_and_is_one_at_home():
    X, y = sample(50, 20, np.random.default_rng(2))
    ridge = hm.Data(X, y, task="regression").ridge
    n = np.array([50.0, 25.0, 200.0])
    early = FlowOfRows(ridge, n, np.zeros(3), np.zeros(3)).fall
    np.testing.assert_allclose(early, (1 + 1 / n) / (1 + 1 / 50), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": [-1.0]}, "time"),
        ({"times": [1.0], "n": 2}, "at least 3"),
        ({"times": [1.0], "regularisation": -1.0}, "regularisation"),
        ({"times": [1.0], "on_refusal": "ask"}, "on_refusal"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    X, y = sample(50, 5, np.random.default_rng(4))
    with pytest.raises(InvalidArgumentError, match=message):
        hm.training_curve(hm.Data(X, y, task="regression"), **options)


def test_other_than_data_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"hiddenmanifold\.Data"):
        hm.training_curve("table.csv")
