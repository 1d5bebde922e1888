"""The program: its name, its version, its help page, and how a command joins it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from hiddenmanifold.cli.exit_codes import Code, OneSentence
from hiddenmanifold.cli.option_groups import WithIngredients

EPILOG = [
    "Start with: hiddenmanifold predict --n-over-d 3 --p-over-n 0.05:3:60 --lam 1e-4 --plot a.png",
    "Names of activations, projections, teachers and losses: hiddenmanifold predict --help",
    "Exit codes:",
    *(f"{code.value:4}  {code.meaning}" for code in Code),
]
VALUES = (
    "VALUES are a number, as 3 or inf; several, as 0.5,1,2; a range, as 0.05:3:60 for 60 of them; "
    "or a geometric series, as log:1e-4:1e2:40."
)

app = typer.Typer(
    cls=OneSentence,
    help="Exact learning curves of generalised linear models on random features.",
    epilog="\n\n".join(EPILOG),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
command = partial(app.command, cls=WithIngredients, epilog=VALUES)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hiddenmanifold {version('hiddenmanifold')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
