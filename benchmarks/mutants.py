"""Change one token of the package at a time, and see whether the tests notice.

`python benchmarks/mutants.py [COUNT] [SEED]` draws COUNT places of the rooms below, changes each in
a copy of the tree (a number becomes 1.3 times itself or one more, + becomes -, < becomes <=, True
becomes False, min becomes max, ...), and runs the tests of its room. `--at FILE:LINE` tries every
change of one line instead. Documentation, annotations, decorators and messages are left alone.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/hiddenmanifold")
TESTS = {  # of a file or a folder, the quick ones first; the longest name that fits counts
    "data": "test_conversions.py data/test_leave_one_out.py data/test_sample.py "
    "data/test_planning.py data/test_curves.py data/test_estimators.py data",
    "data/read_table.py": "cli/test_data.py",
    "features": "test_activations.py test_projections.py features/test_covariance.py "
    "features/test_projected.py features simulation/test_data.py",
    "features/covariance.py": "features/test_covariance.py theory/test_mixture.py "
    "data/test_classes.py",
    "features/posterior.py": "theory/test_bayes.py test_bayes.py",
    "storage": "storage -k not(killed_again)",
    "plotting": "plotting",
    "results": "results plotting test_scored.py",
    "parallel": "parallel/test_progress.py parallel/test_workers.py parallel/test_everywhere.py",
    "simulation": "simulation/test_data.py simulation/test_scores.py simulation/test_experiment.py",
    "simulation/fit.py": "simulation/test_fit.py",
    "simulation/interior_point.py": "simulation/test_fit.py",
    "simulation/newton_fit.py": "simulation/test_fit.py",
    "simulation/trial_cache.py": "storage -k not(killed_again)",
}
NO_TESTS = 5  # pytest's exit code
SECONDS = 60  # of a processor; the tests of a room take less than half of it
OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.USub: ast.UAdd,
}  # fmt: skip
BUILTIN = ("min", "max", "any", "all")
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "floor": "ceil", "zeros": "ones"}
NAMES |= {new: old for old, new in NAMES.items()} | {"sqrt": "square", "mean": "median"}


def parts(node):
    """Parts of a node that decide what the code does."""
    warning = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "warn"
    if warning or isinstance(node, ast.Raise | ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            yield from value if isinstance(value, list) else [value]


def changes(node):
    """Every change of a token below a node: the line, the words for it, and what to set to what."""
    ops = getattr(node, "ops", None) or [getattr(node, "op", None)]
    for i, op in enumerate(ops):
        if new := OTHER.get(type(op)):
            after = [*ops[:i], new(), *ops[i + 1 :]] if hasattr(node, "ops") else new()
            name = "ops" if hasattr(node, "ops") else "op"
            yield node.lineno, f"{type(op).__name__} -> {new.__name__}", (node, name, after)
    old = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    if isinstance(old, bool | int | float):
        new = not old if isinstance(old, bool) else old + 1 if isinstance(old, int) else 1.3 * old
        new = 0.3 if isinstance(old, float) and not old else new
        yield node.lineno, f"{old!r} -> {new!r}", (node, "value", new)
    field = "attr" if isinstance(node, ast.Attribute) else "id"
    old = getattr(node, field, None)
    if old in (NAMES if field == "attr" else BUILTIN):  # any other name is the author's own
        yield node.lineno, f"{old} -> {NAMES[old]}", (node, field, NAMES[old])
    for part in parts(node):
        if isinstance(part, ast.AST):
            yield from changes(part)


def text_with(file, number):
    """The text of a file with one of its changes."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    *_, change = list(changes(tree))[number]
    setattr(*change)
    return ast.unparse(tree)


def failure(file, text=None):
    """How the tests of the room of a file fail with this text of it, or nothing if they pass."""
    room = max((name for name in TESTS if file.is_relative_to(SOURCE / name)), key=len)
    paths, *only = TESTS[room].split(" -k ")
    paths = [f"tests/{path}" for path in paths.split()]
    with tempfile.TemporaryDirectory() as folder:
        unneeded = shutil.ignore_patterns(".*", "build")
        shutil.copytree(ROOT, folder, ignore=unneeded, dirs_exist_ok=True)
        if text is not None:
            Path(folder, file).write_text(text)
        settings = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        options = {"cwd": folder, "env": os.environ | settings | {"PYTHONPATH": f"{folder}/src"}}
        for marks in ("not slow", "slow"):
            pytest = [sys.executable, "-m", "pytest", "-xq", "-n0", "-pno:cacheprovider"]
            command = [*pytest, "-m", marks, *paths, *(f"-k{words}" for words in only)]
            limited = ["bash", "-c", f'ulimit -t {SECONDS}; exec "$@"', "-", *command]
            run = subprocess.run(limited, text=True, check=False, capture_output=True, **options)
            if run.returncode not in (0, NO_TESTS):
                lines = [n for n in run.stdout.splitlines() if n.startswith(("FAILED", "ERROR"))]
                return (lines or [f"ended with {run.returncode}"])[0][:100]
    return ""


def report(place):
    """Run a mutant, print what became of it, and whether it was noticed."""
    file, line, words, number = place
    found = failure(file, text_with(file, number))
    verdict = "noticed    " if found else "NOT NOTICED"
    print(f"{verdict} {file.relative_to(SOURCE)}:{line} {words}  {found}", flush=True)
    return bool(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--at", metavar="FILE:LINE", action="append", default=[])
    asked = parser.parse_args()
    everything = [path.relative_to(ROOT) for path in sorted((ROOT / SOURCE).rglob("*.py"))]
    files = [f for f in everything if any(f.is_relative_to(SOURCE / room) for room in TESTS)]
    places = []
    for file in files:
        found = changes(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        places += [(file, *change[:2], number) for number, change in enumerate(found)]
    if asked.at:
        places = [p for p in places if f"{p[0].relative_to(SOURCE)}:{p[1]}" in asked.at]
    else:
        places = random.Random(asked.seed).sample(places, asked.count)
    with ThreadPoolExecutor(2) as two:
        seen = list(two.map(report, places))
    print(f"{sum(seen)} of {len(seen)} noticed")
