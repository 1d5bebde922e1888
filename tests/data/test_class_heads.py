"""Softmax heads of real data: levels are those of refits, falls those of the moved scores."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import hiddenmanifold as hm
from hiddenmanifold.data.class_heads import (
    ClassHead,
    left_out_scores,
    loss_of_scores,
    stratified,
)
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.misclassification import confusion_of_scores, moments
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.losses import Softmax

P, SPREAD = 20, np.arange(1, 21) ** -0.3
MEANS = np.random.default_rng(3).standard_normal((4, P)) * 0.25
SHARES = np.array([0.1, 0.2, 0.3, 0.4])
NAMES = np.array(["ash", "beech", "elm", "oak"])
SOFTMAX = Softmax()


def trees(n, seed, means=MEANS):
    rng = np.random.default_rng(seed)
    k = rng.choice(4, size=n, p=SHARES)
    return rng.standard_normal((n, P)) * SPREAD + means[k], k


@pytest.fixture(scope="module")
def data():
    X, k = trees(200, 0)
    return hm.Data(X, NAMES[k])


@pytest.fixture(scope="module")
def curve(data):
    return hm.learning_curve(data, n=[100, 200, 1600], regularisation=[0.3, 3.0], loss="softmax")


def fitted(X, k, lam):
    C = hm.to_sklearn_C(lam, P)
    return LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, k)


@pytest.mark.slow
def test_each_class_against_the_rest_has_the_level_of_refits(data):
    """Of scikit-learn's OneVsRestClassifier, whose scores are fitted apart."""
    own = data.y.argmax(1)
    fold, C = stratified(own, 10), hm.to_sklearn_C(0.3, P)
    wrong, losses = [], []
    for i in range(10):
        head = OneVsRestClassifier(LogisticRegression(C=C, tol=1e-9, max_iter=10_000))
        scores = head.fit(data.X[fold != i], own[fold != i]).decision_function(data.X[fold == i])
        wrong.extend(scores.argmax(1) != own[fold == i])
        signs = 2.0 * np.eye(4)[own[fold == i]] - 1.0
        losses.extend(np.logaddexp(0.0, -signs * scores).sum(1))
    ds = hm.learning_curve(data, n=[100, 200, 1600], regularisation=0.3, loss="logistic")
    assert ds.attrs["scheme"] == "one-vs-rest"
    assert float(ds.generalisation_error_leave_one_out) == pytest.approx(np.mean(wrong))
    assert float(ds.test_loss_leave_one_out) == pytest.approx(np.mean(losses), rel=1e-5)
    assert (np.diff(ds.generalisation_error) < 0).all() and (np.diff(ds.test_loss) < 0).all()


def test_curvatures_are_means_of_second_derivatives():
    X, k = trees(90, 9)
    Y, lams, step = np.eye(4)[k], np.array([1.0]), 1e-4
    for loss in (SOFTMAX, hm.losses.Logistic()):
        head = ClassHead.of(loss, Ridge.of(X, Y), Y, lams)
        shift = step * np.eye(4)[:, None]
        up, here, down = (
            loss_of_scores(loss, k, head.fitted + sign * shift) for sign in (1, 0, -1)
        )
        trace = np.sum(up - 2.0 * here + down, axis=0).mean() / step**2
        contrasts = 3 if loss is SOFTMAX else 4  # a common score of all does not matter to softmax
        assert head.curvature[0] == pytest.approx(trace / contrasts, rel=1e-5)


def test_folds_share_every_class():
    own = np.random.default_rng(1).choice(3, size=97, p=[0.1, 0.3, 0.6])
    fold = stratified(own, 10)
    for k in range(3):
        rows = np.bincount(fold[own == k], minlength=10)
        assert rows.max() - rows.min() <= 1


@pytest.mark.slow
def test_the_level_is_that_of_refits_without_each_tenth(data, curve):
    own = data.y.argmax(1)
    fold, lam = stratified(own, 10), 0.3
    wrong, losses = [], []
    for i in range(10):
        fit = fitted(data.X[fold != i], own[fold != i], lam)
        log_p = log_softmax(fit.decision_function(data.X[fold == i]), axis=1)
        wrong.extend(log_p.argmax(1) != own[fold == i])
        losses.extend(-log_p[np.arange(len(log_p)), own[fold == i]])
    at = curve.sel(regularisation=lam)
    assert float(at.generalisation_error_leave_one_out) == pytest.approx(np.mean(wrong))
    assert float(at.test_loss_leave_one_out) == pytest.approx(np.mean(losses), rel=1e-5)
    whole = fitted(data.X, own, lam)
    size = 0.5 * lam * P * np.sum(whole.coef_**2) / data.N
    log_p = whole.predict_log_proba(data.X)[np.arange(data.N), own]
    assert float(at.training_loss_leave_one_out) == pytest.approx(size - log_p.mean(), rel=1e-7)
    assert float(at.training_loss.sel(n=200)) == pytest.approx(size - log_p.mean(), rel=1e-7)


