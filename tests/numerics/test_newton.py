"""The batched Newton loop: convergence, outcomes, and that it loses nothing."""

import numpy as np
import pytest

from hiddenmanifold.errors import Status
from hiddenmanifold.numerics.newton import newton, newton_step

LONGEST = np.array([1.0, 1.0])


def cosines(x, index):
    """G(x, y) = (cos y, sin x / 2), whose fixed point is smooth and unique."""
    g = np.stack([np.cos(x[:, 1]), 0.5 * np.sin(x[:, 0])], axis=1)
    matrix = np.tile(np.eye(2), (len(x), 1, 1))
    matrix[:, 0, 1] = np.sin(x[:, 1])
    matrix[:, 1, 0] = -0.5 * np.cos(x[:, 0])
    return g - x, matrix


def test_all_points_reach_the_fixed_point_and_leave_the_batch():
    sizes = []

    def counted(x, index):
        sizes.append(len(index))
        return cosines(x, index)

    start = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    found = newton(counted, start, LONGEST, 1e-12, 40)
    assert (found.residual <= 1e-12).all()
    assert np.ptp(found.x, axis=0).max() < 1e-11
    assert sizes[0] == 50 and sizes[-1] < 50
    assert sum(sizes) == found.iterations.sum()


def test_convergence_is_quadratic():
    found = newton(cosines, np.array([[0.9, 0.3]]), LONGEST, 1e-14, 40)
    assert found.iterations[0] <= 7


def test_a_point_that_cannot_converge_reports_its_residual():
    def impossible(x, index):
        return np.ones_like(x), np.tile(np.eye(2), (len(x), 1, 1))

    found = newton(impossible, np.zeros((3, 2)), LONGEST, 1e-12, 15)
    assert (found.residual == 1.0).all()
    assert (found.iterations == 15).all()


def test_a_residual_that_is_not_finite_never_counts_as_converged():
    def broken(x, index):
        return np.full_like(x, np.nan), np.tile(np.eye(2), (len(x), 1, 1))

    found = newton(broken, np.zeros((2, 2)), LONGEST, 1e-12, 10)
    assert np.isinf(found.residual).all()


def test_a_bad_start_of_one_point_does_not_disturb_the_others():
    start = np.array([[0.5, 0.5], [1e6, -1e6], [0.1, 0.2]])
    alone = newton(cosines, start[[0]], LONGEST, 1e-12, 40)
    together = newton(cosines, start, LONGEST, 1e-12, 40)
    np.testing.assert_array_equal(together.x[0], alone.x[0])


def test_plain_iteration_goes_on_where_the_matrix_misleads():
    """Every step leads away from the fixed point, however short: only G itself leads there."""

    def uphill(x, index):
        return 0.01 * x - x, np.tile(-np.eye(2), (len(x), 1, 1))

    found = newton(uphill, np.array([[0.9, 0.3], [-0.5, 0.7]]), LONGEST, 1e-12, 60)
    assert (found.residual <= 1e-12).all()


def test_a_point_at_the_tolerance_has_converged():
    def halved(x, index):
        return -0.5 * x, np.tile(0.5 * np.eye(2), (len(x), 1, 1))

    found = newton(halved, np.array([[2.0, 1.0], [2.1, 1.0]]), LONGEST, 1.0, 40)
    assert found.iterations.tolist() == [1, 2]


@pytest.mark.parametrize("matrix", [np.zeros((1, 2, 2)), np.full((1, 2, 2), np.nan)])
def test_a_singular_or_broken_matrix_falls_back_without_an_exception(matrix):
    step = newton_step(matrix, np.array([[1.0, 2.0]]))
    assert np.isfinite(step).all()


def test_every_status_has_a_sentence_for_people():
    sentences = {status.sentence for status in Status}
    assert len(sentences) == len(Status)
    assert all(len(sentence.split()) > 5 for sentence in sentences)
