"""The figures of Gerace et al. 2020, reproduced: theory and simulation side by side.

A module per figure: its setting at the top, in the paper's size (`FULL`) and in a small one
(`QUICK`), `compute`, which returns datasets, and `draw`, which draws them and computes nothing.
Read `figure_1` first, then `figure_data` (the paper's models, what determines a figure's data, and
predicted curves and simulated points of several models). `drawing` has the style and writes the
files, `claims` checks the sentences of the paper that are not figures, and `claims_page` shows
everything on one page.

`run` computes a figure, or reads its datasets, and draws it. What was computed stays on disk in two
forms. Every simulated fit is a row of the store `results.db`, so that an interrupted figure goes on
where it stopped. The finished datasets are netCDF files; `figure_cache` reads them back as long as
nothing that determines them has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.figures import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    figure_cache,
)
from hiddenmanifold.figures.drawing import write
from hiddenmanifold.figures.figure_data import Datasets, Setting, scores
from hiddenmanifold.plotting.figure import check_available

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MODULES", "NUMBERS", "Recipe", "datasets", "run", "scores", "stem"]


class Recipe(Protocol):
    """What the module of a figure has."""

    TITLE: str
    """One line that says what the figure shows."""
    FULL: Setting
    """Ratios, sizes and seeds of the paper."""
    QUICK: Setting
    """The same in sizes that take seconds."""

    @property
    def PARTS(self) -> tuple[str, ...]:
        """Names of its datasets."""

    def compute(
        self, setting: Setting, *, progress: bool | None = False, store: Path | None = None
    ) -> Datasets:
        """The datasets behind the figure, named like its `PARTS`; fits are kept in the store."""

    def draw(self, data: Datasets) -> Figure:
        """The figure, of the datasets that `compute` returned."""


MODULES = dict[int, Recipe](
    enumerate((figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, figure_7), start=1)
)
STORE = "results.db"
"""The file in a figure's directory that keeps every fit, so that a figure can be interrupted."""
NUMBERS = tuple(MODULES)
"""The numbers of the paper's figures."""


def run(number: int, *, quick: bool, directory: Path | str, progress: bool = True) -> list[Path]:
    """Compute a figure of the paper, or take its data from the directory, and draw it.

    Parameters
    ----------
    number : int
        Number of the figure in the paper.
    quick : bool
        Whether to simulate small sizes and few seeds instead of those of the paper.
    directory : path
        Where everything is written, quick and full ones side by side. Datasets found there are
        used again if they were made with the same parameters by the same source code.
    progress : bool
        Whether simulations show a progress bar.

    Returns
    -------
    list of Path
        The figure as PNG, PDF and SVG, and its datasets as netCDF.

    Raises
    ------
    InvalidArgumentError
        If there is no such figure.
    MissingExtraError
        If matplotlib is not installed.
    """
    check_available()  # before minutes are spent on what cannot be drawn
    directory = Path(directory)
    data = datasets(number, quick=quick, directory=directory, progress=progress)
    drawn = write(MODULES[number].draw(data), directory, stem(number, quick=quick))
    return [*drawn, *_files(number, quick, directory).values()]


def stem(number: int, *, quick: bool) -> str:
    """How the names of a figure's files begin."""
    return f"figure_{number}_quick" if quick else f"figure_{number}"


def datasets(number: int, *, quick: bool, directory: Path | str, progress: bool = True) -> Datasets:
    """The datasets behind a figure: those in the directory, if they fit, else computed and kept."""
    if number not in MODULES:
        raise InvalidArgumentError("number", number, "one of " + ", ".join(map(str, NUMBERS)))
    recipe, directory = MODULES[number], Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    setting = recipe.QUICK if quick else recipe.FULL
    files = _files(number, quick, directory)
    made_by = figure_cache.digest(setting, f"figure_{number}")
    data = figure_cache.recalled(files, made_by)
    if data is None:
        data = recipe.compute(setting, progress=progress, store=directory / STORE)
        figure_cache.keep(data, files, made_by)
    return data


def _files(number: int, quick: bool, directory: Path) -> dict[str, Path]:
    start = stem(number, quick=quick)
    return {part: directory / f"{start}_{part}.nc" for part in MODULES[number].PARTS}
