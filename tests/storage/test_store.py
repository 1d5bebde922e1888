"""A store keeps what it was given, whole, and refuses what is none."""

import json
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace

import pytest

from hiddenmanifold.storage import Row, Store, StoreError
from hiddenmanifold.storage import store as store_module

NUMBERS = {"error": 0.1 + 0.2, "nothing": float("nan"), "large": float("inf"), "tiny": 5e-324}


def row(key="a", **numbers):
    return Row(key, "fit", {"model": "λ"}, numbers or NUMBERS, "1")


def filled(path, *rows):
    store = Store(path)
    with store.writing() as write:
        write(rows)
    return store


def test_rows_come_back_to_the_bit(tmp_path):
    store = filled(tmp_path / "new" / "runs.db", row("a"), row("b", x=-0.0))
    found = Store(tmp_path / "new" / "runs.db").found(["a", "b", "c"])
    assert set(found) == {"a", "b"}
    assert str(found["a"].numbers) == str(NUMBERS)
    assert str(found["b"].numbers) == "{'x': -0.0}"
    assert found["a"].content == {"model": "λ"}
    assert (found["a"].kind, found["a"].algorithm) == ("fit", "1")
    assert found["a"].version
    assert found["a"].date.startswith("20")
    assert [r.key for r, good in store.rows() if good] == ["a", "b"]
    assert store.integrity() == []
    assert os.listdir(tmp_path / "new") == ["runs.db"]


def test_the_first_row_stays(tmp_path):
    store = filled(tmp_path / "runs.db", row("a", x=1.0))
    filled(tmp_path / "runs.db", row("a", x=2.0), row("b", x=3.0))
    assert {key: r.numbers["x"] for key, r in store.found("ab").items()} == {"a": 1.0, "b": 3.0}


def test_a_write_is_all_or_nothing(tmp_path):
    store = Store(tmp_path / "runs.db")

    def broken():
        yield row("a")
        raise ZeroDivisionError

    with store.writing() as write, pytest.raises(ZeroDivisionError):
        write(broken())
    assert not list(store.rows())


def test_rows_can_be_taken_out(tmp_path):
    store = filled(tmp_path / "runs.db", *(row(str(i)) for i in range(1000)))
    size = store.path.stat().st_size
    store.remove([str(i) for i in range(1, 1000)])
    assert [r.key for r, _ in store.rows()] == ["0"]
    assert store.path.stat().st_size < 0.2 * size


def test_there_must_be_a_store_to_read(tmp_path):
    with pytest.raises(StoreError, match=r"there is no store .*runs.db"):
        Store(tmp_path / "runs.db", create=False)
    assert not list(tmp_path.iterdir())


FOREIGN = {
    "empty": b"",
    "text": b"x,y\n1,2\n" * 100,
    "start": b"SQLite format 3\0",
    "pickle": b"\x80\x05}\x94.",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files_are_refused_and_untouched(tmp_path, name):
    path = tmp_path / "runs.db"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(StoreError, match=r"runs.db is not a store of hiddenmanifold"):
        Store(path)
    assert path.read_bytes() == FOREIGN[name]
    assert os.listdir(tmp_path) == ["runs.db"]


def test_other_databases_are_refused_and_untouched(tmp_path):
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE results (key)")
        db.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not a store"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_store_is_refused_and_untouched(tmp_path, share):
    store = filled(tmp_path / "runs.db", *(row(str(i)) for i in range(1000)))
    whole = store.path.read_bytes()
    half = whole[: int(share * len(whole))]
    store.path.write_bytes(half)
    with pytest.raises(StoreError, match="is damaged: .*; it is left as it is"):
        Store(store.path)
    assert store.path.read_bytes() == half


def test_a_changed_row_is_no_result(tmp_path):
    store = filled(tmp_path / "runs.db", row("a"), row("b"))
    with closing(sqlite3.connect(store.path)) as db:
        numbers = json.dumps({"error": 0.5})
        db.execute("UPDATE results SET numbers = ? WHERE key = 'a'", (numbers,))
        db.commit()
    with pytest.raises(StoreError, match="is damaged: the row a"):
        store.found("a")
    assert set(store.found("b")) == {"b"}
    assert [(r.key, good) for r, good in store.rows()] == [("a", False), ("b", True)]


def test_a_damaged_row_is_listed_even_if_it_cannot_be_read(tmp_path):
    store = filled(tmp_path / "runs.db", row("a"), row("b"))
    with closing(sqlite3.connect(store.path)) as db:
        db.execute("UPDATE results SET numbers = '{' WHERE key = 'a'")
        db.commit()
    assert [(r.key, r.numbers == {}, good) for r, good in store.rows()] == [
        ("a", True, False),
        ("b", False, True),
    ]


@pytest.mark.parametrize("name", [b"a b?c#d%20e&mode=ro.db", b"\xff.db"])
def test_any_name_will_do(tmp_path, name):
    path = os.fsencode(tmp_path) + b"/" + name
    filled(os.fsdecode(path), row())
    assert os.listdir(os.fsencode(tmp_path)) == [name]


def test_a_new_store_is_as_open_to_others_as_any_file(tmp_path):
    before = os.umask(0o002)
    try:
        path = Store(tmp_path / "runs.db").path
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o664


@pytest.mark.slow
def test_a_store_can_be_opened_while_another_process_writes(tmp_path):
    """In the midst of a checkpoint the file is shorter than its first page says."""
    path = tmp_path / "runs.db"
    Store(path)
    code = """
        with Store(sys.argv[1]).writing() as write:
            for i in range(60):
                write([row(f"{i}-{j}", x="x" * 2000) for j in range(100)])
    """
    code = "from test_store import *\n" + textwrap.dedent(code)
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    folder = __file__.rpartition("/")[0]
    with subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=folder, env=env) as writer:
        while writer.poll() is None:
            Store(path)
    assert writer.returncode == 0


