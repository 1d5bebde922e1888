r"""Sums over the two spectral measures through which features enter the theory.

Features x of covariance :math:`\Omega` and :math:`g = E[\nu x]` with the teacher's field have the
eigenvalues :math:`w_i` of :math:`\Omega/p` and weights :math:`t_i = (v_i \cdot g)^2/p`. Ridge
regression of strength :math:`\kappa` keeps of a direction the part :math:`r = w/(w + \kappa)`, and
everything is made of sums of non-negative terms

.. math:: D_{ab} = \sum_i r_i^a (1-r_i)^b, \qquad
    T_{ab} = \sum_i \tau_i\, r_i^a (1-r_i)^b, \qquad \tau_i = t_i/(w_i\rho),

where the part of the field that no feature shows, of weight :math:`1 - \sum_i\tau_i`, counts as a
direction with r = 0. In the letters of ``docs/theory.md`` these are :math:`D_1 = D_{20} + D_{11}`,
:math:`D_2 = D_{20}`, :math:`T_1 = T_{20} + T_{11}`, :math:`T_2 = T_{20}`, their complements
:math:`U_1 = 1 - T_1 = T_{02} + T_{11}` and :math:`U_2 = 1 - 2T_1 + T_2 = T_{02}`, and :math:`W =
T_2 - T_1^2`, with nothing subtracted. Their logarithmic derivatives by :math:`\kappa` are alike:
:math:`D_{20}' = -2D_{21}`, :math:`T_{20}' = -2T_{21}`, :math:`T_{02}' = 2T_{12}`. Two more are
derivatives by a boost of the latent data, which the noise of activations does not share.

A projection (`projected`) and an activation (`activated`) transform the sums of the data below into
those of the features above. The sums of two different arguments are in ``pair_sums``.

Numbers of directions, and :math:`1/\kappa`, are in units of the number p of features, so that p
itself drops out: ``k`` below is :math:`p\kappa`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from hiddenmanifold.arrays import Array, Integers

FAINT = 1e-100
"""The k that represents the limit k → 0."""
Kappas = tuple[float, float, float]
"""The coefficients κ0, κ1, κ⋆ of an activation."""
SumsBelow = Callable[[Array, Integers], "Sums"]
"""The sums of some features, at any k for some of the points."""


@dataclass(frozen=True)
class Sums:
    """The sums of some features at a batch of k, arrays (points,).

    ``dW`` is dW/dlog k. If the variance of latent data is multiplied by β, ``B`` and ``A`` are the
    derivatives of D1 and T1 by log β, and ``S`` is T1 - A without cancellation. ``left`` is what
    directions of positive eigenvalue contribute to `unlearned`.
    """

    D20: Array
    D02: Array
    D21: Array
    D12: Array
    T20: Array
    T02: Array
    T21: Array
    T12: Array
    W: Array
    dW: Array
    B: Array
    A: Array
    S: Array
    left: Array

    @classmethod
    def of_nothing(cls, k: Array, p: Array | float) -> Sums:
        """The sums of p features that are zero: r = 0 in every direction, and all is hidden."""
        zero, one = np.zeros_like(k), np.ones_like(k)
        sums = dict.fromkeys((column.name for column in fields(cls)), zero)
        return cls(**sums | {"D02": p * one, "T02": one})

    @property
    def D11(self) -> Array:
        """Sum of r(1 - r), which is -dD1/dlog k."""
        return self.D21 + self.D12

    @property
    def T11(self) -> Array:
        """The same over the teacher's measure, -dT1/dlog k."""
        return self.T21 + self.T12

    @property
    def D1(self) -> Array:
        """Degrees of freedom, sum of r."""
        return self.D20 + self.D11

    @property
    def unlearned(self) -> Array:
        """Sum of 1 - r: the number of directions that are not learned."""
        return self.D02 + self.D11

    @property
    def T1(self) -> Array:
        """Part of the teacher's field that is seen."""
        return self.T20 + self.T11

    @property
    def U1(self) -> Array:
        """Part of the teacher's field that is not seen."""
        return self.T02 + self.T11

    def in_units(self, p: Array) -> Sums:
        """The same, if directions were counted in units of p of them."""
        names = ("D20", "D02", "D21", "D12", "B", "left")
        return replace(self, **{name: p * getattr(self, name) for name in names})


