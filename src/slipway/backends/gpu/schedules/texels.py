"""Convolutions on blocks of four channels, texels where such data are images (`gpu.images`).

A thread computes some blocks of filters of some pixels beside each other.  Of each step of the sum
it has the texels of the image in registers, for all four of their channels, and of each channel
those of the weights: a texel is fetched once and serves all blocks or all pixels of the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway import te
from slipway.backends.gpu.images import is_texels, takes_images
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    bind_tiles,
    only_reader,
    readers_of,
    schedule_elements,
    thread_knobs,
    thread_space,
)
from slipway.backends.stages import extent_of, inline_injective, is_injective, producers
from slipway.backends.strategy import Problem, register_strategy
from slipway.ir.instructions.texels import LANES
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.types import flatten
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

_CONVS = tuple(f"nn.contrib_conv{n}d_nchwc" for n in SPATIAL)
_DEPTHWISE = tuple(f"nn.contrib_depthwise_conv{n}d_nchwc" for n in SPATIAL)
_SIDE = (1, 2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True)
class TexelKnobs(ThreadKnobs):
    """Also `rows` blocks of filters by `columns` pixels: the tile of a thread."""

    rows: int
    columns: int


def _applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    return takes_images(target) and all(is_texels(t) for t in in_types)


def _shape(problem: Problem) -> tuple[int, ...]:
    (out,) = flatten(problem.out_types[0])
    return tuple(out.shape)


def _is_depthwise(problem: Problem) -> bool:
    return problem.op in _DEPTHWISE


def texel_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs."""
    _, blocks, *_, width, _ = _shape(problem)
    rows = tuple(n for n in _SIDE if blocks % n == 0)
    if _is_depthwise(problem) or problem.attrs.groups > 1:
        rows = (1,)
    return {
        **thread_space(problem),
        "rows": rows,
        "columns": tuple(n for n in _SIDE if width % n == 0),
    }


def texel_cost(problem: Problem, knobs: TexelKnobs) -> float:
    """Return the texels that all threads fetch for each step of the sum's channels and window."""
    pixels = (knobs.columns - 1) * problem.attrs.strides[-1] + 1
    weights = knobs.rows * (1 if _is_depthwise(problem) else LANES)
    tiles = prod(_shape(problem)) / (LANES * knobs.rows * knobs.columns)
    return float(tiles * (pixels + weights))


def texel_knobs(problem: Problem) -> TexelKnobs:
    """Return the default knobs: the tile that fetches least, of those that leave enough threads."""
    space, total = texel_space(problem), prod(_shape(problem)) // LANES
    threads = thread_knobs(problem).threads
    tiles = [
        TexelKnobs(threads, r, c)
        for r in space["rows"]
        for c in space["columns"]
        if r * c == 1
        or (r * c <= ANY_GPU.tile_sums // 2 and total // (r * c) >= ANY_GPU.tile_threads)
    ]
    return min(tiles, key=lambda knobs: texel_cost(problem, knobs))


@register_strategy(
    *_CONVS, *_DEPTHWISE, name="threads.texels", applies=_applies, default=texel_knobs,
    space=texel_space, cost=texel_cost,
)  # fmt: skip
def schedule_texels(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: TexelKnobs
) -> te.Schedule:
    """A tile of texels for each thread; a texel where the kernel does more than that."""
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    schedule = te.create_schedule([t.op for t in outs])
    data, kernel = anchor.op.input_tensors
    padded = [data] if is_injective(data.op) else []
    inline_injective(schedule, outs, keep=padded)
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    if len(outs) != 1 or len(sums) != 1 or out is None or not is_placeholder(kernel):
        return schedule_elements(problem, outs, anchor, knobs)
    tile = schedule.cache_write(anchor, "local") if is_result else anchor
    schedule[tile].set_scope("local")
    thread = _bind(schedule[out], problem, knobs)
    schedule[tile].compute_at(schedule[out], thread)
    step, lane = _order(schedule[tile])
    pixels = padded[0] if padded else schedule.cache_read(data, "local", [tile])
    weights = schedule.cache_read(kernel, "local", [tile])
    _fetch(schedule[pixels], schedule[tile], step)
    _fetch(schedule[weights], schedule[tile], step if lane is None else lane)
    return schedule


def is_placeholder(tensor: te.Tensor) -> bool:
    """Return whether a tensor is an argument of the kernel."""
    return isinstance(tensor.op, te.PlaceholderOp)


def _bind(stage: te.Stage, problem: Problem, knobs: TexelKnobs) -> te.IterVar:
    """Bind the tiles of a stage to threads; return the axis of the threads."""
    batch, blocks, *rows, width, lanes = stage.op.axis
    block, block_step = stage.split(blocks, factor=knobs.rows)
    column, column_step = stage.split(width, factor=knobs.columns)
    tiles = prod(extent_of(axis) for axis in stage.op.axis[:-1]) // (knobs.rows * knobs.columns)
    outer, inner = [batch, block, *rows, column], [block_step, column_step]
    thread = bind_tiles(stage, outer, inner, tiles, problem, knobs.threads)
    stage.vectorize(lanes)
    return thread


def _order(stage: te.Stage) -> tuple[te.IterVar, te.IterVar | None]:
    """Put the loops of a tile inside of its sum's; return where pixels and weights are fetched.

    The second is None where that is the same step: a sum over the window alone.
    """
    batch, blocks, *rows, width, lanes = stage.op.axis
    *steps, last = stage.op.reduce_axis
    lane = last if len(steps) > len(rows) + 1 else None  # not of a sum over the window alone
    stage.reorder(batch, *rows, *steps, last, blocks, width, lanes)
    for axis in (blocks, width) if lane is None else (lane, blocks, width):
        stage.unroll(axis)
    stage.vectorize(lanes)
    return (last if lane is None else steps[-1]), lane


def _fetch(stage: te.Stage, reader: te.Stage, step: te.IterVar) -> None:
    """Fill registers with texels at a step of their reader."""
    stage.compute_at(reader, step)
    stage.set_scope("local")
    *axes, lanes = stage.op.axis
    for axis in axes:
        stage.unroll(axis)
    stage.vectorize(lanes)
