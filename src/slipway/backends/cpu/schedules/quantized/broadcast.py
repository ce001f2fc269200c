"""Integer convolutions and products, channels last: a tile of int32 sums in registers.

A step multiplies a broadcast element of data by a vector of weights of neighbouring output
channels; the requantisation of the epilogue runs on the vector before it is stored as bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    dividing_lanes,
    vector_lanes,
)
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.reduction import schedule_opaque
from slipway.backends.cpu.schedules.register_tile import (
    COPY_LANES,
    copy_of_image,
    matrix_tiles,
    register_tile,
    sums_in_registers,
)
from slipway.backends.cpu.tile import Tile, choose_tile, fma, tile_space
from slipway.backends.stages import extent_of, inline_injective, is_injective, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy

if TYPE_CHECKING:
    from slipway.target import Target


def _lanes(channels: int, target: Target, dtype: str) -> int:
    """Return the widest vector that divides the channels; 1 if there is none worth it."""
    lanes = dividing_lanes(channels, vector_lanes(target, dtype))
    return lanes if lanes >= 4 else 1


def _sides(problem: Problem) -> tuple[int, int]:
    """Return how many rows and vectors a tile may have; a depthwise one has a single vector."""
    (out,) = problem.out_types
    lanes = _lanes(out.shape[-1], problem.target, out.dtype)
    rows, vectors = out.shape[-2] if out.rank > 1 else 1, out.shape[-1] // lanes
    return (min(rows, 8), 1) if "depthwise" in problem.op else (rows, vectors)


def _default(problem: Problem) -> Tile:
    return choose_tile(fma(problem.target), *_sides(problem))


def _space(problem: Problem) -> Space:
    return tile_space(*_sides(problem), problem.target)


@register_strategy(
    "qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc", name="qnn_conv.tile", default=_default,
    space=_space, cost=tile_cost(),
)  # fmt: skip
def schedule_qnn_conv(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Rows of output positions by vectors of output channels."""
    target = problem.target
    _, height, _, channels = shape_of(conv)
    lanes = _lanes(channels, target, conv.dtype)
    distinct = {id(t.op): t for t in outs}
    if lanes == 1 or len(distinct) != 1:
        return schedule_opaque(target, outs)
    (output,) = distinct.values()
    schedule = te.create_schedule([t.op for t in outs])
    data = conv.op.input_tensors[0]
    pad = [data] if "pad" in data.op.tag and is_injective(data.op) else []
    inline_injective(schedule, outs, keep=[conv, *pad])
    sums = sums_in_registers(schedule, output, conv)
    depthwise = "depthwise" in problem.op
    rows, vectors = tile.rows, tile.vectors
    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    c_vectors, c_lane = stage.split(c, factor=lanes)
    c_outer, c_vector = stage.split(c_vectors, factor=vectors, tail="shift")
    x_outer, x_inner = stage.split(x, factor=rows, tail="shift")
    register_tile(stage, [n, y, c_outer, x_outer], [x_inner, c_vector], c_lane)

    inner: Any = schedule[sums]
    inner.compute_at(stage, x_outer)
    n_in, y_in, x_in, c_in = inner.op.axis
    vector, lane = inner.split(c_in, factor=lanes)
    reduced = list(inner.op.reduce_axis)
    register_tile(inner, [n_in, y_in, *reduced], [x_in, vector], lane)
    window = prod(extent_of(axis) for axis in reduced)
    if depthwise and window * rows <= target.core.costs.window_products:
        for axis in reduced:
            inner.unroll(axis)
    parallel = height > 1 and worth_sharing(prod(shape_of(conv)) * window, target)
    if parallel:
        stage.parallel(stage.fuse(n, y))
    for tensor in pad:
        _schedule_padding(schedule, tensor, parallel)
    return schedule


def _schedule_padding(schedule: te.Schedule, tensor: te.Tensor, parallel: bool) -> None:
    """Copy with padding, row by row."""
    stage: Any = schedule[tensor]
    copy_of_image(stage, COPY_LANES, stage.op.axis[:2] if parallel else (), minimum=4)


@register_strategy(
    "qnn.dense_packed", name="qnn_dense.tile", default=_default, space=_space, cost=tile_cost()
)
def schedule_qnn_dense(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, tile: Tile
) -> te.Schedule:
    """Rows of data by vectors of units."""
    target = problem.target
    *batch, units = shape_of(dense)
    lanes = _lanes(units, target, dense.dtype)
    distinct = {id(t.op): t for t in outs}
    if lanes == 1 or len(distinct) != 1 or len(batch) != 1:
        return schedule_opaque(target, outs)
    (output,) = distinct.values()
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs, keep=[dense])
    sums = sums_in_registers(schedule, output, dense)
    stage: Any = schedule[output]
    n_outer, m_outer = matrix_tiles(stage, tile, lanes)
    inner: Any = schedule[sums]
    inner.compute_at(stage, m_outer)
    m_in, n_in = inner.op.axis
    (k,) = inner.op.reduce_axis
    vector, lane = inner.split(n_in, factor=lanes)
    register_tile(inner, [k], [m_in, vector], lane)
    if worth_sharing(batch[0] * units * extent_of(k), target):
        stage.parallel(n_outer)
    return schedule
