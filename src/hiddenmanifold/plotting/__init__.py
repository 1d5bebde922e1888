"""Draw datasets of `predict`, `simulate`, `summary` and `compare`; nothing is computed here.

`figure` chooses what to draw, `curves` draws it, `style` and `words` say how it looks and what its
axes are called.
"""

from hiddenmanifold.plotting.figure import axes_of, check_destination, plot, save
from hiddenmanifold.plotting.style import is_logarithmic

__all__ = [
    "axes_of",
    "check_destination",
    "is_logarithmic",
    "plot",
    "save",
]
