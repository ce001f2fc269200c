"""Images sampled at given positions, channels innermost while that is done.

    packed[n, y, x, c] = data[n, c, y, x]                    square tiles, in registers
    y0, x0, ... and weights of each position                 once, not once for each channel
    mixed[n, p, c] = sum of packed[n, y, x, c] * weight      whole vectors of channels
    out[n, c, p] = mixed[n, p, c]                            square tiles again

As the data lies, each lane of a vector would be loaded on its own, and four times.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    LoopKnobs,
    loop_knobs,
    loop_space,
    streamed_cycles,
    vector_lanes,
)
from slipway.backends.cpu.schedules.generic import schedule_elementwise_stage
from slipway.backends.stages import inline_injective, producers, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.image.sample import mixed, positions
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.image.sample import GridSampleAttrs
    from slipway.target import Target

_MOST_TAPS = 16  # around a position: all are unrolled


def _compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: LoopKnobs) -> list[te.Tensor]:
    """The stages of the module's text."""
    (data, grid), (out,), attrs = inputs, problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    batch, channels, *size = shape_of(data)
    packed = te.compute(
        (batch, *size, channels),
        lambda *i: data(i[0], i[-1], *i[1:-1]),
        name="packed",
        tag="sampled_packed",
    )
    taps = positions(attrs, size, grid, out.dtype)

    def element(*i: Any) -> Any:
        return mixed(taps, i[:-1], lambda at: packed(i[0], *at, i[-1]), out.dtype)

    shape = (batch, *out.shape[2:], channels)
    joined = te.compute(shape, element, name="mixed", tag="sampled_mixed")
    return [
        te.compute(
            out.shape, lambda *i: joined(i[0], *i[2:], i[1]), name="grid_sample", tag="injective"
        )
    ]


def _applies(attrs: GridSampleAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """A vector of channels or more: fewer are not brought to the last axis in square tiles."""
    data, grid = in_types
    assert isinstance(data, TensorType)
    assert isinstance(grid, TensorType)
    width = {"nearest": 1, "bilinear": 2, "bicubic": 4}[attrs.method]
    fits = width ** (data.rank - 2) <= _MOST_TAPS and prod(grid.shape) > 0
    lanes = vector_lanes(target, data.dtype)
    plain = (data.dtype, grid.dtype) == ("float32", "float32")
    return plain and fits and 1 < lanes <= data.shape[1] and prod(data.shape) > 0


def _default(problem: Problem) -> LoopKnobs:
    return loop_knobs(problem.target)


def _space(problem: Problem) -> Space:
    return loop_space(problem)


def _cost(problem: Problem, knobs: LoopKnobs) -> float:
    """Two transpositions, and a load and a product for each tap."""
    width = {"nearest": 1, "bilinear": 2, "bicubic": 4}[problem.attrs.method]
    lanes = vector_lanes(problem.target, "float32")
    return streamed_cycles(problem, lanes, 2 + 2 * width ** (problem.in_types[0].rank - 2))


@register_strategy(
    "image.grid_sample", name="sample.channels", compute=_compute, applies=_applies,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_sampled(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: LoopKnobs
) -> te.Schedule:
    """Each stage in whole vectors."""
    schedule = te.create_schedule([t.op for t in outs])
    kept = [op.output(0) for op in producers(outs) if "sampled" in op.tag]
    inline_injective(schedule, outs, keep=kept)
    outputs = {id(t.op): t for t in outs}.values()
    for tensor in (*kept, *outputs):
        schedule_elementwise_stage(schedule, tensor, problem.target, knobs)
    return schedule
