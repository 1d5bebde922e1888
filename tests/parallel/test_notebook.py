"""A notebook: both workers compute, a bar shows how far they are, a lambda is an activation."""

import json
import re

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

MODEL = """
import numpy as np, hiddenmanifold as hm
from hiddenmanifold.parallel import workers

model = hm.Model(
    activation=lambda x: np.tanh(2 * x), projection="gaussian", teacher="sign", loss="square"
)
grid = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.2, 5.0, 20_000), "regularisation": 0.1}
few = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": 0.1, "d": 20, "seeds": 4}

def same(one, two):
    one, two = (ds.drop_attrs().drop_vars("seconds", errors="ignore") for ds in (one, two))
    return one.identical(two)
"""
THREADS = """
import json
two = hm.predict(model, **grid, workers=2)
print(json.dumps([int(two.attrs["workers"]), same(two, hm.predict(model, **grid, workers=1))]))
"""
PROCESSES = """
workers.LONG = 0.0  # every simulation is long enough for processes
two = hm.simulate(model, **few, workers=2)
print(json.dumps([int(two.attrs["workers"]), same(two, hm.simulate(model, **few, workers=1))]))
"""
BAR = """
import os, threading, time

class Meeting:  # ends when two run at once
    barrier = threading.Barrier(2)
    def run(self):
        self.barrier.wait(60)
        time.sleep(0.3)
        return threading.get_ident()

pool = workers.Workers(2, progress=None)
print(json.dumps(len(set(pool.run([Meeting() for _ in range(10)])))))
"""


@pytest.fixture(scope="module")
def cells():
    """The outputs of all cells, by name."""
    sources = {"model": MODEL, "threads": THREADS, "bar": BAR, "processes": PROCESSES}
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources.values()]
    )
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return dict(zip(sources, (cell.outputs for cell in notebook.cells), strict=True))


def printed(outputs):
    return json.loads("".join(one["text"] for one in outputs if one.get("name") == "stdout"))


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_two_workers_compute_the_same_bits_as_one(cells, where):
    used, same = printed(cells[where])
    assert used == 2
    assert same


def test_a_bar_shows_count_and_time_left(cells):
    assert printed(cells["bar"]) == 2  # both at once
    bars = [one["data"] for one in cells["bar"] if one["output_type"] == "display_data"]
    assert len(bars) == 1  # one that is redrawn
    for form in ("text/plain", "text/html"):
        assert re.search(r"computing .* 10/10 .* 0:00:00 left", bars[0][form], re.DOTALL)


def test_nothing_is_written_elsewhere(cells):
    kinds = [one.get("name", one["output_type"]) for outputs in cells.values() for one in outputs]
    assert sorted(set(kinds)) == ["display_data", "stdout"]
