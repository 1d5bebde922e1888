"""What the README, the contributing guide and the docstrings show runs as written."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import hiddenmanifold as hm

ROOT = Path(__file__).parents[1]


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.mark.slow
def test_the_readme_prints_what_it_shows(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", text, flags=re.DOTALL)
    assert len(shown) == len(python_blocks("README.md")) == 3
    names = {}
    for block, printed in shown:
        exec(block, names)
        assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_the_examples_of_big_sweeps_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks("docs/sweeps.md"):
        exec(block, names)
    assert "{'computed': 12, 'reused': 24, 'failed': 0}" in capsys.readouterr().out


@pytest.mark.slow
def test_the_examples_of_the_guide_run_one_after_another():
    blocks = python_blocks("docs/guide.md")
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(block, names)
    assert isinstance(names["deep"], hm.features.Deep)
    assert names["ds"].sizes == {"p_over_n": 2, "regularisation": 2}
    assert np.abs(names["ds"].generalisation_error_z).max() < 5


@pytest.mark.slow
def test_the_examples_of_real_data_run(capsys):
    names = {}
    for block in python_blocks("docs/real_data.md"):
        exec(block, names)
    assert "→ usable" in capsys.readouterr().out
    assert names["plan"].limited_by == "features"
    assert np.abs(names["check"].generalisation_error_z).max() < 4
    assert len(names["figure"].axes[0].containers) == 2


def test_every_question_of_a_diagnosis_is_explained():
    text = (ROOT / "docs/real_data.md").read_text()
    rng = np.random.default_rng(0)
    data = hm.Data(rng.standard_normal((60, 3)), rng.standard_normal(60))
    for finding in data.diagnosis:
        assert f"\n| {finding.question} |" in text


def test_the_readme_says_what_it_is_before_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert 500 < text.index("make demo") < text.index("make test") < 1500


def test_links_between_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        *("model", "prediction", "needs", "thresholds", "bayes", "margin_law", "features.layers"),
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
    text = (ROOT / "docs/guide.md").read_text()
    for module in (hm.activations, hm.projections, hm.teachers, hm.losses):
        for name in module.REGISTRY:
            assert name in text, f"{module.__name__}: {name}"
    for kind in hm.features.REGISTRY.values():  # given as objects
        assert f"`{kind.__name__}(" in text


EXAMPLES = {  # of the contributing guide: where each belongs, and which part of a model it is
    "LogCosh": ("losses.named", "loss"),
    "Softsign": ("activations", "activation"),
    "TwoNoises": ("teachers.probit", "teacher"),
    "TwoScales": ("projections", "projection"),
    "Blurred": ("features", "features"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_contributing_guide_agree_with_their_simulation(name):
    (block,) = (block for block in python_blocks("CONTRIBUTING.md") if f"class {name}(" in block)
    home, part = EXAMPLES[name]
    names = dict(vars(importlib.import_module(f"hiddenmanifold.{home}")))
    exec(block, names)
    parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign", "loss": "logistic"}
    ratios = {"n_over_p": 1.5, "d_over_p": 0.8}
    if part == "features":
        del parts["activation"], parts["projection"], ratios["d_over_p"]
    model = hm.Model(**{**parts, part: names[name]()})
    ds = hm.compare(model, **ratios, regularisation=[0.01, 1.0], d=120, seeds=10, workers=1)
    for quantity in ("generalisation_error", "training_loss", "q_w", "Q", "M"):
        assert np.abs(ds[f"{quantity}_z"]).max() < 4, quantity
