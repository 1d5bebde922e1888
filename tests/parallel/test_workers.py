"""Wherever a computation runs, its numbers are the same to the bit."""

import asyncio
import os
import pickle
import platform
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_info, threadpool_limits

import hiddenmanifold as hm
import small_batches
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.parallel import workers
from hiddenmanifold.parallel.workers import LostWorkerError, Workers
from hiddenmanifold.simulation.experiment import Trial
from hiddenmanifold.simulation.samples import Sizes, World
from hiddenmanifold.theory.bayes import fixed_points
from hiddenmanifold.theory.bayes.label_information import Table, information_of
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import Batch, Request
from hiddenmanifold.theory.scores.distribution import auc
from hiddenmanifold.theory.separability import line
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint

MODEL = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
SQUARE = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
GRID = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.3, 3.0, 9)}
SIZES = {"d": 12, "seeds": 3, "n_test": 30}

CALLS = {
    "predict": lambda m, **how: hm.predict(m, **GRID, regularisation=[0.0, 1e-2], **how),
    "optimal": lambda m, **how: hm.predict(m, **GRID, regularisation="optimal", **how),
    "sensitivity": lambda m, **how: hm.sensitivity(m, **GRID, regularisation=1e-2, **how),
    "bayes_optimal": lambda m, **how: hm.bayes_optimal(m, **GRID, **how),
    "separability_threshold": lambda m, **how: hm.separability_threshold(
        m, n_over_d=np.geomspace(0.1, 10.0, 9), **how
    ),
    "interpolation_peak": lambda m, **how: hm.interpolation_peak(
        m, n_over_d=3.0, regularisation=[0.0, 1e-2], **how
    ),
    "features_needed": lambda _, **how: hm.features_needed(SQUARE, n_over_d=3.0, **how),
    "simulate": lambda m, **how: hm.simulate(m, **GRID, regularisation=0.1, **SIZES, **how),
    "compare": lambda m, **how: hm.compare(m, **GRID, regularisation=0.1, **SIZES, **how),
}
every_call = pytest.mark.parametrize("name", CALLS)


@pytest.fixture(autouse=True)
def several_jobs(monkeypatch):
    """Several batches of few points."""
    small_batches.apply(monkeypatch.setattr)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, get_context("spawn"), small_batches.apply) as pool:
        yield pool


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def expected():
    """What one worker finds, each call once."""
    known = {}

    def found(name):
        if name not in known:
            known[name] = CALLS[name](MODEL, workers=1)
        return known[name]

    return found


def assert_same_bits(found, expected):
    found, expected = (
        ds.drop_vars("seconds", errors="ignore").assign_attrs(workers=None)
        for ds in (found, expected)
    )
    xr.testing.assert_identical(found, expected)


# ---------------------------------------------------------------- any executor, any function


@pytest.mark.slow
@every_call
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_gives_the_same_bits_and_stays_open(request, expected, name, kind):
    pool = request.getfixturevalue(kind)
    found = CALLS[name](MODEL, executor=pool)
    assert_same_bits(found, expected(name))
    assert found.attrs["workers"] in (1, 2)
    assert pool.submit(int).result() == 0


class Inline(Executor):
    """Runs what it is given at once, where it is, and counts it."""

    def __init__(self):
        self.tasks = 0

    def submit(self, function, /, *args):
        future = Future()
        future.set_result(function(*args))
        self.tasks += len(future.result())  # jobs travel in bundles
        return future


@pytest.mark.slow
@every_call
def test_every_batch_goes_to_the_executor(expected, name):
    pool = Inline()
    found = CALLS[name](MODEL, executor=pool)
    assert_same_bits(found, expected(name))
    assert pool.tasks >= {"simulate": 27, "compare": 29}.get(name, 2)  # 27 trials, 2 batches
    assert found.attrs["workers"] == 1


@every_call
@pytest.mark.parametrize(("argument", "value"), [("executor", "dask"), ("workers", 0)])
def test_nonsense_is_refused_by_name(name, argument, value):
    with pytest.raises(hm.InvalidArgumentError) as caught:
        CALLS[name](MODEL, **{argument: value})
    assert caught.value.argument == argument


# ---------------------------------------------------------------- from threads and workers


