"""The law of the K scores of new samples, and the rates of errors that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.teachers import ClassTeacher
from hiddenmanifold.theory.classes.score_rates import rates, wrong_rates

TOPS = 5
"""Most ranks k for which top-k errors are predicted."""


@dataclass(frozen=True)
class ScoreLaw:
    """Scores of samples of class c are normal around intercept + shift[c], at a batch of points.

    Attributes
    ----------
    intercept : array (points, K)
        The intercepts.
    shift : array (points, K, K)
        Means of the scores (last) in each class without the intercept.
    covariance : array (points, K, K, K)
        Covariance of the scores in each class.
    """

    intercept: Array
    shift: Array
    covariance: Array

    @property
    def mean(self) -> Array:
        """Means of the scores in each class (points, class, score)."""
        found: Array = self.intercept[:, None] + self.shift
        return found

    def of_classes(self, classes: Integers) -> tuple[Integers, Array, Array]:
        """Numbers, means and covariances of the laws of some classes, one after another.

        Means are those without an intercept common to all scores, so that equal ones leave small
        differences their digits.
        """
        K = self.intercept.shape[1]
        own = np.tile(classes, len(self.intercept))
        mean = (self.intercept - self.intercept[:, :1])[:, None] + self.shift[:, classes]
        covariance = self.covariance[:, classes]
        return own, mean.reshape(-1, K), covariance.reshape(-1, K, K)

    def pulled(self, share: Array, left: Array) -> ScoreLaw:
        """Scores that have moved by a share (points,) of the way to one-hot targets.

        What is `left` is one minus the share.
        """
        targets = share[:, None, None] * np.eye(self.shift.shape[1])
        return ScoreLaw(
            left[:, None] * self.intercept,
            left[:, None, None] * self.shift + targets,
            left[:, None, None, None] ** 2 * self.covariance,
        )


@dataclass(frozen=True)
class FittedScores:
    """The scores of a fit at a batch of points, and how well its equations are solved.

    Attributes
    ----------
    law, training_law : ScoreLaw
        The scores of new samples and of training samples.
    covariance : array (points, K, K)
        Covariance of the scores within a class, of one fit; at finite size that of the law is over
        fits, too, and another one in each class.
    test_loss, training_loss, q_w : arrays (points,)
        Mean loss of new samples; the objective over n; the squared length of all weights over p.
    certificate : Columns
        Status and error estimates.
    error : array (points,)
        Estimated error of the misclassification rate due to that of the law.
    mean_square_error : array (points,), optional
        Mean over new samples of |y - f|², with one-hot y.
    training_error, training_error_error : arrays (points,), optional
        The rate of errors of training samples, where it does not follow from `training_law`, and
        its error.
    """

    law: ScoreLaw
    training_law: ScoreLaw
    covariance: Array
    test_loss: Array
    training_loss: Array
    q_w: Array
    certificate: Columns
    error: Array | float = 0.0
    mean_square_error: Array | None = None
    training_error: Array | None = None
    training_error_error: Array | float = 0.0


def misclassified(law: ScoreLaw, teacher: ClassTeacher) -> Array:
    """The rate of errors alone, as a smooth function of the law."""
    classes = _different(teacher)
    wrong = wrong_rates(*law.of_classes(classes)).reshape(-1, len(classes))
    found: Array = wrong @ (teacher.shares[classes] / teacher.shares[classes].sum())
    return found


def _different(teacher: ClassTeacher) -> Integers:
    """Numbers of the classes whose errors differ: if all are alike, the first."""
    return np.arange(1 if teacher.alike else teacher.number)


def error_rates(law: ScoreLaw, teacher: ClassTeacher) -> Columns:
    """Rates of errors of the class of highest score, by class and in all."""
    points, K = law.intercept.shape
    classes = _different(teacher)
    found = rates(*law.of_classes(classes), tops=min(TOPS, K - 1))
    shares = teacher.shares[classes] / teacher.shares[classes].sum()
    wrong, errors = (a.reshape(points, -1) for a in (found.wrong, found.wrong_error))
    beyond = found.beyond.reshape(points, len(classes), -1)
    confusion = found.highest.reshape(points, len(classes), K)
    if teacher.alike:
        confusion = np.where(
            np.eye(K), confusion[:, :, :1], confusion[:, :, 1:].mean(2, keepdims=True)
        )
    error = wrong @ shares
    return {
        "generalisation_error": error,
        "clean_error": error.copy(),  # no label is noisy
        "class_error": np.broadcast_to(wrong, (points, K)).copy(),
        "confusion": confusion,
        "top_error": np.einsum("pck,c->pk", beyond, shares),
        # the classes have points of their own: their errors are independent
        "integration_error": np.sqrt(((errors * shares) ** 2).sum(1)),
        "rates_integration_error": found.error.reshape(points, -1).max(1),
    }
