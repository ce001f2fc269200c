"""Convolutions on blocked channels whose height and width are open: tiles of one row.

A tile of registers is a run of positions of a row, read from a copy of the data with its padding:
no bound of a loop and no index depends on where a row ends.  Of a row that is no whole number of
tiles the last tile overlaps the one before.  Where rows of results share few rows of the data, the
copy is of those that one row of results reads, else of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from slipway import te
from slipway.backends.cpu.best_together import tiles_by_rows
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import positions_per_part, prefetch_steps, worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.conv.direct import schedule_padding, vectorize_padding
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.cpu.tile import MicroKernel, Tile, choose_tile, fma, whole_groups
from slipway.backends.stages import inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, SizedKnobs, Space, register_strategy
from slipway.relay.dims import is_open, lower_bound, usual
from slipway.relay.types import TensorType, Type
from slipway.target import Target


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """The size of an image is open."""
    del attrs, target
    data = in_types[0]
    assert isinstance(data, TensorType)
    return any(map(is_open, data.shape[2:-1]))


def _chunks(problem: Problem) -> tuple[MicroKernel, int, int]:
    """Return how a tile is multiplied, the chunks of a group that it may hold, and the groups."""
    (out,), target = problem.out_types, problem.target
    _, blocks, *_, block = out.shape
    narrow = problem.in_types[1].shape[1] == 1 != problem.attrs.groups  # a group reads one block
    groups = 1 if narrow else problem.attrs.groups
    chunks = 1 if narrow else blocks // groups
    return fma(target, max(1, block // vector_lanes(target, out.dtype))), chunks, groups


def _default(problem: Problem) -> Tile:
    kernel, chunks, groups = _chunks(problem)
    width = problem.out_types[0].shape[-2]
    return choose_tile(kernel, width, chunks, legal=whole_groups(chunks, groups))


def _by_size(problem: Problem) -> list[SizedKnobs]:
    kernel, chunks, groups = _chunks(problem)
    if groups > 1:
        return []
    return tiles_by_rows(kernel, problem.out_types[0].shape[-2], chunks)


def _space(problem: Problem) -> Space:
    width = lower_bound(problem.out_types[0].shape[-2])
    return {"rows": range(1, max(1, width) + 1), "vectors": (_default(problem).vectors,)}


def _lines_per_part(
    size: Sequence[Any], data: Sequence[Any], kernel: Sequence[int], tile: Tile, target: Target
) -> int:
    """Return how many rows are computed for all channels before the next ones, at usual sizes."""
    width = usual(size[-1])
    data_bytes, weight_bytes = (4 * prod(map(usual, shape[1:])) for shape in (data, kernel))
    panels = -(-kernel[0] // tile.vectors)
    each = positions_per_part(
        prod(map(usual, size)), data_bytes, weight_bytes, panels,
        Tile(width, tile.vectors), target,
    )  # fmt: skip
    return max(1, each // width)


def _copied_once(problem: Problem, padded: te.Tensor) -> bool:
    """Return whether a row of results may copy the padded rows that it reads for itself.

    They stay in the cache, where a copy of the image is written to memory and read again.  Rows
    that several rows of results read are copied for each, which pays for up to two of them.
    """
    _, chunks, *rows, width, block = shape_of(padded)
    taps = problem.in_types[1].shape[2 : 2 + len(rows)]
    strides = problem.attrs.strides[: len(rows)]
    held = 4 * prod(taps) * usual(width) * chunks * block
    few = prod(taps) <= 2 * prod(strides)
    return few and bool(held <= problem.target.core.l2_bytes // 2)


@register_strategy(
    *(f"nn.contrib_conv{n}d_nchwc" for n in (1, 2, 3)), name="conv2d_nchwc.open_lines",
    priority=12, applies=_applies, default=_default, space=_space, cost=tile_cost(),
    by_size=_by_size,
)  # fmt: skip
def schedule_open_lines(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """`tile.rows` positions of a row by `tile.vectors` channel blocks at a time."""
    target = problem.target
    schedule, output = new_schedule(outs)
    data, kernel = conv.op.input_tensors
    pad = [data] if "pad" in data.op.tag else []
    inline_injective(schedule, outs, keep=[conv, *pad])
    sums = sums_in_registers(schedule, output, conv)
    _, _, *size, block = shape_of(output)

    stage: Any = schedule[output]
    n, oc, *lines, x, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    x_outer, x_inner = stage.split(x, factor=tile.rows, tail="shift")
    outer, inside = [n, oc_outer], []
    if lines:
        each = _lines_per_part(size, shape_of(data), shape_of(kernel), tile, target)
        part, line = stage.split(lines[0], factor=each)
        outer, inside = [n, part, oc_outer], [line, *lines[1:]]
    of_a_line = lines and shape_of(output)[1] <= tile.vectors and _copied_once(problem, data)
    for tensor in pad:
        if of_a_line:
            schedule[tensor].compute_at(stage, inside[-1])
            vectorize_padding(schedule[tensor], tensor, target)
        else:
            schedule_padding(schedule, tensor, target)
    register_tile(stage, [*outer, *inside, x_outer], [oc_inner, x_inner], ob)
    task = stage.fuse(*outer)
    if worth_sharing(prod(size) * prod(shape_of(kernel)), target):
        stage.parallel(task)

    inner: Any = schedule[sums]
    inner.compute_at(stage, x_outer)
    n, oc, *lines, x, ob = inner.op.axis
    reduced = inner.op.reduce_axis
    if distance := prefetch_steps(block, target):
        inner.prefetch(kernel, reduced[-1], distance)
    # Vectors of channels innermost: a broadcast value of the data is used at once and forgotten.
    register_tile(inner, [n, *lines, *reduced], [x, oc], ob)
    return schedule
