r"""Averages over rows of normal residuals; and labels that are linear in the field.

Given the field :math:`\nu` and a component k of the label's law (`teachers.RealTeacher.components`)
the residual :math:`u = y - \omega` is normal, of mean :math:`\mu_k - b - (M/\rho)\nu` and
variance :math:`Q - M^2/\rho + D_k`. Averages over labels and fields are weighted sums of averages
over such rows, each along the proximal curve. If labels are linear in the field no quadrature over
the field is needed: u is normal given the component of the noise alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.compiled import BETA, E0, E1, E2, E3, LOG_Q, LOG_V
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import CERTAIN, Linear
from hiddenmanifold.teachers.noises import Gaussian
from hiddenmanifold.theory.labels_side.averages import Branch, ChannelAverages, SquareMoments
from hiddenmanifold.theory.labels_side.channel import COLLAPSED, LONGEST_STEP, Channel
from hiddenmanifold.theory.labels_side.proximal_curve import Field

if TYPE_CHECKING:
    from hiddenmanifold.theory.features_side import Overlaps


@dataclass(frozen=True)
class RowAverages:
    """Averages over normal residuals: arrays (averages, points, rows) and their derivatives.

    The averages are e1, e2 and the mean of h; derivatives are by log V, by the mean and by the
    variance of a row.
    """

    value: Array
    by_log_V: Array
    by_mean: Array
    by_variance: Array
    data_loss: Array
    norm: Array


def row_averages(
    loss: Loss, V: Array, mean: Array, variance: Array, level: int, *, with_loss: bool
) -> RowAverages:
    """Averages over rows of given means and variances (points, rows), with V (points,)."""
    shape = mean.shape
    zero, deviation = np.zeros(mean.size), np.sqrt(variance).ravel()
    field = Field(np.repeat(V, shape[1]), mean.ravel(), deviation, zero, zero, zero)
    branch = Branch(1, 1.0, CERTAIN, field, field.mean, zero, zero)
    found = branch.averages(loss, level, with_loss)
    columns = [E1, E2, E0]
    e, de = found.e[:, columns].T, np.moveaxis(found.de[:, columns], 0, -1)

    def shaped(values: Array) -> Array:
        return values.reshape(*values.shape[:-1], *shape)

    return RowAverages(
        shaped(e),
        shaped(de[:, LOG_V]),
        shaped(-de[:, BETA] / deviation),
        shaped(de[:, LOG_Q] / deviation**2),
        shaped(found.data_loss),
        shaped(found.norm),
    )


@dataclass(frozen=True)
class LinearChannel(Channel):
    r"""Labels linear in the field, in the unknowns :math:`(\log V, \log\tau^2[, \beta])`.

    With noise of the components :math:`(\pi_k, \mu_k, D_k)` a new residual is a mixture of normals
    :math:`N(\mu_k - b, \tau^2 + D_k - D)`, where D is the least variance and
    :math:`\tau^2 = \rho + D + Q - 2M`; the channel depends on Q and M through τ alone, and
    :math:`e_3 = e_1`.
    """

    teacher: Linear
    loss: Loss
    overlap_unknowns = 2
    longest_steps = (LONGEST_STEP, LONGEST_STEP, LONGEST_STEP)

    @property
    def centred(self) -> bool:
        return self.loss.even and self.teacher.symmetric

    @cached_property
    def normal(self) -> bool:
        """Whether the noise is normal, so that the residual is."""
        return isinstance(self.teacher.law, Gaussian)

    @property
    def has_branches(self) -> bool:
        return self.normal and super().has_branches

    @cached_property
    def floor(self) -> float:
        """The least variance D of a component of the noise."""
        return float(self.teacher.law.components(0).variances.min())

    @property
    def label_noise(self) -> float:
        return float(self.teacher.law.variance)

    @property
    def best_constant(self) -> float:
        return 0.0 if self.normal else self.teacher.law.mean

    def intercept_unit(self, x: Array) -> Array:
        if self.normal:
            return super().intercept_unit(x)
        return np.full(len(x), np.sqrt(self.teacher.rho))

    def teacher_field(self, x: Array) -> tuple[Array, Array]:
        return np.zeros(len(x)), np.zeros(len(x))

    def residuals(self, x: Array, level: int) -> tuple[Array, Array, Array]:
        """Weights (rows,) of the components of a new residual; their means and variances."""
        mixture, b = self.teacher.law.components(level), self.intercept(x)[:, None]
        variance = np.exp(x[:, 1:2]) + (mixture.variances - self.floor)
        return mixture.weights, mixture.means - b, variance

    def averages_of_one(self, x: Array, level: int = 0, with_loss: bool = False) -> ChannelAverages:
        if self.closed_form or self.normal:
            return super().averages_of_one(x, level, with_loss)
        weights, mean, variance = self.residuals(x, level)
        rows = row_averages(self.loss, np.exp(x[:, 0]), mean, variance, level, with_loss=with_loss)
        by_unknown = [rows.by_log_V @ weights, (rows.by_variance @ weights) * np.exp(x[:, 1])]
        if self.unknowns > 2:
            by_unknown.append(-self.intercept_unit(x) * (rows.by_mean @ weights))
        e, de = np.zeros((len(x), 4)), np.zeros((len(x), 4, self.unknowns))
        columns = [E1, E2, E0]
        e[:, columns] = (rows.value @ weights).T
        de[:, columns] = np.moveaxis(np.array(by_unknown), -1, 0).swapaxes(1, 2)
        e[:, E3], de[:, E3] = e[:, E1], de[:, E1]
        data_loss = rows.data_loss @ weights if self.teacher.has_mean else np.full(len(x), np.inf)
        return ChannelAverages(e, de, data_loss, rows.norm @ weights)

    def branches(self, x: Array) -> list[Branch]:
        field = self.field(x)
        margin, zero = -field.deviation * field.beta, field.mean
        return [Branch(1, 1.0, CERTAIN, replace(field, mean=margin), margin, zero, zero)]

    def in_unknowns(self, found: ChannelAverages, branches: list[Branch]) -> ChannelAverages:
        found.e[:, E3], found.de[:, E3] = found.e[:, E1], found.de[:, E1]
        return replace(found, de=found.de[..., [LOG_V, LOG_Q, BETA][: self.unknowns]])

    def square_moments(self, x: Array) -> SquareMoments:
        r""":math:`r = \tau^2` and c = 1; the intercept is the mean of the noise."""
        tau2, law = np.exp(x[:, 1]), self.teacher.law
        b = np.full(len(x), law.mean if self.free_intercept else 0.0)
        r = tau2 if self.normal else tau2 + (law.variance - self.floor) + (law.mean - b) ** 2
        return SquareMoments(b, r, tau2[None], 1.0)

    def coordinates(self, overlaps: Overlaps) -> tuple[Array, Array]:
        o = overlaps
        tau2 = o.excess + self.floor + COLLAPSED
        y = np.stack([np.log(o.V), np.log(tau2)], axis=1)
        return y, np.stack([o.dV / o.V[:, None], o.dexcess / tau2[:, None]], axis=1)

    def start(self, V: Array) -> Array:
        x = super().start(V)
        x[:, 1] = np.log(self.teacher.rho + self.floor)
        return x
