"""Draw datasets of `predict`, `simulate`, `summary` and `compare`; nothing is computed here."""

from hiddenmanifold.errors import MissingExtraError
from hiddenmanifold.plotting.figure import (
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
