"""Which losses fit which labels, and the scheme that makes several classes of labels ±1."""

from __future__ import annotations

from hiddenmanifold.checks import Task
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError
from hiddenmanifold.losses.base import ConvexLoss, Loss

ONE_VS_REST = "one-vs-rest"
"""The scheme of K fits, of each class against all others."""


def check_scheme_name(scheme: str | None) -> None:
    """Raise unless a scheme is a known one, or None."""
    if scheme not in (None, ONE_VS_REST):
        raise InvalidArgumentError("scheme", scheme, f"{ONE_VS_REST!r}, or left out")


def check_task(loss: ConvexLoss, task: Task, teacher: object, scheme: str | None) -> None:
    """Raise unless a loss, with a scheme or without, makes sense for the labels of a teacher."""
    if scheme is not None:
        _check_scheme(loss, task, teacher, scheme)
    elif task not in loss.tasks:
        both = task is Task.CLASSES and Task.CLASSIFICATION in loss.tasks
        remedy = f"; fit each class against all others, scheme={ONE_VS_REST!r}" if both else ""
        raise IncompatibleIngredientsError(
            f"loss {loss} and teacher {teacher} do not fit together: the teacher gives labels for "
            f"{task}, the loss is one for {' and '.join(loss.tasks)}{remedy}"
        )


def _check_scheme(loss: ConvexLoss, task: Task, teacher: object, scheme: str) -> None:
    """Raise unless the fits of one class against all others make sense."""
    if task is not Task.CLASSES:
        raise IncompatibleIngredientsError(
            f"scheme {scheme!r} and teacher {teacher} do not fit together: it is for labels of "
            "several classes, as those of teachers.Classes"
        )
    if task in loss.tasks:
        raise IncompatibleIngredientsError(
            f"scheme {scheme!r} and loss {loss} do not fit together: the square loss fits one-hot "
            "targets, and softmax all scores, without a scheme"
        )
    if Task.CLASSIFICATION not in loss.tasks or not isinstance(loss, Loss):
        raise IncompatibleIngredientsError(
            f"scheme {scheme!r} and loss {loss} do not fit together: it needs a loss for labels "
            "±1, as logistic or hinge"
        )
