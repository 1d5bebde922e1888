"""Test and training errors, from the law of predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold import compiled
from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import stacked_rule
from hiddenmanifold.teachers import BinaryTeacher
from hiddenmanifold.teachers.averaging import (
    DOWNWARDS,
    ORDER,
    below_cut,
    edges_along,
    law_on_panels,
)
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.scores.square_errors import square_errors
from hiddenmanifold.weights import EQUAL, WeightLaw

if TYPE_CHECKING:
    from hiddenmanifold.theory.features_side import Overlaps
    from hiddenmanifold.theory.labels_side.channel import Channel

CONSTANT = 1e-48
"""A prediction that varies less than this is constant (see `channel.COLLAPSED`)."""


@dataclass(frozen=True)
class Predictions:
    """The law of predictions at a batch of points, arrays (points,).

    Attributes
    ----------
    V : array
        Width of the proximal map that training samples obey.
    deviation, intercept : arrays
        Standard deviation of the prediction (of the residual, for real labels), and its mean.
    slope, V0 : arrays
        The teacher's field given the standardised prediction ξ has the mean slope ξ and the
        variance V0.
    """

    V: Array
    deviation: Array
    intercept: Array
    slope: Array
    V0: Array

    @classmethod
    def of(cls, channel: Channel, x: Array) -> Predictions:
        """The law at the unknowns `x` of a channel."""
        slope, V0 = channel.teacher_field(x)
        return cls(np.exp(x[:, 0]), np.exp(0.5 * x[:, 1]), channel.intercept(x), slope, V0)

    def guessing(self, channel: Channel) -> Predictions:
        """The same; a prediction that a corner of the loss holds at zero guesses like a coin."""
        if len(channel.loss.slopes_at_zero) < 2 or channel.constant_prediction:
            return self
        held = self.deviation < CONSTANT  # w has no direction
        return replace(
            self,
            V=np.where(held, 0.0, self.V),
            intercept=np.where(held, 0.0, self.intercept),
            slope=np.where(held, 0.0, self.slope),
            V0=np.where(held, channel.rho, self.V0),
        )


def test_errors(channel: Channel, x: Array) -> Columns:
    """Test errors against noisy and clean labels, as functions of the unknowns alone."""
    if channel.teacher.task is Task.REGRESSION or channel.prediction is not None:
        return square_errors(channel, x)
    return _test_errors(channel.teacher, Predictions.of(channel, x).guessing(channel))


def errors(channel: Channel, x: Array, overlaps: Overlaps) -> Columns:
    """The same with all digits that the overlaps have, and errors on the training set."""
    if isinstance(channel, LinearChannel):
        # the overlaps resolve an excess that is smaller than the rounding of the noise
        law = channel.teacher.law
        clean = overlaps.excess + (channel.intercept(x) - law.mean) ** 2
        return {"generalisation_error": clean + law.variance, "clean_error": clean}
    if channel.teacher.task is Task.REGRESSION or channel.prediction is not None:
        return square_errors(channel, x)
    at = Predictions.of(channel, x).guessing(channel)
    training = np.zeros(len(x))
    for weight, probability in zip(*channel.counts, strict=True):
        counted = replace(at, V=weight * at.V)
        training += probability * training_error(
            channel.teacher, channel.loss, counted, channel.weights
        )
    return {**_test_errors(channel.teacher, at), "training_error": training}


def _test_errors(teacher: BinaryTeacher, at: Predictions) -> Columns:
    """Errors of labels ±1 against noisy and clean ones."""
    clean, centred = teacher.clean, at.intercept == 0.0
    bias = np.divide(at.intercept, at.deviation, where=~centred, out=np.zeros(len(centred)))
    error = test_error(teacher, at.slope, at.V0, bias)
    same = clean == teacher
    return {
        "generalisation_error": error,
        "clean_error": error.copy() if same else test_error(clean, at.slope, at.V0, bias),
    }


def misclassified(teacher: BinaryTeacher, slope: Array, V0: Array, cuts: dict[int, Array]) -> Array:
    r"""Probability :math:`\sum_y E_\xi[1(\xi < \text{cut}_y) Z_y(x)]` of the wrong side.

    Parameters
    ----------
    teacher : BinaryTeacher
        The rule of the labels.
    slope, V0 : arrays (points,)
        Slope and remaining variance of the teacher's field given the prediction: x = slope ξ.
    cuts : dict
        For each label, the standardised field along it below which a sample counts as wrong.

    Returns
    -------
    array (points,)
        NaN where the integral did not settle.
    """
    total = np.zeros(len(slope))
    for y, cut in cuts.items():
        share = teacher.below(y, cut, slope, V0)
        total += _share(teacher, y, cut, slope, V0) if share is None else share
    return total


def _share(teacher: BinaryTeacher, y: int, cut: Array, slope: Array, V0: Array) -> Array:
    """The part of a label, on panels of the prediction."""
    edges = np.clip(edges_along(teacher, y, slope, V0, DOWNWARDS), *below_cut(cut))
    law = teacher.probits(y)
    if law is not None and compiled.engine() == "compiled":
        return compiled.shares(law, slope, V0, edges, stacked_rule(ORDER, 0))
    panels, (Z, *_) = law_on_panels(teacher, y, slope, V0, edges, rule=(ORDER, 0))
    return panels.sum(Z)


def test_error(teacher: BinaryTeacher, slope: Array, V0: Array, bias: Array) -> Array:
    """Probability that the sign of the prediction differs from a fresh label.

    `bias` is the intercept in units of the prediction's deviation.
    """
    closed = teacher.error_without_bias(slope, V0) if not np.any(bias) else None
    if closed is not None:
        return closed
    return misclassified(teacher, slope, V0, {1: -bias, -1: bias})


def training_error(
    teacher: BinaryTeacher, loss: Loss, at: Predictions, weights: WeightLaw = EQUAL
) -> Array:
    """Fraction of training samples with a proximal margin below zero, and half of those at it."""
    found = []
    for steepness in loss.slopes_at_zero:
        push = at.V * float(steepness)
        if teacher.symmetric and weights.alike and not np.any(at.intercept):
            cuts = {1: -push / at.deviation}
            found.append(2 * misclassified(teacher, at.slope, at.V0, cuts))
        else:
            cuts = {
                y: (-weights.of_class(y) * push - y * at.intercept) / at.deviation for y in (1, -1)
            }
            found.append(misclassified(teacher, at.slope, at.V0, cuts))
    share: Array = np.mean(found, axis=0)
    return share
