r"""Gaussian averages along the proximal curve of one label, compiled or on arrays of nodes.

A row of the result is an average over the field with the weight :math:`Z` of the label, or with one
of its derivatives :math:`Z', Z''`, of `h` and :math:`g = \partial_u h`, and powers of the
standardised field :math:`\xi`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import gauss_legendre, sum_by_row
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.teachers import BinaryTeacher, Compiled, Law
from hiddenmanifold.theory.labels_side.proximal_curve import REACH, RULES, Field, proximal_curve

BLOCK = 512
"""Points whose nodes are handled together, so that the arrays of nodes stay in the cache."""


@dataclass(frozen=True)
class Label:
    """A label ``y`` of a rule; ``V0`` (rows,) is the variance left to the teacher's field."""

    teacher: BinaryTeacher
    y: int
    V0: Array

    def __getitem__(self, rows: Integers | slice) -> Label:
        return Label(self.teacher, self.y, self.V0[rows])

    @property
    def marks(self) -> Array:
        """Where the law bends."""
        return self.teacher.landmarks(self.y, self.V0)

    def compiled(self) -> Iterator[Compiled]:
        """The law of some rows at a time, as compiled code takes it."""
        return self.teacher.compiled(self.y, self.V0)

    def law(self, t: Array, row: Integers) -> Law:
        """The label law at fields t (panels, nodes) of some rows, and its derivatives."""
        return self.teacher.label_law(self.y, t, self.V0[row, None])


@dataclass(frozen=True)
class RealLabel:
    """What stands for the label if labels are real: Z = 1, everywhere."""

    V0: Array
    y: ClassVar[int] = 1

    def __getitem__(self, rows: Integers | slice) -> RealLabel:
        return RealLabel(self.V0[rows])

    @property
    def marks(self) -> Array:
        """Where the law bends: nowhere."""
        return np.empty((len(self.V0), 0))

    def compiled(self) -> Iterator[Compiled]:
        """One, for compiled code."""
        yield slice(None), compiled.Law(1.0)

    def law(self, t: Array, row: Integers) -> Law:
        """One, and no derivatives."""
        return np.ones_like(t), np.zeros_like(t), np.zeros_like(t)


class ClassLabel(RealLabel):
    """A class that displaces its samples: its law, exponential in the field, moves their mean."""

    def law(self, t: Array, row: Integers) -> Law:
        """One, in units of the law itself, which is its own derivative."""
        return np.ones_like(t), np.ones_like(t), np.ones_like(t)


@dataclass(frozen=True)
class Branch:
    """One label of a channel at a batch of points: what its averages are made of.

    Parameters
    ----------
    y : int
        The label.
    share : float
        What the averages count.
    field, label : Field, Label or RealLabel
        Law of the shortfall, and of the label given the field.
    margin : array (rows,)
        The shortfall of a prediction that is the intercept alone.
    slope, mean : arrays (rows,)
        The teacher's field along the label is normal around slope (ξ + mean), of variance V0.
    """

    y: int
    share: float
    field: Field
    label: Label | RealLabel
    margin: Array
    slope: Array
    mean: Array


def label_averages(
    loss: Loss, field: Field, label: Label | RealLabel, level: int, with_loss: bool
) -> Array:
    """Averages (rows, 22) of one label on a level of quadrature.

    These are e1, e2, e3 and e0, their derivatives (4, 4) by (log V, log Q, a, beta), of which that
    by `a` is left without its factor V0/sqrt(rho), the data loss (NaN unless asked for) and the
    norm.
    """
    law_of_u = np.array([field.V, field.mean, field.deviation, field.k, label.V0, field.beta])
    parts: list[tuple[Integers | slice, Array]] = []
    if compiled.engine() == "compiled":
        rule, marks = np.array(gauss_legendre(*RULES[level])), label.marks
        for some, law in label.compiled():
            given = law_of_u[:, some], marks[some], law, rule, loss.compiled
            parts.append((some, compiled.averages(*given, y=label.y, with_loss=with_loss)))
    if len(parts) == 1 and isinstance(parts[0][0], slice):  # of all rows: nothing is moved
        found = parts[0][1]
    else:
        found = np.full((len(field.V), compiled.AVERAGES), np.nan)
        for some, part in parts:
            found[some] = part
    # where the loss or the law is no polynomial
    lost = np.flatnonzero(np.isnan(found[:, 0]) & np.isfinite(law_of_u.sum(0)))
    for first in range(0, len(lost), BLOCK):
        rows = lost[first : first + BLOCK]
        found[rows] = on_nodes(loss, field[rows], label[rows], level, with_loss)
    if not with_loss:
        found[:, 20] = np.nan
    return found


def on_nodes(
    loss: Loss, field: Field, label: Label | RealLabel, level: int, with_loss: bool
) -> Array:
    """The averages of `label_averages` on arrays of nodes."""
    curve = proximal_curve(loss, field, breaks(label.marks, field.k), level)
    row, h, xi = curve.row, curve.h, curve.xi
    density = normal_density(xi)
    mass, bend = curve.mass * density, curve.bend * density

    def dot(left: Array, right: Array) -> Array:
        product: Array = np.einsum("ij,ij->i", left, right)
        return product

    Z, Z1, Z2 = label.law(field.k[row, None] * xi, row)
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
    e1, e2, e0, data_loss, norm, gx, gxx, gh, ghx, ghh, e3, g1, g1x, g2, g1h = sum_by_row(
        sums, row, len(field.V)
    )
    y, V, sd, k = label.y, field.V, field.deviation, field.k
    to_V = V * np.array([(ghx - k * g1h) / sd, -2 * ghh, -g1h, -y * gh])
    to_Q = 0.5 * np.array([gxx - e1 - k * g1x, -2 * sd * ghx, -sd * g1x, -y * sd * gx])
    to_a = np.array([g1x - k * g2, -2 * sd * g1h, -sd * g2, -y * sd * g1])
    to_beta = y * np.array([gx - k * g1, -2 * sd * gh, -sd * g1, -y * sd * e1])
    de = np.stack([to_V, to_Q + 0.5 * field.beta * to_beta, to_a, to_beta], axis=1)
    return np.stack([e1, e2, e3, y * e0, *de.reshape(16, -1), data_loss, norm], axis=1)


def breaks(marks: Array, k: Array) -> Array:
    """Cuts, in deviations of the shortfall, where the label law bends more than the Gaussian."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cuts = -marks / k[:, None]
    sharp = np.ptp(cuts, axis=1, keepdims=True) < REACH * 2 if cuts.size else True
    cuts = np.where(sharp & np.isfinite(cuts), cuts, REACH)
    return cuts[:, (np.abs(cuts) < REACH).any(0)]
