"""Solutions followed along λ: nodes, the cubics between them, and the least value found there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hiddenmanifold as hm
from hiddenmanifold.teachers import Linear, Sign
from hiddenmanifold.theory.best_lambda.gaps import least
from hiddenmanifold.theory.best_lambda.path import Nodes, Path, cubic
from hiddenmanifold.theory.best_lambda.search import regular
from hiddenmanifold.theory.best_lambda.walk import Walk, walk
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import asymptotics, channel_of
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint

ALPHA, GAMMA = np.array([0.4, 1.3, 4.0]), np.array([0.5, 0.2, 1.5])
UNBALANCED = Sign(noise=0.4, threshold=0.6)


def model(**ingredients):
    parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign", "loss": "logistic"}
    return hm.Model(**{**parts, **ingredients})


MODELS = [
    model(),
    model(teacher=UNBALANCED, intercept=True),
    model(teacher=UNBALANCED, loss="squared_hinge"),
    model(teacher=Linear(noise=0.3), loss="huber", projection="orthogonal"),
]


def followed(m, low=1e-6):
    channel = channel_of(m)
    points = Points.of(ALPHA, GAMMA, np.full(len(ALPHA), HUGE))
    problem = SaddlePoint(channel, m.features, points)
    path = Path(problem, lambda x: channel.test_errors(x)["generalisation_error"])
    nodes, gaps, lost = walk(path, np.log(low))
    assert not lost.any()
    return path, nodes, gaps


def error(m, point, t):
    points = Points.of(ALPHA[point], GAMMA[point], np.exp(t))
    return asymptotics(m, points)["generalisation_error"]


@pytest.mark.slow
@pytest.mark.parametrize("m", MODELS, ids=range(len(MODELS)))
def test_values_along_the_path_are_as_good_as_they_say(m):
    path, nodes, gaps = followed(m)
    assert (np.bincount(nodes.point) > 6).all()
    truth = error(m, nodes.point, nodes.t)
    assert np.all(np.abs(nodes.value - truth) <= nodes.doubt + 1e-9 * truth)
    left, right = nodes[gaps.left], nodes[gaps.right]
    middle = 0.5 * (left.t + right.t)
    off = np.abs(
        path.valued(cubic(left, right, middle[:, None])[:, 0]) - error(m, left.point, middle)
    )
    known = gaps.error + left.doubt + right.doubt
    assert np.mean(off <= known) > 0.9
    assert np.all(off <= 10.0 * known)


@pytest.mark.slow
@pytest.mark.parametrize("m", MODELS, ids=range(len(MODELS)))
def test_no_value_of_a_dense_scan_is_less(m):
    path, nodes, gaps = followed(m)
    t, _, value, lost = least(path, nodes, gaps)
    assert not lost.any()
    assert_allclose(value, error(m, np.arange(len(t)), t), rtol=1e-8)
    grid = np.linspace(np.log(1e-6), np.log(1e6), 300)
    everyone = np.arange(len(t))
    scan = error(m, np.repeat(everyone, len(grid)), np.tile(grid, len(t))).reshape(len(t), -1)
    assert np.all(value <= scan.min(1) * (1 + 1e-9))


def test_cubics_keep_values_and_tangents():
    rng = np.random.default_rng(0)
    c = rng.standard_normal((4, 5, 3))

    def node(t):
        powers = np.power.outer(t, np.arange(4)).T[..., None]
        x = (c * powers).sum(0)
        dx = (c[1:] * np.arange(1, 4)[:, None, None] * powers[:3]).sum(0)
        return Nodes.of(np.arange(5), t, t, t, x=x, dx=dx)

    left, right, between = rng.uniform(-2, -1, 5), rng.uniform(1, 2, 5), rng.uniform(-3, 3, 5)
    assert_allclose(cubic(node(left), node(right), between[:, None])[:, 0], node(between).x)


def test_many_points_take_few_turns_each_and_few_points_few_together(monkeypatch):
    turns, close = [], SaddlePoint.turn

    def counted(self, x, *arguments, **options):
        turns.append(len(x))
        return close(self, x, *arguments, **options)

    monkeypatch.setattr(SaddlePoint, "turn", counted)
    for points in (3, 250):
        turns.clear()
        ratios = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.1, 10, points)}
        hm.predict(model(loss="square"), regularisation="optimal", workers=1, **ratios)
        assert len(turns) < 30 if points == 3 else sum(turns) < 40 * points


def test_newton_turns_that_go_round_in_circles_end(monkeypatch):
    """Between the kinks of a narrow Huber loss, of constant predictions with an intercept."""
    turns, turn = [], Walk.turn

    def counted(self):
        turns.append(1)
        assert len(turns) < 500
        return turn(self)

    monkeypatch.setattr(Walk, "turn", counted)
    teacher = Sign(noise=0.003, threshold=-0.09, rho=0.38)
    m = model(activation="sign", teacher=teacher, loss=hm.losses.Huber(0.05), intercept=True)
    ratios = {"n_over_p": 0.01, "d_over_p": 0.41}
    found = hm.predict(m, regularisation="optimal", workers=1, **ratios).generalisation_error
    scan = hm.predict(m, regularisation=np.logspace(-3, 2, 101), **ratios).generalisation_error
    assert found <= scan.min() * (1.0 + 1e-9)


@pytest.mark.parametrize(("c", "bend", "falls"), [(1, 0, 1), (1, 3, 1), (-1, 60, 0), (-1, 90, 0)])
def test_errors_that_turn_before_their_limit_are_not_regular(c, bend, falls):
    """E = c/T + bend/T² with T = log(1/λ): for c < 0 it has its minimum at T = -2 bend/c."""
    T = -np.log(1e-8)
    rest, slope = np.array([c / T + bend / T**2]), np.array([c / T**2 + 2 * bend / T**3])
    assert slope > 0
    one = np.ones(2)
    assert regular(model(), 1e-8, one[:1], rest, slope) == bool(falls)
    power = np.array([0.5, 1.0])
    assert regular(model(loss="square"), 1e-8, one, 1e-6 / power, 1e-6 * one).all()
    assert not regular(model(loss="square"), 1e-8, one, -1e-6 * one, 1e-6 * one).any()


def test_a_plateau_is_regular_if_it_is_that_of_the_limit():
    value, rest, slope = np.full(4, 0.2), np.array([0, 1e-12, 1e-6, 0]), np.array([0, 0, 0, 1e-6])
    found = regular(model(loss="hinge"), 1e-8, value, rest, slope)
    assert found.tolist() == [True, True, False, False]


def test_a_walk_whose_steps_shrink_for_ever_is_given_up(monkeypatch):
    """At λ = 1e-45 the unknowns are rounding: each step is followed by a shorter one."""
    m, turns, turn = model(activation="sign"), [], Walk.turn

    def counted(self):
        turns.append(1)
        return len(turns) < 500 and turn(self)

    monkeypatch.setattr(Walk, "turn", counted)
    alpha = np.array([1 / 17.012542798525892])
    problem = SaddlePoint(channel_of(m), m.features, Points.of(alpha, alpha / 3, np.array([HUGE])))
    _, _, lost = walk(Path(problem, lambda x: x[:, 1]), np.log(1e-64))
    assert lost.all()
    assert len(turns) < 500
