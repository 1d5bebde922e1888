"""Points of the standard normal law of K - 1 contrasts of scores, for averages over samples.

Two and three classes have grids, on which the trapezoidal sums of smooth functions converge faster
than any power; more classes have Sobol points, made symmetric and of unit covariance, so that
averages of cubic functions are exact. Each set of points is used by itself, and the spread of the
results is their error: two grids are half a step apart, so that the errors of their sums have
opposite signs; eight sets of Sobol points are scrambled anew, those of each class by themselves,
because errors that are common to all classes would add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.theory.classes.orthants import normal_points

GRIDS = {2: (0.2, 0.05, 0.0125, 0.003), 3: (0.5, 0.25, 0.125, 0.0625)}
"""Steps of grids, tried one after another until the error is small."""
WIDTH = 8.5
"""Range of the grids in each direction, and in all together."""
FARTHEST = 9.5
NUMBERS = (2**6, 2**8, 2**10, 2**12)
"""Sobol points of each set and class, tried one after another."""
MOST = 2**14
"""Points of a set, of all classes together, beyond which no more are tried."""


def points_of_scores(
    number: int, numbers: Sequence[int] = NUMBERS, most: int = MOST
) -> Iterator[list[tuple[Array, Array]]]:
    """Sets of points (K, points, K - 1) with weights (points,), ever more of them."""
    if number in GRIDS:
        for step in GRIDS[number]:
            yield [_grid(number, step, shift) for shift in (0.0, 0.5)]
        return
    for points in numbers:
        if points == numbers[0] or number * points <= most:
            yield sobol_sets(number, points)


def sobol_sets(number: int, points: int) -> list[tuple[Array, Array]]:
    """Eight sets of so many Sobol points for each class."""
    each = [_even(number, points, key) for key in range(number)]
    weights = np.full(points, 1.0 / points)
    return [(np.array(nodes), weights) for nodes in zip(*each, strict=True)]


def counting_error(sets: Array, points: float) -> float:
    """Error of a rate that is counted by each of some sets of so many points.

    Three standard errors of the mean over sets, or the rate of which all points may see nothing.
    """
    spread = 3.0 * float(np.std(sets, ddof=1)) / np.sqrt(len(sets))
    return float(np.maximum(spread, 3.0 / (len(sets) * points)))


def _grid(number: int, step: float, shift: float) -> tuple[Array, Array]:
    """A grid shifted by parts of its step, the same for all classes."""
    t = step * np.arange(-np.ceil(WIDTH / step), np.ceil(WIDTH / step) + 1)
    sides = np.meshgrid(*[t] * (number - 1), indexing="ij")
    nodes = np.stack(sides, axis=-1).reshape(-1, number - 1)
    nodes = nodes[(nodes**2).sum(-1) <= FARTHEST**2] + step * shift
    density = (step / np.sqrt(2.0 * np.pi)) ** (number - 1)
    weights = density * np.exp(-0.5 * (nodes**2).sum(-1))
    return np.broadcast_to(nodes, (number, *nodes.shape)), weights


def _even(number: int, points: int, key: int) -> list[Array]:
    """Sets of points of one class that are symmetric and of unit covariance."""
    sets = []
    for half in normal_points(number - 1, points // 2, key=number * number + key):
        root = np.linalg.cholesky(2.0 * half.T @ half / points)
        whitened = np.linalg.solve(root, half.T).T
        sets.append(np.concatenate([whitened, -whitened]))
    return sets
