"""Simulations that keep their fits: killed, resumed, extended, they end as if in one go."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hiddenmanifold as hm
from given import plain_model as model
from hiddenmanifold.simulation import trial_cache
from hiddenmanifold.storage import Store, StoreError

SMALL = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "d": 20, "seeds": 3, "n_test": 50}
LAMS = [0.01, 1.0]


def same(one, other):
    """Equal to the bit, but for the time it took."""
    return one.drop_vars("seconds").equals(other.drop_vars("seconds"))


def counts(ds):
    return tuple(ds.attrs[name] for name in ("computed", "reused", "failed"))


@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_what_is_known_is_not_computed_again(tmp_path, loss):
    rule, store = model(loss=loss), tmp_path / "runs.db"
    plain = hm.simulate(rule, **SMALL, regularisation=LAMS)
    first = hm.simulate(rule, **SMALL, regularisation=LAMS, store=store)
    again = hm.simulate(rule, **SMALL, regularisation=LAMS, store=store)
    assert (counts(first), counts(again)) == ((12, 0, 0), (0, 12, 0))
    assert same(first, plain)
    assert again.equals(first)  # with the times


@pytest.mark.slow
def test_a_finished_sweep_grows(tmp_path):
    store = tmp_path / "runs.db"
    hm.simulate(model(), **SMALL, regularisation=LAMS, store=store)
    larger = SMALL | {"p_over_n": [0.5, 1.0, 2.0], "seeds": 5}
    ds = hm.simulate(model(), **larger, regularisation=LAMS, store=store)
    assert counts(ds) == (18, 12, 0)
    assert same(ds, hm.simulate(model(), **larger, regularisation=LAMS))
    finer = hm.simulate(model(), **SMALL, regularisation=[0.01, 0.1, 1.0], store=store)
    assert counts(finer) == (6, 12, 0)
    assert same(finer.sel(regularisation=LAMS), ds.sel(p_over_n=[0.5, 2.0], seed=range(3)))
    # fits of one seed start one another: alone, or among others, they agree to their certificate
    together = hm.simulate(model(), **SMALL, regularisation=[0.01, 0.1, 1.0])
    np.testing.assert_allclose(finer.training_loss, together.training_loss, rtol=1e-9)


def test_points_of_the_same_sizes_share_their_fits(tmp_path):
    asked = SMALL | {"p_over_n": [1.0, 1.001, 2.0]}  # the first two are rounded to the same
    first, again = (
        hm.simulate(model(), **asked, regularisation=LAMS, store=tmp_path / "runs.db")
        for _ in range(2)
    )
    assert (counts(first), counts(again)) == ((12, 0, 0), (0, 12, 0))
    assert (first.attrs["done"], first.attrs["asked"]) == (9, 9)
    assert same(first, hm.simulate(model(), **asked, regularisation=LAMS))
    assert again.equals(first)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"observables": ["auc"]},
        {"seed": 1},
        {"n_test": 51},
        {"d": 21},
        {"data": "equivalent"},
        {"regularisation": [0.02, 2.0]},
        {"n_over_d": 2.5},
        {"model": model(loss="square")},
        {"model": model(intercept=True)},
        {"model": model(teacher=hm.teachers.Sign(flip=0.1))},
        {"model": model(activation=lambda x: np.tanh(x) + 0.0)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_configuration_is_never_mixed_in(tmp_path, change):
    asked = {"model": model(), **SMALL, "regularisation": LAMS, "store": tmp_path / "runs.db"}
    hm.simulate(**asked)
    other = hm.simulate(**asked | change)
    assert counts(other)[1] == 0
    assert same(other, hm.simulate(**asked | change | {"store": None}))


def test_draws_without_a_minimum_are_counted_and_kept(tmp_path):
    rule = model(intercept=True, teacher=hm.teachers.Sign(threshold=1.5))
    asked = {"n_over_d": 0.5, "p_over_n": 1.0, "d": 6, "seeds": 20, "n_test": 20}
    asked |= {"regularisation": 0.1, "store": tmp_path / "runs.db"}
    first, again = (hm.simulate(rule, **asked) for _ in range(2))
    failed = first.attrs["failed"]
    assert failed > 0
    assert (counts(first), counts(again)) == ((20, 0, failed), (0, 20, failed))
    assert again.equals(first)


@pytest.mark.slow
def test_compare_uses_the_store_too(tmp_path):
    asked = {**SMALL, "regularisation": 0.1, "store": tmp_path / "runs.db"}
    first, again = (hm.compare(model(), **asked) for _ in range(2))
    assert (counts(first), counts(again)) == ((6, 0, 0), (0, 6, 0))
    assert again.equals(first)


@pytest.mark.slow
def test_functions_that_cannot_be_told_are_refused_before_any_work(tmp_path):
    rule = model(activation=np.frompyfunc(lambda x: np.tanh(x) + 0.0, 1, 1))
    with pytest.raises(hm.InvalidArgumentError, match="attribute `fingerprint`"):
        hm.simulate(rule, **SMALL, regularisation=LAMS, store=tmp_path / "runs.db")


def test_what_is_no_store_is_refused_before_any_work(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("mine")
    with pytest.raises(StoreError, match="is not a store"):
        hm.simulate(model(), **SMALL, regularisation=LAMS, store=path)
    assert path.read_text() == "mine"


def test_a_misspelt_call_leaves_no_store_behind(tmp_path):
    with pytest.raises(hm.InvalidArgumentError, match="n_test"):
        hm.simulate(
            model(), **SMALL | {"n_test": 0}, regularisation=LAMS, store=tmp_path / "runs.db"
        )
    assert not list(tmp_path.iterdir())


def test_an_interruption_keeps_what_is_done(tmp_path, monkeypatch):
    run, ran = trial_cache.Trial.run, []

    def interrupted(trial):
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(trial)
        return run(trial)

    asked = {**SMALL, "regularisation": LAMS, "store": tmp_path / "runs.db", "workers": 1}
    with monkeypatch.context() as patched:
        patched.setattr(trial_cache.Trial, "run", interrupted)
        cut = hm.simulate(model(), **asked)
    assert (cut.attrs["interrupted"], cut.attrs["done"], cut.attrs["asked"]) == (1, 4, 6)
    rest = hm.simulate(model(), **asked)
    assert counts(rest) == (4, 8, 0)
    assert same(rest, hm.simulate(model(), **asked | {"store": None}))


SWEEP = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0, 2.0, 3.0], "d": 100, "seeds": 4, "n_test": 1500}


@pytest.mark.slow
def test_killed_again_and_again_it_ends_as_if_in_one_go(tmp_path):
    path, chance = tmp_path / "runs.db", random.Random(5)
    code = (
        "import sys, hiddenmanifold as hm, test_simulations as t\n"
        "ds = hm.simulate(t.model(), **t.SWEEP, regularisation=t.LAMS, store=sys.argv[1])\n"
        "ds.to_netcdf(sys.argv[2], engine='scipy')\n"
    )
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    seen = set()
    for kills in range(4):  # three times killed, then left alone
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(tmp_path / "ds.nc")],
            cwd=__file__.rpartition("/")[0],
            env=env,
            start_new_session=True,
        )
        while process.poll() is None and not _grown(path, seen):  # let it get somewhere
            time.sleep(0.01)
        try:
            process.wait(chance.uniform(0.0, 0.05) if kills < 3 else None)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        store = Store(path)
        assert store.integrity() == []
        rows = list(store.rows())
        assert all(good for _, good in rows)
        assert seen <= {row.key for row, _ in rows}  # nothing finished is lost
        seen = {row.key for row, _ in rows}
    assert process.returncode == 0
    assert kills > 1
    ds = hm.simulate(model(), **SWEEP, regularisation=LAMS, store=path)
    assert counts(ds) == (0, 32, 0)
    assert same(ds, hm.simulate(model(), **SWEEP, regularisation=LAMS))
    assert len(list(Store(path).rows())) == 32


def _grown(path, seen):
    return path.exists() and len(list(Store(path).rows())) > len(seen)
