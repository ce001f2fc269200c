"""Normalisations: both moments and the result of a row while it is in the cache.

A row is what has moments of its own: the last axis of a layer norm, a channel's image of an
instance norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.schedules.generic import (
    PARALLEL_ELEMENTS,
    Loop,
    fuse,
    inline_injective,
    producers,
    shape_of,
    vector_lanes,
)
from slipway.backends.cpu.schedules.reduction import SUMS, reduce_row, row_axes
from slipway.backends.strategy import register_strategy
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.target import Target


def _rows_are_long(rank: int) -> Any:
    def applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
        """Float32, rows, moments over the last axes, of some vectors."""
        data = in_types[0]
        assert isinstance(data, TensorType)
        first = attrs.axis % data.rank + rank
        length = prod(data.shape[first:])
        lanes = vector_lanes(target, data.dtype)
        last = first == data.rank - 1 if rank == 0 else attrs.axis % data.rank == 1
        long = lanes > 1 and length >= SUMS * lanes
        return data.dtype == "float32" and first > 0 and last and long

    return applies


def schedule_rows(target: Target, outs: Sequence[te.Tensor], norm: te.Tensor) -> te.Schedule:
    """Sums and squares inside the loop over rows."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    reductions = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    inline_injective(schedule, outs)
    lanes = vector_lanes(target, output.dtype)
    stage = schedule[output]
    depth = len(reductions[0].axis)
    rows, inner = stage.op.axis[:depth], stage.op.axis[depth:]
    row = stage.fuse(*rows)
    whole = fuse(stage, Loop.of(inner))
    _, lane = stage.split(whole.axis, factor=lanes, tail="shift")
    stage.vectorize(lane)
    if prod(shape_of(output)) >= PARALLEL_ELEMENTS:
        stage.parallel(row)
    for op in reductions:
        sums = schedule[op]
        along = fuse(sums, Loop.of(row_axes(op)))
        reduce_row(schedule, op.output(0), along, lanes)
        schedule[op].compute_at(stage, row)
    return schedule


register_strategy("nn.layer_norm", name="norm.rows", applies=_rows_are_long(0))(schedule_rows)
register_strategy("nn.instance_norm", name="norm.rows", applies=_rows_are_long(1))(schedule_rows)