@pytest.mark.slow
@every_call
def test_a_thread_of_a_server_gets_the_same_bits(expected, name):
    with ThreadPoolExecutor(1) as other:  # this thread may have the event loop of a browser
        found = other.submit(asyncio.run, thread_of(CALLS[name])).result()
    assert_same_bits(found, expected(name))


async def thread_of(call):
    return await asyncio.to_thread(call, MODEL, workers=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predict", "optimal", "simulate"])
def test_processes_give_the_same_bits(expected, name, long):
    found = CALLS[name](MODEL, workers=2)
    assert_same_bits(found, expected(name))


@pytest.fixture
def long(monkeypatch):
    """All work is long enough for processes."""
    monkeypatch.setattr(workers, "LONG", 0.0)


@pytest.mark.slow
def test_threads_may_call_at_the_same_time(expected):
    names = ["predict", "simulate", "bayes_optimal", "simulate", "predict", "compare"]
    with ThreadPoolExecutor(len(names)) as server:
        found = list(server.map(lambda name: CALLS[name](MODEL, workers=2), names))
    for name, ds in zip(names, found, strict=True):
        assert_same_bits(ds, expected(name))


@pytest.mark.slow
def test_a_daemonic_worker_may_not_have_children_and_uses_threads(monkeypatch):
    monkeypatch.undo()
    with get_context("spawn").Pool(1) as pool:  # its workers are daemons
        places, predicted = pool.apply(in_a_daemon)
    machines, processes, threads = zip(*places, strict=True)
    assert len(set(processes)) == 1
    assert len(set(threads)) == 2
    assert_same_bits(predicted, hm.predict(SQUARE, **MANY, workers=1))


MANY = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.3, 3.0, 9000), "regularisation": 0.1}


def in_a_daemon():
    """Where two jobs ran that wait for each other, however long they are, and a prediction."""
    meeting = Meeting(threading.Barrier(2))
    places = dict(Workers(2).finished([meeting] * 2, [1000.0] * 2)).values()
    return list(places), hm.predict(SQUARE, **MANY, workers=2)


@dataclass(frozen=True)
class Meeting:
    """Ends when as many run at once as the barrier waits for."""

    barrier: threading.Barrier

    def run(self):
        self.barrier.wait(60)
        return platform.node(), os.getpid(), threading.get_ident()


# ---------------------------------------------------------------- functions that cannot travel

LAMBDAS = {
    "activation": lambda x: np.tanh(2 * x),
    "teacher": hm.teachers.Custom(lambda nu: 1 / (1 + np.exp(-3 * nu))),
    "loss": hm.losses.Custom(
        lambda m: np.logaddexp(m - 1, 1 - m),
        lambda m: np.tanh(m - 1),
        lambda m: 1 - np.tanh(m - 1) ** 2,
    ),
}


def with_lambda(kind):
    parts = {"activation": "sign", "projection": "gaussian", "teacher": "sign", "loss": "logistic"}
    return hm.Model(**{**parts, kind: LAMBDAS[kind]})


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAMBDAS)
@pytest.mark.parametrize("name", ["predict", "simulate"])
def test_lambdas_are_sent_anywhere(processes, threads, monkeypatch, name, kind):
    one = CALLS[name](with_lambda(kind), workers=1)
    for how in ({"executor": processes}, {"executor": threads}, {"workers": 2}):
        assert_same_bits(CALLS[name](with_lambda(kind), **how), one)
    monkeypatch.setattr(workers, "LONG", 0.0)
    assert_same_bits(CALLS[name](with_lambda(kind), workers=2), one)


@pytest.mark.slow
def test_a_function_that_cannot_be_sent_is_refused_with_the_remedy(processes, monkeypatch):
    lock = threading.Lock()

    def locked(x):
        with lock:
            return np.tanh(2 * x)

    parts = {"projection": "gaussian", "teacher": "sign", "loss": "logistic"}
    model = hm.Model(activation=locked, **parts)
    with pytest.raises(hm.InvalidArgumentError, match="^model cannot be sent .*lock") as caught:
        CALLS["simulate"](model, executor=processes)
    for remedy in ("workers=", "ThreadPoolExecutor"):
        assert remedy in str(caught.value)
    assert processes.submit(int).result() == 0
    monkeypatch.setattr(workers, "LONG", 0.0)  # then threads run it
    assert_same_bits(CALLS["simulate"](model, workers=2), CALLS["simulate"](model, workers=1))


