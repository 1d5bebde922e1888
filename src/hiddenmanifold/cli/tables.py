"""Datasets as tables for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.cli.files import STATUSES, columns
from hiddenmanifold.errors import Status
from hiddenmanifold.points import RATIOS

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

FIRST = (
    "optimal_regularisation",
    "generalisation_error",
    "clean_error",
    "training_loss",
    "training_error",
)
"""Quantities that are shown unless others are asked for."""
SHORT = ("generalisation_error", "training_loss")
"""The same where each has several columns."""
WIDEST = 1000
"""Columns of text in which every table has room."""
ROWS = 60
"""Most rows that are shown; of a longer table, its beginning and its end."""


def show(ds: xr.Dataset, quantities: Sequence[str] = ()) -> None:
    """Print a dataset on standard output: what varies in a table, the rest below it."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    made = table(ds, quantities)
    # never cut a number short, however narrow the screen is
    whole = console.measure(made, options=console.options.update(width=WIDEST)).maximum
    console.width = max(console.width, whole)
    console.print(made)
    for line in below(ds):
        console.print(line, style="dim", markup=False)


def table(ds: xr.Dataset, quantities: Sequence[str] = ()) -> Table:
    """What varies in a dataset, and the quantities, as columns."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    flat = columns(ds)
    shown = [(heading(str(dim)), [digits(v) for v in flat[str(dim)]]) for dim in ds.dims]
    for name in quantities or default_quantities(ds):
        shown += _columns_of(name, flat)
    for name in STATUSES:
        if name in flat and flat[name].any():
            words = [Status(int(value)).name.lower() for value in flat[name]]
            shown.append((heading(name), words))
    for name in ("seeds", "dropped"):
        if name in flat and (name == "seeds" or flat[name].any()):
            shown.append((name, [str(int(value)) for value in flat[name]]))
    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title, _ in shown:
        made.add_column(title, justify="right", no_wrap=True)
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    if len(rows) > ROWS:
        made.title = f"{ROWS} of {len(rows)} points; --csv, --json and --nc write all"
        rows[ROWS // 2 : -ROWS // 2] = [("⋮",) * len(shown)]
    for row in rows:
        made.add_row(*row)
    return made


def below(ds: xr.Dataset) -> Iterator[str]:
    """What does not vary: ratios, the model, and what is minimised."""
    fixed = [(str(name), values) for name, values in ds.coords.items() if values.ndim == 0]
    if fixed:
        yield ", ".join(f"{heading(name)} = {digits(float(values))}" for name, values in fixed)
    yield str(ds.attrs["model"])
    if "training_loss" in ds:  # else nothing was minimised
        yield str(ds.attrs["objective"])


def default_quantities(ds: xr.Dataset) -> tuple[str, ...]:
    """What is shown of a dataset unless something else is asked for."""
    names: tuple[str, ...] = SHORT if "generalisation_error_theory" in ds else FIRST
    if "clean_error" in ds and (ds["clean_error"] == ds["generalisation_error"]).all():
        names = tuple(name for name in names if name != "clean_error")  # labels without noise
    return tuple(name for name in names if name in ds) or tuple(map(str, ds.data_vars))


def heading(name: str) -> str:
    """The name of a quantity, for a person."""
    if name in RATIOS:
        return name.replace("_over_", "/")
    return {"regularisation": "λ", "optimal_regularisation": "optimal λ"}.get(
        name, name.replace("_", " ")
    )


def _columns_of(name: str, flat: dict[str, NDArray[Any]]) -> list[tuple[str, list[str]]]:
    """The columns of one quantity: its value, with its error, prediction and z-score if known."""
    title = "\n".join(heading(name).rsplit(" ", 1))
    if name in RATIOS:
        title = f"threshold\n{title}"
    cells = [digits(value) for value in flat[name]]
    if f"{name}_stderr" in flat:
        pairs = zip(flat[name], flat[f"{name}_stderr"], strict=True)
        cells = [with_error(value, error) for value, error in pairs]
    if f"{name}_theory" not in flat:
        return [(title, cells)]
    theory = [digits(value) for value in flat[f"{name}_theory"]]
    z = ["—" if math.isnan(z) else f"{z:+.1f}" for z in flat[f"{name}_z"]]
    return [(title, cells), ("theory", theory), ("z", z)]


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
