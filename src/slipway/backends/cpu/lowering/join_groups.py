"""Groups of a convolution that are computed together, so that their filters fill vectors.

    4 groups of 4 filters, each on 4 channels  ->  16 filters on 16 channels, three quarters zeros

A step of the inner loop multiplies one channel by a vector of filters.  Where a group's filters do
not fill one, zeros in what would be idle lanes cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class JoinedGroups:
    """How many groups become one, and the block in which its filters are."""

    together: int
    block: int


def joined_groups(filters: int, channels: int, groups: int, lanes: int) -> JoinedGroups:
    """Return the grouping whose convolution takes the fewest steps; of equals, the widest block.

    What stands around the convolution runs on whole vectors then.  Blocks of filters divide those
    of a joined group, unless all become one.
    """
    sizes = [b for b in (4, 8, 16, 32, 64) if b <= lanes]
    each, depth = filters // groups, channels // groups
    found = [
        JoinedGroups(together, block)
        for together in range(1, groups + 1)
        if groups % together == 0
        for block in sizes
        if together == groups or together * each % block == 0
    ]

    def steps(joined: JoinedGroups) -> tuple[int, int, int]:
        vectors = -(-joined.together * each // joined.block) * (groups // joined.together)
        return vectors * joined.together * depth, -joined.block, joined.together

    return min(found, key=steps)


def joined_kernel(kernel: np.ndarray[Any, Any], groups: int, together: int) -> np.ndarray[Any, Any]:
    """Return the kernel (O, I / groups, ...) of groups of which `together` are joined.

    A filter has zeros for the channels of the groups that it has been joined with.
    """
    filters, depth = kernel.shape[:2]
    each = filters // groups
    made = np.zeros((filters, together * depth, *kernel.shape[2:]), kernel.dtype)
    for group in range(groups):
        position = group % together * depth
        rows = slice(group * each, (group + 1) * each)
        made[rows, position : position + depth] = kernel[rows]
    return made
