"""The types of arrays that all modules speak of, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]
Columns = dict[str, NDArray[Any]]
"""Named results, flat arrays of one length."""


@dataclass(frozen=True)
class Rows:
    """Arrays of one length, whose rows are taken and joined together."""

    def __getitem__(self, some: Integers | Booleans | slice) -> Self:
        return type(self)(*(values[some] for values in vars(self).values()))

    def __setitem__(self, some: Integers | Booleans, other: Self) -> None:
        for values, new in zip(vars(self).values(), vars(other).values(), strict=True):
            values[some] = new

    def __add__(self, other: Self) -> Self:
        return self.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))
