"""Lane-indexed FMA over neighbouring rows: a tile has so many that a k of them fills vectors.

As `lane_fma`, but a lane is a row: with NEON two vectors hold a k of eight rows (`lane_rows`), and
groups of four k would take a vector for each row.  That leaves registers for eight rows by three
vectors of weights, 109 instructions for 96 multiply-adds, or for two vectors and more steps at
once, 147 for 128.

    rows  (M/8, K, 8)      weights  (N/12, K, 12)      result  (M, N)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.generic import (
    reading_of,
)
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.cpu.schedules.transpose import schedule_transposed
from slipway.backends.cpu.tile import LANE_BLOCKS, lane_rows, vector_registers
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target

_PAIR = 2  # k whose weights one instruction loads


@dataclass(frozen=True)
class PairKnobs(Knobs):
    """The `pairs` of k in a step, where little is done with the sums; else one."""

    pairs: int


def _default(problem: Problem) -> PairKnobs:
    _, depth, block = problem.in_types[1].shape
    target = problem.target
    lanes = vector_lanes(target, problem.in_types[0].dtype)
    products = _PAIR * lane_rows(target) * (block // lanes)
    most = max(1, target.core.costs.lane_row_products // products)
    return PairKnobs(gcd(1 << (most.bit_length() - 1), depth // _PAIR))


def _space(problem: Problem) -> Space:
    pairs = problem.in_types[1].shape[1] // _PAIR
    return {"pairs": [n for n in (1, 2, 3, 4, 6, 8) if pairs % n == 0]}


def _cost(problem: Problem, knobs: PairKnobs) -> float:
    """Predict the steps of all tiles, by the instructions of one."""
    blocks, depth, block = problem.in_types[1].shape
    (out,), target = problem.out_types, problem.target
    lanes, rows = vector_lanes(target, out.dtype), lane_rows(target)
    vectors = block // lanes
    step = rows * vectors + rows / lanes + vectors / 2 + 1 / knobs.pairs
    units = max(1, target.core.fma_bits // max(32, target.vector_bits))
    return float(out.shape[0] // rows * blocks * depth * step / units)


def _compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: PairKnobs) -> list[te.Tensor]:
    data, weight = inputs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    rows, depth = shape_of(data)
    block, tile = shape_of(weight)[-1], lane_rows(problem.target)
    transposed = te.compute(
        (rows // tile, depth, tile), lambda p, k, r: data(p * tile + r, k), name="rows", tag="rows"
    )
    k = te.reduce_axis((0, depth), name="k")

    def element(m: PrimExpr, n: PrimExpr) -> Any:
        row = transposed(te.floordiv(m, tile), k, te.floormod(m, tile))
        return te.sum(row * weight(te.floordiv(n, block), k, te.floormod(n, block)), axis=[k])

    return [te.compute(out.shape, element, name="T_dense_rows", tag="dense_rows")]


def _applies(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    """Whole tiles of float32, weights in blocks of two or three vectors."""
    data, weight = in_types
    assert isinstance(data, TensorType)
    assert isinstance(weight, TensorType)
    _, depth, block = weight.shape
    return (
        target.has_lane_fma
        and data.dtype == "float32"
        and vector_registers(target) >= 32
        and data.shape[0] % lane_rows(target) == 0
        and block / vector_lanes(target, data.dtype) in LANE_BLOCKS
        and depth % _PAIR == 0
    )


@register_strategy(
    "nn.contrib_dense_pack", name="dense_pack.lane_fma_rows", compute=_compute, applies=_applies,
    priority=25, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_lane_fma_rows(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, knobs: PairKnobs
) -> te.Schedule:
    """A tile's rows by a block of units, two k at a time."""
    target = problem.target
    schedule, output = new_schedule(outs)
    transposed, weight = dense.op.input_tensors
    inline_injective(schedule, outs, keep=[dense, transposed])
    blocks, depth, block = shape_of(weight)
    lanes = vector_lanes(target, output.dtype)
    sums = sums_in_registers(schedule, output, dense)
    stage: Any = schedule[output]
    m, n = stage.op.axis
    m_outer, m_inner = stage.split(m, factor=lane_rows(target))
    n_outer, n_block = stage.split(n, factor=block)
    n_vector, n_lane = stage.split(n_block, factor=lanes)
    register_tile(stage, [n_outer, m_outer], [m_inner, n_vector], n_lane)
    size = blocks * block * depth
    if worth_sharing(extent_of(m) * size, target, 4 * size):
        stage.parallel(n_outer)

    inner: Any = schedule[sums]
    inner.compute_at(stage, m_outer)
    m, n = inner.op.axis
    (k,) = inner.op.reduce_axis
    vector, lane = inner.split(n, factor=lanes)
    k_outer, k_inner = inner.split(k, factor=_PAIR)
    pairs = knobs.pairs if _short_epilogue(schedule, output, target) else 1
    k_outer, k_more = inner.split(k_outer, factor=pairs)
    register_tile(inner, [k_outer], [k_more, k_inner, vector, m], lane)
    held: Any = schedule[schedule.cache_read(transposed, "local", [sums])]
    held.compute_at(inner, k_more)
    _, step, row = held.op.axis
    group, row = held.split(row, factor=lanes)
    held.unroll(step)
    held.unroll(group)
    held.vectorize(row)
    if not schedule_transposed(schedule, transposed, target, lanes):
        schedule[transposed].vectorize(transposed.op.axis[-1])
    return schedule


def _short_epilogue(schedule: te.Schedule, output: te.Tensor, target: Target) -> bool:
    """Return whether little is done with the sums of `output`.

    LLVM holds the constants of functions in registers all the time, which more steps at once would
    need.
    """
    return reading_of(schedule, output, target).size <= target.core.costs.epilogue_nodes
