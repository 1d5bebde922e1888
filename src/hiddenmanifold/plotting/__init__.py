"""Draw datasets of `predict`, `simulate`, `summary` and `compare`; nothing is computed here."""

from hiddenmanifold.plotting.figure import (
    MissingExtraError,
    check_destination,
    horizontal,
    plot,
    save,
)
from hiddenmanifold.plotting.style import is_logarithmic

__all__ = [
    "MissingExtraError",
    "check_destination",
    "horizontal",
    "is_logarithmic",
    "plot",
    "save",
]
