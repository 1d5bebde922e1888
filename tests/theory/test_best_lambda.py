"""The search for the best λ: its nodes, the error between the edge and 0⁺, and hard places."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hiddenmanifold as hm
from given import plain_model as model
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.teachers import Linear, Sign
from hiddenmanifold.theory.best_lambda.path import Path
from hiddenmanifold.theory.best_lambda.search import monotone
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import asymptotics

ALPHA, GAMMA = np.array([0.4, 1.3, 4.0]), np.array([0.5, 0.2, 1.5])
UNBALANCED = Sign(noise=0.4, threshold=0.6)
ERROR, BY = "generalisation_error", "generalisation_error_by_log_regularisation"


MODELS = [
    model(),
    model(teacher=UNBALANCED, intercept=True),
    model(teacher=UNBALANCED, loss="squared_hinge"),
    model(teacher=Linear(noise=0.3), loss="huber", projection="orthogonal"),
]


@pytest.mark.parametrize("m", MODELS, ids=range(len(MODELS)))
def test_nodes_are_solutions(m):
    """From nothing and between others, below the edge of plain solutions and far above."""
    path = Path(m, Points.of(ALPHA, GAMMA, np.full(3, np.nan)), ERROR)
    t = np.log(10.0) * np.array([-12.0, -7.0, -5.0, -3.0, -1.0, 1.0, 3.0, 12.0])
    nodes = path.nodes(np.repeat(np.arange(3), len(t)), np.tile(t, 3))
    left, right = nodes.pairs()
    nodes = nodes.extended(path.between(left, right, 0.6 * left.t + 0.4 * right.t))
    points = Points.of(ALPHA[nodes.point], GAMMA[nodes.point], np.exp(nodes.t))
    found = asymptotics(m, points, slopes=("regularisation",))
    assert_allclose(nodes.value, found[ERROR], rtol=1e-10)
    # tangents are those before the last step of Newton's method
    assert_allclose(nodes.slope, found[BY], rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize("m", MODELS, ids=range(len(MODELS)))
def test_no_value_of_a_dense_scan_is_less(m):
    points = {"n_over_p": ALPHA[0], "d_over_p": GAMMA[0]}
    best = hm.predict(m, regularisation="optimal", **points)
    scan = hm.predict(m, regularisation=[0, *np.geomspace(1e-6, 1e6, 300), np.inf], **points)
    assert best.generalisation_error <= scan.generalisation_error.min() * (1 + 1e-10)


def test_the_last_solve_starts_at_the_minimum():
    """Newton's method from the common start takes twice as many iterations, or more."""
    ratios = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.1, 10, 30)}
    best = hm.predict(model(), regularisation="optimal", **ratios)
    cold = hm.predict(model(), regularisation=best.optimal_regularisation, **ratios)
    assert_allclose(best.generalisation_error, cold.generalisation_error, rtol=1e-11)
    assert best.iterations.max() <= 4
    assert best.iterations.sum() < 0.6 * cold.iterations.sum()


def test_newton_turns_that_go_round_in_circles_end():
    """Between the kinks of a narrow Huber loss, of constant predictions with an intercept."""
    teacher = Sign(noise=0.003, threshold=-0.09, rho=0.38)
    m = model(activation="sign", teacher=teacher, loss=hm.losses.Huber(0.05), intercept=True)
    ratios = {"n_over_p": 0.01, "d_over_p": 0.41}
    found = hm.predict(m, regularisation="optimal", **ratios).generalisation_error
    scan = hm.predict(m, regularisation=np.logspace(-3, 2, 101), **ratios).generalisation_error
    assert found <= scan.min() * (1.0 + 1e-9)


@pytest.mark.parametrize("bounds", [(1e-64, 1e-40), (1e-20, 1e-3), (0.0, 1e-12)])
def test_bounds_may_lie_below_the_edge(bounds):
    """The error falls with λ all the way down, so that it is least at the upper bound."""
    ratios = {"p_over_n": 17.012542798525892, "n_over_d": 3.0}
    m = model(activation="sign")
    best = hm.predict(m, regularisation=hm.Optimal(bounds=bounds), **ratios)
    scan = hm.predict(
        m, regularisation=np.geomspace(max(bounds[0], 1e-80), bounds[1], 30), **ratios
    )
    assert best.generalisation_error <= scan.generalisation_error.min() * (1 + 1e-9)
    assert bounds[0] <= best.optimal_regularisation <= bounds[1]


def at_edge(value, slope):
    """Samples at λ = 1e-8."""
    return Samples(np.arange(len(slope)), np.full(len(slope), np.log(1e-8)), value, slope)


@pytest.mark.parametrize(("c", "bend", "falls"), [(1, 0, 1), (1, 3, 1), (-1, 60, 0), (-1, 90, 0)])
def test_errors_that_turn_before_their_limit_are_not_monotone(c, bend, falls):
    """E = c/T + bend/T² with T = log(1/λ): for c < 0 it has its minimum at T = -2 bend/c."""
    T = -np.log(1e-8)
    rest, slope = np.array([c / T + bend / T**2]), np.array([c / T**2 + 2 * bend / T**3])
    assert slope > 0
    one = np.ones(2)
    assert monotone(model(), 1.0, at_edge(one[:1], slope), rest) == bool(falls)
    edge, power = at_edge(one, 1e-6 * one), np.array([0.5, 1.0])
    assert monotone(model(loss="square"), 1.0, edge, 1e-6 / power).all()
    assert not monotone(model(loss="square"), 1.0, edge, -1e-6 * one).any()


def test_a_plateau_is_monotone_if_it_is_that_of_the_limit():
    value, rest, slope = np.full(4, 0.2), np.array([0, 1e-12, 1e-6, 0]), np.array([0, 0, 0, 1e-6])
    found = monotone(model(loss="hinge"), 1.0, at_edge(value, slope), rest)
    assert found.tolist() == [True, True, False, False]
