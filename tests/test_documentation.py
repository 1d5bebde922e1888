"""What the README, the pages, the contributing guide and the docstrings show runs as written."""

import ast
import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold.cli import app
from hiddenmanifold.cli.exit_codes import Code
from hiddenmanifold.data.learning_curve import Support

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROSE = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "VISION.md", ROOT / "CHANGELOG.md"]

# a block of python, and what it prints if a plain block follows at once
SHOWN = re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", flags=re.DOTALL)
RAN = re.compile(r"```bash\n(.*?)```", flags=re.DOTALL)


def names(pages):
    return [page.relative_to(ROOT).as_posix() for page in pages]


def with_blocks(pattern):
    return names(page for page in PAGES if pattern.search(page.read_text(encoding="utf-8")))


def python_blocks(page):
    return [block for block, _ in SHOWN.findall((ROOT / page).read_text(encoding="utf-8"))]


def printed(block, namespace):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(block, namespace)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", with_blocks(SHOWN))
def test_pages_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block, shown in SHOWN.findall((ROOT / name).read_text(encoding="utf-8")):
        out = printed(block, namespace)
        assert not shown or out == shown, block


@pytest.mark.slow
@pytest.mark.parametrize("name", with_blocks(RAN))
def test_commands_of_pages_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in RAN.findall((ROOT / name).read_text(encoding="utf-8")):
        for line in block.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            assert program == "hiddenmanifold"
            result = CliRunner().invoke(app, arguments, prog_name=program)
            assert result.exit_code == Code.COMPLETE, f"{line}: {result.output}"


@pytest.mark.slow
def test_the_guide_ends_with_a_simulation_that_agrees():
    last = [block for block in python_blocks("docs/guide.md") if "hm.compare" in block][-1]
    namespace = {"hm": hm}
    printed(last, namespace)
    assert np.abs(namespace["ds"].generalisation_error_z).max() < 5


def test_every_question_of_a_diagnosis_is_explained():
    text = (ROOT / "docs/real_data.md").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    data = hm.Data(rng.standard_normal((60, 3)), rng.standard_normal(60))
    for finding in data.diagnosis:
        assert f"\n| {finding.question} |" in text


def test_the_readme_says_what_it_is_before_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(shown for _, shown in SHOWN.findall(text))
    opening, _, rest = text.partition("```")
    assert "predicts the learning curves" in " ".join(opening.split())
    commands = rest.partition("```")[0]
    assert commands.index("pip install") < commands.index("make demo") < commands.index("make test")
    assert "\n## " not in opening


def anchors(page):
    """Where links into a page may lead, by its headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def source_of(page, target):
    """The file that a link leads to; pages of the gallery are made from examples."""
    if target.startswith("gallery/"):
        made = target.removeprefix("gallery/").replace("index.rst", "GALLERY_HEADER.rst")
        return ROOT / "examples" / re.sub(r"^(plot_.*)\.rst$", r"\1.py", made)
    return page.parent / target if target else page


@pytest.mark.parametrize("name", names(PROSE))
def test_links_between_pages_lead_somewhere(name):
    page = ROOT / name
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        source = source_of(page, target)
        assert source.exists(), link
        assert not anchor or anchor in anchors(source), link


def test_every_page_is_in_a_table_of_contents():
    pages = (ROOT / "docs").glob("*.md")
    lists = re.findall(
        r"```{toctree}\n(.*?)```", "".join(p.read_text(encoding="utf-8") for p in PAGES), re.DOTALL
    )
    listed = {word.strip("<>") for list in lists for word in list.split()}
    assert {p.stem for p in pages} - {"index"} <= listed


def test_pages_of_sections_show_what_they_lead_to():
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for names in re.findall(r"```{toctree}\n:hidden:\n(.*?)```", text, re.DOTALL):
            for word in names.split():
                name = word.strip("<>")
                known = (page.parent / f"{name}.md").exists() and page.stem != "index"
                assert not known or f"]({name}.md)" in text, f"{page.name}: {name}"


@pytest.mark.parametrize(
    "module",
    [
        *(
            "model",
            "api.predict",
            "api.needed",
            "api.thresholds",
            "api.bayes_optimal",
        ),
        "features.layers",
        "features.projected",
        "plotting.figure",
    ],
)
def test_docstring_examples_give_what_they_show(module):
    results = doctest.testmod(
        importlib.import_module(f"hiddenmanifold.{module}"),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert results.attempted > 0
    assert results.failed == 0


def test_the_guide_names_every_registered_ingredient():
    text = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    for module in (hm.activations, hm.projections, hm.kernels, hm.teachers, hm.losses):
        for name in module.REGISTRY:
            assert name in text, f"{module.__name__}: {name}"
    for kind in hm.features.REGISTRY.values():  # given as objects
        assert f"`{kind.__name__}(" in text


def names_in_code():
    """Every name in the sources: modules, classes, functions, arguments, columns of datasets."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        found |= {path.stem, path.parent.name}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found |= {getattr(node, field, None) for field in ("id", "name", "arg", "attr")}
            found |= {node.value} if isinstance(node, ast.Constant) else set()
    return found


