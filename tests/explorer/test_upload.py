"""Uploaded files: read without running anything, within budgets, and learned from."""

import io
import json
import pickle
import tempfile
import time
import zipfile

import numpy as np
import pandas as pd
import pytest

import hiddenmanifold as hm
from hiddenmanifold import losses
from hiddenmanifold.explorer import data_panel, guard, server, stream, upload, upload_loss
from hiddenmanifold.parallel.processes import DeadlineError

N, P = 160, 6


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = X @ np.ones(P) + 0.5 * rng.standard_normal(N)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(P)]).assign(y=y)


def as_csv(table):
    return table.to_csv(index=False).encode()


def as_npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def as_npz(**arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        for name, array in arrays.items():
            written.writestr(f"{name}.npy", as_npy(array))
    return file.getvalue()


def test_one_class_of_several_is_told_from_the_others():
    rows = "\n".join(f"{k % 3 + 0.1 * (k % 7)},{k % 5},{'abc'[k % 3]}" for k in range(90))
    content = f"u,v,y\n{rows}\n".encode()
    assert upload.sample("a.csv", content).data().classes == ("a", "b", "c")
    own = upload.sample("a.csv", content, positive="b")
    assert own.data().classes == ("others", "b")
    assert "positive='b'" in own.program


def test_files_of_all_kinds_are_the_same_sample(table):
    X, y = table.drop(columns="y").to_numpy(), table.y.to_numpy()
    files = {
        "a.csv": as_csv(table[["y", *table.columns[:-1]]]),  # by its name, not by its place
        "b.csv": table.to_csv(index=False, sep=";").encode(),
        "a.npy": as_npy(table.to_numpy()),
        "a.npz": as_npz(X=X, y=y),
        "A.NPZ": as_npz(any=table.to_numpy()),
    }
    for name, content in files.items():
        own = upload.sample(name, content)
        np.testing.assert_allclose(np.asarray(own.X), X, rtol=1e-14)
        np.testing.assert_allclose(np.asarray(own.y), y, rtol=1e-14)
    first = upload.sample("a.npy", files["a.npy"], "0")
    np.testing.assert_array_equal(first.y, X[:, 0])
    named = upload.sample("a.csv", files["a.csv"], "x2")
    np.testing.assert_allclose(named.y, X[:, 2], rtol=1e-14)
    still = upload.sample("a.csv", as_csv(table.assign(still=1.0)))
    assert still.data().columns == list(table.columns[:-1])


@pytest.mark.parametrize(
    ("name", "content", "label", "allowed"),
    [
        ("a.exe", b"", "", r"\.csv or \.npy or \.npz"),
        ("a.csv", b"", "", "it is empty"),
        ("a.csv", b"\xff\xfe\x00\x01", "", "cannot be read"),
        ("a.csv", b"a,b\n1,2\n", "c", "of a column: a, b"),
        ("a.csv", b"a\n" + b"1\n" * (upload.MOST_ROWS + 1), "", "at most 20000 rows"),
        ("a.npy", as_npy(np.eye(upload.MOST_COLUMNS + 2)), "", "and 1000 columns"),
        ("a.npy", as_npy(np.zeros(5)), "", "two dimensions"),
        ("a.npy", as_npy(np.zeros((60, 3))), "3", "0 to 2"),
        ("a.npy", b"\x93NUMPY\x01\x00", "", "cannot be read"),
        ("a.npz", as_npz(X=np.zeros(5), y=np.zeros(5)), "", "two dimensions"),
        ("a.npz", as_npz(a=np.zeros((3, 10_000_000))), "", "at most 200 MB"),
        (
            "a.npy",
            bytes(upload.MOST_BYTES + 1),
            "",
            "at most 20 MB are allowed; rows drawn at random",
        ),
    ],
)
def test_what_cannot_be_read_or_is_too_much_is_refused_in_a_sentence(name, content, label, allowed):
    with pytest.raises(hm.InvalidArgumentError, match=allowed):
        upload.sample(name, content, label)


class Trap:
    def __reduce__(self):
        return pytest.fail, ("code of a file was run",)


def test_nothing_in_a_file_is_run():
    for content in (as_npy(np.array([[Trap()]], dtype=object)), pickle.dumps(Trap())):
        with pytest.raises(hm.InvalidArgumentError, match="could run code"):
            upload.sample("a.npy", content)
    formula = upload.sample("a.csv", b"=1+1,y\n__import__('os').abort(),1\n0,1\n")
    assert formula.X.iloc[0, 0] == "__import__('os').abort()"


def test_an_analysis_that_takes_long_is_refused(table, monkeypatch):
    own = upload.sample("a.csv", as_csv(table))
    seconds = own.data().cost.seconds
    monkeypatch.setattr(upload, "MOST_SECONDS", seconds / 2)
    with pytest.raises(
        hm.InvalidArgumentError, match="whose analysis needs about .* rows drawn at random"
    ):
        own.data()
    # the budget of rows and columns alone does not keep it short: missing values have flags
    most = hm.Data(np.eye(60), np.arange(60.0)).cost.of(upload.MOST_ROWS, 2 * upload.MOST_COLUMNS)
    assert most.seconds > upload.LONGEST / 2


def words(component):
    """All that a component of the page, or a list of them, shows."""
    if isinstance(component, str):
        return component
    if isinstance(component, list):
        return "\n".join(map(words, component))
    return words(component["props"]["children"])


@pytest.mark.parametrize(
    ("labels", "page", "used", "told"),
    [
        (2, "", losses.Logistic(), "Fitted with the logistic loss, as in Explore."),
        (2, "loss=hinge&pin=x", losses.Hinge(), "the hinge loss, as in Explore"),
        (2, "loss=softmax", losses.Logistic(), "which is for two classes what softmax is"),
        (2, "loss=poisson", losses.Square(), "poisson loss of Explore does not suit two classes"),
        (3, "loss=logistic", losses.Softmax(), "for more than two classes what logistic is"),
        (3, "loss=hinge", losses.SquaredHinge(), "fitted with the squared hinge loss instead"),
        (3, "loss=huber&loss.huber.delta=2", losses.Huber(2.0), "the huber loss, as in Explore"),
        (3, "loss=absolute", losses.Square(), "does not suit more than two classes"),
        (0, "loss=quantile&loss.quantile.level=0.7", losses.Quantile(0.7), "as in Explore"),
        (0, "", losses.Square(), "logistic loss of Explore does not suit numbers: fitted with the"),
        (0, "loss=<b>&loss.huber.delta=nan", losses.Square(), "does not suit numbers"),
        (2, "loss=huber&loss.huber.delta=nan", losses.Logistic(), "the logistic loss"),
    ],
)
def test_a_file_has_the_loss_of_the_page_where_it_suits_its_labels(labels, page, used, told):
    rng = np.random.default_rng(0)
    y = np.array([f"k{k}" for k in np.arange(60) % labels]) if labels else rng.normal(size=60)
    data = hm.Data(rng.normal(size=(60, 2)), y)
    loss, said = upload_loss.loss_of_file(data, "", page)
    assert loss == used
    assert told in said


def test_a_loss_that_is_chosen_for_a_file_comes_before_that_of_the_page(table):
    data = upload.sample("a.csv", as_csv(table)).data()
    assert upload_loss.loss_of_file(data, "absolute", "loss=huber") == (losses.Absolute(), "")
    with pytest.raises(hm.InvalidArgumentError, match="a loss for regression"):
        upload_loss.loss_of_file(data, "logistic", "")
    y = np.array(list("abc"))[np.arange(60) % 3]
    several = hm.Data(np.random.default_rng(0).normal(size=(60, 2)), y)
    assert upload_loss.loss_of_file(several, "logistic", "")[0] == losses.Softmax()


@pytest.mark.slow
def test_a_file_of_several_classes_has_a_row_for_each():
    rng = np.random.default_rng(0)
    k = np.arange(150) % 3
    columns = rng.standard_normal((150, 4)) + np.array([[0, 0], [1, 0], [0, 1]])[k] @ np.eye(2, 4)
    rows = "\n".join(
        f"{','.join(map(str, row))},<b>kind {j}" for row, j in zip(columns, k, strict=True)
    )
    found = data_panel.learned("a.csv", f"a<b>,b,c,d,y\n{rows}\n".encode(), "", "", 0.1)
    assert "softmax loss" in found["loss"]
    assert 'loss="softmax"' in found["python"]
    shown = words(found["report"])
    assert all(f"<b>kind {j}\n50\n" in shown for j in range(3))
    assert "misclassification rate" in found["headline"]
    assert "<b>" not in found["page"]


@pytest.mark.slow
def test_program_of_a_file_reproduces_its_report(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    content = as_csv(table.assign(still=0))
    (tmp_path / "<b>a.csv").write_bytes(content)
    given = {"page": "loss=huber&loss.huber.delta=0.5"}
    found = data_panel.learned("<b>a.csv", content, "", "", 0.1, **given)
    assert found["loss"] == "Fitted with the huber loss, as in Explore."
    assert "loss=hm.losses.Huber(delta=0.5)" in found["python"]
    names = {}
    with pytest.warns(UserWarning, match="does not vary: still"):
        exec(found["python"], names)
    report = names["report"]
    high, low, mean, dots, loo = found["data"]
    for trace, name in ((mean, ""), (high, "_high"), (low, "_low")):
        np.testing.assert_allclose(trace["x"], report.curve.n)
        np.testing.assert_allclose(trace["y"], report.curve[f"generalisation_error{name}"])
    np.testing.assert_allclose(dots["x"], report.backtest.n)
    np.testing.assert_allclose(dots["y"], report.backtest.generalisation_error.values[:, 0])
    left_out = float(report.curve.generalisation_error_leave_one_out)
    np.testing.assert_allclose(loo["y"], [left_out])
    assert loo["x"] == [N]
    assert capsys.readouterr().out == f"{report}\n"
    assert found["headline"] == report.headline
    assert found["page"] == report.to_html() == (tmp_path / "report.html").read_text("utf-8")
    assert "<b>" not in found["page"]
    shown = words(found["report"])
    for part in report.remarks:
        for sentence in (part.title, *part.sentences):
            assert sentence in shown
    assert "Left out 1 column that does not vary: still." in shown
    for row in report.tables[0].rows:
        assert "\n".join(row) in shown
    # noise has variance 1/4, which no number of samples lowers
    assert 0.25 < mean["y"][-1] < 1.1 * 0.25 * (1 + P / (8 * N)) + 0.1
    assert min(dots["y"]) > 0.2


@pytest.mark.slow
def test_where_nothing_can_be_said_beyond_the_sample_nothing_is_drawn(table):
    twice = pd.concat([table, table])
    found = data_panel.learned("a.csv", as_csv(twice), "", "", 0.1)
    assert max(found["data"][2]["x"]) == pytest.approx(2 * N)
    assert found["annotations"][0]["xanchor"] == "right"  # the axis ends there
    assert "Nothing is predicted beyond these 320 rows" in found["headline"]
    assert "of the rows repeat another one" in words(found["report"])


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "rare", "dots"), [(300, 40, 2), (200, 11, 0)])
def test_a_rare_class_is_measured_if_half_of_the_rows_show_enough_of_it(rows, rare, dots):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(rows) < rare, "fraud", "fine")
    table = pd.DataFrame(rng.normal(size=(rows, 3)) + (y == "fraud")[:, None]).assign(y=y)
    found = data_panel.learned("a.csv", as_csv(table), "", "", 0.1)
    measured = [trace for trace in found["data"] if "held-out" in trace.get("name", "")]
    assert [len(trace["x"]) for trace in measured] == [dots] * bool(dots)
    assert ("seeds=" in found["python"]) == bool(dots)


