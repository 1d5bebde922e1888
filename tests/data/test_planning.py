"""How many samples a target needs, and predictions held against rows they never saw."""

import math
import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError, UnusableDataError
from hiddenmanifold.data.planning import answer, crossing

P = 40


def linear(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    return X, X @ np.ones(P) / np.sqrt(P) + noise * rng.standard_normal(n)


@pytest.fixture(scope="module")
def scarce():
    """Hardly more samples than features, little noise."""
    return hm.Data(*linear(100, 0.3))


@pytest.fixture(scope="module")
def noisy():
    return hm.Data(*linear(400, 2.0))


@pytest.mark.slow
def test_more_samples_help_where_they_are_scarce(scarce):
    plan = hm.plan(scarce, target_gain=0.2)
    assert plan.limited_by == "samples"
    assert 100 < plan.n_low <= plan.n <= plan.n_high
    assert plan.n_high < 1000
    at = np.array([plan.regularisation])
    now, then = (scarce.predicted(n, at).value[0, 0] for n in (100.0, plan.n))
    assert then == pytest.approx(0.8 * now, rel=0.02)
    assert plan.curve.n.values.tolist() == [100, 200, 400, 800]
    assert "needs about" in str(plan)
    assert "The mean square error is " in plan.sentence
    assert "with 8N" in repr(plan)
    easy = hm.plan(scarce, target_error=1.01 * now)
    assert easy.n <= 100


@pytest.mark.slow
def test_noise_is_not_lowered_by_samples(noisy):
    plan = hm.plan(noisy, target_error=0.1)
    assert plan.limited_by == "features"
    assert (plan.n, plan.n_low, plan.n_high) == (math.inf, math.inf, math.inf)
    assert "cannot be reached with more samples alone" in plan.sentence
    assert plan.regularisation == noisy.best_regularisation


@pytest.mark.slow
def test_a_plan_s_errors_have_three_digits_and_no_powers_of_ten():
    X, y = linear(200, 0.5)
    sentence = hm.plan(hm.Data(X, 100 * y), target_gain=0.5).sentence
    found = re.findall(r"\d[\d.e+]*", sentence.partition(" with the N")[0])
    assert [float(text) for text in found] == [float(f"{float(text):.3g}") for text in found]
    assert len(found) == 3
    assert all(text.isdigit() and len(text) == 4 for text in found)


@pytest.mark.slow
def test_a_plan_says_what_guessing_the_larger_class_gives():
    rng = np.random.default_rng(4)
    y = np.where(np.arange(200) < 30, "fraud", "fine")
    data = hm.Data(rng.normal(size=(200, 3)) + (y == "fraud")[:, None], y)
    sentence = hm.plan(data, target_gain=0.1).sentence
    assert "The misclassification rate is " in sentence
    assert "samples given; always predicting fine gives 0.15; with 2N it " in sentence


def test_crossings():
    sizes, values = np.array([10.0, 100.0, 1000.0]), np.array([3.0, 2.0, 1.0])
    assert crossing(sizes, values, 1.5) == pytest.approx(10**2.5)
    assert crossing(sizes, values, 4.0) == 10.0
    assert crossing(sizes, values, 0.5) == math.inf
    assert crossing(sizes, np.array([1.0, 2.0, 0.5]), 1.0) > 100  # not before a later rise


@pytest.mark.parametrize(
    ("n", "words"),
    [
        ((500.0, 200.0, 900.0), "needs about 500 samples (200 to 900)"),
        ((512.0, 208.0, math.inf), "at least 210 samples, most likely about 510; the upper end is"),
        ((math.inf, 2345.0, math.inf), "at least 2300 samples and may be out of reach"),
        ((math.inf,) * 3, "cannot be reached with more samples alone"),
        ((100.0,) * 3, "needs at most 100 samples"),
    ],
)
def test_intervals_in_words(n, words):
    assert words in answer(400, n, 0.9, relative=True)
    assert answer(400, n, 0.9, relative=True).startswith("An error lower by 10 %")


def test_a_rate_of_one_or_more_is_no_target(noisy):
    if noisy.classes is None:
        noisy = hm.Data(noisy.X, noisy.y > np.median(noisy.y))
    with pytest.raises(hm.InvalidArgumentError, match="10.6 is no misclassification rate"):
        hm.plan(noisy, target_error=10.6)


@pytest.mark.parametrize(
    "targets",
    [{}, {"target_error": 1.0, "target_gain": 0.1}, {"target_error": 0.0}, {"target_gain": 1.5}],
)
def test_one_target_that_makes_sense(scarce, targets):
    with pytest.raises(InvalidArgumentError, match="target_"):
        hm.plan(scarce, **targets)


def test_plans_are_refused_like_curves(scarce):
    y = scarce.y.copy()
    y[:2] += 50
    with pytest.raises(UnusableDataError, match="precision"):
        hm.plan(hm.Data(scarce.X, y), target_gain=0.1)


@pytest.mark.slow
def test_hold_out_measures_rows_that_were_not_seen(noisy):
    ds = hm.backtest(noisy, n=[100, 200], regularisation=[1.0, 10.0], seeds=3)
    assert ds.generalisation_error.shape == (2, 2)
    assert (ds.inside_2 >= 2 / 3).all()
    np.testing.assert_allclose(ds.generalisation_error, ds.generalisation_error_theory, rtol=0.35)
    measured = []
    for number in range(3):
        rest = np.random.default_rng((0, number)).permutation(400)[100:]
        fit = Ridge(10.0 * P).fit(noisy.X[rest[:200]], noisy.y[rest[:200]])
        test = rest[200:]
        measured.append(np.mean((noisy.y[test] - fit.predict(noisy.X[test])) ** 2))
    found = ds.sel(n=200, regularisation=10.0)
    assert float(found.generalisation_error) == pytest.approx(np.mean(measured), rel=1e-6)
    error = np.std(measured, ddof=1) / np.sqrt(3)
    assert float(found.generalisation_error_stderr) == pytest.approx(error, rel=1e-5)


@pytest.mark.slow
def test_hold_out_counts_how_often_the_truth_is_within_its_bars(noisy):
    ns, lams = [20, 60, 100, 200], [0.1, 1.0, 10.0]
    ds = hm.backtest(noisy, n=ns, regularisation=lams, seeds=4, seed=1)
    off = np.empty((4, 4, 3))  # in standard deviations of prediction and measurement
    for number in range(4):
        order = np.random.default_rng((1, number)).permutation(400)
        sample, rest = order[:100], order[100:]
        data = hm.Data(noisy.X[sample], noisy.y[sample])
        for i, j in np.ndindex(4, 3):
            found = data.predicted(float(ns[i]), np.array([lams[j]]))
            train, test = rest[: ns[i]], rest[ns[i] :]
            fit = Ridge(lams[j] * P).fit(noisy.X[train], noisy.y[train])
            squares = (noisy.y[test] - fit.predict(noisy.X[test])) ** 2
            measured = np.mean(squares)
            noise = np.std(squares) / np.sqrt(len(test)) / measured
            bar = np.hypot(found.deviation[0, 0], noise)
            off[number, i, j] = abs(np.log(measured / found.value[0, 0])) / bar
    assert ((off > 2) & (off < 3)).any()
    np.testing.assert_array_equal(ds.inside_1, (off <= 1).mean(0))
    np.testing.assert_array_equal(ds.inside_2, (off <= 2).mean(0))


def test_hold_out_of_classes_counts_errors():
    X, y = linear(240, 0.3, seed=1)
    ds = hm.backtest(hm.Data(X, y > 0), seeds=2)
    assert ds.n.values.tolist() == [60, 120]
    assert (ds.generalisation_error < 0.5).all()
    assert ds.attrs["rows"] == 60


@pytest.mark.slow
def test_hold_outs_of_the_fewest_and_the_most_samples(noisy):
    ds = hm.backtest(noisy, n=[3, 280], regularisation=1.0, seeds=2)
    assert (ds.generalisation_error > 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"n": [390]},
            r"\[390\] is not allowed: it must be whole numbers from 3 to 280",
        ),
        ({"n": [2]}, "from 3 to 280"),
        ({"n": [281]}, "from 3 to 280"),
        ({"seeds": 1}, "seeds"),
        ({"regularisation": "optimal"}, "regularisation = 'optimal'"),
        ({"rows": 30}, "rows"),
        ({"rows": 380}, "rows = 380 leave 20 of 400 rows to fit and to test: 23 or more must"),
        ({"rows": 999}, "rows = 999 leave 0 of 400 rows"),
    ],
)
def test_hold_outs_that_make_no_sense(noisy, options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        hm.backtest(noisy, **options)


@pytest.mark.slow
def test_a_rare_class_is_seen_by_every_cut():
    rng = np.random.default_rng(4)
    y = np.where(np.arange(300) < 30, 1, -1)
    X = rng.normal(size=(300, 5)) + y[:, None]
    data = hm.Data(X, y)
    assert hm.backtest(data, seeds=3).attrs["rows"] == data.own_rows == 150
    assert hm.Data(X[:100], np.arange(100.0)).own_rows == 50
    with pytest.raises(
        InvalidArgumentError, match=r"rows = 60 are too few: .* must see 10 of each"
    ):
        hm.backtest(data, rows=60, seeds=3)


@pytest.mark.slow
def test_a_level_that_is_off_does_not_doubt_a_gain():
    rng = np.random.default_rng(5)
    y = rng.choice([-1, 1], 200)
    data = hm.Data(rng.normal(size=(200, 20)) + 0.4 * y[:, None], y)
    at = np.array([data.N, 4 * data.N]), np.ones(2)
    found = data.predicted(*at)
    assert (found.fall[:, 0] == 1).all()
    assert (found.fall_deviation[:, 0] == 0).all()
    assert (found.fall_deviation[:, 1] > 0).all()
    assert (found.fall_deviation[:, 1] < found.deviation[:2, 1]).all()


def test_models_still_need_a_regularisation():
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    with pytest.raises(TypeError, match="'regularisation'"):
        hm.compare(model, n_over_d=1.0, p_over_d=1.0)
