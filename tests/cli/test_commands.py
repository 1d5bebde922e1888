"""Every command gives the numbers of the library, in every format, and ends with the right code."""

import csv
import io
import json
import re
import signal
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold.api.bayes_optimal import bayes_optimal
from hiddenmanifold.cli import app, printed_tables, theory_commands, work
from hiddenmanifold.cli.ascii_symbols import legible
from hiddenmanifold.cli.exit_codes import Code
from hiddenmanifold.simulation.experiment import Trial

MODEL = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
SQUARE = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
GRID = ("--n-over-d", "3", "--p-over-n", "0.5,1,2")
RATIOS = {"n_over_d": 3.0, "p_over_n": [0.5, 1.0, 2.0]}
SMALL = ("--d", "20", "--seeds", "3", "--n-test", "50", "--workers", "1")
SIZES = {"d": 20, "seeds": 3, "n_test": 50, "workers": 1}


def run(*args, code=Code.COMPLETE):
    result = CliRunner().invoke(app, [str(arg) for arg in args], prog_name="hiddenmanifold")
    assert result.exit_code == code, result.output
    return result


def complaint(result):
    """The one line on standard error."""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in result.output
    return line


def read_csv(text):
    rows = list(csv.DictReader(text.splitlines()))
    return {name: [row[name] for row in rows] for name in rows[0]}


def assert_same_numbers(table, ds):
    """Every number of a dataset is in a table of strings, to the last digit."""
    grid = next(iter(ds.data_vars.values()))
    for name in [*ds.data_vars, *ds.coords]:
        if name in ("status", "theory_status"):
            expected = [hm.Status(s).name.lower() for s in ds[name].values.ravel()]
            assert table[name] == expected
        elif name != "seconds":
            flat = ds[name].broadcast_like(grid).transpose(*grid.dims).values.ravel()
            found = [np.nan if v is None else float(v) for v in table[name]]
            np.testing.assert_array_equal(found, flat, err_msg=name)


@pytest.mark.parametrize("option", [("--minimise", "clean_error"), ("--bounds", "0.1:1")])
def test_a_search_that_is_not_made_is_refused(option):
    told = complaint(run("predict", *GRID, "--lam", 1, *option, code=Code.BAD_INPUT))
    assert option[0] in told
    assert "have no effect: leave them out, or give --regularisation optimal" in told


@pytest.mark.slow
def test_predict_writes_the_numbers_of_the_library(tmp_path):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("csv", "json", "nc")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", path)]
    run("predict", *GRID, "--lam", "log:1e-3:1:2", *options, "--quiet")
    ds = hm.predict(MODEL, **RATIOS, regularisation=np.geomspace(1e-3, 1, 2))
    assert_same_numbers(read_csv(files["csv"].read_text()), ds)
    content = json.loads(files["json"].read_text())
    points = {name: [point[name] for point in content["points"]] for name in content["points"][0]}
    assert_same_numbers(points, ds)
    assert content["attributes"]["model"] == repr(MODEL)
    assert content["meanings"]["training_loss"] == ds.training_loss.attrs["long_name"]
    with xr.open_dataset(files["nc"]) as stored:
        xr.testing.assert_equal(stored.load(), ds)
        assert stored.attrs["objective"] == ds.attrs["objective"]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_standard_output_carries_nothing_but_the_data(kind):
    result = run("predict", *GRID, "--lam", 1, f"--{kind}", "-")
    ds = hm.predict(MODEL, **RATIOS, regularisation=1.0)
    if kind == "csv":
        assert_same_numbers(read_csv(result.stdout), ds)
    else:
        assert len(json.loads(result.stdout)["points"]) == 3
    assert not result.stderr


def test_the_table_shows_what_varies_and_says_what_does_not():
    result = run("predict", *GRID, "--lam", 1e-4)
    ds = hm.predict(MODEL, **RATIOS, regularisation=1e-4)
    for value in ds.generalisation_error.values:
        assert f"{value:.6g}" in result.stdout
    assert "n/d = 3, λ = 0.0001" in result.stdout
    assert repr(MODEL) in result.stdout
    assert ds.attrs["objective"] in result.stdout
    assert not run("predict", *GRID, "--lam", 1e-4, "--quiet").stdout


@pytest.mark.slow
def test_the_table_shows_what_is_asked_for(tmp_path):
    result = run("predict", *GRID, "--lam", 1, "--show", "q_w, V", "--plot", tmp_path / "a.svg")
    ds = hm.predict(MODEL, **RATIOS, regularisation=1.0)
    assert f"{ds.q_w.values[1]:.6g}" in result.stdout
    assert f"{ds.V.values[1]:.6g}" in result.stdout
    assert f"{ds.generalisation_error.values[1]:.6g}" not in result.stdout
    drawing = (tmp_path / "a.svg").read_text()
    assert "generalisation" not in drawing


@pytest.fixture
def idle(monkeypatch):
    """Whatever is refused must be refused before the work."""
    for name in ("in_pieces", "with_bar"):
        monkeypatch.setattr(f"hiddenmanifold.cli.work.{name}", lambda *_: pytest.fail("worked"))


