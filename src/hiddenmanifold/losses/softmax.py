"""The loss of multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

from hiddenmanifold.checks import Task
from hiddenmanifold.losses.base import ConvexLoss


@dataclass(frozen=True)
class Softmax(ConvexLoss):
    r"""Cross-entropy of K scores, :math:`-\log(e^{f_y}/\sum_k e^{f_k})`.

    The penalty is :math:`\tfrac\lambda2\sum_k |w_k|^2`: with two classes this is logistic
    regression with half of λ.
    """

    tasks = frozenset({Task.CLASSES})
