r"""The covariance of the slopes h of two fits at a common sample: :math:`C = E[h_1h_2]`.

The shared part of the predictions of two fits is distributed like a prediction of variance
:math:`Q_{12}` and of the same M and intercept, so that the branches and rows of `labels_side` at
these unknowns describe it. Given that part and the label, the two h are independent:

.. math:: C = E_g \sum_y Z_y(g)\, \bar h_y(g)^2, \qquad
    \frac{dC}{dQ_{12}} = E_g \sum_y Z_y(g)\, \bar h_y'(g)^2

with the means :math:`\bar h` of `private_means`, which are also means over how often a fit draws
the sample. If both fits see the same sample with labels of independent noise, means over that noise
are part of :math:`\bar h`; for labels ±1, :math:`\sum_y Z_y \bar h_y^2` is then too large by the
mean of :math:`P_+P_-(\bar h_+ + \bar h_-)^2` over the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers, chunks
from hiddenmanifold.errors import IncompatibleIngredientsError
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import NEAR, Panels, fanned
from hiddenmanifold.resampling import Copies
from hiddenmanifold.teachers import CERTAIN, binary
from hiddenmanifold.theory.labels_side.averages import Branch
from hiddenmanifold.theory.labels_side.channel import COLLAPSED, Channel, widened
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.labels_side.number_channel import RowsChannel
from hiddenmanifold.theory.labels_side.proximal_curve import FLAT, Field
from hiddenmanifold.theory.labels_side.two_labels import BinaryChannel
from hiddenmanifold.theory.pairs.private_means import private_means

RULES = ((8, 0), (12, 0), (20, 0), (20, 1), (20, 2), (20, 3), (20, 4))
"""Gauss–Legendre order and halvings of panels of the shared part, on each level of fineness."""
AROUND = (-9.0, -4.5, -1.5, 1.5, 4.5, 9.0)
"""Cuts around a kink of the loss, in deviations of the private part that smooths it."""
APART = 1.5
"""Least distance of two cuts, in the same deviations: what lies between is smooth.

