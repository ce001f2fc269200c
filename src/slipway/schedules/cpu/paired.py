"""Products of bfloat16 with weights in pairs: register tiles of float32 sums.

The tiles are those of float32 products: an instruction takes a pair of the data, repeated, and a
vector of pairs of weights, and so does two multiply-adds where a float32 one does one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.relay.passes.pair_products import pair_instruction
from slipway.schedules.cpu.tiles import (
    choose_tile,
    positions_per_part,
    worth_sharing,
)
from slipway.schedules.generic import inline_injective, is_injective, producers, shape_of
from slipway.schedules.registry import register_implementation
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.ir.hardware import HardwareIntrinsic
    from slipway.relay.types import Type
    from slipway.target import Target


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """The target has an instruction for weights of this type and in these blocks."""
    entry = pair_instruction(target)
    weight: Any = in_types[1]
    return entry is not None and (weight.dtype, *weight.shape[-2:]) == (
        entry.b_dtype, entry.columns, entry.depth,
    )  # fmt: skip


def _entry(target: Target) -> HardwareIntrinsic:
    entry = pair_instruction(target)
    assert entry is not None  # it applied
    return entry


def _bytes(tensor: te.Tensor) -> int:
    return prod(shape_of(tensor)) * dtypes.bits_of(tensor.dtype) // 8


@register_implementation(
    *(f"nn.contrib_conv{n}d_pairs" for n in (1, 2, 3)), name="conv_pairs.direct", applies=_applies
)
def schedule_conv_pairs(target: Target, outs: Sequence[te.Tensor], conv: te.Tensor) -> te.Schedule:
    """Direct convolution, `tile.rows` positions by `tile.vectors` channel blocks at a time."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    sums = _sums(outs)
    data, kernel = sums.op.input_tensors
    inline_injective(schedule, outs, keep=[sums, data])
    schedule[sums].set_scope("local")
    images, blocks, positions, _ = shape_of(sums)
    tile = choose_tile(positions, blocks, target)
    stage: Any = schedule[output]
    n, oc, *place, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    panels = -(-blocks // tile.vectors)
    part = positions_per_part(
        positions, _bytes(data) // images, _bytes(kernel), panels, tile, target
    )
    p_part, p_tiles = stage.split(stage.fuse(*place), factor=part, tail="shift")
    p_outer, p_inner = stage.split(p_tiles, factor=tile.rows, tail="shift")
    stage.reorder(n, p_part, oc_outer, p_outer, oc_inner, p_inner, ob)
    stage.unroll(oc_inner)
    stage.unroll(p_inner)
    stage.vectorize(ob)
    task = stage.fuse(n, p_part, oc_outer)
    parallel = worth_sharing(images * positions * prod(shape_of(kernel)), target)
    if parallel:
        stage.parallel(task)
    if is_injective(data.op):
        _schedule_border(schedule[data], parallel)

    inner: Any = schedule[sums]
    inner.compute_at(stage, p_outer)
    b, o, p, lane = inner.op.axis
    chunk, *taps, pair, element = inner.op.reduce_axis
    inner.reorder(b, chunk, *taps, pair, p, o, lane, element)
    inner.unroll(o)
    inner.unroll(p)
    inner.tensorize(lane, hardware_intrinsic(_entry(target).name, target))
    return schedule


def _sums(outs: Sequence[te.Tensor]) -> te.Tensor:
    """Return the stage of the products."""
    made: te.Tensor = next(
        op.output(0) for op in producers(outs) if getattr(op, "tag", "") == "paired"
    )
    return made


def _schedule_border(stage: Any, parallel: bool) -> None:
    """Copy with border, row by row."""
    *outer, _, block = stage.op.axis
    stage.vectorize(block)
    rows = stage.fuse(*outer)
    if parallel:
        stage.parallel(rows)


@register_implementation("nn.contrib_dense_pairs", name="dense_pairs.tile", applies=_applies)
def schedule_dense_pairs(
    target: Target, outs: Sequence[te.Tensor], dense: te.Tensor
) -> te.Schedule:
    """Rows of data by blocks of units."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    sums = _sums(outs)
    inline_injective(schedule, outs, keep=[sums])
    schedule[sums].set_scope("local")
    rows, blocks, lanes = shape_of(sums)
    weight = sums.op.input_tensors[1]
    tile = choose_tile(rows, blocks, target)
    stage: Any = schedule[output]
    m, n = stage.op.axis
    m_outer, m_inner = stage.split(m, factor=tile.rows, tail="shift")
    n_blocks, n_lane = stage.split(n, factor=lanes)
    n_outer, n_block = stage.split(n_blocks, factor=tile.vectors, tail="shift")
    stage.reorder(n_outer, m_outer, m_inner, n_block, n_lane)
    stage.unroll(m_inner)
    stage.unroll(n_block)
    stage.vectorize(n_lane)
    if worth_sharing(rows * prod(shape_of(weight)), target, _bytes(weight)):
        stage.parallel(n_outer)

    inner: Any = schedule[sums]
    inner.compute_at(stage, m_outer)
    row, block, lane = inner.op.axis
    pair, element = inner.op.reduce_axis
    inner.reorder(pair, row, block, lane, element)
    inner.unroll(row)
    inner.unroll(block)
    inner.tensorize(lane, hardware_intrinsic(_entry(target).name, target))
    return schedule
