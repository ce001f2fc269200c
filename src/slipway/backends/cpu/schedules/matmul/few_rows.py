"""Matrix products of other shapes: weights that blocks do not divide, and few rows.

With few rows, to bring the right matrix into blocks would take longer than the product.  It is read
as it lies: a tile is those rows by as many vectors of neighbouring columns as registers hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from slipway import dtypes, te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.matmul.dense import packed_cost, packed_sides, packed_space
from slipway.backends.cpu.schedules.matmul.gemm import (
    PanelTile,
    bytes_of_row,
    fills_vector,
    packed_columns,
    panel_cost,
    panel_space,
    panel_tile,
    reads_groups,
    schedule_batch_matmul,
    tiled_product,
    widened,
)
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.cpu.tile import (
    Tile,
    all_rows,
    choose_tile,
    dividing,
    fma,
    step_cost,
    vector_registers,
    widest_tile,
)
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.dims import is_open
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.relay.ops.nn.dense import MatmulAttrs
    from slipway.relay.ops.packed.blocked import DensePackAttrs
    from slipway.target import Target


def _sides(problem: Problem) -> tuple[int, int, str, Target, bool]:
    (out,) = problem.out_types
    return out.shape[0], out.shape[1], out.dtype, problem.target, reads_groups(problem)


def _dense_cost(problem: Problem, knobs: PanelTile) -> float:
    rows, columns, dtype, target, _ = _sides(problem)
    return panel_cost(rows, columns, problem.in_types[0].shape[-1], dtype, target, knobs)


def _dense_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: PanelTile
) -> list[te.Tensor]:
    """(M, K) by (N, K), both of them computed."""
    data, weight = inputs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    columns, depth = shape_of(weight)
    lanes = knobs.width * vector_lanes(problem.target, out.dtype)
    packed = packed_columns(weight, (depth, columns), True, lanes, knobs.vectors, out.dtype)
    data = widened(data, out.dtype)
    return [tiled_product(lambda p, k, m: data(m, k), packed, out)]


def _many_rows(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, enough rows to pay for the packing, columns that fill a vector."""
    data, weight = in_types
    assert isinstance(data, TensorType)
    assert isinstance(weight, TensorType)
    enough = data.rank == 2 and data.shape[0] >= target.core.costs.packed_matrix_rows
    floats = data.dtype == weight.dtype and dtypes.is_float(data.dtype)
    return enough and floats and fills_vector(data.shape[0], weight.shape[0], data.dtype, target)


register_strategy(
    "nn.dense", name="dense.tile", compute=_dense_compute, applies=_many_rows,
    default=lambda problem: panel_tile(*_sides(problem), bytes_of_row(problem)),
    space=lambda problem: panel_space(*_sides(problem)), cost=_dense_cost,
)(schedule_batch_matmul)  # fmt: skip


def _cut_default(problem: Problem) -> Tile:
    rows, blocks, width = packed_sides(problem)
    kernel = fma(problem.target, width, row_bytes=bytes_of_row(problem))
    return choose_tile(kernel, rows, blocks, legal=dividing(blocks))


def _cut_space(problem: Problem) -> Space:
    _, blocks, _ = packed_sides(problem)
    space = dict(packed_space(problem))
    space["vectors"] = [v for v in space["vectors"] if blocks % v == 0]
    return space


def _cut_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """(M, K) by blocks of units, of which the last is not full."""
    data, packed = inputs
    (out,) = problem.out_types
    return [tiled_product(lambda p, k, m: data(m, k), packed, out)]


def _is_cut(attrs: DensePackAttrs, in_types: Sequence[Type], target: Target) -> bool:
    _, weight = in_types
    assert isinstance(weight, TensorType)
    return bool(attrs.units) and attrs.units % weight.shape[-1] != 0


register_strategy(
    "nn.contrib_dense_pack", name="dense_pack.cut", priority=30, compute=_cut_compute,
    applies=_is_cut, default=_cut_default, space=_cut_space, cost=packed_cost,
)(schedule_batch_matmul)  # fmt: skip


def _few_rows(attrs: MatmulAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, one to three rows, the right matrix stored row by row.

    Not where products take lane-indexed FMA, which has its own way with few rows.
    """
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    rows = a.shape[-1 if attrs.transpose_a else -2]
    return (
        dtypes.is_float(a.dtype)
        and a.dtype == b.dtype
        and not target.has_lane_fma
        and not attrs.transpose_b
        and not is_open(rows)
        and 0 < rows < target.core.costs.packed_matrix_rows
        and b.shape[-1] >= vector_lanes(target, a.dtype)
    )


@dataclass(frozen=True)
class ColumnKnobs(Knobs):
    """The `vectors` of neighbouring columns that are summed together, for all rows."""

    vectors: int


def _run_default(problem: Problem) -> ColumnKnobs:
    """Parts of about equal length; the values of three rows and a vector have registers, too."""
    *_, rows, columns = problem.out_types[0].shape
    vectors = -(-columns // vector_lanes(problem.target, problem.out_types[0].dtype))
    return ColumnKnobs(widest_tile(all_rows(problem.target, spare=4), rows, vectors).vectors)


def _run_space(problem: Problem) -> Space:
    (out,) = problem.out_types
    vectors = -(-out.shape[-1] // vector_lanes(problem.target, out.dtype))
    return {"vectors": range(1, min(vectors, vector_registers(problem.target)) + 1)}


def _run_cost(problem: Problem, knobs: ColumnKnobs) -> float:
    """Steps of the tile, whose columns are read as they lie."""
    a, (out,) = problem.in_types[0], problem.out_types
    *batch, rows, columns = out.shape
    depth = a.shape[-2 if problem.attrs.transpose_a else -1]
    parts = -(-columns // (knobs.vectors * vector_lanes(problem.target, out.dtype)))
    products = rows * knobs.vectors
    each = step_cost(rows, knobs.vectors, problem.target)
    return float(prod(batch) * parts * depth * products * each)


@register_strategy(
    "nn.batch_matmul", "nn.matmul", name="matmul.rows", priority=20, applies=_few_rows,
    default=_run_default, space=_run_space, cost=_run_cost,
)  # fmt: skip
def schedule_rows(
    problem: Problem, outs: Sequence[te.Tensor], product: te.Tensor, knobs: ColumnKnobs
) -> te.Schedule:
    """A run of columns in registers, all rows of it; the depth is the loop around them."""
    target = problem.target
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs, keep=[product])
    sums = sums_in_registers(schedule, output, product)
    columns = shape_of(output)[-1]
    lanes = vector_lanes(target, output.dtype)
    run = min(columns, knobs.vectors * lanes)
    stage = schedule[output]
    *batch, m, n = stage.op.axis
    outer, inner = stage.split(n, factor=run, tail="shift")
    block, lane = stage.split(inner, factor=lanes, tail="shift")
    register_tile(stage, [*batch, outer], [m, block], lane)
    task = stage.fuse(*batch, outer)
    registers = schedule[sums]
    registers.compute_at(stage, task)
    *batch, m, n = registers.op.axis
    (k,) = registers.op.reduce_axis
    if worth_sharing(prod(shape_of(output)) * extent_of(k), target):
        stage.parallel(task)
    block, lane = registers.split(n, factor=lanes)
    register_tile(registers, [*batch, k], [block, m], lane)
    return schedule
