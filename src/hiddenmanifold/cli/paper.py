"""The commands that concern the paper: its figures, and its claims."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hiddenmanifold.cli.app import app
from hiddenmanifold.cli.ascii_symbols import legible
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import Debug
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hiddenmanifold.figures.claims import Row

SHOWN = (1, 2)
"""The figures of a demonstration."""
NEXT = "make explore: a page on which curves follow sliders"
"""What to try after it."""


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


@app.command()
@spread
def demo(
    directory: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where the files go.")
    ] = Path("demo"),
    debug: Debug = False,
) -> None:
    """Show on one screen what this package does: figures 1 and 2 of the paper, and its claims.

    The figures are the quick ones. The report has them with all claims.
    """
    from rich.console import Console
    from rich.table import Table

    from hiddenmanifold import figures
    from hiddenmanifold.cli.work import undivided
    from hiddenmanifold.figures.claims import check
    from hiddenmanifold.figures.claims_page import write

    begun = time.monotonic()
    lines, pictures = [], []
    for number in SHOWN:
        picture, *_ = undivided(partial(figures.run, number, quick=True, directory=directory))
        z = abs(figures.scores(figures.datasets(number, quick=True, directory=directory)))
        pictures.append(str(picture))
        lines += [
            (f"figure {number}", figures.MODULES[number].TITLE),
            ("", f"{z.size} simulated numbers against theory: largest |z| {float(z.max()):.1f}"),
        ]
    rows = undivided(check)
    page = write(directory / "report.html", rows, directory)
    lines += [*verdicts(rows), ("seconds", f"{time.monotonic() - begun:.0f}")]
    lines += [("pictures", ", ".join(pictures)), ("report", str(page)), ("next", NEXT)]
    console = Console()
    table = Table(show_header=False, box=None, padding=(0, 3, 0, 0))
    for name, outcome in lines:
        table.add_row(name, legible(outcome, console.encoding))
    console.print(table)


def verdicts(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """How many claims hold, and those that differ, each in a line."""
    from hiddenmanifold.figures.claims import DIFFERS, HOLDS, REMARK

    count = Counter(row.verdict for row in rows)
    yield (
        "claims",
        f"of {len(rows)} in the text {count[HOLDS]} hold, {count[REMARK]} with a remark, and "
        f"{count[DIFFERS]} differ{':' if count[DIFFERS] else ''}",
    )
    for row in rows:
        if row.verdict == DIFFERS:
            note = f"; {row.note}" if row.note else ""
            yield "", f"{row.claim}: {row.expected}, computed {row.computed}{note}"
