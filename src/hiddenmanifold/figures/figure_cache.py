"""The netCDF files of a figure's datasets, each with a hash of what made it as an attribute.

Datasets are read back only if nothing that determines them has changed since: the figure's setting,
the compiled or the pure engine, and every source, in Python or in C, that computes them.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from hiddenmanifold import compiled
from hiddenmanifold.figures.figure_data import Datasets, Setting
from hiddenmanifold.storage import identity

if TYPE_CHECKING:
    pass

PACKAGE = Path(__file__).parents[1]
SHOWING = ("cli", "explorer", "plotting", "storage", "parallel")
"""Folders of this package that show, keep or distribute numbers and compute none."""
MADE_BY = "figure_digest"
"""Attribute with the hash of what made a dataset."""


def digest(setting: Setting, figure: str) -> str:
    """A hash of all that the data of a figure depend on."""
    told = sha256(f"{figure} {identity(setting)} {compiled.engine()}".encode())
    for path in sorted(PACKAGE.rglob("*.[pch]*")):
        if path.suffix in (".py", ".c", ".h") and _computes(path.relative_to(PACKAGE), figure):
            told.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return told.hexdigest()


def _computes(path: Path, figure: str) -> bool:
    """Whether the data of a figure depend on a source of this package."""
    if path.parts[0] == "figures":
        return path.stem in ("figure_data", figure)
    return path.parts[0] not in SHOWING


def recalled(files: dict[str, Path], made_by: str) -> Datasets | None:
    """The datasets in files, if all are there, whole, and made by the same."""
    import xarray as xr

    data = {}
    for part, path in files.items():
        try:
            data[part] = xr.load_dataset(path, engine="scipy")
        except Exception:  # no file, or not a whole one: SciPy raises whatever its bytes lead to
            return None
        if data[part].attrs.pop(MADE_BY, None) != made_by:
            return None
    return data


def keep(data: Datasets, files: dict[str, Path], made_by: str) -> None:
    """Write every part to its file."""
    for part, path in files.items():
        unfinished = path.with_suffix(".part")
        # as netCDF 3, which needs no library beyond SciPy
        data[part].assign_attrs({MADE_BY: made_by}).to_netcdf(unfinished, engine="scipy")
        unfinished.replace(path)  # so that an interruption leaves no half of a file
