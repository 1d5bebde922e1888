"""Measure big sweeps: workers here and on a Dask cluster, overhead per task, memory of lazy grids.

`python benchmarks/sweeps.py POINTS` measures a lazy grid of so many points in a process of its own.
"""

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import numpy as np
from page import heading

import hiddenmanifold as hm
from hiddenmanifold.parallel.workers import Workers

SWEEP = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0, 2.0], "regularisation": 0.01, "d": 250}


def main() -> None:
    overhead()
    workers()
    memory()


def model(loss: str = "logistic") -> hm.Model:
    return hm.Model(activation="erf", projection="gaussian", teacher="sign", loss=loss)


def seconds(**how: object) -> float:
    start = time.perf_counter()
    hm.simulate(model(), **SWEEP, seeds=40, progress=False, **how)
    return time.perf_counter() - start


def workers() -> None:
    from distributed import Client, LocalCluster

    heading("One worker and two, a sweep of 120 logistic trials, best of 2 in turn")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(**options) as two,
        LocalCluster(**options | {"n_workers": 1}) as one,
        Client(two) as both,
        Client(one) as single,
    ):
        runs = {
            "1 process": {"workers": 1},
            "2 processes": {"workers": 2},
            "Dask, 1 worker": {"executor": single},
            "Dask, 2 workers": {"executor": both},
        }
        best = dict.fromkeys(runs, np.inf)
        for _ in range(2):
            for name, how in runs.items():
                best[name] = min(best[name], seconds(**how))
    for name, value in best.items():
        print(f"{name:16} {value:6.2f} s   {best['1 process'] / value:.2f} times as fast as one")
    print(
        f"Dask alone, 2 workers against 1: {best['Dask, 1 worker'] / best['Dask, 2 workers']:.2f}"
    )


@dataclass(frozen=True)
class Nothing:
    """A job that does nothing."""

    def run(self) -> None: ...


def overhead(jobs: int = 3000) -> None:
    from distributed import Client, LocalCluster

    heading(f"Overhead per task, {jobs} tasks that do nothing")

    def measured(name: str, workers: Workers) -> None:
        workers.run([Nothing()] * 10)
        start = time.perf_counter()
        workers.run([Nothing()] * jobs)
        print(f"{name:12} {(time.perf_counter() - start) / jobs * 1e6:8.0f} µs")

    measured("2 processes", Workers(2))  # first: beside the threads of a cluster none can be forked
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        measured("Dask", Workers(executor=client))


def memory() -> None:
    heading("Theory on a lazy grid to zarr (square loss, chunks of 10⁵ points)")
    print("   points   µs/point   peak memory MB")
    for points in (10**6, 10**7):
        out = subprocess.check_output([sys.executable, __file__, str(points)], text=True)
        print(f"{points:9d} {out.strip()}", flush=True)


def measure_memory(points: int) -> None:
    axes = {
        "n_over_d": np.linspace(0.1, 6, 1000),
        "p_over_n": np.geomspace(0.01, 9, points // 1000),
    }
    start = time.perf_counter()
    ds = hm.predict(model("square"), **axes, regularisation=0.01, chunks={"p_over_n": 100})
    with tempfile.TemporaryDirectory() as folder:
        ds[["generalisation_error", "training_loss", "status"]].to_zarr(folder, zarr_format=2)
    per_point = (time.perf_counter() - start) / points * 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{per_point:10.1f} {peak:16.0f}")


if __name__ == "__main__":
    measure_memory(int(sys.argv[1])) if len(sys.argv) > 1 else main()
