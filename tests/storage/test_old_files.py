"""Files written by earlier versions: listed, exported and resumed by this one."""

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from hiddenmanifold.cli import app
from hiddenmanifold.simulation import trial_cache
from hiddenmanifold.storage import Store
from storage.stored_files import CASES, OWN, simulated

FILES = Path(__file__).with_name("files")
RAISE = (
    "a fit differs from the one that was stored: if the change is meant, raise ALGORITHM_VERSION "
    "in simulation/trial_cache.py and write new files (tests/storage/stored_files.py)"
)
every_version = pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir()))


@pytest.fixture
def store(tmp_path, name):
    return Path(shutil.copy(FILES / name / "store.db", tmp_path))


def quantities(ds):
    return {name: ds[name].values for name in ds.data_vars if name != "seconds"}


@every_version
@pytest.mark.parametrize("case", CASES)
def test_stored_fits_are_resumed(store, name, case):
    ds = simulated(CASES[case], store=store)
    former = (name, case) == ("commit_14b87c2", "margins")  # a name for each, not an array
    assert ds.attrs["reused"] == (0 if former else ds.optimality.size)
    assert ds.attrs["computed"] + ds.attrs["reused"] == ds.optimality.size
    assert len(list(Store(store).rows())) == 56 + ds.attrs["computed"]  # nothing is thrown away


@pytest.mark.parametrize("name", [f"algorithm_{trial_cache.ALGORITHM_VERSION}"])
@pytest.mark.parametrize("case", CASES)
def test_the_numbers_of_this_version_of_the_algorithm_are_as_they_were_stored(store, case):
    stored, today = (quantities(simulated(CASES[case], store=path)) for path in (store, None))
    assert stored.keys() == today.keys()
    for quantity, values in stored.items():
        if quantity != "optimality":  # rounding alone decides how small it is
            np.testing.assert_allclose(
                today[quantity], values, rtol=1e-7, atol=1e-9, err_msg=f"{quantity}: {RAISE}"
            )


@every_version
def test_a_function_of_ones_own_is_resumed_only_if_its_identity_is_known(store, name):
    ds = simulated(OWN, store=store)
    # commit 14b87c2 kept a hash that no other version makes; bytecode is that of Python 3.11
    known = name != "commit_14b87c2" and sys.implementation.cache_tag == "cpython-311"
    assert ds.attrs["reused"] == (ds.optimality.size if known else 0)
    again = simulated(OWN, store=store)
    assert again.attrs["computed"] == 0


@every_version
def test_every_row_is_listed_and_exported(store, tmp_path, name):
    rows = list(Store(store).rows())
    assert all(intact for _, intact in rows)
    shown = CliRunner().invoke(app, ["store", "ls", str(store)])
    header, *lines = shown.stdout.splitlines()
    assert header.split()[0] == "state"
    assert len(lines) == len(rows) == 56
    states = Counter(line.split()[0] for line in lines)
    assert states == {"former" if name == "commit_14b87c2" else "reusable": 56}
    file = tmp_path / "fits.json"
    assert CliRunner().invoke(app, ["store", "export", str(store), str(file)]).exit_code == 0
    fits = [json.loads(line) for line in file.read_text().splitlines()]
    assert [fit["training_loss"] for fit in fits] == [r.numbers["training_loss"] for r, _ in rows]
    assert {fit["algorithm"] for fit in fits} == {1}


@every_version
def test_rows_by_another_algorithm_are_listed_and_computed_anew(store, monkeypatch):
    monkeypatch.setattr(trial_cache, "ALGORITHM_VERSION", 2)
    ds = simulated(CASES["logistic"], store=store)
    assert (ds.attrs["computed"], ds.attrs["reused"], ds.attrs["outdated"]) == (8, 0, 8)
    again = simulated(CASES["logistic"], store=store)
    assert (again.attrs["computed"], again.attrs["reused"], again.attrs["outdated"]) == (0, 8, 0)
    shown = CliRunner().invoke(app, ["store", "ls", str(store)]).stdout.splitlines()
    assert sorted(line.split()[0] for line in shown[1:]) == ["outdated"] * 56 + ["reusable"] * 8


@every_version
def test_datasets_are_read(store, name):
    with xr.open_dataset(FILES / name / "simulation.nc", engine="scipy") as ds:
        resumed = simulated(CASES["logistic"], store=store)
        for quantity, values in quantities(ds).items():
            np.testing.assert_array_equal(resumed[quantity], values)
        assert ds.attrs["model"] == resumed.attrs["model"]
    with xr.open_dataset(FILES / name / "prediction.nc", engine="scipy") as ds:
        assert (ds.optimal_regularisation > 0).all()
