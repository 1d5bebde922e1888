"""What counts as data, what is refused, and what the diagnosis says."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.data import diagnosis, validation
from hiddenmanifold.data.misclassification import classes_of
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.losses import REGISTRY as LOSSES

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 12))
Y = X[:, 0] + X[:, 1] + 0.5 * RNG.standard_normal(120)


def spoilt(array, where, value):
    out = np.array(array, dtype=object if isinstance(value, str) else float)
    out[where] = value
    return out


def test_arrays_tables_and_sparse_matrices_are_one():
    data = hm.Data(X, Y)
    for other in (pd.DataFrame(X), sparse.csr_array(X), X.tolist(), X.astype(np.float32)):
        np.testing.assert_allclose(hm.Data(other, pd.Series(Y)).X, data.X, rtol=1e-6)
    with_bools = pd.DataFrame(X).assign(flag=X[:, 0] > 0)
    assert hm.Data(with_bools, Y).p == 13


def test_the_task_is_guessed_and_said():
    data = hm.Data(X, Y)
    assert (data.task, data.guessed, data.classes) == ("regression", True, None)
    assert repr(data) == "Data(120 samples of 12 features, regression (guessed from y))"
    words = hm.Data(X, np.where(Y > 0, "yes", "no"))
    assert (words.task, words.classes) == ("classification", ("no", "yes"))
    assert "classes 'no' and 'yes'" in repr(words)
    assert set(words.y) == {-1.0, 1.0}
    assert ((words.y == 1) == (Y > 0)).all()
    told = hm.Data(X, np.where(Y > 0, 3, 7), task="regression", random_features=True)
    assert repr(told) == "Data(120 samples of 12 random features, regression)"


FIVE = np.arange(120) % 5


@pytest.mark.parametrize("y", [FIVE, FIVE.astype(float) - 2, FIVE % 3, np.arange(120) % 10])
def test_few_whole_numbers_may_be_amounts_or_classes_and_are_not_guessed(y):
    with pytest.raises(
        InvalidArgumentError, match=r"task cannot be guessed .* different whole numbers \("
    ):
        hm.Data(X, y)
    told = hm.Data(X, y, task="regression")
    assert (told.task, told.guessed, told.classes) == ("regression", False, None)
    np.testing.assert_array_equal(told.y, y)
    several = hm.Data(X, y, task="classification")
    assert (several.task, several.classes) == ("classes", tuple(np.unique(y)))
    np.testing.assert_array_equal(several.y.argmax(1), np.unique(y, return_inverse=True)[1])
    np.testing.assert_array_equal(several.y.sum(1), 1.0)


@pytest.mark.parametrize("y", [np.arange(120) % 11, FIVE / 2, FIVE + 0.5])
def test_many_numbers_and_fractions_are_a_regression(y):
    assert (hm.Data(X, y).task, hm.Data(X, y).guessed) == ("regression", True)


@pytest.mark.parametrize("labels", [("no", "yes", "so"), ("0", "1", "2"), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("kind", ["category", object])
def test_words_objects_and_categories_are_classes(labels, kind):
    y = pd.Series([labels[k] for k in FIVE % 3]).astype(kind)
    three = hm.Data(X, y)
    assert (three.task, three.classes) == ("classes", tuple(sorted(labels)))
    assert sorted(three.rows_of_classes) == sorted(np.bincount(FIVE % 3))
    assert "classification (guessed from y), 3 classes (" in repr(three)
    two = hm.Data(X, y.where(y != labels[2], labels[0]))
    assert two.classes == labels[:2]


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (spoilt(X, (3, 4), np.inf), Y, "X has 1 infinite value in column 4: replace them"),
        (
            pd.DataFrame(X).assign(age=[np.inf, *Y[1:]], size=[np.inf, -np.inf, *Y[2:]]),
            Y,
            "3 infinite values in columns age, size",
        ),
        (np.ones((120, 3)), Y, "no column that can be used: left out 3 columns that do not vary"),
        (pd.DataFrame({"day": pd.date_range("2020", periods=120)}), Y, "1 column of dates: day"),
        (pd.DataFrame(X, columns=[*"aabcdefghijk"]), Y, r"several columns of one name \(a\)"),
        (pd.DataFrame(index=range(120)), Y, r"X has shape \(120, 0\): give a table"),
        (
            spoilt(X, (3, 4), np.inf),
            spoilt(Y, 5, np.inf),
            "X and y cannot be used: X has 1 infinite value .* Also, y has 1 missing or infinite",
        ),
        (spoilt(X, (0, 0), "many"), Y, "a table of numbers"),
        (X[:49], Y[:49], "X has 49 rows: at least 50 are needed"),
        (X[:, 0], Y, "a table"),
        (None, Y, "a table"),
        (X, Y[:100], r"y has shape \(100,\): give one label for each of the 120"),
        (X, np.ones(120), "one value only, 1.0"),
        (X, [f"w{k // 4}" for k in range(120)], "30 classes of fewer than 5 samples .*: merge"),
        (X, [f"w{k}" for k in range(120)], "y has 120 different words in 120 rows, which are no c"),
        (X, np.arange(120).astype(str), "y holds numbers written as text, as 0: convert"),
        (X, [f"{y:.2f}".replace(".", ",") for y in Y], "y holds numbers written as text, as -0,"),
        (X, pd.date_range("2020", periods=120).astype(str), "y holds dates written as text"),
        (spoilt(X, (3, 4), np.inf), FIVE, "X and task cannot be used: X has .* Also, task cannot"),
        (X, np.append(np.arange(119) % 3, 3).astype(str), "1 sample of class 3: .* 5: merge rare"),
        (X, spoilt(Y, 5, np.inf), "y has 1 missing or infinite value: drop"),
        (X, [None, *Y[1:]], "y has 1 missing or infinite value: drop"),
        (X, np.arange(120) < 9, "9 samples of class True: each class needs at least 10"),
        (X, np.array(["a", 1] * 60, dtype=object), "labels of one kind"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(X, y, words):
    with pytest.raises(InvalidArgumentError, match=words):
        hm.Data(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "ranking"}, "'regression', 'classification' or None"),
        (
            {"task": "classification"},
            r"y has fractions \(.*\), which are no classes: give task='reg",
        ),
        ({"scale": "unit"}, "scale = 'unit'"),
        ({"scale": [1.0, 2.0]}, "12 positive numbers"),
    ],
)
def test_options_that_make_no_sense(options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        hm.Data(X, Y, **options)


def test_words_are_no_labels_of_a_regression():
    with pytest.raises(
        InvalidArgumentError, match="y is not numeric: task='regression' needs numbers"
    ):
        hm.Data(X, np.where(Y > 0, "yes", "no"), task="regression")


def test_what_would_take_too_long_is_refused_before_it_is_touched():
    endless = np.broadcast_to(np.zeros(1), (20_000, 20_000))
    with pytest.raises(InvalidArgumentError, match="would need about 29 GB"):
        hm.Data(endless, np.zeros(20_000))


def test_the_user_s_scale_is_the_only_one():
    np.testing.assert_array_equal(hm.Data(X, Y).X, X)
    assert hm.Data(10 * X, Y).best_regularisation == pytest.approx(
        100 * hm.Data(X, Y).best_regularisation, rel=1e-2
    )
    data = hm.Data(X, Y, scale="standard")
    np.testing.assert_allclose(data.X.std(0), 1.0)
    np.testing.assert_allclose(data.scaled(X[:3]), data.X[:3])
    np.testing.assert_allclose(
        hm.Data(X, Y, scale=np.full(12, 2.0)).scaled(X), data.X * X.std(0) / 2
    )


def test_data_cannot_be_changed():
    data = hm.Data(X, Y)
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1.0
    assert X.flags.writeable


def test_good_data_are_usable():
    diagnosis = hm.Data(X, Y).diagnosis
    assert diagnosis.usable
    assert {f.verdict for f in diagnosis} <= {"pass", "warn"}
    assert diagnosis["signal"].verdict == "pass"
    assert str(diagnosis).endswith("→ usable")
    table = pd.DataFrame(diagnosis.to_dict())
    assert table.question[0] == "leverage"
    assert table.meaning.str.len().min() > 10
    with pytest.raises(KeyError):
        diagnosis["nothing"]


def refusals(X, y):
    return {finding.question for finding in hm.Data(X, y).diagnosis.refusals}


@pytest.mark.slow
def test_a_few_rows_that_decide_are_noticed():
    wild = X.copy()
    wild[:3] *= 100
    for scale in (None, "standard"):  # which is not advised to those who have it
        finding = hm.Data(wild, Y, scale=scale).diagnosis["effective rows"]
        assert finding.verdict == "warn"
        assert ("scale='standard'" in finding.meaning) == (scale is None)
    labels = Y.copy()
    labels[:2] += 30
    assert hm.Data(X, labels).diagnosis["heavy tails"].verdict == "warn"
    assert refusals(X, labels) == {"precision"}


@pytest.mark.slow
def test_rows_of_high_leverage_refuse_if_their_errors_are_large_and_warn_if_they_are_small():
    size = np.where(np.arange(120) % 6 == 0, 6.0, 1.0)
    noise = np.random.default_rng(3).standard_normal(120)
    table = X * size[:, None]
    for power, verdict in ((1, "refuse"), (0, "pass"), (-8, "warn")):
        data = hm.Data(table, table.sum(1) + 3.0 * noise * size**power)
        finding = data.diagnosis["leverage"]
        assert finding.verdict == verdict
        path = data.best_fit
        ratio = float(path.generalised[0] / path.error[0])
        assert (ratio < 0.88, ratio > 1.12) == (power == 1, power == -8)


def test_copies_are_noticed():
    assert refusals(np.vstack([X, X[:60]]), np.append(Y, Y[:60])) >= {"duplicate rows"}
    assert "duplicate rows" not in refusals(np.vstack([X, X[:2]]), np.append(Y, Y[:2]))
    other = Y[:60] + 1.0  # the same features with another label are no copy
    assert "duplicate rows" not in refusals(np.vstack([X, X[:60]]), np.append(Y, other))


def test_rows_of_two_kinds_fail_the_backtest():
    rng = np.random.default_rng(1)
    scale = np.where(rng.random(160) < 0.06, 30.0, 1.0)[:, None]
    wild = rng.standard_normal((160, 60)) * scale
    assert refusals(wild, wild.sum(1) + rng.standard_normal(160))


def test_pure_noise_is_called_so():
    data = hm.Data(X, np.random.default_rng(8).standard_normal(120))
    assert data.diagnosis["signal"].verdict == "warn"
    ds = hm.learning_curve(data, n=[120, 1000], on_refusal="keep")
    np.testing.assert_allclose(ds.generalisation_error, data.y.var(), rtol=0.15)


def test_a_rare_class_is_no_outlier():
    rng = np.random.default_rng(2)
    y = np.arange(300) < 20
    X = rng.standard_normal((300, 15)) + 1.5 * y[:, None] * (np.arange(15) < 3)
    assert "heavy tails" not in refusals(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "most"), [((60, 40), 2.0), ((60, 300), 1.5), ((100, 10_000), 1.5)]
)
def test_small_and_wide_tables_get_finite_answers(shape, most):
    rng = np.random.default_rng(4)
    X = rng.standard_normal(shape) * np.arange(1, shape[1] + 1) ** -0.5
    ds = hm.learning_curve(hm.Data(X, X[:, 0] + rng.standard_normal(shape[0])), on_refusal="keep")
    assert np.isfinite(ds.generalisation_error_high).all()
    assert (ds.generalisation_error[1:] < most * float(ds.generalisation_error_leave_one_out)).all()


@pytest.mark.slow
def test_separable_classes_are_no_trouble():
    y = np.sign(Y)
    apart = X + 20 * y[:, None] * (np.arange(12) == 0)
    ds = hm.learning_curve(hm.Data(apart, y), on_refusal="keep")
    np.testing.assert_allclose(ds.generalisation_error, 0.5 / 121, rtol=1e-3)
    assert (ds.generalisation_error_high >= 2.9 / 121).all()


@pytest.mark.slow
def test_units_of_features_and_labels_are_free():
    one = hm.learning_curve(hm.Data(X, Y), n=500, regularisation=1.0)
    other = hm.learning_curve(hm.Data(1e6 * X, 1e-5 * Y), n=500, regularisation=1e12)
    assert float(other.generalisation_error) == pytest.approx(
        1e-10 * float(one.generalisation_error), rel=1e-3
    )


@pytest.mark.slow
def test_the_diagnosis_does_not_depend_on_units():
    one, other = hm.Data(X, Y).diagnosis, hm.Data(1e3 * X, 1e-2 * Y).diagnosis
    assert [f.question for f in one] == [f.question for f in other]
    np.testing.assert_allclose([f.value for f in one], [f.value for f in other], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "ask",
    [
        lambda data: data.usable,
        lambda data: hm.learning_curve(data, n=60),
        lambda data: hm.plan(data, target_gain=0.1, on_refusal="keep"),
        lambda data: hm.backtest(data, n=[30], seeds=2),
        lambda data: data.ridge,
    ],
    ids=["usable", "learning_curve", "plan", "compare", "ridge"],
)
def test_linear_algebra_of_a_sample_keeps_to_one_thread(ask, monkeypatch):
    seen = set()

    def looking(work):
        def looked(*args, **options):
            pools = threadpool_info()
            seen.update(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
            return work(*args, **options)

        return looked

    monkeypatch.setattr(Ridge, "path", looking(Ridge.path))
    monkeypatch.setattr(np.linalg, "svd", looking(np.linalg.svd))
    with threadpool_limits(2):
        ask(hm.Data(X, Y))
    assert seen == {1}


@pytest.mark.slow
def test_the_best_regularisation_of_a_loss_is_sought_once():
    data, found, seconds = hm.Data(X, Y > 0), [], []
    for loss in ("hinge", "hinge", "square"):
        began = time.process_time()
        found.append(data.best_for(LOSSES[loss]()))
        seconds.append(time.process_time() - began)
    assert found[0] == found[1] == hm.Data(X, Y > 0).best_for(LOSSES["hinge"]())
    assert found[2] == hm.Data(X, Y > 0).best_for(LOSSES["square"]()) != found[0]
    assert seconds[1] < 0.01 * seconds[0]


def test_cost_grows_with_all_that_is_done():
    cost = hm.Data(X, Y).cost
    sizes = [(100, 10), (1000, 10), (1000, 500), (1000, 2000), (2000, 2000)]
    seconds = [cost.of(*size).seconds for size in sizes]
    assert seconds == sorted(seconds)
    assert cost.of_cuts(8, 250, 10) > cost.of_cuts(2, 250, 10) > 0
    # where decompositions decide, there is that of all and those of four halves, (1/2)³ each
    many, one = cost.of(4000, 8000).seconds, validation._seconds(4000, 8000)
    assert one < many < 2.0 * one


# what the numbers of a sample are worth, in closed form


def test_an_error_made_by_one_row_is_uncertain_by_itself():
    """The standard error of a mean to which a single row contributes is that mean."""
    y = 1e-4 * Y
    y[17] = 1.0
    found = hm.Data(X, y).predicted(120.0, np.array([1e12]))  # nothing is fitted but the mean
    expected = np.hypot(0.82, 0.45 / np.sqrt(120))  # bars take four fifths of it, and 0.45/√N
    assert found.deviation[1, 0] == pytest.approx(expected, rel=0.01)


def test_labels_in_another_order_than_their_rows_are_pointed_out():
    frame, labels = pd.DataFrame(X), pd.Series(Y)
    with pytest.warns(UserWarning, match="labels belong to rows by their position"):
        hm.Data(frame, labels[::-1])
    hm.Data(frame, labels)
    hm.Data(frame, labels.set_axis(np.arange(120) + 1000))


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_rates_beyond_chance_are_those_of_chance(loss):
    y = np.arange(120) % 2 > 0  # whichever row is left out, the others make its class the rarer
    plan = hm.plan(hm.Data(X[:, 2:], y), target_gain=0.1, loss=loss)
    error, fall = (plan.curve[f"generalisation_error{end}"] for end in ("", "_fall"))
    assert plan.curve["generalisation_error_leave_one_out"] > 0.5
    assert error[0] == 0.5
    np.testing.assert_allclose(fall, 1.0, atol=0.02)
    np.testing.assert_allclose(error, 0.5 * fall, rtol=1e-12)


def test_classes_may_be_sorted():
    y = Y + 2.0 * RNG.standard_normal(120) > 0
    rows = np.argsort(y, kind="stable")
    assert hm.Data(X[rows], y[rows]).diagnosis["order of rows"].verdict == "pass"


def test_no_more_than_half_is_predicted_to_be_misclassified():
    """Without a signal the mean of the other labels is on the side of the other class."""
    ds = hm.learning_curve(
        hm.Data(X, np.arange(120) % 2), n=120, regularisation=1e12, on_refusal="keep"
    )
    assert float(ds.generalisation_error_leave_one_out) == 1.0
    assert float(ds.generalisation_error_high) == float(ds.generalisation_error) == 0.5
    assert float(ds.generalisation_error_fall_high) <= 1.0


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (1e200 * X, Y, "X has values of order .*: divide by their scale first"),
        (X, 1e-200 * Y, "y has values of order .*: divide by their scale first"),
        (X + 1j, Y, "X is complex"),
        (X, Y + 1j, "y is complex"),
        (X, pd.date_range("2020", periods=len(Y)), "y holds dates or times"),
        (X, [[1, 2]] * (len(Y) - 1) + [[1]], "y has rows of different lengths"),
        ([[1, 2]] * (len(Y) - 1) + [[1]], Y, "a table of numbers"),
        (X[:, 0], Y, "give a table with a row per sample and a column per feature$"),
        (X, np.array([np.inf, *Y[1:]], dtype=object), "y has 1 missing or infinite value"),
        (X, np.ma.masked_array(Y, mask=Y > 1.0), "y has .* missing or infinite values"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(X, y, words):
    with pytest.raises(InvalidArgumentError, match=words):
        hm.Data(X, y)


def test_masked_entries_are_missing_ones():
    mask = np.zeros(X.shape, dtype=bool)
    mask[3, 1] = True
    with pytest.warns(UserWarning, match="filled 1 missing value"):
        masked = hm.Data(np.ma.masked_array(X, mask=mask), Y)
    with pytest.warns(UserWarning, match="filled 1 missing value"):
        np.testing.assert_array_equal(masked.X, hm.Data(np.where(mask, np.nan, X), Y).X)


@pytest.mark.parametrize("positive", [[1, 2], np.array([1, 2])])
def test_one_class_is_positive(positive):
    with pytest.raises(InvalidArgumentError, match="one of the labels"):
        hm.Data(X, FIVE, positive=positive)


def test_fewer_random_features_can_be_unregularised():
    """Where all features fit without regularisation, κ vanishes with as many directions left."""
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((400, 8))
    seen = np.tanh(inputs @ rng.standard_normal((8, 60)))
    y = inputs.sum(1) + rng.standard_normal(400)
    data = hm.Data(seen, y, random_features=True)
    at = {"n": [200, 400], "p": [10, 30], "on_refusal": "keep"}
    least = hm.learning_curve(data, **at, regularisation=0).generalisation_error
    tiny = hm.learning_curve(data, **at, regularisation=1e-9).generalisation_error
    np.testing.assert_allclose(least, tiny, rtol=1e-4)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_heavy_tails_are_those_beyond_normal_errors_within_classes(share):
    """Squared errors of drawn normal ones vary as much as is expected of two classes."""
    rng = np.random.default_rng(5)
    y = np.where(rng.random(400_000) < share, 1.0, -1.0)
    error = np.where(y > 0, 2.0, -0.7) + 0.8 * rng.standard_normal(y.size)
    drawn = (error**2).std() / (error**2).mean()
    assert diagnosis._spread_of_classes(classes_of(y), error[:, None]) == pytest.approx(
        drawn, rel=0.01
    )
