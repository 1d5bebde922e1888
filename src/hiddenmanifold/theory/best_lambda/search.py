r"""The regularisation of least error, per point of a batch.

The error and its slope by :math:`t = \log\lambda` are computed at some twenty λ per point. Every
interval in which the slope turns, or the cubic through both ends does, is refined to its minimum.
The limits :math:`0^+` and :math:`\infty` are candidates as well. The best candidate is solved again
and certified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, chunks, joined
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.minima import Samples, least_of_each, minima
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.best_lambda.path import Nodes, Path
from hiddenmanifold.theory.limits import Phase, fitted_phase
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.scores.distribution import Observed

TOP = 1e4
"""The λ, in units of `Path.unit` max(1, n/p), above which all unknowns are powers of λ."""
COARSE, HALVINGS = 5, 2
"""Nodes from bottom to top that are solved without a neighbour, and halvings of their gaps.

Where n < p they are then 0.75 decades apart. With three or five gaps for four, the time of a search
changes by a tenth."""
FURTHER, RESOLVED = 6, 0.03
"""Most further halvings of a gap, and the error of its cubic in the middle that calls for one.

Where n is much less than p, the margins of all samples meet the corner of a hinge loss at almost
the same λ: unknowns change their power of λ within a tenth of a decade."""
INSIDE = np.arange(1, 8) / 8.0
"""Places between two nodes at which the error is read off the cubic of the unknowns, unsolved.

The unknowns are smooth where the error is not: dips beside the plateaus of hinge losses, where
predictions do not change, may be less than a fifth of a decade wide."""
WITHIN = 0.05
"""Relative distance from the least error of all nodes within which dips are sought there."""
ABOVE = 2
"""Nodes above the top, the last of which represents λ → ∞.

Powers of λ are straight lines in logarithms, so that extrapolation is accurate at any distance."""
BOTTOM = 1e-8
"""The λ, in the same units, down to which all points are searched.

Below it the error mostly follows its asymptotic form towards the limit, which excludes a further
minimum; a smaller value costs nodes at all points and saves only a few of them the next stage."""
BELOW = [np.log(10.0) * np.array(t) for t in (range(-16, -8), range(-100, -16, 12))]
"""Values of log λ tried below, in two stages, at points that are not asymptotic yet."""
TIE = 1e-10
"""Relative difference of two errors that does not count as evidence against the limit."""
LAW = 3.0
"""Factor by which the fall of the error from the bottom to 0⁺ may exceed its asymptotic form.

The asymptotic forms hold when λ is small enough. A larger factor only makes more points search
below, which is slow; at 1 the error at the bottom would have to obey its form to all digits."""
NEXT_TERM = 1.84
"""What terms beyond c/T may add to the half of T that decides whether the error turns.

They add a constant, which is a tenth of T at the bottom. Twice as much sends more points to the
slow search below; with zero, a minimum far below might be mistaken for a fall to the limit."""
NEAR = 1e-6
"""Relative distance from the least error within which the error at the bottom counts as equal.

