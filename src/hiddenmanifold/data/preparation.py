"""From a table as it comes to features: which columns are kept, encoded, filled or left out.

A data frame may have columns of text, dates, counters and identifiers, and missing values. Arrays
are taken as numbers that were chosen on purpose: only their constant columns are left out, and
their missing values filled. `Preparation` records what was done, does the same to other rows, and
is available as a transformer of scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.data.validation import check_scale, check_size, kind_of_words, listed
from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError, plural

MOST_LEVELS = 12
"""Levels of a column of text up to which each becomes a column of 0 and 1."""
APART = 100.0
"""Ratio of the deviations of two columns from which on scaling is suggested."""
MOST_NAMES = 40
"""Names of columns in a note."""
MISSING = "missing"
"""The level of entries that are missing in a column of text."""
REASONS = {
    "constant": "{} that {} not vary",
    "counter": "{} that {} the rows",
    "dates": "{} of dates",
    "numbers": "{} of numbers written as text (give digits alone, and leave missing cells empty)",
    "unknown": "{} of neither real numbers nor text",
    "identifier": "{} of identifiers, all different",
    "levels": f"{{}} of text with more than {MOST_LEVELS} levels",
}
"""Why columns are left out, in words."""
VERBS = {"constant": ("does", "do"), "counter": ("counts", "count")}


@dataclass(frozen=True)
class Preparation:
    """How the columns of a table became features.

    Attributes
    ----------
    numbers : tuple
        Columns that are numbers, by name or position. They come first.
    medians : mapping
        Those with missing values, and the medians that fill them. For each of them a column of
        flags follows, 1 where the value was missing.
    levels : mapping
        Columns of text, and their levels in the order of the columns of 0 and 1 that come last; of
        two levels, only the second has one.
    left_out : mapping
        Columns that are left out, by the keys of `REASONS`.
    filled : int
        Number of missing values that were filled.
    named : bool
        Whether the table was a data frame, whose columns have names.
    """

    numbers: tuple[Any, ...]
    medians: Mapping[Any, float]
    levels: Mapping[Any, tuple[str, ...]]
    left_out: Mapping[str, tuple[Any, ...]]
    filled: int
    named: bool

    @property
    def columns(self) -> list[str]:
        """Names of the features."""
        flags = [f"{name} is {MISSING}" for name in self.medians]
        encoded = [f"{name} = {one}" for name in self.levels for one in self._shown(name)]
        return [*map(str, self.numbers), *flags, *encoded]

    def _shown(self, name: Any) -> tuple[str, ...]:
        """The levels that have a column of their own."""
        levels = self.levels[name]
        return levels[1:] if len(levels) == 2 else levels

    def apply(self, X: Any) -> Array:
        """The features of rows of such a table.

        Raises
        ------
        InvalidArgumentError
            If a column is missing, is not numeric, or has values that cannot be filled.
        """
        numbers, texts = self._taken(X)
        gaps = np.isnan(numbers)
        flags = []
        for name, median in self.medians.items():
            at = self.numbers.index(name)
            flags.append(gaps[:, at].astype(float))
            numbers[gaps[:, at], at] = median
        if (bad := ~np.isfinite(numbers)).any():
            names = [self.numbers[k] for k in np.flatnonzero(bad.any(0))]
            raise InvalidArgumentError.because(
                "X",
                f"has {plural(int(bad.sum()), 'value')} in {_columns(names)} that cannot be "
                f"used: {listed(names)}",
                "give finite numbers; columns without missing values in the sample have no median",
            )
        encoded = [(texts[name] == one) for name in self.levels for one in self._shown(name)]
        return np.column_stack([numbers, *flags, *encoded]).astype(float)

    def _taken(self, X: Any) -> tuple[Array, dict[Any, Any]]:
        """The columns that are numbers, with NaN for missing ones, and those of text."""
        X = as_pandas(X)
        if _is_frame(X):
            if lost := [name for name in (*self.numbers, *self.levels) if name not in X.columns]:
                raise InvalidArgumentError.because(
                    "X", f"lacks {_columns(lost)} {listed(lost)}", "give the same table"
                )
            numbers = [_numbers(X[name]) for name in self.numbers]
            matrix = np.column_stack(numbers) if numbers else np.empty((len(X), 0))
            return matrix, {name: _texts(X[name]) for name in self.levels}
        array = _array(X)
        count = len(self.numbers) + len(self.levels) + sum(map(len, self.left_out.values()))
        if array.ndim != 2 or array.shape[1] != count:
            raise InvalidArgumentError.because(
                "X", f"has shape {array.shape}", f"give {count} columns, as the sample has"
            )
        if not self.named:
            return array[:, list(self.numbers)], {}
        if self.levels or self.left_out:
            raise InvalidArgumentError.because(
                "X", "is an array", "give a data frame with the columns of the sample"
            )
        return array, {}

    @property
    def notes(self) -> list[str]:
        """What was done, in sentences; none if the table was taken as it is."""
        said, named = [], partial(listed, most=MOST_NAMES)
        for reason, names in self.left_out.items():
            words = REASONS[reason].format(
                plural(len(names), "column"), VERBS.get(reason, ("", ""))[len(names) > 1]
            )
            said.append(f"left out {words}: {named(names)}")
        if self.levels:
            encoded = plural(sum(len(self._shown(name)) for name in self.levels), "column")
            count = plural(len(self.levels), "column")
            said.append(f"encoded {count} of text as {encoded} of 0 and 1: {named(self.levels)}")
        if self.medians:
            said.append(
                f"filled {plural(self.filled, 'missing value')} in "
                f"{plural(len(self.medians), 'column')} with medians, and flagged them in "
                f"{plural(len(self.medians), 'further column')}: {named(self.medians)}"
            )
        return said

    def transformer(self, *, standard: bool = False) -> Any:
        """The same as a transformer of scikit-learn, not fitted, for a pipeline.

        With `standard` its columns are divided by their deviations afterwards.
        """
        try:
            from sklearn.compose import ColumnTransformer
            from sklearn.impute import SimpleImputer
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
        except ImportError:
            raise MissingExtraError("preparation", "sklearn", "data") from None
        fill = SimpleImputer(strategy="median", add_indicator=True)
        steps = [("numbers", fill if self.medians else "passthrough", list(self.numbers))]
        if self.levels:
            encode = make_pipeline(
                FunctionTransformer(words_of),
                OneHotEncoder(
                    categories=[list(levels) for levels in self.levels.values()],
                    drop="if_binary",
                    handle_unknown="ignore",
                    sparse_output=False,
                ),
            )
            steps.append(("categories", encode, list(self.levels)))
        columns = ColumnTransformer(steps, remainder="drop")
        return make_pipeline(columns, StandardScaler()) if standard else columns


def words_of(frame: Any) -> Any:
    """The entries of a data frame as words, an array; missing ones have a level of their own."""
    return np.column_stack([_texts(frame[name]) for name in frame.columns])


def prepared(X: Any) -> tuple[Array, Preparation]:
    """The features of a table, and how they were made.

    Raises
    ------
    InvalidArgumentError
        If it is not a table, has too few rows or infinite values, or no column is left.
    """
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1]:
        check_size(*shape)
    X = as_pandas(X)
    table = X if _is_frame(X) else _array(X)
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidArgumentError.because(
            "X",
            f"has shape {table.shape}",
            "give a table with a row per sample and a column per feature",
        )
    check_size(*table.shape)
    found = _of_frame(table) if _is_frame(table) else _of_array(table)
    if not found.numbers and not found.levels:
        raise InvalidArgumentError.because(
            "X",
            f"has no column that can be used: {'; '.join(found.notes) or 'it is empty'}",
            "give at least one column of numbers, or of text with few levels",
        )
    features = found.apply(table)
    check_size(*features.shape)
    check_scale("X", features)
    return features, found


def scaling_hint(X: Array, columns: list[str]) -> str:
    """Advice to scale features of very different deviations; empty if they are alike."""
    deviations = X.std(0)
    low, high = int(deviations.argmin()), int(deviations.argmax())
    with np.errstate(divide="ignore", over="ignore"):
        ratio = deviations[high] / deviations[low]
    if ratio < APART:
        return ""
    return (
        f"the standard deviation of {columns[high]} is {ratio:.2g} times that of {columns[low]}: "
        "with scale='standard' all columns count alike"
    )


def _of_array(array: Array) -> Preparation:
    """All columns that vary, as numbers."""
    _check_finite(array, list(range(array.shape[1])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that are missing altogether
        low, high = np.nanmin(array, axis=0), np.nanmax(array, axis=0)
        varies = low < high
        gaps = np.isnan(array)
        holes = np.flatnonzero(varies & gaps.any(0)).tolist()
        medians = dict(zip(holes, np.nanmedian(array[:, holes], axis=0).tolist(), strict=True))
    constant = tuple(np.flatnonzero(~varies).tolist())
    left_out = {"constant": constant} if constant else {}
    numbers = tuple(np.flatnonzero(varies).tolist())
    return Preparation(numbers, medians, {}, left_out, int(gaps[:, holes].sum()), False)


def _of_frame(X: Any) -> Preparation:
    """Columns by their kinds."""
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()].unique()
        raise InvalidArgumentError.because(
            "X", f"has several columns of one name ({listed(twice)})", "rename them"
        )
    left_out: dict[str, list[Any]] = {reason: [] for reason in REASONS}
    numbers: dict[Any, Array] = {}
    levels: dict[Any, tuple[str, ...]] = {}
    for name in X.columns:
        column = X[name]
        if _is_number(column):
            values = _numbers(column)
            if reason := _useless(column, values):
                left_out[reason].append(name)
            else:
                numbers[name] = values
            continue
        texts = _texts(column)
        found = np.unique(texts[texts != MISSING]).tolist()
        if len(found) < 2:
            left_out["constant"].append(name)
        elif reason := _not_text(column):
            left_out[reason].append(name)
        elif len(found) <= MOST_LEVELS:
            gaps = (MISSING,) * bool((texts == MISSING).any() and MISSING not in found)
            levels[name] = tuple(sorted((*found, *gaps)))
        else:
            left_out[_of_many(column, len(found))].append(name)
    if numbers:
        _check_finite(np.column_stack(list(numbers.values())), list(numbers))
    gaps_of = {name: int(np.isnan(values).sum()) for name, values in numbers.items()}
    medians = {n: float(np.nanmedian(numbers[n])) for n, count in gaps_of.items() if count}
    reasons = {reason: tuple(names) for reason, names in left_out.items() if names}
    return Preparation(tuple(numbers), medians, levels, reasons, sum(gaps_of.values()), True)


def _useless(column: Any, values: Array) -> str:
    """Why a column of numbers is left out; empty if it is not."""
    known = values[~np.isnan(values)]
    if not known.size or known.min() == known.max():
        return "constant"
    if _kind(column) not in "iu" or len(known) < len(values):
        return ""
    if (np.diff(values) == 1.0).all():
        return "counter"
    return "identifier" if len(np.unique(values)) == len(values) else ""


def _of_many(column: Any, levels: int) -> str:
    """Why a column of text with many levels is left out."""
    if kind := kind_of_words(_texts(column.dropna())):
        return kind
    return "identifier" if levels == len(column) else "levels"


def as_pandas(X: Any) -> Any:
    """A data frame of another library, as Polars, as one of pandas; anything else as it is."""
    foreign = callable(getattr(X, "to_pandas", None)) and hasattr(X, "columns")
    return X.to_pandas() if foreign else X


def _is_frame(X: Any) -> bool:
    return hasattr(X, "dtypes") and hasattr(X, "columns")


def _kind(column: Any) -> str:
    """The letter of a column's type; those of pandas' own types may be missing."""
    return str(getattr(column.dtype, "kind", "O"))


def _is_number(column: Any) -> bool:
    """Whether all entries of a column that are not missing are numbers."""
    import pandas as pd

    if _kind(column) in "biuf":
        return True
    if isinstance(column.dtype, pd.CategoricalDtype) or _kind(column) in "mM":
        return False
    known = column.dropna()
    return len(known) > 0 and all(isinstance(v, Real | Decimal | np.bool_) for v in known)


def _not_text(column: Any) -> str:
    """Why a column that is not numeric does not hold text either; empty if it does."""
    import pandas as pd

    if _kind(column) in "mM" or isinstance(column.dtype, pd.PeriodDtype):
        return "dates"
    if isinstance(column.dtype, pd.CategoricalDtype | pd.IntervalDtype):
        return ""
    words = all(isinstance(v, str | bytes | Real | Decimal) for v in column.dropna())
    return "" if words else "unknown"


def _numbers(column: Any) -> Array:
    """A column as floats, NaN where it is missing."""
    try:
        values: Array = column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise InvalidArgumentError.because(
            "X", f"has a column {column.name} that is not numeric", "give numbers"
        ) from None
    return values.copy()


def _texts(column: Any) -> Any:
    """A column as an array of words, the missing ones as such."""
    pairs = zip(column, column.isna(), strict=True)
    return np.array([MISSING if gap else str(value) for value, gap in pairs])


def _array(X: Any) -> Array:
    """A copy of a table without names, as floats."""
    if callable(getattr(X, "toarray", None)):  # scipy.sparse
        X = X.toarray()
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InvalidArgumentError.because("X", "is complex", "give real and imaginary parts apart")
    try:
        if np.ma.isMaskedArray(X):
            return np.ma.filled(X.astype(float), np.nan)
        return np.array(X, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgumentError.because(
            "X",
            f"({type(X).__name__}) is not a table of numbers",
            "give a NumPy array, a matrix of scipy.sparse, or a data frame, which may hold text",
        ) from None


def _check_finite(array: Array, names: Sequence[Any]) -> None:
    """Raise if a value is infinite."""
    bad = np.isinf(array)
    if bad.any():
        those = [names[int(k)] for k in np.flatnonzero(bad.any(0))]
        raise InvalidArgumentError.because(
            "X",
            f"has {plural(int(bad.sum()), 'infinite value')} in {_columns(those)} {listed(those)}",
            "replace them, or mark them as missing",
        )


def _columns(names: Any) -> str:
    return "column" if len(names) == 1 else "columns"
