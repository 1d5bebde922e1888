"""Roots of increasing functions: found to rounding whatever the slopes say, and never given up."""

import numpy as np
import pytest
from scipy import optimize

from hiddenmanifold.numerics.roots import increasing_root


def counted(function, tally):
    """The same function, which appends to a tally how many elements it is asked for."""

    def asked(x, index):
        tally.append(len(x))
        return function(x, index)

    return asked


@pytest.mark.parametrize("slope", [np.nan, np.inf, 0.0, 1e-300, 1e300, -1.0])
def test_the_root_is_found_to_rounding_whatever_the_slopes_say(slope):
    roots = np.array([-1e300, -7.0, -1e-300, 0.0, 1e-17, 1e-3, 0.3, 2.0, 1e100])
    tally = []

    def function(x, index):
        return np.sign(x - roots[index]), np.full_like(x, slope)

    bracket = np.full_like(roots, -1.7e308), np.full_like(roots, 1.6e308)
    found = increasing_root(counted(function, tally), bracket)
    np.testing.assert_allclose(found, roots, rtol=1e-15, atol=1e-320)
    assert len(tally) < 1000


def test_steps_that_run_in_circles_are_not_returned():
    """Newton from 0 leads to 1 and back: the slope at a kink is that of one side."""
    V = np.array([1e3, 1e17, 1e200])

    def function(x, index):
        v = V[index]
        return x + v * x - 1.0, np.where(x > 0, 1.0 + v, 1.0)

    found = increasing_root(function, (np.zeros(3), np.full(3, 2.0)))
    np.testing.assert_allclose(found, 1 / (1 + V), rtol=4e-16)


def test_roots_agree_with_brent_in_few_evaluations():
    a = np.geomspace(1e-3, 1e12, 40)
    tally = []

    def function(x, index):
        return x + a[index] * np.expm1(x) - 1.0, 1.0 + a[index] * np.exp(x)

    found = increasing_root(counted(function, tally), (np.full(40, -3.0), np.full(40, 3.0)))
    for root, at in zip(found, a, strict=True):
        brent = optimize.brentq(lambda x, at=at: x + at * np.expm1(x) - 1.0, -3, 3, xtol=1e-300)
        assert root == pytest.approx(brent, rel=2e-15)
    assert sum(tally) < 10 * len(a)


def test_a_tolerance_is_enough_and_a_start_is_used():
    tally = []
    roots = np.linspace(-1.0, 1.0, 7)

    def function(x, index):
        return x - roots[index], np.ones_like(x)

    bracket = np.full(7, -5.0), np.full(7, 5.0)
    near = increasing_root(counted(function, tally), bracket, 0.02, start=roots + 0.01)
    assert tally == [7]
    np.testing.assert_allclose(near, roots, atol=1e-15)  # the last step is taken


def test_what_has_no_root_inside_is_at_an_end_and_nan_stays_nan():
    def function(x, index):
        return x - np.array([-9.0, 0.5, 9.0, np.nan])[index], np.ones_like(x)

    low, high = np.zeros(4), np.ones(4)
    found = increasing_root(function, (low, high))
    np.testing.assert_array_equal(found, [0.0, 0.5, 1.0, np.nan])
    stated = increasing_root(function, (low, low))  # equal ends state it: nothing is asked
    np.testing.assert_array_equal(stated, low)


def test_shapes_are_kept_and_infinite_ends_allowed():
    roots = np.array([[1.0, -2.0], [1e200, -1e-200]])

    def function(x, index):
        return np.where(x > roots.flat[index], 1.0, -1.0), np.full_like(x, np.nan)

    bracket = np.full((2, 2), -np.inf), np.full((2, 2), np.inf)
    np.testing.assert_allclose(increasing_root(function, bracket), roots, rtol=1e-15)


def test_infinite_values_beside_the_root_are_values():
    """As log-odds have them: minus infinity up to the root, and no slope."""

    def function(x, index):
        return np.where(x > 0.7, 1.0, -np.inf), np.full_like(x, np.nan)

    assert increasing_root(function, (np.zeros(1), np.ones(1))) == pytest.approx(0.7, rel=1e-15)
