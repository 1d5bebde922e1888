"""A file of results: an SQLite database with a row per result, written atomically."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from hiddenmanifold.errors import HiddenManifoldError, InvalidArgumentError
from hiddenmanifold.versions import version

MARK = 0x484D4D46
"""The application identifier in the header of our files."""
SCHEMA = 1
PATIENCE = 60.0
"""Seconds to wait for another process that writes."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
COLUMNS = ("key", "kind", "content", "numbers", "version", "sources", "date", "digest")
"""In the column `sources` is the version of the algorithm; once it was a hash of source files."""
INSERT = f"INSERT OR IGNORE INTO results VALUES ({', '.join('?' * len(COLUMNS))})"
TABLES = f"""
CREATE TABLE results (
    key TEXT PRIMARY KEY, -- hash of what determines the numbers
    {" TEXT NOT NULL, ".join(COLUMNS[1:])} TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class StoreError(HiddenManifoldError, OSError):
    """A store cannot be used; what it holds is untouched."""


@dataclass(frozen=True)
class Row:
    """One result.

    Attributes
    ----------
    key : str
        Hash of what determines the numbers.
    kind : str
        What it is: a "fit" of a simulation. Old files hold datasets of figures too.
    content : mapping
        What it is of, for people and for `export`.
    numbers : mapping
        The result: what JSON can write, floats to the last bit.
    algorithm : str
        Version of the algorithm that computed it.
    """

    key: str
    kind: str
    content: Mapping[str, Any]
    numbers: Mapping[str, Any]
    algorithm: str
    version: str = ""
    date: str = ""

    def fields(self) -> tuple[str, ...]:
        """What is written, ending in a digest of all that comes before."""
        texts = (
            self.key,
            self.kind,
            json.dumps(self.content),
            json.dumps(self.numbers),
            self.version or version("hiddenmanifold"),
            self.algorithm,
            self.date or datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return (*texts, _digest(texts))

    @classmethod
    def of(cls, fields: Sequence[str]) -> Row:
        """The row that was written."""
        key, kind, content, numbers, made_by, algorithm, date, _ = fields
        return cls(key, kind, json.loads(content), json.loads(numbers), algorithm, made_by, date)


def _digest(texts: Sequence[str]) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()


class Store:
    """Results in a file, which is made if there is none; several processes may share it.

    Every write is a transaction: a process that is killed leaves all of it or nothing.

    Parameters
    ----------
    path : path
        The file; beside it SQLite keeps two more while it is open.
    create : bool
        Whether to make it if there is none.

    Raises
    ------
    StoreError
        If the file is not a store, damaged, or of a later schema. It is not touched.
        If there is none, and none is to be made.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        try:
            self.path = Path(path)
        except TypeError:
            raise InvalidArgumentError("store", path, "the path of a file") from None
        with self._explained("read"):
            there = self.path.exists()
        if not there:
            if not create:
                raise StoreError(f"there is no store {self.path}")
            self._create()
        self._check_header()
        with self._reading() as db:
            db.execute("SELECT name FROM about")  # fails if the file is truncated

    def _create(self) -> None:
        """A new file, complete when it gets its name: none is ever found half made."""
        with self._explained("made"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            name = self.path.with_name(f".{self.path.name}.{uuid4().hex}")
            name.touch()  # SQLite would not let a group write
            try:
                with closing(sqlite3.connect(name)) as db:
                    db.executescript(
                        f"PRAGMA application_id = {MARK}; PRAGMA user_version = {SCHEMA};"
                    )
                    db.executescript(TABLES)
                    made_by = ("version", version("hiddenmanifold"))
                    db.execute("INSERT INTO about VALUES (?, ?)", made_by)
                    db.commit()
                    db.execute("PRAGMA journal_mode = WAL")
                with suppress(FileExistsError):  # another process was faster
                    os.link(name, self.path)
            finally:
                name.unlink()

    def _check_header(self) -> None:
        """Raise unless this is a store that can be read; looks, and lets SQLite touch nothing."""
        with self._explained("read"), self.path.open("rb") as file:
            header = file.read(100)
        schema, mark = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if not header.startswith(b"SQLite format 3\0") or mark != MARK:
            raise StoreError(f"{self.path} is not a store of hiddenmanifold; it is left as it is")
        if schema > SCHEMA:
            raise StoreError(
                f"store {self.path} has schema {schema}, and this version of hiddenmanifold reads "
                f"schemas up to {SCHEMA}: install a later version"
            )

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Say what became of the store when a database or the system complains."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, StoreError):
                raise
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:  # of all kinds
                raise StoreError(
                    f"store {self.path} is damaged: {error}; it is left as it is. "
                    "Restore it from a copy, or use another file"
                ) from error
            kept = (
                ". What was written before stays, and the same call goes on from there; "
                "`hiddenmanifold store verify` checks it"
            )
            told = f"store {self.path} cannot be {done}: {error}"
            raise StoreError(told + (kept if done == "written" else "")) from error

    def _open(self) -> sqlite3.Connection:
        path = quote(os.fsencode(self.path.absolute()))
        db = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=PATIENCE)
        try:
            db.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            db.close()
            raise
        return db

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._explained("read"), closing(self._open()) as db:
            yield db

    def found(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows with these keys that are there."""
        rows = {}
        with self._reading() as db:
            for key in keys:
                if fields := db.execute("SELECT * FROM results WHERE key = ?", (key,)).fetchone():
                    if fields[-1] != _digest(fields[:-1]):
                        raise StoreError(
                            f"store {self.path} is damaged: the row {key[:12]}… has other content "
                            "than was written; `hiddenmanifold store prune` takes such rows out"
                        )
                    rows[key] = Row.of(fields)
        return rows

    def rows(self) -> Iterator[tuple[Row, bool]]:
        """Every row, in the order of keys, and whether it is as it was written.

        One that is not has neither content nor numbers.
        """
        with self._reading() as db:
            for key, kind, *texts, digest in db.execute("SELECT * FROM results ORDER BY key"):
                intact = digest == _digest((key, kind, *texts))
                told = texts if intact else ["{}", "{}", *texts[2:]]
                yield Row.of((key, kind, *told, digest)), intact

    def rows_by_others(self, algorithm: str) -> Iterator[Row]:
        """The intact fits that were computed by another version of the algorithm."""
        with self._reading() as db:
            asked = "SELECT * FROM results WHERE kind = 'fit' AND sources != ?"
            for fields in db.execute(asked, (algorithm,)):
                if fields[-1] == _digest(fields[:-1]):
                    yield Row.of(fields)

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; nothing if all is well."""
        with self._reading() as db:
            found = [text for (text,) in db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    @contextmanager
    def writing(self) -> Iterator[Callable[[Iterable[Row]], None]]:
        """Yield what writes rows, all of a call or none; one that is there already stays.

        The file is opened by the first call.
        """
        with ExitStack() as stack:
            opened: list[sqlite3.Connection] = []

            def add(rows: Iterable[Row]) -> None:
                with self._explained("written"):
                    if not opened:
                        opened.append(stack.enter_context(closing(self._open())))
                    with opened[0] as db:
                        db.executemany(INSERT, (row.fields() for row in rows))

            yield add

    def remove(self, keys: Iterable[str]) -> None:
        """Take rows out, all or none, and give their space back."""
        with self._explained("written"), closing(self._open()) as db:
            with db:
                db.executemany("DELETE FROM results WHERE key = ?", ((key,) for key in keys))
            db.execute("VACUUM")
