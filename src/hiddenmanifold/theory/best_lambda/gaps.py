r"""The least value of a function along a path: no gap between nodes is left that could hide it.

Between nodes the cubic interpolates the unknowns, and how far it may be off is known from how far
the guesses of nodes were. So the function is known everywhere, with an error. A gap that could hide
less than the least value found is divided by one more node, until there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers, Rows
from hiddenmanifold.numerics.minima import least_of_each
from hiddenmanifold.theory.best_lambda.path import FINE, Nodes, Path, cubic

INSIDE = np.arange(1, 8) / 8.0
"""Where in a gap the interpolated function is evaluated, as fractions of its width."""
GAIN = 1e-11
"""Relative gain that may be left in a gap."""
PARABOLAS = 5
"""Turns in which the end of a fall is found on the cubic."""
BEYOND = 2.0
"""How much further than a fall seems to reach the next node is put."""
APART = 1e-7
"""Nodes are no closer to each other, and gaps ten times as wide are not divided."""
ROUNDS = 40
"""How often gaps are divided, at most."""
RIVALS = 1e-3
"""Nodes whose values are that close to the least are computed to all digits."""


@dataclass(frozen=True)
class Gaps(Rows):
    """Intervals between neighbouring nodes, given by their numbers, and errors in the middle."""

    left: Integers
    right: Integers
    error: Array

    def prospects(self, path: Path, nodes: Nodes) -> tuple[Array, Array]:
        """The least value that each may hide, and where to look for it."""
        left, right = nodes[self.left], nodes[self.right]
        width = right.t - left.t
        value = path.valued(cubic(left, right, left.t[:, None] + INSIDE * width[:, None]))
        to_right = INSIDE**2 * (3.0 - 2.0 * INSIDE)
        doubt = left.doubt[:, None] * (1.0 - to_right) + right.doubt[:, None] * to_right
        doubt += self.error[:, None] * 16.0 * (INSIDE * (1.0 - INSIDE)) ** 2
        bound = (value - doubt).min(1)
        t = left.t + _least_of_parabola(np.column_stack([left.value, value, right.value])) * width
        # a fall is judged by the curvature of a wide cubic: unless it ends at a rise, go beyond it
        further = np.where((left.slope < 0) & (right.slope > 0), 1.0, BEYOND)
        both, signs = self + self, np.repeat([1.0, -1.0], len(width))
        falls = np.array(both.fall(path, nodes, signs)).reshape(2, 2, -1)
        for end, sign, reach, promise in zip((left, right), (1.0, -1.0), *falls, strict=True):
            better = (promise < bound) & (reach > 0)
            bound = np.where(better, promise, bound)
            t = np.where(better, end.t + sign * np.minimum(further * reach, 0.9 * width), t)
        margin = np.minimum(APART, 0.01 * width)
        return bound, np.clip(t, left.t + margin, right.t - margin)

    def fall(self, path: Path, nodes: Nodes, sign: Array) -> tuple[Array, Array]:
        """How far the function falls from the left ends up, or (sign -1) from the right ends down.

        Also to what; 0 and the value there where it does not.
        """
        end = nodes[np.where(sign > 0, self.left, self.right)]
        found, promise = np.zeros(len(sign)), end.value.copy()
        some = np.flatnonzero(sign * end.slope < -GAIN * np.abs(end.value))
        if not some.size:
            return found, promise
        left, right = nodes[self.left[some]], nodes[self.right[some]]
        end, sign = end[some], sign[some]
        slope, limit = sign * end.slope, right.t - left.t
        reach, best, at_best = INSIDE[0] * limit, end.value, np.zeros(len(some))
        for _ in range(PARABOLAS):
            value = path.valued(cubic(left, right, (end.t + sign * reach)[:, None])[:, 0])
            best, at_best = np.minimum(value, best), np.where(value < best, reach, at_best)
            limit = np.where(value >= end.value, np.minimum(reach, limit), limit)
            with np.errstate(divide="ignore", invalid="ignore"):
                vertex = -0.5 * slope * reach**2 / (value - end.value - slope * reach)
            inside = (vertex > 0) & (vertex < limit)  # else it still falls faster than a parabola
            reach = np.where(inside, vertex, 0.5 * (reach + limit))
        found[some] = np.where(inside, reach, at_best)
        promise[some] = np.minimum(best, end.value + 0.5 * slope * found[some])
        return found, promise

    def divided(self, path: Path, nodes: Nodes, t: Array) -> tuple[Nodes, Gaps]:
        """New nodes at t, and the two gaps out of each; the nodes come after the old ones."""
        left, right = nodes[self.left], nodes[self.right]
        new, guessed = path.solved(left.point, t, cubic(left, right, t[:, None])[:, 0], FINE)
        share = (t - left.t) / (right.t - left.t)
        with np.errstate(invalid="ignore"):
            off = np.abs(new.value - guessed) / (16.0 * (share * (1.0 - share)) ** 2)
        number = len(nodes.t) + np.arange(len(t))
        lower = Gaps(self.left, number, off * share**4)
        return path.sloped(new), lower + Gaps(number, self.right, off * (1.0 - share) ** 4)


def _least_of_parabola(value: Array) -> Array:
    """Where on [0, 1] the parabola around the least of evenly spaced values is least.

    The middle, if the least is at an end.
    """
    rows, last = np.arange(len(value)), value.shape[1] - 1
    least = np.argmin(value, axis=1)
    middle = np.clip(least, 1, last - 1)
    a, b, c = (value[rows, middle + k] for k in (-1, 0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.clip(0.5 * (a - c) / (a - 2.0 * b + c), -0.5, 0.5)
    inner = (least == middle) & np.isfinite(shift)
    return np.where(inner, (middle + shift) / last, 0.5)


def least(path: Path, nodes: Nodes, gaps: Gaps) -> tuple[Array, Array, Array, Booleans]:
    """Where each point has its least value, about the unknowns there, it, and which points fail.

    More nodes are added until no gap can hide less than the least of them.
    """
    points = len(path.problem.points)
    lost = np.zeros(points, dtype=bool)

    def best() -> Array:
        found = np.full(points, np.inf)
        np.minimum.at(found, nodes.point, nodes.value + nodes.doubt)
        return found

    target = best()[nodes.point]
    close = nodes.value - nodes.doubt <= target + RIVALS * np.abs(target)
    rivals = np.flatnonzero(close & (nodes.doubt > 0))
    nodes[rivals] = path.tight(nodes[rivals])
    lost[nodes.point[np.isinf(nodes.doubt)]] = True
    bound, t = gaps.prospects(path, nodes)
    for turn in range(ROUNDS + 1):
        target = best()[nodes.point[gaps.left]]
        wide = nodes.t[gaps.right] - nodes.t[gaps.left] > 10.0 * APART
        divide = (bound < target - GAIN * np.abs(target)) & ~lost[nodes.point[gaps.left]] & wide
        if not divide.any() or turn == ROUNDS:
            lost[nodes.point[gaps.left[divide]]] = True
            break
        new, parts = gaps[divide].divided(path, nodes, t[divide])
        nodes = nodes + new
        lost[new.point[np.isinf(new.doubt)]] = True
        more = parts.prospects(path, nodes)
        gaps = gaps[~divide] + parts
        bound, t = (np.concatenate([a[~divide], b]) for a, b in zip((bound, t), more, strict=True))
    first = least_of_each(nodes.point, nodes.value)
    t, value = nodes.t[first], nodes.value[first]
    # two at each, one at the ends of the path
    up, down = (gaps[np.isin(ends, first)] for ends in (gaps.left, gaps.right))
    beside, sign = up + down, np.repeat([1.0, -1.0], [len(up.left), len(down.left)])
    np.add.at(t, nodes.point[beside.left], sign * beside.fall(path, nodes, sign)[0])
    x = nodes.x[first] + nodes.dx[first] * (t - nodes.t[first])[:, None]
    return t, x, value, lost
