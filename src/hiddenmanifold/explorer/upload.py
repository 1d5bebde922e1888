"""Uploaded files as samples with labels, within a budget; nothing in them is ever run."""

from __future__ import annotations

import io
import tempfile
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hiddenmanifold as hm

MOST_BYTES, MOST_ROWS, MOST_COLUMNS = 20_000_000, 20_000, 1_000
MOST_UNPACKED = 10 * MOST_BYTES
MOST_SECONDS = 30.0
"""Budget of the analysis, on one core, with all that is measured."""
CUTS = 8
"""Times that the sample is cut at random to measure fits on rows that they never saw."""
FEWER = "rows drawn at random from a larger table show the same population"
KINDS = (".csv", ".npy", ".npz")


@dataclass(frozen=True)
class Sample:
    """A table without its label column, and the program that makes its `data`."""

    X: Any
    y: Any
    label: str
    task: str | None
    program: str

    def data(self) -> hm.Data:
        """The sample in standard units; raise if its analysis would take too long."""
        data = hm.Data(self.X, self.y, self.task, scale="standard")
        cost = data.cost.of(data.N, data.p, cuts=CUTS, rows=data.own_rows)
        if cost.seconds > MOST_SECONDS:
            shape = f"of {data.N} rows and {data.p} columns, which needs {cost}"
            raise hm.InvalidArgumentError("file", shape, f"below {MOST_SECONDS:g} s: {FEWER}")
        return data


def sample(name: str, content: bytes, label: str = "", task: str = "") -> Sample:
    """Read a file as `read_table` does.

    Parameters
    ----------
    name : str
        Its name, whose end tells the kind.
    content : bytes
        The file.
    label : str
        The column of labels; found by itself if empty.
    task : str
        That of `hm.Data`; as the labels look if empty.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or is beyond the budget.
    """
    kind = Path(name).suffix.lower()
    if kind not in KINDS:
        raise hm.InvalidArgumentError("file", name, " or ".join(KINDS))
    _check_size(kind, content)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the columns that are left out are not counted, either
        path = Path(folder, f"file{kind}")
        path.write_bytes(content)
        try:
            X, y = hm.read_table(path, label or None)
        except hm.InvalidArgumentError as error:
            value = name if error.argument == "path" else error.value
            raise hm.InvalidArgumentError(error.argument, value, error.allowed) from None
    rows, columns = X.shape
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        allowed = f"at most {MOST_ROWS} rows and {MOST_COLUMNS} columns: {FEWER}"
        raise hm.InvalidArgumentError("file", f"of {rows} rows and {columns} columns", allowed)
    asked = f", {label!r}" if label else ""
    chosen = str(getattr(y, "name", "")) or label or "y"
    told = f", task={task!r}" if task else ""
    program = f"""X, y = hm.read_table({name!r}{asked})
data = hm.Data(X, y{told}, scale="standard")"""
    return Sample(X, y, chosen, task or None, program)


def _check_size(kind: str, content: bytes) -> None:
    """Refuse a file that is too large, or would be when it is unpacked."""
    size, most, state = len(content), MOST_BYTES, ""
    if kind == ".npz" and size <= most and zipfile.is_zipfile(io.BytesIO(content)):
        parts = zipfile.ZipFile(io.BytesIO(content)).infolist()
        size, most, state = sum(part.file_size for part in parts), MOST_UNPACKED, " unpacked"
    if size > most:
        allowed = f"at most {most / 1e6:g} MB: {FEWER}"
        raise hm.InvalidArgumentError("file", f"of {size / 1e6:.3g} MB{state}", allowed)
