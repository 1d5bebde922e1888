"""The commands that concern the paper: its figures, and its claims."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hiddenmanifold.cli.app import app
from hiddenmanifold.cli.ascii_symbols import legible
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import Debug
from hiddenmanifold.errors import InvalidArgumentError


@app.command()
@spread
def figure(
    number: Annotated[str, typer.Argument(metavar="N|all", help="Number of the figure.")],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick/--full", help="A minute's work, as figure_N_quick, or the paper's own sizes."
        ),
    ] = True,
    directory: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where the files go.")
    ] = Path("figures"),
    debug: Debug = False,
) -> None:
    """Compute and draw a figure of the paper, or all of them.

    What was computed before with the same parameters and sources is not computed again.
    """
    from hiddenmanifold import figures
    from hiddenmanifold.cli.work import undivided

    known = [str(n) for n in figures.NUMBERS]
    if number not in (*known, "all"):
        raise InvalidArgumentError("figure", number, f"one of {', '.join(known)}, or all")
    for chosen in known if number == "all" else [number]:
        for path in undivided(partial(figures.run, int(chosen), quick=quick, directory=directory)):
            typer.echo(path)


@app.command()
@spread
def claims(
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Also write report.html there, with the table and the figures found there.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Check the paper's claims, one by one, against what this package computes."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hiddenmanifold.cli.work import undivided
    from hiddenmanifold.figures.claims import COLOURS, check

    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    rows = undivided(check)
    console = Console()
    table = Table("claim", "the text", "computed", "verdict", show_lines=True)
    for row in rows:
        claim, expected, computed, note = (
            legible(text, console.encoding)
            for text in (row.claim, row.expected, row.computed, "\n" + row.note if row.note else "")
        )
        verdict = Text(row.verdict, COLOURS[row.verdict])
        table.add_row(claim, expected, Text.assemble(computed, (note, "dim")), verdict)
    console.print(table)
    if report is not None:
        from hiddenmanifold.figures.claims_page import write

        typer.echo(write(report / "report.html", rows, report))
