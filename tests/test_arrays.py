"""Tables of arrays: rows are taken, written and joined in all columns at once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Rows


@dataclass(frozen=True)
class Table(Rows):
    a: Array
    b: Array

    @cached_property
    def total(self) -> float:
        return float(self.a.sum() + self.b.sum())


def table(*first):
    a = np.array(first, dtype=float)
    return Table(a, 10.0 * a)


def test_rows_are_taken_also_after_a_property_was_computed():
    rows = table(1, 2, 3)
    assert rows.total == 66.0
    taken = rows[np.array([2, 0])]
    np.testing.assert_array_equal(taken.columns, [[3, 1], [30, 10]])
    assert taken.total == 44.0


def test_rows_are_written_and_joined():
    rows, other = table(1, 2, 3), table(7, 8)
    for both in (rows.extended(other), Table.joined([rows, other])):
        np.testing.assert_array_equal(both.a, [1, 2, 3, 7, 8])
    rows[np.array([True, False, True])] = other
    np.testing.assert_array_equal(rows.columns, [[7, 2, 8], [70, 20, 80]])
