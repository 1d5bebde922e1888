"""Files of real data: a table of features, and the labels."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from hiddenmanifold.checks import did_you_mean, number
from hiddenmanifold.data.validation import listed
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".tsv", ".npy", ".npz", ".parquet")
LABELS = ("label", "y", "target", "class")
"""Names of columns, or arrays, that are taken for labels unless one is given; else the last."""
UNREADABLE = (
    *(ValueError, EOFError, RuntimeError, BadZipFile, zlib.error),
    *(SyntaxError, TokenError),  # of the header of an array, which is written as Python
)
SEPARATORS = ",;\t|"
DECIMAL_COMMA = r"\s*[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?\s*"
NO_NUMBER = ("?", "-", "–", ".")
"""Marks that stand for a missing value in a column whose other entries are numbers."""
MOST_COLUMNS = 100_000
"""Most columns of a text: reading so many takes 15 s, and the time grows faster than they do."""


def read_table(path: str | Path, label: str | None = None) -> tuple[pd.DataFrame, Any]:
    r"""The table and the labels of a file, for `Data`, which prepares the columns.

    Code in a file is never executed: arrays of objects are refused.

    Parameters
    ----------
    path : str or Path
        Text with one row per line, with or without a line of names (.csv, .tsv); what `numpy.save`
        and `numpy.savez` write (.npy, .npz); or .parquet.
    label : str, optional
        The column of labels, by its name or its number from 0; or the array of them, if there are
        several. By default the first that is named label, y, target or class, or the last one. Of
        several arrays, X or the only other one has the features.

    Returns
    -------
    pandas.DataFrame, sequence
        The features, and the labels.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or has no such column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hiddenmanifold as hm
    >>> path = Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("area,rooms,price\n50,2,1.2\n70,3,1.5\n")
    >>> X, y = hm.read_table(path, "price")
    >>> list(X.columns), y.tolist()
    (['area', 'rooms'], [1.2, 1.5])
    """
    return _split(contents(Path(path)), label)


def contents(path: Path) -> pd.DataFrame | dict[str, Any]:
    """The table of a file, labels included, or its arrays by name.

    Raises
    ------
    InvalidArgumentError
        If it cannot be read.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InvalidArgumentError.because(
            "path",
            f"{str(path)!r} has no known ending",
            f"give a file that ends in {', '.join(ENDINGS)}",
        )
    try:
        return _arrays(path) if path.suffix.lower().startswith(".np") else _table(path)
    except OSError as error:
        reason = error.strerror or str(error)
    except ImportError:
        reason = "install pyarrow, which reads .parquet, or give a .csv file"
    except MemoryError:
        reason = "it does not fit into memory, or is shorter than it says"
    except UNREADABLE as error:
        reason = _cause(error)
    raise InvalidArgumentError.because("path", f"{str(path)!r} cannot be read", reason)


