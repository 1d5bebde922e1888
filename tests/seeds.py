"""Seeds of tests on random models."""

import pytest


def some_slow(count: int) -> list:
    """So many seeds, of which one in twelve runs among the fast tests as well."""
    return [
        pytest.param(seed, marks=[pytest.mark.slow] if seed % 12 else []) for seed in range(count)
    ]
