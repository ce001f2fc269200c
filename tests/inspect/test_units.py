"""Durations as people read them."""

import pytest

from slipway.inspect.units import time_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (7.3e-7, "730 ns"),
        (1e-6, "1 µs"),
        (12.34e-6, "12.3 µs"),
        (4.56e-3, "4.56 ms"),
        (1.0, "1 s"),
        (90.0, "90 s"),
    ],
)
def test_a_duration_has_the_unit_that_leaves_the_fewest_zeros(seconds, text):
    assert time_text(seconds) == text
