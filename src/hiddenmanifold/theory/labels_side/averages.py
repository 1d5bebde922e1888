r"""Gaussian averages along the proximal curve of one branch, compiled or on arrays of nodes.

Each is an average over the standardised field :math:`\xi` with the weight :math:`Z` of the label,
or with one of its derivatives :math:`Z', Z''`, of `h` and :math:`g = \partial_u h`, and powers of
:math:`\xi`. Those of the square loss need no integral.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.compiled import AVERAGES, UNKNOWNS
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import REACH, stacked_rule, sum_by_row
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import LabelLaw
from hiddenmanifold.theory.labels_side.proximal_curve import (
    COMPILED_SETTINGS,
    RULES,
    Field,
    proximal_curve,
)

POWERS = np.array([1.0, 2.0, 1.0, 1.0])
"""With which power of the weight e1, e2, e3 and e0 are multiplied."""
BLOCK = 512
"""Points whose nodes are handled together, so that the arrays of nodes stay in the cache."""


@dataclass(frozen=True)
class ChannelAverages:
    """Averages over labels and fields at a batch of points.

    Attributes
    ----------
    e : array (points, 4)
        :math:`e_1, e_2, e_3, e_0`.
    de : array (points, 4, unknowns)
        Their derivatives with respect to the unknowns.
    data_loss : array (points,)
        Mean loss of the training samples, without the penalty; NaN unless requested.
    norm : array (points,)
        Sum of the probabilities of all labels and fields, on the same nodes: 1 if nothing is lost.
    """

    e: Array
    de: Array
    data_loss: Array
    norm: Array

    @classmethod
    def unknown(cls, points: int) -> ChannelAverages:
        """Averages that have not been computed yet: NaN."""
        shapes = (len(AVERAGES),), (len(AVERAGES), len(UNKNOWNS)), (), ()
        return cls(*(np.full((points, *shape), np.nan) for shape in shapes))

    def put(self, rows: Integers | slice, found: ChannelAverages) -> None:
        """Write the averages of some rows, in place."""
        for mine, theirs in zip(vars(self).values(), vars(found).values(), strict=True):
            mine[rows] = theirs

    def weighted(self, weight: float) -> ChannelAverages:
        """Averages of samples of a weight, if these are the ones at its width of the proximal map.

        A sample of weight a has a times the loss, so that its proximal map has the width aV, and
        its h is a times that of a sample of weight one.
        """
        if weight == 1.0:
            return self
        power = weight**POWERS
        return ChannelAverages(
            power * self.e, power[:, None] * self.de, weight * self.data_loss, self.norm
        )

    def add(self, others: Sequence[ChannelAverages]) -> ChannelAverages:
        """Add further averages, in place."""
        for other in others:
            for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
                np.add(mine, theirs, out=mine)
        return self


@dataclass(frozen=True)
class Branch:
    r"""One label of a channel at a batch of rows, and the convex function that it is fitted by.

    Parameters
    ----------
    y : int
        The label.
    share : float
        Factor by which its averages are multiplied.
    law : LabelLaw
        The weight :math:`Z` of the label along the field.
    field : Field
        Law of the shortfall, and of the field along which the label law runs.
    margin : array (rows,)
        The shortfall of a prediction that is the intercept alone.
    slope, displacement : arrays (rows,)
        The teacher's field along the label is normal around slope (ξ + displacement), of variance
        V0.
    weight : float
        The weight of its samples: V of the field is this times that of the channel.
    """

    y: int
    share: float
    law: LabelLaw
    field: Field
    margin: Array
    slope: Array
    displacement: Array
    weight: float = 1.0

    def __getitem__(self, rows: Integers) -> Branch:
        return replace(
            self,
            field=self.field[rows],
            margin=self.margin[rows],
            slope=self.slope[rows],
            displacement=self.displacement[rows],
        )

    @property
    def breaks(self) -> Array:
        """Cuts, in deviations of the shortfall, where the law bends more than the Gaussian."""
        marks = self.law.landmarks(self.y, self.field.V0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cuts = -marks / self.field.slope[:, None]
        sharp = np.ptp(cuts, axis=1, keepdims=True) < REACH * 2 if cuts.size else True
        cuts = np.where(sharp & np.isfinite(cuts), cuts, REACH)
        return cuts[:, (np.abs(cuts) < REACH).any(0)]

    def averages(self, loss: Loss, level: int, with_loss: bool) -> ChannelAverages:
        """Averages of the branch, times its share, on a level of quadrature.

        Columns are in the orders of `compiled`; the derivative by the tilt lacks its factor
        V0/sqrt(rho).
        """
        found = None
        if compiled.engine() == "compiled":
            found = self._compiled(loss, level, with_loss)
        if found is None:
            found = ChannelAverages.unknown(len(self.field.V))
        lost = np.flatnonzero(np.isnan(found.e[:, compiled.E1]))
        if lost.size:  # the loss or the law is no polynomial there
            lost = lost[self.field[lost].finite]
            for first in range(0, len(lost), BLOCK):
                rows = lost[first : first + BLOCK]
                found.put(rows, on_nodes(loss, self[rows], level, with_loss))
        return found.weighted(self.weight)

    def _compiled(self, loss: Loss, level: int, with_loss: bool) -> ChannelAverages | None:
        """The averages by compiled code, NaN where it has none; None if it has none anywhere."""
        field, y = self.field, self.y
        rule, marks = stacked_rule(*RULES[level]), self.law.landmarks(y, field.V0)
        found = None
        for some, law in self.law.compiled(y, field.V0):
            part = ChannelAverages(
                *compiled.averages(
                    loss.compiled,
                    law,
                    {name: values[some] for name, values in vars(field).items()},
                    COMPILED_SETTINGS,
                    edges=marks[some],
                    rule=rule,
                    y=y,
                    share=self.share,
                    with_loss=with_loss,
                )
            )
            if isinstance(some, slice):  # of all rows: nothing is moved
                return part
            found = found or ChannelAverages.unknown(len(field.V))
            found.put(some, part)
        return found


def on_nodes(loss: Loss, branch: Branch, level: int, with_loss: bool) -> ChannelAverages:
    """The averages of `Branch.averages` on arrays of nodes."""
    y, field = branch.y, branch.field
    curve = proximal_curve(loss, field, branch.breaks, level)
    row, h, xi = curve.row, curve.h, curve.xi
    density = normal_density(xi)
    mass, bend = curve.mass * density, curve.bend * density

    def dot(left: Array, right: Array) -> Array:
        product: Array = np.einsum("ij,ij->i", left, right)
        return product

    Z, Z1, Z2 = branch.law.label_law(y, field.slope[row, None] * xi, field.V0[row, None])
    mass_Z, bend_Z, bend_Z1 = mass * Z, bend * Z, bend * Z1
    mass_Zh, bend_Zh, bend_Zx = mass_Z * h, bend_Z * h, bend_Z * xi
    sums = np.array(
        [
            bend_Z.sum(1),
            dot(mass_Zh, h),
            mass_Zh.sum(1),
            dot(mass_Z, loss.value(curve.s)) if with_loss else np.full(len(row), np.nan),
            mass_Z.sum(1),
            bend_Zx.sum(1),
            dot(bend_Zx, xi),
            bend_Zh.sum(1),
            dot(bend_Zh, xi),
            dot(bend_Zh, h),
            dot(mass * Z1, h),
            bend_Z1.sum(1),
            dot(bend_Z1, xi),
            dot(bend, Z2),
            dot(bend_Z1, h),
        ]
    )
    e1, e2, e0, data_loss, norm, gx, gxx, gh, ghx, ghh, e3, g1, g1x, g2, g1h = (
        branch.share * sum_by_row(sums, row, len(field.V))
    )
    V, sd, k = field.V, field.deviation, field.slope
    to_V = V * np.array([(ghx - k * g1h) / sd, -2 * ghh, -g1h, -y * gh])
    to_Q = 0.5 * np.array([gxx - e1 - k * g1x, -2 * sd * ghx, -sd * g1x, -y * sd * gx])
    to_tilt = np.array([g1x - k * g2, -2 * sd * g1h, -sd * g2, -y * sd * g1])
    to_beta = y * np.array([gx - k * g1, -2 * sd * gh, -sd * g1, -y * sd * e1])
    by_unknown = {
        "log_V": to_V,
        "log_Q": to_Q + 0.5 * field.beta * to_beta,
        "tilt": to_tilt,
        "beta": to_beta,
    }
    e = {"e1": e1, "e2": e2, "e3": e3, "e0": y * e0}
    de = np.stack([by_unknown[name] for name in UNKNOWNS], axis=1)  # (averages, unknowns, rows)
    return ChannelAverages(
        np.stack([e[name] for name in AVERAGES], axis=1), np.moveaxis(de, -1, 0), data_loss, norm
    )


@dataclass(frozen=True)
class SquareMoments:
    r"""Moments of labels and predictions that determine the averages of the square loss.

    Attributes
    ----------
    intercept : array (points,)
        The intercept b, which is known in closed form as well.
    r : array (points,)
        Mean square residual :math:`E(y-f)^2` of new samples.
    dr : array (unknowns - 1, points)
        Its derivatives by the unknowns after log V.
    c, dc : arrays or floats
        :math:`c = E[y\nu]/\rho`, where labels displace their samples that of the residual, and its
        derivatives.
    """

    intercept: Array
    r: Array
    dr: Array
    c: Array | float
    dc: Array | float = 0.0


def square_averages(V: Array, moments: SquareMoments) -> ChannelAverages:
    r""":math:`e_1 = 1/(1+V)`, :math:`e_2 = r/(1+V)^2`, :math:`e_3 = c/(1+V)`."""
    r, dr, c = moments.r, moments.dr, moments.c
    g = 1.0 / (1.0 + V)
    zero = np.zeros_like(V)
    slope = -V * g  # d log g / d log V
    e = np.array([g, r * g**2, c * g, zero])
    by_others = [
        np.array([zero, d * g**2, slope_c * g, zero])
        for d, slope_c in zip(dr, np.broadcast_to(moments.dc, dr.shape), strict=True)
    ]
    de = np.array([np.array([g * slope, 2 * r * g**2 * slope, c * g * slope, zero]), *by_others])
    return ChannelAverages(e.T, de.T, 0.5 * r * g**2, np.ones_like(V))
