"""Products by lane-indexed FMA: values of a row in one register, multiplied one after the other.

Where an instruction multiplies a vector by one lane of another (``fmla v0.4s, v1.4s, v2.s[3]``), a
step of four k needs one load for each row instead of four, and where the weights of a step are
contiguous, one for each pair of their vectors.  So 6 rows by 4 vectors take 114 instructions for 96
multiply-adds, which loading values one by one makes 156.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.register_tile import (
    matrix_tiles,
    register_tile,
    sums_in_registers,
)
from slipway.backends.cpu.tile import GROUP, Tile, choose_tile, lane_indexed_fma, tile_space
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target


def conv_uses_lane_fma(target: Target, block: int, groups: int, dtype: str) -> bool:
    """Return whether a convolution of channels in blocks of `block` takes lane-indexed FMA."""
    return target.has_lane_fma and groups == 1 and block % GROUP == 0 and dtype == "float32"


def schedule_lane_fma(
    schedule: te.Schedule,
    accumulator: te.Tensor,
    groups: te.Tensor,
    *,
    row: int,
    columns: Sequence[int],
    lanes: int,
) -> None:
    """Order the loops of the sums `accumulator`, whose stage stands where it is computed already.

    `row` and `columns` are the numbers of its axes that count rows of data and columns of weights,
    `lanes` of which fill a vector.  It sums along its last reduced axis innermost, a group at a
    time.  The stage `groups` holds the data, its last axes (rows, that axis); it becomes registers.
    """
    stage: Any = schedule[accumulator]
    axes = stage.op.axis
    *reduced, k = stage.op.reduce_axis
    k_outer, k_inner = stage.split(k, factor=GROUP)
    vector, lane = stage.split(axes[columns[-1]], factor=lanes)
    vectors = [*(axes[c] for c in columns[:-1]), vector]
    # Rows innermost: a vector of weights is used at once for all of them and forgotten.  Two of
    # them are contiguous in a block of several vectors, or for two k in a block of one.
    one_vector = extent_of(axes[columns[-1]]) == lanes
    steps = [*vectors, k_inner] if one_vector else [k_inner, *vectors]
    outer = [axis for number, axis in enumerate(axes) if number not in (row, *columns)]
    register_tile(stage, [*outer, *reduced, k_outer], [*steps, axes[row]], lane)
    load_groups(schedule, groups, stage, k_outer)


def load_groups(
    schedule: te.Schedule, groups: te.Tensor, stage: te.Stage, step: te.IterVar
) -> None:
    """Load a group of each row of a tile in every `step` of `stage`, into registers."""
    copy = schedule[groups]
    copy.set_scope("local")
    copy.compute_at(stage, step)
    *_, row, k = copy.op.axis
    copy.unroll(row)
    copy.vectorize(k)


def _applies(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    data, _ = in_types
    assert isinstance(data, TensorType)
    return target.has_lane_fma and data.dtype == "float32" and data.shape[1] % GROUP == 0


def _sides(problem: Problem) -> tuple[int, int, int]:
    (out,) = problem.out_types
    blocks, _, block = problem.in_types[1].shape
    lanes = min(block, vector_lanes(problem.target, out.dtype))
    return out.shape[0], blocks, block // lanes


def _default(problem: Problem) -> Tile:
    rows, blocks, width = _sides(problem)
    return choose_tile(lane_indexed_fma(problem.target, width), rows, blocks)


def _cost(problem: Problem, tile: Tile) -> float:
    """The instructions of all steps, as many in a cycle as there are units that multiply."""
    rows, blocks, width = _sides(problem)
    depth = problem.in_types[1].shape[1]
    return float(depth * lane_indexed_fma(problem.target, width).all_cycles(tile, rows, blocks))


def _space(problem: Problem) -> Space:
    rows, blocks, width = _sides(problem)
    return tile_space(rows, blocks, problem.target, width)


@register_strategy(
    "nn.contrib_dense_pack", name="dense_pack.lane_fma", applies=_applies, priority=20,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_dense_lane_fma(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, tile: Tile
) -> te.Schedule:
    """Rows of data by blocks of units, four steps of k at once."""
    target = problem.target
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs, keep=[dense])
    blocks, depth, block = shape_of(dense.op.input_tensors[1])
    lanes = min(block, vector_lanes(target, output.dtype))
    rows = shape_of(output)[0]
    accumulator = sums_in_registers(schedule, output, dense)
    stage: Any = schedule[output]
    n_outer, m_outer = matrix_tiles(stage, Tile(tile.rows, tile.vectors * block // lanes), lanes)
    weights = blocks * block * depth
    if worth_sharing(rows * weights, target, 4 * weights):
        stage.parallel(n_outer)

    schedule[accumulator].compute_at(stage, m_outer)
    groups = schedule.cache_read(accumulator.op.input_tensors[0], "local", [accumulator])
    schedule_lane_fma(schedule, accumulator, groups, row=0, columns=[1], lanes=lanes)
    return schedule
