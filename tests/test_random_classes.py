"""A few of the random models of several classes in benchmarks/several_classes.py."""

import pytest
import several_classes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500, 506))
def test_ridge_regression_on_one_hot_targets(seed):
    off, z, model = several_classes.square_compared(seed)
    assert off < 1e-9, model
    assert abs(z) < several_classes.FAR, model


@pytest.mark.slow
@pytest.mark.parametrize("seed", [500, 501])
def test_softmax_of_unequal_classes(seed):
    off, model = several_classes.unequal_compared(seed)
    assert off < 1e-8, model
