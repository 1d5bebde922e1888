"""Numbers, ranges and lists as they are typed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiddenmanifold as hm
from hiddenmanifold.cli.values import MOST, bounds, regularisation, values

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
    found = values("--x", text)
    assert np.ndim(found) == 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("text", "expected"), [("3", 3.0), ("1e-4", 1e-4), ("inf", np.inf)])
def test_one_number_is_a_number(text, expected):
    found = values("--x", text)
    assert np.ndim(found) == 0
    assert found == expected


@given(st.lists(FLOATS, min_size=2, max_size=5))
def test_every_list_of_numbers_is_read_to_the_last_digit(numbers):
    np.testing.assert_array_equal(values("--x", ",".join(map(repr, numbers))), numbers)


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
def test_what_cannot_be_read_is_refused_by_the_name_of_the_option(text):
    with pytest.raises(hm.InvalidArgumentError, match="^--p-over-n = "):
        values("--p-over-n", text)


def test_regularisation_may_be_the_word_optimal():
    assert regularisation("--lam", "optimal") == "optimal"
    assert regularisation("--lam", "1e-3") == 1e-3
    with pytest.raises(hm.InvalidArgumentError, match="or 'optimal'"):
        regularisation("--lam", "best")


def test_bounds_are_two_numbers():
    assert bounds("--bounds", "0:inf") == (0.0, np.inf)
    for text in ("1", "1:", "a:b", "1:2:3"):
        with pytest.raises(hm.InvalidArgumentError, match="--bounds"):
            bounds("--bounds", text)
