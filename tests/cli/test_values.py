"""Numbers, ranges and lists as they are typed."""

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from hiddenmanifold.cli.values import MOST, bounds, values, values_or

FLOATS = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5,1,2", [0.5, 1.0, 2.0]),
        (" 1 , 2 ", [1.0, 2.0]),
        ("0.05:3:60", np.linspace(0.05, 3, 60)),
        ("3:1:2", [3.0, 1.0]),
        ("log:1e-4:1e2:40", np.geomspace(1e-4, 1e2, 40)),
        ("0,log:0.01:1:3,inf", [0.0, 0.01, 0.1, 1.0, np.inf]),
    ],
)
def test_a_list_or_a_range_is_a_vector(text, expected):
    found = values(text)
    assert np.ndim(found) == 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("text", "expected"), [("3", 3.0), ("1e-4", 1e-4), ("inf", np.inf)])
def test_one_number_is_a_number(text, expected):
    found = values(text)
    assert np.ndim(found) == 0
    assert found == expected


@pytest.mark.slow
@given(st.lists(FLOATS, min_size=2, max_size=5))
def test_every_list_of_numbers_is_read_to_the_last_digit(numbers):
    np.testing.assert_array_equal(values(",".join(map(repr, numbers))), numbers)


BAD = [
    "",
    "abc",
    "1,,2",
    "1_000",
    "1:2",
    "1:2:x",
    "1:2:2.5",
    "1:2:3:4",
    "lin:1:2:3",
    "1:2:1",
    "1:1:5",
    "0:inf:3",
    "nan:1:3",
    f"0:1:{MOST + 1}",
    "log:0:1:5",
    "log:-1:1:5",
    "log:1:2",
]


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_read_is_refused_with_the_piece_that_is_wrong(text):
    with pytest.raises(typer.BadParameter, match="^'.*' is not allowed: it must be "):
        values(text)


def test_regularisation_may_be_the_word_optimal():
    parse = values_or("optimal")
    assert parse(" optimal ") == "optimal"
    assert parse("1e-3") == 1e-3
    with pytest.raises(typer.BadParameter, match="; or the word optimal$"):
        parse("best")


def test_bounds_are_two_numbers():
    assert bounds("0:inf") == (0.0, np.inf)
    for text in ("1", "1:", "a:b", "1:2:3"):
        with pytest.raises(typer.BadParameter, match="two numbers, low:high"):
            bounds(text)
