"""What the README and the docstrings show runs as written."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import hiddenmanifold as hm

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_readme_examples_run_one_after_another():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["ds"].sizes == {"p_over_n": 2, "regularisation": 2}
    assert np.abs(names["ds"].generalisation_error_z).max() < 5


def test_the_readme_starts_with_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert text.index("make demo") < text.index("make test") < 300


@pytest.mark.slow
@pytest.mark.parametrize("module", ["model", "prediction", "optima", "thresholds", "bayes"])
def test_docstring_examples_give_what_they_show(module):
    results = doctest.testmod(
        importlib.import_module(f"hiddenmanifold.{module}"),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert results.attempted > 0
    assert results.failed == 0


def test_the_readme_names_every_registered_ingredient():
    text = (ROOT / "README.md").read_text()
    for module in (hm.activations, hm.projections, hm.teachers, hm.losses):
        for name in module.REGISTRY:
            assert name in text, f"{module.__name__}: {name}"
