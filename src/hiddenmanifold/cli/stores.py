"""The commands that look into a store of simulations."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiddenmanifold.cli.ascii_symbols import legible
from hiddenmanifold.cli.commands import app
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


def _rows(path: Path) -> list[tuple[Row, bool]]:
    from hiddenmanifold.storage import Store

    return list(Store(path, create=False).rows())


def _current(row: Row) -> bool:
    """Whether a fit was made by the sources that run now; of other kinds that is not known here."""
    from hiddenmanifold.simulation.trial_cache import computing_sources

    return row.kind != "fit" or row.sources == computing_sources()


@store.command()
@spread
def ls(path: File, debug: Debug = False) -> None:
    """List what a store holds: models, sizes, and how many fits of each."""
    from rich.console import Console
    from rich.table import Table

    groups: Counter[tuple[str, ...]] = Counter()
    for row, good in _rows(path):
        what, made = row.content, "now" if _current(row) else "other sources"
        sizes = (str(what.get(name, "")) for name in ("n", "p", "d", "data"))
        name = str(what.get("model") or what.get("figure")) if good else "damaged"
        groups[(row.kind, name, *sizes, made)] += 1
    console = Console()
    table = Table("kind", "of", "n", "p", "d", "data", "made by", "rows")
    # sizes in the order of numbers
    for key, count in sorted(groups.items(), key=lambda item: [(len(t), t) for t in item[0]]):
        table.add_row(*(legible(text, console.encoding) for text in key), str(count))
    console.print(table)


@store.command()
@spread
def export(
    path: File,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Ends in .csv or .json; - is CSV.")],
    debug: Debug = False,
) -> None:
    """Write every fit with its origin, as CSV or as JSON, a line each."""
    if file.suffix not in (".csv", ".json") and file != STANDARD_OUTPUT:
        raise InvalidArgumentError("FILE", str(file), "a name that ends in .csv or .json, or -")
    fits: list[dict[str, Any]] = []
    for row, good in _rows(path):
        if row.kind == "fit":
            origin = {"version": row.version, "sources": row.sources, "date": row.date}
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
    other = sum(not _current(row) for row, _ in rows)
    typer.echo(f"{path}: {len(rows)} rows, all intact; {other} made by other sources than these")


@store.command()
@spread
def prune(
    path: File,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    debug: Debug = False,
) -> None:
    """Take out rows that are damaged or were made by other sources, which nothing reuses."""
    from hiddenmanifold.storage import Store

    rows = _rows(path)
    keys = [row.key for row, good in rows if not good or not _current(row)]
    if not dry_run:
        Store(path, create=False).remove(keys)
    typer.echo(f"{path}: {len(keys)} of {len(rows)} rows {'would go' if dry_run else 'taken out'}")