@pytest.mark.parametrize(("loss", "K"), [("softmax", 3), ("logistic", 3), ("logistic", 2)])
def test_training_losses_stay_below_those_of_intercepts_alone(loss, K):
    """Of labels without signal; the mean with n samples is some 1/n of it below that of all."""
    rng = np.random.default_rng(5)
    k = rng.integers(0, K, 90)
    data = hm.Data(rng.standard_normal((90, 6)), k, task="classification")
    how = {"regularisation": [0.1, 10.0], "loss": loss, "on_refusal": "keep"}
    found = hm.learning_curve(data, n=[90, 9000], **how).training_loss
    share = np.bincount(k) / 90
    alone = -share @ np.log(share)
    if loss == "logistic" and K > 2:
        alone -= (1.0 - share) @ np.log(1.0 - share)
    assert (found <= alone * (1.0 + 1.0 / 89) * (1.0 + 1e-9)).all()


def test_a_class_that_a_fold_does_not_show_is_improbable_there():
    X, k = trees(60, 4)
    k[k == 0], k[7] = 1, 0
    scores = left_out_scores(SOFTMAX, X, np.eye(4)[k], np.array([1.0]), 10)
    assert np.isfinite(scores).all()
    assert np.exp(log_softmax(scores[0, 7]))[0] == pytest.approx(1 / 61)


def test_scores_of_two_classes_are_logistic_with_half_of_the_regularisation():
    X, k = trees(80, 5)
    two = (k > 2).astype(int)
    head = ClassHead.of(SOFTMAX, Ridge.of(X, np.eye(2)[two]), np.eye(2)[two], np.array([2.0]))
    theirs = fitted(X, two, 1.0).decision_function(X)
    np.testing.assert_allclose(head.fitted[0, :, 1] - head.fitted[0, :, 0], theirs, atol=1e-6)
    p = expit(theirs)  # λ/c of columns is that of signs
    assert head.curvature[0] == pytest.approx(2.0 * np.mean(p * (1.0 - p)), rel=1e-5)


@pytest.mark.slow
def test_twins_tell_how_scores_grow():
    """Class means and spreads of strongly regularised softmax, from samples of 150 to 1200."""
    test, labels = trees(4000, 98)
    lam, own = np.array([20.0]), np.eye(4)[labels]
    share = own.mean(0)

    def of(X, k):
        head = fitted(X, k, 20.0).decision_function(test)
        means = np.array([head[labels == c].mean(0) for c in range(4)])
        size = np.sum(share[:, None] * means * (np.eye(4) - share))
        return size, np.sqrt(np.mean(np.sum((head - means[labels]) ** 2, axis=1)))

    near = np.mean([of(*trees(135, 300 + seed)) for seed in range(6)], axis=0)
    grown = np.array(of(*trees(1200, 310))) / near
    found = []
    for seed in range(6):
        X, k = trees(150, 320 + seed)
        head = ClassHead.of(SOFTMAX, Ridge.of(X, np.eye(4)[k]), np.eye(4)[k], lam)
        strength, at = lam / head.curvature, np.array([135.0, 1200.0])
        here, there = Fits.of(head.ridge, at, np.repeat(strength, 2), most=0.1).moments.T
        found.append(there / here)
    np.testing.assert_allclose(np.mean(found, axis=0), grown, rtol=0.15)
    assert (grown > 3.0).all()


def test_moments_are_traces_of_covariances():
    rng = np.random.default_rng(6)
    own = rng.integers(3, size=500)
    Y = np.eye(3)[own]
    scores = Y @ rng.standard_normal((3, 3)) + rng.standard_normal((500, 3))
    inside = sum(np.sum((scores - scores[own == k].mean(0))[own == k] ** 2) for k in range(3)) / 497
    with_column, spread = moments(own, np.repeat((Y - scores)[:, None], 2, 1), np.array([0, -0.4]))
    covariance = (Y - Y.mean(0)).T @ scores / 500
    np.testing.assert_allclose(with_column, np.trace(covariance))
    np.testing.assert_allclose(spread**2, [inside, inside - 0.4])


@pytest.mark.slow
def test_scores_move_with_their_class_means_and_around_them(data):
    head = data.head(SOFTMAX, np.array([0.3, 3.0]))
    own = data.y.argmax(1)
    (moved,) = head.moved(np.array([1]), np.array([[1.5], [0.7]]))
    np.testing.assert_allclose(moved.mean(0), head.scores[1].mean(0))
    for k in range(4):
        before, after = head.scores[1][own == k], moved[own == k]
        np.testing.assert_allclose(
            after.mean(0) - moved.mean(0), 1.5 * (before.mean(0) - moved.mean(0))
        )
        np.testing.assert_allclose(np.cov(after.T), 0.49 * np.cov(before.T))
    same = head.moved(np.array([0, 1]), np.ones((2, 2)))
    np.testing.assert_allclose(same, head.scores)