# ---------------------------------------------------------------- jobs are values

EQUATIONS = fixed_points.Equations(
    information_of(MODEL.teacher),
    MODEL.features.posterior(np.array([0.5, 2.0])),
    np.log([1.0, 3.0]),
)
POINTS = Points.of(np.array([0.5, 2.0]), np.array([1.0, 0.3]), np.array([1e-2, 1.0]))
PROBLEM = SaddlePoint.of(MODEL, POINTS)
JOBS = {
    "solve": Batch(PROBLEM, Request(("n", "p"), {"auc": auc})),
    "rescue": Batch(PROBLEM, lost=True),
    "bayes": fixed_points.Batch(
        EQUATIONS, Table.of(EQUATIONS.labels, 0.25 * np.arange(-96.0, 40.0))
    ),
    "threshold": line.ThresholdBatch(line.Line.of(MODEL), "n_over_d", np.array([0.1, 3.0])),
    "trial": Trial(MODEL, Sizes(30, 20, 10), (0.1, 1.0), np.random.SeedSequence(5), 40, False),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_was_sent_gives_the_same_bits(name):
    there, here = pickle.loads(pickle.dumps(JOBS[name])).run(), JOBS[name].run()
    if isinstance(here, tuple):
        there, here = dict(enumerate(there)), dict(enumerate(here))
    assert there.keys() == here.keys()
    for column in here.keys() - {"seconds"}:
        np.testing.assert_array_equal(there[column], here[column])
    if name != "trial":
        assert all(np.isfinite(values).all() for values in here.values())


# ---------------------------------------------------------------- what goes wrong


@dataclass(frozen=True)
class Raising:
    error: BaseException

    def run(self):
        raise self.error


@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2}, {"executor": Inline()}])
def test_what_a_job_raises_is_raised_by_its_workers(how):
    error = hm.ConvergenceError("lost", partial=3)
    with pytest.raises(hm.ConvergenceError, match="^lost") as caught:
        Workers(**how).run([Raising(error)] * 2)
    assert caught.value.partial == 3


def test_what_a_job_raises_in_another_process_arrives_with_its_type(processes):
    matrix = hm.projections.Matrix(np.ones((10, 20)))
    model = hm.Model(activation="erf", projection=matrix, teacher="sign", loss="square")
    wrong = Trial(model, Sizes(30, 20, 11), (0.1,), np.random.SeedSequence(5), 40, False)
    with pytest.raises(hm.InvalidArgumentError, match="^d = 11 .*number of rows") as caught:
        Workers(executor=processes).run([wrong])
    assert caught.value.argument == "d"


class Broken(Executor):
    """Has lost its workers."""

    def submit(self, function, /, *args):
        future = Future()
        future.set_exception(BrokenProcessPool("a process was terminated abruptly."))
        return future


@pytest.mark.parametrize("name", ["predict", "simulate"])
def test_a_broken_executor_says_so(name):
    with pytest.raises(LostWorkerError, match="jobs are missing.*terminated abruptly") as caught:
        CALLS[name](MODEL, executor=Broken())
    assert isinstance(caught.value, hm.HiddenManifoldError)
    assert isinstance(caught.value.__cause__, BrokenProcessPool)


@pytest.mark.parametrize("kind", LAMBDAS)
def test_that_an_executor_was_shut_down_is_no_fault_of_a_lambda(kind):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        CALLS["predict"](with_lambda(kind), executor=pool)


# ---------------------------------------------------------------- processes that are started

