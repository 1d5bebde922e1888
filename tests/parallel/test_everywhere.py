"""One program as a notebook and as a script under spawn, with a lambda: two workers, same bits."""

import json
import os
import re
import subprocess
import sys
from functools import cache

import nbformat
import pytest
from nbclient import NotebookClient

PROGRAM = """
import json, os, tempfile, threading, time
from pathlib import Path
import numpy as np, hiddenmanifold as hm
from hiddenmanifold.parallel import workers

def here():
    return f"{os.getpid()}-{threading.get_ident()}"

def met(x, first=here()):  # no worker goes on before two are there
    if here() != first:
        Path(folder, here()).touch()
        while len(os.listdir(folder)) < 2:
            time.sleep(0.01)
    return x

model = hm.Model(
    activation=lambda x: np.tanh(2 * met(x)), projection="gaussian", teacher="sign", loss="square"
)
grid = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.2, 5.0, 20_000), "regularisation": 0.1}
few = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": 0.1, "d": 20, "seeds": 4}
found = {}
for call, arguments in ((hm.predict, grid), (hm.simulate, few)):
    one = call(model, **arguments, workers=1, progress=False)
    for where, limit in (("threads", np.inf), ("processes", 0.0)):
        workers.LONG, folder = limit, tempfile.mkdtemp()
        two = call(model, **arguments, workers=2, progress=False)
        one, two = (ds.drop_vars("seconds", errors="ignore") for ds in (one, two))
        same = two.drop_attrs().identical(one.drop_attrs())
        found[f"{call.__name__} in {where}"] = [same, int(two.attrs["workers"]), folder]
print(json.dumps(found))
"""
BAR = """
class Slow:
    def run(self):
        time.sleep(0.3)

workers.LONG = np.inf
done = workers.Workers(2, progress=None).run([Slow() for _ in range(10)])
"""


@cache
def notebook():
    """What the program prints as a notebook, and the other outputs of its cells."""
    cells = [nbformat.v4.new_code_cell(source) for source in (PROGRAM, BAR)]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    (printed,), outputs = (cell.outputs for cell in book.cells)
    assert printed["name"] == "stdout"
    return printed["text"], outputs


def script(folder):
    """The same as a script, without a main guard, where processes are spawned."""
    path = folder / "script.py"
    spawn = "import multiprocessing\nmultiprocessing.set_start_method('spawn')\n"
    path.write_text(spawn + PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr == ""
    return done.stdout, []


@pytest.fixture(scope="module", params=["notebook", "script"])
def ran(request, tmp_path_factory):
    return notebook() if request.param == "notebook" else script(tmp_path_factory.mktemp("script"))


@pytest.mark.slow
def test_two_workers_compute_the_same_bits_as_one(ran):
    found = json.loads(ran[0])
    assert len(found) == 4
    for call, (same, used, folder) in found.items():
        assert same, call
        assert used <= 2
        if "simulate" in call:
            assert used == 2
            processes = {name.split("-")[0] for name in os.listdir(folder)}
            assert len(os.listdir(folder)) == 2
            assert len(processes) == (1 if "threads" in call else 2)


@pytest.mark.slow
def test_a_notebook_shows_one_bar_that_is_redrawn():
    bar = notebook()[1]
    assert [output["output_type"] for output in bar] == ["display_data"]
    for form in ("text/plain", "text/html"):
        assert re.search(r"computing .* 10/10 .* 0:00:00 left", bar[0]["data"][form], re.DOTALL)
