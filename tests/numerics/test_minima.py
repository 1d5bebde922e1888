"""Minima of known functions, several at a time."""

import numpy as np
from numpy.testing import assert_allclose

from hiddenmanifold.numerics.minima import (
    Samples,
    lowest,
    minima,
    sampler,
)


def minima_of(function, grid, points=1):
    point = np.repeat(np.arange(points), len(grid))
    _, found = minima(sampler(function), Samples.of(function, point, np.tile(grid, points)))
    return found[np.lexsort((found.t, found.point))]


def test_every_minimum_is_found():
    def function(point, t):
        k = 1.0 + point
        return 2 + np.sin(k * t), k * np.cos(k * t)

    found = minima_of(function, np.linspace(-4, 4, 12), points=3)
    for k in (1.0, 2.0, 3.0):
        expected = (np.arange(-6, 6) * 2 - 0.5) * np.pi / k
        expected = expected[np.abs(expected) < 4]
        assert_allclose(found.t[found.point == k - 1], expected, atol=1e-9)


def test_a_minimum_between_slopes_of_one_sign_is_found_by_its_cubic():
    def function(point, t):  # falls, has a dip at t = 0.4, and falls on
        dip = np.exp(-((t - 0.4) ** 2) / 0.05)
        return 3 - 0.1 * t - dip, -0.1 + dip * (t - 0.4) / 0.025

    found = minima_of(function, np.array([-1.0, 0.1, 1.0]))
    assert_allclose(found.t, 0.4, atol=0.01)


def test_the_undershoot_of_a_plateau_is_found():
    def function(point, t):  # falls, dips around t = 0.2, and is exactly flat from 0.5 on
        inside = np.minimum(t, 0.5)
        return 1 + (inside - 0.2) ** 2, np.where(t < 0.5, 2 * (inside - 0.2), 0.0)

    assert_allclose(minima_of(function, np.array([-3.0, 4.0, 5.0])).t, 0.2, atol=1e-9)


def test_a_corner_is_found():
    for steep in (1e-6, 1.0, 50.0):

        def function(point, t, steep=steep):
            beyond = t > 0.3
            value = 1 + np.where(beyond, steep * (t - 0.3), 50 * (0.3 - t))
            return value, np.where(beyond, steep, -50.0)

        found = minima_of(function, np.array([-1.0, 1.0]))
        assert_allclose(found.value, 1.0, atol=1e-7)
        assert_allclose(found.t, 0.3, atol=1e-3 if steep < 1 else 2e-9)


def test_noise_and_failures_are_no_minima():
    rng = np.random.default_rng(0)

    def noise(point, t):
        return np.ones_like(t), 1e-13 * rng.standard_normal(t.shape)

    assert not minima_of(noise, np.linspace(-1, 1, 50)).t.size

    def broken(point, t):
        inside = np.abs(t) < 0.5
        return np.where(inside, np.nan, t**2), np.where(inside, np.nan, 2 * t)

    assert not minima_of(broken, np.array([-1.0, 1.0])).t.size


def test_a_dip_beside_a_plateau_is_not_taken_for_the_plateau():
    """The slope beyond the dip is positive, yet so small that a secant leads there at once."""

    def function(point, t):
        dip = np.exp(-((t - 1.0) ** 2))
        return 2.0 - dip, 2.0 * (t - 1.0) * dip

    assert_allclose(minima_of(function, np.array([-1.0, 5.95])).t, 1.0, atol=1e-6)


def test_the_least_value_of_a_cubic():
    def cubic(t):
        return t**3 - t, 3.0 * t**2 - 1.0

    ends = np.array([[-2.0, -0.5, 0.0, 0.7, 0.2], [0.0, 0.5, 2.0, 2.0, 0.3]])
    left, right = (Samples(np.arange(5), t, *cubic(t)) for t in ends)
    grid = np.linspace(ends[0], ends[1], 100_001)
    assert_allclose(lowest(left, right), cubic(grid)[0].min(0), atol=1e-9)