EVERY = {  # command: what it needs
    "predict": (*GRID, "--lam", "0.1,1"),
    "sensitivity": (*GRID, "--lam", "0.1,1"),
    "simulate": (*GRID, "--lam", "0.1,1", "--d", 20),
    "compare": (*GRID, "--lam", "0.1,1", "--d", 20),
    "threshold": ("--n-over-d", "1,2"),
    "peak": ("--n-over-d", "1,2", "--lam", 1e-2),
    "features-needed": ("--n-over-d", "1,2"),
    "samples-needed": ("--p-over-d", "1,2", "--target", 0.2),
    "bayes": GRID,
    "training": (*GRID, "--loss", "square", "--times", "1,10"),
}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("command", EVERY)
def test_an_unknown_quantity_is_refused_before_the_work(tmp_path, command):
    path = tmp_path / "out.csv"
    args = (command, *EVERY[command], "--show", "eror", "--csv", path)
    result = run(*args, code=Code.BAD_INPUT)
    assert "--show = 'eror' is not allowed: it must be one of " in complaint(result)
    assert not path.exists()
    assert not result.stdout


@pytest.mark.usefixtures("idle")
def test_a_near_name_is_suggested():
    result = run("predict", *GRID, "--lam", 1, "--show", "V, q_v", code=Code.BAD_INPUT)
    assert "did you mean 'q_w' or 'q_s'?" in complaint(result)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--p-over-n", 1), "cannot draw a result that has a single point: a plot needs"),
        (("--p-over-n", "1,2", "--n-over-d", "1,2", "--lam", "1,2"), "at most two dimensions"),
        (("--p-over-n", "1,2", "--x", "lam"), "--x = 'lam' is not allowed: it must be a dim"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "simulate"])
def test_what_cannot_be_drawn_is_refused_before_the_work(tmp_path, command, more, sentence):
    args = (command, "--n-over-d", 3, "--lam", 1, "--plot", tmp_path / "a.png", *more)
    result = run(*args, code=Code.BAD_INPUT)
    assert sentence in complaint(result)
    assert not result.stdout


@pytest.mark.usefixtures("idle")
def test_an_axis_without_a_plot_is_refused():
    result = run("predict", *GRID, "--lam", 1, "--x", "p_over_n", code=Code.BAD_INPUT)
    assert "--x has no effect without --plot: leave it out" in complaint(result)


LONG = ("predict", "--n-over-d", 3, "--p-over-n", "0.1:3:200", "--lam", 1)


