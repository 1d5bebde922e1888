r"""Sums over both spectral measures at two arguments, through which pairs of fits enter the theory.

Two ridge regressions of strengths :math:`\kappa` and :math:`\kappa'` on the same features keep the
parts r and r' of a direction. What they have in common are the sums of non-negative terms

.. math:: D_{rr} = \sum_i r_i r_i', \quad D_{rs} = \sum_i r_i s_i', \quad D_{sr} = \sum_i s_i r_i',
    \quad D_{ss} = \sum_i s_i s_i', \qquad s = 1 - r,

and the same over the teacher's measure. At equal arguments these are D20, D11, D11 and D02 of
``spectral_sums``, whose units and transformations they share. The formulas hold for complex
arguments off the negative axis as they stand, although the terms are then no longer positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from hiddenmanifold.arrays import Array, Numbers
from hiddenmanifold.features.spectral_sums import Kappas, remainder

Parts = tuple[Numbers, Numbers]
"""A part of something at a batch of points, and the rest of it."""


@dataclass(frozen=True)
class PairSums:
    r"""The sums of some features at a batch of pairs of arguments k and l, arrays (points,).

    The first letter of a name like ``D_rs`` refers to k and the second to l: r is the part of a
    direction that is learned, and s = 1 - r the part that is not. ``W`` is T_rr minus the product
    of both T1, the covariance of r and r' over the teacher's measure.
    """

    D_rr: Numbers
    D_rs: Numbers
    D_sr: Numbers
    D_ss: Numbers
    T_rr: Numbers
    T_rs: Numbers
    T_sr: Numbers
    T_ss: Numbers
    W: Numbers

    @classmethod
    def of_nothing(cls, k: Numbers, p: Array | float) -> PairSums:
        """The sums of p features that are zero: r = 0 in every direction, and all is hidden."""
        zero, one = np.zeros_like(k), np.ones_like(k)
        sums = dict.fromkeys((column.name for column in fields(cls)), zero)
        return cls(**sums | {"D_ss": p * one, "T_ss": one})

    @property
    def D1(self) -> Numbers:
        """Degrees of freedom at k, sum of r."""
        return self.D_rr + self.D_rs

    @property
    def D1_other(self) -> Numbers:
        """Degrees of freedom at l."""
        return self.D_rr + self.D_sr

    @property
    def D2(self) -> Numbers:
        """Sum of r r': the degrees of freedom that both have in common."""
        return self.D_rr

    @property
    def unlearned(self) -> Numbers:
        """Sum of 1 - r at k: the number of directions that are not learned."""
        return self.D_ss + self.D_sr

    @property
    def unlearned_other(self) -> Numbers:
        """The same at l."""
        return self.D_ss + self.D_rs

    @property
    def T1(self) -> Numbers:
        """Part of the teacher's field that is seen at k."""
        return self.T_rr + self.T_rs

    @property
    def T2(self) -> Numbers:
        """Sum of r r' over the teacher's measure."""
        return self.T_rr

    @property
    def U1(self) -> Numbers:
        """Part of the teacher's field that is not seen at k."""
        return self.T_ss + self.T_sr

    @property
    def U2(self) -> Numbers:
        """Sum of (1 - r)(1 - r') over the teacher's measure: the common bias."""
        return self.T_ss

    def in_units(self, p: Array) -> PairSums:
        """The same, if directions were counted in units of p of them."""
        names = ("D_rr", "D_rs", "D_sr", "D_ss")
        return replace(self, **{name: p * getattr(self, name) for name in names})


def white_pair(k: Numbers, other: Numbers, d: Array) -> PairSums:
    """The sums of white data of dimension d, in which the teacher's field is linear."""
    (r, s), (rr, ss) = ((1.0 / (1.0 + at * d), at * d / (1.0 + at * d)) for at in (k, other))
    both, first, second, none = r * rr, r * ss, s * rr, s * ss
    return PairSums(
        D_rr=d * both,
        D_rs=d * first,
        D_sr=d * second,
        D_ss=d * none,
        T_rr=both,
        T_rs=first,
        T_sr=second,
        T_ss=none,
        W=np.zeros_like(both),
    )


