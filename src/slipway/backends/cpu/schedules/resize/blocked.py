"""Interpolation of images whose channels lie in blocks: the rows first, then along them.

A row of the result is made of rows that are interpolated already, so that a pixel takes the taps of
two axes one after the other, not their products.  Some blocks of channels are the innermost loop:
where a pixel reads, and its weights, are computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.schedules.generic import (
    PARALLEL_ELEMENTS,
    extent_of,
    inline_injective,
    producers,
    shape_of,
    vector_lanes,
)
from slipway.backends.cpu.schedules.resize.plain import resize_in_turn
from slipway.backends.strategy import register_strategy
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.image.resize import ResizeAttrs
    from slipway.target import Target


def _applies(attrs: ResizeAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Floats interpolated along two axes or more, with whole vectors of channels innermost."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if data.rank < 4 or not dtypes.is_float(data.dtype) or attrs.method == "nearest_neighbor":
        return False
    resized = [bool(s) and s != d for s, d in zip(attrs.size, data.shape, strict=True)]
    lanes = vector_lanes(target, data.dtype)
    whole = lanes > 1 and data.shape[-1] % lanes == 0
    return whole and resized[-2] and resized[-3] and not resized[-1]


@register_strategy(
    "image.resize",
    name="resize.blocked",
    compute=partial(resize_in_turn, along=-2),
    applies=_applies,
    priority=20,
)
def schedule_resize_blocked(
    target: Target, outs: Sequence[te.Tensor], resize: te.Tensor
) -> te.Schedule:
    """Some blocks of channels whose row stays in the first-level cache, a vector each time."""
    schedule = te.create_schedule([t.op for t in outs])
    (rows,) = (op.output(0) for op in producers(outs) if "resized_rows" in getattr(op, "tag", ""))
    inline_injective(schedule, outs, keep=[rows])
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = vector_lanes(target, output.dtype)
    stage: Any = schedule[output]
    image, block, *places, column, channel = stage.op.axis
    row_bytes = dtypes.bytes_of(output.dtype) * prod(shape_of(rows)[-2:])
    room = max(1, target.core.l1_bytes // 2 // row_bytes)
    most = min(room, extent_of(block))
    fitting = max(n for n in range(1, most + 1) if extent_of(block) % n == 0)
    part, block = stage.split(block, factor=fitting)
    vector, lane = stage.split(channel, factor=lanes)
    stage.reorder(image, part, *places, column, block, vector, lane)
    stage.vectorize(lane)
    task = stage.fuse(image, part, *places)
    if prod(shape_of(output)) >= PARALLEL_ELEMENTS:
        stage.parallel(task)
    first: Any = schedule[rows]
    first.compute_at(stage, task)
    first.vectorize(first.split(first.op.axis[-1], factor=lanes)[1])
    return schedule
