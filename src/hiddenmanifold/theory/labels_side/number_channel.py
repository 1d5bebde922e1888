r"""Labels that are any numbers: what all losses of them share, and losses of the residual.

The quadrature over the field (`teachers.RealTeacher.field`) becomes finer with the level, as that
along the proximal curve does, so that the certificate of a solution sees both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.compiled import E0, E1, E2, E3
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import RealTeacher
from hiddenmanifold.theory.labels_side.averages import ChannelAverages
from hiddenmanifold.theory.labels_side.channel import FieldChannel
from hiddenmanifold.theory.labels_side.linear_labels import row_averages

ROWS = 60_000
"""Rows that are averaged together, which bounds the memory."""
MOST_ROWS = 400_000
"""Rows of one point beyond which it is given up: an average of them takes a second."""
USUAL_ROWS = 500
"""Rows of one point that take as long as usual; more shorten the search for a hard solution."""
SMALL = 0.05
"""Share of the components of labels that may be narrower than panels of the field resolve at first;
the next levels do."""
FINE = 5
"""Level on which a point must still be affordable for its panels to be halved."""
ROUNDING = 5e-16
"""Relative correlation of h and the field that counts as none: the rounding of a sum whose terms
cancel, as they do for even functions of the field."""
LIGHTEST = 1e-20
"""Rows of less weight, in units of the mean square of a label, are left out."""
MOST_HALVINGS = 5
"""How often panels of the field are halved for the sake of one point, at most."""
STEEP = 4.0
"""Deviations of a residual by which its mean may move over a panel of the field.

