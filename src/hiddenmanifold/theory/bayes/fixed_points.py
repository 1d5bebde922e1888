r"""The least error that any predictor can reach, however it learns from the training set.

The posterior mean reaches it; ``docs/theory.md`` has the equations for q, V0 and :math:`u =
\rho\,\frac nd\,E`. The unknown is :math:`\ell = \log(q/V_0)`, in which neither q → 0 nor V0 → 0
loses relative precision. E is the Fisher information of a label about :math:`\omega`; that of the
field itself would be :math:`1/V_0`. In terms of the share :math:`\eta = E V_0 \le 1` nothing
cancels when the teacher is almost learned: the residual is :math:`\log\frac nd + \log(1 +
e^{-\ell}) + \log\eta(\ell) + w(u)` with :math:`w = \log(q/V_0) - \log u \le 0`.

E grows with q and q with u, so that fixed points are crossings of a growing curve with the
diagonal. There is one if :math:`d\log E/d\ell < 1` throughout; else there may be several, and a
scan finds them. The Bayes-optimal one has the largest free entropy (Barbier et al., PNAS 116,
2019),

.. math:: \varphi = \tfrac12\Big\langle\frac{uG}{1+uG} - \log(1+uG)\Big\rangle_d
    + \frac nd \sum_y E_\omega Z_y\log Z_y, \qquad
    \frac{d\varphi}{du} = \frac1{2\rho}\frac{dq}{du}\Big(\rho\,\frac nd\,E - u\Big).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import special

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers, chunks, joined
from hiddenmanifold.errors import Status
from hiddenmanifold.features.posterior import Posterior
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.roots import increasing_root
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.bayes.label_information import (
    STEP,
    TABLE_LEVEL,
    LabelInformation,
    Table,
    information_of,
)
from hiddenmanifold.theory.solver.certificate import Certificate, polish
from hiddenmanifold.theory.solver.settings import STANDARD, Tolerances

LOWEST = -24.0
"""Lowest node; the only fixed point below it is the one that a turn from q = 0 leads to."""
HIGHEST = 340.0
"""Highest node, at which the square of 1/V0 does not overflow yet."""
SMALLEST = -600.0
"""Lowest log u: below, q = 0."""
TIGHTENING = 5
"""Number of turns that tighten the upper end of the table."""
NEAR = 1e-6
"""Distance from a fixed point of the interpolated table at which the quadrature takes over."""
UNIQUE = 0.99
"""Largest slope d log E/dℓ at which there can be no second fixed point."""
ROUNDING = 1e-15
"""Accuracy of a residual, in units of the terms that make it up."""
BATCH = 2048
"""Points to solve together; this bounds the memory."""


@dataclass(frozen=True)
class Turn:
    """Residual T(ℓ) - ℓ, its derivative in [-1, 0) at a stable point, log u, and rounding."""

    residual: Array
    derivative: Array
    log_u: Array
    rounding: Array


@dataclass(frozen=True)
class Equations:
    """The fixed-point equation of a batch of points."""

    labels: LabelInformation
    posterior: Posterior
    log_ratio: Array
    tolerances: Tolerances = STANDARD

    def __getitem__(self, index: Integers) -> Equations:
        return replace(self, posterior=self.posterior[index], log_ratio=self.log_ratio[index])

    def turn(self, ell: Array, share: Array, slope: Array) -> Turn:
        """One turn around the equations, given log η and its slope at ℓ."""
        log_u = self.log_ratio + np.logaddexp(0.0, ell) + share
        w, dw = self.posterior.log_odds_gap(log_u)
        terms = np.array([self.log_ratio, np.logaddexp(0.0, -ell), share, w])
        derivative = slope - special.expit(-ell) + dw * (special.expit(ell) + slope)
        return Turn(terms.sum(0), derivative, log_u, ROUNDING * np.abs(terms).sum(0))

    @np.errstate(divide="ignore")
    def first(self) -> Array:
        """The ℓ after one turn from q = 0, below which there is no fixed point."""
        log_u = self.log_ratio + np.log(self.labels.rho * self.labels.prior_information)
        known = log_u > SMALLEST
        start: Array = np.full_like(log_u, -np.inf)
        start[known] = (
            log_u[known] + self.posterior[np.flatnonzero(known)].log_odds_gap(log_u[known])[0]
        )
        return start

    @np.errstate(all="ignore")
    def last(self) -> float:
        """A bound that no fixed point of the batch exceeds: a turn from above stays above."""
        bound = np.log(self.posterior.shown / self.posterior.hidden)
        highest = float(np.fmin(bound, self.labels.highest(self.log_ratio)).max())
        highest = min(highest, HIGHEST)
        for _ in range(TIGHTENING):
            known = self.labels.information(np.array([highest]), TABLE_LEVEL)
            here = (highest, known.log_share[0], known.slope[0])
            turn = self.turn(*(np.full_like(bound, value) for value in here))
            highest += min(0.0, float(turn.residual.max()))
        return highest

    def free_entropy(self, log_u: Array) -> Array:
        r"""The free entropy per latent dimension along q(u); fixed points are stationary."""
        negentropy = self.labels.negentropy(log_u + self.posterior.log_odds_gap(log_u)[0])
        total: Array = self.posterior.free_entropy(log_u) + np.exp(self.log_ratio) * negentropy
        return total


@dataclass
class Fixed(Certificate):
    """Fixed points of a batch: ``owner`` is the point that each of them belongs to."""

    owner: Integers
    ell: Array
    log_u: Array

    @classmethod
    def from_start(cls, owner: Integers, ell: Array) -> Fixed:
        """Starting points of the search; one at q = 0 is already the solution."""
        trivial = ell == -np.inf
        return cls(
            owner=owner,
            ell=ell,
            log_u=np.full(len(ell), -np.inf),
            status=np.where(trivial, Status.CONVERGED, Status.NON_FINITE),
            residual=np.where(trivial, 0.0, np.inf),
            quadrature_error=np.where(trivial, 0.0, np.inf),
            conditioning_error=np.where(trivial, 0.0, np.inf),
            iterations=np.ones(len(ell), dtype=np.intp),
        )


@dataclass(frozen=True)
class Batch:
    """Points to solve together: one job of a worker, independent of all others."""

    equations: Equations
    table: Table

    def run(self) -> Columns:
        """Errors, overlap and certificates at each point."""
        with np.errstate(all="ignore"):  # what is not finite is found in the residual
            return _columns(self.equations.labels, _best(self.equations, self.table))


def bayes_optimal(
    model: Model,
    alpha: Array,
    gamma: Array,
    workers: Workers | None = None,
    tolerances: Tolerances = STANDARD,
) -> Columns:
    """Errors of the Bayes-optimal predictor, its overlap and certificates, at each n/p and d/p."""
    labels, features = information_of(model.teacher), model.features
    points = len(alpha)
    with np.errstate(all="ignore"):  # what is not finite is found in the residual
        if features.blind:
            nothing = Fixed.from_start(np.arange(points), np.full(points, -np.inf))
            return _columns(labels, nothing)
        parts = chunks(np.arange(points), BATCH)
        seen = [(features.posterior(gamma[part]), alpha[part]) for part in parts]
        batches = [Equations(labels, s, np.log(a / s.directions), tolerances) for s, a in seen]
        table = tabulated(batches)
    return joined((workers or Workers()).run([Batch(batch, table) for batch in batches]))


def tabulated(batches: Sequence[Equations]) -> Table:
    """Table of the labels' information over the range in which fixed points may lie."""
    first = min(float(batch.first().min()) for batch in batches)
    last = max(batch.last() for batch in batches)
    low = np.floor((first if first > LOWEST else LOWEST) / STEP)
    ell = STEP * np.arange(low, max(np.ceil(last / STEP), low + 1) + 1)
    return Table.of(batches[0].labels, ell)


