"""Convolutions of few positions by many channels: deep layers, whose weights come from memory.

A 7x7 image of 512 channels has 4 MB of weights for 49 positions: in the direct schedule the first
tile of registers waits for every line of them, and the tiles after it find the lines in the cache.
Here the sum over channels and window is cut into blocks.  The data of a block is packed tile after
tile and stays in the cache; a panel of weights (one block of the sum, a few channel blocks wide)
stays in the first level while all tiles read it, and meanwhile each tile prefetches an equal share
of the next panel's lines.  Where the second-level cache keeps the data of all blocks, all blocks of
a few channels come before the next channels: weights are then read in the order in which they lie,
which memory brings twice as fast as pieces of them.

    packed   (N, KO, chunks, KH, KW, T, R, ic)    the data of block ko, R positions for each tile t
    partial  (N, KO, O, T, R, oc)                 the sum over block ko, in registers
    sums     (N, O, T, R, oc)                     over all blocks

The last tile is shifted inwards: it begins R positions before the end of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial as partial_call
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.matmul.panels import PanelProgress, prefetch_next, split_steps
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import Tile, choose_tile, dividing, fma, tile_space
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.ir import ops
from slipway.ir.intrin import SHARE
from slipway.relay.ops.packed.blocked_conv import input_channel, padded
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.target import Target


def _chunks_in_block(chunks: int, chunk_bytes: int, target: Target) -> int:
    """Return how many channel chunks one block of the sum has: a divisor of all.

    A panel fills a quarter of the first-level cache: the next panel and the data of all tiles need
    the rest.
    """
    fitting = [
        n
        for n in range(1, chunks + 1)
        if chunks % n == 0 and n * chunk_bytes <= target.core.l1_bytes // 4
    ]
    return max(fitting, default=1)


def _keeps_data(packed: te.Tensor, target: Target) -> bool:
    """Return whether the data of all blocks of the sum stays cached while panels pass."""
    return 4 * prod(shape_of(packed)[1:]) <= target.core.l2_bytes // 2


def _registers(problem: Problem) -> int:
    (out,) = problem.out_types
    return max(1, int(out.shape[-1]) // vector_lanes(problem.target, out.dtype))


def _default(problem: Problem) -> Tile:
    (out,) = problem.out_types
    _, blocks, height, width, _ = out.shape
    kernel = fma(problem.target, _registers(problem))
    return choose_tile(kernel, height * width, blocks, legal=dividing(blocks))


def _space(problem: Problem) -> Space:
    (out,) = problem.out_types
    _, blocks, height, width, _ = out.shape
    space = dict(tile_space(height * width, blocks, problem.target))
    space["vectors"] = [v for v in space["vectors"] if blocks % v == 0]
    return space


def _cost(problem: Problem, tile: Tile) -> float:
    (out,), kernel = problem.out_types, problem.in_types[1].shape
    _, blocks, height, width, _ = out.shape
    step = fma(problem.target, _registers(problem)).all_cycles(tile, height * width, blocks)
    return float(prod(kernel[1:-1]) * step)


def _compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    target, attrs = problem.target, problem.attrs
    data, kernel = padded(inputs[0], attrs), inputs[1]
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    n, blocks, height, width, lanes = out.shape
    _, chunks, kh, kw, block, _ = shape_of(kernel)
    (sh, sw), (dh, dw) = attrs.strides, attrs.dilation
    positions = height * width
    tiles = -(-positions // tile.rows)
    each = _chunks_in_block(chunks, 4 * kh * kw * block * lanes * tile.vectors, target)
    parts = chunks // each

    def packed_element(
        b: PrimExpr,
        ko: PrimExpr,
        c: PrimExpr,
        ky: PrimExpr,
        kx: PrimExpr,
        t: PrimExpr,
        r: PrimExpr,
        i: PrimExpr,
    ) -> Any:
        p = te.min(t * tile.rows, positions - tile.rows) + r
        y, x = te.floordiv(p, width) * sh + ky * dh, te.floormod(p, width) * sw + kx * dw
        c, i = input_channel(data, kernel, ko * each + c, i)
        return data(b, c, y, x, i)

    packed = te.compute(
        (n, parts, each, kh, kw, tiles, tile.rows, block), packed_element, name="packed",
        tag="streamed_packed",
    )  # fmt: skip
    chunk = te.reduce_axis((0, each), name="ic_chunk")
    ky = te.reduce_axis((0, kh), name="kh")
    kx = te.reduce_axis((0, kw), name="kw")
    lane = te.reduce_axis((0, block), name="ic")

    def product(
        b: PrimExpr, ko: PrimExpr, o: PrimExpr, t: PrimExpr, r: PrimExpr, ob: PrimExpr
    ) -> Any:
        left = packed(b, ko, chunk, ky, kx, t, r, lane).astype(out.dtype)
        right = kernel(o, ko * each + chunk, ky, kx, lane, ob).astype(out.dtype)
        return te.sum(left * right, axis=[chunk, ky, kx, lane])

    partial = te.compute(
        (n, parts, blocks, tiles, tile.rows, lanes), product, name="partial", tag="streamed_partial"
    )
    part = te.reduce_axis((0, parts), name="ko")
    sums = te.compute(
        (n, blocks, tiles, tile.rows, lanes),
        lambda b, o, t, r, ob: te.sum(partial(b, part, o, t, r, ob), axis=[part]),
        name="sums",
        tag="streamed_sums",
    )

    def element(b: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr, ob: PrimExpr) -> Any:
        p = y * width + x
        t, r = te.floordiv(p, tile.rows), te.floormod(p, tile.rows)
        if positions % tile.rows:
            r = te.Select(t == tiles - 1, p - (positions - tile.rows), r)
        return sums(b, o, t, r, ob)

    return [te.compute(out.shape, element, name="conv2d_NCHWc", tag="injective")]


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Few positions, and a kernel that the second-level cache does not hold from run to run.

    The kernels of all layers pass through that cache.  A short one comes from beyond it, too, and
    one or two tiles of positions wait for all of it.
    """
    data, kernel = in_types
    assert isinstance(data, TensorType)
    assert isinstance(kernel, TensorType)
    positions = prod(data.shape[2:4]) // prod(attrs.strides)
    core = target.core
    waits = positions <= core.costs.waiting_positions
    few = (
        attrs.groups == 1
        and positions <= core.costs.streamed_positions
        and 4 * prod(kernel.shape) >= (core.l2_bytes // 8 if waits else core.l2_bytes)
    )
    return few and target.vector_bits > 128  # short vectors take longer than memory


@register_strategy(
    "nn.contrib_conv2d_nchwc", name="conv2d_nchwc.streamed", priority=12, compute=_compute,
    applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_k_blocked(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Blocks of the sum, panels of weights, tiles of positions, from outside to inside."""
    target, vectors = problem.target, tile.vectors
    schedule, output = new_schedule(outs)
    stages = tagged(outs)
    packed, partial, sums = (stages[f"streamed_{n}"] for n in ("packed", "partial", "sums"))
    kernel = partial.op.input_tensors[1]
    inline_injective(schedule, outs, keep=[packed, partial, sums])
    blocks = shape_of(sums)[1]
    panels = blocks // vectors
    shared = worth_sharing(prod(shape_of(sums)) * prod(shape_of(kernel)[1:5]), target)

    stage = schedule[output]
    n, o, y, x, ob = stage.op.axis
    o_outer, o_inner = stage.split(o, factor=vectors)
    stage.reorder(n, o_outer, o_inner, y, x, ob)
    stage.vectorize(ob)

    whole = schedule[sums]
    whole.compute_at(stage, n)
    if shared:  # each task copies all data, and multiplies it by its share of the panels
        stage.pragma(n, "parallel_launch_point")
        stage.parallel(o_outer)
    n, o, t, r, ob = whole.op.axis
    (ko,) = whole.op.reduce_axis
    o_outer, o_inner = whole.split(o, factor=vectors)
    kept = _keeps_data(packed, target)
    register_tile(whole, [n, *((o_outer, ko) if kept else (ko, o_outer)), t], [r, o_inner], ob)
    if shared:
        whole.parallel(o_outer)

    copy = schedule[packed]
    copy.compute_at(whole, n if kept else ko)
    copy.vectorize(copy.op.axis[-1])

    _schedule_partial(schedule, partial, kernel, panels, Tile(shape_of(sums)[3], vectors), target)
    schedule[partial].compute_at(whole, t)
    return schedule


def _schedule_partial(
    schedule: te.Schedule,
    partial: te.Tensor,
    kernel: te.Tensor,
    panels: int,
    tile: Tile,
    target: Target,
) -> None:
    """Products in registers; each tile prefetches its share of the next panel."""
    inner = schedule[partial]
    inner.set_scope("local")
    packed = partial.op.input_tensors[0]
    n, ko, o, t, r, ob = inner.op.axis
    chunk, kh, kw, ic = inner.op.reduce_axis
    _, _, _, tiles, _, _ = shape_of(partial)
    _, _, height, width, block, _ = shape_of(kernel)
    split = split_steps(inner, ic, tile, target)
    register_tile(inner, [n, ko, chunk, kh, kw, split.asking], [split.unrolled, r, o], ob)
    steps = extent_of(chunk) * height * width * block
    step = ((chunk * height + kh) * width + kw) * block + ic
    first, end = (ops.call_intrin("int32", op, panels) for op in SHARE)
    if _keeps_data(packed, target):
        last = ko + 1 == extent_of(ko)
        next_o, next_ko = ops.select(last, o + tile.vectors, o), ops.select(last, 0, ko + 1)
    else:
        last = te.floordiv(o, tile.vectors) + 1 == end
        next_o = ops.select(last, first * tile.vectors, o + tile.vectors)
        next_ko = ops.select(last, ko + 1, ko)

    def next_at(vector: int, line: Any) -> tuple[Any, ...]:
        return next_o + vector, 0, 0, 0, next_ko * steps + line, 0

    at = PanelProgress(t, tiles, step, steps)
    for vector in range(tile.vectors):
        prefetch_next(inner, kernel, split, at, partial_call(next_at, vector))
