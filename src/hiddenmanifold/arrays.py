"""The types of arrays that all modules speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]
Columns = dict[str, NDArray[Any]]
"""Named results, flat arrays of one length."""