HEAD = """
import os, signal, sys, threading, time
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from hiddenmanifold.parallel.workers import LostWorkerError, Workers

handler, hook = signal.getsignal(signal.SIGINT), threading.excepthook

@dataclass(frozen=True)
class Calling:
    function: Any
    def run(self):
        return self.function()

class Awkward(Exception):
    def __init__(self, first, second):
        super().__init__("awkward")

def awkward():
    raise Awkward(1, 2)

def results(workers, *functions):
    jobs = [Calling(function) for function in functions]
    found = dict(workers.finished(jobs, [1000.0] * len(jobs)))
    return [found[number] for number in range(len(jobs))]

def sleep():
    time.sleep(600)
"""
UNTOUCHED = """
assert (signal.getsignal(signal.SIGINT), threading.excepthook) == (handler, hook)
print("untouched")
"""
SCRIPTS = {
    "share the work": """
import tempfile
folder = tempfile.mkdtemp()

def meet():  # ends when three are there
    open(f"{folder}/{os.getpid()}", "x").close()
    while len(os.listdir(folder)) < 3:
        time.sleep(0.01)
    return os.getpid()

workers = Workers(3)
found = results(workers, meet, meet, meet)
assert len({*found, os.getpid()}) == 4, found
assert workers.used == 3
assert results(Workers(2), *[lambda k=k: (k, b"x" * 10**6) for k in range(9)])[7][0] == 7
""",
    "raise": """
for function, expected, told in (
    (lambda: 1 / 0, ZeroDivisionError, "division by zero"),
    (awkward, RuntimeError, "Awkward: awkward"),
    (sys.exit, SystemExit, ""),
):
    try:
        results(Workers(2), int, function, int)
    except BaseException as error:
        assert type(error) is expected and told in str(error), repr(error)
        assert expected is RuntimeError or "in run" in error.__notes__[0]  # where it happened
    else:
        raise AssertionError(expected)
""",
    "are called beside a loop and a thread": """
import asyncio
threading.Thread(target=threading.Event().wait, daemon=True).start()

async def called():
    return results(Workers(2), os.getpid, os.getpid)

assert os.getpid() not in asyncio.run(called())
""",
    "die": """
try:
    results(Workers(2), int, lambda: os._exit(1), sleep)
except LostWorkerError as error:
    assert "of 3 jobs are missing" in str(error) and "memory" in str(error), error
else:
    raise AssertionError
""",
    "are left": """
jobs = [Calling(function) for function in (int, sleep, sleep, sleep)]
with closing(Workers(2).finished(jobs, [1000.0] * 4)) as found:
    assert next(found) == (0, 0)
""",
    "are interrupted": """
def interrupt():  # as in a terminal, where everyone gets it
    time.sleep(0.5)
    os.killpg(0, signal.SIGINT)
    time.sleep(600)

try:  # two at work, and two that have nothing more to do
    results(Workers(4), int, int, sleep, interrupt)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError
""",
}


def run_script(path, text):
    path = path / "script.py"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", SCRIPTS)
def test_processes_of_a_script_without_a_main_guard(what, tmp_path):
    done = run_script(tmp_path, HEAD + SCRIPTS[what] + UNTOUCHED)
    assert (done.stdout, done.stderr) == ("untouched\n", "")


ABANDONED = (
    HEAD
    + """
def end(number):
    print(os.getpid(), flush=True)
    if number == 1:
        os.kill(parent, signal.SIGKILL)
    return number

parent = os.getpid()
results(Workers(2), lambda: end(0), lambda: end(1))
"""
)


@pytest.mark.slow
def test_processes_do_not_outlive_a_parent_that_was_killed(tmp_path):
    # they hold the pipe that is read here: it would not end before they do
    done = run_script(tmp_path, ABANDONED)
    assert done.returncode == -signal.SIGKILL
    assert 1 <= len(done.stdout.split()) <= 2


AS_ON_WINDOWS = """
import os, signal, time
from multiprocessing import get_context
from types import SimpleNamespace
from hiddenmanifold.parallel import processes

def begin(parent):
    processes.sys = SimpleNamespace(platform="win32")
    processes._begin(-1)  # by the number of a process, the parent would be gone already
    time.sleep(0.5)
    print("alive", flush=True)
    os.kill(parent, signal.SIGKILL)
    time.sleep(600)

if __name__ == "__main__":
    get_context("spawn").Process(target=begin, args=(os.getpid(),)).start()
    time.sleep(600)
"""


@pytest.mark.slow
def test_nor_on_windows_where_the_number_of_a_parent_stays(tmp_path):
    done = run_script(tmp_path, AS_ON_WINDOWS)
    assert (done.stdout, done.returncode) == ("alive\n", -signal.SIGKILL)


ASLEEP = (
    HEAD
    + """
def interrupt():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)

try:
    Workers(2).run([Calling(sleep), Calling(interrupt)])
except KeyboardInterrupt:
    pass
else:
    raise AssertionError
"""
)


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_threads(tmp_path):
    done = run_script(tmp_path, ASLEEP + UNTOUCHED)
    assert (done.stdout, done.stderr) == ("untouched\n", "")


