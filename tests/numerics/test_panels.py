"""Averages over the normal law on ragged panels, and a refinement that hides no failure."""

import numpy as np
import pytest
from scipy.special import ndtr

from hiddenmanifold.numerics.panels import Panels, fanned, refine


def test_edges_are_the_fan_and_the_marks_inside_it():
    marks = np.array([[0.5, -7.0, np.nan], [np.inf, 1.0, -np.inf], [-0.5, 9.0, -0.25]])
    edges = fanned((-1.0, 0.0, 2.0), marks)
    assert (np.diff(edges) >= 0).all()
    found = [np.unique(row).tolist() for row in edges]
    assert found == [[-1, 0, 0.5, 2], [-1, 0, 1, 2], [-1, -0.5, -0.25, 0, 2]]


@pytest.mark.parametrize("rule", [(12, 2), (20, 1), (20, 3)])
def test_each_row_is_integrated_between_its_own_edges(rule):
    edges = np.array([[-9.0, -2.0, 1.0, 9.0], [-1.0, -1.0, 0.5, 2.0], [3.0, 3.0, 3.0, 3.0]])
    panels = Panels.between(edges, rule)
    assert panels.row.tolist() == [0, 0, 0, 1, 1]  # none of no width
    low, high = edges[:, 0], edges[:, -1]

    def edge_term(x):
        return x * np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)

    mass = ndtr(high) - ndtr(low)
    assert panels.sum(np.ones_like(panels.nodes)) == pytest.approx(mass, abs=1e-14)
    second = mass + edge_term(low) - edge_term(high)
    assert panels.sum(panels.nodes**2) == pytest.approx(second, abs=1e-13)


def geometric(rate, limit):
    """Values that close in on their limit level by level, and a record of who was asked."""
    asked = []

    def function(index, level):
        asked.append(index.tolist())
        return limit[index] + rate[index] ** level, 1e-3

    return function, asked


def test_points_leave_when_they_have_settled():
    function, asked = geometric(np.array([0.0, 0.1, 0.5]), np.array([3.0, -2.0, 7.0]))
    values = refine(function, (3,), range(1, 40))
    assert values == pytest.approx([3.0, -2.0 + 1e-4, 7.0 + 0.5**10], abs=1e-15)
    assert asked == [[0, 1, 2]] * 2 + [[1, 2]] * 2 + [[2]] * 6


def test_points_that_never_settle_are_not_numbers():
    function, _ = geometric(np.array([0.1, 0.9, -1.0]), np.zeros(3))
    assert np.isnan(refine(function, (3,), range(1, 12))).tolist() == [False, True, True]
    assert np.isnan(refine(function, (3,), range(1))).all()  # one level tells nothing


def test_points_that_are_not_finite_leave_at_once():
    function, asked = geometric(np.array([np.nan, 0.1, np.inf]), np.zeros(3))
    values = refine(function, (3,), range(1, 12))
    assert np.isfinite(values).tolist() == [False, True, False]
    assert asked[1:] == [[1]] * 3


def test_a_point_of_several_numbers_settles_as_a_whole():
    rates = np.array([[0.1, 0.5], [0.1, -1.0], [0.1, 0.1]])
    function, asked = geometric(rates, np.zeros((3, 2)))
    values = refine(function, (3, 2), range(1, 20))
    assert values[[0, 2]] == pytest.approx(np.array([[1e-10, 0.5**10], [1e-4, 1e-4]]), rel=1e-9)
    assert np.isnan(values[1]).all()
    assert asked[4:10] == [[0, 1]] * 6


def test_without_points_nothing_is_asked():
    function, asked = geometric(np.empty(0), np.empty(0))
    assert refine(function, (0,), range(5)).shape == (0,)
    assert asked == []
