"""Seeds of tests on random models, and samples of tables that `make verify` runs as a whole."""

import os
from collections.abc import Iterable

import pytest

WHOLE_TABLES = "HIDDENMANIFOLD_WHOLE_TABLES"
"""Set in the environment, tests run every case of their tables."""


def some_slow(count: int) -> list:
    """So many seeds, half of them in a sample; one in twelve runs among the fast tests as well."""
    return [
        pytest.param(seed, marks=[pytest.mark.slow] if seed % 12 else [])
        for seed in sampled(range(count), range(count // 2))
    ]


def sampled(table: Iterable, sample: Iterable) -> list:
    """A sample of the cases of a table, or all of them under `make verify`."""
    return list(table if os.environ.get(WHOLE_TABLES) else sample)
