"""Datasets on disk: kept with what made them, parameters and sources, and used for no other."""

from __future__ import annotations

import io
import json
import struct
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from hiddenmanifold.figures.curves import Datasets
from hiddenmanifold.figures.setting import Setting

PACKAGE = Path(__file__).parents[1]
SHOWING = ("cli/", "explorer/", "figures/", "plotting/")
"""Folders that show numbers; what computes them here is named in `digest`."""
UNREADABLE = (OSError, ValueError, TypeError, KeyError, IndexError, EOFError, struct.error)
"""What a broken file raises: it is parsed as one that is whole, until something makes no sense."""


def fingerprint(setting: Setting, figure: str) -> str:
    """What determines the data of a figure: parameters, version and sources, as a line of JSON."""
    content = {
        "parameters": asdict(setting),
        "version": version("hiddenmanifold"),
        "sources": digest(PACKAGE, figure),
    }
    return json.dumps(content, sort_keys=True)


@cache
def digest(package: Path, figure: str) -> str:
    """A hash of every source in the package's folder that the data of a figure depend on."""
    names = [path.relative_to(package).as_posix() for path in package.rglob("*.py")]
    own = {f"figures/{module}.py" for module in ("setting", "curves", figure)}
    hashed = sha256()
    for name in sorted(names):
        if name in own or not name.startswith(SHOWING):
            hashed.update(name.encode() + sha256((package / name).read_bytes()).digest())
    return hashed.hexdigest()


def paths(directory: Path, stem: str, parts: Sequence[str]) -> dict[str, Path]:
    """The file of each part."""
    return {part: directory / f"{stem}_{part}.nc" for part in parts}


def save(data: Datasets, files: dict[str, Path], key: str) -> None:
    """Write every part as netCDF 3, which needs no library beyond SciPy."""
    for part, path in files.items():
        unfinished = path.with_suffix(".part")
        data[part].assign_attrs(made_with=key).to_netcdf(unfinished, engine="scipy")
        unfinished.replace(path)  # so that an interruption leaves no half of a file


def load(files: dict[str, Path], key: str) -> Datasets | None:
    """The datasets, if every part is there and was made with the same `fingerprint`, else None.

    A file that cannot be read counts as missing, with a warning.
    """
    import xarray as xr

    data = {}
    for part, path in files.items():
        try:
            data[part] = xr.load_dataset(io.BytesIO(path.read_bytes()), engine="scipy")
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            warnings.warn(
                f"{path} cannot be read ({type(error).__name__}: {error}); it is computed again",
                stacklevel=3,
            )
            return None
        if data[part].attrs.get("made_with") != key:
            return None
    return data
