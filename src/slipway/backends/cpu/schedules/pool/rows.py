"""Windows of images whose rows lie in memory (NCHW), reduced by rows first, then by columns.

    tall[h, w] = max over r of x[h * s + r, w]      out[h, w] = max over c of tall[h, w * s + c]

and averages by sums in the same way.

A window of k x k takes 2 k steps in place of k^2, of which only k read at a stride.  `tall` is one
row of a task, with the padding beside it, and stays in the cache.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    RowKnobs,
    copied_elements,
    row_space,
    streamed_cycles,
    vector_lanes,
    widest_lanes,
)
from slipway.backends.cpu.schedules.conv.halo import cut
from slipway.backends.cpu.schedules.pool.largest import Along, largest
from slipway.backends.cpu.schedules.register_tile import vector_loop
from slipway.backends.stages import inline_injective, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.ops.nn.pool import mean_of_windows, sum_dtype
from slipway.relay.ops.nn.windows import pad_stage
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.pool import PoolAttrs
    from slipway.target import Target

_LAYOUTS = ("NCHW", "NCDHW")
_OPERATORS = [f"nn.{kind}_pool{n}d" for kind in ("max", "avg") for n in (2, 3)]


def _by_axis(problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs) -> list[te.Tensor]:
    """The window without its last axis, then that axis."""
    (data,), (out,), attrs = inputs, problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    averages = problem.op.startswith("nn.avg")
    merge, neutral = (operator.add, _zero) if averages else (te.max, te.lowest)
    kind = sum_dtype(data.dtype, prod(attrs.pool_size)) if averages else data.dtype
    count = len(attrs.pool_size)
    size, extents = shape_of(data)[-count:], out.shape[-count:]
    *others, along = (
        Along.of(attrs, a, extents[a], size[a])
        for a in range(count)
    )  # fmt: skip

    def rows(*indices: Any) -> Any:
        taps = list(product(*map(range, attrs.pool_size[:-1])))
        position = list(zip(indices[2:-1], others, strict=True))

        def read(at: Sequence[Any]) -> Any:
            return data[(*indices[:2], *at, indices[-1])].astype(kind)

        return largest(taps, position, read, merge, neutral)

    tall = te.compute((*out.shape[:-1], size[-1]), rows, "tall", "pool_rows")
    taps = [(n,) for n in range(attrs.pool_size[-1])]
    end = along.shift(taps[-1][0])
    beyond = max(0, along.beyond(end, end))
    zeros = [0] * (out.rank - 1)
    fill: Any = neutral(kind)
    padded = pad_stage(tall, [*zeros, along.before], [*zeros, beyond], fill)
    inside = replace(along, before=0, size=along.size + along.before + beyond, after=0)

    def columns(*indices: Any) -> Any:

        def read(at: Sequence[Any]) -> Any:
            return padded[(*indices[:-1], *at)]

        return largest(taps, [(indices[-1], inside)], read, merge, neutral)

    wide = te.compute(out.shape, columns, "pool_wide", "pool_wide")
    return [mean_of_windows(attrs, wide, size, out)] if averages else [wide]


def _zero(dtype: str) -> Any:
    return te.const(0, dtype)


def _applies(attrs: PoolAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Windows that are more than a row or a column, and rows of two results or more.

    A row of less than half a vector is as wide as a window at least: taps in the padding are left
    out otherwise.
    """
    (data,) = in_types
    assert isinstance(data, TensorType)
    lanes = vector_lanes(target, data.dtype)
    *others, last = attrs.pool_size
    results = data.shape[-1] // attrs.strides[-1]
    is_wide = 2 * results >= lanes or (results >= 2 and data.shape[-1] >= last)
    return attrs.layout in _LAYOUTS and lanes > 1 and is_wide and last > 1 and prod(others) > 1


def _default(problem: Problem) -> RowKnobs:
    target, (out,) = problem.target, problem.out_types
    lanes = widest_lanes(usual(out.shape[-1]), vector_lanes(target, out.dtype))
    return RowKnobs(lanes, copied_elements(target))


def _space(problem: Problem) -> Space:
    (out,), (data,) = problem.out_types, problem.in_types
    return row_space(problem, min(out.shape[-1], data.shape[-1]))


def _cost(problem: Problem, knobs: RowKnobs) -> float:
    """A maximum for each tap of a row, whose results serve several rows, and of a column."""
    *others, last = problem.attrs.pool_size
    return streamed_cycles(problem, knobs.lanes, prod(others) * problem.attrs.strides[-1] + last)


@register_strategy(
    *_OPERATORS, name="pool.rows", priority=20, compute=_by_axis, applies=_applies,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_pool_rows(
    problem: Problem, outs: Sequence[te.Tensor], pool: te.Tensor, knobs: RowKnobs
) -> te.Schedule:
    """One row of results after the other, from one row of what its windows' columns give."""
    schedule = te.create_schedule([t.op for t in outs])
    found = tagged(outs)
    tall, wide = found["pool_rows"], found["pool_wide"]
    padding = [t for t in wide.op.input_tensors if "pad" in t.op.tag]
    inline_injective(schedule, outs, keep=[tall, wide, *padding])
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = knobs.lanes
    stage: Any = schedule[output]
    *outer, row, column = stage.op.axis
    block = vector_loop(stage, column, lanes)
    task = stage.fuse(*outer)
    cut(stage, row)
    *others, last = problem.attrs.pool_size
    if usual(prod(shape_of(output)) * (prod(others) + last)) >= knobs.share_from:
        stage.parallel(task)

    if wide.op is not output.op:
        schedule[wide].set_scope("local")
        schedule[wide].compute_at(stage, block)
        schedule[wide].vectorize(wide.op.axis[-1])
    for tensor in padding:
        schedule[tensor].compute_at(stage, row)
        schedule[tensor].vectorize(tensor.op.axis[-1])
    rows: Any = schedule[tall]
    rows.compute_at(stage, row)
    longest = vector_lanes(problem.target, tall.dtype)  # they are longer than those of results
    vector_loop(rows, rows.op.axis[-1], max(lanes, widest_lanes(shape_of(tall)[-1], longest)))
    return schedule
