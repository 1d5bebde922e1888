"""Any rule for labels ±1, given by its probability."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import check_kinks, check_scale, sampled
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.numerics.panels import REACH, Panels, fanned, refine
from hiddenmanifold.teachers.averaging import DOWNWARDS, FINEST, SETTLED, below_cut
from hiddenmanifold.teachers.averaging import ORDER as SHARE_ORDER
from hiddenmanifold.teachers.base import BinaryTeacher, CompiledRows, Law
from hiddenmanifold.teachers.probit import LADDER, Steps
from hiddenmanifold.teachers.tables import LawTable

BLOCK = 2048
"""Panels handled together, so that their nodes stay in the cache."""
ORDER, MOST_NODES = 12, 100_000
"""Gauss–Legendre order of a panel, and how many nodes all panels of an average may have."""
AFFORDABLE = 2000
"""Nodes of an average that leave time for the finest quadrature over it."""
TABULATED = 4000
"""Nodes of an average that leave time for a table of thousands of them."""


@dataclass(frozen=True)
class Custom(BinaryTeacher):
    r"""Labels +1 with any probability :math:`P(+|\nu)`.

    Its Gaussian averages are computed numerically, on panels that are made fine enough when the
    rule is built.

    Parameters
    ----------
    probability : callable
        Vectorised :math:`P(+|\nu)`, with values in [0, 1].
    kinks : tuple of float
        Fields where the probability or its slope jumps.
    rho : float
        Second moment of the teacher's weights, positive.

    Raises
    ------
    InvalidArgumentError
        If values leave [0, 1] or are constant, or the averages do not settle to 1e-12.
    """

    probability: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()
    rho: float = 1.0
    halvings: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        object.__setattr__(self, "kinks", check_kinks(self.kinks))
        p = sampled("probability", self.probability, self._grid)
        if p.min() < 0.0 or p.max() > 1.0:
            raise InvalidArgumentError.because(
                "probability", f"ranges from {p.min()} to {p.max()}", "it must stay within [0, 1]"
            )
        if p.min() == p.max():
            raise InvalidArgumentError.because(
                "probability",
                f"is constant, {p[0]:g}",
                "it must depend on the field, or labels carry no information",
            )
        self._settle()

    def _settle(self) -> None:
        """Halve the panels until the averages settle, at any mean and variance of the field."""
        x = np.sqrt(self.rho) * np.linspace(-6.0, 6.0, 25)[:, None]
        V0 = self.rho * np.array([1.0, 0.3, 0.01])

        def averages(_: Integers, halvings: int) -> tuple[Array, float]:
            object.__setattr__(self, "halvings", halvings)
            if self._nodes > MOST_NODES:
                return np.full((1, 3, 25, 3), np.nan), 0.0
            Z, Z1, Z2 = self.label_law(1, x, V0)
            return np.array([[Z, Z1 * np.sqrt(V0), Z2 * V0]]), 1e-12

        if np.isnan(refine(averages, (1, 3, 25, 3), range(1, 11))).any():
            raise InvalidArgumentError.because(
                "probability",
                f"has Gaussian averages that did not settle to 1e-12 with {MOST_NODES} nodes",
                "it must be smooth between its kinks, with few changes of the more probable "
                "label; declare jumps and corners in Custom(probability, kinks=(...))",
            )

    @property
    def _nodes(self) -> int:
        """Number of fields at which the rule is evaluated for each value of the label law."""
        return (len(self._cuts) + 1) * ORDER << self.halvings

    @property
    def skipped_levels(self) -> int:  # type: ignore[override]
        return (self._nodes // AFFORDABLE).bit_length()

    @property
    def _grid(self) -> Array:
        half = np.sqrt(self.rho) * np.linspace(0.0, 9.0, 2001)
        return np.concatenate([-half[:0:-1], half])

    @cached_property
    def symmetric(self) -> bool:
        p = self.probability(self._grid)
        mirrored = all(-kink in self.kinks for kink in self.kinks)
        # the value of the rule exactly at a jump does not matter
        at = ~np.isin(self._grid, [0.0, *self.kinks])
        return bool(np.abs(p + p[::-1] - 1.0)[at].max() < 1e-14) and mirrored

    @cached_property
    def clean(self) -> Steps:
        from scipy import optimize

        def excess(field: float) -> float:
            return float(self.probability(np.array([field]))[0]) - 0.5

        grid = self._grid
        above = self.probability(grid) > 0.5
        changes = np.flatnonzero(above[1:] != above[:-1])
        roots: list[float] = []
        for i in changes:
            root = optimize.bisect(excess, grid[i], grid[i + 1], xtol=1e-15)
            if roots and root == roots[-1]:  # 1/2 is touched, not crossed
                roots.pop()
            else:
                roots.append(root)
        return Steps(tuple(roots), 1 if above[0] else -1, self.rho)

    @cached_property
    def _cuts(self) -> Array:
        """Fields that cut the averages: kinks, and a ladder around each steep change of label.

        It ends halfway to the next change, which has its own ladder.
        """
        ladder = np.array([-64.0, -16.0, -4.0, 0.0, 4.0, 16.0, 64.0])
        cuts, gaps = list(self.kinks), np.diff([-np.inf, *self.clean.changes, np.inf])
        for change, gap in zip(self.clean.changes, np.minimum(gaps[1:], gaps[:-1]), strict=True):
            step = 1e-6 * np.sqrt(self.rho)
            p = self.probability(change + step * np.array([-2.0, -1.0, 1.0, 2.0]))
            declared = any(abs(kink - change) < step for kink in self.kinks)  # steep beside it?
            rise = 2.0 * max(abs(p[1] - p[0]), abs(p[3] - p[2])) if declared else abs(p[2] - p[1])
            width = 0.5 * step / max(rise, 1e-300)
            if width < 0.2 * np.sqrt(self.rho):
                cuts.extend(change + width * ladder[np.abs(width * ladder) < 0.5 * gap])
        return np.array(cuts)

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        shape = np.broadcast_shapes(np.shape(x), np.shape(V0))
        x, V0 = (np.broadcast_to(a, shape).reshape(-1, 1) for a in (x, V0))
        rows = max(1, BLOCK // (2**self.halvings * (len(self._cuts) + 1)))
        parts = [self._law(y, x[i : i + rows], V0[i : i + rows]) for i in range(0, len(x), rows)]
        Z, Z1, Z2 = np.concatenate([np.empty((3, 0)), *parts], axis=1).reshape(3, *shape)
        return Z, Z1, Z2

    @cached_property
    def _tables(self) -> dict[int, LawTable]:
        """The law of each label."""
        shares = zip((1, -1), self.label_marginals, strict=False)
        return {y: LawTable(partial(self.label_law, y), self.rho, share) for y, share in shares}

    def compiled(self, y: int, V0: Array) -> Iterable[CompiledRows]:
        return self._tables[y].at(V0) if self._nodes <= TABULATED else []

    def _law(self, y: int, x: Array, V0: Array) -> Array:
        """The law and its derivatives, (3, rows), at columns x and V0."""
        deviation = np.sqrt(V0)
        edges = fanned((-REACH, REACH), (y * self._cuts - x) / deviation)
        panels = Panels.between(edges, (ORDER, self.halvings))
        row, z = panels.row, panels.nodes
        p = self.probability((y * x)[row] + (y * deviation)[row] * z)
        p = p if y > 0 else 1.0 - p
        Z, Z1, Z2 = (panels.sum(term) for term in (p, p * z, p * (z * z - 1.0)))
        return np.array([Z, Z1 / deviation[:, 0], Z2 / V0[:, 0]])

    def below(self, y: int, cut: Array, slope: Array, V0: Array) -> Array:
        # over the field, given which the prediction is normal too: no average is needed at a node
        unit, (low, high) = np.sqrt(self.rho), below_cut(cut)
        cut = high[:, 0]
        with np.errstate(all="ignore"):  # what is not finite cuts nothing
            step, peak = unit * cut / slope, slope * cut / unit
            marks = [
                np.broadcast_to(y * self._cuts / unit, (len(slope), len(self._cuts))),
                step[:, None] + (np.sqrt(V0) / slope)[:, None] * LADDER[2:-2],
                peak[:, None] + (np.sqrt(V0) / unit)[:, None] * LADDER[2:-2],
            ]
        edges = np.maximum(fanned(DOWNWARDS, np.concatenate(marks, axis=1)), low)

        def share(some: Integers, halvings: int) -> tuple[Array, Array]:
            panels = Panels.between(edges[some], (SHARE_ORDER, halvings))
            at, p = some[panels.row, None], self.probability(y * unit * panels.nodes)
            under = scipy.special.ndtr(
                (unit * cut[at] - slope[at] * panels.nodes) / np.sqrt(V0[at])
            )
            total = panels.sum((p if y > 0 else 1.0 - p) * under)
            return total, SETTLED * total

        return refine(share, slope.shape, range(FINEST + 1 - self.skipped_levels))

    @cached_property
    def label_marginals(self) -> tuple[float, float, float]:
        plus, minus, slope = super().label_marginals
        even = abs(slope) * np.sqrt(self.rho) <= 1e-14 * plus  # what is left of it is rounding
        return plus, minus, 0.0 if even else slope

    def landmarks(self, y: int, V0: Array) -> Array:
        width = np.sqrt(V0)[:, None]
        centres = sorted({*self.kinks, *self.clean.changes})
        marks = [y * c + width * LADDER[2:-2] for c in centres]
        return np.concatenate([np.empty((len(V0), 0)), *marks], axis=1)