def white(k: Array, d: Array) -> Sums:
    """The sums of white data of dimension d, in which the teacher's field is linear."""
    kd = k * d
    r, s = 1.0 / (1.0 + kd), kd / (1.0 + kd)
    zero = np.zeros_like(r)
    a, b, c, e = r * r, s * s, r * r * s, r * s * s
    D21, D12 = d * c, d * e
    return Sums(
        D20=d * a,
        D02=d * b,
        D21=D21,
        D12=D12,
        T20=a,
        T02=b,
        T21=c,
        T12=e,
        W=zero,
        dW=zero,
        B=D21 + D12,
        A=c + e,
        S=a,
        left=d * s,
    )


def discrete(
    k: Array, w: Array, share: Array, tau: Array, hidden: Array | float | None = None
) -> Sums:
    """Directions of given eigenvalues, those of eigenvalue zero left out.

    Parameters
    ----------
    k : array (points,)
        Where to evaluate.
    w, share, tau : arrays (atoms,) or (points, atoms)
        Positive eigenvalues in units of 1/p, what part of the p directions has each, and what part
        of the teacher's field; the rest of the directions has eigenvalue zero, the rest of the
        field is hidden.
    hidden : float, optional
        The hidden rest of the field, if it is known more precisely than from the sum of `tau`.
    """
    with np.errstate(over="ignore"):
        r = 1.0 / (1.0 + k[:, None] / w)
    s = 1.0 / (1.0 + w / k[:, None])
    powers = (r * r, s * s, r * r * s, r * s * s)
    D20, D02, D21, D12 = ((share * part).sum(-1) for part in powers)
    T20, T02, T21, T12 = ((tau * part).sum(-1) for part in powers)
    blank = remainder(share)
    hidden = remainder(tau) if hidden is None else hidden
    # of r and 1 - r, the variance is that of the smaller one: its deviations keep their digits
    T1, U1 = (tau * r).sum(-1), (tau * s).sum(-1) + hidden
    away = np.where((T1 > U1)[:, None], s - U1[:, None], r - T1[:, None]) ** 2
    W = (tau * away).sum(-1) + hidden * T1**2
    dW = 2.0 * (tau * away * (r - U1[:, None])).sum(-1) - 2.0 * hidden * T1**2 * U1
    return Sums(
        D20=D20,
        D02=D02 + blank,
        D21=D21,
        D12=D12,
        T20=T20,
        T02=T02 + hidden,
        T21=T21,
        T12=T12,
        W=W,
        dW=dW,
        B=D21 + D12,
        A=T21 + T12,
        S=T20,
        left=(share * s).sum(-1),
    )


def remainder(parts: Array) -> Array:
    """One minus the sum of the parts; exactly zero if the difference is only rounding."""
    rest = 1.0 - parts.sum(-1)
    return np.where(rest < sum_rounding(parts.shape[-1]), 0.0, rest)


def sum_rounding(terms: int) -> float:
    """Relative rounding of a sum of rounded terms, added in pairs."""
    return float((4.0 + np.log2(max(terms, 1))) * np.finfo(float).eps)


@dataclass(frozen=True)
class Response:
    r"""How much of each direction of the data a fit follows, on average over draws of its features.

    The same :math:`r` as in the sums, for the directions of the data below the features. Where
    features are random, those of two independent draws have nothing else in common.

    Attributes
    ----------
    share, tau : arrays (atoms,)
        What part of the d directions of the data each atom is, and what part of the teacher's
        field.
    hidden : float
        The part of the field that no direction shows.
    r, s : arrays (points, atoms)
        The response, and 1 - r.
    """

    share: Array
    tau: Array
    hidden: float
    r: Array
    s: Array

    @classmethod
    def of_white(cls, r: Array, s: Array) -> Response:
        """The response of white data, whose directions are all alike."""
        one = np.ones(1)
        return cls(one, one, 0.0, r[:, None], s[:, None])

    @property
    def T1(self) -> Array:
        """Part of the teacher's field that is seen."""
        return self.r @ self.tau

    @property
    def U1(self) -> Array:
        """Part of the teacher's field that is not seen."""
        return self.s @ self.tau + self.hidden


@dataclass(frozen=True)
class CrossSums:
    r"""Sums over products of the responses of two fits, arrays (points,).

    ``D2`` is the sum of :math:`rr'` over directions, in units of p; over the teacher's measure
    ``T2`` is that of :math:`rr'`, ``U2`` that of :math:`(1-r)(1-r')`, and ``W`` is :math:`T_2 -
    T_1T_1'`, with nothing subtracted.
    """

    D2: Array
    T2: Array
    U2: Array
    W: Array

    @classmethod
    def of_equal(cls, sums: Sums) -> CrossSums:
        """Those of two fits on the same features, whose responses are the same."""
        return cls(sums.D20, sums.T20, sums.T02, sums.W)

    @classmethod
    def of_independent(cls, first: Response, second: Response, gamma: Array) -> CrossSums:
        """Those of fits on independent features of the same data, at d/p."""
        tau, hidden = first.tau, first.hidden
        T1, U1, T1_, U1_ = first.T1, first.U1, second.T1, second.U1
        mostly = (T1 > U1)[:, None]  # deviations of the smaller of r and 1 - r keep their digits
        away = np.where(mostly, first.s - U1[:, None], first.r - T1[:, None])
        away_ = np.where(mostly, second.s - U1_[:, None], second.r - T1_[:, None])
        return cls(
            gamma * ((first.r * second.r) @ first.share),
            (first.r * second.r) @ tau,
            (first.s * second.s) @ tau + hidden,
            (away * away_) @ tau + hidden * T1 * T1_,
        )


