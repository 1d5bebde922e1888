"""The claims of the text, and the report that shows them."""

import base64
import re
from functools import cache
from html.parser import HTMLParser
from inspect import isfunction

import pytest
import xarray as xr

from hiddenmanifold.figures import MODULES, claims, claims_page, figure_data
from hiddenmanifold.figures.claims import CHECKS, DIFFERS, HOLDS, REMARK, Row

# where the exact answer is known to differ from the text
EXPECTED = {
    "kernel_limit-square": DIFFERS,
    "kernel_limit-logistic": DIFFERS,
    "coefficients-erf": REMARK,
    "peak_of_the_logistic_loss": REMARK,
    "logistic_against_square-0.0001": REMARK,
    "overparametrised_learning": REMARK,
}


def function_of(check):
    return check if isfunction(check) else check.func


def name_of(check):
    return "-".join([function_of(check).__name__, *map(str, getattr(check, "args", ())[:1])])


@cache
def row_of(check):
    return check()


@pytest.mark.parametrize(
    "module", [claims.equivalence, claims.double_descent, claims.features, claims.manifold]
)
def test_no_claim_is_forgotten(module):
    own = [f for f in vars(module).values() if isfunction(f) and f.__module__ == module.__name__]
    checked = list(dict.fromkeys(map(function_of, module.CLAIMS)))
    assert [f for f in own if not f.__name__.startswith("_")] == checked


def test_claims_come_in_the_order_of_the_text():
    places = [function_of(check).__doc__ for check in CHECKS]
    sections = [place for place in places if place.startswith("Section")]
    assert sections == sorted(sections)
    assert len(CHECKS) == len(set(CHECKS)) == 26


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_each_claim_has_the_verdict_that_is_known(check):
    row = row_of(check)
    assert row.verdict == EXPECTED.get(name_of(check), HOLDS), row
    assert row.claim
    assert row.expected
    assert row.computed
    assert row.note or row.verdict == HOLDS  # what differs is explained
    assert "nan" not in row.computed


def test_kernel_limits_are_both_shown():
    row = row_of(next(check for check in CHECKS if name_of(check) == "kernel_limit-square"))
    assert row.expected == "0.17"
    assert row.computed == "0.149796"
    assert "0.1679" in row.note


@pytest.mark.parametrize(
    "check",
    [
        claims.equivalence.small_dimensions_suffice,
        claims.features.structured_matrices_share_the_prediction,
    ],
    ids=lambda check: check.__name__,
)
def test_no_verdict_is_given_on_half_a_simulation(monkeypatch, check):
    half = xr.Dataset(attrs={"interrupted": 1})
    monkeypatch.setattr(figure_data, "compare", lambda *_, **__: half)
    with pytest.raises(KeyboardInterrupt):
        check()


def test_check_runs_all_in_order(monkeypatch):
    rows = [Row(f"claim {k}", "yes", "yes", HOLDS) for k in range(3)]
    monkeypatch.setattr(claims, "CHECKS", [lambda row=row: row for row in rows])
    assert claims.check() == rows
    assert claims.check(progress=True) == rows


class Page(HTMLParser):
    """Counts tags and remembers what they load."""

    def __init__(self):
        super().__init__()
        self.tags, self.sources = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path):
    for stem in ("figure_1", "figure_1_quick", "figure_4_quick"):
        (tmp_path / f"{stem}.png").write_bytes(stem.encode())
    rows = [
        Row("a < b", "1 & 2", "<3>", HOLDS),
        Row("c", "0.17", "0.15", DIFFERS, "note"),
        Row("d", "x", "y", REMARK, "other note"),
    ]
    path = claims_page.write(tmp_path / "report.html", rows, tmp_path)
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    start = "data:image/png;base64,"
    assert all(source.startswith(start) for source in page.sources)
    pictures = [base64.b64decode(source.removeprefix(start)) for source in page.sources]
    assert pictures == [b"figure_1", b"figure_4_quick"]  # a full picture goes before a quick one
    assert text.count("(quick)</figcaption>") == page.tags.count("img") - 1 == 1
    assert page.tags.count("tr") == 1 + len(rows)
    assert "a &lt; b" in text
    assert "<3>" not in text
    assert re.search(r"1 holds, 1 holds, with a remark, 1 differs", text)
    assert "Not drawn yet: figures 2, 3, 5, 6, 7" in text
    for number in (1, 4):
        assert MODULES[number].TITLE in text


def test_an_unwritable_report_is_an_error(tmp_path):
    with pytest.raises(OSError, match="report.html"):
        claims_page.write(tmp_path / "missing" / "report.html", [], tmp_path)
