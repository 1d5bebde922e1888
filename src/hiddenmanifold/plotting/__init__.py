"""Draw datasets of `predict`, `simulate`, `summary` and `compare`; nothing is computed here.

`selection` chooses what to draw, `figure` puts it on panels, `curves` and `maps` draw it, `stack`
draws bias and variances on top of each other, and `overlays` several datasets; `legends`, `style`
and `words` say how it looks and what it is called.
"""

from hiddenmanifold.plotting.figure import check_destination, plot, save
from hiddenmanifold.plotting.selection import axes_of
from hiddenmanifold.plotting.style import is_logarithmic

__all__ = [
    "axes_of",
    "check_destination",
    "is_logarithmic",
    "plot",
    "save",
]
