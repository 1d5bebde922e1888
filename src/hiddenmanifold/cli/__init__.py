"""The command line: parse, call, print. It contains no formulas.

The modules are named after these steps: `values` and `ingredients` read what was typed, `options`
holds what the commands share, which `groups` spreads over their signatures, `work` runs it with a
progress bar, `tables` and `files` present the result, `outcome` turns every ending into a sentence
and an exit code. The commands are those of `commands` (curves), `answers` (questions about a
curve), `data`, `paper`, `stores` and `explore`; `cluster` finds
workers elsewhere.
"""

import sys
from io import TextIOWrapper

from hiddenmanifold.cli import answers, data_command, explore, paper, stores  # noqa: F401 their commands
from hiddenmanifold.cli.ascii_symbols import SPELT
from hiddenmanifold.cli.commands import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=SPELT)
    app(prog_name="hiddenmanifold")