def test_a_later_schema_is_refused(tmp_path, monkeypatch):
    store = filled(tmp_path / "runs.db", row())
    before = store.path.read_bytes()
    monkeypatch.setattr(store_module, "SCHEMA", 0)
    with pytest.raises(StoreError, match="has schema 1, and .* up to 0: install a later version"):
        Store(store.path)
    assert store.path.read_bytes() == before


def test_rows_by_other_versions_of_the_algorithm_are_found(tmp_path):
    rows = [
        replace(row(key), algorithm=by) for key, by in zip("abc", ("1", "2", "f00"), strict=True)
    ]
    store = filled(tmp_path / "runs.db", *rows)
    assert [r.key for r in store.rows_by_others("2")] == ["a", "c"]


def limited(code, *arguments):
    """Run some lines in another process, and what they print."""
    code = "from test_store import *\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=__file__.rpartition("/")[0],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def limit_files_to(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
def test_a_full_disk_leaves_the_store_intact(tmp_path):
    path = tmp_path / "runs.db"
    filled(path, row("first"))
    told = limited(
        """
        limit_files_to(100_000)
        store = Store(sys.argv[1])
        try:
            with store.writing() as write:
                for i in range(1000):
                    write([row(str(i))])
                    print(i)
        except StoreError as error:
            print(error)
        """,
        path,
    )
    *written, last = told.splitlines()
    assert "cannot be written" in last
    assert "What was written before stays" in last
    assert 0 < len(written) < 1000
    store = filled(path, row("next"))  # the disk has room again
    assert {r.key for r, good in store.rows() if good} == {"first", *written, "next"}
    assert store.integrity() == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no users to become")
def test_a_read_only_store_is_an_error(tmp_path):
    path = tmp_path / "runs.db"
    filled(path, row("first"))
    before = path.read_bytes()
    path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o555)
    tmp_path.chmod(0o555)
    told = limited(
        """
        if os.getuid() == 0:
            os.setuid(65534)  # for whom, unlike for root, permissions count
        try:
            with Store(sys.argv[1]).writing() as write:
                write([row("second")])
        except StoreError as error:
            print(error)
        """,
        path,
    )
    tmp_path.chmod(0o755)
    assert "runs.db cannot be" in told
    assert path.read_bytes() == before


@pytest.mark.slow
def test_processes_share_a_store(tmp_path):
    path = tmp_path / "runs.db"
    code = """
        with Store(sys.argv[1]).writing() as write:
            for i in range(60):
                write([row(f"{sys.argv[2]}{i}"), row(f"both{i}")])
    """
    code = "from test_store import *\n" + textwrap.dedent(code)
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    folder = __file__.rpartition("/")[0]
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=folder, env=env)
        for name in ("one", "two", "three")
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    names = [f"{name}{i}" for name in ("one", "two", "three", "both") for i in range(60)]
    assert sorted(r.key for r, good in Store(path).rows() if good) == sorted(names)
