"""Labels in a column of the table, or in a file of their own, as beside a matrix of embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hiddenmanifold.data.read_table import ENDINGS, contents, read_table
from hiddenmanifold.data.validation import listed
from hiddenmanifold.errors import InvalidArgumentError

TEXTS = (".csv", ".tsv", ".txt")


def table_and_labels(path: Path, label: str | None) -> tuple[Any, Any]:
    """Features and labels, where the labels are a column, a file, or ``FILE:COLUMN``.

    Raises
    ------
    InvalidArgumentError
        If a file cannot be read, there are no such labels, or not as many as rows.
    """
    import pandas as pd

    if label is None:
        raise InvalidArgumentError.because(
            "--label", "is missing", f"give the name or number of the labels: {_names(path)}"
        )
    file, column = _file(label)
    if file is None:
        return read_table(path, label)
    table = contents(path)
    if isinstance(table, dict):
        raise InvalidArgumentError.because(
            "path", f"leads to the arrays {listed(table)}", "give a file with one table of features"
        )
    labels = _labels(file, column, len(table))
    if len(labels) != len(table):
        raise InvalidArgumentError.because(
            "--label",
            f"leads to {len(labels)} labels, and the table has {len(table)} rows",
            "give one label for each row, in the same order",
        )
    return table, pd.Series(labels)


def _names(path: Path) -> str:
    """The columns, or arrays, of a file; or what else can be given."""
    found = contents(path)
    names = [str(name) for name in found]
    numbered = names == [str(k) for k in range(len(names))]
    apart = "a column of this file, or another file, as labels.npy or table.csv:COLUMN"
    return apart if numbered else listed(names)


def _file(label: str) -> tuple[Path | None, str | None]:
    """The file that labels are in, and their column there; None if they are a column."""
    name, _, column = label.rpartition(":")
    for given, rest in ((label, None), (name, column)):
        if Path(given).suffix.lower() in {*ENDINGS, *TEXTS}:
            return Path(given), rest
    return None, None


def _labels(file: Path, column: str | None, rows: int) -> Any:
    """The labels of a file, which has nothing else unless a column is named."""
    if column is not None:
        return np.asarray(read_table(file, column)[1])
    try:
        if file.suffix.lower() == ".npy":
            found = np.load(file, allow_pickle=False)
            return found.ravel() if found.size == len(found) else _refuse(file)
        if file.suffix.lower() in TEXTS:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
            return _of_lines([line.strip() for line in lines if line.strip()], rows)
    except InvalidArgumentError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InvalidArgumentError.because(
            "--label", f"= {str(file)!r} cannot be read", reason
        ) from None
    return _refuse(file)


def _of_lines(lines: list[str], rows: int) -> Any:
    """One label in a line, perhaps below a name."""
    values = np.array(lines[1:] if len(lines) == rows + 1 else lines)
    try:
        return values.astype(float)
    except ValueError:
        return values


def _refuse(file: Path) -> Any:
    raise InvalidArgumentError.because(
        "--label",
        f"= {str(file)!r} has more than labels",
        "name the column, as FILE:COLUMN, or save them alone",
    )
