"""Fast matrices are the dense matrices they stand for, and exactly orthogonal."""

from collections import defaultdict

import numpy as np
import pytest

from hiddenmanifold.numerics import matrices
from hiddenmanifold.numerics.matrices import (
    Dense,
    FastOrthogonal,
    haar_orthogonal,
    hadamard_transform,
    mixed_hadamard_transform,
    random_orthogonal,
)

POWERS_OF_TWO = [2**k for k in range(13)]
# wide, square and tall; powers of two, odd numbers, and one more than a power of two
SHAPES = [(1, 1), (1, 5), (7, 1), (8, 8), (16, 40), (64, 32), (65, 65), (96, 33), (51, 100)]
SHAPES += [(128, 256), (257, 130)]

every_shape = pytest.mark.parametrize(("d", "p"), SHAPES)
every_kind = pytest.mark.parametrize("kind", ["hadamard", "dct", "haar"])


def drawn(kind, d, p, seed=0, fast_from=0):
    """A matrix that is never written down, whatever its size, unless it is a Haar matrix."""
    rng = np.random.default_rng(seed)
    if kind == "haar":
        return haar_orthogonal(d, p, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrices, "FASTER_FROM", defaultdict(lambda: fast_from))
        return random_orthogonal(d, p, kind, rng)


def largest(array):
    return np.abs(array).max()


def sylvester(size):
    """Its entries are ±1 by the parity of the common binary digits of row and column."""
    index = np.arange(size)
    return (-1.0) ** np.bitwise_count(index & index[:, None])


@pytest.mark.slow
@pytest.mark.parametrize("size", POWERS_OF_TWO)
def test_hadamard_transform_is_the_product_with_sylvesters_matrix(size):
    rows = np.random.default_rng(size).standard_normal((3, size))
    expected = rows @ sylvester(size) / np.sqrt(size)
    assert largest(hadamard_transform(rows) - expected) < 1e-13 * np.sqrt(size)


@pytest.mark.parametrize("size", [1, 2, 64, 128, 1024])
def test_hadamard_transform_undoes_itself(size):
    rows = np.random.default_rng(size).standard_normal((4, size))
    assert largest(hadamard_transform(hadamard_transform(rows)) - rows) < 1e-13


def test_transforms_leave_their_argument_alone():
    rows = np.random.default_rng(0).standard_normal((2, 96))
    before = rows.copy()
    mixed_hadamard_transform(rows)
    hadamard_transform(rows[:, :64])
    assert np.array_equal(rows, before)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 12, 63, 64, 65, 100, 129, 333])
def test_mixed_transform_is_orthogonal_and_its_own_transpose(size):
    matrix = mixed_hadamard_transform(np.eye(size))
    assert largest(matrix @ matrix.T - np.eye(size)) < 1e-14
    assert largest(matrix - matrix.T) < 1e-15


def test_mixed_transform_keeps_the_blocks_of_the_binary_expansion_apart():
    matrix = mixed_hadamard_transform(np.eye(13))
    expected = np.zeros((13, 13))
    for start, width in ((0, 8), (8, 4), (12, 1)):
        block = slice(start, start + width)
        expected[block, block] = sylvester(width) / np.sqrt(width)
    assert largest(matrix - expected) < 1e-15


@every_kind
@every_shape
def test_products_from_both_sides_are_those_of_one_dense_matrix(kind, d, p):
    rng = np.random.default_rng(1)
    F = drawn(kind, d, p)
    dense = F.left(np.eye(d))
    assert dense.shape == (d, p)
    rows, vector = rng.standard_normal((6, d)), rng.standard_normal(p)
    assert largest(F.left(rows) - rows @ dense) < 1e-12 * max(d, p)
    assert largest(F.right(vector) - dense @ vector) < 1e-12 * max(d, p)


@pytest.mark.parametrize("kind", ["hadamard", "dct"])
@every_shape
def test_a_small_matrix_written_down_is_the_one_that_would_be_applied(kind, d, p):
    fast, dense = (drawn(kind, d, p, fast_from=size) for size in (0, 10_000))
    assert isinstance(fast, FastOrthogonal)
    assert isinstance(dense, Dense)
    assert np.array_equal(dense.F, fast.left(np.eye(d)))


@every_kind
@every_shape
def test_smaller_gram_matrix_is_a_multiple_of_the_identity(kind, d, p):
    F = drawn(kind, d, p).left(np.eye(d))
    if p > d:
        assert largest(F @ F.T / p - np.eye(d)) < 1e-13
    else:
        assert largest(F.T @ F / d - np.eye(p)) < 1e-13


@every_kind
def test_draws_follow_their_generator(kind):
    first, again, other = (drawn(kind, 24, 17, seed).left(np.eye(24)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert largest(first - other) > 0.1


# wide matrices whose larger side is a power of two, twice the smaller, or neither
@pytest.mark.slow
@every_kind
@pytest.mark.parametrize(("d", "p"), [(256, 512), (200, 512), (250, 500), (256, 400), (200, 300)])
def test_columns_of_a_wide_matrix_are_almost_orthogonal(kind, d, p):
    # the Gaussian equivalence needs overlaps of order 1/√d; the largest of 130 000 normal
    # variables is 4.7, and two columns that point the same way have √d = 15
    F = drawn(kind, d, p).left(np.eye(d))
    overlaps = F.T @ F / d
    np.fill_diagonal(overlaps, 0.0)
    assert largest(overlaps) < 7.0 / np.sqrt(d)


@pytest.mark.slow
def test_haar_matrices_have_no_preferred_sign_or_direction():
    rng = np.random.default_rng(3)
    draws = np.array([haar_orthogonal(4, 3, rng).F for _ in range(20_000)])
    # entries of mean 0 and variance 1, of fourth moment 3 d/(d + 2) = 2 on the sphere
    assert largest(draws.mean(0)) < 5 / np.sqrt(20_000)
    assert largest((draws**2).mean(0) - 1.0) < 5 / np.sqrt(20_000)
    assert largest((draws**4).mean(0) - 2.0) < 15 / np.sqrt(20_000)


def test_dense_map_multiplies_from_both_sides():
    rng = np.random.default_rng(4)
    F = rng.standard_normal((5, 3))
    rows, vector = rng.standard_normal((2, 5)), rng.standard_normal(3)
    assert np.array_equal(Dense(F).left(rows), rows @ F)
    assert np.array_equal(Dense(F).right(vector), F @ vector)
