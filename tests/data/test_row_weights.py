"""Weighted fits of real data, as scikit-learn makes them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import hiddenmanifold as hm
from hiddenmanifold.errors import InvalidArgumentError

RNG = np.random.default_rng(0)
X = StandardScaler().fit_transform(RNG.standard_normal((120, 6)))
SCORE = X.sum(1) / np.sqrt(6) + 0.7 * RNG.standard_normal(120)
Y = np.where(SCORE > 0.8, "yes", "no")
WEIGHTS = RNG.uniform(0.2, 3.0, 120)


def data_of(model, y=Y, **given):
    return hm.Data.from_pipeline(make_pipeline(model.fit(X, y)), X, y, **given)


def curve(data, **given):
    given = {"regularisation": data.regularisation, "n": [data.N], **given}
    return hm.learning_curve(data, loss=data.loss, on_refusal="keep", **given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "weights"),
    [
        (LogisticRegression(C=0.2, class_weight={"yes": 3.0}), WEIGHTS),
        (RidgeClassifier(alpha=2.0, class_weight={"no": 0.5, "yes": 4.0}), None),
    ],
)
def test_errors_of_left_out_rows_are_those_of_scikit_learn(model, weights):
    data = data_of(model, sample_weight=weights)
    found = float(curve(data).generalisation_error_leave_one_out)
    params = None if weights is None else {"sample_weight": weights}
    expected = cross_val_predict(model, X, Y, cv=LeaveOneOut(), params=params)
    assert found == pytest.approx(np.mean(expected != Y), abs=1.01 / len(Y))


@pytest.mark.slow
def test_numbers_have_weights_of_rows():
    ridge = data_of(Ridge(alpha=0.5), SCORE, sample_weight=WEIGHTS)
    expected = cross_val_predict(
        Ridge(alpha=0.5), X, SCORE, cv=LeaveOneOut(), params={"sample_weight": WEIGHTS}
    )
    found = float(curve(ridge).generalisation_error_leave_one_out)
    assert found == pytest.approx(np.mean((expected - SCORE) ** 2), rel=1e-10)


@pytest.mark.slow
def test_equal_weights_are_another_penalty():
    model = LogisticRegression(C=0.2)
    twice, plain = data_of(model, sample_weight=np.full(120, 2.0)), data_of(model)
    ours = curve(twice, regularisation=2.0 * plain.regularisation, n=[60, 120, 240])
    theirs = curve(plain, n=[60, 120, 240])
    for name in ("generalisation_error", "test_loss", "generalisation_error_high"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6)


@pytest.mark.slow
def test_weighted_fits_are_predicted_and_measured():
    data = data_of(SVC(kernel="linear", C=0.2, class_weight="balanced"))
    at = {"loss": data.loss, "regularisation": data.regularisation}
    ds = hm.backtest(data, **at, n=[30], rows=70, seeds=4)
    plain = hm.backtest(data_of(SVC(kernel="linear", C=0.2)), **at, n=[30], rows=70, seeds=4)
    for name in ("generalisation_error", "generalisation_error_theory"):
        assert (ds[name] != plain[name]).all(), name
    assert ds.attrs["weights"] == "balanced classes"
    assert "weighted by balanced classes" in repr(data)


def test_weights_without_a_meaning_are_refused():
    for given in (WEIGHTS[1:], -WEIGHTS, "balanced"):
        with pytest.raises(InvalidArgumentError, match="sample_weight"):
            data_of(LogisticRegression(), sample_weight=given)
    three = np.digitize(SCORE, [-0.5, 0.5])
    model = LogisticRegression(class_weight="balanced").fit(X, three)
    with pytest.raises(InvalidArgumentError, match="more than two classes"):
        hm.Data.from_pipeline(make_pipeline(model), X, three, task="classification")
    weighted = data_of(Ridge(), SCORE, sample_weight=WEIGHTS)
    with pytest.raises(InvalidArgumentError, match="curves of training"):
        hm.training_curve(weighted)
    with pytest.raises(InvalidArgumentError, match="regularisation"):
        curve(weighted, regularisation=0.0)
