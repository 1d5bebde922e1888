"""The lowest versions that pyproject.toml allows, as pip takes them, for `make check-lowest`."""

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def requirements():
    """Each `name>=version` as `name==version`; this package itself has none."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    stated = [one for group in groups for one in group if not one.startswith(PROJECT["name"])]
    return sorted({one.partition(",")[0].replace(">=", "==") for one in stated})


if __name__ == "__main__":
    print("\n".join(requirements()))
