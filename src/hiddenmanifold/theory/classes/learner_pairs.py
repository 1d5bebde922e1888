r"""How the scores of K binary fits of one class against all others vary together.

The covariance of the scores of fits k and l within classes solves one scalar equation,

.. math:: Q_{kl} = \frac{D_2(k_k, k_l)}{\alpha e_{1,k}e_{1,l}}\,E_{2,kl} +
    a_k^\top T_2(k_k, k_l)a_l, \qquad
    E_{2,kl} = \sum_c\pi_c\sum_jh^{kc}_jh^{lc}_j\left(\frac{Q_{kl}}{\sqrt{Q_kQ_l}}\right)^j

with the coefficients :math:`h_j = E[g\,\mathrm{He}_j(\xi)]/\sqrt{j!}` of the gradient of each fit
and class in Hermite polynomials of the score (Mehler), which are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.numerics.special import normal_density
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.one_vs_rest import (
    FINER,
    LearnerEquations,
    LearnerState,
    LearnerTurn,
)
from hiddenmanifold.theory.labels_side.proximal_curve import proximal_curve

TERMS = 100
"""Coefficients: of a jump they fall like the power -5/4, and the sum like that of r besides."""
LAST = 20
"""Terms whose size tells what is left out."""
HALVINGS = 52
"""Of the range of a correlation: to rounding."""


def hermite_coefficients(equations: LearnerEquations, x: LearnerState) -> Array:
    """The coefficients (K, terms) of the gradient in each class."""
    field = equations.field(x)
    nodes = proximal_curve(equations.loss, field, np.empty((len(field.V), 0)), FINER)
    y = equations.y[nodes.row][:, None]
    xi, weight = y * nodes.xi, nodes.mass * normal_density(nodes.xi) * y * nodes.h
    found = np.zeros((len(field.V), TERMS))
    last, current = np.zeros_like(xi), np.ones_like(xi)
    for j in range(TERMS):
        np.add.at(found[:, j], nodes.row, (weight * current).sum(1))
        following = (xi * current - np.sqrt(j) * last) / np.sqrt(j + 1.0)
        last, current = current, following
    return found


def learner_covariance(
    equations: Sequence[LearnerEquations],
    states: Sequence[LearnerState],
    turns: Sequence[LearnerTurn],
) -> tuple[Array, Array, float]:
    """Covariance of all scores within classes, E2, and the size of the last terms of its sums."""
    first = equations[0]
    labels, K = first.labels, len(states)
    h = np.array([hermite_coefficients(e, x) for e, x in zip(equations, states, strict=True)])
    products = np.einsum("c,kcj,lcj->klj", labels.shares, h, h)
    k, e1 = (np.array([getattr(turn, name) for turn in turns]) for name in ("k", "e1"))
    D2, T2 = labels.pair(first.features, k, first.gamma)
    a = np.array([turn.a for turn in turns])
    signal = np.einsum("ka,klab,lb->kl", a, T2, a)
    scale = np.sqrt([x.Q for x in states])
    units = np.outer(scale, scale)
    strength = D2 / (first.alpha * np.outer(e1, e1) * units)
    orders = np.arange(TERMS)

    def excess(r: Array) -> Array:
        """How far the equations take some correlations, which they do by less than 1 for 1."""
        found: Array = strength * (products * r[..., None] ** orders).sum(-1) + signal / units - r
        return found

    low, high = -np.ones((K, K)), np.ones((K, K))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        up = excess(middle) > 0.0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    r = 0.5 * (low + high)
    if K == 2:  # noqa: PLR2004 - the fits are each other's mirror image
        r[:] = -1.0
    np.fill_diagonal(r, 1.0)
    last = np.abs(strength[..., None] * products * r[..., None] ** orders)[..., -LAST:].sum(-1)
    beyond = np.where(np.abs(r) < 1.0, last, 0.0).max()
    E2 = (products * r[..., None] ** orders).sum(-1)
    E2[np.diag_indices(K)] = [turn.e2 for turn in turns]
    return r * units, E2, float(beyond)


def fluctuations(
    labels: LabelFunctions,
    equations: LearnerEquations,
    turns: Sequence[LearnerTurn],
    E2: Array,
) -> Array:
    r"""P times what fluctuations at finite size add to the covariance in each class (K, K, K).

    It is :math:`N_{kl}(1 + T^\Omega_{2,cc}(k_k, k_l))` with the noise N of the weights.
    """
    k, e1 = (np.array([getattr(turn, name) for turn in turns]) for name in ("k", "e1"))
    noise = E2 / (equations.alpha * np.outer(e1, e1))
    found: Array = noise * (1.0 + labels.pulled(equations.features, k, equations.gamma))
    return found
