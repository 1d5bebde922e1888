"""Style and types, imports that point downwards, modules that are small, a light start-up."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest

from hiddenmanifold import compiled

PACKAGE = "hiddenmanifold"
ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / PACKAGE
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__"))
MAX_LINES = 400
MOST_LOOSE = 10
NAMELESS = {"utils", "misc", "common", "helpers"}
SHARED = {"base", "custom"}
"""Names that each family of ingredients has."""
HEAVY = {"dash", "matplotlib", "pandas", "sklearn", "xarray"}
METHODS = (FunctionType, classmethod, staticmethod, property, cached_property)


def linted(root: Path) -> subprocess.CompletedProcess:
    """The contracts of pyproject.toml, checked in a tree."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    environment = {"PYTHONPATH": str(root / "src"), "PATH": ""}
    return subprocess.run(
        command,
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_style_and_types(command):
    """As `make lint` checks them; here they run beside the other tests."""
    program, *arguments = command.split()
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_imports_point_downwards():
    done = linted(ROOT)
    assert done.returncode == 0, done.stdout


BREACHES = [
    ("simulation.fit", "from hiddenmanifold.theory import limits", "theory"),
    ("theory.limits", "import hiddenmanifold.simulation.fit", "simulation"),
    ("data.sample", "def f():\n    from hiddenmanifold.plotting import plot", "plotting"),
    ("api.predict", "from hiddenmanifold.cli import app", "cli"),
]


@pytest.mark.slow
def test_every_planted_breach_is_caught(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(SOURCE, tmp_path / "src" / PACKAGE, ignore=shutil.ignore_patterns("*.so"))
    for module, line, _ in BREACHES:
        planted = tmp_path / "src" / PACKAGE / f"{module.replace('.', '/')}.py"
        with planted.open("a", encoding="utf-8") as file:
            file.write(f"\n\n{line}\n")
    done = linted(tmp_path)
    assert done.returncode == 1
    for module, _, broken in BREACHES:
        assert re.search(rf"{PACKAGE}.{module} -> {PACKAGE}\.{broken}\b", done.stdout), done.stdout


def test_modules_are_small_and_well_named():
    for path in MODULES:
        length = len(path.read_text(encoding="utf-8").splitlines())
        assert length <= MAX_LINES, f"{path.name}: {length} lines; split it by subject"
        assert not NAMELESS.intersection((*path.relative_to(SOURCE).parent.parts, path.stem))
    names = Counter(path.stem for path in MODULES if path.stem not in SHARED)
    assert not [name for name, count in names.items() if count > 1], "two modules of one name"
    assert len([path for path in MODULES if path.parent == SOURCE]) <= MOST_LOOSE


def test_every_folder_says_what_it_is_for():
    for path in SOURCE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert len(text.splitlines()) >= 3, f"{path.parent.name} says too little"


def test_the_page_computes_by_public_names_alone():
    tables = {"checks", "model", "results"}  # of ingredients, kinds and roles
    allowed = {"arrays", "plotting", "explorer", "theory", *tables}  # types, how plots look, ratios
    allowed.add("parallel")  # its processes
    for path in (SOURCE / "explorer").glob("*.py"):
        rooms = re.findall(rf"from {PACKAGE}\.(\w+)", path.read_text(encoding="utf-8"))
        assert set(rooms) <= allowed, path


def loaded_after(*statements: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after some statements."""
    script = "\n".join(["import sys", *statements, "print(*sys.modules)"])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


@pytest.mark.slow
def test_import_loads_nothing_heavy():
    # the probe sees what is there
    assert HEAVY.intersection(loaded_after("import matplotlib")) == {"matplotlib"}
    assert not HEAVY.intersection(loaded_after(f"import {PACKAGE}"))


@pytest.mark.slow
def test_the_first_prediction_waits_for_xarray_alone():
    """Dask, which xarray would ask, and scipy.special take as long again."""
    ingredients = "activation='sign', projection='gaussian', teacher='sign', loss='logistic'"
    grid = "n_over_d=3.0, p_over_n=[1.0, 2.0], regularisation=0.1"
    loaded = loaded_after(
        "import hiddenmanifold as hm", f"hm.predict(hm.Model({ingredients}), {grid})"
    )
    assert "xarray" in loaded
    assert "dask.base" not in loaded
    assert "scipy.special" not in loaded or compiled.engine() == "numpy"


def undocumented(name: str, thing: object) -> Iterator[str]:
    """Name itself, and the methods of a class, for which nobody wrote a docstring.

    The signature that a dataclass makes up does not count; a method that fills in an interface
    inherits the docstring of the interface.
    """
    cls = thing if isinstance(thing, type) else type(thing)
    text = (thing.__doc__ or "").strip()
    if not text or (is_dataclass(cls) and text.startswith(f"{cls.__name__}(")):
        yield name
    if cls is thing:
        for attribute in (a for a in dir(cls) if not a.startswith("_")):
            found = [vars(base)[attribute] for base in cls.__mro__ if attribute in vars(base)]
            if isinstance(found[0], METHODS) and not any(f.__doc__ for f in found):
                yield f"{name}.{attribute}"


def test_docstring_probe_sees_what_is_missing():
    class Interface:
        """Documented."""

        def value(self):
            """Documented."""

    class Filled(Interface):
        """Documented."""

        def value(self): ...

        @cached_property
        def silent(self): ...

    @dataclass
    class Bare:
        x: int | None = None

    assert list(undocumented("Filled", Filled)) == ["Filled.silent"]
    assert list(undocumented("Bare", Bare)) == ["Bare"]
    assert list(undocumented("bare", Bare())) == ["bare"]
    assert list(undocumented("f", lambda: 0)) == ["f"]


def test_public_names_are_documented():
    package = importlib.import_module(PACKAGE)  # here, so that a cycle cannot silence the checker
    assert package.__all__
    assert not [u for name in package.__all__ for u in undocumented(name, getattr(package, name))]
