r"""The walk along a path from large λ to small, by steps that keep the guesses good.

Each solution starts on the cubic through the two before and their tangents: a node costs one or
two Newton turns. How far the guess of a node was off bounds the error of the cubic beside it. Few
points have several walkers each, which set out from nodes of their own at the same time: a turn of
few rows costs hardly less than one of many.
"""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.theory.best_lambda.gaps import Gaps
from hiddenmanifold.theory.best_lambda.path import ENOUGH, FAR, ROUGH, Nodes, Path, cubic, doubted
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.strategy import approach

AHEAD = 4.0
"""By how much a cubic is better inside its gap than one step ahead, at least."""
ASYMPTOTIC = 1e3
"""λ, in units of the larger of 1 and n/p, above which the unknowns keep their tangents."""
FIRST, SHORTEST, LONGEST = 2.0, 1e-3, 20.0
"""Step in t to begin with, one at which the walk ends, and one that is no measure of the next."""
MIDWAY = 0.7
"""Step in t of walkers that begin where nothing is easy, and no cubic has been judged."""
SHRINK, GROWTH = 0.3, 2.0
"""Most by which a step is shortened and lengthened after one that went well."""
CLOSE = 0.03
"""Distance of guess and solution that steps aim at."""
TOGETHER, MOST = 200, 6
"""Walkers that are worth a turn, and the most that a point has."""
AT_REST = 1e-12
"""Deviation of the predictions below which the intercept is that of a constant prediction."""
NEAR, PATIENCE = 0.01, 12
"""Residual at which Newton's method from afar has come near a node, and its turns at most."""


class Walk:
    """Where each walker stands on its way down, and what it tries next."""

    def __init__(self, path: Path, start: Nodes, goal: Integers, low: float) -> None:
        """Walkers set out from each node of `start`, to the node `goal` or (-1) to t = low."""
        everyone = np.arange(len(start.t))
        self.path, self.nodes, self.count = path, [start], len(everyone)
        self.goal, self.low = goal, np.where(goal < 0, low, start.t[goal])
        self.here, self.before = start[everyone], start[everyone]
        none = np.full(len(everyone), -1)
        self.number, self.gap = everyone.copy(), Gaps(none, none.copy(), np.zeros(len(none)))
        self.lost = np.isinf(start.doubt)
        self.gaps: list[Gaps] = []
        self.target, self.off, self.guessed, self.most = np.full((4, len(start.t)), np.nan)
        self.x = start.x.copy()
        down = start.t - easy(path.problem.points)[start.point]
        self.aim(everyone, np.where(down >= 0.0, np.maximum(FIRST, down), MIDWAY))

    def aim(self, some: Integers, step: Array) -> None:
        """Guess the solutions of some walkers one step further down."""
        here, before = self.here[some], self.before[some]
        self.target[some] = t = np.maximum(here.t - step, self.low[some])
        straight = here.x + here.dx * (t - here.t)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            curved = cubic(here, before, t[:, None])[:, 0]
        self.x[some] = np.where((before.t > here.t)[:, None], curved, straight)
        self.off[some], self.most[some] = np.nan, FAR

    def turn(self) -> bool:
        """One Newton turn of all walkers that are not there yet; whether there were any."""
        going = np.flatnonzero((self.here.t > self.low) & ~self.lost)
        if not going.size:
            return False
        t, x = self.target[going], self.x[going]
        step, size, dx = self.path.turn(self.here.point[going], t, x, ROUGH)
        first = np.isnan(self.off[going])
        self.off[going] = np.where(first, size, self.off[going])
        good = size <= self.most[going]
        self.most[going] = 0.5 * size  # or Newton's method might go round in circles
        settled = good & (size <= ENOUGH[ROUGH])
        self.x[going] = x + step
        value, before = self.path.valued(np.array([x + step, x]))
        self.guessed[going] = np.where(first, before, self.guessed[going])
        some, failed = going[settled], going[~good]
        if some.size:
            doubt = doubted(value, before, size, ROUGH)
            nodes = Nodes.of(self.here.point[going], t, value, doubt, x=x + step, dx=dx)
            self.arrive(some, nodes[settled])
        if failed.size:
            shorter = (self.here.t - self.target)[failed] / 3.0
            self.lost[failed] = shorter < SHORTEST
            self.aim(failed, shorter)
        return True

    def arrive(self, some: Integers, nodes: Nodes) -> None:
        """Add nodes, with the gaps above them, and go on."""
        before = self.here[some]
        error, length = np.abs(nodes.value - self.guessed[some]) / AHEAD, before.t - nodes.t
        long = np.flatnonzero(length > LONGEST)
        if long.size:
            error[long] = np.maximum(error[long], self.swing(nodes[long], before[long]))
        home = (nodes.t == self.low[some]) & (self.goal[some] >= 0)
        number = np.where(home, self.goal[some], self.count - 1 + np.cumsum(~home))
        self.count += int(np.count_nonzero(~home))
        above = self.gap[some]  # whose cubic the guess was
        above.error[:] = np.maximum(above.error, error)
        self.gaps.append(above[above.left >= 0])
        self.gap[some] = Gaps(number, self.number[some], error)
        self.nodes.append(nodes[~home])
        self.before[some], self.here[some], self.number[some] = before, nodes, number
        ratio = (CLOSE / np.maximum(self.off[some], 1e-12)) ** 0.25
        step = np.where(length > LONGEST, FIRST, length) * np.clip(ratio, SHRINK, GROWTH)
        on = ~home & (nodes.t > self.low[some])
        self.lost[some] = on & (step < SHORTEST)
        self.aim(some[on], step[on])

    def swing(self, nodes: Nodes, before: Nodes) -> Array:
        """How far the cubics of long gaps are from the asymptote above them."""
        middle = 0.5 * (before.t + nodes.t)
        asymptote = before.x + before.dx * (middle - before.t)[:, None]
        curved = cubic(nodes, before, middle[:, None])[:, 0]
        distance: Array = np.abs(np.subtract(*self.path.valued(np.array([curved, asymptote]))))
        return distance


