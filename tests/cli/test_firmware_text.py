"""Lines of firmware as people read them."""

import numpy as np
import pytest

from slipway.cli.firmware_text import readable


@pytest.mark.parametrize(
    ("dtype", "values", "shown"),
    [
        ("float32", [1, -2.5], "1 -2.5"),
        ("int8", [-128, 0, 127], "-128 0 127"),
        ("uint8", [255], "255"),
        ("int64", [-(2**40)], "-1099511627776"),
        ("float16", [np.inf, np.nan], "inf nan"),
    ],
)
def test_bytes_of_outputs_are_values(dtype, values, shown):
    text = np.array(values, dtype).tobytes().hex()
    assert readable(f"output_0 ({dtype}): {text}") == f"output_0 ({dtype}): {shown}"


def test_of_many_the_first_are_shown():
    values = np.arange(100, dtype="int16")
    line = readable(f"probabilities (int16): {values.tobytes().hex()}")
    assert line.endswith("13 14 15 ... 100 values, the largest is number 99")


@pytest.mark.parametrize(
    "line", ["kws on mps2-an386", "output (float32): 0000", "output (complex64): 00", "x: ab", ""]
)
def test_other_lines_stay(line):
    assert readable(line) == line


def test_control_characters_do_not_reach_the_terminal():
    """Noise of a line at the wrong speed cleared the screen and renamed the window."""
    assert readable("\x1b[2J\x1b]0;new\x07 \x9b31m\x00ok\t1\r") == (
        "\\x1b[2J\\x1b]0;new\\x07 \\x9b31m\\x00ok\t1\r"
    )
