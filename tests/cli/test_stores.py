"""The commands of a store, and workers elsewhere."""

import csv
import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold.cli import app
from hiddenmanifold.storage import Store

SIMULATE = "simulate --n-over-d 2 --p-over-n 0.5,2 --lam 0.1 --d 12 --seeds 3 --n-test 20"


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs.db"
    assert run(*SIMULATE.split(), "--store", path).exit_code == 0
    return path


@pytest.mark.slow
def test_simulations_go_on_from_a_store(path, monkeypatch):
    assert len(list(Store(path).rows())) == 6
    again = run(*SIMULATE.split(), "--seeds", 4, "--store", path, "--json", "-", "-q")
    assert again.exit_code == 0
    assert len(list(Store(path).rows())) == 8


@pytest.mark.slow
def test_ls_prints_a_line_per_row(path):
    shown = run("store", "ls", path)
    assert shown.exit_code == 0
    header, *lines = shown.stdout.splitlines()
    assert " ".join(header.split()) == (
        "state n p d regularisation root_seed seed data date key model"
    )
    found = {tuple(line.split()[:8]) for line in lines}
    expected = {
        ("reusable", "24", p, "12", "0.1", "0", seed, "original")
        for p in ("12", "48")
        for seed in "012"
    }
    assert found == expected
    assert all("Model(activation=Sign()" in line for line in lines)


@pytest.mark.slow
def test_export_writes_every_fit(path, tmp_path):
    for file in ("fits.csv", "fits.json"):
        assert run("store", "export", path, tmp_path / file).exit_code == 0
    with (tmp_path / "fits.csv").open() as file:
        table = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "fits.json").read_text().splitlines()]
    assert len(table) == len(lines) == 6
    ds = hm.simulate(
        hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic"),
        **{"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": 0.1},
        **{"d": 12, "seeds": 3, "n_test": 20},
    )
    expected = sorted(ds.training_loss.values.ravel().tolist())
    assert sorted(line["training_loss"] for line in lines) == expected
    assert sorted(float(row["training_loss"]) for row in table) == expected
    assert {row["version"] for row in table} == {ds.attrs["hiddenmanifold_version"]}
    assert run("store", "export", path, "-").stdout.count("\n") == 7
    refused = run("store", "export", path, tmp_path / "fits.pickle")
    assert refused.exit_code == 2
    assert "ends in .csv or .json" in refused.stderr


@pytest.mark.slow
def test_export_is_json_that_anybody_can_read(tmp_path):
    path, file = tmp_path / "runs.db", tmp_path / "fits.json"
    rare = "--teacher sign:threshold=3 --intercept --seeds 1"  # a single class has no minimum
    assert run(*SIMULATE.split(), *rare.split(), "--store", path).exit_code == 1
    assert run("store", "export", path, file).exit_code == 0
    fits = [json.loads(line, parse_constant=pytest.fail) for line in file.read_text().splitlines()]
    assert {fit["training_loss"] for fit in fits} == {None}
    assert {fit["optimality"] for fit in fits} == {"inf"}


@pytest.mark.slow
def test_damaged_rows_are_listed_and_exported_as_such(path, tmp_path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE results SET content = '{' WHERE key = (SELECT min(key) FROM results)")
        db.commit()
    assert "damaged" in run("store", "ls", path).stdout
    assert run("store", "export", path, tmp_path / "fits.json").exit_code == 0
    first, *others = map(json.loads, (tmp_path / "fits.json").read_text().splitlines())
    assert (first["intact"], "training_loss" in first) == (False, False)
    assert all(fit["intact"] for fit in others)
    assert "1 of 6 rows changed" in run("store", "verify", path).stderr


@pytest.mark.slow
def test_verify_finds_changed_rows_and_prune_takes_them_out(path):
    whole = run("store", "verify", path)
    assert (whole.exit_code, "6 rows, all intact" in whole.stdout) == (0, True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE results SET numbers = '{}' WHERE key = (SELECT min(key) FROM results)")
        db.commit()
    damaged = run("store", "verify", path)
    assert damaged.exit_code == 1
    assert "1 of 6 rows changed" in damaged.stderr
    assert "1 of 6 rows would go" in run("store", "prune", path, "--dry-run").stdout
    assert len(list(Store(path).rows())) == 6
    assert "1 of 6 rows taken out" in run("store", "prune", path).stdout
    assert "5 rows, all intact" in run("store", "verify", path).stdout


@pytest.mark.slow
def test_prune_takes_out_fits_by_another_version_of_the_algorithm(path, monkeypatch):
    from hiddenmanifold.simulation import trial_cache

    assert "0 of 6 rows" in run("store", "prune", path).stdout
    monkeypatch.setattr(trial_cache, "ALGORITHM_VERSION", trial_cache.ALGORITHM_VERSION + 1)
    assert "6 by another version of the algorithm" in run("store", "verify", path).stdout
    assert "6 of 6 rows taken out" in run("store", "prune", path).stdout


@pytest.mark.parametrize("command", ["ls", "verify", "prune"])
def test_what_is_no_store_is_refused(tmp_path, command):
    missing = run("store", command, tmp_path / "none.db")
    assert missing.exit_code == 3
    assert "there is no store" in missing.stderr
    (tmp_path / "mine.csv").write_text("mine")
    foreign = run("store", command, tmp_path / "mine.csv")
    assert foreign.exit_code == 3
    assert "is not a store of hiddenmanifold" in foreign.stderr


@pytest.mark.slow
def test_a_cluster_of_this_machine_gives_the_same():
    arguments = [
        "predict",
        "--n-over-d",
        "2",
        "--p-over-n",
        "0.5,2",
        "--lam",
        "0.1",
        "--csv",
        "-",
        "-q",
    ]
    there = run(*arguments, "--cluster", "local:2")
    assert there.exit_code == 0, there.stderr
    assert there.stdout == run(*arguments).stdout


@pytest.mark.parametrize(
    ("address", "sentence"),
    [("local:x", "local:N"), ("local:0", "local:N"), ("nowhere", "no cluster answers at nowhere")],
)
def test_a_cluster_that_is_none_is_one_sentence(address, sentence, monkeypatch):
    from hiddenmanifold.cli import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 1)
    refused = run("predict", "--n-over-d", 2, "--p-over-n", 1, "--lam", 1, "--cluster", address)
    assert refused.exit_code == 2
    assert sentence in refused.stderr
