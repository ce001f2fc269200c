"""Largest values of windows where channels are innermost (NCHW16c, NHWC): rows first, in registers.

    tall[h, w] = max over r of x[h * s + r, w]      out[h, w] = max over c of tall[h, w * s + c]

A run of windows shares its columns: of 3 x 3 with stride 1, eight windows take 36 steps in place of
64, and 30 loads in place of 72.  Both are expressions without a first value, so that none is
compared with it, and that the tests for a NaN are few (`codegen.extremes`).  Columns that one
window has alone are not kept apart.  Taps in the padding are left out as in `pool.blocked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import streamed_cycles
from slipway.backends.cpu.schedules.pool.blocked import (
    RunKnobs,
    channel_lanes,
    channels_fill_vectors,
    run_space,
    window_loops,
)
from slipway.backends.cpu.schedules.pool.largest import Along, largest
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import vector_registers
from slipway.backends.stages import inline_injective, shape_of, tagged
from slipway.backends.strategy import Problem, register_strategy
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.pool import PoolAttrs
    from slipway.target import Target


def _by_axis(problem: Problem, inputs: Sequence[te.Tensor], knobs: RunKnobs) -> list[te.Tensor]:
    """The windows without their last axis, then that axis."""
    (data,), (out,), attrs = inputs, problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    count = len(attrs.pool_size)
    first = out.rank - 1 - count
    size, extents = shape_of(data)[first:-1], out.shape[first:-1]
    width = out.rank - 2

    axes = [
        Along.of(attrs, a, extents[a], size[a])
        for a in range(count)
    ]  # fmt: skip

    def rows(*indices: Any) -> Any:
        position = zip(indices[first:width], axes, strict=False)
        taps = list(product(*map(range, attrs.pool_size[:-1])))
        return largest(
            taps, list(position), lambda at: data[(*indices[:first], *at, *indices[width:])]
        )

    tall = te.compute((*out.shape[:width], size[-1], out.shape[-1]), rows, "tall", "pool_rows")

    def columns(*indices: Any) -> Any:
        position, taps = [(indices[width], axes[-1])], [(n,) for n in range(attrs.pool_size[-1])]
        return largest(taps, position, lambda at: tall[(*indices[:width], *at, indices[-1])])

    return [te.compute(out.shape, columns, "pool_max", "pool_max")]


def _applies(attrs: PoolAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Windows that are more than a row or a column, and no larger than is unrolled."""
    *others, last = attrs.pool_size
    taps = prod(others) + last
    fits = prod(others) > 1 and last > 1 and taps <= target.core.costs.run_taps
    return fits and channels_fill_vectors(attrs, in_types, target)


def _default(problem: Problem) -> RunKnobs:
    """As long a run as leaves its columns in registers, and runs of about equal lengths."""
    (out,), attrs = problem.out_types, problem.attrs
    costs = problem.target.core.costs
    columns = int(vector_registers(problem.target) * costs.run_registers)
    most = min(costs.run_windows, (columns - attrs.pool_size[-1]) // attrs.strides[-1] + 1)
    width = out.shape[-2]
    runs = -(-width // max(1, most))
    return RunKnobs(channel_lanes(problem), -(-width // runs))


def _cost(problem: Problem, knobs: RunKnobs) -> float:
    """A maximum for each tap of a column, which several windows share, and of a row."""
    *others, last = problem.attrs.pool_size
    shared = (problem.attrs.strides[-1] * (knobs.run - 1) + last) / knobs.run
    return streamed_cycles(problem, knobs.lanes, (prod(others) - 1) * shared + last - 1)


@register_strategy(
    *(f"nn.max_pool{n}d" for n in (2, 3)), name="pool.columns", priority=12, compute=_by_axis,
    applies=_applies, default=_default, space=run_space, cost=_cost,
)  # fmt: skip
def schedule_columns(
    problem: Problem, outs: Sequence[te.Tensor], pool: te.Tensor, knobs: RunKnobs
) -> te.Schedule:
    """Runs of windows; before each, the columns that it reads."""
    (output,) = {id(t.op): t for t in outs}.values()
    wide = tagged(outs)["pool_max"]
    (tall,) = (t for t in wide.op.input_tensors if t.op.tag == "pool_rows")
    schedule = te.create_schedule([t.op for t in outs])
    *others, last = problem.attrs.pool_size
    shares = last > problem.attrs.strides[-1]
    stages = [tall] if shares else []
    inline_injective(schedule, outs, keep=[*stages, wide])
    stage, steps = schedule[output], prod(others) + last
    runs = window_loops(stage, problem.target, knobs, len(others) + 1, steps, unrolled=True)
    if output.op is not wide.op:
        stages.append(wide)
    for tensor in stages:
        schedule[tensor].set_scope("local")
        inner = schedule[tensor]
        inner.compute_at(stage, runs)
        *around, column, lane = inner.op.axis
        register_tile(inner, around, [column], lane)
    return schedule