@pytest.mark.slow
def test_an_analysis_ends_at_its_budget_with_what_it_has(table, monkeypatch):
    monkeypatch.setattr(data_panel, "MOST_SECONDS", 0.0)
    found = data_panel.learned("a.csv", as_csv(table), "", "", 0.1)
    assert "Nothing is predicted beyond these 160 rows" in found["headline"]
    assert "longer than the time allowed" in words(found["report"])
    assert "The backtest was left out" in words(found["report"])
    assert not [trace for trace in found["data"] if "held-out" in trace.get("name", "")]


def test_few_whole_numbers_need_a_task_which_is_in_the_program(table):
    content = as_csv(table.assign(y=table.y.round().clip(-2, 2)))
    with pytest.raises(hm.InvalidArgumentError, match="task cannot be guessed .* whole numbers"):
        upload.sample("a.csv", content).data()
    told = upload.sample("a.csv", content, "y", "regression")
    assert told.data().task == "regression"
    assert told.program.splitlines() == [
        "X, y = hm.read_table('a.csv', 'y')",
        "data = hm.Data(X, y, task='regression', scale=\"standard\")",
    ]


def test_a_loss_of_the_page_that_takes_too_long_gives_way_to_the_square_one(monkeypatch):
    def learned(*asked, loss, **_):
        if loss != "square":
            raise DeadlineError("the computation was ended after 60 seconds")
        return {"loss": loss}

    def here(work, *given, **_):
        yield work(*given)

    def lines(**given):
        told = stream.learn("a.csv", b"", "", "", "10", **given)
        return [json.loads(line) for line in told if line.strip()]

    monkeypatch.setattr(stream, "learned", learned)
    monkeypatch.setattr(stream, "elsewhere", here)
    slow, found = lines()
    assert slow["slow"] == found["learning"]["loss"] == upload.QUICKER
    assert "ended after 60 seconds" in lines(loss="huber")[0]["error"]


