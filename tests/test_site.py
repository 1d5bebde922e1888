"""The site builds without a warning and without network, and documents all that is public."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

import hiddenmanifold as hm

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
SHOWN = [example for example in EXAMPLES if f"sphx_glr_{example.stem}_" in PAGES]
INGREDIENTS = (
    *("activations", "projections", "teachers", "noises", "losses", "predictors", "features"),
)


def build(folder):
    """The site of a copy of the sources, so that no other build is met.

    Of the examples it runs those of which pages show the picture.
    """
    for name in ("docs", "examples"):
        left = shutil.ignore_patterns("_build", "gallery")
        shutil.copytree(ROOT / name, folder / name, ignore=left)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    run = "|".join(example.name for example in SHOWN)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
    command += ["-D", f"sphinx_gallery_conf.filename_pattern={run}", "docs", "site"]
    # whoever asks for a page of the network meets a proxy that is not there
    offline = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    env = {**os.environ, **offline}
    ran = subprocess.run(command, check=False, cwd=folder, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / "site"


def documented(site):
    """Every name of the package that the API pages explain."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


def public():
    """What users can name: public names, and the ingredients that can be chosen."""
    for name in hm.__all__:
        thing = getattr(hm, name)
        yield thing.__name__ if isinstance(thing, ModuleType) else f"hiddenmanifold.{name}"
    for kind in INGREDIENTS:
        module = getattr(hm, kind)
        for ingredient in (*module.REGISTRY.values(), getattr(module, "Custom", None)):
            if ingredient is not None:
                yield f"{module.__name__}.{ingredient.__name__}"


@pytest.mark.slow
def test_the_site_builds_and_documents_all_that_is_public(tmp_path):
    site = build(tmp_path)
    assert sorted(set(public()) - documented(site)) == []

    pages = list(site.rglob("*.html"))
    assert len(pages) > len(EXAMPLES) + 20
    for page in pages:  # nothing is fetched from elsewhere
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img)[^>]+src="(?:https?:)?//[^"]+"', text), page
        pictures = re.findall(r'<img[^>]+src="([^":]+)"', text)
        assert [src for src in pictures if not (page.parent / src).exists()] == [], page
        assert not re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="(?:https?:)?//', text), page
    assert "interpol" in (site / "searchindex.js").read_text(encoding="utf-8")

    made = tmp_path / "docs/gallery"
    for example in SHOWN:
        assert list((made / "images").glob(f"sphx_glr_{example.stem}_*.png")), example.name
    for example in EXAMPLES:
        notebook = json.loads((made / f"{example.stem}.ipynb").read_text(encoding="utf-8"))
        assert any("hm." in "".join(cell["source"]) for cell in notebook["cells"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_one_idea(example):
    text = example.read_text(encoding="utf-8")
    assert example.stem.startswith("plot_")
    assert len(text.splitlines()) < 60
    assert re.match(r'"""\n.+\n=+\n\n', text)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("example", sorted({*EXAMPLES} - {*SHOWN}), ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example):
    plt.close("all")
    *lines, last = ast.parse(example.read_text(encoding="utf-8")).body
    names = {"__name__": "__main__"}
    exec(compile(ast.Module(lines, []), example.name, "exec"), names)
    value = eval(compile(ast.Expression(last.value), example.name, "eval"), names)
    figure = value if isinstance(value, Figure) else plt.gcf()
    figure.draw_without_rendering()
    assert any(axes.has_data() for axes in figure.axes)
    plt.close("all")