@pytest.mark.slow
def test_code_names_of_the_glossary_exist():
    rows = re.findall(
        r"^\| .*\|$", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    spans = [span for row in rows for span in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1])]
    assert len(spans) > 60
    assert {span.partition("=")[0] for span in spans} <= names_in_code()


def complaints():
    """Every exception and warning that is defined in the package, by name."""
    found = set()
    for info in pkgutil.walk_packages(hm.__path__, "hiddenmanifold."):
        if info.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and issubclass(value, Exception):
                found |= {value.__name__} if value.__module__.startswith("hiddenm") else set()
    return found


def test_troubleshooting_has_every_status_error_and_exit_code():
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    for status in (*hm.Status, *Support):
        assert f"| {status.value} | `{status.name}` |" in text
    assert {"ConvergenceError", "BlindFeaturesWarning", "OutputError"} < complaints()
    for name in complaints():
        assert f"| `{name}`" in text, name
    for code in Code:
        assert f"| {code.value} | {code.meaning.replace('head', '`head`')}" in text


EXAMPLES = {  # of the contributing guide: where each belongs, and which part of a model it is
    "PseudoHuber": ("losses.named", "loss"),
    "Tweedie": ("losses.of_label", "loss"),
    "Shuffled": ("teachers", "teacher"),
    "Softsign": ("features.activations", "activation"),
    "TwoNoises": ("teachers.probit", "teacher"),
    "TwoScales": ("features.projections", "projection"),
    "Blurred": ("features", "features"),
    "Rational": ("features.kernels.elementary", "kernel"),
}


BESIDE = {"Tweedie": {"teacher": "gamma"}, "Shuffled": {"loss": "huber"}}
"""Other parts of the model that an example fits."""


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_contributing_guide_agree_with_their_simulation(name):
    (block,) = (block for block in python_blocks("CONTRIBUTING.md") if f"class {name}(" in block)
    home, part = EXAMPLES[name]
    namespace = dict(vars(importlib.import_module(f"hiddenmanifold.{home}")))
    exec(block, namespace)
    parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign", "loss": "logistic"}
    ratios = {"n_over_p": 1.5, "d_over_p": 0.8}
    if part in ("features", "kernel"):
        del parts["activation"], parts["projection"], ratios["d_over_p"]
    if part == "kernel":
        ratios = {"n_over_d": 1.5}
    model = hm.Model(**{**parts, **BESIDE.get(name, {}), part: namespace[name]()})
    ds = hm.compare(model, **ratios, regularisation=[0.01, 1.0], d=120, seeds=10, workers=1)
    for quantity in ("generalisation_error", "training_loss", "q_w", "Q", "M"):
        assert np.abs(ds[f"{quantity}_z"]).max() < 4, quantity


