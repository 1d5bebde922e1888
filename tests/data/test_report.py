"""A report has the numbers of the library, in three formats in which no name of a user acts."""

import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import hiddenmanifold as hm
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.checks import Task
from hiddenmanifold.data.sklearn_conventions import counterpart, objective

N, P = 120, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P))
Y = X @ np.ones(P) + RNG.standard_normal(N)
HOSTILE = (
    "<script>alert(1)</script>",
    "[x](javascript:alert(2)) ![y](http://evil.example/y.png) `z` | www.evil.example",
    "\x1b[31mred\u202eturned\nnew line",
    '"><img src=x onerror=alert(3)> & <b',
)
MODELS = {
    model.__name__: model
    for model in (Ridge, RidgeClassifier, LogisticRegression, SVC, LinearSVC, OneVsRestClassifier)
}
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "article", "h1", "h2", "p", "section"),
    *("ul", "li", "figure", "svg", "text", "path", "circle", "footer"),
    *("div", "table", "thead", "tbody", "tr", "th", "td"),
}


@pytest.fixture(scope="module")
def data():
    return hm.Data(X, Y, scale="standard")


@pytest.fixture(scope="module")
def made(data):
    return hm.report(data, target_gain=0.05, seeds=2)


@pytest.fixture(scope="module")
def hostile():
    """All that users name: columns that are kept, encoded, filled and left out; classes; a file."""
    table = pd.DataFrame(X, columns=[*HOSTILE, "e"])
    table.loc[:9, HOSTILE[0]] = np.nan
    table[f"{HOSTILE[3]} text"] = np.where(X[:, 1] > 0, HOSTILE[1], HOSTILE[2])
    table[f"{HOSTILE[1]} still"] = 1
    y = np.where(Y + 0.3 > 0, HOSTILE[0], HOSTILE[1])
    with pytest.warns(UserWarning, match="left out"):
        sample = hm.Data(table, y)
    return hm.report(sample, loss="logistic", title=f"{HOSTILE[2]} {HOSTILE[3]}")