def easy(points: Points) -> Array:
    """The t above which points are easy."""
    t: Array = np.log(ASYMPTOTIC * np.maximum(1.0, points.alpha))
    return t


def walk(path: Path, low: float) -> tuple[Nodes, Gaps, Booleans]:
    """Nodes from the λ of each point down to t = low, and the gaps between.

    The first nodes are those at the λ of the points. Also which points did not get to the end.
    """
    start, goal = starts(path, low)
    walkers = Walk(path, start, goal, low)
    while walkers.turn():
        pass
    lost = np.zeros(len(path.problem.points), dtype=bool)
    lost[start.point[walkers.lost]] = True
    gaps = [*walkers.gaps, walkers.gap[walkers.gap.left >= 0]]
    return Nodes.joined(walkers.nodes), Gaps.joined(gaps), lost


def starts(path: Path, low: float) -> tuple[Nodes, Integers]:
    """Where walkers set out, the first of all points first, and the nodes they go to (-1: none)."""
    points, n = path.problem.points, path.problem.channel.overlap_unknowns
    count = len(points)
    top = np.log(points.lam)
    walkers = np.clip(TOGETHER // count, 1, MOST)
    t = np.linspace(np.clip(easy(points), low, top), low, walkers, endpoint=False)
    t[0] = top
    point = np.tile(np.arange(count), walkers)
    near = approach(path.at(point, t.ravel()), NEAR, PATIENCE)
    nodes, _ = path.solved(point, t.ravel(), near.x, ROUGH)
    # where predictions do not vary, the intercept in units of their deviation is rounding
    rests = np.flatnonzero(nodes.x[:count, 1] < 2.0 * np.log(AT_REST))
    nodes.x[rests, n:], nodes.dx[rests, n:] = 0.0, 0.0
    nodes = nodes[np.isfinite(nodes.doubt) | (np.arange(len(point)) < count)]
    order = np.lexsort((-nodes.t, nodes.point))
    above, below = order[:-1], order[1:]
    next_one = nodes.point[above] == nodes.point[below]
    goal = np.full(len(order), -1)
    goal[above[next_one]] = below[next_one]
    return nodes, goal
