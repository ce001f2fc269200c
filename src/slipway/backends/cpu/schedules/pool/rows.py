"""Largest values of windows in images whose rows lie in memory (NCHW): rows first, then columns.

    tall[h, w] = max over r of x[h * s + r, w]      out[h, w] = max over c of tall[h, w * s + c]

A window of k x k takes 2 k steps in place of k^2, of which only k read at a stride.  `tall` is one
row of a task, with the padding beside it, and stays in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    RowKnobs,
    row_space,
    streamed_cycles,
    vector_lanes,
)
from slipway.backends.cpu.schedules.register_tile import (
    register_tile,
    sums_in_registers,
    vector_loop,
)
from slipway.backends.stages import extent_of, inline_injective, producers, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay import op_registry
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.pool import PoolAttrs
    from slipway.target import Target

_LAYOUTS = {"NCHW": "nn.max_pool2d", "NCDHW": "nn.max_pool3d"}


def _in_turn(problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs) -> list[te.Tensor]:
    """The window without its last axis, then that axis."""
    (data,), (out,), attrs = inputs, problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    compute = op_registry.get(_LAYOUTS[attrs.layout]).compute_function
    assert compute is not None
    count = len(attrs.pool_size)

    def only(kept: Sequence[bool]) -> Any:
        """The attributes, with a window of one along the other axes."""
        fields = {
            name: tuple(
                v if keep else 1 for v, keep in zip(getattr(attrs, name), kept, strict=True)
            )
            for name in ("pool_size", "strides", "dilation")
        }
        padding = zip(attrs.padding, (*kept, *kept), strict=True)
        return attrs.replace(padding=tuple(v if keep else 0 for v, keep in padding), **fields)

    along = [a == count - 1 for a in range(count)]
    shape = (*out.shape[:-1], shape_of(data)[-1])
    (tall,) = compute(only([not a for a in along]), [data], [TensorType(shape, out.dtype)])
    return list(compute(only(along), [tall], [out]))


def _applies(attrs: PoolAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Rows of a vector or more, and windows that are more than a row or a column."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    lanes = vector_lanes(target, data.dtype)
    *others, last = attrs.pool_size
    wide = data.shape[-1] // attrs.strides[-1] >= lanes > 1
    return attrs.layout in _LAYOUTS and wide and last > 1 and prod(others) > 1


def _default(problem: Problem) -> RowKnobs:
    target = problem.target
    return RowKnobs(
        vector_lanes(target, problem.out_types[0].dtype), target.core.costs.share_elements
    )


def _space(problem: Problem) -> Space:
    (out,), (data,) = problem.out_types, problem.in_types
    return row_space(problem, min(out.shape[-1], data.shape[-1]))


def _cost(problem: Problem, knobs: RowKnobs) -> float:
    """A maximum for each tap of a row, whose results serve several rows, and of a column."""
    *others, last = problem.attrs.pool_size
    return streamed_cycles(problem, knobs.lanes, prod(others) * problem.attrs.strides[-1] + last)


@register_strategy(
    *_LAYOUTS.values(), name="pool.rows", priority=20, compute=_in_turn, applies=_applies,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_pool_rows(
    problem: Problem, outs: Sequence[te.Tensor], pool: te.Tensor, knobs: RowKnobs
) -> te.Schedule:
    """One row of results after the other, from one row of largest values."""
    schedule = te.create_schedule([t.op for t in outs])
    tall, wide = (op.output(0) for op in producers(outs) if op.tag == "pool_max")
    padding = [t for t in wide.op.input_tensors if "pad" in t.op.tag]
    inline_injective(schedule, outs, keep=[tall, wide, *padding])
    (output,) = {id(t.op): t for t in outs}.values()
    largest = sums_in_registers(schedule, output, wide)
    lanes = knobs.lanes
    stage: Any = schedule[output]
    *outer, row, column = stage.op.axis
    block = vector_loop(stage, column, lanes)
    task = stage.fuse(*outer)
    taps = [extent_of(axis) for t in (tall, largest) for axis in t.op.reduce_axis]
    if prod(shape_of(output)) * sum(taps) >= knobs.share_from:
        stage.parallel(task)

    _in_registers(schedule, largest, stage, block)
    for tensor in padding:
        schedule[tensor].compute_at(stage, row)
        schedule[tensor].vectorize(tensor.op.axis[-1])
    largest = schedule.cache_write(tall, "local")
    rows: Any = schedule[tall]
    rows.compute_at(stage, row)
    block = vector_loop(rows, rows.op.axis[-1], lanes)
    _in_registers(schedule, largest, rows, block)
    return schedule


def _in_registers(
    schedule: te.Schedule, largest: te.Tensor, stage: te.Stage, block: te.IterVar
) -> None:
    """Compute the largest values of a block of `stage` there, tap after tap."""
    registers: Any = schedule[largest]
    registers.compute_at(stage, block)
    *_, lane = registers.op.axis
    taps = registers.op.reduce_axis
    register_tile(registers, [], taps, lane)