LOSS_OF = {name: "logistic" for name in ("sign", "logistic", "mixture")}
LOSS_OF |= {name: "square" for name in ("linear", "real", "ordered")}
LOSS_OF |= {"poisson": "poisson", "negative_binomial": "poisson", "binomial": "binomial"}
LOSS_OF |= {"gamma": "gamma", "log_normal": "gamma"}


@pytest.mark.slow
@pytest.mark.parametrize("teacher", hm.teachers.REGISTRY)
def test_features_of_the_contributing_guide_work_with_every_kind_of_labels(teacher):
    (block,) = (block for block in python_blocks("CONTRIBUTING.md") if "class Blurred(" in block)
    namespace = dict(vars(hm.features))
    exec(block, namespace)
    loss = LOSS_OF[teacher]
    model = hm.Model(features=namespace["Blurred"](), teacher=teacher, loss=loss)
    at = {"n_over_p": 1.5, "regularisation": [0.01, 1.0]}
    ds = hm.compare(model, **at, d=120, seeds=10, workers=1)
    for quantity in ("generalisation_error", "training_loss", "q_w", "Q", "M"):
        assert np.abs(ds[f"{quantity}_z"]).max() < 4, quantity


@pytest.mark.slow
def test_the_observable_of_the_contributing_guide_agrees_with_its_simulation(tmp_path):
    """The guide is followed in a copy of the package."""
    blocks = [block for block in python_blocks("CONTRIBUTING.md") if "brier_score" in block]
    measured, expected, entry = blocks
    package = tmp_path / "hiddenmanifold"
    shutil.copytree(Path(hm.__file__).parent, package)
    for block, home in (
        (measured, "simulation/test_scores"),
        (expected, "theory/scores/calibration"),
    ):
        with (package / f"{home}.py").open("a", encoding="utf-8") as file:
            file.write(f"\n\n{block}")
    table = package / "results/observables.py"
    text = table.read_text(encoding="utf-8")
    table.write_text(text.replace("OBSERVABLES = (\n", f"OBSERVABLES = (\n{entry},", 1))
    script = (
        "import hiddenmanifold as hm\n"
        "parts = dict(activation='erf', projection='gaussian', teacher='sign', loss='logistic')\n"
        "at = dict(n_over_p=1.5, d_over_p=0.8, regularisation=[0.01, 1.0])\n"
        "how = dict(d=120, seeds=10, workers=1, observables='brier_score')\n"
        "ds = hm.compare(hm.Model(**parts), **at, **how)\n"
        "print(hm.__file__, *ds.brier_score_z.values, *ds.brier_score_theory.values)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    home, *numbers = done.stdout.split()
    assert Path(home).is_relative_to(tmp_path)
    z, scores = np.array(numbers, dtype=float).reshape(2, 2)
    assert np.abs(z).max() < 4
    assert ((scores > 0.05) & (scores < 0.25)).all()  # a quarter is that of a guess


def test_a_run_of_the_benchmarks_becomes_the_page():
    import page as bench_page

    log = "Import\n------\nimport numpy: 0.1 s\n\nGrowth\n------\n   points\n      100\n"
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    once = bench_page.written(text, log, "a laptop")
    assert once == bench_page.written(once, log, "a laptop")
    assert once.startswith(text.partition(bench_page.MARK)[0].rstrip())
    assert "a laptop" in once
    assert once.endswith("### Growth\n\n```\n   points\n      100\n```\n")


def rewrite(page):
    """Let a page show what its blocks print now: ``python tests/test_documentation.py``."""
    namespace = {}

    def rerun(match):
        out = printed(match[1], namespace)
        return match[0] if match[2] is None else f"```python\n{match[1]}```\n\n```\n{out}```\n"

    page.write_text(SHOWN.sub(rerun, page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    for page in with_blocks(SHOWN):
        rewrite(ROOT / page)
