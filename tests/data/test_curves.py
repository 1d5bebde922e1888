"""Learning curves of real data, against populations that are known."""

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.linear_model import Ridge as Sklearn

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, UnusableDataError
from hiddenmanifold.data.extrapolation import Fits
from hiddenmanifold.data.misclassification import by_columns, confusion
from hiddenmanifold.data.ridge import Ridge

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


@pytest.mark.slow
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


@pytest.mark.slow
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
    level = float(ds.generalisation_error_leave_one_out)
    n = np.append(200, ds.n.values)
    expected = (1 + 1 / n) / (1 - P / (n - 1))
    np.testing.assert_allclose(ds.generalisation_error, level * expected[1:] / expected[0])


@pytest.mark.slow
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
    found = [hm.Data(*draw(200, 10 + s)).predicted(800, np.ones(1)).value[0] for s in range(8)]
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(measured, abs=3 * error)
    assert error < 0.1 * measured


def test_misclassification_follows_the_scores_of_classes(classes):
    """At n = N it is what smoothed left-out scores show, written out."""
    lam, wrong = np.array([0.3]), 0.0
    scores = classes.y - classes.ridge.path(lam).left_out[:, 0, 0]
    for label in (-1, 1):
        s = scores[classes.y == label]
        h = len(s) ** -0.2
        smooth = stats.norm(s.mean() + np.sqrt(1 - h**2) * (s - s.mean()), h * s.std())
        wrong += np.sum(smooth.cdf(0) if label > 0 else smooth.sf(0)) / 250
    wrong = (250 * wrong + 0.5) / 251  # half an error
    assert classes.predicted(250, lam).value[0, 0] == pytest.approx(wrong, rel=0.01)


def test_scores_around_their_means_give_normal_errors():
    """Drawn normal scores of two classes, moved to a smaller variance."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(200_000) < 60_000, 1.0, -1.0)
    scores = np.where(y > 0, 1.0, -2.0) + 2.0 * rng.standard_normal(y.size)
    columns = by_columns((y - scores)[:, None, None])
    for change, deviation in ((0.0, 2.0), (-0.5, np.sqrt(3.0))):
        found = confusion((y > 0).astype(int), columns, np.array([change]))[:, :, 0]
        expected = stats.norm.cdf([-2 / deviation, -1 / deviation])
        np.testing.assert_allclose([found[0, 1], found[1, 0]], expected, rtol=0.01)
        np.testing.assert_allclose(found.sum(1), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "lam"), [(20, 0.1), (60, 0.5), (150, 1.0)])
def test_the_influence_of_rows_is_that_of_weights(p, lam):
    """Rows counted a little more, by fits that know weights: the derivative of log E."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, p)) * np.arange(1, p + 1) ** -0.5
    y = X[:, :5].sum(1) + rng.standard_normal(80)
    n, at = np.array([80.0, 320.0]), np.full(2, lam)
    found = Fits.of(Ridge.of(X, y), n, at).influence
    repeated = [
        np.log(Fits.of(Ridge.of(np.delete(X, i, 0), np.delete(y, i)), n, at).error)
        for i in range(80)
    ]
    jackknife = np.mean(repeated, 0) - np.array(repeated)
    size = np.sqrt(np.sum(found**2, axis=0) / np.sum(jackknife**2, axis=0))
    assert (np.abs(np.log(size)) < 0.25).all()
    together = np.sum(found * jackknife, axis=0)
    together /= np.sqrt(np.sum(found**2, axis=0) * np.sum(jackknife**2, axis=0))
    assert (together > 0.9).all()


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
    assert (bar >= 0.8 * ds.generalisation_error_leave_one_out_stderr).all()
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
            guesses.append(seen.predicted(n, np.array([0.3]), other).value[0, 0])
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
    near = data.predicted(240, np.array([0.5]), P + 1e-6).value[0, 0]
    assert near == pytest.approx(float(alone.generalisation_error), rel=1e-6)
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
        UnusableDataError,
        match="precision: the mean square error with 8 times the rows is known to ± .* only",
    ):
        hm.learning_curve(data, n=300)
    kept = hm.learning_curve(data, n=[75, 300], on_refusal="keep")
    assert kept.status.values.tolist() == [0, 2]
    assert (hm.learning_curve(data, n=75).status == 0).all()  # within the sample


def test_bars_of_what_is_not_resolved_hold_a_part_of_the_way():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 90))
    data = hm.Data(X, X @ rng.standard_normal(90) / 9 + 0.3 * rng.standard_normal(60))
    how = {"n": [60, 120, 480], "regularisation": [1e-3, 1e3], "on_refusal": "keep"}
    ds = hm.learning_curve(data, **how)
    assert ds.resolved.values.tolist() == [[True, True], [False, True], [False, True]]
    for name in ("generalisation_error", "generalisation_error_fall"):
        far = ds.sel(n=480, regularisation=1e-3)
        way = abs(np.log(float(far.generalisation_error_fall)))
        assert way > 0.5
        assert np.log(far[f"{name}_high"] / far[name]) > 0.45 * way


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 2}, "n = 2.0 is not allowed: it must be at least 3"),
        ({"n": -5}, "n = -5.0 is not allowed: it must be positive"),
        ({"regularisation": "best"}, "numbers or 'loo'"),
        ({"regularisation": -1}, "regularisation = -1.0"),
        ({"loss": "hinge"}, "loss = 'hinge' is not allowed: it must be a loss for regression"),
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


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_losses_with_a_kink_fall_without_a_jump_at_the_size_of_the_sample(loss):
    """Their level is that of nine tenths of the rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    y = X @ rng.standard_normal(40) / 6 + 0.5 * rng.standard_normal(100)
    data = hm.Data(X, np.sign(y) if loss == "hinge" else y)
    ds = hm.learning_curve(
        data, n=np.arange(91, 104), regularisation=0.3, loss=loss, on_refusal="keep"
    )
    steps = np.diff(np.log(ds.generalisation_error))
    assert (steps < 0).all()
    assert steps.min() > 2.0 * steps.max()


def test_a_training_loss_of_zero_has_no_bar():
    rng = np.random.default_rng(0)
    X = 1e6 * rng.standard_normal((60, 300))
    data = hm.Data(X, X @ rng.standard_normal(300) / 1e6)
    how = {"n": [3, 30], "loss": "huber", "regularisation": 1e-6, "on_refusal": "keep"}
    ds = hm.learning_curve(data, **how)
    assert (ds.training_loss == 0).all() and (ds.training_loss_high == 0).all()
