"""Tables as they come: what is kept, encoded, filled or left out, and the same in scikit-learn."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import hiddenmanifold as hm
from hiddenmanifold.data.preparation import MOST_LEVELS, prepared, scaling_hint

N = 120
RNG = np.random.default_rng(0)
Y = RNG.standard_normal(N)


def messy():
    """A table with a column of every kind."""
    rng = np.random.default_rng(1)
    gaps = rng.random(N) < 0.2
    return pd.DataFrame(
        {
            "rownames": np.arange(1, N + 1),
            "age": rng.normal(40, 10, N).round(1),
            "income": pd.Series(rng.normal(size=N)).where(~gaps),
            "rooms": pd.array(rng.integers(1, 6, N), dtype="Int64"),
            "children": pd.array(np.where(gaps, None, rng.integers(0, 4, N)), dtype="Int64"),
            "owner": rng.choice(["yes", "no"], N),
            "status": pd.Categorical(rng.choice(["single", "married", "widowed"], N)),
            "region": pd.Series(rng.choice(["n", "e", "s"], N), dtype=object).where(~gaps),
            "member": rng.random(N) < 0.5,
            "same": 3,
            "word": "x",
            "never": np.nan,
            "town": rng.choice([f"t{k}" for k in range(40)], N),
            "id": [f"#{k:03d}" for k in range(N)],
            "account": 7 * rng.permutation(N) + 1000,
            "day": pd.date_range("2020-01-01", periods=N),
            "month": pd.period_range("2020-01", periods=N, freq="M"),
            "price": [f"${1.25 * k:,.2f}" if k % 5 else "?" for k in range(N)],
            "pair": [[k, k] for k in range(N)],
            "wave": rng.normal(size=N) + 1j,
            "exact": [Decimal(int(k)) / 8 for k in rng.integers(0, 50, N)],
            "written": [f"{k % 28 + 1}.{k % 12 + 1}.2021" for k in range(N)],
        }
    )


def test_every_kind_of_column_is_treated_and_told():
    with pytest.warns(UserWarning) as caught:
        data = hm.Data(messy(), Y)
    filled = int(messy().income.isna().sum())
    assert data.notes == [
        "left out 3 columns that do not vary: same, word, never",
        "left out 1 column that counts the rows: rownames",
        "left out 3 columns of dates: day, month, written",
        "left out 1 column of numbers written as text (give digits alone, and leave missing cells "
        "empty): price",
        "left out 2 columns of neither real numbers nor text: pair, wave",
        "left out 2 columns of identifiers, all different: id, account",
        "left out 1 column of text with more than 12 levels: town",
        "encoded 3 columns of text as 8 columns of 0 and 1: owner, status, region",
        f"filled {2 * filled} missing values in 2 columns with medians, and flagged them in "
        "2 further columns: income, children",
    ]
    assert str(caught[0].message) == "; ".join(data.notes)
    assert data.columns == [
        *("age", "income", "rooms", "children", "member", "exact"),
        *("income is missing", "children is missing"),
        *("owner = yes", "status = married", "status = single", "status = widowed"),
        *("region = e", "region = missing", "region = n", "region = s"),
    ]
    frame = pd.DataFrame(data.X, columns=data.columns)
    np.testing.assert_array_equal(frame["owner = yes"], messy().owner == "yes")
    np.testing.assert_array_equal(frame["region = missing"], messy().region.isna())
    gaps = messy().income.isna()
    assert (frame["income"][gaps] == messy().income.median()).all()
    np.testing.assert_array_equal(frame["income"][~gaps], messy().income[~gaps])


@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize("scale", [None, "standard"])
def test_the_same_in_scikit_learn(scale):
    data = hm.Data(messy(), Y, scale=scale)
    np.testing.assert_allclose(data.preparation.fit_transform(messy()), data.X, atol=1e-12)
    other = messy().sample(frac=0.5, random_state=1)
    fitted = data.preparation.fit(messy())
    np.testing.assert_allclose(fitted.transform(other), data.scaled(other), atol=1e-12)
    model = make_pipeline(data.preparation, RidgeClassifier()).fit(messy(), Y > 0)
    assert model.predict(other).shape == (len(other),)


def test_a_table_that_needs_nothing_is_taken_as_it_is():
    X = RNG.standard_normal((N, 4))
    for table in (X, pd.DataFrame(X, columns=[*"abcd"]), X.tolist()):
        data = hm.Data(table, Y)
        assert data.notes == []
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.preparation.fit_transform(table), X)


class Foreign:
    """A data frame of another library, as Polars."""

    def __init__(self, frame):
        self.columns, self.shape, self.dtypes = [*frame], frame.shape, [*frame.dtypes]
        self.to_pandas = frame.copy


@pytest.mark.filterwarnings("ignore:left out")
def test_data_frames_of_other_libraries_are_taken():
    data = hm.Data(Foreign(messy()), Y)
    np.testing.assert_array_equal(data.X, hm.Data(messy(), Y).X)
    np.testing.assert_array_equal(data.scaled(Foreign(messy())), data.X)


def test_arrays_are_numbers_that_were_chosen_on_purpose():
    X = np.column_stack([np.arange(N), RNG.permutation(N), RNG.standard_normal(N), np.ones(N)])
    X[3, 2] = np.nan
    table, found = prepared(X)
    assert found.left_out == {"constant": (3,)}
    assert found.columns == ["0", "1", "2", "2 is missing"]
    assert table[3, 2] == np.nanmedian(X[:, 2])
    np.testing.assert_array_equal(table[:, 3], np.isnan(X[:, 2]))


def test_text_of_few_levels_is_encoded_and_of_more_left_out():
    levels = np.array([f"level {k}" for k in range(MOST_LEVELS + 1)])
    few, many = (levels[np.arange(N) % count] for count in (MOST_LEVELS, MOST_LEVELS + 1))
    table, found = prepared(pd.DataFrame({"few": few, "many": many}))
    assert table.shape == (N, MOST_LEVELS)
    assert (table.sum(1) == 1).all()
    assert found.left_out == {"levels": ("many",)}


def test_levels_that_the_sample_lacks_are_zero():
    frame = pd.DataFrame({"a": Y, "b": np.where(Y > 0, "x", np.where(Y > -1, "y", "z"))})
    _, found = prepared(frame)
    np.testing.assert_array_equal(
        found.apply(pd.DataFrame({"a": [1.0], "b": ["new"]})), [[1.0, 0.0, 0.0, 0.0]]
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (pd.DataFrame({"b": [1.0]}), "X lacks column a"),
        (pd.DataFrame({"a": [np.nan], "b": [1.0]}), "1 value in column that cannot be used: a"),
        (pd.DataFrame({"a": ["x"], "b": [1.0]}), "a column a that is not numeric"),
    ],
)
def test_other_rows_that_do_not_fit_are_refused(other, words):
    data = hm.Data(pd.DataFrame({"a": Y, "b": RNG.standard_normal(N)}), Y)
    with pytest.raises(hm.InvalidArgumentError, match=words):
        data.scaled(other)


def test_other_rows_may_be_an_array_if_columns_need_no_name():
    X = RNG.standard_normal((N, 3))
    data = hm.Data(pd.DataFrame(X, columns=[*"abc"]), Y, scale="standard")
    np.testing.assert_array_equal(data.scaled(X), data.X)
    with pytest.raises(hm.InvalidArgumentError, match=r"has shape \(120, 2\): give 3 columns"):
        data.scaled(X[:, :2])
    with pytest.warns(UserWarning, match="left out"):
        mixed = hm.Data(pd.DataFrame(X, columns=[*"abc"]).assign(same=1), Y)
    with pytest.raises(hm.InvalidArgumentError, match="is an array: give a data frame"):
        mixed.scaled(np.column_stack([X, np.ones(N)]))


def test_a_scale_of_one_s_own_has_no_transformer():
    data = hm.Data(RNG.standard_normal((N, 2)), Y, scale=[1.0, 2.0])
    with pytest.raises(hm.InvalidArgumentError, match="not available for a scale of your own"):
        _ = data.preparation


def test_columns_of_different_size_are_pointed_out():
    X = RNG.standard_normal((N, 3)) * [1.0, 1e4, 50.0]
    assert scaling_hint(X, [*"abc"]).startswith("the standard deviation of b is ")
    assert scaling_hint(X[:, [0, 2]], [*"ac"]) == ""
    assert "times that of 0" in hm.Data(X, Y).hint
    assert hm.Data(X, Y, scale="standard").hint == ""


@pytest.mark.parametrize("labels", [np.array([3, 1, 2]), np.array(["c", "a", "b"])])
def test_one_class_against_all_others(labels):
    X, y = RNG.standard_normal((N, 3)), labels[np.arange(N) % 3]
    for positive in (labels[0], str(labels[0])):
        data = hm.Data(X, y, positive=positive)
        assert data.classes == ("others", str(labels[0]))
        assert not data.guessed
        np.testing.assert_array_equal(data.y > 0, y == labels[0])
    with pytest.raises(hm.InvalidArgumentError, match="one of the labels: "):
        hm.Data(X, y, positive="d")
    with pytest.raises(hm.InvalidArgumentError, match="cannot be given for a regression"):
        hm.Data(X, Y, task="regression", positive=Y[0])


def test_features_of_a_pipeline_are_kept_whatever_their_kind():
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import FunctionTransformer

    frame = pd.DataFrame({"count": np.arange(N), "x": Y})
    keep = FunctionTransformer().set_output(transform="pandas")
    pipeline = make_pipeline(keep, Ridge()).fit(frame, Y)
    assert hm.Data.from_pipeline(pipeline, frame, Y).p == 2
