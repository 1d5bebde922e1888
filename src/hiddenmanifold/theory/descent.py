r"""The walk along a path from large λ to small, by steps that keep the guesses good.

Each solution starts on the cubic through the two before and their tangents: a node costs one or
two Newton turns. How far the guess of a node was off bounds the error of the cubic beside it.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.theory.gaps import Gaps
from hiddenmanifold.theory.path import FAR, Nodes, Path, cubic

ROUGH = 1
"""Level of quadrature of the walk."""
AHEAD = 4.0
"""By how much a cubic is better inside its gap than one step ahead, at least."""
QUADRATURE = 3e-6
"""Relative error of a function on this level."""
ASYMPTOTIC = 1e3
"""λ, in units of the larger of 1 and n/p, above which the unknowns keep their tangents."""
FIRST, SHORTEST, LONGEST = 2.0, 1e-3, 20.0
"""Step in t to begin with, one at which the walk ends, and one that is no measure of the next."""
SHRINK, GROWTH = 0.3, 2.0
"""Most by which a step is shortened and lengthened after one that went well."""
CLOSE = 0.03
"""Distance of guess and solution that steps aim at."""
SETTLED = 0.03
"""Last Newton step to a node, which is off by its square."""


class Walk:
    """Where each point of a batch stands on its way down, and what it tries next."""

    def __init__(self, path: Path, start: Nodes, low: float) -> None:
        self.path, self.low, self.nodes = path, low, start
        self.here, self.before = start[start.point], start[start.point]
        self.number, self.gap = start.point.copy(), np.full(len(start.t), -1)
        self.lost = np.zeros(len(start.t), dtype=bool)
        self.gaps = Gaps(self.number[:0], self.number[:0], start.t[:0])
        self.target, self.off = np.full((2, len(start.t)), np.nan)
        self.guess, self.x = start.x.copy(), start.x.copy()
        easy = np.log(ASYMPTOTIC * np.maximum(1.0, path.problem.points.alpha))
        self.aim(start.point, np.maximum(FIRST, start.t - easy))

    def aim(self, some: Integers, step: Array) -> None:
        """Guess the solutions of some points one step further down."""
        here, before = self.here[some], self.before[some]
        self.target[some] = t = np.maximum(here.t - step, self.low)
        straight = here.x + here.dx * (t - here.t)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            curved = cubic(here, before, t[:, None])[:, 0]
        guess = np.where((before.t > here.t)[:, None], curved, straight)
        self.guess[some] = self.x[some] = guess
        self.off[some] = np.nan

    def turn(self) -> Integers:
        """One Newton turn of all points that are not there yet; returns them."""
        going = np.flatnonzero((self.here.t > self.low) & ~self.lost)
        if not going.size:
            return going
        t, x = self.target[going], self.x[going]
        step, size, dx = self.path.turn(going, t, x, ROUGH)
        first = np.isnan(self.off[going])
        self.off[going] = np.where(first, size, self.off[going])
        good = size <= np.where(first, FAR, 0.5 * self.off[going])
        settled = good & (size <= SETTLED)
        self.x[going] += step
        some, failed = going[settled], going[~good]
        if some.size:
            newton = step[settled], size[settled], dx[settled]
            self.arrive(self.path.reached(some, t[settled], x[settled], newton))
        shorter = (self.here.t - self.target)[failed] / 3.0
        self.lost[failed] = shorter < SHORTEST
        self.aim(failed, shorter)
        return going

    def arrive(self, nodes: Nodes) -> None:
        """Add nodes, with the gaps above them, and go on."""
        some, before = nodes.point, self.here[nodes.point]
        nodes.doubt[:] += QUADRATURE * np.abs(nodes.value)
        error = np.abs(nodes.value - self.path.valued(self.guess[some])) / AHEAD
        long = np.flatnonzero(before.t - nodes.t > LONGEST)
        error[long] = np.maximum(error[long], self.swing(nodes[long], before[long]))
        number = len(self.nodes.t) + np.arange(len(some))
        above = self.gap[some]  # whose cubic the guess was
        judged = above[above >= 0]
        self.gaps.error[judged] = np.maximum(self.gaps.error[judged], error[above >= 0])
        self.gap[some] = len(self.gaps.error) + np.arange(len(some))
        self.gaps += Gaps(number, self.number[some], error)
        self.nodes, self.number[some] = self.nodes + nodes, number
        self.before[some], self.here[some] = before, nodes
        step = np.where(before.t - nodes.t > LONGEST, FIRST, before.t - nodes.t)
        ratio = (CLOSE / np.maximum(self.off[some], 1e-12)) ** 0.25
        self.aim(some, step * np.clip(ratio, SHRINK, GROWTH))

    def swing(self, nodes: Nodes, before: Nodes) -> Array:
        """How far the cubics of long gaps are from the asymptote above them."""
        middle = 0.5 * (before.t + nodes.t)
        asymptote = before.x + before.dx * (middle - before.t)[:, None]
        curved = cubic(nodes, before, middle[:, None])[:, 0]
        distance: Array = np.abs(self.path.valued(curved) - self.path.valued(asymptote))
        return distance


def walk(path: Path, start: Nodes, low: float) -> tuple[Nodes, Gaps, Booleans]:
    """Nodes from given ones, one for each point, down to t = low, and the gaps between.

    Also which points did not get there.
    """
    walk = Walk(path, start, low)
    while walk.turn().size:
        pass
    return walk.nodes, walk.gaps, walk.lost
