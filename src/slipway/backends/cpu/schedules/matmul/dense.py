"""Matrix products with packed weights: a tile of registers, as in the convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.schedules.generic import inline_injective, shape_of, vector_lanes
from slipway.backends.cpu.schedules.matmul.panels import Progress, ask_for_next, split_steps
from slipway.backends.cpu.tile import choose_tile, steps_ahead, worth_sharing
from slipway.backends.strategy import register_implementation

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
    width = max(1, lanes // vector_lanes(target, output.dtype))
    tile = choose_tile(rows, blocks, target, width)
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
    size = blocks * lanes * depth
    if worth_sharing(rows * size, target, 4 * size):
        stage.parallel(n_outer)
    m, n = inner.op.axis
    (k,) = inner.op.reduce_axis
    n_block, n_lane = inner.split(n, factor=lanes)
    split = split_steps(inner, k, tile, target)
    inner.reorder(split.asking, split.unrolled, m, n_block, n_lane)
    inner.unroll(split.unrolled)
    if rows > 1 and steps_ahead(lanes):  # else asking takes longer than waiting
        at = Progress(te.floordiv(m, tile.rows), -(-rows // tile.rows), k, depth)
        for vector in range(tile.vectors):
            block = te.floordiv(n, lanes) + tile.vectors + vector
            place = partial(_line, block)
            ask_for_next(inner, dense.op.input_tensors[1], split, at, place)
    inner.unroll(m)
    inner.unroll(n_block)
    inner.vectorize(n_lane)
    return schedule


def _line(block: Any, k: Any) -> tuple[Any, ...]:
    return block, k, 0
