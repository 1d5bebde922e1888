"""The models of scikit-learn."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, estimators
from hiddenmanifold.checks import Task
from hiddenmanifold.data import leave_one_out
from hiddenmanifold.data.ridge import Ridge as Decomposition
from hiddenmanifold.data.sklearn_conventions import to_glm_alpha

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 6)) * np.arange(1, 7) + 2.0
Y = X @ np.ones(6) / 6 + RNG.standard_normal(80)
LABELS = np.where(np.median(Y) < Y, "up", "down")


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        estimators.RandomFeaturesTransformer(5),
        estimators.RandomFeaturesTransformer(9, "tanh", "hadamard", scale="standard"),
        estimators.RandomFeaturesTransformer(3, "erf", "dct", scale=None),
        estimators.GLMRegressor(),
        estimators.GLMClassifier(),
        estimators.GLMRegressor("huber", 1.0),
        estimators.GLMRegressor("poisson", 1.0),
        estimators.GLMRegressor("gamma"),
        estimators.GLMRegressor("quantile", 1.0),
        pytest.param(estimators.GLMClassifier("logistic", 1.0), marks=pytest.mark.slow),
        estimators.GLMClassifier("hinge", 1.0),
        estimators.GLMClassifier("softmax", 1.0),
    ],
    ids=repr,
)
def test_scikit_learn_accepts_them(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are skipped
        check_estimator(estimator)


def test_the_loss_must_know_the_task():
    assert is_regressor(estimators.GLMRegressor("absolute"))
    assert is_classifier(estimators.GLMClassifier("square"))
    with pytest.raises(InvalidArgumentError, match="a loss for regression"):
        estimators.GLMRegressor("logistic").fit(X, Y)


def test_ridge_regression_is_scikit_learn_s():
    ours = estimators.GLMRegressor("square", 0.3).fit(X, Y)
    theirs = Ridge(hm.to_ridge_alpha(0.3, 6)).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)
    assert ours.optimality_ < 1e-10


@pytest.mark.slow
def test_logistic_regression_is_scikit_learn_s():
    ours = estimators.GLMClassifier("logistic", 0.3).fit(X, LABELS)
    theirs = LogisticRegression(C=hm.to_sklearn_C(0.3, 6), tol=1e-10, max_iter=10_000)
    theirs.fit(X, LABELS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert not hasattr(estimators.GLMClassifier("hinge"), "predict_proba")


COUNTS = RNG.poisson(np.exp(0.3 * (Y - Y.mean()))).astype(float)


def test_poisson_regression_is_scikit_learn_s():
    ours = estimators.GLMRegressor("poisson", 0.3).fit(X, COUNTS)
    theirs = PoissonRegressor(
        alpha=to_glm_alpha(0.3, 6, n=80), solver="newton-cholesky", tol=1e-10
    ).fit(X, COUNTS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def test_labels_are_predicted_by_the_mean_that_the_loss_estimates():
    for loss, mean in (
        ("poisson", np.exp),
        (hm.losses.Binomial(9), lambda f: 9 * expit(f)),
        (hm.losses.Expectile(0.8), lambda f: f),
        (hm.losses.Insensitive(0.2), lambda f: f),
    ):
        made = estimators.GLMRegressor(loss, 0.5).fit(X, np.minimum(COUNTS, 9.0))
        score = X @ made.coef_ + made.intercept_
        np.testing.assert_allclose(made.predict(X), mean(score), rtol=1e-12)
        assert made.optimality_ < 1e-10


@pytest.mark.parametrize("regularisation", ["loo", 1.0])
def test_labels_that_the_loss_does_not_allow_are_refused(regularisation):
    with pytest.raises(InvalidArgumentError, match="^y has .* does not allow, .*at least 0"):
        estimators.GLMRegressor("poisson", regularisation).fit(X, COUNTS - 1.0)
    with pytest.raises(InvalidArgumentError, match="^y has only labels, such as 0"):
        estimators.GLMRegressor("poisson", regularisation).fit(X, 0.0 * COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [hm.losses.Quantile(0.8), hm.losses.Insensitive(0.5)], ids=["quantile", "insensitive"]
)
def test_quantiles_and_tubes_choose_by_folds(loss):
    made = estimators.GLMRegressor(loss).fit(X, Y)
    candidates = X.var(0).mean() * leave_one_out.CANDIDATES
    assert np.isclose(made.regularisation_, candidates, rtol=1e-12).any()
    assert made.optimality_ < 1e-10


@pytest.mark.slow
def test_ridge_chooses_by_leave_one_out():
    chosen = estimators.GLMRegressor().fit(X, Y).regularisation_

    def left_out(lam):
        kept = [np.arange(80) != i for i in range(80)]
        fits = [Ridge(6 * lam).fit(X[k], Y[k]) for k in kept]
        return sum((Y[i] - fit.predict(X[[i]])[0]) ** 2 for i, fit in enumerate(fits))

    assert left_out(chosen) <= min(left_out(0.5 * chosen), left_out(2 * chosen))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "huber", "log_cosh", "expectile", "poisson", "gamma"])
def test_left_out_losses_are_those_of_refits(loss):
    """One Newton step against fits without the sample."""
    kind = hm.losses.REGISTRY[loss]()
    task = Task.CLASSIFICATION if loss == "logistic" else Task.REGRESSION
    y = {
        "logistic": np.where(LABELS == "up", 1.0, -1.0),
        "poisson": COUNTS,
        "gamma": COUNTS + 0.5,
    }.get(loss, Y)
    lams = np.array([0.5, 5.0])
    left = leave_one_out.left_out(kind, task, Decomposition.of(X, y), lams, labels=y)
    own = kind.of_labels(y)
    found = np.array([own.value(s).mean() for s in left.shortfall.T])
    exact = np.zeros(2)
    for i in range(80):
        k = np.arange(80) != i
        for j, fit in enumerate(
            leave_one_out.fit_path(kind, task, X[k], y[k], lams, intercept=True)
        ):
            score = X[i] @ fit.w / np.sqrt(6) + fit.b
            s = {"logistic": -y[i] * score, "poisson": -score, "gamma": -score}.get(
                loss, y[i] - score
            )
            exact[j] += kind.of_labels(y[[i]]).value(np.array([s]))[0] / 80
    np.testing.assert_allclose(found, exact, rtol=5e-3)


@pytest.mark.slow
def test_losses_with_corners_choose_by_folds():
    chosen = estimators.GLMRegressor("absolute").fit(X, Y).regularisation_
    candidates = X.var(0).mean() * leave_one_out.CANDIDATES
    assert np.isclose(chosen, candidates, rtol=1e-12).any()


def test_three_classes_are_refused_by_losses_of_a_margin():
    for loss in ("logistic", "hinge", hm.losses.Logistic()):
        with pytest.raises(ValueError, match="'square' or 'softmax'. Only binary classification"):
            estimators.GLMClassifier(loss, 1.0).fit(X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="has 1 class: give two$"):
        estimators.GLMClassifier().fit(X, np.zeros(80))


THREE = np.array(["ash", "elm", "oak"])[np.digitize(Y, np.quantile(Y, [0.2, 0.6]))]


@pytest.mark.parametrize("loss", ["square", "softmax", hm.losses.Softmax()], ids=str)
def test_three_classes_are_those_of_scikit_learn(loss):
    ours = estimators.GLMClassifier(loss, 0.3).fit(X, THREE)
    if loss == "square":
        theirs = RidgeClassifier(hm.to_ridge_alpha(0.3, 6)).fit(X, THREE)
        scores = 2.0 * ours.decision_function(X) - 1.0  # of labels ±1 there
        assert not hasattr(ours, "predict_proba")
    else:
        C = hm.to_sklearn_C(0.3, 6)
        theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, THREE)
        scores = ours.decision_function(X)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
        assert ours.coef_.shape == (3, 6) and ours.intercept_.shape == (3,)
    np.testing.assert_allclose(scores, theirs.decision_function(X), atol=1e-5)
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert ours.optimality_ < 1e-10


def test_softmax_of_two_classes_is_logistic_with_half_of_the_regularisation():
    ours = estimators.GLMClassifier("softmax", 0.6).fit(X, LABELS)
    same = estimators.GLMClassifier("logistic", 0.3).fit(X, LABELS)
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, same.intercept_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), same.predict_proba(X), rtol=1e-5)


@pytest.mark.slow
def test_classes_choose_by_left_out_losses():
    for loss, kind in (("softmax", hm.losses.Softmax()), ("square", hm.losses.Square())):
        data = hm.Data(X, THREE)
        assert estimators.GLMClassifier(loss).fit(X, THREE).regularisation_ == pytest.approx(
            data.best_for(kind)
        )


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal", "hadamard", "dct"])
def test_features_are_the_activation_of_a_linear_map(projection):
    made = estimators.RandomFeaturesTransformer(16, "tanh", projection, random_state=3).fit(X)
    c = (X - X.mean(0)) / np.sqrt(X.var(0).mean())
    F = made._map.left(np.eye(6))
    np.testing.assert_allclose(made.transform(X), np.tanh(c @ F / np.sqrt(6)), atol=1e-12)
    again = clone(made).fit(X)
    np.testing.assert_array_equal(again.transform(X), made.transform(X))
    assert made.get_feature_names_out()[3] == "randomfeaturestransformer3"


def test_the_scale_is_frozen_and_gives_a_variance_of_one():
    wide = np.random.default_rng(1).standard_normal((400, 50)) * np.linspace(1, 9, 50)
    made = estimators.RandomFeaturesTransformer(300, "identity", random_state=0).fit(wide)
    assert made.transform(wide).var() == pytest.approx(1.0, rel=0.1)
    np.testing.assert_allclose(made.transform(wide[:5]), made.transform(wide)[:5])
    each = estimators.RandomFeaturesTransformer(3, scale="standard").fit(wide)
    np.testing.assert_allclose(each.scale_, wide.std(0))


@pytest.mark.parametrize(
    "options", [{"n_features": 0}, {"activation": "step"}, {"projection": "x"}, {"scale": "big"}]
)
def test_features_that_make_no_sense(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        estimators.RandomFeaturesTransformer(**options).fit(X)


def test_both_in_a_pipeline():
    pipeline = make_pipeline(
        estimators.RandomFeaturesTransformer(40, random_state=0),
        estimators.GLMClassifier("logistic", 0.1),
    )
    assert pipeline.fit(X, LABELS).score(X, LABELS) > 0.75


def test_data_of_a_pipeline_are_what_its_model_sees():
    pipeline = make_pipeline(
        StandardScaler(), estimators.RandomFeaturesTransformer(30, random_state=0), Ridge(6.0)
    )
    pipeline.fit(X[:60], Y[:60])
    data = hm.Data.from_pipeline(pipeline, X, Y, random_features=True)
    np.testing.assert_array_equal(data.X, pipeline[:-1].transform(X))
    assert data.random_features
    assert hm.to_ridge_alpha(data.regularisation, 30) == pytest.approx(6.0)
    ours = estimators.GLMRegressor("square", data.regularisation).fit(data.X[:60], Y[:60])
    np.testing.assert_allclose(ours.predict(data.X), pipeline.predict(X), rtol=1e-7)


TIGHT = {"tol": 1e-10, "max_iter": 1_000_000}
MODELS = {
    "Ridge": Ridge(4.0),
    "RidgeCV": RidgeCV(),
    "RidgeClassifier": RidgeClassifier(4.0),
    "LogisticRegression": LogisticRegression(C=0.5, **TIGHT),
    "LinearSVC, hinge": LinearSVC(
        C=0.3, loss="hinge", intercept_scaling=10, tol=1e-5, max_iter=10**6
    ),
    "LinearSVC": LinearSVC(C=0.3, intercept_scaling=1e3, **TIGHT),
    "SVC": SVC(C=0.3, kernel="linear", tol=1e-8),
    "GLM": estimators.GLMClassifier("logistic", 0.7),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_objective_of_a_pipeline_fits_the_same_model(name):
    """Predictions of an exact fit with the converted loss and λ, against those of the pipeline."""
    model = MODELS[name]
    y = LABELS if is_classifier(model) else Y
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    data = hm.Data.from_pipeline(pipeline, X, y)
    kind = estimators.GLMRegressor if is_regressor(model) else estimators.GLMClassifier
    ours = kind(data.loss, data.regularisation).fit(data.X, y)
    if is_regressor(model):
        np.testing.assert_allclose(ours.predict(data.X), pipeline.predict(X), rtol=1e-6)
    else:
        expected = pipeline.decision_function(X)
        np.testing.assert_allclose(ours.decision_function(data.X), expected, atol=2e-3)
        assert np.abs(expected).max() > 1


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (RidgeClassifier(4.0), "square"),
        (LogisticRegression(C=0.5, **TIGHT), "softmax"),
        (LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, tol=1e-8, max_iter=10_000), "softmax"),
        (estimators.GLMClassifier("softmax", 0.7), "softmax"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of names of options
def test_pipelines_of_three_classes_fit_the_same_model(model, loss):
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, THREE)
    data = hm.Data.from_pipeline(pipeline, X, THREE)
    assert (data.loss, data.task) == (loss, "classes")
    ours = estimators.GLMClassifier(data.loss, data.regularisation).fit(data.X, THREE)
    scores = ours.decision_function(data.X)
    expected = pipeline.decision_function(X)
    if isinstance(model, RidgeClassifier):
        expected = 0.5 * (expected + 1.0)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert np.ptp(expected) > 0.5


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (LinearSVC(C=0.3, intercept_scaling=1e3, **TIGHT), "squared_hinge"),
        (OneVsRestClassifier(LogisticRegression(C=0.5, **TIGHT)), "logistic"),
    ],
    ids=repr,
)
def test_pipelines_of_each_class_against_the_rest_fit_the_same_model(model, loss):
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, THREE)
    data = hm.Data.from_pipeline(pipeline, X, THREE)
    assert (data.loss, data.task) == (loss, "classes")
    for k in range(3):
        ours = estimators.GLMClassifier(loss, data.regularisation).fit(data.X, data.y[:, k])
        expected = pipeline.decision_function(X)[:, k]
        np.testing.assert_allclose(ours.decision_function(data.X), expected, atol=2e-3)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=0.1, loss="hinge", intercept_scaling=10, max_iter=10**6, random_state=0),
        SVC(kernel="linear"),
    ],
    ids=repr,
)
def test_models_without_a_counterpart_are_told_what_is_predicted(model):
    pipeline = make_pipeline(StandardScaler(), model).fit(X, THREE)
    with pytest.warns(UserWarning, match="not predicted: curves are by default .*ridge") as told:
        data = hm.Data.from_pipeline(pipeline, X, THREE)
    assert told[0].filename == __file__
    assert (data.loss, data.regularisation) == (None, None)
    one = hm.Data.from_pipeline(pipeline, X, THREE, positive="elm")
    assert one.loss == "hinge" and one.regularisation > 0


@pytest.mark.parametrize("model", [SGDRegressor(alpha=3.0), LinearRegression()], ids=repr)
def test_other_models_have_no_regularisation_of_ours(model):
    data = hm.Data.from_pipeline(make_pipeline(model).fit(X, Y), X, Y)
    assert (data.loss, data.regularisation) == (None, None)
    assert (hm.Data(X, Y).loss, hm.Data(X, Y).regularisation) == (None, None)


def test_the_model_of_a_pipeline_says_the_task():
    few = np.arange(len(X)) % 3
    for model in (Ridge(), estimators.GLMRegressor("square")):
        data = hm.Data.from_pipeline(make_pipeline(model).fit(X, few), X, few)
        assert (data.task, data.guessed) == ("regression", False)
    assert hm.Data.from_pipeline(make_pipeline(Ridge()).fit(X, few > 1), X, few > 1).classes
    classifier = make_pipeline(RidgeClassifier()).fit(X, few)
    assert hm.Data.from_pipeline(classifier, X, few).task == "classes"
    assert hm.Data.from_pipeline(classifier, X, few, task="regression").task == "regression"


@pytest.mark.parametrize(
    ("model", "option"),
    [
        (Ridge(fit_intercept=False), "fit_intercept"),
        (Ridge(positive=True), "positive"),
        (LogisticRegression(l1_ratio=0.5, solver="saga", max_iter=10_000), "l1_ratio"),
        (LinearSVC(penalty="l1", dual=False), "penalty"),
    ],
)
def test_models_that_minimise_something_else_are_refused(model, option):
    y = LABELS if is_classifier(model) else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what does not converge
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    with pytest.raises(InvalidArgumentError, match=option):
        hm.Data.from_pipeline(pipeline, X, y)


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression(solver="liblinear")], ids=repr)
def test_penalised_intercepts_are_said(model):
    pipeline = make_pipeline(StandardScaler(), model).fit(X, LABELS)
    with pytest.warns(UserWarning, match="penalises its intercept, which is free here"):
        hm.Data.from_pipeline(pipeline, X, LABELS)


def test_only_pipelines_have_steps():
    with pytest.raises(InvalidArgumentError, match="a scikit-learn Pipeline"):
        hm.Data.from_pipeline(Ridge(), X, Y)
