r"""Overlaps and errors of sums of ridge fits, from the features' sums at pairs of arguments.

The ridge fit at a complex :math:`z = k(\alpha - D_1(k))` has the same equations as at a positive
λ. Two fits j and l on the same samples have residuals at a new input of the covariance

.. math:: R_{jl} = \frac{\alpha\,(v_0 + \rho c^2\,T_{ss})}{\alpha - D_{rr}}, \qquad
    \alpha - D_{rr} = z_j/k_j + D_{rs},

with the variance :math:`v_0` of the labels that is no linear function of the field, and at training
inputs :math:`R_{jl} a_j a_l` with :math:`a = z/(\alpha k)`. Overlaps are sums of terms that do not
cancel for positive λ,

.. math:: Q_{jl} = \rho c^2\,T_{rr} + R_{jl} D_{rr}/\alpha, \qquad
    (w_j\cdot w_l)/p = (\rho c^2\,T_{rs} + R_{jl} D_{rs}/\alpha)/k_l.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers, Numbers
from hiddenmanifold.features import Features
from hiddenmanifold.features.chain import Chain, Link, Located, solved
from hiddenmanifold.features.kernel_arguments import of_normal_features
from hiddenmanifold.features.pair_sums import PairSums
from hiddenmanifold.theory.training.rules import Nodes

PAIRS = 4000
"""Pairs of fits that are handled together, few enough for the processor's cache."""
ROUNDING = 1e-15
"""Relative rounding of a term."""


@dataclass(frozen=True)
class Labels:
    """All that a square loss sees of labels.

    Attributes
    ----------
    rho : float
        Variance of the teacher's field, or squared distance of a class from the midpoint.
    slope : float
        Covariance of label and field over rho; of classes, the variance of the label.
    variance : float
        Variance of the label, or mean square if there is no intercept.
    classes : bool
        Whether the label displaces the features, instead of following from the field.
    """

    rho: float
    slope: float
    variance: float
    classes: bool = False

    @property
    def signal(self) -> float:
        """Variance of the label that is a linear function of the field."""
        return self.variance if self.classes else self.rho * self.slope**2

    @property
    def noise(self) -> float:
        """The other part of the variance."""
        return max(self.variance - self.signal, 0.0)

    def slope_of(self, T1: Numbers) -> Numbers:
        """What takes the place of the slope in a fit that sees T1 of the field.

        Classes are one direction of the covariance of all samples, which is removed from it.
        """
        if self.classes:
            return self.slope / (1.0 + self.slope * self.rho * T1)
        return np.full_like(T1, self.slope)

    def missed(self, slope: Numbers, U1: Numbers) -> Numbers:
        """Covariance of the signal with a residual."""
        return slope if self.classes else self.signal * U1

    def missed_by_both(self, slopes: Numbers, pairs: PairSums) -> Numbers:
        """Covariance of two residuals of the signal, by fits to infinitely many samples."""
        if self.classes:
            return slopes * (1.0 / self.slope + self.rho * pairs.T_rr)
        return self.signal * pairs.T_ss