def projected(inner: Sums, D02: Array, g: Array, b: Array | float = 0.0) -> Sums:
    r"""Random linear features of a kernel, at the k that belongs to its argument :math:`\gamma`.

    A projection that is invariant under rotations of the kernel's features leaves
    :math:`D_1(\kappa) = D_1(\gamma)` and likewise :math:`T_1`; only the argument is stretched, by
    :math:`d\log\kappa/d\log\gamma = 1 + g`.

    Parameters
    ----------
    inner : Sums
        The sums of the kernel at its argument.
    D02 : array
        The sum D02 of the features, which depends on their number.
    g, b : arrays
        The stretching is 1 + g, with dg/dlog γ = g (ε - g - 2b), ε = dlog D11/dlog γ.
    """
    f = 1.0 / (1.0 + g)
    E, C = inner.D11, inner.T11
    T1, U1 = inner.T20 + C, inner.T02 + C
    xi, eta, bright = inner.D21 / E, inner.D12 / E, inner.B / E
    ff, fg = f * f, f * g
    fgE, fgC = fg * E, fg * C
    df = -ff * g * (xi - eta - g - 2.0 * b)
    return Sums(
        D20=inner.D20 + fgE,
        D02=D02,
        D21=f * (ff * inner.D21 + fgE * (1.0 + f * b)),
        D12=ff * (f * inner.D12 + fgE * (1.0 - b)),
        T20=inner.T20 + fgC,
        T02=inner.T02 + fgC,
        T21=f * (f * inner.T21 + fgC * (f * (eta + g + b))),
        T12=ff * (inner.T12 + fgC * (xi - b)),
        W=fg * U1 * T1 + f * inner.W,
        dW=f * (df * (inner.W - U1 * T1) + fgC * (T1 - U1) + f * inner.dW),
        B=f * inner.B,
        A=(inner.A - C * bright) + f * C * bright,
        S=inner.S + fgC * bright,
        left=np.minimum(inner.left, D02 + f * E),
    )


def activated(
    inner: Callable[[Array], Sums], k: Array, kappas: Kappas, p: Array | float = 1.0
) -> Sums:
    r"""The sums of :math:`\kappa_0 + \kappa_1 h + \kappa_\star z` with independent noise z.

    The sums of the p features h are given.

    Each direction of h keeps :math:`1 - r = \varphi(1 - \tilde r)`, with :math:`\tilde r` taken at
    :math:`\tilde k = (k + \kappa_\star^2/p)/\kappa_1^2` and :math:`\varphi = k/(k +
    \kappa_\star^2/p)`.
    """
    _, kappa_1, kappa_star = kappas
    noise = kappa_star**2 / p
    phi, bar = k / (k + noise), noise / (k + noise)
    m = Sums.of_nothing(k, p) if kappa_1 == 0.0 else inner((k + noise) / kappa_1**2)
    E, C = m.D11, m.T11
    T1, U1, rest = m.T20 + C, m.T02 + C, m.D02 + E
    phi2, bar2 = phi * phi, bar * bar
    return Sums(
        D20=bar2 * p + 2.0 * phi * bar * (m.D20 + E) + phi2 * m.D20,
        D02=phi2 * m.D02,
        D21=phi * (bar2 * rest + 2.0 * phi * bar * E + phi2 * m.D21),
        D12=phi2 * (bar * m.D02 + phi * m.D12),
        T20=bar * T1 + phi * m.T20,
        T02=bar * U1 + phi * m.T02,
        T21=phi * (m.T21 + bar * m.T12),
        T12=phi2 * m.T12,
        W=bar * U1 * T1 + phi * m.W,
        dW=phi * (bar * (m.W - U1 * T1 + C * (T1 - U1)) + phi * m.dW),
        B=phi * m.B,
        A=m.A,
        S=m.S,
        left=phi * rest if kappa_star else m.left,
    )
