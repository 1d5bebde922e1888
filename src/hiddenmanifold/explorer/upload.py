"""Uploaded files as samples with labels; nothing in them is ever run."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

import hiddenmanifold as hm

MOST_BYTES, MOST_ROWS, MOST_COLUMNS = 20_000_000, 20_000, 1_000
MOST_UNPACKED = 10 * MOST_BYTES
MOST_SECONDS = 30.0
"""Budget of the analysis, on one core."""
LABELS = ("label", "y", "target", "class")
"""Names of columns that are taken for labels unless one is given; else it is the last."""
FEWER = "rows drawn at random from a larger table show the same population"
KINDS = ".csv, .npy or .npz"


@dataclass(frozen=True)
class Sample:
    """A table without its label column, and the program that reads it."""

    X: Any
    y: Any
    label: str
    program: str

    def data(self) -> hm.Data:
        """The sample in standard units; raise if its analysis would take too long."""
        data = hm.Data(self.X, self.y, scale="standard")
        if data.cost.seconds > MOST_SECONDS:
            shape = f"of {data.N} rows and {data.p} columns, which needs {data.cost}"
            raise hm.InvalidArgumentError("file", shape, f"below {MOST_SECONDS:g} s: {FEWER}")
        return data


def sample(name: str, content: bytes, label: str = "") -> Sample:
    """Read a file.

    Parameters
    ----------
    name : str
        Its name, whose end tells the kind: .csv with names in the first line, .npy with a table,
        or .npz with a table or with arrays X and y.
    content : bytes
        The file.
    label : str
        Name or number of the column of labels; the first of `LABELS`, or the last, if empty.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or is beyond the budget.
    """
    if len(content) > MOST_BYTES:
        size = f"of {len(content) / 1e6:.3g} MB"
        raise hm.InvalidArgumentError("file", size, f"at most {MOST_BYTES / 1e6:g} MB: {FEWER}")
    kind = name.lower().rpartition(".")[2]
    if kind == "csv":
        return _of_csv(name, content, label)
    if kind not in ("npy", "npz"):
        raise hm.InvalidArgumentError("file", name, KINDS)
    return _of_numpy(name, content, label)


def _of_csv(name: str, content: bytes, label: str) -> Sample:
    import pandas as pd

    first = content.partition(b"\n")[0]
    separator = max(",;\t", key=lambda letter: first.count(letter.encode()))
    try:
        table = pd.read_csv(io.BytesIO(content), sep=separator, nrows=MOST_ROWS + 1)
    except (ValueError, OverflowError) as error:  # of pandas and of letters
        allowed = f"a table with names in its first line ({_brief(error)})"
        raise hm.InvalidArgumentError("file", name, allowed) from None
    _check_shape(*table.shape)
    columns = [str(column) for column in table.columns]
    known = [column for column in columns if column.lower() in LABELS]
    chosen = label or (known or columns)[-1 if not known else 0]
    if chosen not in columns:
        raise hm.InvalidArgumentError("label", chosen, f"one of {', '.join(columns[:12])}")
    separated = "" if separator == "," else f", sep={separator!r}"
    lines = [f"table = pd.read_csv({name!r}{separated})", f"y = table.pop({chosen!r})"]
    table.columns = pd.Index(columns)
    y = table.pop(chosen)
    numbers = [c for c in table.columns if table[c].dtype.kind in "biuf"]
    constant = [c for c in numbers if table[c].nunique(dropna=False) <= 1]
    if constant:
        lines.append(f"table = table.drop(columns={constant!r})")
    return Sample(table.drop(columns=constant), y, chosen, "\n".join(lines))


def _of_numpy(name: str, content: bytes, label: str) -> Sample:
    try:
        if name.lower().endswith("z"):
            unpacked = sum(one.file_size for one in zipfile.ZipFile(io.BytesIO(content)).infolist())
            if unpacked > MOST_UNPACKED:
                size = f"of {unpacked / 1e6:.3g} MB unpacked"
                allowed = f"at most {MOST_UNPACKED / 1e6:g} MB: {FEWER}"
                raise hm.InvalidArgumentError("file", size, allowed)
        loaded = np.load(io.BytesIO(content), allow_pickle=False)  # which would run code
        arrays: dict[str, Any] = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile) as error:
        allowed = f"a file of NumPy with numbers or words ({_brief(error)})"
        raise hm.InvalidArgumentError("file", name, allowed) from None
    lines = [f"file = np.load({name!r})"]
    if {"X", "y"} <= set(arrays):
        X, y = arrays["X"], arrays["y"]
        chosen = "y"
        lines.append('X, y = file["X"], file["y"]')
    else:
        key, table = next(iter(arrays.items()), ("", None))
        if len(arrays) != 1 or table is None or table.ndim != 2 or table.shape[1] < 2:
            allowed = "one table (samples, columns), or arrays X and y"
            raise hm.InvalidArgumentError("file", f"{name} with other arrays", allowed)
        column = _column(label, table.shape[1])
        chosen, y, X = f"column {column}", table[:, column], np.delete(table, column, axis=1)
        lines.append(f"table = file{f'[{key!r}]' if key else ''}")
        lines.append(f"X, y = np.delete(table, {column}, axis=1), table[:, {column}]")
    if X.ndim != 2:
        raise hm.InvalidArgumentError("file", f"X of shape {X.shape}", "a table (samples, columns)")
    _check_shape(*X.shape)
    if X.dtype.kind in "biuf" and (still := np.ptp(X, axis=0) == 0).any():
        X = X[:, ~still]
        lines.append("X = X[:, np.ptp(X, axis=0) > 0]")
    return Sample(X, y, chosen, "\n".join([*lines, "table = X"]))


def _column(text: str, columns: int) -> int:
    if not text:
        return columns - 1
    if not text.isascii() or not text.isdigit() or int(text) >= columns:
        allowed = f"the number of a column, from 0 to {columns - 1}"
        raise hm.InvalidArgumentError("label", text, allowed)
    return int(text)


def _check_shape(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        allowed = f"at most {MOST_ROWS} rows and {MOST_COLUMNS} columns: {FEWER}"
        more = "more than " * (rows > MOST_ROWS)
        shape = f"of {more}{min(rows, MOST_ROWS)} rows and {columns} columns"
        raise hm.InvalidArgumentError("file", shape, allowed)


def _brief(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:120]
