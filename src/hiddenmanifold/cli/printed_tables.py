"""Datasets as tables for people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.cli.ascii_symbols import legible
from hiddenmanifold.cli.output_files import columns, words
from hiddenmanifold.plotting.style import ordinate, sought
from hiddenmanifold.results.observables import DECISIONS, OBSERVABLES
from hiddenmanifold.results.schema import Kind, Role, is_real_data, of_role
from hiddenmanifold.theory.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console
    from rich.table import Table

FIRST = (
    *RATIOS,
    "optimal_regularisation",
    "optimal_time",
    "optimal_steps",
    "generalisation_error",
    "kernel_limit",
    "infinite_data_limit",
    "clean_error",
    "vote_error",
    *("bias", "samples_variance", "features_variance", "noise_variance"),
    *("disagreement", "probability_difference", "score_difference"),
    "training_loss",
    "training_error",
)
"""Quantities that are shown unless others are asked for."""
SHORT = (
    "optimal_regularisation",
    "optimal_time",
    "optimal_steps",
    "generalisation_error",
    "training_loss",
)
"""The same where each has several columns."""
SLOPES = ("regularisation", "n", "p")
"""What derivatives are taken by; they are shown beside the error and observables alone."""
OBSERVED = (*(observable.name for observable in OBSERVABLES), *DECISIONS)
"""What is measured, and then shown, where it is asked for."""
WIDEST = 1000
"""Columns of text in which every table has room."""
ROWS = 60
"""Most rows that a terminal shows; of a longer table, its beginning and its end."""

Column = tuple[str, list[str]]
"""Title and cells."""


def show(ds: xr.Dataset, quantities: Sequence[str] = ()) -> None:
    """Print a dataset on standard output: what varies in a table, the rest below it.

    A terminal is shown no more rows than can be read, and what it is too narrow for below the rest;
    anything else gets the whole table.
    """
    console = _console()
    points = next(iter(ds.data_vars.values())).size
    if console.is_terminal and points > ROWS:
        console.print(f"{ROWS} of {points} points; --csv, --json and --nc write all")
    screen = console.width
    for block in list(_blocks(console, keys(ds), groups(ds, quantities))):
        made = table(console, block)
        # never cut a number short, however narrow the screen is
        console.width = max(screen, _width(console, made))
        console.print(made)
    console.width = screen
    for line in below(ds):
        text = legible(line, console.encoding)
        console.print(text, style="dim", markup=False, soft_wrap=not console.is_terminal)


def _console() -> Console:
    from rich.console import Console

    class Unread(Console):
        """A console that leaves a closed pipe to its caller."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 what it was called for

    return Unread(highlight=False)


def _width(console: Console, made: Table) -> int:
    return console.measure(made, options=console.options.update(width=WIDEST)).maximum


def _blocks(
    console: Console, first: list[Column], rest: Sequence[list[Column]]
) -> Iterator[list[Column]]:
    """Tables that fit on the screen, each with the first columns and some groups of the rest."""
    block = list(first)
    for group in rest:
        wider = [*block, *group]
        full = console.is_terminal and _width(console, table(console, wider)) > console.width
        if full and len(block) > len(first):
            yield block
            wider = [*first, *group]
        block = wider
    yield block


