import numpy as np
import pytest

from slipway.backends.cpu.lowering.join_groups import (
    JoinedGroups,
    joined_groups,
    joined_kernel,
    joined_pairs,
)
from slipway.relay.ops.nn.conv import convolve


@pytest.mark.parametrize(
    ("filters", "channels", "groups", "lanes", "taps", "wanted"),
    [
        (128, 128, 32, 16, 9, JoinedGroups(4, 16)),  # sixteen filters from four groups of four
        (512, 512, 32, 16, 9, JoinedGroups(1, 16)),
        (240, 240, 3, 16, 9, JoinedGroups(1, 16)),
        (60, 60, 3, 16, 1, JoinedGroups(1, 16, 12)),  # to cut zeros off takes less than to multiply
        (60, 60, 3, 16, 9, JoinedGroups(1, 16, 12)),
        (112, 112, 8, 16, 9, JoinedGroups(1, 16, 2)),
        (40, 40, 8, 16, 9, JoinedGroups(2, 16, 6)),
        (182, 91, 13, 16, 1, JoinedGroups(1, 16, 2)),
        (128, 128, 32, 4, 9, JoinedGroups(1, 4)),
    ],
)
def test_groups_join_until_their_filters_fill_vectors(
    filters, channels, groups, lanes, taps, wanted
):
    assert joined_groups(filters, channels, groups, lanes, taps) == wanted


def test_nothing_is_cut_where_that_is_not_allowed():
    assert joined_groups(112, 112, 8, 16, 9, cuts=False) == JoinedGroups(8, 16)


def test_a_joined_kernel_gives_the_same_numbers():
    rng = np.random.default_rng(0)
    data, kernel = rng.standard_normal((1, 12, 5, 5)), rng.standard_normal((6, 2, 3, 3))
    geometry = (1, 1), (0, 0, 0, 0), (1, 1)
    wanted = convolve(data, kernel, *geometry, 6)
    for together in (1, 2, 3, 6):
        for zeros in (0, 2):
            parts = 6 // together
            joined = joined_kernel(kernel, 6, together, zeros)
            assert joined.shape == (6 + parts * zeros, 2 * together, 3, 3)
            found = convolve(data, joined, *geometry, parts).reshape(1, parts, -1, 3, 3)
            kept = found[:, :, :together].reshape(1, 6, 3, 3)
            np.testing.assert_allclose(kept, wanted, rtol=1e-12, atol=1e-12)
            assert not found[:, :, together:].any()


@pytest.mark.parametrize(
    ("filters", "channels", "groups", "wanted"),
    [
        (128, 128, 4, JoinedGroups(1, 16)),
        (96, 128, 4, JoinedGroups(1, 16, 8)),  # 24 filters: two vectors, the last half zeros
        (40, 30, 10, JoinedGroups(2, 16, 8)),  # two groups of three channels are pairs
        (16, 16, 16, JoinedGroups(16, 16)),
        (15, 15, 5, None),  # neither one group nor all five have even channels
    ],
)
def test_pairs_of_channels_are_of_one_joined_group(filters, channels, groups, wanted):
    assert joined_pairs(filters, channels, groups, 16, 9, 2) == wanted
