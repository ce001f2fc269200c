"""Convolutions on blocked channels (NCHW{c}c): direct, from a tile of registers.

One task computes some rows of the image for a few blocks of output channels.  Its inner loops run
over the input channels and the window, with the accumulators of `tiles.choose_tile` kept in
registers; bias, activation and sums that were fused behind are applied to them before they are
stored.  The padded border is a copy of the data, made once for the whole kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.relay.ops.blocked import input_channel, padded
from slipway.relay.types import TensorType, Type
from slipway.schedules.cpu.by_lane import GROUP, choose_lane_tile, multiply_by_lane
from slipway.schedules.cpu.tiles import (
    choose_tile,
    crowds_cache,
    positions_per_part,
    rows_per_part,
    steps_ahead,
    vector_registers,
    worth_sharing,
)
from slipway.schedules.generic import (
    extent_of,
    inline_injective,
    is_injective,
    producers,
    shape_of,
    vector_lanes,
)
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target


def _flat_compute(
    target: Target, attrs: Any, inputs: Sequence[te.Tensor], out_types: Sequence[Type]
) -> list[te.Tensor]:
    """The convolution with the positions of an image as one axis, cut back at the end."""
    data, kernel = padded(inputs[0], attrs), inputs[1]
    (out,) = out_types
    assert isinstance(out, TensorType)
    n, blocks, height, width, lanes = out.shape
    _, chunks, kh, kw, block, _ = shape_of(kernel)
    (sh, sw), (dh, dw) = attrs.strides, attrs.dilation
    near = None
    if (kh, kw) == (1, 1) and crowds_cache(chunks, shape_of(data)[2:], target):

        def side_by_side(b: Any, c: Any, p: Any, i: Any) -> Any:
            c, i = input_channel(data, kernel, c, i)
            return data(b, c, te.floordiv(p, width) * sh, te.floormod(p, width) * sw, i)

        near = te.compute(
            (n, chunks, height * width, block), side_by_side, name="near", tag="conv_near"
        )
    chunk = te.reduce_axis((0, chunks), name="ic_chunk")
    ky = te.reduce_axis((0, kh), name="kh")
    kx = te.reduce_axis((0, kw), name="kw")
    lane = te.reduce_axis((0, block), name="ic")

    def datum(b: Any, c: Any, y: Any, x: Any, p: Any, i: Any) -> Any:
        """What position p is multiplied by at (y, x) of the window, channel i of chunk c."""
        if near is not None:
            return near(b, c, p, i)
        y, x = te.floordiv(p, width) * sh + y * dh, te.floormod(p, width) * sw + x * dw
        c, i = input_channel(data, kernel, c, i)
        return data(b, c, y, x, i)

    groups = None
    if target.multiplies_by_lane and block % GROUP == 0 and out.dtype == "float32":
        shape = (n, chunks, kh, kw, height * width, block)
        groups = te.compute(shape, datum, name="groups", tag="conv_groups")

    def element(b: Any, o: Any, p: Any, ob: Any) -> Any:
        read = datum if groups is None else groups
        value = read(b, chunk, ky, kx, p, lane)
        return te.sum(
            value.astype(out.dtype) * kernel(o, chunk, ky, kx, lane, ob).astype(out.dtype),
            axis=[chunk, ky, kx, lane],
        )

    flat = te.compute((n, blocks, height * width, lanes), element, name="sums", tag="conv_sums")
    return [
        te.compute(
            out.shape,
            lambda b, o, y, x, ob: flat(b, o, y * width + x, ob),
            name="conv2d_NCHWc",
            tag="injective",
        )
    ]


@register_implementation(
    "nn.contrib_conv2d_nchwc", name="conv2d_nchwc.direct", compute=_flat_compute
)
def schedule_conv2d_nchwc(
    target: Target, outs: Sequence[te.Tensor], conv: te.Tensor
) -> te.Schedule:
    """Direct convolution, `tile.rows` positions by `tile.vectors` channel blocks at a time."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    tagged = {getattr(op, "tag", ""): op.output(0) for op in producers(outs)}
    sums, near, groups = tagged["conv_sums"], tagged.get("conv_near"), tagged.get("conv_groups")
    stages = [t for t in (near, groups, sums) if t is not None]
    data, kernel = stages[0].op.input_tensors[0], sums.op.input_tensors[1]
    pad = _padding_of(stages[0])
    inline_injective(schedule, outs, keep=[*stages, *pad])
    for tensor in pad:
        _schedule_padding(schedule, tensor, vector_lanes(target, tensor.dtype))
    schedule[sums].set_scope("local")
    _, blocks, positions, block = shape_of(sums)
    width = max(1, block // vector_lanes(target, sums.dtype))
    choose = choose_tile if groups is None else choose_lane_tile
    tile = choose(positions, blocks, target, width)
    data_bytes, weight_bytes = (4 * prod(shape_of(t)[1:]) for t in (data, kernel))
    panel_bytes = weight_bytes * tile.vectors
    stage = schedule[output]
    n, oc, oh, ow, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    if near is None:  # all tiles of a part, one panel of weights after the other
        panels = -(-blocks // tile.vectors)
        part = positions_per_part(positions, data_bytes, panel_bytes * panels, panels, tile, target)
        p_part, p_tiles = stage.split(stage.fuse(oh, ow), factor=part, tail="shift")
        p_outer, p_inner = stage.split(p_tiles, factor=tile.rows, tail="shift")
        stage.reorder(n, p_part, oc_outer, p_outer, oc_inner, p_inner, ob)
        task, each = stage.fuse(n, p_part, oc_outer), p_outer
    else:  # many panels for one tile, whose data is copied side by side first
        together = max(1, 2 * target.core.l2_bytes // panel_bytes)
        oc_part, oc_outer = stage.split(oc_outer, factor=together)
        p_outer, p_inner = stage.split(stage.fuse(oh, ow), factor=tile.rows, tail="shift")
        stage.reorder(n, oc_part, p_outer, oc_outer, oc_inner, p_inner, ob)
        task, each = stage.fuse(n, oc_part, p_outer), oc_outer
        schedule[near].compute_at(stage, task)
        schedule[near].unroll(near.op.axis[2])
        schedule[near].vectorize(near.op.axis[3])
    stage.unroll(oc_inner)
    stage.unroll(p_inner)
    stage.vectorize(ob)
    if worth_sharing(positions * prod(shape_of(kernel)), target):
        stage.parallel(task)

    inner = schedule[sums]
    inner.compute_at(stage, each)
    if groups is not None:
        lanes = min(block, vector_lanes(target, sums.dtype))
        multiply_by_lane(schedule, sums, groups, row=2, columns=[1, 3], lanes=lanes)
        return schedule
    n, oc, p, ob = inner.op.axis
    chunk, kh, kw, ic = inner.op.reduce_axis
    if ahead := steps_ahead(block):
        inner.prefetch(sums.op.input_tensors[1], ic, ahead)
    # Vectors of channels innermost: a broadcast value of the data is used at once and forgotten.
    inner.reorder(n, chunk, kh, kw, ic, p, oc, ob)
    inner.unroll(oc)
    inner.unroll(p)
    inner.vectorize(ob)
    return schedule


@register_implementation("nn.contrib_depthwise_conv2d_nchwc", name="depthwise_nchwc.direct")
def schedule_depthwise_nchwc(
    target: Target, outs: Sequence[te.Tensor], conv: te.Tensor
) -> te.Schedule:
    """Direct depthwise convolution, the window unrolled."""
    schedule = te.create_schedule([t.op for t in outs])
    pad = _padding_of(conv)
    out = _tile_in_registers(schedule, outs, conv, keep=[conv, *pad])
    images, planes, height, width, _ = shape_of(conv)
    tile = choose_tile(min(width, 8), 1, target)
    rows = rows_per_part(height, images * planes, target.num_cores)
    stage = schedule[out.output]
    n, c, oh, ow, cb = stage.op.axis
    oh_part, oh_inner = stage.split(oh, factor=rows, tail="shift")
    ow_outer, ow_inner = stage.split(ow, factor=tile.rows, tail="shift")
    stage.reorder(n, c, oh_part, oh_inner, ow_outer, ow_inner, cb)
    stage.unroll(ow_inner)
    stage.vectorize(cb)
    part = stage.fuse(n, c, oh_part)
    window = prod(shape_of(conv.op.input_tensors[1])[2:4])
    if worth_sharing(prod(shape_of(conv)) * window, target):
        stage.parallel(part)
    for tensor in pad:  # one part at a time, so that it is read back from a near cache
        schedule[tensor].compute_at(stage, part)
        schedule[tensor].vectorize(tensor.op.axis[-1])

    inner = schedule[out.accumulator]
    inner.compute_at(stage, ow_outer)
    n, c, oh, ow, cb = inner.op.axis
    kh, kw = inner.op.reduce_axis
    inner.reorder(n, c, oh, kh, kw, ow, cb)
    if extent_of(kh) * extent_of(kw) * tile.rows <= 128:
        # LLVM keeps the weights of all copies, and spills them where registers are few and
        # arithmetic takes no operand from memory.
        if vector_registers(target) >= 32 or target.arch.startswith("x86"):
            inner.unroll(kh)
        inner.unroll(kw)
    inner.unroll(ow)
    inner.vectorize(cb)
    return schedule


class _Stages:
    """The stage that is stored, and the one that accumulates in registers."""

    def __init__(self, output: te.Tensor, accumulator: te.Tensor) -> None:
        self.output = output
        self.accumulator = accumulator


def _tile_in_registers(
    schedule: te.Schedule, outs: Sequence[te.Tensor], conv: te.Tensor, keep: Sequence[te.Tensor]
) -> _Stages:
    """Give the reduction a local buffer: its own, or a cache where it is itself the output."""
    (output,) = {id(t.op): t for t in outs}.values()
    inline_injective(schedule, outs, keep=keep)
    if output.op is conv.op:
        return _Stages(output, schedule.cache_write(output, "local"))
    schedule[conv].set_scope("local")
    return _Stages(output, conv)


def _padding_of(conv: te.Tensor) -> list[te.Tensor]:
    """The stage that pads the data, if there is one."""
    data = conv.op.input_tensors[0]
    return [data] if "pad" in getattr(data.op, "tag", "") else []


def _schedule_padding(schedule: te.Schedule, tensor: te.Tensor, lanes: int) -> None:
    """Copy with border: one row of one channel block at a time."""
    stage: Any = schedule[tensor]
    if not is_injective(tensor.op):
        return
    n, c, h, w, block = stage.op.axis
    if extent_of(block) > 1:
        stage.vectorize(block)
    elif extent_of(w) >= lanes > 1:
        stage.vectorize(stage.split(w, factor=lanes, tail="shift")[1])
    stage.parallel(stage.fuse(n, c, h))
