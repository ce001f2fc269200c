"""Reductions on a core without vectors: the accumulator in a register, the epilogue at its end.

The output's loops stay as they are, in order, so that each output element is written once and in
memory order; that is what lets a planner lay an output over the input it is made from.  Padding is
part of the load, which costs a comparison per element and saves the padded copy in RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.schedules.generic import (
    inline_injective,
    is_injective,
    producers,
    shape_of,
)
from slipway.backends.micro.cores import is_microcontroller
from slipway.backends.strategy import register_strategy
from slipway.relay.types import Type

if TYPE_CHECKING:
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


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    return is_microcontroller(target)


@register_strategy(*_OPS, name="micro.direct", priority=20, applies=_applies)
def schedule_direct(target: Target, outs: Sequence[te.Tensor], anchor: te.Tensor) -> te.Schedule:
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
    if output.op is reduction.op:
        accumulator = schedule.cache_write(output, "local")
    elif is_injective(output.op):
        accumulator = reduction
        schedule[accumulator].set_scope("local")
    else:
        return schedule
    axes = schedule[output].op.axis
    if axes and _reads_one_element(output, accumulator):
        schedule[accumulator].compute_at(schedule[output], axes[-1])
    return schedule


def _reads_one_element(output: te.Tensor, accumulator: te.Tensor) -> bool:
    """Return whether the epilogue has the reduction's shape, so that attaching repeats no work."""
    return prod(shape_of(output)) == prod(shape_of(accumulator))
