"""Measure today's engine against that before the compiled kernel, taken out of the history.

``python benchmarks/as_it_was.py measured`` prints what the package that it finds takes and answers.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from configurations import model, pseudo_huber
from page import heading
from scipy.special import expit

import hiddenmanifold as hm

ROOT = Path(__file__).parents[1]
BEFORE = "1a3c6d4"
"""The last commit whose engine was NumPy alone."""
ROUNDS = 2
ENOUGH, MOST = 1.0, 9
"""Seconds, and calls, after which a round has measured a call often enough."""
Call = Callable[[], object]


def main() -> None:
    heading("As it was before the compiled kernel: ms of CPU time on one core, turn by turn")
    with tempfile.TemporaryDirectory() as folder:
        if not unpacked(Path(folder)):
            print(
                f"left out: commit {BEFORE} is not in a git history here (a tarball, a short clone)"
            )
            return
        sources = {"old": Path(folder) / "src", "new": Path(hm.__file__).parents[1]}
        rounds = [
            {name: measured_with(src) for name, src in sources.items()} for _ in range(ROUNDS)
        ]
    print(f"{'':38} {'old':>9} {'new':>8}   ratio   largest relative difference")
    for name in rounds[0]["old"]:
        old, new = (min(found[which][name]["ms"] for found in rounds) for which in sources)
        before, now = (np.array(rounds[0][which][name]["found"]) for which in sources)
        off = float(np.abs(now / before - 1.0).max())
        print(f"{name:38} {old:9.1f} {new:8.1f} {old / new:7.1f}   {off:.0e}", flush=True)


def unpacked(folder: Path) -> bool:
    """Whether the sources of then could be taken out of the history."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", BEFORE, "src"]
    try:
        archive = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return True


def measured_with(sources: Path) -> dict[str, dict]:
    """What `measured` finds in a process of its own, with the package of some sources."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "measured"]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


def measured() -> dict[str, dict]:
    """Least time and answer of each call."""
    found = {}
    curve(model(), 1)()  # what is imported for it is measured elsewhere
    for name, call in calls().items():
        seconds: list[float] = []
        while sum(seconds) < ENOUGH and len(seconds) < MOST:
            start = time.process_time()
            answer = call()
            seconds.append(time.process_time() - start)
        found[name] = {"ms": 1e3 * min(seconds), "found": np.ravel(answer).tolist()}
    return found


def calls() -> dict[str, Call]:
    """What users ask for; each answers with the numbers that matter."""
    plain, rule = model(), model(teacher="logistic")
    return {
        "Figure 3, logistic loss, 10 000 points": figure_3(plain),
        "Figure 3, hinge loss": figure_3(model("hinge")),
        "Figure 3, custom loss": figure_3(model(pseudo_huber())),
        "Figure 3, logistic rule": figure_3(rule),
        "1 point": curve(plain, 1),
        "100 points": curve(plain, 100),
        "200 points": curve(plain, 200),
        "100 points, logistic rule": curve(rule, 100),
        "100 points, the rule as a function": curve(model(teacher=hm.teachers.Custom(expit)), 100),
        "best λ, 100 points": curve(plain, 100, "optimal"),
        "best λ, 50 × 50 points": errors(
            plain, np.geomspace(0.3, 10, 50), np.geomspace(0.1, 10, 50), "optimal"
        ),
        "features_needed": lambda: hm.features_needed(plain, n_over_d=3.0, workers=1).p_over_n,
        "separability_threshold": lambda: threshold(plain),
    }


def threshold(chosen: hm.Model) -> xr.DataArray:
    found = hm.separability_threshold(chosen, n_over_d=3.0, workers=1)
    return getattr(found, "p_over_n", found)  # older versions return the array itself


def figure_3(chosen: hm.Model) -> Call:
    return errors(chosen, np.linspace(0.1, 6, 100), np.linspace(0.03, 3, 100), 1e-4)


def curve(chosen: hm.Model, points: int, lam=1e-2) -> Call:
    return errors(chosen, 3.0, np.linspace(0.1, 3, points) if points > 1 else 1.3, lam)


def errors(chosen: hm.Model, n_over_d, p_over_n, lam) -> Call:
    asked = {"n_over_d": n_over_d, "p_over_n": p_over_n, "regularisation": lam, "workers": 1}
    return lambda: hm.predict(chosen, **asked).generalisation_error


if __name__ == "__main__":
    print(json.dumps(measured())) if sys.argv[1:] == ["measured"] else main()
