"""The λ at which a fit is solved one after another where the usual start fails at the last one."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array

FACTOR, MOST = 0.25, 40
"""Factor between successive λ, and how many of them at most."""


def stages(high: float, lam: float) -> Array:
    """Regularisations from `high`, where the usual start is exact, down to `lam`."""
    steps = min(int(np.ceil(np.log(lam / high) / np.log(FACTOR))), MOST)
    return np.geomspace(high, lam, steps + 1)
