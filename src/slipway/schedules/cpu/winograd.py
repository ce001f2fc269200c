"""Winograd convolution: transforms on vectors of channels, products from a tile of registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway import te
from slipway.relay.ops.winograd import TILE
from slipway.schedules.cpu.tiles import choose_padded_tile
from slipway.schedules.generic import inline_injective, producers, shape_of
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target


@register_implementation("nn.contrib_conv2d_winograd_nchwc", name="conv2d_winograd.f43")
def schedule_winograd(target: Target, outs: Sequence[te.Tensor], conv: te.Tensor) -> te.Schedule:
    """Three nests of loops over tiles: into the transform, the 36 products, and back."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    stages = {
        tag: op.output(0)
        for op in producers(outs)
        for tag in getattr(op, "tag", "").split(",")
        if tag
    }
    half, data, products = (stages[f"winograd_{n}"] for n in ("half", "data", "products"))
    rest = stages["winograd_rest"]
    pad = stages.get("pad")
    kept = [half, data, products, rest, *([pad] if pad is not None else [])]
    inline_injective(schedule, outs, keep=kept)
    if pad is not None:
        stage = schedule[pad]
        n, c, h, _, block = stage.op.axis
        stage.vectorize(block)
        stage.parallel(stage.fuse(n, c, h))
    _schedule_data(schedule, half, data)
    _schedule_products(schedule, products, target)
    _schedule_output(schedule, rest, output)
    return schedule


def _schedule_data(schedule: te.Schedule, half: te.Tensor, data: te.Tensor) -> None:
    """One tile of one channel block at a time, all 36 elements unrolled."""
    stage = schedule[data]
    x, y, c, p, i = stage.op.axis
    stage.reorder(c, p, x, y, i)
    stage.unroll(x)
    stage.unroll(y)
    stage.vectorize(i)
    stage.parallel(c)
    inner = schedule[half]
    inner.compute_at(stage, p)
    inner.set_scope("local")
    _, _, x, b, i = inner.op.axis
    inner.unroll(x)
    inner.unroll(b)
    inner.vectorize(i)


def _schedule_products(schedule: te.Schedule, products: te.Tensor, target: Target) -> None:
    """A matrix product, tiles by output channels, for each of the 36 elements."""
    _, _, blocks, tiles, _ = shape_of(products)
    tile = choose_padded_tile(tiles, blocks, target)
    while blocks % tile.vectors:
        tile = type(tile)(tile.rows, tile.vectors - 1)
    registers = schedule.cache_write(products, "local")
    stage = schedule[products]
    x, y, o, p, ob = stage.op.axis
    o_outer, o_inner = stage.split(o, factor=tile.vectors)
    p_outer, p_inner = stage.split(p, factor=tile.rows)
    stage.reorder(x, y, o_outer, p_outer, o_inner, p_inner, ob)
    stage.unroll(o_inner)
    stage.unroll(p_inner)
    stage.vectorize(ob)
    stage.parallel(stage.fuse(x, y, o_outer))
    inner = schedule[registers]
    inner.compute_at(stage, p_outer)
    x, y, o, p, ob = inner.op.axis
    chunk, lane = inner.op.reduce_axis
    inner.reorder(x, y, chunk, lane, p, o, ob)
    inner.unroll(o)
    inner.unroll(p)
    inner.vectorize(ob)


def _schedule_output(schedule: te.Schedule, rest: te.Tensor, output: te.Tensor) -> None:
    """One tile of results at a time, with what is fused behind the convolution."""
    stage = schedule[output]
    n, o, y, x, ob = stage.op.axis
    y_outer, y_inner = stage.split(y, factor=TILE)
    x_outer, x_inner = stage.split(x, factor=TILE)
    stage.reorder(n, o, y_outer, x_outer, y_inner, x_inner, ob)
    stage.unroll(y_inner)
    stage.unroll(x_inner)
    stage.vectorize(ob)
    stage.parallel(stage.fuse(n, o, y_outer))
    inner = schedule[rest]
    inner.compute_at(stage, x_outer)
    inner.set_scope("local")
    _, _, y, _, j, ob = inner.op.axis
    inner.unroll(y)
    inner.unroll(j)
    inner.vectorize(ob)
