"""The λ at which a fit is solved one after another where the usual start fails at the last one."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array

FACTOR, MOST = 0.25, 40
"""Factor between successive λ, and how many of them at most."""


def stages(first: float, lam: float) -> Array:
    """Regularisations from the `first`, where the usual start is a good one, to `lam`."""
    steps = min(int(np.ceil(abs(np.log(lam / first) / np.log(FACTOR)))), MOST)
    return np.geomspace(first, lam, steps + 1)
