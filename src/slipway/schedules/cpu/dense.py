"""Matrix products with packed weights: a tile of registers, as in the convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway import te
from slipway.schedules.cpu.tiles import choose_tile, steps_ahead, worth_sharing
from slipway.schedules.generic import (
    inline_injective,
    shape_of,
)
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target


@register_implementation("nn.contrib_dense_pack", name="dense_pack.tile")
def schedule_dense_pack(target: Target, outs: Sequence[te.Tensor], dense: te.Tensor) -> te.Schedule:
    """Rows of data by blocks of units; each step of k multiplies a row's value by a vector."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    inline_injective(schedule, outs, keep=[dense])
    blocks, depth, lanes = shape_of(dense.op.input_tensors[1])
    rows = shape_of(output)[0]
    tile = choose_tile(rows, blocks, target)
    if output.op is dense.op:
        accumulator = schedule.cache_write(output, "local")
    else:
        accumulator = dense
        schedule[dense].set_scope("local")
    stage = schedule[output]
    m, n = stage.op.axis
    m_outer, m_inner = stage.split(m, factor=tile.rows, tail="shift")
    n_blocks, n_lane = stage.split(n, factor=lanes)
    n_outer, n_block = stage.split(n_blocks, factor=tile.vectors, tail="shift")
    stage.reorder(n_outer, m_outer, m_inner, n_block, n_lane)
    stage.unroll(m_inner)
    stage.unroll(n_block)
    stage.vectorize(n_lane)
    inner = schedule[accumulator]
    inner.compute_at(stage, m_outer)
    weights = blocks * lanes * depth
    if worth_sharing(rows * weights, target, 4 * weights):
        stage.parallel(n_outer)
    m, n = inner.op.axis
    (k,) = inner.op.reduce_axis
    n_block, n_lane = inner.split(n, factor=lanes)
    if rows > 1 and (ahead := steps_ahead(lanes)):
        inner.prefetch(dense.op.input_tensors[1], k, ahead)
    steps = [k]
    if rows == 1 and depth % 4 == 0:  # few sums: counting would take as much as adding
        steps = list(inner.split(k, factor=4))
        inner.unroll(steps[1])
    inner.reorder(*steps, m, n_block, n_lane)
    inner.unroll(m)
    inner.unroll(n_block)
    inner.vectorize(n_lane)
    return schedule
