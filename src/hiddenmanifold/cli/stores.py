"""The commands that look into a store of simulations."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiddenmanifold.cli.app import app
from hiddenmanifold.cli.exit_codes import Code, OneSentence, stop
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import Debug
from hiddenmanifold.cli.output_files import STANDARD_OUTPUT, in_json, opened
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hiddenmanifold.storage import Row

File = Annotated[Path, typer.Argument(metavar="STORE", help="The file given as store=.")]

store = typer.Typer(cls=OneSentence, help="Look into a store of simulations, and tidy it.")
app.add_typer(store, name="store", no_args_is_help=True)


COLUMNS = ("n", "p", "d", "regularisation", "root_seed", "seed", "data")
"""What `ls` shows of a fit, beside its state, its date, its key and its model."""


def _rows(path: Path) -> list[tuple[Row, bool]]:
    from hiddenmanifold.storage import Store

    return list(Store(path, create=False).rows())


def _state(row: Row, intact: bool) -> str:
    """What becomes of a row when its fit is asked for again."""
    from hiddenmanifold.simulation.trial_cache import FORMER_SOURCES, reusable

    if not intact or row.kind != "fit":
        return row.kind if intact else "damaged"
    if not reusable(row):
        return "outdated"
    return "former" if row.algorithm in FORMER_SOURCES else "reusable"


def _listed(rows: list[tuple[Row, bool]]) -> Iterator[tuple[str, ...]]:
    yield "state", *COLUMNS, "date", "key", "model"
    for row, intact in rows:
        what = row.content
        model = str(what.get("model") or what.get("figure") or "")
        sizes = (str(what.get(name, "")) for name in COLUMNS)
        yield _state(row, intact), *sizes, row.date[:10], row.key[:12], model


@store.command()
@spread
def ls(path: File, debug: Debug = False) -> None:
    """List what a store holds, a line per row: its state, sizes, λ, seeds and model.

    A reusable fit is not computed again. A former one was written before the version of the
    algorithm was recorded; it is reused, unless its model has functions or arrays of one's own, or
    margins were asked for. An outdated one was computed by another version of the algorithm.
    """
    table = list(_listed(_rows(path)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


@store.command()
@spread
def export(
    path: File,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Ends in .csv or .json; - is CSV.")],
    debug: Debug = False,
) -> None:
    """Write every fit with its origin, as CSV or as JSON, a line each."""
    from hiddenmanifold.simulation.trial_cache import algorithm_version

    if file.suffix not in (".csv", ".json") and file != STANDARD_OUTPUT:
        raise InvalidArgumentError("FILE", str(file), "a name that ends in .csv or .json, or -")
    fits: list[dict[str, Any]] = []
    for row, good in _rows(path):
        if row.kind == "fit":
            made_by = {"version": row.version, "algorithm": algorithm_version(row)}
            origin = {**made_by, "date": row.date}
            fits.append({"key": row.key, **row.content, **row.numbers, **origin, "intact": good})
    names = list(dict.fromkeys(name for fit in fits for name in fit))
    with opened(file) as out:
        if file.suffix == ".json":
            told = ({name: in_json(value) for name, value in fit.items()} for fit in fits)
            out.writelines(json.dumps(fit) + "\n" for fit in told)
        else:
            table = csv.DictWriter(out, names)
            table.writeheader()
            table.writerows(fits)


@store.command()
@spread
def verify(path: File, debug: Debug = False) -> None:
    """Check that every row is as it was written, and the file is whole."""
    from hiddenmanifold.storage import Store

    wrong = Store(path, create=False).integrity()
    rows = _rows(path) if not wrong else []
    damaged = [row.key for row, good in rows if not good]
    if wrong or damaged:
        first = ", ".join(key[:12] for key in damaged[:5])
        what = wrong[0] if wrong else f"{len(damaged)} of {len(rows)} rows changed, as {first}"
        stop(Code.INCOMPLETE, f"{path} is damaged: {what}")
    outdated = sum(_state(row, good) == "outdated" for row, good in rows)
    typer.echo(
        f"{path}: {len(rows)} rows, all intact; {outdated} by another version of the algorithm"
    )


@store.command()
@spread
def prune(
    path: File,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    debug: Debug = False,
) -> None:
    """Take out rows that nothing reuses: damaged, or by another version of the algorithm."""
    from hiddenmanifold.storage import Store

    rows = _rows(path)
    keys = [row.key for row, good in rows if _state(row, good) not in ("reusable", "former")]
    if not dry_run:
        Store(path, create=False).remove(keys)
    typer.echo(f"{path}: {len(keys)} of {len(rows)} rows {'would go' if dry_run else 'taken out'}")
