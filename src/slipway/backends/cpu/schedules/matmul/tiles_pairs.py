"""Products of bfloat16 on a matrix unit (`matmul.tiles`), their weights in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.lowering.dot_pairs import tile_pairs
from slipway.backends.cpu.parts import positions_per_part, worth_sharing
from slipway.backends.cpu.schedules.matmul.dot_pairs import schedule_padding
from slipway.backends.cpu.schedules.matmul.packed_pairs import (
    batch_of,
    packed_side,
    schedule_packed,
    takes_product,
)
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
    words_of,
)
from slipway.backends.cpu.tile import Tile
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.packed.blocked_conv import padded, read_at
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.op_registry import Attrs
    from slipway.relay.ops.nn.dense import MatmulAttrs
    from slipway.target import Target

BYTES = 2


def _applies(attrs: Attrs | None, in_types: Sequence[Type], target: Target) -> bool:
    """The target has the unit, and the weights are in whole blocks of pairs."""
    entry, weight = tile_pairs(target), in_types[1]
    assert isinstance(weight, TensorType)
    return (
        entry is not None
        and weight.dtype == entry.b_dtype
        and weight.shape[-1] == entry.depth
        and weight.shape[-2] in (LANES, 2 * LANES)
        and getattr(attrs, "groups", 1) == 1
    )


def _sides(problem: Problem) -> tuple[tuple[int, int], int, int, int]:
    """Return (lines, positions) of the result, blocks of 16, words of a tap, blocks together."""
    (out,), weight = problem.out_types, problem.in_types[1]
    blocks, *_, steps, lanes, _ = weight.shape
    together = lanes // LANES
    if problem.op == "nn.contrib_dense_pairs":
        return (1, out.shape[0]), blocks * together, steps, together
    size = (1, *out.shape[2:-1])
    return (size[-2], size[-1]), blocks * together, steps, together


def _default(problem: Problem) -> GridKnobs:
    size, blocks, steps, together = _sides(problem)
    return choose_grid(size, blocks, words_of(steps), problem.target, together)


def _space(problem: Problem) -> Space:
    return grid_space(*_sides(problem))


def _cost(problem: Problem, knobs: GridKnobs) -> float:
    size, blocks, _, _ = _sides(problem)
    (out,), weight = problem.out_types, problem.in_types[1]
    planes = out.size // (size[0] * size[1] * blocks * LANES)
    count: int = planes * prod(weight.shape[1:-2]) // knobs.words
    return count * all_cycles(knobs, size, blocks, problem.target)


def _conv_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: GridKnobs
) -> list[te.Tensor]:
    """Sums with the halves of a block of channels apart, and the blocks they are."""
    attrs = problem.attrs
    data, kernel = padded(inputs[0], attrs), inputs[1]
    (out,) = problem.out_types
    n, blocks, *size, lanes = out.shape
    _, chunks, *window, pairs, _, depth = shape_of(kernel)
    wide = shape_of(data)[-1]
    chunk, *taps, pair, part = (
        te.reduce_axis((0, extent), name=f"k{number}")
        for number, extent in enumerate((chunks, *window, pairs, depth))
    )

    def element(b: PrimExpr, *i: Any) -> Any:
        *at, o, half, lane = i
        first, position = chunk * (pairs * depth), read_at(at, taps, attrs)
        c = te.floormod(first, wide) + (pair * depth + part)
        left = data(b, te.floordiv(first, wide), *position, c).astype(out.dtype)
        right = kernel(o, chunk, *taps, pair, half * LANES + lane, part).astype(out.dtype)
        return te.sum(left * right, axis=[chunk, *taps, pair, part])

    shape = (n, *size, blocks, lanes // LANES, LANES)
    sums = te.compute(shape, element, name="sums", tag="tile_sums")

    def spread(b: PrimExpr, o: PrimExpr, *rest: PrimExpr) -> Any:
        *at, c = rest
        return sums(b, *at, o, te.floordiv(c, LANES), te.floormod(c, LANES))

    return [te.compute(out.shape, spread, name="conv_pairs", tag="injective")]


@register_strategy(
    *(f"nn.contrib_conv{n}d_pairs" for n in (1, 2, 3)), name="conv_pairs.tiles", priority=20,
    compute=_conv_compute, applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_conv_tiles(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, knobs: GridKnobs
) -> te.Schedule:
    """Grids of tiles; all channels of a part of the lines before the next part."""
    target, attrs = problem.target, problem.attrs
    schedule, output = new_schedule(outs)
    sums, entry = tagged(outs)["tile_sums"], tile_pairs(target)
    assert entry is not None  # it applied
    data, kernel = sums.op.input_tensors
    inline_injective(schedule, outs, keep=[data])
    schedule[sums].set_scope("local")
    images, *size, blocks, together, _ = shape_of(sums)
    parallel = worth_sharing(images * prod(size) * prod(shape_of(kernel)), target)
    if is_injective(data.op):
        schedule_padding(schedule[data], parallel)

    stage: Any = schedule[output]
    n, o, *outer, x, ob = stage.op.axis
    wide, weight_bytes = size[-1], BYTES * prod(shape_of(kernel))
    o_outer, o_inner = stage.split(o, factor=knobs.vectors // together)
    x_outer, x_inner = stage.split(x, factor=knobs.across * knobs.height, tail="shift")
    o_half, o_lane = stage.split(ob, factor=LANES)
    lines, inside = [], [x_inner]
    if outer:
        *outer, y = outer
        each = knobs.lines * wide
        part = positions_per_part(
            prod(size), BYTES * prod(shape_of(data)[1:]), weight_bytes,
            blocks * together // knobs.vectors, Tile(each, knobs.vectors), target,
        )  # fmt: skip
        if all_panels_first(weight_bytes, target):
            part = each
        high = min(size[-2], max(1, part // each) * knobs.lines)
        y_part, y_lines = stage.split(y, factor=high, tail="shift")
        y_outer, y_inner = stage.split(y_lines, factor=knobs.lines, tail="shift")
        outer, lines, inside = [*outer, y_part], [y_outer], [y_inner, x_inner]
    stage.reorder(n, *outer, o_outer, *lines, x_outer, *inside, o_inner, o_half, o_lane)
    stage.unroll(o_inner)
    stage.unroll(o_half)
    stage.vectorize(o_lane)
    task = stage.fuse(n, *outer, o_outer)
    if parallel:
        stage.parallel(task)
        stage.parallel(lines[0] if lines else x_outer)

    inner: Any = schedule[sums]
    inner.compute_at(stage, x_outer)
    axes, taps = inner.op.axis, len(attrs.strides)
    first = len(axes) - 3 - min(taps, 2)
    *around, pair, part = inner.op.reduce_axis
    _, _, *_, window, pairs, _, depth = shape_of(kernel)
    whole = shape_of(data)[-1] == pairs * depth and knobs.words == pairs
    joined = joins_taps(window, attrs.dilation[-1], pairs, whole)
    tap = [around.pop()] if joined else []
    intrinsic = product_intrinsic(
        entry, knobs, attrs.strides[-2:], 1 + taps - joined, together,
        rows_ahead(prod(size), together, target), window if joined else 1,
    )  # fmt: skip
    multiply_tiles(
        inner, knobs, [*axes[:first], *around], axes[first:], [*tap, pair], part, intrinsic
    )
    return schedule


def _dense_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: GridKnobs
) -> list[te.Tensor]:
    """Sums with the halves of a block of units apart, and the rows they are."""
    data, weight = inputs
    (out,) = problem.out_types
    blocks, pairs, lanes, depth = shape_of(weight)
    pair, part = (
        te.reduce_axis((0, n), name=name) for n, name in ((pairs, "k_pair"), (depth, "k"))
    )

    def element(m: PrimExpr, o: PrimExpr, half: Any, lane: PrimExpr) -> Any:
        left = data(m, pair * depth + part).astype(out.dtype)
        right = weight(o, pair, half * LANES + lane, part).astype(out.dtype)
        return te.sum(left * right, axis=[pair, part])

    shape = (out.shape[0], blocks, lanes // LANES, LANES)
    sums = te.compute(shape, element, name="sums", tag="tile_sums")

    def spread(m: PrimExpr, n: PrimExpr) -> Any:
        c = te.floormod(n, lanes)
        return sums(m, te.floordiv(n, lanes), te.floordiv(c, LANES), te.floormod(c, LANES))

    return [te.compute(out.shape, spread, name="dense_pairs", tag="injective")]


@register_strategy(
    "nn.contrib_dense_pairs", name="dense_pairs.tiles", priority=20, compute=_dense_compute,
    applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_dense_tiles(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, knobs: GridKnobs
) -> te.Schedule:
    """Grids of tiles; all panels of units of a part of the rows before the next part."""
    target = problem.target
    schedule, output = new_schedule(outs)
    sums, entry = tagged(outs)["tile_sums"], tile_pairs(target)
    assert entry is not None  # it applied
    inline_injective(schedule, outs)
    schedule[sums].set_scope("local")
    rows, _, together, _ = shape_of(sums)
    weight = sums.op.input_tensors[1]
    stage: Any = schedule[output]
    m, n = stage.op.axis
    each, weight_bytes = knobs.across * knobs.height, BYTES * prod(shape_of(weight))
    panels = shape_of(weight)[0] * together // knobs.vectors
    data_bytes = BYTES * prod(shape_of(sums.op.input_tensors[0]))
    part = positions_per_part(
        rows, data_bytes, weight_bytes, panels, Tile(each, knobs.vectors), target
    )
    m_part, m_rows = stage.split(m, factor=part, tail="shift")
    m_outer, m_inner = stage.split(m_rows, factor=each, tail="shift")
    n_outer, n_inner = stage.split(n, factor=knobs.vectors * LANES)
    n_block, n_inside = stage.split(n_inner, factor=together * LANES)
    n_half, n_lane = stage.split(n_inside, factor=LANES)
    stage.reorder(m_part, n_outer, m_outer, m_inner, n_block, n_half, n_lane)
    stage.unroll(n_block)
    stage.unroll(n_half)
    stage.vectorize(n_lane)
    task = stage.fuse(m_part, n_outer)
    if worth_sharing(rows * prod(shape_of(weight)), target, weight_bytes):
        stage.parallel(task)

    inner: Any = schedule[sums]
    inner.compute_at(stage, m_outer)
    pair, part = inner.op.reduce_axis
    intrinsic = product_intrinsic(
        entry, knobs, (1,), 0, together, rows_ahead(rows, together, target)
    )
    multiply_tiles(inner, knobs, [], inner.op.axis, [pair], part, intrinsic)
    return schedule


def _matmul_applies(attrs: MatmulAttrs, in_types: Sequence[Type], target: Target) -> bool:
    entry = tile_pairs(target)
    return entry is not None and takes_product(entry, attrs, in_types, LANES)


def _matmul_sides(problem: Problem) -> tuple[tuple[int, int], int, int]:
    (out,), a = problem.out_types, problem.in_types[0]
    return (1, out.shape[-2]), -(-out.shape[-1] // LANES), a.shape[-1] // 2


def _matmul_default(problem: Problem) -> GridKnobs:
    size, blocks, steps = _matmul_sides(problem)
    return choose_grid(size, blocks, words_of(steps), problem.target)


def _matmul_space(problem: Problem) -> Space:
    return grid_space(*_matmul_sides(problem))


def _matmul_cost(problem: Problem, knobs: GridKnobs) -> float:
    size, blocks, steps = _matmul_sides(problem)
    batch: int = prod(problem.out_types[0].shape[:-2])
    return batch * (steps // knobs.words) * all_cycles(knobs, size, blocks, problem.target)


def _matmul_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: GridKnobs
) -> list[te.Tensor]:
    """(b, M, K) by (b, K, N) or (b, N, K), the right one copied into blocks of pairs."""
    a, b = inputs
    (out,), entry = problem.out_types, tile_pairs(problem.target)
    assert entry is not None  # it applied
    *batch, rows, columns = out.shape
    inner, depth = shape_of(a)[-1], entry.depth
    blocks = -(-columns // LANES)
    packed = packed_side(b, problem.attrs, LANES, depth)
    pair, part = (
        te.reduce_axis((0, n), name=name) for n, name in ((inner // depth, "k_pair"), (depth, "k"))
    )

    def sum_of(*i: Any) -> Any:
        *p, m, block, _, lane = i
        left = a(*batch_of(a, p), m, pair * depth + part)
        right = packed(*batch_of(b, p), block, pair, lane, part)
        return te.sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[pair, part])

    sums = te.compute((*batch, rows, blocks, 1, LANES), sum_of, name="sums", tag="tile_sums")

    def spread(*i: PrimExpr) -> Any:
        *p, m, n = i
        return sums(*p, m, te.floordiv(n, LANES), 0, te.floormod(n, LANES))

    return [te.compute(out.shape, spread, name="matmul_pairs", tag="injective")]


@register_strategy(
    "nn.batch_matmul", "nn.matmul", name="matmul_pairs.tiles", priority=40,
    compute=_matmul_compute, applies=_matmul_applies, default=_matmul_default,
    space=_matmul_space, cost=_matmul_cost,
)  # fmt: skip
def schedule_matmul_tiles(
    problem: Problem, outs: Sequence[te.Tensor], product: te.Tensor, knobs: GridKnobs
) -> te.Schedule:
    """A task has some rows of the result, and multiplies them by panel after panel."""
    target = problem.target
    schedule, output = new_schedule(outs)
    sums, entry = tagged(outs)["tile_sums"], tile_pairs(target)
    assert entry is not None  # it applied
    packed = sums.op.input_tensors[1]
    inline_injective(schedule, outs, keep=[packed])
    schedule[sums].set_scope("local")
    parallel = worth_sharing(prod(shape_of(sums)) * prod(shape_of(packed)[-3::2]), target)
    stage: Any = schedule[output]
    *batch, m, n = stage.op.axis
    m_outer, m_inner = stage.split(m, factor=knobs.across * knobs.height, tail="shift")
    n_outer, n_inner = stage.split(n, factor=knobs.vectors * LANES)
    n_block, n_lane = stage.split(n_inner, factor=LANES, tail="guard")
    stage.reorder(*batch, m_outer, n_outer, m_inner, n_block, n_lane)
    stage.unroll(n_block)
    stage.vectorize(n_lane)
    task = stage.fuse(*batch, m_outer)
    if parallel:
        stage.parallel(task)

    inner: Any = schedule[sums]
    inner.compute_at(stage, n_outer)
    *p, row, block, half, lane = inner.op.axis
    pair, part = inner.op.reduce_axis
    intrinsic = product_intrinsic(entry, knobs, (1,), 0)
    multiply_tiles(inner, knobs, p, [row, block, half, lane], [pair], part, intrinsic)

    schedule_packed(schedule, packed, parallel)
    return schedule