def table(console: Console, shown: Sequence[Column]) -> Table:
    """Columns as a table, with the letters and as many rows as a console can show."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title, _ in shown:
        made.add_column(legible(title, console.encoding), justify="right", no_wrap=True)
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    if console.is_terminal and len(rows) > ROWS:
        rows[ROWS // 2 : -ROWS // 2] = [("⋮",) * len(shown)]
    for row in rows:
        made.add_row(*(legible(cell, console.encoding) for cell in row))
    return made


def keys(ds: xr.Dataset) -> list[Column]:
    """What varies."""
    flat = columns(ds)
    dims = [str(dim) for dim in ds.dims if str(dim) in flat]
    return [(heading(dim), [digits(v) for v in flat[dim]]) for dim in dims]


def groups(ds: xr.Dataset, quantities: Sequence[str] = ()) -> list[list[Column]]:
    """Quantities as columns; those of one belong together."""
    flat = columns(ds)
    wanted = quantities or default_quantities(ds)
    shown = [_columns_of(name, ds, flat) for name in wanted]
    for name in of_role(ds, Role.STATUS):
        if flat[name].any() and name not in wanted:
            shown.append(_columns_of(name, ds, flat))
    for name in ("seeds", "dropped"):
        if name in flat and (name == "seeds" or flat[name].any()) and name not in wanted:
            shown.append([(name, [str(int(value)) for value in flat[name]])])
    return shown


def below(ds: xr.Dataset) -> Iterator[str]:
    """What does not vary: ratios, the model, and what is minimised."""
    fixed = [(str(name), values) for name, values in ds.coords.items() if values.ndim == 0]
    if ds.attrs.get("kind") == Kind.PEAK and ds["p_over_n"].isnull().any():
        yield "—: the curve has no peak"
    if fixed:
        yield ", ".join(f"{heading(name)} = {digits(float(values))}" for name, values in fixed)
    if "sizes" in ds.attrs:
        yield str(ds.attrs["sizes"])
    yield str(ds.attrs["data" if is_real_data(ds) else "model"])
    if "training_loss" in ds:  # else nothing was minimised
        yield str(ds.attrs["objective"])


def default_quantities(ds: xr.Dataset) -> tuple[str, ...]:
    """What is shown of a dataset unless something else is asked for."""
    if is_real_data(ds):
        return ("generalisation_error",)
    names: tuple[str, ...] = SHORT if "generalisation_error_theory" in ds else FIRST
    asked = tuple(name for name in OBSERVED if name in ds)
    if "generalisation_error_by_log_n" in ds:
        names = tuple(
            column
            for name in ("generalisation_error", *asked)
            for column in (name, *(f"{name}_by_log_{parameter}" for parameter in SLOPES))
        )
    names = tuple(dict.fromkeys((*names, *asked)))
    if "clean_error" in ds and (ds["clean_error"] == ds["generalisation_error"]).all():
        names = tuple(name for name in names if name != "clean_error")  # labels without noise
    return tuple(name for name in names if name in ds.data_vars) or tuple(map(str, ds.data_vars))


def heading(name: str) -> str:
    """The name of a quantity, for a person."""
    if name in RATIOS:
        return name.replace("_over_", "/")
    words = re.sub(r"(?<=[A-Za-z]{2})_", " ", name)  # symbols keep theirs: q_w
    of_lambda = {"regularisation": "λ", "optimal regularisation": "optimal λ"}
    return of_lambda.get(words, words.replace("by log regularisation", "by log λ"))


def _columns_of(name: str, ds: xr.Dataset, flat: dict[str, NDArray[Any]]) -> list[Column]:
    """The columns of one quantity: its value, with its error, prediction and z-score if known."""
    if name not in flat:  # several numbers at each point
        parts = [part for part in flat if re.fullmatch(rf"{name}(_[\d.e-]+)+", part)]
        return [(heading(part), [digits(value) for value in flat[part]]) for part in parts]
    title = "\nby ".join(heading(name).split(" by "))
    if "\n" not in title:
        title = "\n".join(title.rsplit(" ", 1))
    if name in RATIOS:
        title = f"{sought(ds, name)}\n{title}".lstrip()
    if ds[name].attrs.get("role") == Role.STATUS:
        return [(title, words(ds[name], flat[name]))]
    if f"{name}_low" in flat:
        return _extrapolated(name, ds, flat)
    cells = [digits(value) for value in flat[name]]
    if f"{name}_stderr" in flat:
        pairs = zip(flat[name], flat[f"{name}_stderr"], strict=True)
        cells = [with_error(value, error) for value, error in pairs]
    if f"{name}_theory" not in flat:
        return [(title, cells)]
    theory = [digits(value) for value in flat[f"{name}_theory"]]
    z = ["—" if math.isnan(z) else f"{z:+.1f}" for z in flat[f"{name}_z"]]
    return [(title, cells), ("theory", theory), ("z", z)]


def _extrapolated(name: str, ds: xr.Dataset, flat: dict[str, NDArray[Any]]) -> list[Column]:
    """The columns of a prediction for real data: what was measured, its value, its interval."""
    title = ordinate(ds, name) if name == "generalisation_error" else heading(name)
    shown = [("predicted", [f"{value:.4g}" for value in flat[name]])]
    ends = zip(flat[f"{name}_low"], flat[f"{name}_high"], strict=True)
    shown.append(("± one deviation", [f"{low:.4g} to {high:.4g}" for low, high in ends]))
    if f"{name}_measured" in flat:
        pairs = zip(flat[f"{name}_measured"], flat[f"{name}_measured_stderr"], strict=True)
        shown.insert(0, ("measured", [with_error(value, error) for value, error in pairs]))
    return [(f"{title}\n{shown[0][0]}", shown[0][1]), *shown[1:]]


def digits(value: float) -> str:
    """Six digits of a number; a dash for none, the sign ∞ for an infinite one."""
    if np.isnan(value):
        return "—"
    return f"{value:.6g}".replace("inf", "∞")


def with_error(value: float, error: float) -> str:
    """A value and its standard error, both to the second digit of the error."""
    if math.isnan(value) or not 0 < error < math.inf:
        return digits(value)
    places = max(0, 1 - math.floor(math.log10(error)))
    if places > 9:
        return f"{value:.3g} ± {error:.1g}"
    return f"{value:.{places}f} ± {error:.{places}f}"