def fixed_points(equations: Equations, table: Table) -> Fixed:
    """All stable fixed points, except pairs that are closer than a step of the table."""
    points = len(equations.log_ratio)
    unique = equations.labels.unique or table.growth < UNIQUE
    nodes = np.array([0, len(table.ell) - 1]) if unique else np.arange(len(table.ell))
    columns = (table.ell, table.log_share, table.slope)
    turns = (equations.turn(*(np.full(points, column[i]) for column in columns)) for i in nodes)
    residual = np.stack([turn.residual for turn in turns])
    node, owner = np.nonzero((residual[:-1] > 0) & (residual[1:] <= 0))

    def fall(ell: Array, which: Integers) -> tuple[Array, Array]:
        """The fall of the residual in units of its slope: the distance that is left."""
        turn = equations[owner[which]].turn(ell, *table(ell))
        return -turn.residual / np.abs(turn.derivative), -np.sign(turn.derivative)

    bracket = table.ell[nodes[node]], table.ell[nodes[node + 1]]
    ell = increasing_root(fall, bracket, NEAR)
    below, above = np.flatnonzero(residual[0] <= 0), np.flatnonzero(residual[-1] > 0)
    lost = np.flatnonzero(np.isnan(residual).any(0))
    starts = [ell, equations.first()[below], np.full(len(above), table.ell[-1])]
    owner = np.concatenate([owner, below, above, lost])
    start = np.concatenate([*starts, np.full(len(lost), np.nan)])
    return _polished(equations, Fixed.from_start(owner, start))


