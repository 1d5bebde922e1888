"""A real Dask cluster on loopback: the same bits, whatever dies on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold.parallel.workers import LostWorkerError
from hiddenmanifold.storage import Store

distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")
pytestmark = [
    pytest.mark.slow,
    # of its own event loop, when a scheduler or a worker is gone
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODEL = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
GRID = {"n_over_d": [1.0, 2.0], "p_over_n": np.geomspace(0.2, 3.0, 12), "regularisation": 0.01}
SWEEP = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": [0.01, 1.0]}
SWEEP |= {"d": 30, "seeds": 6, "n_test": 100}
LONG = SWEEP | {"d": 150, "seeds": 16, "n_test": 2000}


class Cluster:
    """A scheduler and two workers, each a process."""

    def __init__(self, folder, stack):
        self.file, self.stack = folder / "scheduler.json", stack
        here = ("--host", "127.0.0.1", "--no-dashboard")
        own = ("--port", "0", "--scheduler-file", str(self.file))
        self.scheduler = self._started("dask_scheduler", *here, *own)
        while not (self.file.exists() and self.file.read_text().endswith("}")):  # written in parts
            time.sleep(0.02)
        where = ("--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny")
        self.workers = [self._started("dask_worker", *here, *where) for _ in range(2)]
        self.address = json.loads(self.file.read_text())["address"]

    def _started(self, module, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    @contextmanager
    def client(self):
        with distributed.Client(self.address, timeout=30) as client:
            client.wait_for_workers(2, timeout=60)
            yield client


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("cluster"), stack)


@pytest.fixture(scope="module")
def client(cluster):
    with cluster.client() as client:
        yield client


@pytest.fixture(scope="module")
def alone():
    """The long simulation, without a cluster."""
    return bare(hm.simulate(MODEL, **LONG))


def bare(ds):
    return ds.drop_attrs().drop_vars("seconds", errors="ignore")


def test_it_listens_on_loopback_alone(cluster, client):
    addresses = [cluster.address, *client.scheduler_info()["workers"]]
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)


@pytest.mark.parametrize("regularisation", [0.01, "optimal"])
def test_theory_is_the_same_to_the_bit(client, regularisation):
    asked = GRID | {"regularisation": regularisation}
    there = hm.predict(MODEL, **asked, executor=client)
    assert bare(there).equals(bare(hm.predict(MODEL, **asked)))


def test_lazy_grids_are_the_same_to_the_bit(client):
    lazy = hm.predict(MODEL, **GRID, chunks={"p_over_n": 5})
    there = client.compute(lazy, sync=True)
    assert there.equals(lazy.compute(scheduler="synchronous"))


def test_simulations_are_the_same_to_the_bit(client, tmp_path):
    there = hm.simulate(MODEL, **SWEEP, executor=client, store=tmp_path / "runs.db")
    assert there.attrs["computed"] == 24
    assert bare(there).equals(bare(hm.simulate(MODEL, **SWEEP)))
    assert hm.simulate(MODEL, **SWEEP, store=tmp_path / "runs.db").attrs["reused"] == 24


def test_lambdas_travel(client):
    model = hm.Model(
        activation=lambda x: np.tanh(x) + 0.0,
        projection="gaussian",
        teacher="sign",
        loss="logistic",
    )
    there = hm.simulate(model, **SWEEP, executor=client)
    assert bare(there).equals(bare(hm.simulate(model, **SWEEP)))


def later(store, rows, action):
    """Do something as soon as a store has so many rows."""

    def watch():
        while not store.exists() or len(list(Store(store).rows())) < rows:
            time.sleep(0.01)
        action()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_killed_worker_loses_nothing(tmp_path, alone):
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        with cluster.client() as client:
            killer = later(tmp_path / "runs.db", 4, cluster.workers[0].kill)
            there = hm.simulate(MODEL, **LONG, executor=client, store=tmp_path / "runs.db")
            killer.join()
            left = len(client.scheduler_info()["workers"])
    assert left == 1
    assert there.attrs["computed"] == 64
    assert bare(there).equals(alone)


def test_without_its_scheduler_it_says_so_and_goes_on_from_the_store(tmp_path, alone):
    store = tmp_path / "runs.db"
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        with cluster.client() as client:
            killer = later(store, 4, lambda: os.kill(cluster.scheduler.pid, signal.SIGKILL))
            with pytest.raises(LostWorkerError, match="the scheduler of the cluster is gone"):
                hm.simulate(MODEL, **LONG, executor=client, store=store)
            killer.join()
    kept = len(list(Store(store).rows()))
    assert 4 <= kept < 64
    rest = hm.simulate(MODEL, **LONG, store=store)
    assert (rest.attrs["computed"], rest.attrs["reused"]) == (64 - kept, kept)
    xr.testing.assert_equal(bare(rest), alone)
