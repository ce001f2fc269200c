"""Matrix products with packed weights: a tile of registers, as in the convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.best_together import tiles_by_rows
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import prefetch_steps, worth_sharing
from slipway.backends.cpu.schedules.matmul.gemm import bytes_of_row
from slipway.backends.cpu.schedules.matmul.panels import PanelProgress, prefetch_next, split_steps
from slipway.backends.cpu.schedules.matmul.partial_sums import PART, TILE_PART, in_parts
from slipway.backends.cpu.schedules.register_tile import (
    matrix_tiles,
    register_tile,
    sums_in_registers,
)
from slipway.backends.cpu.tile import MicroKernel, Tile, choose_tile, fma, tile_space
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, SizedKnobs, Space, register_strategy

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr


def packed_sides(problem: Problem) -> tuple[int, int, int]:
    """Return the rows of data, the blocks of units, and the vectors in a block."""
    (out,) = problem.out_types
    blocks, _, lanes = problem.in_types[1].shape
    return out.shape[0], blocks, max(1, lanes // vector_lanes(problem.target, out.dtype))


def _default(problem: Problem) -> Tile:
    rows, blocks, _ = packed_sides(problem)
    return choose_tile(_kernel(problem), rows, blocks)


def _kernel(problem: Problem) -> MicroKernel:
    _, _, width = packed_sides(problem)
    return fma(problem.target, width, row_bytes=bytes_of_row(problem))


def packed_space(problem: Problem) -> Space:
    """Return the legal tiles of a product with weights in blocks."""
    rows, blocks, width = packed_sides(problem)
    return tile_space(rows, blocks, problem.target, width)


def packed_cost(problem: Problem, tile: Tile) -> float:
    """Return the predicted cycles of a product with weights in blocks of whole vectors."""
    rows, blocks, width = packed_sides(problem)
    depth = problem.in_types[1].shape[1]
    return float(depth * fma(problem.target, width).all_cycles(tile, rows, blocks))


def _by_size(problem: Problem) -> list[SizedKnobs]:
    rows, blocks, _ = packed_sides(problem)
    return tiles_by_rows(_kernel(problem), rows, blocks)


@register_strategy(
    "nn.contrib_dense_pack", name="dense_pack.tile", default=_default, space=packed_space,
    cost=packed_cost, by_size=_by_size,
)  # fmt: skip
def schedule_dense_pack(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, tile: Tile
) -> te.Schedule:
    """Rows of data by blocks of units; each step of k multiplies a row's value by a vector."""
    target = problem.target
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs, keep=[dense])
    blocks, depth, lanes = shape_of(dense.op.input_tensors[1])
    rows = shape_of(output)[0]
    accumulator = sums_in_registers(schedule, output, dense)
    stage = schedule[output]
    n_outer, m_outer = matrix_tiles(stage, tile, lanes)
    inner = schedule[in_parts(schedule, accumulator, lanes, PART if rows == 1 else TILE_PART)]
    schedule[accumulator].compute_at(stage, m_outer)
    size = blocks * lanes * depth
    if worth_sharing(rows * size, target, 4 * size):
        stage.parallel(n_outer)
    *part, m, n = inner.op.axis
    (k,) = inner.op.reduce_axis
    n_block, n_lane = inner.split(n, factor=lanes)
    split = split_steps(inner, k, tile, target)
    register_tile(inner, [*part, split.asking], [split.unrolled, m, n_block], n_lane)
    if rows > 1 and prefetch_steps(lanes, target):  # else asking takes longer than waiting
        step = part[0] * extent_of(k) + k if part else k
        at = PanelProgress(te.floordiv(m, tile.rows), -(-rows // tile.rows), step, depth)
        for vector in range(tile.vectors):
            block = te.floordiv(n, lanes) + tile.vectors + vector
            position = partial(_line, block)
            prefetch_next(inner, dense.op.input_tensors[1], split, at, position)
    return schedule


def _line(block: PrimExpr, k: PrimExpr) -> tuple[Any, ...]:
    return block, k, 0
