r"""The covariance of the slopes h of two different fits at a common sample: :math:`C = E[h_1h_2']`.

Fits of different losses, penalties or features see the same labels. Two shortfalls of covariance c
and variances :math:`T_1, T_2` have a part in common that is one normal variable, of deviation
:math:`\sqrt{c\sqrt{T_1/T_2}}` in the first and :math:`\sqrt{c\sqrt{T_2/T_1}}` in the second; given
this part they are independent, so that C is an average of :math:`\bar h_1\bar h_2`, as in
`common_labels`. Labels that follow from the field are added to that:

- for numbers, a row for each field and each component of the label's law has its own c;
- for labels ±1 the shared part may also stand for the field, if its variance is
  :math:`Q_{12}M_1/M_2` in the first prediction and :math:`Q_{12}M_2/M_1` in the second. Where one
  of these is more than the prediction has, there is a row for each field instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import IncompatibleIngredientsError
from hiddenmanifold.numerics.panels import NEAR, Panels
from hiddenmanifold.teachers import binary
from hiddenmanifold.teachers.averaging import edges_along
from hiddenmanifold.theory.labels_side.averages import Branch
from hiddenmanifold.theory.labels_side.channel import COLLAPSED, Channel
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.labels_side.number_channel import RowsChannel
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.theory.labels_side.two_labels import BinaryChannel, ClassChannel
from hiddenmanifold.theory.pairs.common_labels import (
    AROUND,
    Parts,
    Section,
    Shortfalls,
    added,
    bends,
)

LEAST = 1e-15
"""Private part of a variance that is left where rounding leaves none."""
FIELDS = ((10, 0), (14, 0), (20, 0), (20, 1), (20, 2), (20, 3), (20, 4))
"""Gauss–Legendre order and halvings of panels of the field, on each level of fineness."""


@dataclass(frozen=True)
class Two:
    """The law of the predictions of two fits, at some points.

    ``V``, ``Q``, ``M``, ``b`` and ``spread`` (2, points) are those of either fit: spread is the
    variance of its prediction given the field. ``shared`` (points,) is the covariance given the
    field, so that that of the predictions is it plus M₁M₂/ρ; ``rest`` (2, points) are the variances
    and ``excess`` the covariance of residuals of noiseless linear labels.
    """

    V: Array
    Q: Array
    M: Array
    b: Array
    spread: Array
    rest: Array
    shared: Array
    excess: Array
    rho: float

    def __getitem__(self, some: Integers) -> Two:
        found = {n: v[..., some] for n, v in vars(self).items() if n != "rho"}
        return Two(**found, rho=self.rho)

    @property
    def covariance(self) -> Array:
        """The covariance of both predictions."""
        covariance: Array = self.shared + self.M[0] * self.M[1] / self.rho
        return covariance


def common_slopes_of_two(
    channels: tuple[Channel, Channel], two: Two, level: int
) -> tuple[Array, Array]:
    """C and its derivative by the covariance of the predictions.

    Parameters
    ----------
    channels : pair of Channel
        The labels, which are the same, and loss, copies and weights of either fit.
    two : Two
        The law of both predictions.
    level : int
        Fineness of the quadrature, an index into `common_labels.RULES`.
    """
    total = np.zeros((2, len(two.shared)))
    for probability, weights in common_weights(channels):
        scaled = Two(**{**vars(two), "V": two.V * weights[:, None]})
        if all(channel.closed_form for channel in channels):
            found = _squares(channels, scaled)
        else:
            found = added(_sections(channels, scaled, level), len(two.shared), level)
        total += probability * weights.prod() * np.array(found)
    return total[0], total[1]


def common_weights(channels: tuple[Channel, Channel]) -> Iterator[tuple[float, Array]]:
    """Probabilities, and the weights (2,) that a sample has in both fits, its class aside.

    Raises
    ------
    IncompatibleIngredientsError
        If the laws of both weights differ, so that their joint law is not known.
    """
    first, second = (channel.weights.values for channel in channels)
    if len(first.number) > 1 and len(second.number) > 1 and first != second:
        raise IncompatibleIngredientsError(
            "both models have weights with laws of their own, and it is not known which weights "
            "of both a sample has: give both models the same weights, or only one of them any"
        )
    longer = first if len(first.number) > 1 else second
    for k, probability in enumerate(longer.probability):
        own = [law.number[k if len(law.number) > 1 else 0] for law in (first, second)]
        yield probability, np.array(own)


def _squares(channels: tuple[Channel, Channel], two: Two) -> tuple[Array, Array]:
    """The same for two square losses, in closed form."""
    channel, (M, m), (b, c) = channels[0], two.M, two.b
    if isinstance(channel, LinearChannel):
        law = channel.teacher.law
        r = two.excess + law.variance + (law.mean - b) * (law.mean - c)
    elif isinstance(channel, BinaryChannel):
        mean, second, _, slope = channel.label_moments
        if isinstance(channel, ClassChannel):
            r = (1.0 - M) * (1.0 - m) + b * c - mean * ((1.0 - M) * c + (1.0 - m) * b)
            r += two.covariance
        else:
            r = second - mean * (b + c) + b * c + two.covariance - (M + m) * slope
    elif isinstance(channel, RowsChannel):
        mean, second, _, slope = channel.label_moments
        r = second - mean * (b + c) + b * c + two.covariance - (M + m) * slope
    else:
        raise _unknown(channel)
    g = np.ones_like(two.shared)
    for one, V in zip(channels, two.V, strict=True):
        g = g * sum(p * a / (1.0 + a * V) for a, p in zip(*one.copies, strict=True))
    return g * r, g


def _unknown(channel: Channel) -> IncompatibleIngredientsError:
    return IncompatibleIngredientsError(
        f"pairs of fits are known for losses of a residual or a margin, and for the square loss, "
        f"not for {channel.loss} with {channel.teacher}"
    )


@dataclass(frozen=True)
class Rows:
    """Rows of two normal shortfalls: means and variances (2, rows), and covariances (rows,).

    ``point`` (rows,) is the point to which a row belongs, ``weight`` its probability.
    """

    point: Integers
    weight: Array
    mean: Array
    variance: Array
    covariance: Array

    def section(self, channels: tuple[Channel, Channel], two: Two, y: int = 0) -> Section:
        """Both shortfalls with their shared part; the rows may be those of a label ±1."""
        with np.errstate(all="ignore"):
            r = np.nan_to_num(self.covariance / np.sqrt(self.variance.prod(0)))
        r = np.clip(r, -1.0, 1.0)
        part = np.sqrt(np.abs(r) * self.variance)
        part[1] *= np.where(r < 0.0, -1.0, 1.0)
        private = np.maximum(1.0 - np.abs(r), LEAST) * self.variance
        weights = _class_weights(channels, y)
        V = two.V[:, self.point] * weights[:, None]
        both = _shortfalls(channels, (V, self.mean, part, private))
        return Section.of_rows(self.point, weights.prod() * self.weight, *both)


def _class_weights(channels: tuple[Channel, Channel], y: int) -> Array:
    """The weights that samples of a label ±1 have in both fits; one if y is no label."""
    return np.array([channel.weights.of_class(y) if y else 1.0 for channel in channels])


def _shortfalls(
    channels: tuple[Channel, Channel], columns: tuple[Array, ...]
) -> tuple[Shortfalls, Shortfalls]:
    """The shortfalls of both fits from V, means, deviations and variances (2, rows)."""
    first, second = (
        Shortfalls(channel.loss, Parts.of_copies(channel.copies), *(c[k] for c in columns))
        for k, channel in enumerate(channels)
    )
    return first, second


def _sections(channels: tuple[Channel, Channel], two: Two, level: int) -> Iterator[Section]:
    """The labels to average over."""
    channel, points = channels[0], np.arange(len(two.shared))
    if isinstance(channel, LinearChannel):
        yield _residuals(channel, two, level).section(channels, two)
    elif isinstance(channel, RowsChannel):
        for i in points.tolist():
            yield _of_fields(channels, two, i, level).section(channels, two)
    elif isinstance(channel, ClassChannel):
        plus, minus, _ = channel.teacher.label_marginals
        for y, share in ((1, plus), (-1, minus)):
            mean, weight = _anchors(channels) - two.M - y * two.b, np.full(len(points), share)
            rows = Rows(points, weight, mean, two.Q, two.covariance)
            yield rows.section(channels, two, y)
    elif isinstance(channel, BinaryChannel):
        one = _one_factor(two)
        for y, share in _labels(channels):
            if (some := np.flatnonzero(one)).size:
                yield _of_label(channels, two[some], some, y, share)
            for i in np.flatnonzero(np.logical_not(one)).tolist():
                rows = _of_fields_along(channels, two, i, y, level)
                yield replace(rows, weight=share * rows.weight).section(channels, two, y)
    else:
        raise _unknown(channel)


def _residuals(channel: LinearChannel, two: Two, level: int) -> Rows:
    """Labels linear in the field: the components of their noise, at all points."""
    mixture, points = channel.teacher.law.components(level), np.arange(len(two.shared))
    point, D = np.repeat(points, len(mixture.weights)), np.tile(mixture.variances, len(points))
    mean = np.tile(mixture.means, len(points)) - two.b[:, point]
    weight = np.tile(mixture.weights, len(points))
    return Rows(point, weight, mean, two.rest[:, point] + D + COLLAPSED, two.excess[point] + D)


def _of_fields(channels: tuple[Channel, Channel], two: Two, i: int, level: int) -> Rows:
    """Numbers given the field, at one point."""
    halvings = max(_halvings(channel, two, i, k) for k, channel in enumerate(channels))
    first = channels[0]
    assert isinstance(first, RowsChannel)
    nu, weights, means, variances = first.rows(level, halvings)
    point = np.full(len(nu), i)
    mean = means - two.b[:, point] - two.M[:, point] / two.rho * nu
    return Rows(point, weights, mean, two.spread[:, point] + variances, two.shared[i] + variances)


def _halvings(channel: Channel, two: Two, i: int, k: int) -> int:
    """How often panels of the field are halved for one of the fits."""
    assert isinstance(channel, RowsChannel)
    Q, tilt = two.Q[k, i], np.arcsinh(two.M[k, i] / np.sqrt(two.rho * two.spread[k, i]))
    x = np.array([[np.log(two.V[k, i]), np.log(Q), tilt]])
    return int(channel.halvings(x)[0])


def _anchors(channels: tuple[Channel, Channel]) -> Array:
    return np.array([[channel.loss.anchor] for channel in channels])


def _labels(channels: tuple[Channel, Channel]) -> list[tuple[int, float]]:
    """Labels ±1 with the factors of their averages; one of them if they are alike in both fits."""
    shares = [channel.shares for channel in channels if isinstance(channel, BinaryChannel)]
    return list(max(shares, key=len).items())


def _one_factor(two: Two) -> Array:
    """Where one variable is all that both predictions and the field have in common."""
    Q12, (M, m) = two.covariance, two.M
    with np.errstate(all="ignore"):
        first, second = Q12 * M / m, Q12 * m / M
        inside = (first > 0.0) & (first <= two.Q[0]) & (second > 0.0) & (second <= two.Q[1])
    one: Array = inside & (two.shared >= 0.0)
    return one


def _of_label(
    channels: tuple[Channel, Channel], two: Two, point: Integers, y: int, share: float
) -> Section:
    """A label ±1 whose shared part also stands for the field."""
    Q12, (M, m), zero = two.covariance, two.M, np.zeros(len(point))
    part = np.sqrt(Q12 * np.array([M / m, m / M]))
    slope, V0 = np.sign(M) * np.sqrt(M * m / Q12), two.rho * two.shared / Q12
    private = np.maximum(two.Q - part**2, LEAST * two.Q)
    mean = _anchors(channels) - y * two.b
    weights = _class_weights(channels, y)
    both = _shortfalls(channels, (weights[:, None] * two.V, mean, part, private))
    field = Field(both[0].V, mean[0], part[0], slope, V0, zero)
    branch = Branch(y, share, binary(channels[0].teacher), field, mean[0], slope, zero)
    weight = np.full(len(point), share * weights.prod())
    return Section(point, weight, branch, *both)


def _of_fields_along(
    channels: tuple[Channel, Channel], two: Two, i: int, y: int, level: int
) -> Rows:
    """A label ±1 at one point, with a row for each field along it."""
    law, root = binary(channels[0].teacher), np.sqrt(two.rho)
    cuts = [_bends_along(channel, two, i, y, k) for k, channel in enumerate(channels)]
    marks = np.nan_to_num(np.concatenate(cuts), nan=np.inf)[None]
    edges = edges_along(law, y, np.array([root]), np.zeros(1), NEAR, marks)
    panels = Panels.between(edges, FIELDS[level])
    nodes = panels.nodes.ravel()
    with np.errstate(all="ignore"):  # a rule without noise is a step
        Z = law.label_law(y, root * nodes, np.zeros(len(nodes)))[0]
    weight = Z * panels.weights.ravel()
    nu, weight = root * nodes[weight > 0.0], weight[weight > 0.0]
    point = np.full(len(nu), i)
    mean = _anchors(channels) - y * two.b[:, point] - two.M[:, point] / two.rho * nu
    return Rows(point, weight, mean, two.spread[:, point], np.full(len(nu), two.shared[i]))


def _bends_along(channel: Channel, two: Two, i: int, y: int, k: int) -> Array:
    """Where one of the proximal maps bends, in deviations of the field, as the rest smooths it."""
    edges, _ = bends(channel.loss, two.V[k, i : i + 1])
    tilt = two.M[k, i] / np.sqrt(two.rho)
    with np.errstate(all="ignore"):
        centre = (channel.loss.anchor - y * two.b[k, i] - edges) / tilt
        width = np.sqrt(two.spread[k, i]) / abs(tilt)
    around: Array = (centre[..., None] + width * np.array(AROUND)).ravel()
    return around
