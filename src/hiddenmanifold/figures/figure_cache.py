"""Datasets of figures in a store, under a hash of what made them: parameters and sources."""

from __future__ import annotations

import io
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hiddenmanifold.figures.figure_data import Datasets
from hiddenmanifold.figures.setting import Setting
from hiddenmanifold.storage import SHOWING, Row, Store, fingerprint, sources_digest

if TYPE_CHECKING:
    import xarray as xr

PACKAGE = Path(__file__).parents[1]


def digest(figure: str) -> str:
    """A hash of every source that the data of a figure depend on."""
    others = tuple(
        path.relative_to(PACKAGE).as_posix()
        for path in (PACKAGE / "figures").rglob("*.py")
        if path.stem not in ("setting", "curves", figure)
    )
    return sources_digest(PACKAGE, (*SHOWING, *others))


def recalled(store: Store, setting: Setting, figure: str) -> Datasets | None:
    """The datasets that were made so, if the store has them."""
    import xarray as xr

    key = _key(setting, figure)
    if (row := store.found([key]).get(key)) is None:
        return None
    files = {part: io.BytesIO(b64decode(text)) for part, text in row.numbers.items()}
    return {part: xr.load_dataset(file, engine="scipy") for part, file in files.items()}


def keep(store: Store, setting: Setting, figure: str, data: Datasets) -> None:
    """Keep datasets for the next time."""
    numbers = {part: b64encode(_netcdf(ds)).decode() for part, ds in data.items()}
    content = {"figure": figure, "setting": str(setting)}
    with store.writing() as write:
        write([Row(_key(setting, figure), "dataset", content, numbers, digest(figure))])


def _key(setting: Setting, figure: str) -> str:
    return fingerprint([figure, asdict(setting), digest(figure)])


def paths(directory: Path, stem: str, parts: Sequence[str]) -> dict[str, Path]:
    """The file of each part."""
    return {part: directory / f"{stem}_{part}.nc" for part in parts}


def export(data: Datasets, files: dict[str, Path]) -> None:
    """Write every part to its file."""
    for part, path in files.items():
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(_netcdf(data[part]))
        unfinished.replace(path)  # so that an interruption leaves no half of a file


def _netcdf(ds: xr.Dataset) -> bytes:
    """A dataset as netCDF 3, which needs no library beyond SciPy."""
    return bytes(ds.to_netcdf(engine="scipy"))
