"""Starts between solved points, and what they spare."""

from dataclasses import replace

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.settings import Effort
from hiddenmanifold.theory.solver.strategy import solve
from hiddenmanifold.theory.solver.tangents import PARAMETERS, interpolated


def points_at(places):
    """Points at logarithms of λ, n/d and p/d."""
    lam, samples, features = np.exp(np.asarray(places, dtype=float)).T
    return Points.of(samples / features, 1.0 / features, lam)


def cubic_along(places, way):
    """Three cubics of the distance along a way, and their gradients by parameter."""
    t = places @ way
    coefficients = np.array([[0.3, -1.0, 0.4, 0.2], [1.0, 0.2, 0.0, -0.1], [0.0, 2.0, 0.3, 0.0]])
    powers = t[:, None] ** np.arange(4)
    slope = np.arange(1, 4) * powers[:, :3] @ coefficients[:, 1:].T
    return powers @ coefficients.T, {
        name: slope * w for name, w in zip(PARAMETERS, way, strict=True)
    }


@pytest.mark.parametrize("way", [(1.0, 0.0, 0.0), (0.0, 0.6, 0.8), (0.5, -0.5, 0.7)])
def test_cubics_along_a_line_are_exact(way):
    way = np.array(way)
    line = np.linspace(-0.5, 0.5, 5)[:, None] * way / (way @ way)
    known = line[[4, 0, 2, 3, 1]]  # in any order
    x, tangents = cubic_along(known, way)
    between = np.linspace(-0.5, 0.5, 41)[:, None] * way / (way @ way)
    found = interpolated(points_at(known), x, tangents, points_at(between))
    np.testing.assert_allclose(found, cubic_along(between, way)[0], rtol=0, atol=1e-13)


def test_linear_functions_are_exact_aside_and_beyond():
    rng = np.random.default_rng(0)
    slopes = rng.normal(scale=0.1, size=(3, 3))
    known, wanted = rng.normal(size=(30, 3)), 1.5 * rng.normal(size=(50, 3))
    tangents = {name: np.tile(s, (30, 1)) for name, s in zip(PARAMETERS, slopes, strict=True)}
    found = interpolated(points_at(known), known @ slopes, tangents, points_at(wanted))
    np.testing.assert_allclose(found, wanted @ slopes, rtol=0, atol=1e-13)


def test_one_solution_and_unknown_tangents_are_enough():
    x, nothing = np.array([[1.0, 2.0, 0.3]]), np.full((1, 3), np.nan)
    tangents = {"regularisation": np.array([[0.1, 0.0, 0.0]]), "n": nothing, "p": nothing}
    found = interpolated(
        points_at([[0.0, 0.0, 0.0]]), x, tangents, points_at([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    )
    np.testing.assert_allclose(found, [[1.0, 2.0, 0.3], [1.05, 2.0, 0.3]], atol=1e-14)


def test_a_cubic_that_shoots_over_gives_way_to_the_chord():
    known, x = points_at([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([[0.0], [4.0]])
    steep = {name: np.full((2, 1), 40.0 * (name == "p")) for name in PARAMETERS}
    found = interpolated(known, x, steep, points_at([[0.0, 0.0, 0.25]]))
    np.testing.assert_allclose(found, 1.0)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_grids_take_few_turns_in_any_order(loss):
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss=loss)
    n_over_d, p_over_n = np.meshgrid(np.linspace(0.5, 6, 30), np.geomspace(0.1, 3, 30))
    alpha = 1.0 / p_over_n.ravel()
    points = Points.of(alpha, alpha / n_over_d.ravel(), np.full(alpha.size, 1e-4))
    order = np.random.default_rng(1).permutation(alpha.size)
    whole = replace(SaddlePoint.of(model, points), effort=Effort(few=100))
    starting, restarted = solve(whole), solve(whole[order])
    alone = solve(replace(whole, effort=Effort(few=1000)))
    for found, expected in ((starting, alone.x), (restarted, alone.x[order])):
        assert (found.status == hm.Status.CONVERGED).mean() > 0.99
        good = found.status == hm.Status.CONVERGED
        np.testing.assert_allclose(found.x[good], expected[good], rtol=0, atol=1e-9)
        assert found.iterations.mean() < 4.2 < 0.8 * alone.iterations.mean()