def discrete_pair(
    k: Numbers,
    other: Numbers,
    w: Array,
    share: Array,
    tau: Array,
    *,
    hidden: Array | float | None = None,
) -> PairSums:
    """Directions of given eigenvalues; see `spectral_sums.discrete` for what describes them."""
    inverse = 1.0 / ((w + k[:, None]) * (w + other[:, None]))
    D_rr, D_one, D_none = _moments(inverse, share, w)
    T_rr, T_one, T_none = _moments(inverse, tau, w)
    hidden = remainder(tau) if hidden is None else hidden
    T_rs, T_sr, T_ss = other * T_one, k * T_one, k * other * T_none + hidden
    # of both differences, the one of smaller numbers keeps more digits
    seen = T_rr - (T_rr + T_rs) * (T_rr + T_sr)
    missed = T_ss - (T_ss + T_rs) * (T_ss + T_sr)
    return PairSums(
        D_rr=D_rr,
        D_rs=other * D_one,
        D_sr=k * D_one,
        D_ss=k * other * D_none + remainder(share),
        T_rr=T_rr,
        T_rs=T_rs,
        T_sr=T_sr,
        T_ss=T_ss,
        W=np.where(np.abs(T_rr) < np.abs(T_ss), seen, missed),
    )


def _moments(values: Numbers, weights: Array, w: Array) -> tuple[Numbers, Numbers, Numbers]:
    """Sums over atoms with the weights times w², w and 1; the weights may depend on the point."""
    powers = weights * w * w, weights * w, weights
    if weights.ndim > 1 or w.ndim > 1:
        second, first, zeroth = ((values * power).sum(-1) for power in powers)
    else:
        second, first, zeroth = (values @ np.stack(powers, axis=1)).T
    return second, first, zeroth


def projected_pair(inner: PairSums, D_ss: Numbers, g: Numbers, other_g: Numbers) -> PairSums:
    r"""Random linear features of a kernel, at arguments that belong to those of the kernel.

    See `spectral_sums.projected`: D1 and T1 stay while arguments are stretched. A sum such as
    :math:`D_{rs} = l\,(D_1(k) - D_1(l))/(l - k)` changes as the ratio of differences of arguments
    does, divided by 1 + g.

    Parameters
    ----------
    inner : PairSums
        The sums of the kernel at its arguments.
    D_ss : array
        The sum D_ss of the features, which depends on their number.
    g, other_g : arrays
        The divisors less one, of D_rs and D_sr.
    """
    f, other_f = 1.0 / (1.0 + g), 1.0 / (1.0 + other_g)
    x, other_x = g * f, other_g * other_f
    return PairSums(
        D_rr=inner.D_rr + x * inner.D_rs,
        D_rs=f * inner.D_rs,
        D_sr=other_f * inner.D_sr,
        D_ss=D_ss,
        T_rr=inner.T_rr + x * inner.T_rs,
        T_rs=f * inner.T_rs,
        T_sr=other_f * inner.T_sr,
        T_ss=inner.T_ss + other_x * inner.T_sr,
        W=inner.W + x * inner.T_rs,
    )


def activated_pair(
    inner: Callable[[Numbers, Numbers], PairSums],
    k: Numbers,
    other: Numbers,
    kappas: Kappas,
    p: Array | float = 1.0,
) -> PairSums:
    r"""The sums of :math:`\kappa_0 + \kappa_1 h + \kappa_\star z` with independent noise z.

    See `spectral_sums.activated`; the sums of the p features h are given.
    """
    _, kappa_1, kappa_star = kappas
    noise = kappa_star**2 / p
    if kappa_1 == 0.0:
        return noise_pair(k, other, noise, p)
    below = inner((k + noise) / kappa_1**2, (other + noise) / kappa_1**2)
    return activated(below, parts(k, noise), parts(other, noise), p)


def noise_pair(k: Numbers, other: Numbers, noise: Array | float, p: Array | float) -> PairSums:
    """The sums of p independent features of eigenvalue `noise` that see nothing of the field."""
    return activated(PairSums.of_nothing(k, p), parts(k, noise), parts(other, noise), p)


def parts(k: Numbers, noise: Array | float) -> Parts:
    """The parts of noise that are not learned and that are."""
    whole = k + noise
    return k / whole, noise / whole


def activated(m: PairSums, first: Parts, second: Parts, p: Array | float) -> PairSums:
    """The same, given the sums of h and the parts of the noise at both arguments."""
    (phi, bar), (other_phi, other_bar) = first, second
    both, seen = phi * other_phi, bar * other_phi * m.D1_other + phi * other_bar * m.D1
    return PairSums(
        D_rr=bar * other_bar * p + seen + both * m.D_rr,
        D_rs=other_phi * (bar * m.unlearned_other + phi * m.D_rs),
        D_sr=phi * (other_bar * m.unlearned + other_phi * m.D_sr),
        D_ss=both * m.D_ss,
        T_rr=m.T_rr + other_bar * m.T_rs,
        T_rs=other_phi * m.T_rs,
        T_sr=phi * m.T_sr,
        T_ss=m.T_ss + bar * m.T_sr,
        W=m.W + other_bar * m.T_rs,
    )