Half or twice as much moves the level on which points settle by one."""
PLATEAU = 14
"""Fields of equal labels, as many as a panel has, that are a plateau of the rule."""
HERMITE = np.array([1 / 6, 2 / 3, 1 / 6])
"""Weights of the three points, at 0 and ±√3 deviations, that stand for a normal law."""


@dataclass(frozen=True)
class Direction:
    """How mean and variance of a score given the field move with an unknown.

    The mean is b + r ν, with arrays (points,) of the changes of b, r and of the variance.
    """

    b: Array
    r: Array
    variance: Array


@dataclass(frozen=True)
class NumberChannel(FieldChannel):
    """Labels that are numbers, of any law given the field."""

    teacher: RealTeacher

    @property
    def has_branches(self) -> bool:
        return False

    @property
    def has_compiled_law(self) -> bool:
        return False

    @property
    def centred(self) -> bool:
        return self.teacher.symmetric and self.loss.even

    @property
    def label_moments(self) -> tuple[float, float, float, float]:
        m = self.teacher.moments
        return m.mean, m.second, m.second - m.mean**2, m.slope

    @property
    def label_noise(self) -> float:
        return self.teacher.moments.second - self.teacher.moments.explained

    @cached_property
    def marginal(self) -> tuple[Array, Array]:
        """Labels and their probabilities, exact if labels are discrete, else by few points."""
        nu, w = self.teacher.field(2)
        mixture = self.teacher.components(nu, 2)
        p = mixture.weights * w
        if self.teacher.discrete:
            return mixture.means[:, 0], p.sum(1)
        if not mixture.variances.any():
            return mixture.means.ravel(), p.ravel()
        away = np.sqrt(3.0 * mixture.variances)
        y = np.stack([mixture.means - away, mixture.means, mixture.means + away])
        return y.ravel(), np.multiply.outer(HERMITE, p).ravel()

    @cached_property
    def atoms(self) -> Array:
        """Labels of positive probability: all discrete ones, and plateaus without noise."""
        y, _ = self.marginal
        if self.teacher.discrete:
            return y
        values, count = np.unique(y, return_counts=True)
        return values[count >= PLATEAU]

    @cached_property
    def unit(self) -> float:
        """Typical size of a score: for losses of the residual, the spread of most labels."""
        if not isinstance(self.loss, Loss):
            return 1.0
        y, p = self.marginal
        order = np.argsort(y)
        below = np.cumsum(p[order])
        low, high = (y[order][np.searchsorted(below, q * below[-1])] for q in (0.16, 0.84))
        m = self.teacher.moments
        return float(max(0.5 * (high - low), np.sqrt(m.explained) * 1e-2, 1e-10))

    def slope_of(self, y: Array, b: float, side: int) -> Array:
        """Slope of the loss of labels in a constant prediction, on one side of it."""
        return -np.asarray(self.loss.derivative(np.nextafter(y - b, -side * np.inf)))

    @cached_property
    def _constant(self) -> tuple[float, bool]:
        """The best constant prediction, and whether a corner of the loss holds it at a label."""
        from scipy import optimize  # slow to import, and few models need it

        y, p = self.marginal

        def slope(b: float, side: int = 1) -> float:
            with np.errstate(over="ignore"):
                return float(p @ self.slope_of(y, b, side))

        if self.loss.has_jumps:
            for b in np.subtract.outer(self.atoms, self.loss.kinks).ravel().tolist():
                if slope(b, -1) <= 0.0 <= slope(b, 1):
                    return b, True
        centre = float(p @ np.clip(y, -1e6 * self.unit, 1e6 * self.unit))
        centre, span = (centre if isinstance(self.loss, Loss) else 0.0), self.unit
        while not slope(centre - span) <= 0.0 <= slope(centre + span):
            span *= 2.0
            if span > 1e9 * self.unit:
                raise InvalidArgumentError.because(
                    "intercept",
                    "cannot be fitted",
                    f"no constant minimises the mean of {self.loss} over the labels",
                )
        return optimize.brentq(slope, centre - span, centre + span, xtol=1e-12 * self.unit), False

    @property
    def best_constant(self) -> float:
        return self._constant[0]

    def intercept_unit(self, x: Array) -> Array:
        if self._constant[1]:
            return super().intercept_unit(x)
        return np.full(len(x), self.unit)

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 1] = 2.0 * np.log(self.unit)
        x[:, 2] = 0.5 * np.sign(self.teacher.moments.slope)
        return x

    def directions(self, x: Array) -> list[Direction]:
        """How scores given the field move with each unknown after log V."""
        Q, root, t = np.exp(x[:, 1]), np.sqrt(np.exp(x[:, 1]) / self.teacher.rho), np.tanh(x[:, 2])
        inverse, zero = np.cosh(x[:, 2]) ** -2.0, np.zeros(len(x))
        moving = bool(self.free_intercept and self._constant[1])
        shift = 0.5 * self.intercept_unit(x) * x[:, -1] if moving else zero
        found = [
            Direction(shift, 0.5 * root * t, Q * inverse),
            Direction(zero, root * inverse, -2.0 * Q * t * inverse),
        ]
        if self.free_intercept:
            found.append(Direction(self.intercept_unit(x), zero, zero))
        return found

    def in_groups(self, x: Array, extra: Integers, level: int, with_loss: bool) -> ChannelAverages:
        """Averages of points that need differently fine panels of the field."""
        shapes = (4,), (4, self.unknowns), (), ()
        found = ChannelAverages(*(np.full((len(x), *shape), np.nan) for shape in shapes))
        for halvings in np.unique(extra).tolist():
            some = np.flatnonzero(extra == halvings)
            if not self.affordable(level, halvings):
                continue
            for part in np.array_split(some, -(-len(some) // self.together(level, halvings))):
                found.put(part, self.part_averages(x[part], level, halvings, with_loss))
        if not self.teacher.has_mean:
            found.data_loss[:] = np.inf
        return found

    def correlation(self, found: Array, e: Array) -> Array:
        """E[νh]/ρ, exactly zero where it is rounding."""
        typical = np.sqrt(e[:, E2] / self.teacher.rho)
        return np.where(np.abs(found) <= ROUNDING * typical, 0.0, found)

    def affordable(self, level: int, extra: int) -> bool:
        """Whether averages on a level can be computed; if not, they are NaN."""
        return True

    def together(self, level: int, extra: int) -> int:
        """Points whose averages are computed at once."""
        raise NotImplementedError

    def part_averages(self, x: Array, level: int, extra: int, with_loss: bool) -> ChannelAverages:
        """Averages at points with equally fine panels of the field."""
        raise NotImplementedError


@dataclass(frozen=True)
class RowsChannel(NumberChannel):
    """Labels that are numbers and a loss of the residual, as rows of normal residuals."""

    loss: Loss

    @property
    def batch(self) -> int:
        if self.closed_form:
            return super().batch
        return max(1, min(64, 4 * self.together(1, 0)))

    @property
    def skipped_levels(self) -> int:
        return 2

    @property
    def cost(self) -> int:
        rows = ROWS // self.together(2, 0)
        return int(np.clip(rows // USUAL_ROWS, 2, 40))

    def rows(self, level: int, extra: int) -> tuple[Array, Array, Array, Array]:
        """Fields, weights, means and variances of the components of labels: arrays (rows,)."""
        nu, w = self.teacher.field(level, extra)
        mixture = self.teacher.components(nu, level)
        weights = mixture.weights * w
        m = self.teacher.moments
        size = m.second if np.isfinite(m.second) else m.explained
        kept = weights * (1.0 + (mixture.means**2 + mixture.variances) / size) > LIGHTEST
        fields = np.broadcast_to(nu, kept.shape)
        return fields[kept], weights[kept], mixture.means[kept], mixture.variances[kept]

    def affordable(self, level: int, extra: int) -> bool:
        if self._usual_rows(level) * 2**extra > 5 * MOST_ROWS:
            return False
        self.together(level, extra)
        return len(self._rows[level, extra][0]) <= MOST_ROWS

    def _usual_rows(self, level: int) -> int:
        """Number of rows of a point on a level, without those that it asks for itself."""
        fields, _ = self.teacher.field(level)
        return len(fields) * len(self.teacher.components(np.zeros(1), level).weights)

    @cached_property
    def _most_halvings(self) -> int:
        """How often panels of the field may be halved; the same on all levels, which judge it."""
        spare = max(1.0, MOST_ROWS / self._usual_rows(FINE))
        return min(MOST_HALVINGS, int(np.log2(spare)))

    @cached_property
    def _rows(self) -> dict[tuple[int, int], tuple[Array, Array, Array, Array]]:
        return {}

    def together(self, level: int, extra: int) -> int:
        if (level, extra) not in self._rows:
            self._rows[level, extra] = self.rows(level, extra)
        return max(1, ROWS // len(self._rows[level, extra][0]))

    @cached_property
    def _steepest(self) -> tuple[float, float]:
        """Steepest slope of a label's mean in the central field, and a small variance there."""
        nu, _ = self.teacher.field(2)
        some = nu[np.abs(nu) <= 2.0 * np.sqrt(self.teacher.rho)]
        mixture = self.teacher.components(some, 2)
        slopes = np.abs(np.diff(mixture.means) / np.diff(some))
        order = np.argsort(mixture.variances, axis=None)
        below = np.cumsum(mixture.weights.ravel()[order]) / mixture.weights.sum()
        small = mixture.variances.ravel()[order][np.searchsorted(below, SMALL)]
        return float(np.quantile(slopes, 0.98)), float(small)

    def averages_of_one(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        if self.closed_form:
            return super().averages_of_one(x, level, with_loss)
        return self.in_groups(x, self.halvings(x), level, with_loss)

    def halvings(self, x: Array) -> Integers:
        """How often panels of the field are halved at each point, where residuals are steep."""
        slope, variance = self._steepest
        _, V0 = self.teacher_field(x)
        deviation = np.sqrt(np.exp(x[:, 1]) * V0 / self.teacher.rho + variance)
        steepness = (slope + np.exp(0.5 * x[:, 1])) * np.sqrt(self.teacher.rho) / deviation
        with np.errstate(invalid="ignore"):
            extra = np.ceil(np.log2(np.maximum(steepness / STEEP, 1.0)))
        halvings: Integers = np.clip(np.nan_to_num(extra), 0, self._most_halvings).astype(np.intp)
        return halvings

    def part_averages(self, x: Array, level: int, extra: int, with_loss: bool) -> ChannelAverages:
        nu, weights, means, variances = self._rows[level, extra]
        rho, Q = self.teacher.rho, np.exp(x[:, 1])
        r, b = np.sqrt(Q / rho) * np.tanh(x[:, 2]), self.intercept(x)
        _, V0 = self.teacher_field(x)
        rows = row_averages(
            self.loss,
            np.exp(x[:, 0]),
            means - b[:, None] - r[:, None] * nu,
            (Q * V0 / rho)[:, None] + variances,
            level,
            with_loss=with_loss,
        )
        plain, along = weights, weights * nu / rho
        changes = [(rows.by_log_V, np.zeros(len(x)))]
        for d in self.directions(x):
            moved = -(d.b[:, None] + d.r[:, None] * nu)
            by = rows.by_mean * moved + rows.by_variance * d.variance[:, None]
            changes.append((by, d.r))
        e, de = np.empty((len(x), 4)), np.empty((len(x), 4, self.unknowns))

        e[:, [E1, E2, E0]] = (rows.value @ plain).T
        e[:, E3] = self.correlation(rows.value[2] @ along, e) + r * e[:, E1]
        for k, (by, dr) in enumerate(changes):
            de[:, [E1, E2, E0], k] = (by @ plain).T
            de[:, E3, k] = by[2] @ along + r * de[:, E1, k] + dr * e[:, E1]
        return ChannelAverages(e, de, rows.data_loss @ plain, rows.norm @ plain)
