"""The command that opens the interactive explorer."""

from __future__ import annotations

from typing import Annotated

import typer

from hiddenmanifold.cli.app import app
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import Debug


@app.command()
@spread
def explore(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 is any free one.")
    ] = 8050,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; by default this machine only.")
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Answer only those who open the page with ?token=WORD. Beyond this machine one "
            "is made, unless names are allowed.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name or address by which the page may be asked for, beside those of this "
            "machine; repeat it for more. Beyond this machine it can take the place of a token.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Open the interactive explorer in the browser: learning curves follow sliders.

    It is served by this machine and loads nothing from the network; Ctrl-C ends it.
    """
    from hiddenmanifold.explorer import LOOPBACK, serve

    if host not in LOOPBACK:
        whom = "knows the token" if token or not allow_host else f"asks for {allow_host[0]}"
        typer.echo(
            f"warning: whoever reaches {host}:{port} and {whom} can use the page, "
            "which is not encrypted",
            err=True,
        )
    serve(host, port, browser=browser, token=token, names=allow_host or ())
