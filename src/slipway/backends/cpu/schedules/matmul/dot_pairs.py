"""Products of bfloat16 with weights in pairs: register tiles of float32 sums.

The tiles are those of float32 products: an instruction takes a pair of the data, repeated, and a
vector of pairs of weights, and so does two multiply-adds where a float32 one does one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.lowering.dot_pairs import vector_pairs
from slipway.backends.cpu.parts import positions_per_part, worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.matmul.gemm import tile_product
from slipway.backends.cpu.schedules.matmul.lane_fma import load_groups
from slipway.backends.cpu.schedules.matmul.packed_pairs import (
    batch_of,
    packed_side,
    schedule_packed,
    takes_product,
)
from slipway.backends.cpu.schedules.register_tile import image_tiles, matrix_tiles, register_tile
from slipway.backends.cpu.tile import (
    GROUP,
    Tile,
    choose_tile,
    dividing,
    fma,
    lane_indexed_fma,
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
from slipway.relay.ops.packed.dot_pairs import PAIR, conv_compute, dense_compute
from slipway.relay.types import TensorType, Type
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.ir.hardware import HardwareIntrinsic
    from slipway.relay.op_registry import Attrs
    from slipway.relay.ops.nn.dense import MatmulAttrs
    from slipway.target import Target
    from slipway.te.stage import Stage


def _entry(target: Target) -> HardwareIntrinsic | None:
    """Return the instruction of `target` that multiplies a pair by a vector."""
    return next((i for i in vector_pairs(target) if i.rows == 0), None)


def _applies(attrs: Attrs | None, in_types: Sequence[Type], target: Target) -> bool:
    """The target has an instruction for weights of this type and in these blocks."""
    entry, weight = _entry(target), in_types[1]
    assert isinstance(weight, TensorType)
    return entry is not None and (weight.dtype, *weight.shape[-2:]) == (
        entry.b_dtype, entry.columns, entry.depth,
    )  # fmt: skip


def _intrinsic(target: Target) -> te.TensorIntrin:
    entry = _entry(target)
    assert entry is not None  # it applied
    return hardware_intrinsic(entry.name, target)


def _bytes(tensor: te.Tensor) -> int:
    return prod(shape_of(tensor)) * dtypes.bits_of(tensor.dtype) // 8


def _group(target: Target, pairs: int) -> int:
    """Return how many pairs of a row of data are loaded together, for lane-indexed FMA."""
    return gcd(GROUP, pairs) if target.has_lane_fma else 1


def _is_grouped(problem: Problem) -> bool:
    parts = _groups_of_channels(problem)
    return parts == 1 and _group(problem.target, problem.in_types[1].shape[-3]) > 1


def _groups_of_channels(problem: Problem) -> int:
    return 1 if problem.op == "nn.contrib_dense_pairs" else int(problem.attrs.groups)


def _conv_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """The operator's own compute, perhaps with a stage for the groups of a tile."""
    return conv_compute(problem.attrs, list(inputs), list(problem.out_types), _is_grouped(problem))


def _dense_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """The operator's own compute, perhaps with a stage for the groups of a tile."""
    grouped = _is_grouped(problem)
    made: list[te.Tensor] = dense_compute(
        problem.attrs, list(inputs), list(problem.out_types), grouped
    )
    return made


def _sides(problem: Problem) -> tuple[int, int]:
    """Return the rows or positions, and the blocks of units, or of a group's channels."""
    (out,) = problem.out_types
    if problem.op == "nn.contrib_dense_pairs":
        return out.shape[0], problem.in_types[1].shape[0]
    _, blocks, *size, _ = out.shape
    return prod(size), blocks // problem.attrs.groups


def _default(problem: Problem) -> Tile:
    """Choose the tile, as for float32."""
    kernel = lane_indexed_fma if _is_grouped(problem) else fma
    (rows, blocks), parts = _sides(problem), _groups_of_channels(problem)
    return choose_tile(kernel(problem.target), rows, blocks, legal=whole_groups(blocks, parts))