@pytest.mark.slow
def test_an_upload_whose_analysis_is_ended_leaves_no_file(monkeypatch, tmp_path):
    def learned(name, path, *asked, **_):
        assert path.read_bytes() == b"private"
        path.with_name("file.csv").touch()
        time.sleep(600)

    monkeypatch.setattr(stream, "learned", learned)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines = stream.learn("a.csv", b"private", "", "", "10")
    while not [*tmp_path.rglob("file.csv")]:
        assert next(lines) == "\n"
    lines.close()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_an_upload_is_answered_in_lines():
    client = server.application(guard.Guard(None)).test_client()

    def answer(content, **given):
        query = {"name": "a.csv", "gain": "10", **given}
        lines = client.post("/learn", query_string=query, data=content).text.splitlines()
        return json.loads([line for line in lines if line][-1])

    assert "at least 50 are needed" in answer(b"a,y\n1,2\n3,4\n")["error"]
    assert "less than 100 %" in answer(b"", gain="nan")["error"]
    large = client.post("/learn", data=bytes(upload.MOST_BYTES + 1))
    assert (large.status_code, large.text[:15]) == (413, "More than 20 MB")
    assert client.post("/_dash-update-component", data=bytes(2_000_001)).status_code == 413
    assert next(stream.learn("a.csv", b"", "", "", "0")).startswith('{"error"')
