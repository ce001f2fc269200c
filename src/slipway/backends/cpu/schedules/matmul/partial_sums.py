"""Long sums in parts, each of which begins anew: of many steps one by one, rounding errors add up.

A row of 2,048 positive numbers times a matrix is as exact as by other libraries so (an error of
2e-7 in place of 8e-7 of the results).  Weights of one row are read once, and take longer than that.
"""

from __future__ import annotations

from slipway import te
from slipway.backends.stages import extent_of
from slipway.relay.dims import is_open

PART = 128  # steps, at most
TILE_PART = 256  # the same of a tile of several rows, whose sums wait for registers


def part_of(depth: int, most: int = PART) -> int:
    """Return the steps of a part of a sum of `depth`, more than half of `most`.

    All of them in a short sum, and where no such number divides it.
    """
    if is_open(depth) or depth <= max(2 * PART, most):
        return depth
    return next((n for n in range(most, most // 2, -1) if depth % n == 0), depth)


def in_parts(schedule: te.Schedule, sums: te.Tensor, lanes: int, most: int = PART) -> te.Tensor:
    """Return the tensor that sums the parts of the tile `sums`, or `sums` itself if it is short.

    A part has at most `most` steps.  The axes of `sums` but the last, which is cut into vectors of
    `lanes`, are unrolled.
    """
    stage = schedule[sums]
    (k,) = stage.op.reduce_axis
    depth = extent_of(k)
    each = part_of(depth, most)
    if each == depth:
        return sums
    outer, _ = stage.split(k, factor=each)
    partial: te.Tensor = schedule.rfactor(sums, outer)
    stage = schedule[sums]
    *axes, last = stage.op.axis
    (outer,) = stage.op.reduce_axis
    block, lane = stage.split(last, factor=lanes)
    stage.reorder(outer, *axes, block, lane)
    for axis in (*axes, block):
        stage.unroll(axis)
    stage.vectorize(lane)
    schedule[partial].compute_at(stage, outer)
    schedule[partial].set_scope("local")
    return partial