Panels are up to three times as long anyway; twice as many take twice the time."""
USUAL = 0.01
"""Probability of a part from which on panels are cut at its kinks."""
TOGETHER = 2**18
"""Nodes whose means are computed together."""


@dataclass(frozen=True)
class Parts:
    """What a fit draws for itself at a sample: arrays (parts, 1) or (parts, rows).

    A part has a probability and a number of copies of the sample. It shifts the mean of the
    shortfall, and adds to the variance that is private to the fit. The weight of the sample itself
    is that of its `Section`, because all fits share it.
    """

    probability: Array
    copies: Array
    shift: Array
    variance: Array

    @classmethod
    def of_copies(cls, copies: Copies) -> Parts:
        """Copies of a sample alone."""
        number, probability = (np.array(values)[:, None] for values in copies)
        some = number[:, 0] > 0.0
        zero = np.zeros((int(some.sum()), 1))
        return cls(probability[some], number[some], zero, zero)

    def with_noise(self, probability: Array, shift: Array, variance: Array) -> Parts:
        """With independent components of label noise, arrays (components, rows or 1)."""

        def each(own: Array, new: Array) -> Array:
            size = max(own.shape[1], new.shape[1])
            shape = (len(own), len(new), size)
            own, new = np.broadcast_to(own[:, None], shape), np.broadcast_to(new[None], shape)
            return np.stack([own, new]).reshape(2, -1, size)

        own, new = each(self.probability, probability)
        return Parts(
            own * new,
            each(self.copies, probability)[0],
            each(self.shift, shift).sum(0),
            each(self.variance, variance).sum(0),
        )

    def __getitem__(self, rows: Integers) -> Parts:
        columns = (self.probability, self.copies, self.shift, self.variance)
        return Parts(*(c[:, rows] if c.shape[1] > 1 else c for c in columns))

    def at(self, rows: Integers) -> Iterator[tuple[Array, Array, Array, Array]]:
        """The columns of each part, at some rows."""
        some = self[rows]
        yield from zip(some.probability, some.copies, some.shift, some.variance, strict=True)


@dataclass(frozen=True)
class Shortfalls:
    """Normal shortfalls of one label: arrays (rows,).

    They have V and means, the `deviation` of the shared part of a prediction, and the variance of
    the private part. The deviation is negative if the shared part is that of another prediction,
    which it opposes.
    """

    loss: Loss
    parts: Parts
    V: Array
    mean: Array
    deviation: Array
    private: Array

    def __getitem__(self, rows: Integers) -> Shortfalls:
        columns = (self.V, self.mean, self.deviation, self.private)
        return Shortfalls(self.loss, self.parts[rows], *(values[rows] for values in columns))

    @property
    def marks(self) -> Array:
        """Where the mean of h bends, in deviations of the shared part (rows, marks)."""
        rows, shared = np.arange(len(self.V)), self.deviation[:, None]
        found = []
        for probability, copies, shift, variance in self.parts.at(rows):
            if probability.max() < USUAL:
                continue
            private = np.sqrt(self.private + variance)[:, None] / shared
            edges, kinks = bends(self.loss, self.V * copies)
            marks = ((self.mean + shift)[:, None] - edges) / shared
            around = marks[:, kinks, None] + (private * np.array(AROUND))[:, None, :]
            found += [marks, around.reshape(len(rows), -1)]
        step = APART * np.sqrt(self.private)[:, None] / np.abs(shared)
        together: Array = step * np.rint(np.concatenate(found, axis=1) / step)
        return together

    def means(self, row: Integers, nodes: Array, level: int) -> tuple[Array, Array]:
        """Means of h, and derivatives by the mean shortfall, at nodes of the shared part.

        Nodes (n,) belong to the given rows.
        """
        V, mean = self.V[row], self.mean[row] - self.deviation[row] * nodes
        value, slope = np.zeros((2, len(row)))
        for probability, copies, shift, variance in self.parts.at(row):
            found = private_means(
                self.loss, copies * V, mean + shift, np.sqrt(self.private[row] + variance), level
            )
            value += probability * copies * found[0]
            slope += probability * copies * found[1]
        return value, slope


def bends(loss: Loss, V: Array) -> tuple[Array, Array]:
    """Shortfalls at which h bends (rows, bends), and which of these are kinks."""
    V = V[:, None]
    s, below, above, curvature = loss.knots
    kinked, jump = np.isin(s, loss.kinks), above > below
    flat = ~kinked & ((1.0 + V) * curvature < FLAT) & (loss.scale is not None)
    enter = np.where(flat, np.inf, s + V * below)
    edges = np.concatenate([enter, (s + V * above)[:, jump]], axis=1)
    return edges, np.append(kinked, kinked[jump])


@dataclass(frozen=True)
class Section:
    """Shortfalls with the law of their label: one branch, or rows of normal residuals.

    ``point`` (rows,) is the point to which a row belongs, ``weight`` its share in the average.
    Shortfalls of the other fit are given if they have another law.
    """

    point: Integers
    weight: Array
    branch: Branch
    shortfalls: Shortfalls
    other: Shortfalls | None = None

    def __getitem__(self, rows: Integers) -> Section:
        return Section(
            self.point[rows],
            self.weight[rows],
            self.branch[rows],
            self.shortfalls[rows],
            None if self.other is None else self.other[rows],
        )

    @classmethod
    def of_branch(cls, loss: Loss, parts: Parts, branch: Branch, private: Array) -> Section:
        """One label at every point."""
        f, weight = branch.field, np.full(len(private), branch.share * branch.weight**2)
        shortfalls = Shortfalls(loss, parts, f.V, f.mean, f.deviation, private)
        return cls(np.arange(len(private)), weight, branch, shortfalls)

    @classmethod
    def of_rows(
        cls,
        point: Integers,
        weight: Array,
        shortfalls: Shortfalls,
        other: Shortfalls | None = None,
    ) -> Section:
        """Normal residuals, the rows of all points one after another."""
        zero, s = np.zeros(len(point)), shortfalls
        field = Field(s.V, s.mean, s.deviation, zero, zero, zero)
        branch = Branch(1, 1.0, CERTAIN, field, field.mean, zero, zero)
        return cls(point, weight, branch, shortfalls, other)

    @property
    def marks(self) -> Array:
        """Cuts of the panels of each row."""
        others = () if self.other is None else (self.other.marks,)
        return np.concatenate([self.branch.breaks, self.shortfalls.marks, *others], axis=1)

    def sums(self, level: int) -> tuple[Array, Array]:
        """The averages of the products of both h̄ and of both h̄', times each row's weight."""
        panels = Panels.between(fanned(NEAR, self.marks), RULES[level])
        at, field = panels.row[:, None], self.branch.field
        law = self.branch.law.label_law
        Z = law(self.branch.y, field.slope[at] * panels.nodes, field.V0[at])[0]
        row = np.repeat(panels.row, panels.nodes.shape[1])
        first = second = self.shortfalls.means(row, panels.nodes.ravel(), level)
        if self.other is not None:
            second = self.other.means(row, panels.nodes.ravel(), level)
        products = np.stack(first) * np.stack(second)
        value, slope = panels.sum(Z * products.reshape(2, *panels.nodes.shape))
        return self.weight * value, self.weight * slope


def common_slopes(
    channel: Channel, x: Array, private: Array, level: int, *, noise: bool = True
) -> tuple[Array, Array]:
    """E[h₁h₂] and its derivative by Q₁₂, arrays (points,).

    Parameters
    ----------
    channel : Channel
        Labels, loss, and how often a fit draws each sample.
    x : array (points, unknowns)
        The unknowns of the shared part of the predictions: V and the intercept of a fit, and the
        law of a prediction of variance Q₁₂.
    private : array (points,)
        Variance Q - Q₁₂ of the private part.
    level : int
        Fineness of the quadrature, an index into `RULES`.
    noise : bool
        Whether both fits see the same noise of the labels.
    """
    total = np.zeros((2, len(x)))
    for weight, probability in zip(*channel.weights.values, strict=True):
        wider = widened(x, weight) if weight != 1.0 else x
        found = _of_one_weight(channel, wider, private, level, noise=noise)
        total += probability * weight**2 * np.array(found)
    return total[0], total[1]


def _of_one_weight(
    channel: Channel, x: Array, private: Array, level: int, *, noise: bool
) -> tuple[Array, Array]:
    """The same if every sample has the weight one, or that of its class."""
    if channel.closed_form:
        V = np.exp(x[:, 0])
        copies = zip(*channel.copies, strict=True)
        g = sum((p * a / (1.0 + a * V) for a, p in copies), np.zeros(len(x))) ** 2
        r = channel.square_moments(x).r
        return g * (r if noise else r - channel.label_noise), g
    value, slope = added(_sections(channel, x, private, level, noise=noise), len(x), level)
    if not noise and isinstance(channel, BinaryChannel):
        excess = _label_noise(channel, x, private, level)
        value, slope = value - excess[0], slope - excess[1]
    return value, slope


def added(sections: Iterable[Section], points: int, level: int) -> tuple[Array, Array]:
    """The sums of all sections at each point."""
    value, slope = np.zeros((2, points))
    order, halvings = RULES[level]
    for section in sections:
        panels = len(NEAR) + section.marks.shape[1]
        most = max(1, TOGETHER // (panels * order * 2**halvings))
        for rows in chunks(np.arange(len(section.point)), most):
            part = section[rows]
            found = part.sums(level)
            value += np.bincount(part.point, found[0], points)
            slope += np.bincount(part.point, found[1], points)
    return value, slope


def _sections(
    channel: Channel, x: Array, private: Array, level: int, *, noise: bool
) -> Iterator[Section]:
    """The labels to average over."""
    loss, parts = channel.loss, Parts.of_copies(channel.copies)
    if isinstance(channel, LinearChannel):
        yield _residuals(channel, x, private, level, noise=noise)
    elif isinstance(channel, RowsChannel):
        yield from _rows_of_fields(channel, x, private, level, noise=noise)
    elif isinstance(channel, BinaryChannel):
        for branch in channel.branches(x):
            yield Section.of_branch(loss, parts, branch, private)
    else:
        raise IncompatibleIngredientsError(
            f"pairs of fits are known for losses of a residual or a margin, and for the square "
            f"loss, not for {loss} with {channel.teacher}"
        )


def _residuals(
    channel: LinearChannel, x: Array, private: Array, level: int, *, noise: bool
) -> Section:
    """Labels linear in the field: the components of their noise, or all of these together."""
    V, parts = np.exp(x[:, 0]), Parts.of_copies(channel.copies)
    tau2 = np.maximum(np.exp(x[:, 1]) - channel.floor, COLLAPSED)
    mixture, b = channel.teacher.law.components(level), channel.intercept(x)
    weights, means, variances = mixture.weights, mixture.means, mixture.variances
    if not noise:
        parts = parts.with_noise(weights[:, None], means[:, None], variances[:, None])
        shortfalls = Shortfalls(channel.loss, parts, V, -b, np.sqrt(tau2), private)
        return Section.of_rows(np.arange(len(x)), np.ones(len(x)), shortfalls)
    point = np.repeat(np.arange(len(x)), len(weights))
    mean = (means - b[:, None]).ravel()
    shared = np.sqrt(tau2[:, None] + variances).ravel()
    shortfalls = Shortfalls(channel.loss, parts, V[point], mean, shared, private[point])
    return Section.of_rows(point, np.tile(weights, len(x)), shortfalls)


def _rows_of_fields(
    channel: RowsChannel, x: Array, private: Array, level: int, *, noise: bool
) -> Iterator[Section]:
    """Labels given the field, at one point after another: each has thousands of rows."""
    V, b, (slope, V0) = np.exp(x[:, 0]), channel.intercept(x), channel.teacher_field(x)
    Q, rho, teacher = np.exp(x[:, 1]), channel.rho, channel.teacher
    r, spread = slope * np.sqrt(Q) / rho, Q * V0 / rho
    for i, halvings in enumerate(channel.halvings(x).tolist()):
        parts = Parts.of_copies(channel.copies)
        if noise:
            nu, weights, means, variances = channel.rows(level, halvings)
        else:
            nu, weights = teacher.field(level, halvings)
            mixture, means, variances = teacher.components(nu, level), 0.0 * nu, 0.0 * nu
            parts = parts.with_noise(mixture.weights, mixture.means, mixture.variances)
        one = np.ones(len(nu))
        mean, shared = means - b[i] - r[i] * nu, np.sqrt(spread[i] + variances)
        shortfalls = Shortfalls(channel.loss, parts, V[i] * one, mean, shared, private[i] * one)
        yield Section.of_rows(np.full(len(nu), i), weights, shortfalls)


def _label_noise(
    channel: BinaryChannel, x: Array, private: Array, level: int
) -> tuple[Array, Array]:
    """What the noise of labels ±1 contributes to C and its derivative if it is common."""
    parts, V = Parts.of_copies(channel.copies), np.exp(x[:, 0])
    (slope, V0), Q, b = channel.teacher_field(x), np.exp(x[:, 1]), channel.intercept(x)
    teacher, anchor = binary(channel.teacher), channel.loss.anchor
    weights = [channel.weights.of_class(y) for y in (1, -1)]
    both = [
        Shortfalls(channel.loss, parts, a * V, anchor - y * b, np.sqrt(Q), private)
        for y, a in zip((1, -1), weights, strict=True)
    ]
    bends = teacher.landmarks(1, V0) / slope[:, None]
    marks = np.concatenate(
        [np.nan_to_num(bends, nan=np.inf), both[0].marks, -both[1].marks], axis=1
    )
    found = np.zeros((2, len(x)))
    order, halvings = RULES[level]
    for rows in chunks(
        np.arange(len(x)), max(1, TOGETHER // (marks.shape[1] * order * 2**halvings))
    ):
        panels = Panels.between(fanned(NEAR, marks[rows]), RULES[level])
        row, nodes = np.repeat(rows[panels.row], panels.nodes.shape[1]), panels.nodes.ravel()
        doubt = 0.25 * teacher.label_variance(slope[row] * nodes, V0[row])
        (h, bend), (h_, bend_) = (
            a * np.array(one.means(row, y * nodes, level))
            for y, a, one in zip((1, -1), weights, both, strict=True)
        )
        squares = doubt * np.stack([(h + h_) ** 2, (bend - bend_) ** 2])
        found[:, rows] = panels.sum(squares.reshape(2, *panels.nodes.shape))
    return found[0], found[1]
