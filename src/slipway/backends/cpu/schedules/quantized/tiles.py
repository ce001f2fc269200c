"""Integer convolutions on a matrix unit (`matmul.tiles`): AMX's products of bytes.

data    (N, H, W, C)
weight  (O/16, kH, kW, C/4, 16, 4)      as vpdpbusd has it, and as a tile of weights is
result  (N, OH, OW, O)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.parts import positions_per_part, worth_sharing
from slipway.backends.cpu.schedules.matmul.tiles import (
    LANES,
    GridKnobs,
    all_cycles,
    all_panels_first,
    choose_grid,
    grid_space,
    joins_taps,
    multiply_tiles,
    product_intrinsic,
    rows_ahead,
    tile_instruction,
    words_of,
)
from slipway.backends.cpu.schedules.quantized.packed import schedule_copy
from slipway.backends.cpu.tile import Tile
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.packed.qnn_packed import copied
from slipway.relay.types import TensorType, Type
from slipway.te.hardware import byte_of

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.target import Target


def _bytes_of(dtype: str) -> str:
    """Return the dtype of the bytes of data, of which int32 has four."""
    return "uint8" if dtype == "int32" else dtype


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    data, weight = in_types
    assert isinstance(data, TensorType)
    assert isinstance(weight, TensorType)
    entry = tile_instruction(_bytes_of(data.dtype), weight.dtype, target)
    return (
        entry is not None
        and attrs.groups == 1
        and weight.shape[4:] == (LANES, entry.depth)
        and attrs.out_dtype == entry.c_dtype
    )


def _sides(problem: Problem) -> tuple[tuple[int, int], int, int]:
    """Return (lines, positions) of the result, blocks of channels, and words of a tap."""
    (out,), weight = problem.out_types, problem.in_types[1]
    _, height, width, _ = out.shape
    return (height, width), weight.shape[0], weight.shape[3]


def _default(problem: Problem) -> GridKnobs:
    size, blocks, steps = _sides(problem)
    return choose_grid(size, blocks, words_of(steps), problem.target)


def _space(problem: Problem) -> Space:
    return grid_space(*_sides(problem))


def _cost(problem: Problem, knobs: GridKnobs) -> float:
    size, blocks, steps = _sides(problem)
    images: int = problem.out_types[0].shape[0]
    taps = prod(problem.in_types[1].shape[1:3])
    count: int = images * taps * (steps // knobs.words)
    return count * all_cycles(knobs, size, blocks, problem.target)


def _compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: GridKnobs) -> list[te.Tensor]:
    """Sums of all positions, and the same with their channels contiguous."""
    attrs, weight = problem.attrs, inputs[1]
    (out,) = problem.out_types
    n, height, width, _ = out.shape
    blocks, kh, kw, chunks, lanes, depth = shape_of(weight)
    (sy, sx), (dy, dx) = attrs.strides, attrs.dilation
    data = copied(attrs, inputs[0], weight)
    ky, kx, chunk, part = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((kh, "ky"), (kw, "kx"), (chunks, "kc"), (depth, "k"))
    )

    def element(*i: PrimExpr) -> Any:
        b, y, x, o, _, lane = i
        at = b, y * sy + ky * dy, x * sx + kx * dx
        if data.dtype == "int32":
            left = byte_of(data(*at, chunk), part.var)
        else:
            left = data(*at, chunk * depth + part).astype(out.dtype)
        right = weight(o, ky, kx, chunk, lane, part).astype(out.dtype)
        return te.sum(left * right, axis=[ky, kx, chunk, part])

    shape = (n, height, width, blocks, 1, lanes)
    sums = te.compute(shape, element, name="sums", tag="tile_sums")
    return [
        te.compute(
            out.shape,
            lambda b, y, x, c: sums(b, y, x, te.floordiv(c, lanes), 0, te.floormod(c, lanes)),
            name="conv2d_packed", tag="injective",
        )
    ]  # fmt: skip


@register_strategy(
    "qnn.contrib_conv2d_packed", name="qnn_conv.tiles", priority=20, compute=_compute,
    applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_conv_tiles(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, knobs: GridKnobs
) -> te.Schedule:
    """Grids of tiles; all channels of a part of the lines before the next part."""
    target, attrs = problem.target, problem.attrs
    schedule, output = new_schedule(outs)
    sums = tagged(outs)["tile_sums"]
    data, weight = sums.op.input_tensors
    inline_injective(schedule, outs, keep=[data])
    entry = tile_instruction(_bytes_of(data.dtype), weight.dtype, target)
    assert entry is not None  # it applied
    schedule[sums].set_scope("local")
    _, high, wide, blocks, _, lanes = shape_of(sums)
    parallel = worth_sharing(prod(shape_of(sums)) * prod(shape_of(weight)[1:4]), target)
    if is_injective(data.op):
        schedule_copy(schedule, data, target, parallel)

    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    each_line, weight_bytes = knobs.lines * wide, prod(shape_of(weight))
    part = positions_per_part(
        high * wide, prod(shape_of(data)[1:]), weight_bytes, blocks // knobs.vectors,
        Tile(each_line, knobs.vectors), target,
    )  # fmt: skip
    if all_panels_first(weight_bytes, target):
        part = each_line
    lines = min(high, max(1, part // each_line) * knobs.lines)
    y_part, y_lines = stage.split(y, factor=lines, tail="shift")
    y_outer, y_inner = stage.split(y_lines, factor=knobs.lines, tail="shift")
    x_outer, x_inner = stage.split(x, factor=knobs.across * knobs.height, tail="shift")
    c_outer, c_inner = stage.split(c, factor=knobs.vectors * lanes)
    c_vector, c_lane = stage.split(c_inner, factor=lanes)
    stage.reorder(n, y_part, c_outer, y_outer, x_outer, y_inner, x_inner, c_vector, c_lane)
    stage.unroll(c_vector)
    stage.vectorize(c_lane)
    task = stage.fuse(n, y_part, c_outer)
    if parallel:
        stage.parallel(task)
        stage.parallel(y_outer)

    inner: Any = schedule[sums]
    inner.compute_at(stage, x_outer)
    b, *grid = inner.op.axis
    ky, kx, chunk, element = inner.op.reduce_axis
    _, _, window, words, _, _ = shape_of(weight)
    in_words = data.dtype == "int32"
    whole = shape_of(data)[3] == words * (1 if in_words else entry.depth) and knobs.words == words
    joined = joins_taps(window, attrs.dilation[1], words, whole)
    around, last = ([b, ky], [kx, chunk]) if joined else ([b, ky, kx], [chunk])
    intrinsic = product_intrinsic(
        entry, knobs, attrs.strides, 2 - joined, ahead=rows_ahead(high * wide, 1, target),
        window=window if joined else 1, in_words=in_words,
    )  # fmt: skip
    multiply_tiles(inner, knobs, around, grid, last, element, intrinsic)
    return schedule