def _space(problem: Problem) -> Space:
    rows, blocks = _sides(problem)
    space = dict(tile_space(rows, blocks, problem.target))
    if _groups_of_channels(problem) > 1:
        space["vectors"] = [v for v in space["vectors"] if blocks % v == 0]
    return space


def _multiply(
    schedule: te.Schedule, sums: te.Tensor, groups: te.Tensor | None, row: int, target: Target
) -> None:
    """Tensorize the products of a tile; `row` is the axis of `sums` before or after the blocks."""
    inner: Any = schedule[sums]
    *batch, first, second, lane = inner.op.axis
    rows, block = (first, second) if row == len(batch) else (second, first)
    *outer, pair, element = inner.op.reduce_axis
    unrolled = [rows, block]
    if groups is not None:
        pair, step = inner.split(pair, factor=_group(target, extent_of(pair)))
        load_groups(schedule, groups, inner, pair)
        unrolled = [block, step, rows]
    register_tile(inner, [*batch, *outer, pair], unrolled, lane, _intrinsic(target), [element])


def _stages(outs: Sequence[te.Tensor]) -> tuple[te.Tensor, te.Tensor | None]:
    """Return the stage of the products, and that of the groups of data if there is one."""
    found = tagged(outs)
    return found["paired"], found.get("paired_groups")