@dataclass(frozen=True)
class RidgeSums:
    """The fits of some nodes at a batch of points, arrays (points, nodes)."""

    chain: Chain
    labels: Labels
    alpha: Array
    nodes: Nodes
    k: Numbers
    located: Located

    @classmethod
    def of(
        cls, features: Features, labels: Labels, alpha: Array, gamma: Array, nodes: Nodes
    ) -> RidgeSums:
        """Solve for the features' argument of every fit; NaN where there is none."""
        rows, columns = nodes.z.shape
        a, g = (np.repeat(values, columns) for values in (alpha, gamma))
        z = nodes.z.ravel() / a
        found = solved(lambda some: sampled(features, a[some], g[some]), z, columns)
        *arguments, _ = (at.reshape(rows, columns) for at in found)
        chain = features.chain(gamma[:, None])
        return cls(chain, labels, alpha, nodes, arguments[-1], chain.located(arguments))

    def columns(self) -> Columns:
        """Overlaps, errors and the mean square residual of training samples, at every point.

        Sums over pairs come with the sum of the moduli of their terms: ``size`` is the largest
        rounding error that this leaves, relative to the overlaps.
        """
        labels, b, rest = self.labels, self.nodes.b, self.nodes.rest
        one = self.chain.pair_sums(self.located, self.located)
        T1 = one.T1
        slope, seen = labels.slope_of(T1), self.nodes.z / (self.alpha[:, None] * self.k)
        missed = labels.missed(slope, one.U1)
        sums, sizes = self._pairs(slope, seen)
        total = rest**2 * labels.variance
        crossed = 2.0 * rest * _real(b * (missed + labels.noise) * seen)
        excess = sums["excess"] + 2.0 * rest * _real(b * missed) + rest**2 * labels.signal
        found = {
            "Q": sums["Q"],
            "M": _real(b * labels.rho * slope * T1),
            "deficit": sums["deficit"],
            "q_w": sums["q_w"],
            "excess": excess,
            "training_square": sums["training"] + crossed + total,
        }
        return found | {f"{name}_size": ROUNDING * size for name, size in sizes.items()}

    def _pairs(self, slope: Numbers, seen: Numbers) -> tuple[Columns, Columns]:
        """Sums over all pairs of fits, and of the moduli of their terms."""
        rows, width = self.k.shape
        names = ("Q", "deficit", "q_w", "excess", "training")
        sums, sizes = ({name: np.zeros(rows) for name in names} for _ in range(2))
        first, second = np.triu_indices(width)
        weight = np.where(first == second, 2.0, 4.0)
        at_once = max(1, PAIRS // max(rows, 1))
        for start in range(0, len(first), at_once):
            j, l_ = first[start : start + at_once], second[start : start + at_once]
            for conjugate in (False, True):
                terms = self._terms(j, l_, conjugate, slope, seen)
                for name, values in terms.items():
                    sums[name] += (weight[start : start + at_once] * values.real).sum(1)
                    sizes[name] += (weight[start : start + at_once] * np.abs(values)).sum(1)
        return sums, sizes

    def _terms(
        self, j: Integers, other: Integers, conjugate: bool, slope: Numbers, seen: Numbers
    ) -> dict[str, Numbers]:
        """The terms of pairs of nodes, the second of which may be conjugated."""

        def both(values: Numbers) -> tuple[Numbers, Numbers]:
            second = values[:, other]
            return values[:, j], np.conj(second) if conjugate else second

        labels, alpha = self.labels, self.alpha[:, None]
        (_, k_other), (c, c_other), (a, a_other) = both(self.k), both(slope), both(seen)
        b, b_other = both(self.nodes.b)
        located = self.located.columns(other, conjugate=conjugate)
        s = self.chain.pair_sums(self.located.columns(j), located)
        slopes, coefficient = c * c_other, b * b_other
        left = alpha * a + s.D_rs
        excess = (labels.noise * s.D_rr + alpha * labels.missed_by_both(slopes, s)) / left
        R, power = labels.noise + excess, labels.rho * slopes
        share = R / alpha
        return {
            "Q": coefficient * (power * s.T_rr + share * s.D_rr),
            "deficit": coefficient * labels.rho * (power * s.W + share * s.D_rr),
            "q_w": coefficient * (power * s.T_rs + share * s.D_rs) / k_other,
            "excess": coefficient * excess,
            "training": coefficient * R * a * a_other,
        }


def sampled(features: Features, alpha: Array, gamma: Array) -> Chain:
    """The features and samples of them, whose argument is z/α."""
    chain = features.chain(gamma)
    link = Link(alpha, of_normal_features(alpha), variance=features.variance)
    return replace(chain, links=(*chain.links, link))


def _real(values: Numbers) -> Array:
    """The sum over fits and their conjugates."""
    total: Array = 2.0 * values.sum(1).real
    return total
