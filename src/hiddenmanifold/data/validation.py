"""Convert tables and labels of many kinds to arrays, or refuse them with a clear message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import SCALAR_TASKS, Task
from hiddenmanifold.errors import InvalidArgumentError, plural

FEWEST_ROWS = 50
FEWEST_OF_A_CLASS = 10
FEWEST_OF_SEVERAL = 5
"""The same if there are more than two classes."""
MOST_AMBIGUOUS = 10
"""Different whole numbers up to which labels may be classes, so that the task must be given."""
LARGEST = 1e70
"""Largest values, and inverses of the smallest, of which fourth powers are representable."""
NUMBERS = ("floating", "mixed-integer-float", "decimal")
"""Objects that are numbers; integers among objects are classes."""
DATE = re.compile(
    r"\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[. -]+[A-Za-z]{3,9}[. -]+\d{2,4}"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4})\b"
)
"""How dates begin: 2020-01-31, 31.1.2020, 1/31/20, 31 Jan 2020, January 31, 2020."""
NUMBER = re.compile(r"\s*[$€£+-]*\s*(\d[\d.,' ]*|[.,]\d+)(e[+-]?\d+)?\s*[%€]?\s*", re.IGNORECASE)
"""Numbers as text: 1,234.50, 3,14, -$20 or 12.5 %."""
DATES, WRITTEN = 0.95, 0.5
"""Shares of the entries of a column from which on they are dates, or numbers and other marks."""
MEMORY_LIMIT = 8e9
PATIENCE = 3600.0
"""Seconds beyond which a sample is refused."""
FITS = 60
"""Regularisations on a path, at most as a rule."""


@dataclass(frozen=True)
class Cost:
    """Memory and time of the analysis of a sample by ridge regression, on one core.

    Times of a processor were within a factor of two of what was measured for 200 to 10 000 rows and
    10 to 5000 columns. Other losses take longer; those with a kink ten times as long or more.
    """

    bytes: float
    seconds: float

    @classmethod
    def of(cls, n: int, p: int) -> Cost:
        """Estimated for diagnosis, learning curve and plan from N samples of p features."""
        m = min(n, p)
        reading = 0.2 + 1e-5 * n + 1.2e-7 * n * m
        return cls(
            8.0 * (4 * n * p + 3 * n * m + 2 * m**2 + 8 * n * FITS),
            _seconds(n, p) + cls.of_diagnosis(n, p) + reading,
        )

    @staticmethod
    def of_diagnosis(n: int, p: int) -> float:
        """Seconds of the diagnosis, once the sample is decomposed: it decomposes four halves."""
        return 0.2 + 4 * _seconds(n // 2, min(n, p))

    @staticmethod
    def of_cuts(cuts: int, rows: int, p: int) -> float:
        """Seconds of so many cuts of a backtest that predict from some of the rows."""
        return cuts * (0.03 + 1.3 * _seconds(rows, p))

    def check(self, shape: tuple[int, int]) -> None:
        """Raise if it is too much."""
        if self.bytes > MEMORY_LIMIT or self.seconds > PATIENCE:
            raise InvalidArgumentError.because(
                "X",
                f"of shape {shape} would need {self}",
                f"at most {MEMORY_LIMIT / 1e9:.0f} GB and {PATIENCE:.0f} s are allowed; rows "
                "drawn at random from a larger table show the same population",
            )

    def __str__(self) -> str:
        return f"about {self.bytes / 1e9:.2g} GB and {self.seconds:.2g} s on one core"


def _seconds(n: int, p: int) -> float:
    """Of one decomposition: singular values of many rows, else eigenvalues of their kernel."""
    operations = 6 * n * p**2 + 20 * p**3 if p < n else 9 * n**3 + n**2 * p
    return 4e-11 * operations


def check_size(rows: int, columns: int) -> None:
    """Raise unless there are enough samples, and the analysis is affordable."""
    if rows < FEWEST_ROWS:
        raise InvalidArgumentError.because(
            "X", f"has {plural(rows, 'row')}", f"at least {FEWEST_ROWS} are needed"
        )
    Cost.of(rows, columns).check((rows, columns))


def labels(
    y: Any, rows: int, task: Any, positive: Any = None
) -> tuple[Array, Task, tuple[Any, ...] | None]:
    """Labels as numbers, the task, and the classes if there are any.

    Two classes become ±1, and more of them columns of 0 and 1.

    If there is a `positive` class, all others together are the other one.
    """
    array = _array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    _check_shape(array, rows)
    if task not in (None, *SCALAR_TASKS):
        raise InvalidArgumentError("task", task, "'regression', 'classification' or None")
    missing = _missing(array)
    if missing:
        raise InvalidArgumentError.because(
            "y", f"has {plural(missing, 'missing or infinite value')}", "drop or impute these rows"
        )
    numbers = array.dtype.kind in "biuf"
    try:
        values, counts = np.unique(array, return_counts=True)
    except TypeError:  # words and numbers
        raise InvalidArgumentError.because(
            "y", "mixes words and numbers", "give labels of one kind"
        ) from None
    if len(values) < 2:
        found = f"has one value only, {values[0]}" if len(values) else "is empty"
        raise InvalidArgumentError.because("y", found, "give two classes, or numbers that vary")
    if positive is not None:
        array, values, counts = _one_against_others(array, values, positive, task)
        task, numbers = Task.CLASSIFICATION, False
    if task is None:
        named = not numbers or str(getattr(y, "dtype", "")) == "category"
        task = Task.CLASSIFICATION if named or len(values) == 2 else _task_of_numbers(values)
    if Task(task) is Task.REGRESSION:
        if not numbers:
            raise InvalidArgumentError.because(
                "y", "is not numeric", "task='regression' needs numbers"
            )
        check_scale("y", array)
        return array.astype(float), Task.REGRESSION, None
    if not numbers and positive is None:
        _check_words(values, counts)
    _check_counts(values, counts)
    whole = values.dtype.kind == "f" and (values == np.round(values)).all()
    classes = tuple((values.astype(int) if whole else values).tolist())  # as 0, not -0.0
    if len(values) == 2:
        return np.where(array == values[1], 1.0, -1.0), Task.CLASSIFICATION, classes
    return (array[:, None] == values).astype(float), Task.CLASSES, classes


def kind_of_words(words: Sequence[str]) -> Literal["dates", "numbers", ""]:
    """The kind of entries that are mostly distinct: dates, numbers with marks, or words."""
    if np.mean([DATE.match(word) is not None for word in words]) >= DATES:
        return "dates"
    share = np.mean([NUMBER.fullmatch(word) is not None for word in words])
    return "numbers" if share >= WRITTEN else ""


def _check_words(values: Any, counts: Integers) -> None:
    """Raise if words are not names of classes, because most of them occur once or twice."""
    if len(values) <= MOST_AMBIGUOUS or np.median(counts) >= FEWEST_OF_SEVERAL:
        return
    kind = kind_of_words([str(value) for value in values])
    found = f"has {len(values)} different words in {counts.sum()} rows, which are no classes"
    if kind:
        found = f"holds {kind} written as text, as {values[0]}"
    elif len(values) < counts.sum():
        return  # rare classes, which are named
    remedy = "convert them to numbers first" if kind else "choose another column of labels"
    raise InvalidArgumentError.because("y", found, remedy)


def _check_shape(array: Any, rows: int) -> None:
    """Raise unless there is a label for each row."""
    if array.shape == (rows,):
        return
    remedy = f"give one label for each of the {rows} rows"
    if array.ndim == 2 and array.shape[0] == rows:
        remedy += ", as y.argmax(axis=1) of columns of 0 and 1"
    raise InvalidArgumentError.because("y", f"has shape {array.shape}", remedy)


def _check_counts(values: Any, counts: Integers) -> None:
    """Raise unless there are enough rows of each class."""
    several = len(values) > 2
    if several and values.dtype.kind == "f" and (values != np.round(values)).any():
        raise InvalidArgumentError.because(
            "y",
            f"has fractions ({listed(values)}), which are no classes",
            "give task='regression'; classes are words or whole numbers",
        )
    fewest = FEWEST_OF_SEVERAL if several else FEWEST_OF_A_CLASS
    rare = np.flatnonzero(counts < fewest)
    if not rare.size:
        return
    if several and rare.size > 1:
        found = (
            f"has {rare.size} classes of fewer than {fewest} samples ({listed(values[rare])}), "
            f"out of {len(values)} classes"
        )
    else:
        found = f"has {plural(int(counts[rare[0]]), 'sample')} of class {values[rare[0]]}"
    remedy = f"each class needs at least {fewest}"
    if several:
        remedy += ": merge rare classes, or leave their rows out"
    raise InvalidArgumentError.because("y", found, remedy)


def _one_against_others(array: Any, values: Any, positive: Any, task: Any) -> tuple[Any, Any, Any]:
    """Labels of two classes, the positive one and all others; it sorts last."""
    if task is not None and Task(task) is Task.REGRESSION:
        raise InvalidArgumentError.because(
            "positive", "cannot be given for a regression", "leave it out, or the task"
        )
    if np.ndim(positive):
        raise InvalidArgumentError("positive", positive, f"one of the labels: {listed(values)}")
    at = np.flatnonzero([value == positive or str(value) == str(positive) for value in values])
    if len(at) != 1:
        raise InvalidArgumentError("positive", positive, f"one of the labels: {listed(values)}")
    chosen = values[at[0]]
    two = np.where(array == chosen, 1, 0)
    rest = "others" if str(chosen) != "others" else "all others"
    names = np.array([rest, str(chosen)], dtype=object)
    return names[two], names, np.bincount(two, minlength=2)


def _task_of_numbers(values: Array) -> Task:
    """Regression on more than two different numbers, unless they may as well be classes."""
    if len(values) <= MOST_AMBIGUOUS and (values == np.round(values)).all():
        shown = [f"{value:g}" for value in values + 0.0]  # no negative zero
        raise InvalidArgumentError.because(
            "task",
            f"cannot be guessed from labels of {len(values)} different whole numbers "
            f"({listed(shown)})",
            "give 'regression' if they are amounts, or 'classification' if they are classes",
        )
    return Task.REGRESSION


def duplicate_rows(X: Array, y: Array) -> int:
    """Rows that repeat an earlier one, label included."""
    rows = np.ascontiguousarray(np.column_stack([X, y])) + 0.0  # no negative zeros
    return len(rows) - len({row.tobytes() for row in rows})


def check_scale(name: str, array: Array) -> None:
    """Raise if squares of squares of the entries would overflow, or vanish."""
    largest = float(np.abs(array.astype(float)).max(initial=0.0))
    if largest and not 1.0 / LARGEST <= largest <= LARGEST:
        raise InvalidArgumentError.because(
            name, f"has values of order {largest:.0e}", "divide by their scale first"
        )


def _array(y: Any) -> Any:
    """Labels as an array; of numbers, whatever they are wrapped in, with NaN where missing."""
    import pandas as pd

    try:
        if np.ma.isMaskedArray(y):
            array = np.ma.getdata(y).astype(object)
            array[np.ma.getmaskarray(y)] = None
            y = array
        array = np.asarray(y)
    except ValueError:
        raise InvalidArgumentError.because(
            "y", "has rows of different lengths", "give one label for each row"
        ) from None
    if array.dtype.kind in "mM":
        raise InvalidArgumentError.because(
            "y", "holds dates or times", "give numbers, as days since the first, or classes"
        )
    if array.dtype.kind == "c":
        raise InvalidArgumentError.because("y", "is complex", "give real numbers, or classes")
    if array.dtype == object and pd.api.types.infer_dtype(array.ravel()) in NUMBERS:
        return array.astype(float)
    return array


def _missing(array: Any) -> int:
    if array.dtype.kind == "f":
        return int((~np.isfinite(array)).sum())
    import pandas as pd

    missing = pd.isna(array)
    if array.dtype.kind in "OU":
        empty = [isinstance(label, str) and not label.strip() for label in array]
        missing = missing | np.array(empty, dtype=bool)
    return int(missing.sum())


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Names as a sentence lists them, the first few of many."""
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (", …" if len(words) > most else "")
