"""Convolutions of one tap on blocked channels whose height and width are open: flat positions.

Without a window and a padding, a position of the result is one of the data, in the same order: a
tile of registers is a run of them, and does not end with a row.  Of an image of 20 by 20 a tile of
six in a row would compute 24 positions for 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import positions_per_part, prefetch_steps, worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import Tile, choose_tile, fma
from slipway.backends.stages import inline_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.analysis.flat_positions import is_pointwise
from slipway.relay.dims import is_open, lower_bound, usual
from slipway.relay.ops.packed.blocked_conv import input_channel
from slipway.relay.ops.tensor.tensors import value_of
from slipway.relay.types import TensorType, Type
from slipway.target import Target


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """The size of an image is open, and each position is multiplied by itself alone."""
    del target
    data, kernel = in_types
    assert isinstance(data, TensorType)
    assert isinstance(kernel, TensorType)
    return is_pointwise(attrs, kernel) and any(map(is_open, data.shape[2:-1]))


def _default(problem: Problem) -> Tile:
    (out,), target = problem.out_types, problem.target
    _, blocks, *size, block = out.shape
    kernel = fma(target, max(1, block // vector_lanes(target, out.dtype)))
    return choose_tile(kernel, prod(size), blocks)


def _space(problem: Problem) -> Space:
    smallest = prod(map(lower_bound, problem.out_types[0].shape[2:-1]))
    return {"rows": range(1, max(1, smallest) + 1), "vectors": (_default(problem).vectors,)}


def _wide(size: Sequence[Any]) -> list[int]:
    """Return the axes of an image that have more than one position."""
    return [axis for axis, extent in enumerate(size) if is_open(extent) or extent != 1]


def _compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """The convolution with the positions of an image as one axis."""
    (data, kernel), (out,) = inputs, problem.out_types
    n, blocks, *size, lanes = out.shape
    _, chunks, *window, block, _ = shape_of(kernel)
    chunk = te.reduce_axis((0, chunks), name="ic_chunk")
    lane = te.reduce_axis((0, block), name="ic")
    taps = [0] * len(window)

    wide = _wide(size)

    def element(b: Any, o: Any, p: Any, ob: Any) -> Any:
        at: list[Any] = [0] * len(size)
        for axis in reversed(wide[1:]):
            extent = value_of(size[axis])
            at[axis], p = te.floormod(p, extent), te.floordiv(p, extent)
        at[wide[0]] = p
        c, i = input_channel(data, kernel, chunk, lane)
        value = data(b, c, *at, i).astype(out.dtype)
        return te.sum(
            value * kernel(o, chunk, *taps, lane, ob).astype(out.dtype), axis=[chunk, lane]
        )

    flat = te.compute((n, blocks, prod(size), lanes), element, name="sums", tag="conv_sums")

    def spread(b: Any, o: Any, *rest: Any) -> Any:
        *at, ob = rest
        position = at[wide[0]]
        for axis in wide[1:]:
            position = position * value_of(size[axis]) + at[axis]
        return flat(b, o, position, ob)

    return [te.compute(out.shape, spread, name="conv_NCHWc", tag="injective")]


@register_strategy(
    *(f"nn.contrib_conv{n}d_nchwc" for n in (2, 3)), name="conv2d_nchwc.open_positions",
    priority=13, applies=_applies, compute=_compute, default=_default, space=_space,
    cost=tile_cost(),
)  # fmt: skip
def schedule_open_positions(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """`tile.rows` positions by `tile.vectors` channel blocks at a time."""
    target = problem.target
    schedule, output = new_schedule(outs)
    sums = tagged(outs)["conv_sums"]
    data, kernel = sums.op.input_tensors
    inline_injective(schedule, outs, keep=[sums])
    schedule[sums].set_scope("local")
    _, blocks, positions, block = shape_of(sums)
    data_bytes, weight_bytes = (4 * prod(map(usual, shape_of(t)[1:])) for t in (data, kernel))
    panels = -(-blocks // tile.vectors)
    part = positions_per_part(usual(positions), data_bytes, weight_bytes, panels, tile, target)

    stage: Any = schedule[output]
    n, oc, *position, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    lines = [position[axis] for axis in _wide(shape_of(output)[2:-1])]
    tiles, p_inner = stage.split(stage.fuse(*lines), factor=tile.rows, tail="shift")
    p_part, p_outer = stage.split(tiles, factor=max(1, part // tile.rows))
    single = [axis for axis in position if axis not in lines]
    register_tile(stage, [n, *single, p_part, oc_outer, p_outer], [oc_inner, p_inner], ob)
    task = stage.fuse(n, *single, p_part, oc_outer)
    if worth_sharing(usual(positions) * prod(shape_of(kernel)), target):
        stage.parallel(task)

    inner: Any = schedule[sums]
    inner.compute_at(stage, p_outer)
    n, oc, p, ob = inner.op.axis
    chunk, lane = inner.op.reduce_axis
    if distance := prefetch_steps(block, target):
        inner.prefetch(kernel, lane, distance)
    register_tile(inner, [n, chunk, lane], [p, oc], ob)
    return schedule
