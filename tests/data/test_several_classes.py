"""Learning curves of samples of more than two classes."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.misclassification import by_columns, confusion
from hiddenmanifold.data.ridge import Ridge

P, SPREAD = 30, np.arange(1, 31) ** -0.3
MEANS = np.random.default_rng(7).standard_normal((4, P)) * 0.35
SHARES = np.array([0.1, 0.2, 0.3, 0.4])
NAMES = np.array(["ash", "beech", "elm", "oak"])


def trees(n, seed):
    rng = np.random.default_rng(seed)
    k = rng.choice(4, size=n, p=SHARES)
    return rng.standard_normal((n, P)) * SPREAD + MEANS[k], NAMES[k]


@pytest.fixture(scope="module")
def data():
    return hm.Data(*trees(300, 0))


@pytest.fixture(scope="module")
def curve(data):
    return hm.learning_curve(data, n=[150, 300, 1200], regularisation=[0.1, 1.0])


def test_two_classes_as_columns_are_those_of_signs():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(120) < 0.3, 1.0, -1.0)
    X = rng.standard_normal((120, 20)) + 0.4 * y[:, None] * (np.arange(20) < 4)
    n, lam = np.array([60.0, 120.0, 500.0]), np.array([0.3, 0.3, 0.3])
    signs = Fits.of(Ridge.of(X, y), n, lam)
    columns = Fits.of(Ridge.of(X, np.column_stack([y < 0, y > 0]).astype(float)), n, lam)
    np.testing.assert_allclose(columns.error, signs.error / 2, rtol=1e-11)
    own, change = signs.ridge.classes, 0.5 * signs.change
    halved = confusion(own, by_columns(signs.path.left_out), change)
    np.testing.assert_allclose(halved, signs.confusion, rtol=1e-12)
    np.testing.assert_allclose(
        confusion(own, columns.path.left_out, change), signs.confusion, rtol=1e-9
    )
    np.testing.assert_allclose(columns.deviation, signs.deviation, rtol=1e-9)


@pytest.mark.slow
def test_moved_scores_have_the_confusion_of_their_normal_law():
    """Drawn scores of three classes; the oracle draws others, with the covariance they end at."""
    rng = np.random.default_rng(2)
    means = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    across = np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -1.0]]).T * 0.25  # scores add to one
    own = np.repeat(np.arange(3), [100_000, 150_000, 150_000])
    scores = means[own] + rng.standard_normal((len(own), 2)) @ across.T
    residual = np.eye(3)[own] - scores
    second = residual.T @ residual / len(own)
    change = -0.15 * np.trace(second)
    found = confusion(own, residual[:, None], np.array([change]))[:, :, 0]
    S = across @ across.T + change / np.trace(second) * second
    values, vectors = np.linalg.eigh(S)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    fresh = means[own] + rng.standard_normal((len(own), 3)) @ root.T
    expected = np.array([np.bincount(fresh[own == k].argmax(1), minlength=3) for k in range(3)])
    expected = expected / expected.sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=0.006)
    assert np.abs(found - np.eye(3)).max() > 0.2


@pytest.mark.slow
def test_left_out_errors_are_those_of_ridge_classifiers(data, curve):
    wrong = [
        RidgeClassifier(alpha=P)
        .fit(np.delete(data.X, i, 0), np.delete(data.y.argmax(1), i))
        .predict(data.X[[i]])[0]
        != data.y[i].argmax()
        for i in range(data.N)
    ]
    at = curve.sel(regularisation=1.0)
    assert float(at.generalisation_error_leave_one_out) == pytest.approx(np.mean(wrong))


def test_a_curve_has_errors_of_every_class(data, curve):
    assert curve.attrs["task"] == "classes"
    assert curve["class"].values.tolist() == curve.predicted.values.tolist() == sorted(NAMES)
    share = data.rows_of_classes / data.N
    mean = curve.class_error.values @ share
    np.testing.assert_allclose(mean, curve.generalisation_error, rtol=1e-12)
    np.testing.assert_allclose(curve.confusion.sum("predicted"), 1.0)
    own = np.einsum("...cc->...c", curve.confusion.transpose(..., "class", "predicted").values)
    np.testing.assert_allclose(curve.class_error, 1.0 - own)
    assert (curve.class_error_low < curve.class_error).all()
    assert (curve.class_error < curve.class_error_high).all()
    # a class of fewer rows is known less well
    bar = np.log(curve.class_error_high / curve.class_error).sel(n=300)
    assert (bar.sel({"class": "ash"}) > bar.sel({"class": "oak"})).all()
    np.testing.assert_allclose(curve.mean_square_error, 2.0 * curve.test_loss)
    square, wrong = (
        (curve[f"{name}_high"] / curve[name]).sel(n=300)
        for name in ("mean_square_error", "generalisation_error")
    )
    assert (square < wrong).all()


@pytest.mark.slow
def test_a_curve_of_classes_is_written_and_read(tmp_path, curve):
    import xarray as xr

    curve.to_netcdf(tmp_path / "curve.nc")
    with xr.open_dataset(tmp_path / "curve.nc") as read:
        assert read["class"].values.tolist() == sorted(NAMES)
        np.testing.assert_array_equal(read.confusion, curve.confusion)


@pytest.mark.slow
def test_predictions_are_right_on_average_and_within_their_bars():
    """Errors of every class, at twice the best λ for four times the rows."""
    test, labels = trees(20000, 99)
    fits = [RidgeClassifier(alpha=P).fit(*trees(800, 100 + s)).predict(test) for s in range(5)]
    rate = [[np.mean((f != labels)[labels == name]) for name in NAMES] for f in fits]
    ds = [
        hm.learning_curve(hm.Data(*trees(200, s)), n=800, regularisation=1.0, on_refusal="keep")
        for s in range(8)
    ]
    found = np.array([one.class_error.values for one in ds])
    error = found.std(0) / np.sqrt(len(found))
    assert (np.abs(found.mean(0) - np.mean(rate, 0)) < 3.0 * error + 0.01).all()
    bar = np.array([np.log(one.class_error_high / one.class_error).values for one in ds])
    off = np.abs(np.log(found / np.mean(rate, 0)))
    assert np.mean(off < bar) > 0.55 and np.mean(off < 2 * bar) > 0.9


@pytest.mark.slow
def test_classes_are_told_and_the_rarest_warned_of(data):
    assert repr(data) == (
        "Data(300 samples of 30 features, classification (guessed from y), 4 classes "
        "('ash', 'beech', 'elm', 'oak'))"
    )
    assert data.diagnosis["rows per class"].verdict == "pass"
    few = hm.Data(*trees(120, 3))
    finding = few.diagnosis["rows per class"]
    assert finding.verdict == "warn"
    assert finding.value == few.rows_of_classes.min() < 25
    with pytest.raises(KeyError):
        hm.Data(few.X, few.X[:, 0]).diagnosis["rows per class"]


def test_a_class_that_one_half_of_the_sample_lacks():
    X, y = trees(120, 4)
    y = np.where(y == "oak", "elm", y)
    y[np.random.default_rng(1).permutation(120)[:5]] = "yew"  # all in the first half that is drawn
    data = hm.Data(X, y)
    assert np.isfinite(data.diagnosis["backtest"].value)
    assert data.diagnosis["rows per class"].value == 5


def test_one_class_against_all_others_is_as_before(data):
    X, y = trees(300, 0)
    one = hm.Data(X, y, positive="elm")
    assert (one.task, one.classes) == ("classification", ("others", "elm"))
    np.testing.assert_array_equal(one.y > 0, y == "elm")


def test_losses_that_several_classes_have_not_are_refused(data):
    for loss in ("hinge", "absolute", "quantile"):
        with pytest.raises(
            InvalidArgumentError, match=f"'{loss}' .*'square' or 'softmax' for more"
        ):
            hm.learning_curve(data, loss=loss)
    with pytest.raises(InvalidArgumentError, match="softmax.* give 'logistic', .* half of λ"):
        hm.learning_curve(hm.Data(*trees(300, 0), positive="elm"), loss="softmax")
    with pytest.raises(InvalidArgumentError, match="'poisson' .* a loss of the margin"):
        hm.learning_curve(data, loss="poisson")


ALONE = np.append(["yew"], trees(119, 0)[1])
GAPS = np.array([None, *trees(119, 0)[1]], dtype=object)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (ALONE, "y has 1 sample of class yew: each class needs at least 5: merge rare classes"),
        (GAPS, "y has 1 missing or infinite value: drop or impute these rows"),
        (np.where(ALONE == "yew", "", ALONE), "y has 1 missing or infinite value"),
        (np.arange(120) % 3 + 0.5, r"y has fractions \(0.5, 1.5, 2.5\), .* words or whole numbers"),
        (np.eye(3)[np.arange(120) % 3], r"y has shape \(120, 3\): .* y.argmax\(axis=1\)"),
        (np.arange(120) % 40, "y has 40 classes of fewer than 5 samples .* merge rare classes"),
    ],
)
def test_labels_that_are_no_classes_are_refused_with_a_remedy(y, sentence):
    with pytest.raises(InvalidArgumentError, match=sentence):
        hm.Data(trees(120, 0)[0], y, "classification")


def test_whole_numbers_of_any_type_are_classes():
    X, y = trees(120, 0)
    for number in (np.int8, float, str):
        data = hm.Data(X, np.unique(y, return_inverse=True)[1].astype(number), "classification")
        assert [int(k) for k in data.classes] == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "softmax", "logistic"])
def test_more_random_features_than_the_sample_tells_have_no_prediction(loss):
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = rng.standard_normal((150, 20)) + 1.2 * np.eye(3, 20)[y]
    features = np.maximum(X @ rng.standard_normal((20, 40)) / 4, 0.0)
    data = hm.Data(features, y, "classification", random_features=True)
    at = {"n": [150, 100_000], "p": [40, 100_000], "regularisation": 1e-6}
    ds = hm.learning_curve(data, **at, loss=loss, on_refusal="keep")
    assert (ds["status"].values == 3).tolist() == [[False, True], [False, True]]
    for name in ("generalisation_error", "test_loss", "training_loss"):
        assert np.isnan(ds[name].values).tolist() == (ds["status"].values == 3).tolist()


@pytest.mark.slow
def test_a_hundred_classes_of_ten_rows_are_predicted_with_a_warning():
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 100
    X = rng.standard_normal((1000, 20)) + rng.standard_normal((100, 20))[y]
    data = hm.Data(X, y, "classification")
    finding = data.diagnosis["rows per class"]
    assert finding.verdict == "warn" and "100 of 100 classes have fewer than 25" in finding.meaning
    ds = hm.learning_curve(data, n=2000)
    assert ds.class_error.shape == (100,) and ds.confusion.shape == (100, 100)
    assert 0.1 < float(ds.generalisation_error) < 0.9


@pytest.mark.slow
def test_a_report_has_a_table_of_classes(data):
    report = hm.report(data, target_gain=0.2, seeds=2)
    table = next(t for t in report.tables if t.title.startswith("Misclassification rate by class"))
    assert [row[0] for row in table.rows] == sorted(NAMES)
    assert [int(row[1]) for row in table.rows] == data.rows_of_classes.tolist()
    assert "RidgeClassifier(alpha=" in str(report)
    assert "always predicting oak" in str(report)
    assert report.backtest.attrs["task"] == "classes"


def test_a_backtest_measures_held_out_rows(data):
    held = hm.backtest(data, n=[100], regularisation=1.0, seeds=2, rows=150, seed=3)
    measured = []
    for cut in range(2):
        order = np.random.default_rng((3, cut)).permutation(300)
        fitted, test = order[150:250], order[250:]
        fit = RidgeClassifier(alpha=P).fit(data.X[fitted], data.y[fitted].argmax(1))
        measured.append(np.mean(fit.predict(data.X[test]) != data.y[test].argmax(1)))
    assert float(held.generalisation_error[0, 0]) == pytest.approx(np.mean(measured))