def screen(monkeypatch, width, encoding="utf-8"):
    """What follows is printed on a terminal."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, force_terminal=True, highlight=False, width=width)
    monkeypatch.setattr(printed_tables, "_console", lambda: console)

    def text():
        file.flush()
        return re.sub(r"\x1b\[[\d;]*m", "", file.buffer.getvalue().decode(encoding))

    return text


def points_of(text):
    return re.findall(r"^ *[\d.]+ +0\.\d+", text, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_long_table_is_shortened_on_a_terminal_alone(monkeypatch):
    assert len(points_of(run(*LONG).stdout)) == 200
    text = screen(monkeypatch, 80)
    run(*LONG)
    assert f"{printed_tables.ROWS} of 200 points" in text()
    assert len(points_of(text())) == printed_tables.ROWS


@pytest.mark.slow
def test_a_narrow_terminal_gets_several_tables(monkeypatch):
    args = ("predict", *GRID, "--lam", "0.1,1", "--show", "generalisation_error,q_w,V,status")
    assert max(map(len, run(*args).stdout.splitlines())) > 60  # a file has room
    text = screen(monkeypatch, 40)
    run(*args)
    lines = text().splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.split()[:2] == ["p/n", "λ"] for line in lines) == 2
    ds = hm.predict(MODEL, **RATIOS, regularisation=[0.1, 1.0])
    for name in ("generalisation_error", "q_w", "V"):
        assert f"{float(ds[name][2, 1]):.6g}" in text()
    assert "q_w" in text()  # symbols stay as they are


@pytest.mark.slow
def test_what_is_wider_than_a_terminal_is_not_cut(monkeypatch):
    text = screen(monkeypatch, 16)
    run("compare", *GRID, "--lam", 1, *SMALL)
    ds = hm.compare(MODEL, **RATIOS, regularisation=1.0, **SIZES)
    assert f"{float(ds.generalisation_error_theory[1]):.6g}" in text()


def test_letters_that_a_terminal_lacks_are_spelt(monkeypatch):
    text = screen(monkeypatch, 80, "ascii")
    run("predict", "--n-over-d", 3, "--p-over-n", "1,inf", "--lam", "0.5,1")
    assert "?" not in text()
    rows = [line for line in text().splitlines() if line.startswith("|")]
    assert len({len(line) for line in rows}) == 1  # aligned
    assert "lambda" in rows[1]
    assert rows[-1].split()[0] == "|inf"
    assert legible("|w|² → κ⋆ ⌘", "latin-1") == "|w|² -> kappa* ?"


def test_a_status_is_a_word():
    shown = run("predict", *GRID, "--lam", 1, "--show", "status").stdout
    assert shown.count("converged") == 3
    assert shown.count("status") == 1


def test_warnings_are_sentences(monkeypatch):
    predict = hm.predict

    def warning(*args, **given):
        warnings.warn("so many points take long", stacklevel=2)
        np.log(np.zeros(1))
        return predict(*args, **given)

    monkeypatch.setattr("hiddenmanifold.api.predict.predict", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("predict", *GRID, "--lam", 1)
        assert result.stderr == "warning: so many points take long\n"
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(np.zeros(1))


@pytest.mark.slow
def test_noisy_labels_have_a_clean_error_as_well():
    flags = ("--teacher", "sign:flip=0.1")
    assert "clean" in run("predict", *GRID, "--lam", 1, *flags).stdout
    assert "clean" not in run("predict", *GRID, "--lam", 1).stdout


def test_all_options_of_the_model_arrive():
    result = run(
        "predict",
        *("--activation", "relu", "--projection", "orthogonal", "--intercept"),
        *("--teacher", "logistic:slope=2,threshold=0.3", "--loss", "squared_hinge"),
        *("--n-over-p", "2", "--d-over-p", "0.5", "--regularisation", "0.1", "--csv", "-"),
    )
    model = hm.Model(
        activation="relu",
        projection="orthogonal",
        teacher=hm.teachers.Logistic(slope=2.0, threshold=0.3),
        loss="squared_hinge",
        intercept=True,
    )
    ds = hm.predict(model, n_over_p=2.0, d_over_p=0.5, regularisation=0.1)
    assert_same_numbers(read_csv(result.stdout), ds)


@pytest.mark.slow
def test_labels_that_are_numbers_arrive_with_their_prediction():
    ratios = ("--n-over-d", "3", "--p-over-n", "0.5,1", "--lam", "0.5")
    counts = ("--teacher", "poisson:rate=softplus,slope=0.6", "--loss", "poisson")
    seen = ("--observables", "deviance,r2", "--prediction", "identity")
    table = read_csv(run("predict", *ratios, *counts, *seen, "--csv", "-").stdout)
    model = hm.Model(
        activation="sign",
        projection="gaussian",
        teacher=hm.teachers.Poisson("softplus", slope=0.6),
        loss="poisson",
        prediction="identity",
    )
    given = {"n_over_d": 3.0, "p_over_n": [0.5, 1.0], "regularisation": 0.5}
    ds = hm.predict(model, **given, observables=["deviance", "r2"])
    assert_same_numbers(table, ds)
    usual = read_csv(run("predict", *ratios, *counts, "--csv", "-").stdout)
    assert usual["generalisation_error"] != table["generalisation_error"]
    assert usual["training_loss"] == table["training_loss"]
    assert "prediction=Identity()" in run("predict", *ratios, *counts, *seen).stdout


@pytest.mark.slow
def test_an_observable_of_numbers_can_be_minimised():
    labels = ("--teacher", "real:function=tanh,noise=laplace(0.5)", "--loss", "absolute")
    search = ("--lam", "optimal", "--minimise", "mean_absolute_error", "--csv", "-")
    grid = ("--n-over-d", "3", "--p-over-n", "1")
    table = read_csv(run("predict", *grid, *labels, *search).stdout)
    model = hm.Model(
        activation="sign",
        projection="gaussian",
        teacher=hm.teachers.Real("tanh", noise="laplace(0.5)"),
        loss="absolute",
    )
    lam = hm.Optimal("mean_absolute_error")
    ds = hm.predict(model, n_over_d=3.0, p_over_n=1.0, regularisation=lam)
    assert float(table["optimal_regularisation"][0]) == float(ds.optimal_regularisation)


def test_the_estimator_ceases_to_exist_where_the_library_says():
    labels = ("--teacher", "poisson:slope=0.5", "--loss", "poisson")
    found = read_csv(run("existence", "--n-over-d", "1,3", *labels, "--csv", "-").stdout)
    teacher = hm.teachers.Poisson(slope=0.5)
    model = hm.Model(activation="sign", projection="gaussian", teacher=teacher, loss="poisson")
    expected = hm.existence_threshold(model, n_over_d=[1.0, 3.0]).p_over_n
    np.testing.assert_array_equal([float(v) for v in found["p_over_n"]], expected.values)
    refused = run("existence", "--n-over-d", 3, "--loss", "hinge", code=Code.BAD_INPUT)
    assert "decay" in complaint(refused)


def test_long_work_on_labels_that_are_numbers_is_cut_into_smaller_pieces():
    counts = hm.teachers.Poisson(slope=0.5)
    model = hm.Model(activation="sign", projection="gaussian", teacher=counts, loss="poisson")
    ridge = hm.Model(activation="sign", projection="gaussian", teacher=counts, loss="square")
    usual = theory_commands.pieces("predict", MODEL)
    assert theory_commands.pieces("predict", ridge) == usual
    assert 1 <= theory_commands.pieces("predict", model) <= usual / 20


def test_limits_are_numbers_too():
    args = ("--n-over-d", 3, "--p-over-n", "1,inf", "--lam", "0,inf", "--json", "-")
    points = json.loads(run("predict", *args).stdout)["points"]
    assert [point["p_over_n"] for point in points] == [1.0, 1.0, "inf", "inf"]
    assert [point["regularisation"] for point in points] == [0.0, "inf"] * 2
    ds = hm.predict(MODEL, n_over_d=3.0, p_over_n=[1.0, np.inf], regularisation=[0.0, np.inf])
    found = [point["generalisation_error"] for point in points]
    np.testing.assert_array_equal(found, ds.generalisation_error.values.ravel())


@pytest.mark.slow
def test_a_point_that_fails_is_told_but_does_not_cost_the_others():
    args = ("predict", "--n-over-d", 3, "--p-over-n", "0.5,1", "--lam", 0, "--loss", "square")
    result = run(*args, code=Code.INCOMPLETE)
    ds = hm.predict(SQUARE, n_over_d=3.0, p_over_n=[0.5], regularisation=0.0)
    assert f"{ds.generalisation_error.item():.6g}" in result.stdout
    assert "threshold" in result.stdout
    assert f"1 of 2 points failed: {hm.Status.THRESHOLD.sentence}" in complaint(result)
    failed = json.loads(run(*args, "--json", "-", code=Code.INCOMPLETE).stdout)["points"][1]
    assert failed["status"] == "threshold"
    assert failed["generalisation_error"] is None
    table = read_csv(run(*args, "--csv", "-", code=Code.INCOMPLETE).stdout)
    assert table["generalisation_error"][1] == "nan"


@pytest.mark.slow
def test_predict_finds_the_optimal_regularisation():
    options = ("--loss", "square", "--teacher", "sign:flip=0.1", "--minimise", "clean_error")
    search = ("--bounds", "0.02:0.9", "--csv", "-")
    table = read_csv(run("predict", *GRID, *options, *search, "--lam", "optimal").stdout)
    model = hm.Model(
        activation="sign",
        projection="gaussian",
        teacher=hm.teachers.Sign(flip=0.1),
        loss="square",
    )
    ds = hm.predict(model, **RATIOS, regularisation=hm.Optimal("clean_error", (0.02, 0.9)))
    assert_same_numbers(table, ds)
    assert "optimal" in run("predict", *GRID, *options, "--lam", "optimal").stdout


@pytest.mark.slow
def test_answers_are_the_numbers_of_the_library():
    found = read_csv(run("threshold", "--n-over-d", "0.5,3", "--csv", "-").stdout)
    expected = hm.separability_threshold(MODEL, n_over_d=[0.5, 3.0]).p_over_n
    np.testing.assert_array_equal([float(v) for v in found["p_over_n"]], expected.values)
    shown = run("threshold", "--n-over-d", "0.5,3").stdout
    assert f"{expected.values[1]:.6g}" in shown
    assert "threshold" in shown
    table = read_csv(run("bayes", *GRID, "--csv", "-").stdout)
    assert_same_numbers(table, bayes_optimal(MODEL, **RATIOS))
    slopes = ("sensitivity", *GRID, "--lam", "0.1,1")
    ds = hm.sensitivity(MODEL, **RATIOS, regularisation=[0.1, 1.0])
    assert_same_numbers(read_csv(run(*slopes, "--csv", "-").stdout), ds)
    shown = run(*slopes).stdout
    assert f"{float(ds.generalisation_error_by_log_n[1, 1]):.6g}" in shown
    assert "by log λ" in shown


@pytest.mark.slow
def test_the_peak_has_a_place_and_a_height():
    args = ("peak", "--n-over-d", "1,3", "--lam", "0,1e-4")
    ds = hm.interpolation_peak(MODEL, n_over_d=[1.0, 3.0], regularisation=[0.0, 1e-4])
    assert_same_numbers(read_csv(run(*args, "--csv", "-").stdout), ds)
    shown = run(*args).stdout
    assert "peak" in shown
    for name in ("p_over_n", "generalisation_error"):
        assert f"{float(ds[name][1, 1]):.6g}" in shown
    assert "no peak" not in shown
    assert "—: the curve has no peak" in run("peak", "--n-over-d", 3, "--lam", 1).stdout


@pytest.mark.slow
def test_the_features_needed_are_found():
    args = ("features-needed", "--n-over-d", 1, "--loss", "square", "--within", 0.2)
    ds = hm.features_needed(SQUARE, n_over_d=1.0, within=0.2)
    assert_same_numbers(read_csv(run(*args, "--csv", "-").stdout), ds)
    shown = run(*args).stdout
    for name in ("p_over_n", "generalisation_error", "kernel_limit"):
        assert f"{float(ds[name]):.6g}" in shown
    assert "needed" in shown


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("threshold", "api.thresholds.separability_threshold"),
        ("peak", "api.thresholds.interpolation_peak"),
        ("features-needed", "api.needed.features_needed"),
        ("bayes", "api.bayes_optimal.bayes_optimal"),
        ("sensitivity", "api.predict.sensitivity"),
        ("predict", "api.predict.predict"),
    ],
)
def test_workers_arrive(monkeypatch, command, function):
    def told(*_, workers, **__):
        raise KeyboardInterrupt(f"with {workers} workers")

    monkeypatch.setattr(f"hiddenmanifold.{function}", told)
    result = run(command, *EVERY[command], "--workers", 3, code=Code.INTERRUPTED)
    assert complaint(result) == "error: with 3 workers"


@pytest.mark.slow
def test_simulate_prints_means_and_writes_fits_if_asked(tmp_path):
    args = ("simulate", *GRID, "--lam", "0.1,1", *SMALL, "--seed", 5)
    table = read_csv(run(*args, "--csv", "-").stdout)
    ds = hm.simulate(MODEL, **RATIOS, regularisation=[0.1, 1.0], seed=5, **SIZES)
    assert_same_numbers(table, hm.summary(ds))
    result = run(*args, "--nc", tmp_path / "fits.nc", "--per-seed")
    with xr.open_dataset(tmp_path / "fits.nc") as stored:
        xr.testing.assert_equal(stored.load().drop_vars("seconds"), ds.drop_vars("seconds"))
    means = hm.summary(ds).isel(p_over_n=0, regularisation=0)
    value, error = float(means.training_loss), float(means.training_loss_stderr)
    assert printed_tables.with_error(value, error) in result.stdout


@pytest.mark.slow
def test_compare_prints_theory_and_z(tmp_path):
    args = ("compare", *GRID, "--lam", 1, *SMALL, "--data", "equivalent")
    result = run(*args, "--csv", tmp_path / "out.csv", "--plot", tmp_path / "out.png")
    ds = hm.compare(MODEL, **RATIOS, regularisation=1.0, data="equivalent", **SIZES)
    assert_same_numbers(read_csv((tmp_path / "out.csv").read_text()), ds)
    assert f"{ds.generalisation_error_z.values[0]:+.1f}" in result.stdout
    assert f"{ds.generalisation_error_theory.values[0]:.6g}" in result.stdout
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_compare_can_be_made_at_the_best_regularisation(tmp_path):
    args = ("compare", *GRID, "--loss", "square", "--lam", "optimal", "--bounds", "0.02:0.9")
    result = run(*args, *SMALL, "--csv", tmp_path / "out.csv", "--plot", tmp_path / "out.svg")
    best = hm.Optimal(bounds=(0.02, 0.9))
    ds = hm.compare(SQUARE, **RATIOS, regularisation=best, **SIZES)
    assert_same_numbers(read_csv((tmp_path / "out.csv").read_text()), ds)
    for lam in ds.optimal_regularisation.values:
        assert f"{lam:.6g}" in result.stdout
    assert "lambda_{" in (tmp_path / "out.svg").read_text()


@pytest.mark.slow
def test_a_regularisation_of_zero_has_its_place_in_the_plot_of_a_comparison(tmp_path):
    args = ("--n-over-d", 3, "--p-over-n", 2, "--lam", "0,0.01,1", "--loss", "square")
    run("compare", *args, *SMALL, "--plot", tmp_path / "out.svg", "-q")
    assert r"0^+" in (tmp_path / "out.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_plots_are_files_of_their_kind(tmp_path, suffix, start):
    path = tmp_path / f"plot.{suffix}"
    run("predict", *GRID, "--lam", "0.1,1", "--plot", path, "-q")
    assert path.read_bytes().startswith(start)


@pytest.mark.slow
def test_pieces_make_the_same_whole(monkeypatch):
    args = ("predict", "--n-over-d", "2,3", "--p-over-n", "0.1:3:7", "--lam", "0.1,1", "--csv", "-")
    whole = read_csv(run(*args).stdout)
    monkeypatch.setitem(theory_commands.PIECES, "predict", 8)
    pieces = read_csv(run(*args).stdout)
    assert list(pieces) == list(whole)
    for name in ("n_over_d", "p_over_n", "regularisation", "status"):
        assert pieces[name] == whole[name]
    for name in ("generalisation_error", "training_loss", "q_w"):
        found, expected = (np.array(table[name], dtype=float) for table in (pieces, whole))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_an_interrupt_keeps_the_pieces_that_are_done(monkeypatch):
    pieces = []

    def call(p_over_n):
        if len(pieces) == 2:
            raise KeyboardInterrupt
        pieces.append(p_over_n)
        return hm.predict(MODEL, n_over_d=3.0, p_over_n=p_over_n, regularisation=1.0)

    ds = work.in_pieces(call, {"p_over_n": np.linspace(1, 2, 12)}, 3)
    assert ds.attrs["interrupted"] == 1
    np.testing.assert_array_equal(ds.p_over_n, np.linspace(1, 2, 12)[:6])

    monkeypatch.setitem(theory_commands.PIECES, "predict", 3)
    monkeypatch.setattr("hiddenmanifold.api.predict.predict", lambda *_, **__: interrupt())
    out = run("predict", *GRID, "--n-over-d", "1,2", "--lam", 1, code=Code.INTERRUPTED)
    assert "before anything was done" in complaint(out)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_an_interrupted_simulation_is_delivered_and_says_so(monkeypatch, tmp_path, command):
    run_trial, done = Trial.run, []

    def stopping(self):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(self)
        return run_trial(self)

    monkeypatch.setattr(Trial, "run", stopping)
    before = signal.getsignal(signal.SIGINT), threading.excepthook
    path = tmp_path / "half.json"
    args = (command, *GRID, "--lam", 1, *SMALL, "--json", path, "-q")
    assert "what was done is kept" in complaint(run(*args, code=Code.INTERRUPTED))
    written = json.loads(path.read_text(encoding="utf-8"))
    told = [written["attributes"][name] for name in ("interrupted", "done", "asked")]
    assert told == ["1", "4", "9"]
    assert [point["seeds"] for point in written["points"]] == [3, 1, 0]
    assert (signal.getsignal(signal.SIGINT), threading.excepthook) == before


def test_an_interrupted_figure_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr("hiddenmanifold.figures.run", lambda *_, **__: interrupt())
    out = run("figure", 1, "--directory", tmp_path, code=Code.INTERRUPTED)
    assert complaint(out) == "error: interrupted"


def interrupt():
    raise KeyboardInterrupt


REFUSED = [
    ((*GRID, "--lam", "1:2"), "--regularisation' / '--lam': '1:2' is not allowed"),
    (("--n-over-d", "0.1:", "--p-over-n", "1", "--lam", "1"), "--n-over-d': '0.1:' is not allowed"),
    ((*GRID, "--lam", "-1"), "regularisation = -1.0"),
    ((*GRID, "--lam", "1", "--loss", "logistik"), "did you mean 'logistic'"),
    ((*GRID, "--lam", "1", "--teacher", "sign:nose=1"), "did you mean 'noise'"),
    ((*GRID, "--lam", "1", "--teacher", "linear"), "do not fit together"),
    ((*GRID, "--lam", "1", "--loss", "poisson"), "do not fit together"),
    ((*GRID, "--lam", "1", "--prediction", "expp"), "did you mean 'exp'"),
    ((*GRID, "--lam", "1", "--teacher", "real:scale=exp"), "cannot be typed"),
    (("--n-over-d", "3", "--lam", "1"), "exactly two independent ratios"),
    ((*GRID, "--lam", "optimal", "--bounds", "1"), "--bounds"),
    ((*GRID, "--lam", "optimal", "--minimise", "loss"), "'generalisation_error' or"),
    ((*GRID, "--lam", "1", "--workers", "0"), "workers = 0"),
    ((*GRID, "--lam", "1", "--plot", "out.jpg"), ".png, .pdf, .svg"),
    ((*GRID, "--lam", "1", "--csv", "-", "--json", "-"), "one of --csv and --json"),
    ((*GRID, "--lam", "1", "--nc", "-"), "one of --csv and --json"),
    ((*GRID, "--lam", "1", "--lamda", "1"), "--lam"),
    (GRID, "Missing option '--regularisation'"),
]


@pytest.mark.parametrize(("args", "sentence"), REFUSED, ids=[r[1] for r in REFUSED])
def test_bad_input_is_refused_in_one_sentence(args, sentence):
    result = run("predict", *args, code=Code.BAD_INPUT)
    assert sentence in complaint(result)
    assert not result.stdout


def test_unknown_commands_are_guessed():
    assert "Did you mean 'predict'" in complaint(run("predikt", code=Code.BAD_INPUT))
    assert "one of 1, " in complaint(run("figure", "99", code=Code.BAD_INPUT))


@pytest.mark.parametrize("option", ["--csv", "--json", "--nc", "--plot"])
def test_a_file_that_cannot_be_written_is_told_before_the_work(tmp_path, option, monkeypatch):
    monkeypatch.setattr("hiddenmanifold.api.predict.predict", lambda *_, **__: pytest.fail("ran"))
    (tmp_path / "folder.png").mkdir()
    for path, reason in (
        (tmp_path / "nowhere" / "out.png", "there is no directory"),
        (tmp_path / "folder.png", "it is a directory"),
    ):
        result = run("predict", *GRID, "--lam", 1, option, path, code=Code.NO_OUTPUT)
        assert f"cannot write {path}: {reason}" in complaint(result)


def test_a_disk_that_fails_later_is_told_in_one_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "out.nc")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    result = run("predict", *GRID, "--lam", 1, "--nc", tmp_path / "out.nc", code=Code.NO_OUTPUT)
    assert "cannot write out.nc: No space left on device" in complaint(result)


def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "a.png"
    result = run("predict", *GRID, "--lam", 1, "--plot", path, code=Code.NO_OUTPUT)
    assert "hiddenmanifold[plot]" in complaint(result)


def test_debug_shows_the_traceback():
    args = ("predict", *GRID, "--lam", 1, "--loss", "logistik")
    result = run(*args, "--debug", code=Code.BAD_INPUT)
    assert "Traceback" in result.stderr
    assert "in resolve" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: loss = 'logistik'")


def test_a_worker_that_died_is_not_the_fault_of_the_command(monkeypatch):
    def broken(*_, **__):
        raise hm.LostWorkerError("a worker process ended")

    monkeypatch.setattr("hiddenmanifold.api.predict.asymptotics", broken)
    result = run("predict", *GRID, "--lam", 1, code=Code.NO_OUTPUT)
    assert complaint(result) == "error: a worker process ended"


def test_a_defect_has_a_code_of_its_own(monkeypatch):
    monkeypatch.setattr("hiddenmanifold.api.predict.predict", lambda *_, **__: 1 / 0)
    result = run("predict", *GRID, "--lam", 1, code=Code.DEFECT)
    assert "ZeroDivisionError: division by zero" in complaint(result)


@pytest.mark.slow
def test_a_theory_that_fails_does_not_cost_the_simulation():
    args = ("--n-over-d", 3, "--p-over-n", "0.5,1", "--lam", 0, "--loss", "square")
    result = run("compare", *args, *SMALL, code=Code.INCOMPLETE)
    assert f"1 of 2 points failed: {hm.Status.THRESHOLD.sentence}" in complaint(result)
    assert "threshold" in result.stdout
    ds = hm.compare(SQUARE, n_over_d=3.0, p_over_n=[0.5, 1.0], regularisation=0.0, **SIZES)
    at = ds.isel(p_over_n=1)
    mean, error = float(at.training_loss), float(at.training_loss_stderr)
    assert printed_tables.with_error(mean, error) in result.stdout


@pytest.mark.slow
def test_several_fits_are_predicted_as_in_the_library():
    at = ("--n-over-d", 2, "--p-over-n", "0.5,1", "--lam", 0.1)
    given = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0], "regularisation": 0.1}
    bag = ("--resampling", "sub_sample:fraction=0.5", "--independent", "none")
    bagged = {"resampling": hm.resampling.SubSample(0.5), "independent": "none"}
    found = run("ensemble", *at, *bag, "--members", "1,inf", "--csv", "-").stdout
    ds = hm.ensemble(MODEL, members=[1, np.inf], **given, **bagged)
    errors = [float(error) for error in read_csv(found)["generalisation_error"]]
    assert errors == ds.generalisation_error.values.ravel().tolist()
    found = run("bias-variance", *at, "--csv", "-").stdout
    assert_same_numbers(read_csv(found), hm.bias_variance(MODEL, **given))
    found = run("instability", *at, *bag, "--csv", "-").stdout
    assert_same_numbers(read_csv(found), hm.instability(MODEL, **given, **bagged))
    assert "disagreement" in run("instability", *at).stdout
    result = run("instability", *at, "--independent", "none", code=Code.BAD_INPUT)
    assert "makes all fits equal" in complaint(result)
    second = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="hinge")
    two = ("--second-loss", "hinge", "--second-activation", "erf", "--second-lam", 0.3)
    found = run("pair", *at, *two, "--second-p-over-d", "2", "--share", "0.5", "--csv", "-").stdout
    ds = hm.pair(MODEL, second, **given, regularisation_2=0.3, p_2_over_d=2.0, share=0.5)
    errors = [float(error) for error in read_csv(found)["generalisation_error"]]
    assert errors == ds.generalisation_error.values.ravel().tolist()
    assert "training error 2" in run("pair", *at, *two).stdout


def test_a_threshold_that_is_not_found_is_told():
    result = run("threshold", "--n-over-d", "1,1e200", code=Code.INCOMPLETE)
    assert "1 of 2 points failed: the equations gave a value" in complaint(result)
    found = float(hm.separability_threshold(MODEL, n_over_d=1.0).p_over_n)
    assert f"{found:.6g}" in result.stdout


def test_a_fit_that_fell_short_is_told(monkeypatch):
    monkeypatch.setattr("hiddenmanifold.results.datasets.ACCEPTED", -1.0)
    result = run("simulate", *GRID, "--lam", 1, *SMALL, code=Code.INCOMPLETE)
    assert "9 fits fell short of their optimum" in complaint(result)


@pytest.mark.slow
def test_training_is_printed_by_steps_and_unstable_ones_are_counted():
    args = ("training", "--loss", "square", "--n-over-d", 1, "--p-over-n", 2, "--times", "0,20,inf")
    assert "time" in run(*args).stdout
    assert "steps" in run(*args, "--step", 0.3, "--momentum", 0.5).stdout
    result = run(*args, "--step", 30, code=Code.INCOMPLETE)
    assert "the step of gradient descent is too large" in complaint(result)
    pass_ = ("--method", "one-pass", "--step", 0.5)
    assert "n/d = 1" in run(*args[:-2], *pass_).stdout


@pytest.mark.slow
def test_the_best_time_is_printed():
    args = ("training", "--loss", "square", "--n-over-d", 1, "--p-over-n", 2, "--best")
    assert "1.20768" in run(*args).stdout
    assert "steps" in run(*args, "--step", 0.3).stdout
    result = run(*args, "--times", 1, code=Code.BAD_INPUT)
    assert "leave out either --best or --times" in complaint(result)


@pytest.mark.slow
def test_help_names_every_command_option_and_exit_code():
    text = run("--help").stdout
    for code in Code:
        assert re.search(rf"\b{code.value}\b", text)
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert names == [
        *("predict", "sensitivity", "threshold", "existence", "peak", "features-needed"),
        *("samples-needed", "bayes", "training", "ensemble", "bias-variance", "instability"),
        *(
            "pair",
            "simulate",
            "compare",
            "data",
            "data-training",
            "sample-size",
            "explore",
            "figure",
            "claims",
            "demo",
        ),
    ]
    for name in names:
        assert name in text
        own = run(name, "--help").stdout
        assert "--debug" in own
        without = ("sample-size", "explore", "figure", "claims", "demo")
        assert ("0.05:3:60" in own) == (name not in without)
    assert run().stdout == text


@pytest.mark.slow
def test_the_shell_completes_ingredients():
    environment = {
        "_HIDDENMANIFOLD_COMPLETE": "complete_bash",
        "COMP_WORDS": "hiddenmanifold predict --loss hu",
        "COMP_CWORD": "3",
    }
    result = CliRunner().invoke(app, [], prog_name="hiddenmanifold", env=environment)
    assert result.stdout.split() == ["huber"]


def test_numbers_are_rounded_to_their_errors():
    assert printed_tables.with_error(0.33891, 0.0123) == "0.339 ± 0.012"
    assert printed_tables.with_error(12.3456, 12.0) == "12 ± 12"
    assert printed_tables.with_error(0.0, 0.0) == "0"
    assert printed_tables.with_error(np.nan, np.nan) == "—"
    assert printed_tables.with_error(1e-12, 1e-13) == "1e-12 ± 1e-13"
    assert printed_tables.digits(np.inf) == "∞"


def test_claims_are_printed_and_reported(tmp_path, monkeypatch):
    from hiddenmanifold.figures import claims

    rows = [
        claims.Row("the peak", "1", "1.0000", claims.HOLDS),
        claims.Row("the limit", "0.17", "0.1498", claims.DIFFERS, "read elsewhere"),
    ]
    monkeypatch.setattr(claims, "check", lambda progress=False: rows)
    result = run("claims", "--report", tmp_path / "made")
    for row in rows:
        for text in (row.claim, row.expected, row.computed, row.verdict, row.note):
            assert text in result.output
    page = (tmp_path / "made" / "report.html").read_text(encoding="utf-8")
    assert "the limit" in page
    assert "Not drawn yet: figures 1, 2, 3, 4, 5, 6, 7" in page
    assert "report.html" not in run("claims").output


def test_the_demonstration_ends_on_one_screen(tmp_path, monkeypatch):
    from hiddenmanifold import figures
    from hiddenmanifold.figures import claims

    verdicts = [claims.HOLDS] * 20 + [claims.REMARK] * 4 + [claims.DIFFERS]
    rows = [claims.Row(f"claim {i}", "1", "2", verdict) for i, verdict in enumerate(verdicts)]
    monkeypatch.setattr(claims, "check", lambda progress=False: rows)
    ds = xr.Dataset({"training_loss_z": ("n", [0.5, -2.0])})
    monkeypatch.setattr(figures, "datasets", lambda number, **how: {"simulation": ds})
    monkeypatch.setattr(figures, "run", lambda number, **how: [tmp_path / f"{number}.png"])
    told = run("demo", "--directory", tmp_path).output
    assert told.count("2 simulated numbers against theory: largest |z| 2.0") == 2
    assert "of 25 in the text 20 hold, 4 with a remark, and 1 differ:" in told
    assert "claim 24: 1, computed 2" in told and "claim 23" not in told
    assert (tmp_path / "report.html").exists()
    assert len(told.splitlines()) < 24


def test_figures_are_drawn_one_or_all(tmp_path, monkeypatch):
    from hiddenmanifold import figures

    calls = []

    def fake(number, *, quick, directory, progress):
        calls.append((number, quick))
        return [directory / f"figure_{number}.png"]

    monkeypatch.setattr(figures, "run", fake)
    result = run("figure", "4", "--full", "--directory", tmp_path)
    assert result.output.strip().endswith("figure_4.png")
    run("figure", "all", "--quick", "--directory", tmp_path)
    assert calls == [(4, False), *((n, True) for n in range(1, 8))]
    assert "one of 1, 2, 3, 4, 5, 6, 7, or all" in complaint(
        run("figure", "8", code=Code.BAD_INPUT)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["predict --lam 0.1", "sensitivity --lam 0.1", "predict --lam optimal --minimise test_loss"]
    + [f"{name} --lam 0.1 --d 12 --seeds 3 --n-test 30" for name in ("simulate", "compare")],
)
def test_observables_can_be_asked_for(command):
    ratios = ["--n-over-d", "2", "--p-over-n", "1", "--observables", "test_loss,auc", "--json", "-"]
    done = CliRunner().invoke(app, [*command.split(), *ratios, "-q"])
    assert done.exit_code == 0, done.stderr
    for name in ("test_loss", "auc"):
        assert name in done.stdout
    refused = CliRunner().invoke(app, [*command.split(), *ratios[:-3], "nonsense"])
    assert refused.exit_code == 2
    assert "nonsense" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("at", ["0.2", "0.2,0.7"])
def test_decisions_at_thresholds_can_be_asked_for(at):
    asked = ("--lam", "0.1", "--decision-thresholds", at)
    thresholds = [float(t) for t in at.split(",")]
    ds = hm.predict(MODEL, **RATIOS, regularisation=0.1, decision_thresholds=thresholds)
    shown = run("predict", *GRID, *asked).stdout
    for t in thresholds:
        assert f"net benefit {t}" in " ".join(shown.split())
        assert f"{float(ds.net_benefit.sel(decision_threshold=t)[0]):.6g}" in shown


@pytest.mark.slow
def test_observables_that_are_asked_for_are_in_the_table():
    asked = ("--lam", "0.1", "--observables", "auc")
    ds = hm.predict(MODEL, **RATIOS, regularisation=0.1, observables="auc")
    slopes = hm.sensitivity(MODEL, **RATIOS, regularisation=0.1, observables="auc")
    assert f"{ds.auc.values[0]:.6g}" in run("predict", *GRID, *asked).stdout
    shown = run("sensitivity", *GRID, *asked).stdout
    assert f"{slopes.auc_by_log_n.values[0]:.6g}" in shown
    refused = run("predict", *GRID, "--lam", "0.1", "--show", "auc", code=Code.BAD_INPUT)
    assert "--observables auc measures it" in complaint(refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "function", "sizes"),
    [
        ("predict --lam 0.1", partial(hm.predict, regularisation=0.1), "n p d"),
        ("threshold", hm.separability_threshold, "n d"),
        ("peak --lam 0", partial(hm.interpolation_peak, regularisation=0), "d p"),
        ("simulate --lam 0.1", partial(hm.simulate, regularisation=0.1), "n p d"),
        ("compare --lam 0.1", partial(hm.compare, regularisation=0.1), "n p d"),
    ],
)
def test_sizes_may_take_the_place_of_ratios(command, function, sizes):
    given = {name: {"n": 60, "p": 40, "d": 20}[name] for name in sizes.split()}
    more = {"seeds": 3, "n_test": 50} if "compare" in command or "simulate" in command else {}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in {**given, **more}.items()]
    result = run(*command.split(), *options, "--csv", "-")
    expected = function(MODEL, **given, **more)
    if isinstance(expected, xr.DataArray):
        expected = expected.to_dataset()
    assert_same_numbers(
        read_csv(result.stdout), hm.summary(expected) if "seed" in expected.dims else expected
    )


@pytest.mark.slow
def test_the_theory_beside_simulated_sizes_has_whole_sizes(tmp_path):
    sizes = ("--n", 30, "--p", "10,20,30", "--d", 10, "--lam", 0.1, "--seeds", 2, "--n-test", 50)
    run("compare", *sizes, "--plot", tmp_path / "a.png", "-q")
    assert (tmp_path / "a.png").exists()


def test_samples_needed(tmp_path):
    arguments = ["samples-needed", "--p-over-d", "3", "--target", "0.2,0.05", "--loss", "square"]
    done = run(*arguments, "--activation", "erf", "--json", tmp_path / "needed.json")
    assert done.exit_code == 0, done.stderr
    few, none = json.loads((tmp_path / "needed.json").read_text())["points"]
    assert few["n_over_d"] == pytest.approx(2.324, abs=1e-3)
    assert none["n_over_d"] == "inf"
    assert f"{none['infinite_data_limit']:.6g}" in done.stdout  # why there is no such number
