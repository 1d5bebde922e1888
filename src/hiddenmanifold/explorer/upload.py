"""Uploaded files as samples with labels, within a budget; nothing in them is ever run."""

from __future__ import annotations

import io
import math
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

import hiddenmanifold as hm

MOST_BYTES, MOST_ROWS, MOST_COLUMNS = 20_000_000, 20_000, 1_000
MOST_UNPACKED = 10 * MOST_BYTES
MOST_PARTS = 20
"""Arrays in one file, each of which takes a while to open: two are needed."""
MOST_SECONDS = 30.0
"""Budget of an analysis: what is expected to take longer is refused, and what is not measured on
rows held out by then is left out."""
LONGEST = 2 * MOST_SECONDS
"""When an analysis is ended, because it took longer than expected."""
QUICKER = (
    f"The loss of Explore takes longer than {LONGEST:g} s for this table: fitted with the square "
    "loss instead."
)
CUTS = 8
"""Times that the sample is cut at random to measure fits on rows held out, at most."""
FEWER = "rows drawn at random from a larger table show the same population"
TOO_MUCH = f"more than {MOST_BYTES / 1e6:g} MB: {FEWER}"
KINDS = (".csv", ".npy", ".npz")
LOSSES = {
    "": "as in Explore",
    "square": "square: ridge",
    "logistic": "logistic, softmax",
    "squared_hinge": "squared hinge",
    "huber": "Huber",
    "absolute": "absolute",
}
"""Losses to choose from; those that do not suit the labels are refused in a sentence."""
NUMBERS_AND_WORDS = "biufSU"
"""Kinds of arrays, in NumPy's letters; entries of others become objects, many times as large."""


@dataclass(frozen=True)
class Sample:
    """A table without its label column, and the program that makes its `data`."""

    X: Any
    y: Any
    label: str
    task: str | None
    positive: str | None
    program: str

    def data(self) -> hm.Data:
        """The sample in standard units; raise if its analysis would take too long."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the page shows what was done to the table
            data = hm.Data(self.X, self.y, self.task, scale="standard", positive=self.positive)
        cost = data.cost
        if cost.seconds > MOST_SECONDS:
            raise hm.InvalidArgumentError.because(
                "file",
                f"has {data.N} rows and {data.p} columns, whose analysis needs {cost}",
                f"at most {MOST_SECONDS:g} s are allowed; {FEWER}",
            )
        return data


def sample(
    name: str,
    content: bytes,
    label: str = "",
    task: str = "",
    positive: str = "",
    *,
    folder: Path | None = None,
) -> Sample:
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
    positive : str
        A class to tell from all others; if empty, all classes from each other.
    folder : Path, optional
        Where the file is laid down while it is read; where temporary files are if None.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or is beyond the budget.
    """
    check(name, content)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        path = Path(own, f"file{Path(name).suffix.lower()}")
        path.write_bytes(content)
        try:
            X, y = hm.read_table(path, label or None)
        except hm.InvalidArgumentError as error:
            raise hm.InvalidArgumentError.because(
                error.argument, error.problem.replace(str(path), name), error.remedy
            ) from None
    asked = f", {label!r}" if label else ""
    chosen = str(getattr(y, "name", "")) or label or "y"
    told = "".join(
        f", {key}={value!r}" for key, value in (("task", task), ("positive", positive)) if value
    )
    program = f"""X, y = hm.read_table({name!r}{asked})
data = hm.Data(X, y{told}, scale="standard")"""
    return Sample(X, y, chosen, task or None, positive or None, program)


def check(name: str, content: bytes) -> None:
    """Refuse what is of no known kind, or beyond the budget, without reading the numbers.

    Raises
    ------
    InvalidArgumentError
        If it is.
    """
    kind = Path(name).suffix.lower()
    if kind not in KINDS:
        raise hm.InvalidArgumentError.because(
            "file", f"{name!r} has no known ending", f"it must end in {' or '.join(KINDS)}"
        )
    if len(content) > MOST_BYTES:
        raise _too_large(f"{len(content) / 1e6:.3g} MB", MOST_BYTES)
    try:
        shapes = list(_shapes(kind, io.BytesIO(content)))
    except hm.InvalidArgumentError:
        raise
    except Exception:  # there are many, of archives and of headers
        reason = (
            "it holds no numbers, is empty or shorter than it says, "
            "or has objects, which could run code"
        )
        raise hm.InvalidArgumentError.because("file", f"{name!r} cannot be read", reason) from None
    allowed = f"at most {MOST_ROWS} rows and {MOST_COLUMNS} columns are allowed; {FEWER}"
    for rows, columns in shapes:
        if rows > MOST_ROWS:
            raise hm.InvalidArgumentError.because("file", f"has {rows} rows", allowed)
        if columns > MOST_COLUMNS + 1:  # that of the labels
            raise hm.InvalidArgumentError.because("file", f"has {columns} columns", allowed)


def _too_large(size: str, most: int) -> hm.InvalidArgumentError:
    return hm.InvalidArgumentError.because(
        "file", f"has {size}", f"at most {most / 1e6:g} MB are allowed; {FEWER}"
    )


def _shapes(kind: str, file: io.BytesIO) -> Iterator[tuple[int, int]]:
    """Rows and columns of what a file contains, or says that it does."""
    if kind == ".csv":
        yield _of_text(file.getvalue())
    elif kind == ".npy":
        yield _of_array(file, len(file.getvalue()))
    else:
        with zipfile.ZipFile(file) as archive:
            if (parts := len(archive.infolist())) > MOST_PARTS:
                raise hm.InvalidArgumentError.because(
                    "file", f"has {parts} arrays", f"at most {MOST_PARTS} are allowed"
                )
            size = sum(part.file_size for part in archive.infolist())
            if size > MOST_UNPACKED:
                raise _too_large(f"{size / 1e6:.3g} MB unpacked", MOST_UNPACKED)
            for part in archive.infolist():
                with archive.open(part) as array:
                    yield _of_array(array, part.file_size)


def _of_text(content: bytes) -> tuple[int, int]:
    """Rows after one of names, and the most columns; none are counted of too many rows."""
    ends = (b"\n", b"\r")
    lines = max(content.count(end) for end in ends) + (not content.endswith(ends))
    if lines > MOST_ROWS + 1:
        return lines - 1, 0
    separators = (line.count(mark) for line in content.splitlines() for mark in (b",", b";", b"\t"))
    return lines - 1, 1 + max(separators, default=0)


def _of_array(file: IO[bytes], size: int) -> tuple[int, int]:
    """Rows and columns that the header of an array tells; `size` bytes must be enough for them."""
    first = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    columns = [dtype[name] for name in dtype.names or ()]
    plain = all(column.kind in NUMBERS_AND_WORDS for column in columns or [dtype])
    if not plain or not 0 < math.prod(shape) * dtype.itemsize <= size:
        raise ValueError
    return shape[0] if shape else 1, math.prod(shape[1:]) * max(1, len(columns))