class Seen(HTMLParser):
    """What a browser makes of a page: its elements, their attributes, and words."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words = set(), set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data):
        self.words.append(data)


def words(text):
    """Letters alone, however their lines are broken."""
    return re.sub(r"\s+", " ", text)


def sentences(report):
    yield from (report.title, report.headline, *report.outlook, *report.refusals, *report.warnings)
    for table in report.tables:
        yield table.title
        yield from (cell for row in (table.header, *table.rows) for cell in row)
    for part in report.remarks:
        yield from (part.title, *part.sentences)


def rendered(markdown):
    """The elements of Markdown, and its words, as another program reads them."""
    reader = MarkdownIt("commonmark").enable("table")
    tokens = [one for token in reader.parse(markdown) for one in (token, *(token.children or ()))]
    return {token.type for token in tokens}, " ".join(t.content for t in tokens if t.type == "text")


@pytest.mark.slow
def test_a_report_has_the_numbers_of_the_library(data, made):
    sizes = [60, 120, 240, 480, 960]
    curve = hm.learning_curve(data, n=sizes)
    error = curve.generalisation_error.values
    table = made.tables[0]
    assert [row[0] for row in table.rows] == [
        f"{n} = {name}" for n, name in zip(sizes, ("N/2", "N", "2N", "4N", "8N"), strict=True)
    ]
    for row, i in zip(table.rows, range(5), strict=True):
        low, high = (float(curve[f"generalisation_error_{end}"][i]) for end in ("low", "high"))
        found = [float(text) for text in (row[1], *row[3].split(" to "))]
        np.testing.assert_allclose(found, [error[i], low, high], rtol=0.006)
        if i != table.here:
            change, bar = (float(text) for text in re.findall(r"[\d.]+", row[2]))
            sign = -1 if row[2][0] == "−" else 1
            assert sign * change == pytest.approx(100 * (error[i] / error[1] - 1), abs=0.51)
            falls = (curve[f"generalisation_error_fall_{end}"].values for end in ("high", "low"))
            assert bar == pytest.approx(50 * np.subtract(*falls)[i], rel=0.1, abs=0.51)
    now, then = (f"{value:#.3g}" for value in error[1:3])
    assert made.headline.startswith(
        f"With twice the rows the mean square error falls from {now} to {then} (−"
    )
    assert made.outlook[0] in hm.plan(data, target_gain=0.05).sentence
    check = hm.backtest(data, n=[15, 30], seeds=2)
    measured = [float(row[1].split()[0]) for row in made.tables[2].rows]
    np.testing.assert_allclose(measured, check.generalisation_error.values[:, 0], rtol=0.006)
    assert not (made.refusals or made.warnings)


@pytest.mark.slow
def test_the_model_of_a_report_is_that_of_scikit_learn(data, made):
    facts = dict(made.tables[1].rows)
    model = eval(facts["in scikit-learn"], {"make_pipeline": make_pipeline, "data": data, **MODELS})
    left = [
        (Y[i] - model.fit(np.delete(X, i, 0), np.delete(Y, i)).predict(X[i : i + 1])[0]) ** 2
        for i in range(N)
    ]
    # columns are scaled anew without each row, which matters little
    assert float(made.tables[0].rows[1][1]) == pytest.approx(np.mean(left), rel=0.01)
    assert float(facts["always predicting the mean"]) == pytest.approx(Y.var(ddof=1), rel=0.006)


@pytest.mark.parametrize(
    ("loss", "task"),
    [
        ("square", "regression"),
        *((loss, "classification") for loss in ("square", "logistic", "hinge", "squared_hinge")),
        *((loss, "classes") for loss in ("square", "softmax", "logistic", "squared_hinge")),
    ],
)
def test_counterparts_minimise_the_same(loss, task):
    model = eval(counterpart(loss, Task(task), 0.37, 11), MODELS)
    found = objective(model, 11, task=Task(task))
    assert found.loss == loss
    assert found.regularisation == pytest.approx(0.37, rel=1e-3)
    assert counterpart("huber", Task.REGRESSION, 0.37, 11) == ""


@pytest.mark.slow
def test_all_formats_have_all_sentences(made, hostile):
    for report in (made, hostile):
        text, page = words(str(report)), words("".join(Seen(report.to_html()).words))
        kinds, marked = rendered(report.to_markdown())
        assert "table_open" in kinds
        for sentence in sentences(report):
            plain = words("".join(c if c.isprintable() else " " for c in sentence)).strip()
            assert plain in text
            assert plain in page
            assert plain in words(marked)


@pytest.mark.slow
def test_names_of_users_do_nothing(hostile):
    seen = Seen(hostile.to_html())
    assert seen.tags == TAGS - {"circle"}
    assert not {name for name in seen.attributes if name.startswith("on")}
    assert not {"src", "href", "action", "data"} & seen.attributes
    assert "javascript:alert(2)" in "".join(seen.words)
    kinds, _ = rendered(hostile.to_markdown())
    assert not re.search("://|www[.]", hostile.to_markdown())  # which some readers make links of
    assert not {"link_open", "image", "html_inline", "html_block", "code_inline"} & kinds
    for text in (str(hostile), hostile.to_markdown(), hostile.to_html()):
        assert all(letter.isprintable() or letter in "\n\xa0" for letter in text)


@pytest.mark.slow
def test_pages_need_nothing_else_and_are_written(made, tmp_path):
    page = made.to_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    marked = made.to_markdown(tmp_path / "a b.md")
    assert "](a%20b.svg)" in marked
    assert (tmp_path / "a b.md").read_text(encoding="utf-8") == marked
    ElementTree.parse(tmp_path / "a b.svg")
    assert made._repr_html_() in page
    assert made._repr_markdown_() == made.to_markdown()


@pytest.mark.slow
def test_the_picture_shows_the_curve(made):
    """Places are read off by the ticks, as a reader does."""
    root = ElementTree.fromstring(made.picture)
    texts = [(t.text, float(t.get("x")), float(t.get("y"))) for t in root.findall("{*}text")]
    ticks = [(float(t), x, y) for t, x, y in texts if re.fullmatch(r"[\d.]+", t)]
    bottom = max(y for _, _, y in ticks)
    across = np.array([(t, x) for t, x, y in ticks if y == bottom])
    up = np.array([(t, y - 4) for t, x, y in ticks if y != bottom])
    assert list(across[:, 0]) == [15, 30, 60, 120, 240, 480, 960]
    line = next(e for e in root.findall("{*}path") if e.get("stroke-width") == "2.4")
    places = np.array([[float(v) for v in pair.split()] for pair in line.get("d")[1:].split("L")])
    n = np.exp(np.interp(places[:, 0], across[:, 1], np.log(across[:, 0])))
    error = np.interp(-places[:, 1], -up[:, 1], up[:, 0])
    np.testing.assert_allclose(n, made.curve.n, rtol=0.01)
    top = up[:, 0].max()
    expected = np.minimum(made.curve.generalisation_error, top)
    np.testing.assert_allclose(error, expected, atol=0.005 * top)


@pytest.mark.slow
def test_a_refused_sample_has_a_report_of_what_is_known(tmp_path):
    twice = hm.Data(np.concatenate([X] * 2), np.concatenate([Y] * 2))
    report = hm.report(twice, target_gain=0.1)
    assert report.headline.startswith("Nothing is predicted beyond these 240 rows, with which the ")
    (why,) = report.refusals
    assert "50 % of the rows repeat another one" in why
    assert report.outlook == ()
    assert [row[0] for row in report.tables[0].rows] == ["120 = N/2", "240 = N"]
    assert report.curve.n.max() == 240
    assert "Why nothing is predicted beyond the sample" in str(report)
    ElementTree.fromstring(report.picture)
    kept = hm.report(twice, on_refusal="keep")
    assert len(kept.tables[0].rows) == 5
    assert kept.refusals == report.refusals
    assert "unless they are asked for" in kept.to_html()


@pytest.mark.slow
def test_a_report_ends_in_time_with_what_it_has(data):
    report = hm.report(hm.Data(X, Y), seeds=8, deadline=0.0)
    assert "longer than the time allowed" in report.refusals[0]
    assert "The backtest was left out" in report.warnings[0]
    assert report.backtest is None
    error = float(hm.learning_curve(hm.Data(X, Y), n=N).generalisation_error)
    assert f"with which the mean square error is {error:#.3g} (" in report.headline
    began = hm.backtest(data, n=[30], seeds=500, deadline=0.0)
    assert began.attrs["seeds"] == 2  # fewer have no standard error


@pytest.mark.slow
def test_no_error_is_not_none():
    y = np.where(X[:, 0] > 0, "in", "out")
    report = hm.report(hm.Data(X + 5 * (X[:, :1] > 0), y), loss="hinge", regularisation=0.3)
    now = float(report.tables[0].rows[1][1])
    assert now == pytest.approx(0.5 / (N + 1), rel=0.01)
    high = float(report.tables[0].rows[1][3].split(" to ")[1])
    assert high == pytest.approx(3 / N, rel=0.01)
    said = " ".join(report.remarks[1].sentences)
    assert f"None of {N} rows is predicted wrongly" in said
    assert "each tenth of the rows" in said
    assert "SVC(kernel='linear', C=" in str(report)
    assert report.headline.startswith(f"None of the {N} rows is predicted wrongly")
    assert {row[2] for row in report.tables[0].rows} == {"—"}
    assert report.outlook == ()


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_few_errors_are_pointed_out(loss):
    y = X[:, 0] + 0.05 * np.sin(np.arange(N)) > 0
    report = hm.report(hm.Data(X[:, :2], y), loss=loss, regularisation=0.1)
    counted = round(float(report.curve.generalisation_error_leave_one_out) * N)
    assert 0 < counted < 20
    assert sum("known to some 40 %" in sentence for sentence in report.warnings) == 1


@pytest.mark.slow
def test_the_error_of_the_sample_itself_is_that_of_leave_one_out_at_any_regularisation():
    rng = np.random.default_rng(1)
    few = hm.Data(rng.normal(size=(60, 55)), rng.normal(size=60))
    curve = hm.report(few, regularisation=1e-9).curve.sel(n=60)
    generalised = few.ridge.path(np.array([1e-9])).generalised[0]
    level = min(float(curve.generalisation_error_leave_one_out), 1.15 * generalised)
    assert float(curve.generalisation_error) == pytest.approx(level)
    assert curve.resolved


@pytest.mark.slow
def test_very_large_errors_have_powers_of_ten():
    huge = hm.report(hm.Data(X, 1e9 * Y), regularisation=0.5)
    assert float(huge.tables[0].rows[1][1]) > 1e17
    assert len(huge.tables[0].rows[1][1]) == len("1.23e+18")


def test_too_few_rows_to_hold_out_are_named():
    report = hm.report(hm.Data(X[:60], Y[:60]), seeds=2, regularisation=0.5)
    assert report.backtest is None
    assert "No rows were held out" in report.warnings[-1]
    assert "λ = 0.5, as given" in str(report)
    assert math.isclose(float(report.curve.regularisation), 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"seeds": 1},
        {"deadline": -1.0},
        {"on_refusal": "raise"},
        {"regularisation": [0.1, 1.0]},
        {"regularisation": "best"},
        {"loss": "logistic"},
        {"target_gain": 0.1, "target_error": 1.0},
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_named(data, options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options)) + "|target_error"):
        hm.report(data, **options)
    with pytest.raises(InvalidArgumentError, match="data"):
        hm.report(X)
