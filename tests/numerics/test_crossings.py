"""Descents to a target, on curves whose crossings are known."""

import numpy as np
from numpy.testing import assert_allclose

from hiddenmanifold.numerics.crossings import bridged, crossings, with_turns
from hiddenmanifold.numerics.minima import Samples


def damped(point, t):
    """A wave that dies out around 1, twice as fast for each next point."""
    k = 1.0 + point
    return 1 + np.exp(-t) * np.cos(k * t), -np.exp(-t) * (np.cos(k * t) + k * np.sin(k * t))


def samples_of(curve, grid, points):
    point = np.repeat(np.arange(points), len(grid))
    return Samples.of(curve, point, np.tile(grid, points))


def test_last_and_first_crossings_of_damped_waves():
    """At their mean they arrive from above at t = π/2k and, for the last time before 11, later."""
    target, k = np.ones(3), np.arange(1.0, 4.0)
    turning = with_turns(damped, samples_of(damped, np.linspace(0.0, 11.0, 40), 3))
    (lasting, value), (first, _) = crossings(damped, turning, target)
    zeros = [(np.arange(40) * 2 + 0.5) * np.pi / one for one in k]
    assert_allclose(first, 0.5 * np.pi / k, rtol=1e-7)
    ends = [damped(np.array([i]), np.array([11.0]))[0][0] <= 1 for i in range(3)]
    assert ends == [False, True, True]  # where the wave is above at the end, it has not come down
    assert lasting[0] == np.inf
    assert value[0] == damped(np.array([0]), np.array([11.0]))[0][0]
    assert_allclose(lasting[1:], [z[z < 11][-1] for z in zeros[1:]], rtol=1e-6)
    assert_allclose(value[1:], 1.0, rtol=1e-8)


def test_turns_between_samples_are_found():
    """Between 0 and 3π/4 the slope does not say that the wave went below, and above, its target."""

    def dip(point, t):
        return 1 + np.sin(4 * t) * np.exp(-((t - 1) ** 2)), np.exp(-((t - 1) ** 2)) * (
            4 * np.cos(4 * t) - 2 * (t - 1) * np.sin(4 * t)
        )

    grid = np.linspace(-2.0, 4.0, 12)
    found = with_turns(dip, samples_of(dip, grid, 1)).ordered()
    fine = np.linspace(-2.0, 4.0, 200_001)
    value = dip(0, fine)[0]
    turns = fine[1:-1][np.diff(np.sign(np.diff(value))) != 0]
    deep = np.abs(dip(0, turns)[0] - 1) > 0.05
    for turn in turns[deep]:
        assert np.abs(found.t - turn).min() < 1e-4


def test_only_what_fails_on_a_steady_fall_is_left_out():
    """Powers, with a hole: a corner, a rise, a plateau and an end are no place to look away."""
    t, grid = np.arange(8.0), np.tile(np.arange(8.0), 5)
    power = np.array([-0.5, -2.0, -0.5, 0.5, -0.5])
    slope, point = np.repeat(power, 8), np.repeat(np.arange(5), 8)
    value = np.exp(slope * grid)
    failed = np.isin(grid, [3.0, 4.0])
    failed[-8:] = t > 5  # the last has no other side
    value[failed] = np.nan
    samples = Samples(point, grid, value, slope * value)
    found = bridged(samples, np.array([[np.nan, 2.0, 3.5, np.nan, np.nan]]))
    assert list(np.bincount(found.point[np.isnan(found.value)], minlength=5)) == [0, 0, 2, 2, 2]
    assert np.isfinite(value).sum() == np.isfinite(found.value).sum()
    level = Samples(point[:8], t, np.where(t < 3, 1.0 - 0.1 * t, 0.75), -0.1 * (t < 3))
    level.value[4] = np.nan
    assert len(bridged(level, np.empty((0, 1))).t) == 8


def test_curves_that_are_below_from_the_start_never_or_unknown():
    t = np.arange(4.0)
    columns = {"below": [1, 1, 1, 1], "never": [3, 3, 3, 3], "hole": [3, np.nan, 1, 1]}
    columns["hole before"] = [np.nan, 3, 1, 1]
    value = np.array(list(columns.values()), dtype=float)
    point = np.repeat(np.arange(4), 4)
    samples = Samples(point, np.tile(t, 4), value.ravel(), np.zeros(16))

    def line(point, t):
        return 5.0 - 2.0 * t, np.full_like(t, -2.0)

    (lasting, at), (first, _) = crossings(line, samples, np.full(4, 2.0))
    assert lasting[:2].tolist() == first[:2].tolist() == [-np.inf, np.inf]
    assert at[:2].tolist() == [1.0, 3.0]
    assert np.isnan([lasting[2], first[2], at[2], first[3]]).all()
    assert_allclose(lasting[3], 1.5)


def test_a_jump_over_the_target_is_no_crossing():
    def step(point, t):
        return np.where(t < 0.3, 3.0, 1.0), np.zeros_like(t)

    with np.errstate(divide="ignore"):
        (lasting, at), _ = crossings(step, samples_of(step, np.arange(2.0), 1), np.array([2.0]))
    assert np.isnan(lasting)
    assert np.isnan(at)


def test_a_fall_like_a_power_takes_two_evaluations():
    asked = []

    def fall(point, t):
        asked.extend(t)
        first, second = np.exp(-t), 0.3 * np.exp(-1.5 * t)
        return first + second, -first - 1.5 * second

    samples = samples_of(fall, np.log(10.0) * np.arange(4.0), 1)
    asked.clear()
    (t, value), _ = crossings(fall, samples, np.array([0.05]))
    assert len(asked) <= 2
    assert_allclose(np.exp(-t) + 0.3 * np.exp(-1.5 * t), 0.05, rtol=1e-14)
    assert_allclose(value, 0.05, rtol=1e-14)
