"""The command line: parse, call, print. It contains no formulas.

A command is a function in one of `theory_commands` (curves and questions about them),
`pair_commands` (several fits), `simulation_commands`, `data_command` and `data_training_command`
(real data), `study_command` (planning without data), `paper` (figures and claims), `stores` and
`explore`. Each follows the same steps, which the other modules are named after:

1. `app` is the program that commands join; `options` declares the options that several commands
   share, in dataclasses that `option_groups` spreads over a command's signature.
2. `values` and `ingredient_options` turn what was typed into numbers and ingredients.
3. `work` runs the computation with a progress bar; `cluster` finds workers elsewhere.
4. `output` checks beforehand that results can be delivered, then delivers them: `output_files` as
   CSV, JSON or netCDF, `printed_tables` on the terminal, where `ascii_symbols` replaces symbols
   that the terminal lacks.
5. `exit_codes` turns every ending into one sentence and an exit code.
"""

import sys
from io import TextIOWrapper

from hiddenmanifold.cli.app import app
from hiddenmanifold.cli.ascii_symbols import SPELT

# each adds its commands, in the order of the help page
from hiddenmanifold.cli import theory_commands  # noqa: F401 # isort: skip
from hiddenmanifold.cli import pair_commands  # noqa: F401 # isort: skip
from hiddenmanifold.cli import simulation_commands  # noqa: F401 # isort: skip
from hiddenmanifold.cli import data_command, data_training_command, study_command  # noqa: F401 # isort: skip
from hiddenmanifold.cli import explore, paper, stores  # noqa: F401 # isort: skip

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=SPELT)
    app(prog_name="hiddenmanifold")
