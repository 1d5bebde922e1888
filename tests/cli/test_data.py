"""Of real data the command gives the numbers of the library, or says what is wrong with a file."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold.cli import app
from hiddenmanifold.cli.exit_codes import Code

N, P = 120, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P))
Y = X[:, 0] + RNG.standard_normal(N)
NAMES = [*"abcdef", "price"]


def run(path, *args, label="price", code=Code.COMPLETE, command="data"):
    given = [str(arg) for arg in (command, path, "--label", label, *args)]
    result = CliRunner().invoke(app, given, prog_name="hiddenmanifold")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def table():
    return pd.DataFrame(np.column_stack([X, Y]), columns=NAMES)


@pytest.fixture
def path(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture
def exact(tmp_path):
    np.save(tmp_path / "table.npy", np.column_stack([X, Y]))
    return tmp_path / "table.npy"


def told(result):
    """The one line that says what is wrong."""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.slow
def test_it_prints_the_report_of_the_library_writes_it_and_draws_the_curve(path, tmp_path):
    given = ("--seeds", 2, "--target-error", 1.0, "--plot", tmp_path / "a.svg")
    out = run(path, *given, "--report", tmp_path / "a.html").stdout
    made = hm.report(hm.Data(X, Y), seeds=2, target_error=1.0, title="table.csv: price")
    assert out == f"{made}\n"
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == made.to_html()
    drawing = (tmp_path / "a.svg").read_text()
    words = ("± one standard deviation", "measured on held-out rows", "leave-one-out")
    for text in (*words, "mean square error", "120 samples of 6 features"):
        assert text in drawing


@pytest.mark.slow
def test_a_table_follows_if_other_sizes_are_asked_for(path, tmp_path):
    out = run(path, "--seeds", 2, "--n", 480, "--report", tmp_path / "a.md").stdout
    data = hm.Data(X, Y)
    curve = hm.learning_curve(data, n=[30, 120, 480])
    check = hm.backtest(data, n=[15, 30], seeds=2)
    for value in curve.generalisation_error.values:
        assert f"{value:.4g}" in out
    low, high = curve.generalisation_error_low[2], curve.generalisation_error_high[2]
    assert f"{low:.4g} to {high:.4g}" in out
    assert f"{check.generalisation_error.values[1, 0]:.2f} ±" in out
    assert f"{curve.generalisation_error_leave_one_out:.2f} ±" in out
    assert "](a.svg)" in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert (tmp_path / "a.svg").exists()


@pytest.mark.slow
def test_files_have_the_numbers_of_the_library(exact, tmp_path):
    lams = [0.1, 1.0]
    given = ("--lam", "0.1,1", "--n", "60,240", "--seeds", 2, "--scale", "standard")
    files = ("--csv", "-", "--json", tmp_path / "out.json", "--plot", tmp_path / "out.svg")
    result = run(exact, *given, *files, "--x", "regularisation", "--show", "test_loss", label="6")
    assert not result.stderr
    data = hm.Data(X, Y, scale="standard")
    sizes = [15, 30, 60, 120, 240]
    expected = hm.learning_curve(data, n=sizes, regularisation=lams).to_dataframe().reset_index()
    found = pd.read_csv(io.StringIO(result.stdout), dtype=str)
    for name in expected.columns.drop(["status", "resolved"]):
        np.testing.assert_allclose(found[name].astype(float), expected[name], rtol=1e-12)
    assert set(found.status) == {"sample"}
    held = hm.backtest(data, n=[15, 30], regularisation=lams, seeds=2)
    measured = found.generalisation_error_measured.astype(float).to_numpy().reshape(5, 2)
    np.testing.assert_allclose(measured[:2], held.generalisation_error, rtol=1e-12)
    left_out = expected.generalisation_error_leave_one_out.to_numpy().reshape(5, 2)
    np.testing.assert_allclose(measured[3], left_out[3], rtol=1e-12)
    assert np.isnan(measured[[2, 4]]).all()
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["attributes"]["data"] == data.description
    assert content["points"][0]["status"] == "sample"
    assert "test loss" in (tmp_path / "out.svg").read_text()


@pytest.mark.slow
def test_few_whole_numbers_need_a_task(table, tmp_path):
    path = tmp_path / "grades.csv"
    table.assign(price=np.round(Y).clip(-2, 2)).to_csv(path, index=False)
    asked = told(run(path, code=Code.BAD_INPUT))
    assert "whole numbers (-2, -1, 0, 1, 2): give 'regression' if" in asked
    kept = run(path, "--seeds", 0, "--task", "regression").stdout
    assert "mean square error" in kept
    classes = run(path, "--seeds", 0, "--task", "classification").stdout
    assert "5 classes (-2, -1, 0, 1, 2)" in classes


@pytest.mark.slow
def test_a_refusal_ends_with_its_reasons_unless_it_is_overruled(table, tmp_path):
    path = tmp_path / "copies.csv"
    pd.concat([table] * 2).to_csv(path, index=False)
    result = run(path, "--seeds", 0, code=Code.INCOMPLETE)
    assert "nothing is predicted beyond these 240 samples" in told(result)
    assert "duplicate rows: 50 % of the rows repeat another one" in told(result)
    assert "Nothing is predicted beyond these 240 rows" in result.stdout
    assert "240 = N" in result.stdout
    assert "480 = 2N" not in result.stdout
    kept = run(path, "--seeds", 0, "--keep", "--n", 1920).stdout
    assert [line.split()[-1] for line in kept.splitlines() if line.startswith(" 1920 ")] == [
        "refused"
    ]
    assert "With twice the rows" in kept


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_softmax_of_several_classes_with_scikit_learn_s_strength(table, tmp_path):
    words = np.array(["ash", "elm", "oak"])[np.digitize(Y, [-1.0, 0.5])]
    table.assign(price=words).to_csv(tmp_path / "trees.csv", index=False)
    result = run(tmp_path / "trees.csv", "--loss", "softmax", "--lam", 0.5, "--seeds", 0, "--keep")
    data = hm.Data(X, words)
    ds = hm.learning_curve(data, n=240, regularisation=0.5, loss="softmax", on_refusal="keep")
    assert f"240 = 2N   {float(ds.generalisation_error):.3f}" in result.stdout
    assert f"LogisticRegression(C={1 / (0.5 * P):.4g})" in result.stdout
    assert "Misclassification rate by class" in result.stdout
    result = run(tmp_path / "trees.csv", "--loss", "hinge", code=Code.BAD_INPUT)
    assert "'square' or 'softmax' for more than two classes" in told(result)


@pytest.mark.slow
def test_too_few_of_a_class_to_hold_out_are_no_reason_to_stop(tmp_path):
    y = np.where(np.arange(N) < 14, "rare", "often")
    np.savez(tmp_path / "rare.npz", X=X + (y == "rare")[:, None], y=y)
    result = run(tmp_path / "rare.npz", "--seeds", 2, label="y")
    assert "No rows were held out for a backtest: rows = 60" in " ".join(result.stdout.split())
    assert "classes 'often' and 'rare'" in result.stdout


def written(table, path):
    """The table as a file, by the ending of its name."""
    values = table.to_numpy()
    {
        ".csv": lambda: table.to_csv(path, index=False),
        ".tsv": lambda: table.to_csv(path, index=False, sep="\t"),
        ".npy": lambda: np.save(path, values),
        ".npz": lambda: np.savez(path, X=values[:, :-1], price=values[:, -1], rows=np.arange(N)),
    }[path.suffix]()


@pytest.mark.parametrize(
    ("name", "label"),
    [("a.csv", "price"), ("a.csv", "6"), ("a.tsv", "price"), ("a.npy", "-1"), ("a.npz", "price")],
)
def test_every_kind_of_file_is_read(table, tmp_path, name, label):
    written(table, tmp_path / name)
    features, labels = hm.read_table(tmp_path / name, label)
    np.testing.assert_allclose(features, X, rtol=1e-14)
    np.testing.assert_allclose(labels, Y, rtol=1e-14)


@pytest.mark.parametrize("separator", [",", ";"])
def test_marks_among_numbers_are_missing_values(tmp_path, separator):
    comma = "," if separator == ";" else "."
    rows = [f"1{comma}5|?|a", "2|3|-", f"-|0{comma}25|b", "4|–|a"]
    text = "\n".join(["size|rate|kind", *rows]).replace("|", separator)
    (tmp_path / "marks.csv").write_text(text, encoding="utf-8")
    table, kind = hm.read_table(tmp_path / "marks.csv", "kind")
    np.testing.assert_array_equal(table["size"], [1.5, 2.0, np.nan, 4.0])
    np.testing.assert_array_equal(table["rate"], [np.nan, 3.0, 0.25, np.nan])
    assert kind.tolist() == ["a", "-", "b", "a"]  # a word among words


def test_text_without_names_or_with_other_marks_is_read(table, tmp_path):
    table.to_csv(tmp_path / "bare.csv", index=False, header=False)
    table.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    table.to_csv(tmp_path / "european.csv", index=False, sep=";", decimal=",")
    table.to_csv(tmp_path / "bare_european.csv", index=False, header=False, sep=";", decimal=",")
    spaced = table.rename(columns={"price": " price "})
    spaced.to_csv(tmp_path / "marked.csv", index=False, sep="|", encoding="utf-8-sig")
    lines = (tmp_path / "bare.csv").read_text().replace("\n", "\n\n")
    (tmp_path / "gaps.csv").write_text(f"\n\n{lines}")
    bare = ("bare.csv", "bare_european.csv", "gaps.csv")
    for name in (*bare, "semicolons.csv", "european.csv", "marked.csv"):
        label = "6" if name in bare else "price"
        features, labels = hm.read_table(tmp_path / name, label)
        np.testing.assert_allclose(features, X, rtol=1e-14)
        np.testing.assert_allclose(labels, Y, rtol=1e-14)


def test_columns_that_say_nothing_are_left_out_and_named(table, tmp_path):
    table.insert(2, "same", "x")
    table.to_csv(tmp_path / "a.csv")  # with the numbers of rows in front
    with pytest.warns(UserWarning) as caught:
        data = hm.Data(*hm.read_table(tmp_path / "a.csv", "price"))
    np.testing.assert_allclose(data.X, X, rtol=1e-14)
    assert [str(w.message) for w in caught] == [
        "left out 1 column that does not vary: same; "
        "left out 1 column that counts the rows: Unnamed: 0"
    ]


def test_parquet_needs_a_library(path, table, monkeypatch):
    def absent(_):
        raise ImportError

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(hm.InvalidArgumentError, match="install pyarrow"):
        hm.read_table(path.with_suffix(".parquet"), "price")
    monkeypatch.setattr(pd, "read_parquet", lambda _: table)
    features, _ = hm.read_table(path.with_suffix(".parquet"), "price")
    np.testing.assert_allclose(features, X, rtol=1e-14)


BAD_FILES = {
    "absent.csv": (None, "cannot be read: No such file"),
    "table.xls": ("", "has no known ending: give a file that ends in .csv"),
    "empty.csv": ("", "it is empty"),
    "names.csv": ("a,price\n", "X has 0 rows: at least 50"),
    "ragged.csv": ("a,price\n1,2\n1,2,3,4\n", "cannot be read: Error tokenizing"),
    "title.csv": ("made by me\na,price\n1,2\n", "nothing may stand above the names"),
    "blanks.csv": ("a price\n1 2\n", "leads to one column, a price: columns are separated by"),
    "western.csv": ("gr\xf6\xdfe,price\n1,2\n", "it is not text in UTF-8: save it as such"),
    "garbage.npy": ("no array", "they could run code"),
    "torn.npy": ("\x93NUMPY\x02\x00\x06\x00\x00\x00{'a':(\n", "cannot be read"),
    "garbage.npz": ("no array", "they could run code"),
    "empty.npy": ("", "cannot be read"),
    "wide.csv": ("1," * 100_000, "a line has 100001 columns; .npy may have as many"),
    "wide_below.csv": ("a,b\n" + "1," * 100_000, "a line has 100001 columns"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_in_one_sentence(tmp_path, name):
    content, sentence = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    assert sentence in told(run(tmp_path / name, code=Code.BAD_INPUT))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((10**12, 10**6), "does not fit into memory, or is shorter than it says"),
        ((0, 10**7), "it is empty"),
    ],
)
def test_headers_that_promise_too_much_or_nothing_are_refused(tmp_path, shape, reason):
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.write(tmp_path / "a.npy", "X.npy")
    for name in ("a.npy", "a.npz"):
        with pytest.raises(hm.InvalidArgumentError, match=reason):
            hm.read_table(tmp_path / name)


class Trap:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("trapped"),)


def test_pickles_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = np.array([[Trap(), 1.0]], dtype=object)
    np.save("a.npy", objects, allow_pickle=True)
    np.savez("a.npz", X=objects, y=np.ones(1), allow_pickle=True)
    for name, label in (("a.npy", "0"), ("a.npz", "y")):
        assert "they could run code" in told(run(name, label=label, code=Code.BAD_INPUT))
    assert not Path("trapped").exists()


@pytest.mark.slow
def test_labels_and_arrays_that_are_not_there_are_named(path, tmp_path):
    line = told(run(path, label="prize", code=Code.BAD_INPUT))
    assert "(0 to 6) of a column: a, b, c, d, e, f, price; did you mean 'price'?" in line
    assert "(0 to 6)" in told(run(path, label="7", code=Code.BAD_INPUT))
    np.savez(tmp_path / "a.npz", A=X, B=X, y=Y)
    assert "an array of the file: A, B, y" in told(
        run(tmp_path / "a.npz", label="z", code=Code.BAD_INPUT)
    )
    assert "must have y and a table X of features" in told(
        run(tmp_path / "a.npz", label="y", code=Code.BAD_INPUT)
    )
    np.save(tmp_path / "vector.npy", Y)
    assert "an array of two dimensions" in told(
        run(tmp_path / "vector.npy", label="0", code=Code.BAD_INPUT)
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as in a shell
def test_a_file_as_it_comes(table, tmp_path):
    rng = np.random.default_rng(0)
    table["a"] = table["a"].where(rng.random(N) > 0.1)
    table["colour"] = rng.choice(["red", "blue", "green"], N)
    table["day"] = pd.date_range("2020", periods=N).astype(str)
    table["grade"] = np.digitize(table["price"], table["price"].quantile([0.3, 0.7]))
    table.drop(columns="price").to_csv(tmp_path / "a.csv")
    shown = run(tmp_path / "a.csv", "--positive", 2, "--seeds", 0, "--keep", label="grade")
    assert not shown.stderr
    said = " ".join(shown.stdout.split())
    for note in (
        "Left out 1 column that counts the rows: Unnamed: 0",
        "Left out 1 column of dates: day",
        "Encoded 1 column of text as 3 columns of 0 and 1: colour",
        "missing values in 1 column with medians, and flagged them in 1 further column: a",
    ):
        assert note in said
    assert "always predicting others" in said
    line = told(run(tmp_path / "a.csv", "--positive", 7, label="grade", code=Code.BAD_INPUT))
    assert "positive = '7' is not allowed: it must be one of the labels: 0, 1, 2" in line


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_columns_of_very_different_size_are_pointed_out(table, tmp_path):
    table["a"] *= 1e4
    table.to_csv(tmp_path / "a.csv", index=False)
    shown = run(tmp_path / "a.csv", "--seeds", 0, "--keep")
    assert "with scale='standard' all columns count alike" in " ".join(shown.stdout.split())
    shown = run(tmp_path / "a.csv", "--seeds", 0, "--keep", "--quiet")
    assert "with --scale standard all columns count alike" in " ".join(shown.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--seeds", 1), "--seeds = 1 is not allowed"),
        (("--lam", "best"), "in a geometric series; or the word loo"),
        (("--target-error", 1, "--target-gain", 0.1), "cannot be combined with --target-error"),
        (("--show", "q_w"), "one of generalisation_error, test_loss"),
        (("--loss", "cosine"), "one of 'square', 'logistic'"),
        (("--plot", "picture.gif"), "a file name ending in .png"),
        (("--report", "report.pdf"), "a file name ending in .html or .md"),
    ],
)
def test_what_makes_no_sense_is_refused(path, options, sentence):
    assert sentence in run(path, "--quiet", *options, code=Code.BAD_INPUT).stderr


@pytest.mark.slow
def test_labels_may_be_in_a_file_of_their_own(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    pd.DataFrame({"who": "abc", "price": Y}).to_csv(tmp_path / "more.csv", index=False)
    (tmp_path / "y.txt").write_text("\n".join(["price", *map(repr, Y.tolist())]))
    asked = ("--seeds", 0, "--csv", "-")
    tables = {
        run(tmp_path / "X.npy", *asked, label=label).stdout
        for label in (
            str(tmp_path / "y.npy"),
            str(tmp_path / "y.txt"),
            f"{tmp_path / 'more.csv'}:price",
        )
    }
    (table,) = tables
    curve = hm.learning_curve(hm.Data(X, Y), n=[N / 2, N, 2 * N, 4 * N, 8 * N])
    given = pd.read_csv(io.StringIO(table)).generalisation_error
    np.testing.assert_allclose(given, curve.generalisation_error, rtol=1e-12)


@pytest.mark.slow
def test_labels_that_are_missing_or_do_not_fit_are_told(path, tmp_path):
    result = CliRunner().invoke(app, ["data", str(path)], prog_name="hiddenmanifold")
    assert result.exit_code == Code.BAD_INPUT
    assert "--label is missing: give the name or number of the labels: a, b, c" in told(result)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "short.npy", Y[:5])
    cases = {
        "short.npy": "leads to 5 labels, and the table has 120 rows",
        "none.npy": "cannot be read: No such file",
        "X.npy": "has more than labels: name the column",
        "X.parquet": "has more than labels",
    }
    for name, words in cases.items():
        result = run(tmp_path / "X.npy", label=str(tmp_path / name), code=Code.BAD_INPUT)
        assert words in told(result)


@pytest.mark.slow
def test_training_is_followed_and_its_best_time_told(exact, tmp_path):
    given = ("--times", "0.01,0.1,1,10", "--n", "60,120")
    out = run(exact, *given, "--csv", tmp_path / "a.csv", label="6", command="data-training").stdout
    ds = hm.training_curve(hm.Data(X, Y), times=[0.01, 0.1, 1.0, 10.0], n=[60, 120])
    for n in (60, 120):
        assert f"time {float(ds.optimal_time.sel(n=n)):.3g} (n = {n}, reg" in out
    written = pd.read_csv(tmp_path / "a.csv", comment="#").generalisation_error
    np.testing.assert_allclose(written, ds.generalisation_error.values.ravel(), rtol=1e-12)


def test_training_too_late_for_more_rows_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "wide.npy", rng.standard_normal((50, 80)))
    late = ("--times", "0.01,1e5", "--n", "200", "--scale", "standard")
    result = run(
        tmp_path / "wide.npy", *late, label="0", code=Code.BAD_INPUT, command="data-training"
    )
    assert "does not show the error of more samples at times as late as 1e+05" in told(result)
