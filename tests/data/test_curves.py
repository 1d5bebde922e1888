"""Learning curves of real data, against populations that are known."""

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.linear_model import Ridge as Sklearn

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, UnusableDataError
from hiddenmanifold.data.score_shapes import Shape

P = 60
W = np.arange(1, P + 1) ** -0.8
TAU = np.arange(1, P + 1) ** -0.5
TAU *= 0.7 / TAU.sum()


def gaussian(n, seed):
    """Labels of variance 1, of which 0.3 is noise."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, P))
    return z * np.sqrt(W), z @ np.sqrt(TAU) + np.sqrt(0.3) * rng.standard_normal(n)


def ridge_error(n, lam):
    """The mean square error of ridge regression with an intercept, by a scalar root."""
    w = W / P

    def excess(log_kappa):
        kappa = np.exp(log_kappa)
        return kappa * (n - 1 - np.sum(w / (w + kappa))) - lam

    kappa = np.exp(optimize.brentq(excess, -25, 10))
    r = w / (w + kappa)
    return (0.3 + TAU @ (1 - r) ** 2) * (1 + 1 / n) / (1 - np.sum(r**2) / (n - 1))


@pytest.fixture(scope="module")
def data():
    return hm.Data(*gaussian(200, 0))


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(250) < 0.3, 1, 0)
    return hm.Data(rng.standard_normal((250, 30)) + 0.3 * y[:, None], y)


@pytest.mark.slow
def test_predictions_are_right_on_average_and_within_their_bars():
    n, lam = [100, 400, 1600], [0.03, 1.0]
    truth = np.array([[ridge_error(a, b) for b in lam] for a in n])
    found, inside = [], []
    for seed in range(6):
        ds = hm.learning_curve(
            hm.Data(*gaussian(200, seed)), n=n, regularisation=lam, on_refusal="keep"
        )
        found.append(ds.generalisation_error.values)
        bar = (ds.generalisation_error_high - ds.generalisation_error).values
        inside.append(np.abs(found[-1] - truth) <= 2 * bar)
    np.testing.assert_allclose(np.mean(found, 0), truth, rtol=0.06)
    assert np.mean(inside) >= 0.85


def test_the_population_s_equation_holds_for_fits():
    """The oracle of this file is itself right."""
    errors = []
    for seed in range(40):
        X, y = gaussian(150, seed)
        test, label = gaussian(2000, 1000 + seed)
        errors.append(np.mean((label - Sklearn(0.2 * P).fit(X, y).predict(test)) ** 2))
    error = np.std(errors) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(ridge_error(150, 0.2), abs=3 * error)


def test_what_is_known_at_the_sample_s_size(data):
    ds = hm.learning_curve(data, n=200, regularisation=[0.1, 1.0])
    for name in ("generalisation_error", "test_loss", "training_loss"):
        loo = ds[f"{name}_leave_one_out"]
        np.testing.assert_allclose(ds[name], loo, rtol=0.04)
        assert (ds[f"{name}_low"] < ds[name]).all()
        assert (ds[name] < ds[f"{name}_high"]).all()
    np.testing.assert_allclose(ds.test_loss, ds.generalisation_error / 2)
    assert ds.resolved.all()
    assert (ds.status == 0).all()


def test_default_is_the_curve_at_the_best_regularisation(data):
    ds = hm.learning_curve(data)
    assert ds.n.values.tolist() == [100, 200, 400, 800, 1600]
    assert float(ds.regularisation) == data.best_regularisation
    assert (np.diff(ds.generalisation_error) < 0).all()
    assert ds.attrs["usable"] == 1
    assert all(ds[name].attrs["long_name"] for name in ds.data_vars)


def test_no_regularisation_is_least_squares(data):
    """With more samples than features: the known error of least squares with an intercept."""
    ds = hm.learning_curve(data, n=[400, 3000], regularisation=0)
    floor = float(data.forecast.plain.at(np.zeros(1)).bias[0])
    n = ds.n.values
    expected = floor * (1 + 1 / n) / (1 - P / (n - 1))
    np.testing.assert_allclose(ds.generalisation_error, expected, rtol=0.03)


def test_misclassification_of_a_mixture():
    """Prior 0.3, direction of the means among few strong columns, n = 4 N."""
    p, spread = 40, np.arange(1, 41) ** -0.3

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
        return rng.standard_normal((n, p)) * spread + 0.5 * y[:, None] * (np.arange(p) < 5), y

    test, labels = draw(20000, 99)
    measured = np.mean(
        [np.mean(Sklearn(p).fit(*draw(800, s)).predict(test) * labels <= 0) for s in range(5)]
    )
    found = [hm.Data(*draw(200, 10 + s)).forecast.at(800, np.ones(1)).value[0] for s in range(8)]
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(measured, abs=3 * error)
    assert error < 0.1 * measured


def test_misclassification_follows_the_scores_of_classes(classes):
    """At n = N it is what smoothed left-out scores show, written out."""
    lam, wrong = np.array([0.3]), 0.0
    scores = classes.y - classes.ridge.path(lam).left_out[:, 0]
    for label in (-1, 1):
        s = scores[classes.y == label]
        h = len(s) ** -0.2
        smooth = stats.norm(s.mean() + np.sqrt(1 - h**2) * (s - s.mean()), h * s.std())
        wrong += np.sum(smooth.cdf(0) if label > 0 else smooth.sf(0)) / 250
    assert classes.forecast.at(250, lam).value[0, 0] == pytest.approx(wrong, rel=0.05)


def test_a_normal_shape_gives_normal_errors():
    q, one = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)[:, None], np.full(4000, 1 / 4000)
    normal = Shape(np.zeros(1), (q, q), (0.3 * one, 0.7 * one), (np.full(1, 1e-3),) * 2)
    found = normal.wrong(np.ones(2), (np.array([1.0, 3.0]), np.array([2.0, 0.5])), np.full(2, 2.0))
    expected = 0.3 * stats.norm.cdf([-0.5, -1.5]) + 0.7 * stats.norm.cdf([-1.0, -0.25])
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.slow
def test_errors_of_classes_are_parts_misclassified(classes):
    ds = hm.learning_curve(classes, n=[250, 1000], regularisation=1.0, on_refusal="keep")
    fit = [
        np.sign(
            Sklearn(30.0)
            .fit(np.delete(classes.X, i, 0), np.delete(classes.y, i))
            .predict(classes.X[[i]])[0]
        )
        for i in range(0, 250)
    ]
    wrong = np.mean(np.array(fit) != classes.y)
    assert float(ds.generalisation_error_leave_one_out) == pytest.approx(wrong, abs=1e-12)
    assert ds.generalisation_error.values[0] == pytest.approx(wrong, abs=0.06)
    assert (ds.generalisation_error_high <= 1).all()
    bar = ds.generalisation_error_high - ds.generalisation_error
    assert (bar >= ds.generalisation_error_leave_one_out_stderr).all()
    off = np.abs(ds.generalisation_error.values[0] - wrong)
    assert (bar.values >= off).all()


@pytest.mark.slow
def test_other_numbers_of_random_features():
    """Half and twice the random features of the sample, against fits with such features."""
    d, p, n = 40, 150, 300
    rng = np.random.default_rng(3)
    theta = rng.standard_normal(d) / np.sqrt(d)

    def draw(n, F):
        c = rng.standard_normal((n, d))
        return np.tanh(c @ F / np.sqrt(d)), c @ theta + 0.4 * rng.standard_normal(n)

    for other in (75, 300):
        guesses, truths = [], []
        for _ in range(6):
            F = rng.standard_normal((d, p))
            seen = hm.Data(*draw(n, F), random_features=True)
            guesses.append(seen.forecast.at(n, np.array([0.3]), other).value[0, 0])
            F = rng.standard_normal((d, other))
            fit = Sklearn(0.3 * other).fit(*draw(n, F))
            X, y = draw(4000, F)
            truths.append(np.mean((y - fit.predict(X)) ** 2))
        assert np.mean(guesses) == pytest.approx(np.mean(truths), rel=0.06)


@pytest.mark.slow
def test_as_many_features_as_there_are_change_nothing():
    data = hm.Data(*gaussian(120, 2), random_features=True)
    at = {"n": 240, "regularisation": 0.5, "on_refusal": "keep"}
    ds = hm.learning_curve(data, p=[P // 2, P, 2 * P], **at)
    alone = hm.learning_curve(data, **at)
    assert float(ds.generalisation_error[1]) == float(alone.generalisation_error)
    near = data.forecast.at(240, np.array([0.5]), P + 1e-6).value[0, 0]
    readings = data.forecast.at(240, np.array([0.5]))
    assert near == pytest.approx(readings.value[0, 0], abs=1.01 * abs(readings.halved[0, 0]))
    assert float(ds.generalisation_error[0]) > float(ds.generalisation_error[2])


@pytest.mark.slow
def test_more_of_a_kernel_than_the_features_show_is_not_guessed():
    data = hm.Data(*gaussian(200, 3), random_features=True)
    ds = hm.learning_curve(
        data, n=2000, regularisation=[0, 10.0], p=[P, 100 * P], on_refusal="keep"
    )
    found = ds.generalisation_error.transpose("regularisation", "p").values
    assert np.isnan(found).tolist() == [[False, True], [False, False]]
    assert (ds.status.values == 3).sum() == 1
    assert not ds.resolved.values[np.isnan(ds.generalisation_error.values)].any()


@pytest.mark.slow
def test_what_more_samples_would_show_too_little_of_is_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 300)) * np.arange(1, 301) ** -0.4
    data = hm.Data(X, X[:, :40].sum(1))
    ds = hm.learning_curve(data, n=[80, 5000], regularisation=0.05, on_refusal="keep")
    assert ds.resolved.values.tolist() == [True, False]
    assert ds.status.values[1] in (1, 2)


@pytest.mark.slow
def test_outliers_are_refused_unless_kept():
    X, y = gaussian(150, 1)
    y = y.copy()
    y[:3] += 40
    data = hm.Data(X, y)
    assert not data.usable
    with pytest.raises(
        UnusableDataError, match="heavy tails: a few rows make up much of the error"
    ):
        hm.learning_curve(data, n=300)
    kept = hm.learning_curve(data, n=[75, 300], on_refusal="keep")
    assert kept.status.values.tolist() == [0, 2]
    assert (hm.learning_curve(data, n=75).status == 0).all()  # within the sample


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 2}, "n = 2.0 is not allowed: it must be at least 3"),
        ({"n": -5}, "n = -5.0 is not allowed: it must be positive"),
        ({"regularisation": "best"}, "numbers or 'loo'"),
        ({"regularisation": -1}, "regularisation = -1.0"),
        ({"loss": "hinge"}, "loss = 'hinge' is not allowed: it must be a loss for regression"),
        ({"loss": "huber"}, "loss = 'huber' is not allowed: it must be 'square'"),
        ({"p": 10}, "Data\\(..., random_features=True\\)"),
        ({"on_refusal": "ignore"}, "'raise' or 'keep'"),
    ],
)
def test_arguments_that_make_no_sense(data, options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        hm.learning_curve(data, **options)


def test_only_data_have_curves():
    with pytest.raises(InvalidArgumentError, match=r"hiddenmanifold\.Data"):
        hm.learning_curve(np.eye(3))