@pytest.mark.slow
def test_work_goes_on_in_processes_once_it_has_proved_long(monkeypatch):
    monkeypatch.setattr(workers, "LONG", 0.0)
    two = Workers(2)
    found = two.run([Where()] * 8)
    assert set(found[:4]) == {os.getpid()}  # two per worker are tried here
    assert os.getpid() not in found[4:]
    assert two.used == 2


class Where:
    def run(self):
        time.sleep(0.01)
        return os.getpid()


# ---------------------------------------------------------------- Ctrl-C

ASKED = 27


@pytest.fixture
def interrupted_after(monkeypatch):
    """Let a Ctrl-C come after so many trials."""

    def arrange(count):
        run, done = Trial.run, []

        def stopping(self):
            if len(done) == count:
                raise KeyboardInterrupt
            done.append(self)
            return run(self)

        monkeypatch.setattr(Trial, "run", stopping)

    return arrange


def test_a_whole_simulation_says_that_it_is_one(expected, tmp_path):
    for name in ("simulate", "compare"):
        attributes = expected(name).attrs
        assert [attributes[a] for a in ("interrupted", "done", "asked")] == [0, ASKED, ASKED]
    expected("simulate").to_netcdf(tmp_path / "kept.nc", engine="scipy")
    kept = xr.load_dataset(tmp_path / "kept.nc", engine="scipy").attrs
    assert (kept["interrupted"], kept["done"], kept["asked"], kept["workers"]) == (0, 27, 27, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulate", "compare"])
@pytest.mark.parametrize("here", [True, False], ids=["here", "executor"])
def test_an_interrupted_simulation_says_so(interrupted_after, expected, name, here):
    before = signal.getsignal(signal.SIGINT), threading.excepthook
    whole = expected("simulate")
    interrupted_after(10)
    with ThreadPoolExecutor(1) as pool:
        found = CALLS[name](MODEL, **({"workers": 1} if here else {"executor": pool}))
    assert (signal.getsignal(signal.SIGINT), threading.excepthook) == before
    assert [found.attrs[a] for a in ("interrupted", "done", "asked")] == [1, 10, ASKED]
    if name == "compare":
        assert found.seeds.values.tolist() == [3, 3, 3, 1, 0, 0, 0, 0, 0]
        assert not found.dropped.any()
    else:
        finished = np.arange(ASKED).reshape(9, 3) < 10
        for quantity in ("generalisation_error", "optimality", "q_w"):
            xr.testing.assert_identical(found[quantity], whole[quantity].where(finished))


def test_trials_without_a_minimum_are_no_interruption():
    one_sided = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=hm.teachers.Sign(threshold=4.0),
        loss="logistic",
        intercept=True,
    )
    found = CALLS["simulate"](one_sided, workers=1)
    assert np.isnan(found.generalisation_error).all()
    assert (found.attrs["interrupted"], found.attrs["done"]) == (0, ASKED)
    assert (hm.summary(found).dropped == 3).all()


# ---------------------------------------------------------------- linear algebra


def threads_of_linear_algebra():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_until_the_last_has_left():
    entered, left = threading.Event(), threading.Event()

    def other():
        with one_thread:
            entered.set()
            left.wait(60)

    with threadpool_limits(2):
        before = threads_of_linear_algebra()
        assert before != {1}
        thread = threading.Thread(target=other)
        with one_thread:
            thread.start()
            entered.wait(60)
        assert threads_of_linear_algebra() == {1}
        left.set()
        thread.join()
        assert threads_of_linear_algebra() == before


@pytest.mark.slow
def test_a_trial_has_one_thread_wherever_it_runs(monkeypatch):
    seen, draw = set(), World.draw

    def looking(*args, **options):
        seen.update(threads_of_linear_algebra())
        return draw(*args, **options)

    monkeypatch.setattr(World, "draw", looking)
    with threadpool_limits(2):
        JOBS["trial"].run()
    assert seen == {1}


# ---------------------------------------------------------------- how many at once


@pytest.mark.slow
def test_as_many_as_there_is_work_and_room_for():
    assert Workers(4).at_once(9) == 4
    assert Workers(4).at_once(3) == 3
    assert Workers(1).at_once(9) == 1
    assert Workers(4, Inline()).at_once(9) == 1  # of this machine's memory
