"""The kinds of labels, and the channel of each with a loss."""

from __future__ import annotations

from dataclasses import replace

from hiddenmanifold.checks import Task
from hiddenmanifold.losses import ConvexLoss, Loss
from hiddenmanifold.losses.predictors import Identity
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.teachers import Linear, Teacher
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.labels_side.label_table import TableChannel
from hiddenmanifold.theory.labels_side.linear_labels import LinearChannel
from hiddenmanifold.theory.labels_side.number_channel import RowsChannel
from hiddenmanifold.theory.labels_side.two_labels import BinaryChannel, ClassChannel


def channel_of(model: Model, copies: Copies = ONCE) -> Channel:
    """The channel of a model's labels and loss, in closed form if there is one.

    Every sample may be drawn several times, or not at all. With weights of its classes the square
    loss has no closed form.
    """
    classes = model.task is Task.CLASSIFICATION
    usual = model.counts_errors if classes else model.prediction == Identity()
    prediction = None if usual else model.prediction
    kind = kind_of(model.teacher, model.loss, linear=usual)
    weights, free = model.weight_law, model.free_intercept
    closed = model.loss.quadratic and weights.alike
    channel = kind(model.teacher, model.loss, free, closed, prediction, copies, weights)
    return replace(channel, free_intercept=free and not channel.centred)


def kind_of(teacher: Teacher, loss: ConvexLoss, *, linear: bool = True) -> type[Channel]:
    """The kind of channel that the labels of a teacher have with a loss.

    Unless `linear`, predictions need more than the law of the residual of linear labels.
    """
    if teacher.task is Task.CLASSIFICATION:
        return ClassChannel if teacher.displaces else BinaryChannel
    if isinstance(teacher, Linear) and linear:
        return LinearChannel
    return RowsChannel if isinstance(loss, Loss) else TableChannel
