"""The command that plans a study: what is typed is what the function is asked."""

import pytest
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold.cli import app

LINEAR = ["sample-size", "--r2", "0.5", "--predictors", "15"]


def run(*more):
    return CliRunner().invoke(app, [*LINEAR, *more])


@pytest.mark.slow
def test_the_report_is_that_of_the_function():
    population = hm.Population(outcome="continuous", r2=0.5, predictors=15)
    goals = {"calibration_slope": (0.8, 1.2), "r2": 0.4}
    expected = hm.sample_size(population, target=goals, n=40, loss=hm.losses.Huber(0.5))
    result = run(
        "--slope", "0.8:1.2", "--target", "r2=0.4", "--n", "40", "--loss", "huber:delta=0.5"
    )
    assert result.exit_code == 0
    assert result.stdout == f"{expected}\n"


@pytest.mark.parametrize(
    ("name", "content"), [("a.md", "# Sample size"), ("a.html", "<table>"), ("a.csv", "n,")]
)
def test_reports_are_written(tmp_path, name, content):
    file = tmp_path / name
    assert run("--report", str(file)).exit_code == 0
    assert content in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "auc"], "--target = 'auc' is not allowed"),
        (["--slope", "steep"], "a number, or LOW:HIGH"),
        (["--loss", "huberr"], "did you mean 'huber'"),
        (["--without-signal", "15"], "without_signal = 15"),
        (["--target", "r2=1.5"], "cannot be reached"),
        (["--regularisation", "best"], "a number or the word optimal"),
        (["--report", "a.pdf"], "a file .md, .html or .csv"),
        (["--report", "missing/a.md"], "there is no directory"),
        (["--prevalence", "0.2", "--auc", "0.8"], "r2 cannot be given for a binary outcome"),
    ],
)
def test_bad_input_gets_a_sentence(more, message):
    result = run(*more)
    assert result.exit_code in (2, 3)
    assert message in " ".join(result.stderr.split())