@register_strategy(
    *(f"nn.contrib_conv{n}d_pairs" for n in (1, 2, 3)), name="conv_pairs.direct",
    compute=_conv_compute, applies=_applies, default=_default, space=_space, cost=tile_cost(2),
)  # fmt: skip
def schedule_conv_pairs(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Direct convolution, `tile.rows` positions by `tile.vectors` channel blocks at a time."""
    target = problem.target
    schedule, output = new_schedule(outs)
    sums, groups = _stages(outs)
    data, kernel = sums.op.input_tensors
    if groups is not None:
        (data,) = groups.op.input_tensors
    inline_injective(schedule, outs, keep=[data] if groups is None else [data, groups])
    schedule[sums].set_scope("local")
    images, blocks, positions, _ = shape_of(sums)
    stage: Any = schedule[output]
    n, oc, *position, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    panels = -(-blocks // tile.vectors)
    part = positions_per_part(
        positions,
        _bytes(data) // (images * problem.attrs.groups),
        _bytes(kernel),
        panels,
        tile,
        target,
    )
    parallel = worth_sharing(images * positions * prod(shape_of(kernel)), target)
    each = image_tiles(
        stage, (n, oc_outer), position, oc_inner, ob, rows=tile.rows, part=part, shared=parallel
    )
    if is_injective(data.op):
        schedule_padding(schedule[data], parallel)

    schedule[sums].compute_at(stage, each)
    _multiply(schedule, sums, groups, 2, target)
    return schedule


def schedule_padding(stage: Stage, parallel: bool) -> None:
    """Copy with padding, row by row."""
    *outer, _, block = stage.op.axis
    stage.vectorize(block)
    rows = stage.fuse(*outer)
    if parallel:
        stage.parallel(rows)


@register_strategy(
    "nn.contrib_dense_pairs", name="dense_pairs.tile", compute=_dense_compute, applies=_applies,
    default=_default, space=_space, cost=tile_cost(2),
)  # fmt: skip
def schedule_dense_pairs(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, tile: Tile
) -> te.Schedule:
    """Rows of data by blocks of units."""
    target = problem.target
    schedule, output = new_schedule(outs)
    sums, groups = _stages(outs)
    inline_injective(schedule, outs, keep=[] if groups is None else [groups])
    schedule[sums].set_scope("local")
    rows, _, lanes = shape_of(sums)
    weight = sums.op.input_tensors[1]
    stage: Any = schedule[output]
    n_outer, m_outer = matrix_tiles(stage, tile, lanes)
    if worth_sharing(rows * prod(shape_of(weight)), target, _bytes(weight)):
        stage.parallel(n_outer)

    schedule[sums].compute_at(stage, m_outer)
    _multiply(schedule, sums, groups, 0, target)
    return schedule


def _matmul_sides(problem: Problem) -> tuple[int, int]:
    (out,), entry = problem.out_types, _entry(problem.target)
    assert entry is not None  # it applied
    return out.shape[-2], -(-out.shape[-1] // entry.columns)


def _matmul_default(problem: Problem) -> Tile:
    rows, blocks = _matmul_sides(problem)
    return choose_tile(fma(problem.target), rows, blocks, legal=dividing(blocks))


def _matmul_products(problem: Problem) -> float:
    a, (out,) = problem.in_types[0], problem.out_types
    return float(prod(out.shape) * a.shape[-2 if problem.attrs.transpose_a else -1])


def _matmul_space(problem: Problem) -> Space:
    rows, blocks = _matmul_sides(problem)
    space = dict(tile_space(rows, blocks, problem.target))
    space["vectors"] = [v for v in space["vectors"] if blocks % v == 0]
    return space


def _matmul_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """(b, M, K) by (b, K, N) or (b, N, K), the right one copied into blocks of pairs."""
    a, b = inputs
    (out,) = problem.out_types
    *batch, rows, columns = out.shape
    entry = _entry(problem.target)
    assert entry is not None  # it applied
    depth, lanes = shape_of(a)[-1], entry.columns
    blocks = -(-columns // lanes)
    packed = packed_side(b, problem.attrs, lanes, PAIR)
    pair = te.reduce_axis((0, depth // PAIR), name="k_pair")
    part = te.reduce_axis((0, PAIR), name="k")

    def sum_of(*i: Any) -> Any:
        *p, m, block, lane = i
        left = a(*batch_of(a, p), m, pair * PAIR + part)
        right = packed(*batch_of(b, p), block, pair, lane, part)
        return te.sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[pair, part])

    tiles = te.compute((*batch, rows, blocks, lanes), sum_of, name="tiles", tag="paired")

    def spread(*i: PrimExpr) -> Any:
        *p, m, n = i
        return tiles(*p, m, te.floordiv(n, lanes), te.floormod(n, lanes))

    return [te.compute(out.shape, spread, name="matmul_pairs", tag="injective")]


def _matmul_applies(attrs: MatmulAttrs, in_types: Sequence[Type], target: Target) -> bool:
    entry = _entry(target)
    return entry is not None and takes_product(entry, attrs, in_types, entry.columns)


@register_strategy(
    "nn.batch_matmul", "nn.matmul", name="matmul_pairs.tile", priority=30,
    compute=_matmul_compute, applies=_matmul_applies, default=_matmul_default,
    space=_matmul_space, cost=tile_cost(2, _matmul_products),
)  # fmt: skip
def schedule_matmul_pairs(
    problem: Problem, outs: Sequence[te.Tensor], product: te.Tensor, tile: Tile
) -> te.Schedule:
    """As float32 products (`matmul.gemm`), an instruction for a pair."""
    target = problem.target
    schedule, output = new_schedule(outs)
    tiles, _ = _stages(outs)
    packed = tiles.op.input_tensors[1]
    inline_injective(schedule, outs, keep=[packed, tiles])
    accumulator = schedule.cache_write(tiles, "local")
    parallel = worth_sharing(prod(shape_of(tiles)) * prod(shape_of(packed)[-3::2]), target)

    stage, panel = tile_product(schedule, output, tiles, tile, target, parallel)

    inner: Any = schedule[accumulator]
    inner.compute_at(stage, panel)
    *p, row, block, lane = inner.op.axis
    pair, part = inner.op.reduce_axis
    register_tile(inner, [*p, pair], [row, block], lane, _intrinsic(target), [part])

    schedule_packed(schedule, packed, parallel)
    return schedule