def test_confusion_of_scores_is_smoothed_by_class():
    rng = np.random.default_rng(7)
    own = np.repeat(np.arange(3), 4000)
    scores = 1.5 * np.eye(3)[own] + rng.standard_normal((12000, 3))
    found = confusion_of_scores(own, scores[None])[:, :, 0]
    counted = np.array([np.bincount(scores[own == k].argmax(1), minlength=3) for k in range(3)])
    np.testing.assert_allclose(found, counted / 4000, atol=0.015)
    np.testing.assert_allclose(found.sum(1), 1.0)
    assert found[0, 1] > 0.1


@pytest.mark.slow
def test_errors_of_classes_add_up_and_fall(curve):
    share = np.bincount(trees(200, 0)[1]) / 200
    np.testing.assert_allclose(curve.class_error.values @ share, curve.generalisation_error)
    np.testing.assert_allclose(curve.confusion.sum("predicted"), 1.0)
    for name in ("generalisation_error", "test_loss"):
        assert (np.diff(curve[name], axis=0) < 0).all()
        fall = curve[name] / curve[name].sel(n=200)
        np.testing.assert_allclose(curve[f"{name}_fall"], fall)
        assert (curve[f"{name}_low"] < curve[name]).all()
        assert (curve[name] < curve[f"{name}_high"]).all()
    assert "mean_square_error" not in curve


@pytest.mark.slow
def test_predictions_are_right_on_average_and_within_their_bars():
    """Errors and log-losses of eight times the rows, from twelve samples of 150."""
    test, labels = trees(10000, 99)
    truth = []
    for seed in range(3):
        log_p = fitted(*trees(1200, 100 + seed), 0.5).predict_log_proba(test)
        own = log_p[np.arange(len(test)), labels]
        truth.append((np.mean(log_p.argmax(1) != labels), -own.mean()))
    ratio, bar = np.empty((2, 12, 2))
    for seed in range(12):
        X, k = trees(150, 200 + seed)
        head = hm.Data(X, k, "classification").predicted(1200.0, np.array([0.5]), loss=SOFTMAX)
        ratio[seed], bar[seed] = (
            np.log(head.value[:2, 0] / np.mean(truth, 0)),
            head.deviation[:2, 0],
        )
    # levels of left-out rows in stratified folds are some 5 % low
    assert (np.abs(ratio.mean(0)) < 3.0 * ratio.std(0) / np.sqrt(12) + 0.1).all()
    assert (np.abs(ratio) < bar).mean() > 0.5
    assert (np.abs(ratio) < 2.0 * bar).mean() > 0.8


@pytest.mark.slow
def test_the_best_regularisation_has_the_least_log_loss(data):
    chosen = data.best_for(SOFTMAX)
    near = np.array([chosen / 10, chosen, 10 * chosen])
    loss = hm.learning_curve(
        data, n=200, regularisation=near, loss="softmax"
    ).test_loss_leave_one_out
    assert loss.values.argmin() == 1


@pytest.mark.slow
def test_few_errors_are_told():
    X, k = trees(150, 8, means=1.5 * MEANS)
    data = hm.Data(X, NAMES[k])
    ds = hm.learning_curve(
        data, n=[150, 300], regularisation=1.0, loss="softmax", on_refusal="keep"
    )
    assert 0 < float(ds.generalisation_error_leave_one_out) * 150 < 20
    assert (ds["status"] == 5).all()
    assert float(ds.generalisation_error_high[0]) > 1.2 * float(ds.generalisation_error[0])
    square = hm.learning_curve(data, n=300, regularisation=1.0, on_refusal="keep")
    assert int(square["status"]) == 0


@pytest.mark.slow
def test_a_report_of_softmax():
    X, k = trees(150, 8, means=1.5 * MEANS)
    data = hm.Data(X, NAMES[k])
    report = hm.report(data, loss="softmax", target_gain=0.2, seeds=2, on_refusal="keep")
    said = " ".join(str(report).split())
    assert "Fewer than 20 rows are predicted wrongly" in said
    C = hm.to_sklearn_C(data.best_for(SOFTMAX), P)
    assert f"LogisticRegression(C={C:.4g})" in said
    assert "each tenth of the rows" in said
    assert report.backtest.attrs["loss"] == "softmax"
    plan = hm.plan(data, target_gain=0.2, loss="softmax", on_refusal="keep")
    assert report.outlook[0] in str(plan)


@pytest.mark.parametrize("loss", ["softmax", "squared_hinge"])
def test_bars_of_rare_classes_hold_their_rates(loss):
    """Also of a class that is always predicted wrongly."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), [100, 60, 40, 10, 8])
    X = rng.standard_normal((218, 20))
    X[:, :2] += 2.0 * np.eye(5)[y][:, :2]
    data = hm.Data(X, np.array(list("abcde"))[y])
    how = {"n": [3, 218, 1744], "regularisation": [0.1, 10.0], "on_refusal": "keep"}
    ds = hm.learning_curve(data, loss=loss, **how)
    assert float(ds.class_error.max()) == 1.0
    assert (ds.class_error_low <= ds.class_error).all()
    assert (ds.class_error <= ds.class_error_high).all()
