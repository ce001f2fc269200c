"""Outputs by one multiplication equal those by two roundings, for every sum near a step."""

import numpy as np
import pytest

from slipway.backends.micro.kernels.dsp_pairs import weight_words
from slipway.backends.micro.kernels.line import Sums, lines_of, sums_of
from slipway.backends.micro.kernels.stream import groups_of


def reference(sums, multiplier, right):
    """TFLite's two roundings, a zero point of -128, and the clip, in Python's integers."""
    high = (sums * multiplier + (1 << 30)) >> 31
    mask = (1 << right) - 1
    value = (high >> right) + ((high & mask) > (mask >> 1) + (high < 0)) - 128
    return max(-128, min(127, value))


def of_line(sums, multiplier, right, offset):
    total = 256 * sums + offset
    assert -(1 << 31) <= total < 1 << 31
    return max(-128, min(127, ((total * multiplier) >> 32) >> right))


def near_steps(low, high, multiplier, right):
    """Sums at both ends and around each step of the output, a few beside them."""
    step = 2.0 ** (31 + right) / multiplier
    every = {round((k + 0.5) * step) + d for k in range(-2, 258) for d in range(-3, 4)}
    return sorted({max(low, min(high, s)) for s in every} | {low, low + 1, high - 1, high, 0, -1})


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("block", [2, 4])
def test_every_output_is_that_of_two_roundings(seed, block):
    rng = np.random.default_rng(seed)
    shape = (5, block)
    multiplier = rng.integers(1 << 30, 1 << 31, shape)
    right = rng.integers(4, 10) + rng.integers(0, 2, shape)
    high = rng.integers(1 << 8, 1 << 22, shape)
    low = -rng.integers(1 << 8, 1 << 22, shape)
    lines = lines_of(Sums(low, high, multiplier, right))
    assert lines is not None
    for g, c in np.ndindex(shape):
        m, r = int(multiplier[g, c]), int(right[g, c])
        for s in near_steps(int(low[g, c]), int(high[g, c]), m, r):
            got = of_line(
                s, int(lines.multiplier[g, c]), int(lines.right[g]), int(lines.offset[g, c])
            )
            assert got == reference(s, m, r), (g, c, s)


def test_most_layers_have_lines():
    """Scales as quantised networks have them; a family that no layer can take is none."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shape = (16, 2)
        right = 7 + rng.integers(0, 3, shape)
        multiplier = rng.integers(1 << 30, 1 << 31, shape)
        high = rng.integers(1 << 14, 1 << 20, shape)
        found += lines_of(Sums(-high, high, multiplier, right)) is not None
    assert found >= 36


@pytest.mark.parametrize(
    ("low", "high", "multiplier", "right"),
    [
        (-(1 << 23) + 5, (1 << 23) - 9, 1 << 30, 9),  # no room for the zero point beside the sums
        (-100, 100, 1 << 30, 0),  # not to the right
    ],
)
def test_what_has_no_line_is_told(low, high, multiplier, right):
    ends = [np.full((1, 2), v) for v in (low, high, multiplier, right)]
    assert lines_of(Sums(*ends)) is None


def test_a_channel_of_one_output_has_any_line():
    ends = [np.array([[v, 0]]) for v in (-5, 3)]
    lines = lines_of(Sums(*ends, np.full((1, 2), 1 << 30), np.full((1, 2), 22)))
    assert lines is not None
    line = int(lines.multiplier[0, 0]), int(lines.right[0]), int(lines.offset[0, 0])
    assert {of_line(s, *line) for s in range(-5, 4)} == {-128}


def test_sums_of_weights_are_what_int8_data_can_give():
    weight = np.array([[127, -3], [-128, 5]], np.int8)
    sums = sums_of(weight, np.array([7, -7]), 1 << 30, np.array([-9, -8]))
    assert sums.highest.tolist() == [7 + 127 * 127 + 128 * 128, -7 + 3 * 128 + 5 * 127]
    assert sums.lowest.tolist() == [7 - 128 * 127 - 127 * 128, -7 - 3 * 127 - 5 * 128]
    assert sums.right.tolist() == [9, 8]


@pytest.mark.parametrize(
    ("channels", "groups"),
    [
        (8, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (7, [[0, 1, 2, 3], [3, 4, 5, 6]]),
        (5, [[0, 1, 2, 3], [1, 2, 3, 4]]),
    ],
)
def test_the_last_group_of_channels_is_whole(channels, groups):
    found = groups_of(channels, 4, overlap=True)
    assert found.tolist() == groups
    weight = np.arange(-4, 9 * channels - 4, dtype=np.int8).reshape(9, channels)
    words = weight_words(weight, found, 256).view(np.int16).reshape(len(groups), -1)
    single = words[-1, -4:] // 256
    assert single.tolist() == weight[8, channels - 4 :][[0, 2, 1, 3]].tolist()


def test_groups_without_overlap_name_what_is_not_there():
    assert groups_of(3, 2).tolist() == [[0, 1], [2, 3]]
