"""Reductions on a core without vectors: the accumulator in a register, the epilogue at its end.

The output's loops stay as they are, in order, so that each output element is written once and in
memory order; that is what lets a planner lay an output over the input it is made from.  Padding is
part of the load, which costs a comparison per element and saves the padded copy in RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.schedules.register_tile import sums_in_registers
from slipway.backends.cpu.tile import step_cost
from slipway.backends.micro.cores import is_microcontroller
from slipway.backends.stages import extent_of, inline_injective, is_injective, producers, shape_of
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay import op_registry
from slipway.relay.types import Type, flatten

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target

_OPS = (
    "nn.conv2d",
    "nn.conv1d",
    "nn.dense",
    "nn.batch_matmul",
    "nn.avg_pool2d",
    "nn.max_pool2d",
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    "nn.adaptive_avg_pool2d",
    "qnn.conv2d_nhwc",
    "qnn.depthwise_conv2d_nhwc",
    "qnn.dense_packed",
    "qnn.avg_pool2d",
)


def _applies(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    return is_microcontroller(target)


@dataclass(frozen=True)
class StepKnobs(Knobs):
    """`unrolled` steps of the innermost loop of a sum: faster, and as many times as long."""

    unrolled: int


def _reduction(problem: Problem) -> te.Operation:
    """Return the operator's own reduction, over inputs of its own."""
    inputs = [
        te.placeholder(t.shape, dtype=t.dtype, name=f"p{number}")
        for number, t in enumerate(t for i in problem.in_types for t in flatten(i))
    ]
    compute = op_registry.get(problem.op).compute_function
    assert compute is not None
    outs = compute(problem.attrs, inputs, problem.out_types)
    return next(op for op in producers(outs) if getattr(op, "reduce_axis", ()))


def _space(problem: Problem) -> Space:
    steps = extent_of(_reduction(problem).reduce_axis[-1])
    return {"unrolled": [n for n in (1, 2, 4, 8, 16) if steps % n == 0]}


def _cost(problem: Problem, knobs: StepKnobs) -> float:
    """Return the cycles of all steps one after the other, and of counting them."""
    sums, core = _reduction(problem), problem.target.core
    steps = prod(shape_of(sums.output(0))) * prod(map(extent_of, sums.reduce_axis))
    counting = core.fma_latency / knobs.unrolled
    return float(steps * (step_cost(1, 1, problem.target, from_l1=True) + counting))


@register_strategy(
    *_OPS, name="micro.direct", priority=20, applies=_applies,
    default=lambda problem: StepKnobs(1), space=_space, cost=_cost,
)  # fmt: skip
def schedule_direct(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: StepKnobs
) -> te.Schedule:
    """One output element at a time: reduce into a register, then the epilogue, then one store."""
    schedule = te.create_schedule([t.op for t in outs])
    reductions = [
        op.output(0)
        for op in producers(outs)
        if isinstance(op, te.ComputeOp) and op.reduce_axis and op.num_outputs == 1
    ]
    outputs = list({id(t.op): t for t in outs}.values())
    inline_injective(schedule, outs, keep=reductions)
    if len(outputs) != 1 or len(reductions) != 1:
        return schedule
    (output,), (reduction,) = outputs, reductions
    if output.op is not reduction.op and not is_injective(output.op):
        return schedule
    accumulator = sums_in_registers(schedule, output, reduction)
    axes = schedule[output].op.axis
    if axes and _reads_one_element(output, accumulator):
        schedule[accumulator].compute_at(schedule[output], axes[-1])
    if knobs.unrolled > 1:
        stage: Any = schedule[accumulator]
        stage.unroll(stage.split(stage.op.reduce_axis[-1], factor=knobs.unrolled)[1])
    return schedule


def _reads_one_element(output: te.Tensor, accumulator: te.Tensor) -> bool:
    """Return whether the epilogue has the reduction's shape, so that attaching repeats no work."""
    return prod(shape_of(output)) == prod(shape_of(accumulator))
