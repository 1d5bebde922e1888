"""What a run of the tests tells depends on the sources alone."""

import importlib
import sys

from hypothesis import given, settings
from hypothesis import strategies as st


def examples():
    seen = []

    @settings(max_examples=200)
    @given(st.floats(-1e6, 1e6))
    def collect(x):
        seen.append(x)

    collect()
    return seen


def test_examples_do_not_depend_on_which_modules_are_loaded(tmp_path, monkeypatch):
    first = examples()
    (tmp_path / "numbers_of_another_module.py").write_text(f"x = {[k / 7 for k in range(500)]}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("numbers_of_another_module")
    try:
        assert examples() == first
    finally:
        del sys.modules["numbers_of_another_module"]