It exceeds all errors of nodes; points on a plateau pay for it with a search below."""
TOGETHER = 1024
"""Number of points that are searched together, as one job of a worker."""


@dataclass(frozen=True)
class Search:
    """The search at some points, which a worker can run.

    `target` names the error or observable to minimise. It is one of the `observables`, which are
    predicted at the best λ.
    """

    model: Model
    points: Points
    target: str
    bounds: tuple[float, float]
    slopes: Sequence[str] = ()
    observables: Mapping[str, Observed] = field(default_factory=dict)

    def run(self) -> Columns:
        """The `optimal_regularisation` and all that is predicted there."""
        needed = {name: f for name, f in self.observables.items() if name == self.target}
        path = Path(self.model, self.points, self.target, needed)
        nodes = _with_minima(path, self.scan(path))
        nodes = nodes.extended(self.below(path, nodes))
        if self.bounds[1] == np.inf:
            top = nodes[least_of_each(nodes.point, -nodes.t)]
            nodes = nodes.extended(replace(top, t=np.full_like(top.t, np.inf)))
        return self.best(nodes)

    def scan(self, path: Path) -> Nodes:
        """Nodes between the bounds, as far down as all points are searched."""
        high = np.log(min(self.bounds[1], HUGE))
        low = min(np.log(max(self.bounds[0], BOTTOM * path.unit)), high)
        top = np.clip(np.log(TOP * path.unit * np.maximum(1.0, self.points.alpha)), low, high)
        t = np.linspace(np.full_like(top, low), top, COARSE)
        t = np.append(t, np.linspace(top, np.full_like(top, high), ABOVE + 1)[1:], axis=0)
        place, point = np.nonzero(np.diff(t, axis=0, prepend=-np.inf) > 0.0)
        nodes = path.nodes(point, t[place, point])
        left, right = nodes.pairs()
        gaps = right.t <= top[right.point]
        left, right = left[gaps], right[gaps]
        for halving in range(HALVINGS + FURTHER):
            middle, off = path.middle(left, right)
            nodes = nodes.extended(middle)
            again = (off > RESOLVED) | (halving + 1 < HALVINGS)
            left, middle, right = left[again], middle[again], right[again]
            left, right = left.extended(middle), middle.extended(right)
            if not left.t.size:
                break
        return nodes.ordered()

    def below(self, path: Path, nodes: Nodes) -> Nodes:
        """Nodes further down and at the limit 0⁺, at points whose error may be least there."""
        low = np.log(self.bounds[0]) if self.bounds[0] > 0.0 else -np.inf
        bottom = nodes[least_of_each(nodes.point, nodes.t)]
        least = nodes.value[least_of_each(nodes.point, nodes.value)]
        fall = LAW * np.maximum(bottom.slope, 0.0) * (np.log(path.unit) - bottom.t)
        bottom = bottom[(bottom.t > low) & ~(bottom.value - fall > least + NEAR * np.abs(least))]
        zero = self.vanishing(path, bottom if low == -np.inf else bottom[:0])
        found, limit = [zero], np.full(len(self.points), np.nan)
        limit[zero.point] = zero.value
        for stage in BELOW:
            rest = bottom.value - limit[bottom.point]
            bottom = bottom[~monotone(self.model, path.unit, bottom, rest)]
            if not bottom.t.size:
                break
            t = np.append(stage + np.log(path.unit), low)[:, None]
            tried, row = np.nonzero(np.isfinite(t) & (t >= low) & (t < bottom.t))
            more = path.nodes(bottom.point[row], t[tried, 0])
            found.append(_with_minima(path, more.extended(bottom).ordered()))
            bottom = found[-1][least_of_each(found[-1].point, found[-1].t)]
        return Nodes.joined(found)

    def vanishing(self, path: Path, nodes: Nodes) -> Nodes:
        """The limits 0⁺ of points that have a node, as nodes without unknowns."""
        if not nodes.t.size:
            return nodes
        points = self.points[nodes.point].at(np.zeros_like(nodes.t))
        found = asymptotics(self.model, points, Workers(1), observables=path.observables)
        t, unknown = np.full_like(nodes.t, -np.inf), np.full_like(nodes.x, np.nan)
        return replace(nodes, t=t, value=found[self.target], x=unknown)

    def best(self, candidates: Nodes) -> Columns:
        """All that is predicted at the best candidate of each point that can be certified."""
        value = candidates.value - np.isinf(candidates.t) * TIE * np.abs(candidates.value)
        columns: Columns = {}
        waiting = np.arange(len(self.points))
        while waiting.size:
            best = least_of_each(candidates.point, value)[waiting]
            found = self.predicted(candidates[best])
            for name, values in found.items():
                everywhere = np.empty(len(self.points), values.dtype)
                columns.setdefault(name, everywhere)[waiting] = values
            failed = np.isnan(found[self.target]) & ~np.isnan(value[best])
            value[best[failed]] = np.nan
            waiting = waiting[failed]
        return columns

    def predicted(self, nodes: Nodes) -> Columns:
        """All that is predicted at some nodes."""
        lam = np.clip(np.exp(nodes.t), *self.bounds)
        columns: Columns = {"optimal_regularisation": np.where(np.isnan(nodes.value), np.nan, lam)}
        known = np.isfinite(nodes.x).all(1)
        for some in (known, ~known):
            if some.any():
                found = asymptotics(
                    self.model,
                    self.points[nodes.point[some]].at(columns["optimal_regularisation"][some]),
                    Workers(1),
                    slopes=self.slopes,
                    observables=self.observables,
                    start=nodes.x[some],
                )
                for name, values in found.items():
                    everywhere = np.empty(len(lam), values.dtype)
                    columns.setdefault(name, everywhere)[some] = values
        return columns


def _with_minima(path: Path, nodes: Nodes) -> Nodes:
    """Nodes in order, and those at all minima between them."""
    return Nodes.joined(minima(path.between, nodes.extended(_dips(path, nodes))))


def _dips(path: Path, nodes: Nodes) -> Nodes:
    """Nodes where the error on a cubic of the unknowns is lower than at both of its ends."""
    least = np.full(len(path.points), np.inf)
    np.fmin.at(least, nodes.point, nodes.value)
    left, right = nodes.pairs()
    ends = np.fmin(left.value, right.value)
    near = ends - least[left.point] <= WITHIN * np.abs(ends)
    left, right, ends = left[near], right[near], ends[near]
    t = left.t[:, None] + INSIDE * (right.t - left.t)[:, None]
    error = path.interpolated(left, right, t)
    lowest = np.argmin(np.where(np.isnan(error), np.inf, error), axis=1)[:, None]
    lower = np.take_along_axis(error, lowest, 1)[:, 0] < ends - TIE * np.abs(ends)
    return path.between(left[lower], right[lower], np.take_along_axis(t, lowest, 1)[lower, 0])


def monotone(model: Model, unit: float, bottom: Samples, fall: Array) -> Booleans:
    r"""Whether the error has no minimum between samples and its limit at 0⁺.

    From each sample to the limit the error still has to decrease by `fall`. There are three
    asymptotic forms. The error may be constant, on a plateau that extends to the limit. Its
    distance from the limit may be proportional to a power of λ, between a third and three; then the
    fall is the slope divided by that power. Or, if the weights of separable data diverge, the
    distance is :math:`c/T + c'/T^2` with :math:`T = \log(1/\lambda)`, and there is no minimum if
    and only if the fall exceeds half of the slope times T, plus the contribution of further terms.
    An error that rises towards 0⁺ either keeps rising or falls again to the limit itself.
    """
    slope = bottom.slope
    ratio = np.divide(fall, slope, out=np.zeros_like(fall), where=slope != 0)
    T = np.log(unit) - bottom.t
    diverging = fitted_phase(model)[0] is Phase.DIVERGING
    shortest, longest = (0.5 * T + NEXT_TERM, LAW * T) if diverging else (1.0 / LAW, LAW)
    falls = (slope > 0) & (ratio > shortest) & (ratio < longest)
    level = np.maximum(np.abs(fall), np.abs(slope) * T) <= TIE * bottom.value
    steady: Booleans = falls | (slope < 0) | level
    return steady


def best_regularisation(search: Search, workers: Workers) -> Columns:
    """The λ of least error within bounds at every point, and all that is predicted there.

    The values 0 and inf denote the limits; NaN means that no solution was found.
    """
    parts = chunks(np.arange(len(search.points)), TOGETHER)
    return joined(workers.run([replace(search, points=search.points[part]) for part in parts]))
