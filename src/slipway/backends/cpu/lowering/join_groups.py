"""Groups of a convolution that are computed together, so that their filters fill vectors.

    4 groups of 4 filters, each on 4 channels  ->  16 filters on 16 channels, three quarters zeros
    8 groups of 14 filters, each on 14 channels  ->  8 groups of 16 filters, the last two zeros

A step of the inner loop multiplies one channel by a vector of filters.  Where a group's filters do
not fill one, zeros in what would be idle lanes cost nothing; where they lie between the filters of
two groups, their results are left out afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# What leaving results out takes for each vector of them, in multiply-adds: they are copied to the
# plain layout, and back to blocks for a reader that wants those.
CUTTING = 16


@dataclass(frozen=True)
class JoinedGroups:
    """How many groups become one, the block in which its filters are, and zeros after them."""

    together: int
    block: int
    zeros: int = 0


def joined_groups(
    filters: int, channels: int, groups: int, lanes: int, taps: int, cuts: bool = True
) -> JoinedGroups:
    """Return the grouping whose convolution takes the fewest steps; of equals, the widest block.

    What stands around the convolution runs on whole vectors then.  The filters of a joined group
    are whole blocks, unless all become one; with zeros only where `cuts` allows it.
    """
    sizes = [b for b in (4, 8, 16, 32, 64) if b <= lanes]
    found = [g for g in _groupings(filters, groups, sizes) if cuts or not g.zeros]
    return min(found, key=lambda g: (steps_of(g, filters, channels, groups, taps), -g.block))


def joined_pairs(
    filters: int, channels: int, groups: int, lanes: int, taps: int, pair: int
) -> JoinedGroups | None:
    """Return the same for an instruction that takes `pair` channels, on vectors of `lanes`.

    None where it would take no fewer steps than one that takes a single channel.
    """
    about = filters, channels, groups, taps
    found = [
        g
        for g in _groupings(filters, groups, [lanes])
        if g.together * channels // groups % pair == 0
    ]
    best = min(found, key=lambda g: steps_of(g, *about, pair), default=None)
    single = joined_groups(filters, channels, groups, lanes, taps)
    gains = best is not None and steps_of(best, *about, pair) < steps_of(single, *about)
    return best if gains else None


def _groupings(filters: int, groups: int, sizes: Sequence[int]) -> list[JoinedGroups]:
    """Return the ways to join so many `groups`, of equals those of fewer together first."""
    each = filters // groups
    return [
        JoinedGroups(together, block, 0 if together == groups else -together * each % block)
        for together in range(1, groups + 1)
        if groups % together == 0
        for block in sizes
    ]


def steps_of(
    joined: JoinedGroups, filters: int, channels: int, groups: int, taps: int, pair: int = 1
) -> int:
    """Return the steps of a position: each takes `pair` channels to a vector of filters."""
    each, depth = filters // groups, joined.together * channels // groups
    vectors = -(-joined.together * each // joined.block) * (groups // joined.together)
    cut = CUTTING * vectors if joined.zeros else 0
    return vectors * depth * taps // pair + cut


def joined_kernel(
    kernel: np.ndarray[Any, Any], groups: int, together: int, zeros: int = 0
) -> np.ndarray[Any, Any]:
    """Return the kernel (O, I / groups, ...) of groups of which `together` are joined.

    A filter has zeros for the channels of the groups that it has been joined with; so many filters
    of `zeros` follow those of each joined group.
    """
    filters, depth = kernel.shape[:2]
    each = filters // groups
    made = np.zeros((filters, together * depth, *kernel.shape[2:]), kernel.dtype)
    for group in range(groups):
        position = group % together * depth
        rows = slice(group * each, (group + 1) * each)
        made[rows, position : position + depth] = kernel[rows]
    if not zeros:
        return made
    parts = made.reshape(groups // together, together * each, *made.shape[1:])
    widths = [(0, zeros) if axis == 1 else (0, 0) for axis in range(parts.ndim)]
    return np.pad(parts, widths).reshape(-1, *made.shape[1:])
