"""Pooling.  With channels innermost (NCHW16c, NHWC): a run of windows in registers, taps outside.

Taps in the padding are left out: loops are cut where that changes (`conv.halo`), so that most run
unguarded.  On other layouts: windows outside, a vector of the innermost axis inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from slipway import te
from slipway.backends.cpu.knobs import (
    SumKnobs,
    row_space,
    streamed_cycles,
    sum_cost,
    sum_knobs,
    sum_space,
    vector_lanes,
)
from slipway.backends.cpu.parts import rows_per_part, worth_sharing
from slipway.backends.cpu.schedules.conv.halo import cut
from slipway.backends.cpu.schedules.reduction import schedule_opaque
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.stages import extent_of, inline_injective, producers
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.dims import lower_bound, usual
from slipway.relay.layout import parse_layout
from slipway.relay.ops.nn.pool import pool_compute
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.pool import PoolAttrs
    from slipway.target import Target

_KINDS = ("max", "avg")


@register_strategy(
    *(f"nn.{prefix}{kind}_pool{n}d" for prefix in ("", "global_", "adaptive_") for kind in _KINDS
      for n in (1, 2, 3)),
    name="pool.whole", default=lambda problem: sum_knobs(problem.target), space=sum_space,
    cost=sum_cost,
)  # fmt: skip
def schedule_whole_pool(
    problem: Problem, outs: Sequence[te.Tensor], pool: te.Tensor, knobs: SumKnobs
) -> te.Schedule:
    """One loop nest for the windows, one for their epilogue."""
    return schedule_opaque(problem.target, outs, knobs)


@dataclass(frozen=True)
class RunKnobs(Knobs):
    """`run` windows whose taps are taken together, in vectors of `lanes` channels."""

    lanes: int
    run: int


@dataclass(frozen=True)
class WindowKnobs(RunKnobs):
    """Up to `unrolled` taps of a run are unrolled."""

    unrolled: int


def channel_lanes(problem: Problem) -> int:
    """Return the lanes of a vector of channels."""
    (data,) = problem.in_types
    assert isinstance(data, TensorType)
    return min(vector_lanes(problem.target, data.dtype), data.shape[-1])


def run_space(problem: Problem) -> dict[str, Sequence[int]]:
    """Return the legal runs."""
    (data,), (out,) = problem.in_types, problem.out_types
    channels = data.shape[-1]
    lanes = row_space(problem, channels)["lanes"]
    return {
        "lanes": [n for n in lanes if channels % n == 0] or (channels,),
        "run": range(1, min(16, max(1, lower_bound(out.shape[-2]))) + 1),
    }


def _default(problem: Problem) -> WindowKnobs:
    (out,), costs = problem.out_types, problem.target.core.costs
    assert isinstance(out, TensorType)
    run = min(costs.window_positions, max(1, lower_bound(out.shape[-2])))
    return WindowKnobs(channel_lanes(problem), run, costs.window_products)


def _space(problem: Problem) -> Space:
    return {**run_space(problem), "unrolled": (0, 32, 128, 256)}


def _cost(problem: Problem, knobs: WindowKnobs) -> float:
    """A maximum or sum for each tap."""
    return streamed_cycles(problem, knobs.lanes, prod(problem.attrs.pool_size))


def _compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: WindowKnobs, kind: str
) -> list[te.Tensor]:
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    return pool_compute(problem.attrs, inputs, out, kind == "avg", padded=False)


def channels_fill_vectors(attrs: PoolAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Channels are innermost, after the axes of windows, and as long as vectors."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    channels, count = data.shape[-1], len(attrs.pool_size)
    fits = channels % vector_lanes(target, data.dtype) == 0 or channels in (4, 8, 16)
    *_, last = axes = parse_layout(attrs.layout).axes
    windows = [axis.letter for axis in axes[-1 - count : -1] if not axis.block]
    return fits and last.letter == "C" and windows == list(SPATIAL[count])


def window_loops(
    stage: te.Stage, target: Target, knobs: RunKnobs, count: int, steps: int, unrolled: bool
) -> te.IterVar:
    """Order the loops of a stage over runs of windows; return the loop of runs.

    The last `count` axes before the channels are of windows, each of `steps` steps.
    """
    *outer, channel = stage.op.axis
    elements = usual(prod(extent_of(axis) for axis in stage.op.axis))
    outer, rows, ow = outer[:-count], outer[-count:-1], outer[-1]
    ow_outer, ow_inner = stage.split(ow, factor=knobs.run, tail="shift")
    blocks = []
    lane = channel
    if extent_of(channel) > knobs.lanes:
        block, lane = stage.split(channel, factor=knobs.lanes)
        blocks.append(block)
    inside = []
    if rows:
        planes = usual(prod(extent_of(axis) for axis in outer))
        each = rows_per_part(usual(extent_of(rows[0])), planes, target)
        band, row = stage.split(rows[0], factor=each, tail="shift")
        outer, inside = [*outer, band], [row, *rows[1:]]
    register_tile(stage, [*outer, *inside, ow_outer, *blocks], [ow_inner], lane)
    part = stage.fuse(*outer)
    cut(stage, ow_outer, *(inside if unrolled else []))
    if worth_sharing(elements * steps, target):
        stage.parallel(part)
    return blocks[0] if blocks else ow_outer


def _schedule_windows(
    problem: Problem, outs: Sequence[te.Tensor], pool: te.Tensor, knobs: WindowKnobs
) -> te.Schedule:
    """Runs of windows, each tap for all of them."""
    (output,) = {id(t.op): t for t in outs}.values()
    window = next(op for op in producers(outs) if op.tag in ("pool_max", "pool_sum"))
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs, keep=[window.output(0)])
    sums = sums_in_registers(schedule, output, window.output(0))
    stage = schedule[output]
    taps = prod(extent_of(axis) for axis in window.reduce_axis)
    unrolled = taps * knobs.run <= knobs.unrolled
    count = len(window.reduce_axis)
    runs = window_loops(stage, problem.target, knobs, count, taps, unrolled)

    inner = schedule[sums]
    inner.compute_at(stage, runs)
    *_, ow, lane = inner.op.axis
    steps = inner.op.reduce_axis
    register_tile(inner, [*inner.op.axis[:-2], *steps], [ow], lane)
    cut(inner, *steps)
    if unrolled:
        for step in steps:
            inner.unroll(step)
    return schedule


for _kind in _KINDS:
    register_strategy(
        *(f"nn.{_kind}_pool{n}d" for n in (1, 2, 3)), name="pool.window", priority=11,
        compute=partial(_compute, kind=_kind), applies=channels_fill_vectors,
        default=_default, space=_space, cost=_cost,
    )(_schedule_windows)  # fmt: skip
