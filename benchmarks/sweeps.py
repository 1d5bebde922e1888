"""Measure large sweeps: threads, processes, a Dask cluster, cost of a job, memory of lazy grids.

`python benchmarks/sweeps.py POINTS` measures a lazy grid of so many points in a process of its own.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from page import heading

import hiddenmanifold as hm
from hiddenmanifold.parallel import workers

SWEEP = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0, 2.0], "regularisation": 0.01, "d": 250}


def main() -> None:
    overhead()
    two_workers()
    cluster()
    memory()


def model(loss: str = "logistic") -> hm.Model:
    return hm.Model(activation="erf", projection="gaussian", teacher="sign", loss=loss)


def seconds(call: Callable[[], object], repeats: int = 2) -> float:
    """The shortest of some repeated calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def simulate(**how: Any) -> None:
    hm.simulate(model(), **SWEEP, seeds=20, progress=False, **how)


def predict(points: int, **how: Any) -> None:
    axis = np.geomspace(0.05, 5.0, points)
    hm.predict(model(), n_over_d=3.0, p_over_n=axis, regularisation=0.01, progress=False, **how)


def two_workers() -> None:
    heading("One worker, two threads and two processes, logistic loss")
    calls = {
        "10⁴ points": partial(predict, 10**4),
        "10⁶ points": partial(predict, 10**6),
        "60 trials": simulate,
    }
    for name, call in calls.items():
        one = seconds(partial(call, workers=1))
        line = f"{name:12} one worker {one:7.3f} s"
        for where, long in (("threads", np.inf), ("processes", 0.0)):
            with longer_than(long):
                two = seconds(partial(call, workers=2))
            line += f"   {where} {two:7.3f} s ({one / two:.2f} times as fast)"
        print(line, flush=True)


@contextmanager
def longer_than(limit: float) -> Iterator[None]:
    """Let work run in processes if it takes longer than so many seconds."""
    before, workers.LONG = workers.LONG, limit
    try:
        yield
    finally:
        workers.LONG = before


def cluster() -> None:
    from distributed import Client, LocalCluster

    heading("A Dask cluster of one worker and of two, 60 logistic trials")
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    times = []
    for count in (1, 2):
        with LocalCluster(n_workers=count, **options) as nodes, Client(nodes) as client:
            times.append(seconds(partial(simulate, executor=client)))
        print(f"{count} workers {times[-1]:6.2f} s   {times[0] / times[-1]:.2f} times as fast")


@dataclass(frozen=True)
class Nothing:
    """A job that does nothing."""

    def run(self) -> None: ...


def overhead(jobs: int = 3000) -> None:
    from distributed import Client, LocalCluster

    heading(f"Start and cost of a job, {jobs} jobs that do nothing")

    def measured(name: str, pool: workers.Workers) -> None:
        def all_jobs(count: int) -> None:
            for _ in pool.finished([Nothing()] * count, [1.0] * count):
                pass

        start = seconds(partial(all_jobs, 2))
        each = (seconds(partial(all_jobs, jobs)) - start) / jobs
        print(f"{name:12} start {start:6.3f} s   each {each * 1e6:6.0f} µs", flush=True)

    with longer_than(np.inf):
        measured("2 threads", workers.Workers(2))
    with longer_than(0.0):
        measured("2 processes", workers.Workers(2))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as nodes, Client(nodes) as client:
        measured("Dask", workers.Workers(executor=client))


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
