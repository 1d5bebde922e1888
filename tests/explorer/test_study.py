"""The plan of a study on the page is that of the library, and its programs make the same."""

import shlex

import pytest

from hiddenmanifold.explorer import callbacks, study_panel
from hiddenmanifold.explorer.worker_pool import dismiss

TEXTS = {"prevalence": "0.3", "auc": "0.8", "predictors": "6", "slope": "0.85"}


@pytest.fixture(scope="module", autouse=True)
def ended():
    yield
    dismiss()


@pytest.mark.slow
def test_the_plan_is_that_of_its_program_and_its_command():
    found = study_panel.planned(TEXTS)
    made = {}
    exec(found["python"].replace("print(report)", ""), made)
    report = made["report"]
    assert found["sentence"] == report.sentence
    assert found["files"] == {"html": report.to_html(), "md": report.to_markdown()}
    given = shlex.split(found["command"])[2:]
    assert given == [
        f"--{name}" if i == 0 else text for name, text in TEXTS.items() for i in (0, 1)
    ]
    dots = found["data"][-1]
    one = report.simulated["calibration_slope"]
    assert dots["x"] == [report.n] and dots["y"] == pytest.approx([one.mean])
    assert dots["error_y"]["array"] == pytest.approx([one.deviation])
    titles = [part["props"]["children"] for part in found["report"] if part["type"] == "H2"]
    assert titles == [title for title, *_ in report.tables] + ["Notes", "For the paper"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("prevalence", "a fifth", "prevalence = 'a fifth' is not allowed: it must be a number"),
        ("predictors", "2.5", "a whole number from 1 to 1000"),
        ("predictors", "100000", "a whole number from 1 to 1000"),
        ("predictors", "nan", "a whole number from 1 to 1000"),
    ],
)
def test_what_makes_no_sense_is_said(name, text, message):
    _, told, *others = callbacks.plan_study(None, *(TEXTS | {name: text}).values())
    assert message in told
    assert len(others) == 1 + len(callbacks.STUDIED)
