"""Convolutions on blocked channels (NCHW{c}c and its like): direct, from a tile of registers.

One task computes some rows of the image for a few blocks of output channels.  Its inner loops run
over the input channels and the window, with the accumulators of a register tile kept in
registers; bias, activation and sums of the epilogue are applied to them before they are
stored.  The padded data is a copy of the data, made once for the whole kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import copied_elements, vector_lanes
from slipway.backends.cpu.parts import (
    causes_conflict_misses,
    positions_per_part,
    prefetch_steps,
    worth_sharing,
)
from slipway.backends.cpu.schedules.matmul.lane_fma import conv_uses_lane_fma, schedule_lane_fma
from slipway.backends.cpu.schedules.register_tile import image_tiles, register_tile, vector_loop
from slipway.backends.cpu.tile import (
    Tile,
    choose_tile,
    fma,
    lane_indexed_fma,
    prefers_long_loops,
    tile_space,
    whole_groups,
)
from slipway.backends.stages import (
    extent_of,
    inline_injective,
    is_injective,
    new_schedule,
    shape_of,
    tagged,
)
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import lower_bound, usual
from slipway.relay.ops.packed.blocked_conv import chunk_of, input_channel, padded, read_at, taps_of
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.target import Target


@dataclass(frozen=True)
class _Shape:
    """What the tile of a blocked convolution is chosen by."""

    positions: int
    blocks: int
    width: int
    lane_fma: bool

    @classmethod
    def of(cls, problem: Problem) -> _Shape:
        (out,), kernel = problem.out_types, problem.in_types[1]
        _, blocks, *size, block = out.shape
        lanes = vector_lanes(problem.target, out.dtype)
        lane_fma = conv_uses_lane_fma(
            problem.target, kernel.shape[-2], problem.attrs.groups, out.dtype
        )
        return cls(prod(size), blocks, max(1, block // lanes), lane_fma)


def _default(problem: Problem) -> Tile:
    shape, groups = _Shape.of(problem), problem.attrs.groups
    kernel = (lane_indexed_fma if shape.lane_fma else fma)(problem.target, shape.width)
    chunks = shape.blocks // groups
    return choose_tile(kernel, shape.positions, chunks, legal=whole_groups(chunks, groups))


def _space(problem: Problem) -> Space:
    shape, groups = _Shape.of(problem), problem.attrs.groups
    chunks = shape.blocks // groups
    space = dict(tile_space(shape.positions, chunks, problem.target, shape.width))
    if groups > 1:
        space["vectors"] = [v for v in space["vectors"] if chunks % v == 0]
    return space


def _cost(problem: Problem, tile: Tile) -> float:
    shape, kernel = _Shape.of(problem), problem.in_types[1].shape
    step = fma(problem.target, shape.width).all_cycles(tile, shape.positions, shape.blocks)
    return float(prod(kernel[1:-1]) * step)


def _flat_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """The convolution with the positions of an image as one axis, cut back at the end."""
    target, attrs, out_types = problem.target, problem.attrs, problem.out_types
    data, kernel = padded(inputs[0], attrs), inputs[1]
    (out,) = out_types
    assert isinstance(out, TensorType)
    n, blocks, *size, lanes = out.shape
    _, chunks, *window, block, _ = shape_of(kernel)
    packed = None
    if prod(window) == attrs.groups == 1 and causes_conflict_misses(
        chunks, shape_of(data)[2:], target
    ):

        def packed_element(b: PrimExpr, c: PrimExpr, p: PrimExpr, i: PrimExpr) -> Any:
            c, i = input_channel(data, kernel, c, i)
            at = zip(_position(p, size), attrs.strides, strict=True)
            return data(b, c, *(x * stride for x, stride in at), i)

        packed = te.compute(
            (n, chunks, prod(size), block), packed_element, name="packed", tag="conv_packed"
        )
    chunk = te.reduce_axis((0, chunks), name="ic_chunk")
    taps = taps_of(kernel)
    lane = te.reduce_axis((0, block), name="ic")

    def datum(b: PrimExpr, o: Any, c: Any, *rest: Any) -> Any:
        """What position p is multiplied by at a tap of the window, channel i of chunk c."""
        *at, p, i = rest
        if packed is not None:
            return packed(b, c, p, i)
        c, i = input_channel(data, kernel, chunk_of(kernel, attrs.groups, o, c), i)
        return data(b, c, *read_at(_position(p, size), at, attrs), i)

    groups = None
    if conv_uses_lane_fma(target, block, attrs.groups, out.dtype):
        shape = (n, chunks, *window, prod(size), block)
        groups = te.compute(
            shape, lambda b, *rest: datum(b, 0, *rest), name="groups", tag="conv_groups"
        )

    def element(b: PrimExpr, o: PrimExpr, p: PrimExpr, ob: PrimExpr) -> Any:
        if groups is None:
            value = datum(b, o, chunk, *taps, p, lane)
        else:
            value = groups(b, chunk, *taps, p, lane)
        return te.sum(
            value.astype(out.dtype) * kernel(o, chunk, *taps, lane, ob).astype(out.dtype),
            axis=[chunk, *taps, lane],
        )

    flat = te.compute((n, blocks, prod(size), lanes), element, name="sums", tag="conv_sums")

    def spread(b: PrimExpr, o: PrimExpr, *rest: PrimExpr) -> Any:
        *at, ob = rest
        position = at[0]
        for x, extent in zip(at[1:], size[1:], strict=True):
            position = position * extent + x
        return flat(b, o, position, ob)

    return [te.compute(out.shape, spread, name="conv_NCHWc", tag="injective")]


def _position(position: Any, size: Sequence[int]) -> list[Any]:
    """Return the coordinates of position `position` of a flattened image of `size`."""
    at = []
    for extent in reversed(size[1:]):
        at.append(te.floormod(position, extent))
        position = te.floordiv(position, extent)
    return [position, *reversed(at)]


@register_strategy(
    *(f"nn.contrib_conv{n}d_nchwc" for n in (1, 2, 3)),
    name="conv2d_nchwc.direct",
    compute=_flat_compute,
    default=_default,
    space=_space,
    cost=_cost,
)
def schedule_conv2d_nchwc(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Direct convolution, `tile.rows` positions by `tile.vectors` channel blocks at a time."""
    target, parts = problem.target, problem.attrs.groups
    schedule, output = new_schedule(outs)
    found = tagged(outs)
    sums, packed, groups = found["conv_sums"], found.get("conv_packed"), found.get("conv_groups")
    stages = [t for t in (packed, groups, sums) if t is not None]
    data, kernel = stages[0].op.input_tensors[0], sums.op.input_tensors[1]
    pad = _padding_of(stages[0])
    inline_injective(schedule, outs, keep=[*stages, *pad])
    for tensor in pad:
        schedule_padding(schedule, tensor, target)
    schedule[sums].set_scope("local")
    _, blocks, positions, block = shape_of(sums)
    data_bytes, weight_bytes = (4 * prod(shape_of(t)[1:]) for t in (data, kernel))
    data_bytes //= parts
    panel_bytes = weight_bytes * tile.vectors
    shared = worth_sharing(positions * prod(shape_of(kernel)), target)
    stage = schedule[output]
    n, oc, *position, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    if packed is None:  # all tiles of a part, one panel of weights after the other
        panels = -(-blocks // tile.vectors)
        part = positions_per_part(positions, data_bytes, panel_bytes * panels, panels, tile, target)
        each = image_tiles(
            stage, (n, oc_outer), position, oc_inner, ob, rows=tile.rows, part=part, shared=shared
        )
    else:  # many panels for one tile, whose data is packed first
        together = max(1, 2 * target.core.l2_bytes // panel_bytes)
        oc_part, oc_outer = stage.split(oc_outer, factor=together)
        p_outer, p_inner = stage.split(stage.fuse(*position), factor=tile.rows, tail="shift")
        register_tile(stage, [n, oc_part, p_outer, oc_outer], [oc_inner, p_inner], ob)
        task, each = stage.fuse(n, oc_part, p_outer), oc_outer
        schedule[packed].compute_at(stage, task)
        schedule[packed].unroll(packed.op.axis[2])
        schedule[packed].vectorize(packed.op.axis[3])
        if shared:
            stage.parallel(task)

    inner = schedule[sums]
    inner.compute_at(stage, each)
    if groups is not None:
        lanes = min(block, vector_lanes(target, sums.dtype))
        schedule_lane_fma(schedule, sums, groups, row=2, columns=[1, 3], lanes=lanes)
        return schedule
    n, oc, p, ob = inner.op.axis
    chunk, *taps, ic = inner.op.reduce_axis
    if distance := prefetch_steps(block, target):
        inner.prefetch(sums.op.input_tensors[1], ic, distance)
    steps = [chunk, *taps, ic]
    # What is not packed stays in the first-level cache until all channels of a block are read.
    is_one = packed is None and prod(map(extent_of, taps)) == 1
    if is_one and prefers_long_loops(target) and extent_of(chunk) > extent_of(ic):
        steps = [*taps, ic, chunk]
    # Vectors of channels innermost: a broadcast value of the data is used at once and forgotten.
    register_tile(inner, [n, *steps], [p, oc], ob)
    return schedule


def _padding_of(conv: te.Tensor) -> list[te.Tensor]:
    """The stage that pads the data, if there is one."""
    data = conv.op.input_tensors[0]
    return [data] if "pad" in data.op.tag else []


def vectorize_padding(stage: te.Stage, tensor: te.Tensor, target: Target) -> None:
    """Copy in vectors of the channels of a block, or of a row where that has one channel."""
    lanes = vector_lanes(target, tensor.dtype)
    *_, w, block = stage.op.axis
    if extent_of(block) > 1:
        stage.vectorize(block)
    elif lower_bound(extent_of(w)) >= lanes > 1:
        vector_loop(stage, w, lanes)


def schedule_padding(schedule: te.Schedule, tensor: te.Tensor, target: Target) -> None:
    """Copy with padding: one row of one channel block at a time; a small copy is of one core."""
    if not is_injective(tensor.op):
        return
    stage: Any = schedule[tensor]
    vectorize_padding(stage, tensor, target)
    task = stage.fuse(*stage.op.axis[:-2])
    if usual(prod(shape_of(tensor))) >= copied_elements(target) // 2:
        stage.parallel(task)
