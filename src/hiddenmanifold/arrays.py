"""The array types that all modules use, and tables of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]
Numbers = NDArray[Any]
"""Real or complex numbers."""
Columns = dict[str, NDArray[Any]]
"""Named results, flat arrays of one length."""


def chunks(index: Integers, most: int) -> list[Integers]:
    """Parts of about equal length, at most `most`; they do not depend on the number of workers."""
    return np.array_split(index, -(-len(index) // most)) if len(index) else []


def joined(parts: Sequence[Columns]) -> Columns:
    """The columns of all parts, one after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class Rows:
    """Arrays of one length, the fields of a table, whose rows are taken and joined together."""

    @property
    def columns(self) -> list[NDArray[Any]]:
        """The arrays, in the order of the fields."""
        return [getattr(self, column.name) for column in fields(self)]

    def __getitem__(self, some: Integers | Booleans | slice) -> Self:
        return type(self)(*[values[some] for values in self.columns])

    def __setitem__(self, some: Integers | Booleans, other: Self) -> None:
        for values, new in zip(self.columns, other.columns, strict=True):
            values[some] = new

    def extended(self, *more: Self) -> Self:
        """These rows, and then those of others."""
        return self.joined([self, *more])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one after another."""
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))