def _polished(equations: Equations, found: Fixed) -> Fixed:
    """Newton steps on ever finer quadrature, until a finer one no longer moves the solution."""
    tolerances = equations.tolerances

    def turn(index: Integers, level: int) -> tuple[Array, Array, Booleans]:
        x = found.ell[index]
        known = equations.labels.information(x, level)
        at = equations[found.owner[index]].turn(x, known.log_share, known.slope)
        r, step = np.abs(at.residual), -at.residual / at.derivative
        # a tiny overlap counts by its effect on the errors
        weight = np.sqrt(special.expit(x))
        error = np.maximum(np.abs(step), r) * weight
        error = np.where(np.isfinite(error), error, np.inf)
        rounding = at.rounding * weight / np.abs(at.derivative)
        found.conditioning_error[index], noise = rounding, np.maximum(known.error, rounding)
        found.ell[index] += np.where(np.isfinite(step), np.clip(step, -1.0, 1.0), 0.0)
        found.residual[index], found.log_u[index] = r, at.log_u
        status = np.where(r <= tolerances.residual, Status.QUADRATURE, Status.MAX_ITERATIONS)
        found.status[index] = np.where(np.isfinite(error), status, Status.NON_FINITE)
        return error, known.error, error <= np.maximum(tolerances.target, noise)

    polish(found, np.flatnonzero(np.isfinite(found.ell)), turn, tolerances)
    ill = (found.status == Status.CONVERGED) & ~(
        found.conditioning_error <= tolerances.conditioning
    )
    found.status[ill] = Status.ILL_CONDITIONED
    return found


def _best(equations: Equations, table: Table) -> Fixed:
    """The fixed point of largest free entropy of each point."""
    found = fixed_points(equations, table)
    owner, points = found.owner, len(equations.log_ratio)
    rank = np.zeros(len(owner))
    several = np.flatnonzero(np.bincount(owner, minlength=points)[owner] > 1)
    if several.size:
        log_u = np.maximum(found.log_u[several], SMALLEST)
        rank[several] = equations[owner[several]].free_entropy(log_u)
        found.status[several[~np.isfinite(rank[several])]] = Status.NON_FINITE
        # a fixed point that did not converge might have been the best: then the whole point fails
        rank[several[found.status[several] != Status.CONVERGED]] = np.inf
    order = np.lexsort((rank, owner))
    best = order[np.searchsorted(owner[order], np.arange(points), side="right") - 1]
    chosen = Fixed(*(getattr(found, column.name)[best] for column in fields(found)))
    chosen.iterations = np.bincount(owner, found.iterations, points).astype(np.intp)
    return chosen


def _columns(labels: LabelInformation, found: Fixed) -> Columns:
    """Named results; a point that did not converge is NaN throughout."""
    values, good = np.full((3, len(found.ell)), np.nan), found.status == Status.CONVERGED
    ell = found.ell[good]
    values[:, good] = *labels.errors(ell), labels.moments(ell)[0]
    lost = np.isnan(values).any(0)
    values[:, lost], found.status[good & lost] = np.nan, Status.QUADRATURE
    noisy, clean, overlap = values
    return {
        "generalisation_error": noisy,
        "clean_error": clean,
        "overlap": overlap,
        **found.columns,
    }