def _cause(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8: save it as such (in spreadsheets, as CSV UTF-8)"
    if "pickle" in str(error):  # also what NumPy says of anything that it does not know
        return "it is no array, or one of objects, which are not loaded because they could run code"
    return " ".join(str(error).split()) or "it is empty"


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        return pd.read_parquet(path)
    with path.open(encoding="utf-8-sig") as file:
        lines = (line.strip("\r\n") for line in file)
        first, second = ([*islice(filter(str.strip, lines), 2), "", ""])[:2]
    if not first:
        raise ValueError("it is empty")
    separator = _separator(first, second)
    if (count := 1 + max(line.count(separator) for line in (first, second))) > MOST_COLUMNS:
        raise ValueError(f"a line has {count} columns; .npy may have as many")
    if separator in second and separator not in first:
        raise ValueError("its first line has one column: nothing may stand above the names")
    names = first if separator == "," else first.replace(",", ".")
    header = None if all(_is_number(name) for name in names.split(separator)) else 0
    # from 3.1 on pandas reads every digit by itself, and warns if it is told to
    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    digits = {"float_precision": "round_trip"} if old else {}
    found = pd.read_csv(path, sep=separator, header=header, low_memory=False, **digits)
    if header == 0:
        found.columns = found.columns.str.strip()
    found = _without_marks(found)
    return found if separator == "," else _with_decimal_points(found)


def _separator(first: str, second: str) -> str:
    """What stands between columns: most often, or always if numbers have decimal commas."""
    for mark in SEPARATORS[1:]:
        if mark in first and all(re.fullmatch(DECIMAL_COMMA, part) for part in first.split(mark)):
            return mark
    return max(SEPARATORS, key=(first + second).count)


def _without_marks(found: pd.DataFrame) -> pd.DataFrame:
    """A table in which columns of numbers with some question marks, or alike, are numbers."""
    import pandas as pd

    for name in found.columns:
        known = found[name].dropna()
        if pd.api.types.is_numeric_dtype(known.dtype):
            continue
        words = known.astype(str).str.strip()
        rest = words[~words.isin(NO_NUMBER)]
        if not 0 < len(rest) < len(words):
            continue
        if rest.map(_is_number).all():
            found[name] = rest.map(number).reindex(found.index)
        elif rest.str.fullmatch(DECIMAL_COMMA).all():
            found[name] = rest.reindex(found.index)
    return found


def _with_decimal_points(found: pd.DataFrame) -> pd.DataFrame:
    """A table, whose columns are not separated by commas, with numbers as 3,14 read as such."""
    import pandas as pd

    for name in found.columns:
        known = found[name].dropna()
        if len(known) and not pd.api.types.is_numeric_dtype(known.dtype):
            words = known.astype(str)
            if words.str.fullmatch(DECIMAL_COMMA).all():
                points = words.str.replace(",", ".").astype(float)
                found[name] = points.reindex(found.index)
    return found


def _is_number(text: str) -> bool:
    try:
        number(text.strip().strip('"'))
    except ValueError:
        return False
    return True


def _arrays(path: Path) -> pd.DataFrame | dict[str, Any]:
    """The only array as a table, or all of them by name."""
    import pandas as pd

    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        arrays = {"": found}
    else:
        with found:
            arrays = {name: found[name] for name in found.files}
    if len(arrays) > 1:
        return arrays
    for array in arrays.values():
        if not array.nbytes:
            raise ValueError("it is empty")
        if array.ndim == 2 or array.dtype.names:
            return pd.DataFrame(array)
    raise ValueError("it has no table, an array of two dimensions")


def _split(found: pd.DataFrame | dict[str, Any], label: str | None) -> tuple[pd.DataFrame, Any]:
    import pandas as pd

    if label is None:
        names = [str(name) for name in found]
        label = next((name for name in names if name.lower() in LABELS), names[-1])
    if not isinstance(found, dict):
        if found.shape[1] == 1:
            raise InvalidArgumentError.because(
                "path",
                f"leads to one column, {found.columns[0]}",
                "columns are separated by commas, semicolons, tabs or |",
            )
        at = _column([str(name) for name in found.columns], label)
        return found.iloc[:, np.arange(found.shape[1]) != at], found.iloc[:, at]
    if label not in found:
        raise InvalidArgumentError("label", label, _among("an array of the file", found, label))
    others = [name for name in found if name != label]
    name = "X" if "X" in others else others[0]
    if (len(others) > 1 and name != "X") or found[name].ndim != 2:
        raise InvalidArgumentError.because(
            "path",
            f"leads to the arrays {listed(found)}",
            f"the file must have {label} and a table X of features, an array of two dimensions",
        )
    return pd.DataFrame(found[name]), found[label]


def _column(names: list[str], label: str) -> int:
    """Where the column of labels is."""
    if label in names:
        return names.index(label)
    try:
        return range(len(names))[int(label)]
    except (ValueError, IndexError):
        allowed = _among(f"the name or number (0 to {len(names) - 1}) of a column", names, label)
        raise InvalidArgumentError("label", label, allowed) from None


def _among(kind: str, names: Iterable[str], given: str) -> str:
    return f"{kind}: {listed(names)}{did_you_mean(given, names)}"
