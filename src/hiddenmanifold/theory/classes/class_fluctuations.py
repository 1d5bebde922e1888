r"""What matters at finite size: fluctuations of intercepts and of class means.

They are of order :math:`1/(n\pi_c)`, and the variance of a score is small as well: errors of many
classes are larger than in the limit by several per cent. Everything is of first order in 1/n:

- sums over the spectrum of all samples, :math:`\Omega = \Sigma + \sum_c\pi_c\mu_c\mu_c^\top`, in
  place of that within classes, and n - 1 samples if an intercept is fitted;
- a covariance of the scores of its own in each class.

With :math:`T^\Omega = T_1(1 + \Pi T_1)^{-1}` in place of T, the sums of all samples are
:math:`D_1^\Omega = D_1 + \operatorname{tr}(1 + \Pi T_1)^{-1}\Pi(T_1 - T_2)`, and
:math:`D_2^\Omega, T_2^\Omega` follow from derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.theory.classes.label_functions import LabelFunctions, LabelSums


@dataclass(frozen=True)
class Counts:
    """Numbers of samples and features of a batch of points, in the units of the sums."""

    n: Array
    p: Array

    def __getitem__(self, some: Integers) -> Counts:
        return Counts(self.n[some], self.p[some])


def added_D1(labels: LabelSums, p: Array) -> Array:
    """What the class means add to D1."""
    found: Array = _trace(labels.kept @ labels.T11) / p
    return found


def added_D2(labels: LabelSums, p: Array) -> Array:
    """What the class means add to D2 = D1 + dD1/dlog k."""
    kept, T11 = labels.kept, labels.T11
    fall = kept @ T11
    found: Array = (2.0 * _trace(kept @ labels.T21) + _trace(fall @ fall)) / p
    return found


def inner_T2(labels: LabelSums) -> Array:
    """T2 of all samples, in contrasts."""
    kept, T1 = labels.kept, labels.T1
    return kept @ (labels.T2 + T1 @ T1) @ kept


def added_covariance(
    labels: LabelFunctions, sums: LabelSums, counts: Counts, Q: Array, R: Array
) -> Array:
    r"""What fluctuations add to the covariance of the scores in each class (points, K, K, K).

    .. math:: \frac1n\Big[\sum_{c'}\pi_{c'}(r_{c'}r_{c'}^\top + Q)(1 + T^\Omega_{c'c})^2 +
        R\,\big((1 + T_1\Pi)^{-1} T_2 (1 + \Pi T_1)^{-1}\big)_{cc}\Big]

    with the mean residual :math:`r_c` of class c, a column of J - M.
    """
    kept = sums.kept
    roots = np.sqrt(labels.shares)
    wide = labels.basis / roots[:, None]
    residual = labels.means(kept)  # (points, class, score)
    outer = residual[..., None] * residual[..., None, :] + Q[:, None]
    pulled = 1.0 + wide @ (sums.T1 @ kept) @ wide.T
    weights = labels.shares[:, None] * pulled**2  # from one class (first) to another
    spread = np.einsum("pab,pakl->pbkl", weights, outer)
    noise = labels.diagonal(kept @ sums.T2 @ kept)[..., None, None] * R[:, None]
    found: Array = (spread + noise) / counts.n[:, None, None, None]
    return found


def _trace(matrices: Array) -> Array:
    found: Array = np.trace(matrices, axis1=1, axis2=2)
    return found
