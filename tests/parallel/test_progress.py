"""Long calls say how far they are, short ones nothing; and large ones beforehand what they take."""

import io
import time

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold.parallel import progress
from hiddenmanifold.parallel.progress import Progress
from hiddenmanifold.parallel.workers import Workers


class Slow:
    """A job that takes a little."""

    def run(self):
        time.sleep(0.02)
        return 1


def terminal(monkeypatch):
    """Standard error as a terminal that remembers; a fixture's would give way to pytest's own."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    return stream


@pytest.mark.slow
@pytest.mark.parametrize("shown", [True, None])
def test_a_long_call_shows_count_rate_and_time_left(monkeypatch, shown):
    stream = terminal(monkeypatch)
    assert Workers(1, progress=shown).run([Slow() for _ in range(8)]) == [1] * 8
    told = stream.getvalue()
    assert "8/8" in told
    assert "/s" in told
    assert "0:00:00 left" in told


@pytest.mark.slow
def test_nothing_is_shown_unless_asked_for(monkeypatch):
    stream = terminal(monkeypatch)
    Workers(1, progress=False).run([Slow() for _ in range(8)])
    assert stream.getvalue() == ""


@pytest.mark.slow
def test_a_comparison_shows_nothing_unless_asked_for(monkeypatch):
    stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    asked = {"n_over_d": 1.0, "p_over_n": [1.0, 2.0], "d": 8, "seeds": 2, "n_test": 9}
    for lam in (1.0, "optimal"):
        hm.compare(model, **asked, regularisation=lam, progress=False)
    assert stream.getvalue() == ""
    hm.compare(model, **asked, regularisation=1.0, progress=True)
    assert "computing" in stream.getvalue()


@pytest.mark.slow
def test_a_short_call_shows_nothing(monkeypatch):
    stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    Workers(1, progress=True).run([Slow() for _ in range(8)])
    assert stream.getvalue() == ""


def test_no_terminal_no_progress(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert Progress().visible is False


@pytest.mark.parametrize("workers", [1, 4])
def test_the_time_left_holds_from_the_first_job_on_and_for_jobs_of_any_size(workers):
    sizes, pace = [1.0, 1.0, 10.0, 100.0], 3.0  # a unit of work takes 3 s
    shown = Progress(visible=False)
    with shown.of(sizes, workers):
        for done, size in enumerate(sizes, 1):
            shown.advance(size, pace * size)
            assert shown.seconds_left == pytest.approx(pace * sum(sizes[done:]) / workers)
    with shown.of([2.0]):  # more of the same, on one worker
        assert shown.seconds_left == pytest.approx(pace * 2.0)


def test_what_is_known_to_be_long_is_shown_from_the_beginning(monkeypatch):
    stream = terminal(monkeypatch)
    with Progress(visible=True).of([30.0, 90.0], 2, in_seconds=True):
        assert "0/2" in stream.getvalue()
        assert "0:01:00 left" in stream.getvalue()


def test_large_work_is_announced(monkeypatch):
    stream = terminal(monkeypatch)
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    hm.predict(model, n_over_d=1.0, p_over_n=[1.0, 2.0], regularisation=1.0, progress=True)
    hm.simulate(
        model, n_over_d=1.0, p_over_n=1.0, regularisation=1.0, d=8, seeds=2, n_test=9, progress=True
    )
    assert "roughly" not in stream.getvalue()
    monkeypatch.setattr(progress, "LONG", 0.0)
    hm.predict(model, n_over_d=1.0, p_over_n=[1.0, 2.0], regularisation=1.0, progress=True)
    assert "2 points" in stream.getvalue()
    hm.simulate(
        model, n_over_d=1.0, p_over_n=1.0, regularisation=1.0, d=8, seeds=2, n_test=9, progress=True
    )
    assert "2 trials, up to n = 8, p = 8, d = 8" in stream.getvalue()


@pytest.mark.parametrize("call", [hm.predict, hm.sensitivity])
def test_what_cannot_fit_is_refused_at_once(call):
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    axis = np.linspace(1.0, 2.0, 10**6)
    with pytest.raises(hm.InvalidArgumentError, match=r"1e\+12 points.*5e\+05 GB.*chunks"):
        call(model, n_over_d=axis, p_over_n=axis, regularisation=1.0)


@pytest.mark.parametrize("progress", ["yes", 1, 0.5])
def test_progress_is_yes_or_no(progress):
    with pytest.raises(hm.InvalidArgumentError, match="progress"):
        Workers(progress=progress)
