"""Weights of the rows of a table: how many times the loss of each counts in a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, finite_vector
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.weights import Balanced, ByClass, Weights


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of classes, which follow from the labels of the rows that are fitted, and of rows.

    Attributes
    ----------
    of_classes : Weights, optional
        Those of two classes.
    of_rows : array (N,), optional
        Those of each row, by which the others are multiplied.
    """

    of_classes: Weights | None = None
    of_rows: Array | None = None

    def of(self, y: Array) -> Array:
        """The weights of rows with labels y."""
        one = np.ones(len(y)) if self.of_rows is None else self.of_rows
        if self.of_classes is None:
            return one
        return one * self.of_classes.of(y, np.random.default_rng(0))

    def part(self, rows: Any) -> RowWeights:
        """The weights of some of the rows."""
        return replace(self, of_rows=None if self.of_rows is None else self.of_rows[rows])

    @property
    def told(self) -> str:
        """Whose weights they are, in a few words."""
        balanced = isinstance(self.of_classes, Balanced)
        parts = (
            ("balanced classes" if balanced else str(self.of_classes)) if self.of_classes else ""
        )
        return " and ".join(filter(None, [parts, "" if self.of_rows is None else "rows"]))


def row_weights(
    class_weight: Any, sample_weight: Any, classes: Sequence[Any] | None, task: Task, N: int
) -> RowWeights | None:
    """The weights that scikit-learn's arguments of these names stand for; None if all are one.

    The classes are the labels that became -1 and +1.

    Raises
    ------
    InvalidArgumentError
        If they stand for none, or for those of more than two classes.
    """
    if class_weight is None and sample_weight is None:
        return None
    name = "sample_weight" if class_weight is None else "class_weight"
    if task is Task.CLASSES:
        raise InvalidArgumentError.because(
            name,
            "is not known for more than two classes",
            "leave it out, or give positive=one, a class against all others",
        )
    rows = None
    if sample_weight is not None:
        rows = finite_vector("sample_weight", sample_weight)
        if len(rows) != N or rows.min() <= 0.0:
            allowed = f"{N} numbers above 0, one for each row"
            raise InvalidArgumentError("sample_weight", sample_weight, allowed)
    return RowWeights(_of_classes(class_weight, classes), rows)


def _of_classes(given: Any, classes: Sequence[Any] | None) -> Weights | None:
    """Weights of two classes, "balanced" or a mapping from labels."""
    if given is None:
        return None
    if classes is None:
        raise InvalidArgumentError.because(
            "class_weight", f"= {given!r} is given for numbers", "leave it out"
        )
    if isinstance(given, str) and given == "balanced":
        return Balanced()
    if isinstance(given, Mapping) and set(given) <= set(classes):
        return ByClass(*(float(given.get(label, 1.0)) for label in classes))
    raise InvalidArgumentError(
        "class_weight", given, f"'balanced', or weights of {' and '.join(map(repr, classes))}"
    )
