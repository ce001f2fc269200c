"""Pooling.  With channels innermost (NCHW16c, NHWC): a run of windows in registers, taps outside.

The border is a copy of the rows that a task reads; each then goes through the windows unguarded.
On other layouts: windows outside, a vector of the innermost axis inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.ir.expr import ProducerLoad
from slipway.ir.visit import walk
from slipway.schedules.cpu.tiles import rows_per_part, worth_sharing
from slipway.schedules.generic import (
    extent_of,
    inline_injective,
    producers,
    shape_of,
    vector_lanes,
)
from slipway.schedules.reduction import schedule_opaque
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target

_RUN = 8  # windows whose taps are taken together
_UNROLLED = 128  # taps of a run
_KINDS = ("max", "avg")


@register_implementation(
    *(f"nn.{prefix}{kind}_pool{n}d" for prefix in ("global_", "adaptive_") for kind in _KINDS
      for n in (1, 2, 3)),
    name="pool.whole",
)  # fmt: skip
def schedule_whole_pool(target: Target, outs: Sequence[te.Tensor], pool: te.Tensor) -> te.Schedule:
    """One loop nest for the windows, one for what is fused behind them."""
    return schedule_opaque(target, outs)


@register_implementation(
    *(f"nn.{kind}_pool{n}d" for kind in _KINDS for n in (1, 2, 3)), name="pool.window"
)
def schedule_pool(target: Target, outs: Sequence[te.Tensor], pool: te.Tensor) -> te.Schedule:
    """Runs of windows where channels are innermost, as long as vectors."""
    (output,) = {id(t.op): t for t in outs}.values()
    window = next(op for op in producers(outs) if op.tag in ("pool_max", "pool_sum"))
    lanes = vector_lanes(target, output.dtype)
    channels = shape_of(output)[-1]
    if not _channels_innermost(window) or not (channels % lanes == 0 or channels in (4, 8, 16)):
        return schedule_opaque(target, outs)
    schedule = te.create_schedule([t.op for t in outs])
    pad = [t for t in window.input_tensors if "pad" in getattr(t.op, "tag", "")]
    inline_injective(schedule, outs, keep=[window.output(0), *pad])
    if output.op is window:
        sums = schedule.cache_write(output, "local")
    else:
        sums = window.output(0)
        schedule[sums].set_scope("local")

    count = len(window.reduce_axis)
    stage = schedule[output]
    *outer, channel = stage.op.axis
    outer, rows, ow = outer[:-count], outer[-count:-1], outer[-1]
    ow_outer, ow_inner = stage.split(ow, factor=min(extent_of(ow), _RUN), tail="shift")
    blocks = []
    lane = channel
    if channels > lanes:
        block, lane = stage.split(channel, factor=lanes)
        blocks.append(block)
    cut = []
    if rows:
        planes = prod(extent_of(axis) for axis in outer)
        each = rows_per_part(extent_of(rows[0]), planes, target.num_cores)
        first, rest = stage.split(rows[0], factor=each, tail="shift")
        outer, cut = [*outer, first], [rest, *rows[1:]]
    stage.reorder(*outer, *cut, ow_outer, *blocks, ow_inner, lane)
    stage.unroll(ow_inner)
    stage.vectorize(lane)
    part = stage.fuse(*outer)
    taps = prod(extent_of(axis) for axis in window.reduce_axis)
    if worth_sharing(prod(shape_of(output)) * taps, target):
        stage.parallel(part)
    for tensor in pad:
        schedule[tensor].compute_at(stage, part)
        schedule[tensor].vectorize(tensor.op.axis[-1])

    inner = schedule[sums]
    inner.compute_at(stage, blocks[0] if blocks else ow_outer)
    *_, ow, lane = inner.op.axis
    steps = inner.op.reduce_axis
    inner.reorder(*inner.op.axis[:-2], *steps, ow, lane)
    if taps * _RUN <= _UNROLLED:
        for step in steps:
            inner.unroll(step)
    inner.unroll(ow)
    inner.vectorize(lane)
    return schedule


def _channels_innermost(window: Any) -> bool:
    """Tell whether the last axis of the data is that of the result, and no window goes along it."""
    loads = [
        node
        for body in window.body
        for node in walk(body)
        if isinstance(node, ProducerLoad)
        and any(node.producer is tensor for tensor in window.input_tensors)
    ]
    return all(load.indices[-1] is window.axis[-1].var for load in loads)
