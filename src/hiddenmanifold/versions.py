"""What is installed here: the lines to paste into a report of a problem."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata

from hiddenmanifold import compiled

NEEDED = ("numpy", "scipy", "xarray", "threadpoolctl", "typer", "rich")
EXTRAS = ("matplotlib", "dask", "distributed", "zarr", "scikit-learn")

version = cache(metadata.version)  # a look-up takes longer than much of what asks for it


def show_versions() -> None:
    """Print the versions of this package and of what it stands on, the machine and its threads."""
    for name, value in versions().items():
        print(f"{name:<16}{value}")


def versions() -> dict[str, str]:
    """What `show_versions` prints, by name."""
    return {
        "hiddenmanifold": _installed("hiddenmanifold"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.platform()}, {os.cpu_count()} cores",
        "engine": compiled.engine(),
        **{name: _installed(name) for name in NEEDED},
        "BLAS": _linear_algebra(),
        **{name: f"{_installed(name)} (optional)" for name in EXTRAS},
    }


def _installed(name: str) -> str:
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _linear_algebra() -> str:
    """Libraries of linear algebra that are loaded, and how many threads they use."""
    import scipy.linalg  # noqa: F401  # so that they are
    from threadpoolctl import threadpool_info

    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    each = (f"{i['internal_api']} {i['version']}, threads: {i['num_threads']}" for i in found)
    return "; ".join(dict.fromkeys(each)) or "unknown"
