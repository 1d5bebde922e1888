"""Two normal classes: labels are drawn first, and displace their samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_number
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.teachers.base import BinaryTeacher, Law

FARTHEST = 100.0
"""Largest squared distance: beyond, the classes overlap by less than 1e-23."""


@dataclass(frozen=True)
class Mixture(BinaryTeacher):
    r"""Two classes of the features' covariance, around :math:`\pm g` with :math:`g = E[\nu x]`.

    The class is the label, drawn first; latent data are :math:`c = y\,\theta/\sqrt d + z` with
    white z, and features that are given by their covariance are displaced by :math:`y\,g`. No label
    is noisy: `clean_error` is the `generalisation_error`. The overlaps are those within a class: Q
    is the variance of the prediction there, M its mean along the label.

    Parameters
    ----------
    prior : float
        Probability of the label +1, in (0, 1).
    rho : float
        Squared distance of each centre from their midpoint, in units of the deviation along it,
        positive and at most 100: with full knowledge of the centres the error is
        :math:`\Phi(-\sqrt\rho)` if the classes are equally probable.

    Notes
    -----
    Given the field :math:`\nu = c\cdot\theta/\sqrt d` samples and labels are independent, and
    :math:`P(+|\nu)` is logistic. Compared with a normal :math:`\nu` this is the law
    :math:`P(y)\,e^{y\nu - \rho/2}`, which adds up to one on average over :math:`\nu` alone.
    """

    displaces: ClassVar[bool] = True
    prior: float = 0.5
    rho: float = 1.0

    def __post_init__(self) -> None:
        check_number("rho", self.rho, 0.0, FARTHEST, open_low=True)
        check_number("prior", self.prior, 0.0, 1.0, open_low=True)
        if self.prior == 1.0:
            raise InvalidArgumentError("prior", self.prior, "below 1: at 1 there is a single class")

    def classes(self, rows: int, rng: np.random.Generator) -> Array:
        return np.where(rng.random(rows) < self.prior, 1.0, -1.0)

    def probability(self, nu: Array) -> Array:
        r""":math:`P(+|\nu)`."""
        known: Array = scipy.special.expit(2.0 * (nu - self.pivot))
        return known

    @property
    def symmetric(self) -> bool:
        return self.prior == 0.5

    @property
    def pivot(self) -> float:
        return -0.5 * float(scipy.special.logit(self.prior))

    @property
    def clean(self) -> Mixture:
        return self

    def label_law(self, y: int, x: Array, V0: Array) -> Law:
        Z = (self.prior if y > 0 else 1.0 - self.prior) * np.exp(x - 0.5 * (self.rho - V0))
        return Z, Z, Z

    def evidence(self, x: Array, V0: Array) -> Array:
        return self.label_weight(1, x, V0) + self.label_weight(-1, -x, V0)

    def below(self, y: int, cut: Array, slope: Array, V0: Array) -> Array:
        share, below = self.prior if y > 0 else 1.0 - self.prior, scipy.special.ndtr(cut - slope)
        return np.asarray(share * below)

    def landmarks(self, y: int, V0: Array) -> Array:
        return np.empty((len(V0), 0))
