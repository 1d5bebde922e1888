"""What can be asked of a classifier or a regression beside its errors, in theory and simulation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hiddenmanifold.checks import Task, did_you_mean
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.simulation import test_scores
from hiddenmanifold.theory.scores import calibration, distribution

TWO_CLASSES = frozenset({Task.CLASSIFICATION})


@dataclass(frozen=True)
class Observable:
    """A quantity that follows from the scores and labels of new samples.

    Attributes
    ----------
    name, long_name : str
        What it is called in a dataset, and what it means.
    expected : callable
        Its value in the limit, from the law of the scores.
    measured : callable
        Its value at finite size, from the scores of a fit on fresh samples.
    tasks : frozenset of Task
        The kinds of labels for which it makes sense.
    less_is_better : bool
        Whether a regularisation can be chosen that makes it least.
    """

    name: str
    long_name: str
    expected: distribution.Observed
    measured: test_scores.Measure
    tasks: frozenset[Task] = TWO_CLASSES
    less_is_better: bool = False


OBSERVABLES = (
    Observable(
        "test_loss",
        "mean loss of new samples, without the penalty",
        distribution.test_loss,
        test_scores.test_loss,
        tasks=frozenset(Task),
        less_is_better=True,
    ),
    Observable(
        "auc",
        "area under the ROC curve: probability that a random new sample of label +1 scores above "
        "one of label -1, ties ½",
        distribution.auc,
        test_scores.auc,
    ),
    Observable(
        "calibration_error",
        "mean over new samples of |1/(1 + exp(-f)) - P(y = +1 | f)|",
        calibration.calibration_error,
        test_scores.calibration_error,
        less_is_better=True,
    ),
    Observable(
        "best_temperature",
        "the T of least mean log-loss log(1 + exp(-y f/T)) of new samples; inf if the scores say "
        "nothing of the labels",
        calibration.best_temperature,
        test_scores.best_temperature,
    ),
)
REGISTRY = {observable.name: observable for observable in OBSERVABLES}


def chosen(model: Model, names: str | Iterable[str]) -> tuple[Observable, ...]:
    """The observables of some names, one or many, each once.

    Raises
    ------
    InvalidArgumentError
        For a name that is unknown, or that makes no sense for the model's labels.
    """
    try:
        found = dict.fromkeys([names] if isinstance(names, str) else names)
    except TypeError:
        raise InvalidArgumentError("observables", names, "a sequence of names") from None
    for name in found:
        if name not in REGISTRY:
            known = ", ".join(map(repr, REGISTRY))
            allowed = f"one of {known}{did_you_mean(name, REGISTRY)}"
            raise InvalidArgumentError("observables", name, allowed)
        if model.task not in REGISTRY[name].tasks:
            raise InvalidArgumentError.because(
                "observables",
                f"= {name!r} needs two classes",
                f"{model.teacher} gives real labels",
            )
    return tuple(REGISTRY[name] for name in found)
