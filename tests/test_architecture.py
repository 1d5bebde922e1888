"""Imports point downwards, modules stay small and well named, start-up stays light."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Container, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FunctionType

import pytest

from hiddenmanifold import compiled

PACKAGE = "hiddenmanifold"
ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / PACKAGE

# The rooms, from the ground up. A room is a module, or a folder whose modules may import one
# another; it imports only from the floors below, never from a neighbour on its own floor.
LAYERS = (
    ("errors", "arrays"),
    ("kernel",),
    ("versions",),
    ("ingredients", "points", "progress", "storage"),
    ("numerics", "spectra", "execution", "conversions"),
    ("activations", "projections", "teachers", "losses"),
    ("features",),
    ("model", "counts"),
    ("theory", "simulation"),  # strangers to each other: their agreement is the evidence
    ("observables",),
    ("results",),
    ("chunked",),
    ("plotting", "arguments"),
    ("prediction", "bayes", "experiments", "data"),
    ("thresholds", "needs", "comparison", "margin_law"),
    ("figures",),
    ("__init__",),  # below the next two, so that they can be deleted
    ("explorer",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(LAYERS) for room in rooms}

MAX_LINES = 400
NAMELESS = {"utils", "misc", "common", "helpers"}
HEAVY = {"dash", "matplotlib", "pandas", "sklearn", "xarray"}
METHODS = (FunctionType, classmethod, staticmethod, property, cached_property)


def imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything imported, however deep in the code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            written = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(written, package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def room_of(dotted: str) -> str | None:
    """Room a dotted name lives in; None outside the package, `__init__` for its public names."""
    root, *inside = dotted.split(".")
    if root != PACKAGE:
        return None
    return inside[0] if inside and inside[0] in FLOOR else "__init__"


def complaints(tree: Path) -> Iterator[str]:
    """One sentence for every breach of the architecture in a tree of sources."""
    for path in sorted(tree.rglob("*.py")):
        where = path.relative_to(tree)
        room = where.parts[0].removesuffix(".py")
        source = path.read_text(encoding="utf-8")

        for name in NAMELESS.intersection((*where.parent.parts, path.stem)):
            yield f"{where}: '{name}' says nothing; name the module after what it holds"
        if (length := len(source.splitlines())) > MAX_LINES:
            yield f"{where}: {length} lines, more than {MAX_LINES}; split it by subject"
        if room not in FLOOR:
            yield f"{where}: on no floor yet; add '{room}' to LAYERS in tests/test_architecture.py"
            continue
        for line, dotted in imports(source, ".".join((PACKAGE, *where.parent.parts))):
            target = room_of(dotted)
            if target not in (None, room) and FLOOR[target] >= FLOOR[room]:
                arrow = "sideways" if FLOOR[target] == FLOOR[room] else "upwards"
                yield f"{where}:{line}: '{room}' imports '{dotted}', {arrow} to '{target}'"


def test_sources_respect_the_architecture():
    assert (SOURCE / "__init__.py").is_file(), f"no sources in {SOURCE}: nothing was checked"
    found = list(complaints(SOURCE))
    assert not found, "\n".join(found)


def test_the_page_computes_by_public_names_alone():
    names = {"arrays", "points", "plotting"}  # of types, of ratios, and how plots look
    sources = list((SOURCE / "explorer").glob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in sources)
    rooms = {room_of(name) for text in texts for _, name in imports(text, f"{PACKAGE}.explorer")}
    assert "__init__" in rooms
    assert rooms - {None, "explorer", "__init__"} <= names


LEGAL = {
    "__init__.py": "from hiddenmanifold.api.predict import predict",
    "errors.py": "class E(Exception): ...",
    "numerics/quadrature.py": "from ..errors import E\nfrom . import roots",
    "numerics/roots.py": "import numpy as np",
    "theory/channel.py": "from hiddenmanifold import losses, model\nfrom .overlaps import Q",
    "theory/__init__.py": "from .channel import V",
}

# The checker must catch each of these, whichever way the import is written.
BREACHES = [
    ("errors.py", "import hiddenmanifold.model", "upwards to 'model'"),
    ("numerics/roots.py", "from hiddenmanifold.losses import L", "upwards to 'losses'"),
    ("numerics/roots.py", "from .. import model as m", "upwards to 'model'"),
    ("losses.py", "def f():\n    from .teachers import T", "sideways to 'teachers'"),
    ("theory/channel.py", "from ..simulation import fit", "sideways to 'simulation'"),
    ("theory/__init__.py", "from ..simulation.fit import fit", "sideways to 'simulation'"),
    (
        "simulation/fit.py",
        "if X:\n    import hiddenmanifold.theory.labels_side.channel",
        "to 'theory'",
    ),
    ("results.py", "from hiddenmanifold import predict", "upwards to '__init__'"),
    ("model.py", "import hiddenmanifold", "upwards to '__init__'"),
    ("model.py", "from . import *", "upwards to '__init__'"),
    ("explorer/page.py", "from ..cli import app", "upwards to 'cli'"),
    ("__init__.py", "from .cli import main", "upwards to 'cli'"),
    ("__init__.py", "from .explorer.page import app", "upwards to 'explorer'"),
    ("zeta.py", "", "add 'zeta' to LAYERS in tests/test_architecture.py"),
    ("theory/utils.py", "", "'utils' says nothing"),
    ("numerics/misc/roots.py", "", "'misc' says nothing"),
    ("model.py", "x = 0\n" * (MAX_LINES + 1), "401 lines"),
]


def plant(tree: Path, sources: dict[str, str]) -> None:
    for name, text in sources.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_checker_accepts_a_legal_tree(tmp_path):
    plant(tmp_path, LEGAL)
    assert not list(complaints(tmp_path))


@pytest.mark.parametrize(
    ("module", "source", "sentence"), BREACHES, ids=[f"{b[0]}: {b[2]}" for b in BREACHES]
)
def test_checker_catches_each_breach(tmp_path, module, source, sentence):
    plant(tmp_path, LEGAL | {module: source})
    found = list(complaints(tmp_path))
    assert len(found) == 1
    assert found[0].startswith(module)
    assert sentence in found[0]


GUIDE = ROOT / "CONTRIBUTING.md"
MARKS = ("<!-- import graph -->\n", "<!-- end -->\n")


def import_graph(tree: Path) -> str:
    """The rooms from the ground up, each with those it imports, and the length of a chain."""
    rooms: dict[str, set[str]] = {}
    for path in tree.rglob("*.py"):
        where = path.relative_to(tree)
        found = imports(path.read_text(encoding="utf-8"), ".".join((PACKAGE, *where.parent.parts)))
        targets = rooms.setdefault(where.parts[0].removesuffix(".py"), set())
        targets.update(room for _, dotted in found if (room := room_of(dotted)))
    order = [room for room in FLOOR if room in rooms]
    lines = [
        " → ".join(filter(None, (room, ", ".join(r for r in order if r in rooms[room] - {room}))))
        for room in order
    ]
    chain = f"longest chain of modules, each importing the next: {len(longest_chain(tree))}"
    return "\n".join(["```", *lines, "", chain, "```", ""])


def longest_chain(tree: Path) -> list[str]:
    """Modules on the longest path of imports, from the top down; a cycle is an error."""
    names = {
        ".".join((PACKAGE, *p.relative_to(tree).with_suffix("").parts)): p
        for p in tree.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    below: dict[str, set[str]] = {}
    for name, path in modules.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        found = imports(at_run_time(path.read_text(encoding="utf-8")), package)
        below[name] = {home for _, dotted in found if (home := home_of(dotted, modules))}
    chains: dict[str, list[str]] = {}
    for name in TopologicalSorter(below).static_order():
        chains[name] = [name, *max((chains[other] for other in below[name]), key=len, default=[])]
    return max(chains.values(), key=len)


def home_of(dotted: str, modules: Container[str]) -> str | None:
    """The module that an imported name is or lives in; None outside the package."""
    while dotted and dotted not in modules:
        dotted = dotted.rpartition(".")[0]
    return dotted or None


def at_run_time(source: str) -> str:
    """A source without the imports that only a type checker sees."""
    parsed = ast.parse(source)
    for node in ast.walk(parsed):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return ast.unparse(parsed)


def guide_with(graph: str) -> str:
    """The contributing guide with a graph between its marks."""
    before, rest = GUIDE.read_text(encoding="utf-8").split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return before + graph.join(MARKS) + after


def test_contributing_shows_the_import_graph():
    graph = import_graph(SOURCE)
    assert guide_with(graph) == GUIDE.read_text(encoding="utf-8"), (
        f"run `python tests/test_architecture.py`, or paste into {GUIDE.name}:\n{graph}"
    )


def test_graph_and_longest_chain_of_a_small_tree(tmp_path):
    only_typing = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .channel import V"
    plant(tmp_path, LEGAL | {"prediction.py": "import numpy", "theory/overlaps.py": only_typing})
    plant(tmp_path, {"losses.py": "from .errors import E", "model.py": "from . import losses"})
    assert import_graph(tmp_path).splitlines()[1:-3] == [
        "errors",
        "numerics → errors",
        "losses → errors",
        "model → losses",
        "theory → losses, model",
        "prediction",
        "__init__ → prediction",
    ]
    chain = ["theory", "theory.channel", "model", "losses", "errors"]
    assert longest_chain(tmp_path) == [f"{PACKAGE}.{name}" for name in chain]
    plant(tmp_path, {"theory/overlaps.py": "from .channel import V"})
    with pytest.raises(CycleError, match=r"theory\.overlaps"):
        longest_chain(tmp_path)


def loaded_after(*statements: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after some statements."""
    script = "\n".join(["import sys", *statements, "print(*sys.modules)"])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_import_loads_nothing_heavy():
    # the probe sees what is there
    assert HEAVY.intersection(loaded_after("import matplotlib")) == {"matplotlib"}
    assert not HEAVY.intersection(loaded_after(f"import {PACKAGE}"))


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


if __name__ == "__main__":
    GUIDE.write_text(guide_with(import_graph(SOURCE)), encoding="utf-8")
    print(*longest_chain(SOURCE), sep="\n")
