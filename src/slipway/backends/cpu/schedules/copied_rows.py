"""Rows made of stretches of other rows: repeated, or padded with what lies near their ends.

Inside such a stretch a vector is one load.  A lane that looks for its own place, as the schedule of
any injective operator has it, makes every load a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    LoopKnobs,
    group_lanes,
    loop_cost,
    loop_knobs,
    loop_space,
    vector_lanes,
)
from slipway.backends.cpu.schedules.generic import parallel_outer, schedule_injective, vectorize
from slipway.backends.cpu.schedules.joined_parts import SHORTEST
from slipway.backends.stages import Loop, fuse, inline_injective, shape_of, split
from slipway.backends.strategy import Problem, register_strategy
from slipway.relay.dims import is_open, largest_divisor, usual
from slipway.relay.ops.nn.pad import pad_compute, source_position
from slipway.relay.ops.tensor.repeat import tile_shapes
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.nn.pad import PadAttrs
    from slipway.relay.ops.tensor.repeat import TileAttrs
    from slipway.target import Target


def _default(problem: Problem) -> LoopKnobs:
    return loop_knobs(problem.target)


def _is_cut(attrs: PadAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Rows that grow, of any number of elements or of several: the lanes ask for nothing.

    A row has the axes behind the last one that grows too, if these are less than a vector.
    """
    (data,) = in_types
    assert isinstance(data, TensorType)
    axis, lanes = _last_padded(attrs), vector_lanes(target, data.dtype)
    if axis < 0 or min(attrs.pad_width[axis]) < 0 or lanes < 2:
        return False
    length, *inner = data.shape[axis:]
    if is_open(length):
        return not inner
    if any(map(is_open, inner)) or prod(inner) >= lanes:
        return False
    return length * prod(inner) >= SHORTEST


def _last_padded(attrs: PadAttrs) -> int:
    """Return the innermost axis that is padded; -1 where none is."""
    return max((a for a, widths in enumerate(attrs.pad_width) if any(widths)), default=-1)


def _pad_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: LoopKnobs
) -> list[te.Tensor]:
    """The padded tensor; what is inside a row is read without a detour."""
    (x,), attrs = inputs, problem.attrs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    shape, axis = shape_of(x), _last_padded(attrs)
    low = attrs.pad_width[axis][0]
    if attrs.pad_mode == "constant":
        return pad_compute(attrs, [x], [out])

    def element(*indices: PrimExpr) -> Any:
        source = [
            source_position(i, widths, extent, attrs.pad_mode) if any(widths) else i
            for i, extent, widths in zip(indices, shape, attrs.pad_width, strict=True)
        ]
        last = indices[axis]
        inside = te.all(last >= low, last < low + shape[axis])
        there = [*source[:axis], last - low, *source[axis + 1 :]]
        return te.if_then_else(inside, x(*there), x(*source))

    return [te.compute(out.shape, element, name="T_pad", tag="injective,pad")]


@register_strategy(
    "nn.pad", name="pad.rows", compute=_pad_compute, applies=_is_cut,
    default=_default, space=loop_space, cost=loop_cost,
)  # fmt: skip
def schedule_padded_rows(
    problem: Problem, outs: Sequence[te.Tensor], padded: te.Tensor, knobs: LoopKnobs
) -> te.Schedule:
    """A loop over the vectors of a row, cut where the padding begins and ends."""
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = group_lanes(problem.target, output.dtype, knobs.group)
    if shape_of(output) != shape_of(padded) or lanes < 2:
        return schedule_injective(problem.target, outs, knobs)
    schedule = te.create_schedule(output.op)
    inline_injective(schedule, outs)
    stage: Any = schedule[output]
    loops, axis = Loop.of(stage.op.axis), _last_padded(problem.attrs)
    loops, row = loops[:axis], fuse(stage, loops[axis:])
    stage.vectorize(row.axis)  # an open one is cut when its loop becomes vectors
    if not is_open(row.extent):
        stage.pragma(row.axis, "loop_partition_hint", True)
    total = 2 * usual(prod(shape_of(output)))  # most rows begin and end within a vector
    if loops and total >= knobs.share_from:
        parallel_outer(stage, loops, total, knobs.share_from // 4)
    return schedule


def _period(attrs: TileAttrs, shape: Sequence[int]) -> tuple[int, int]:
    """Return the innermost axis that is repeated, and the elements of one repetition along it."""
    full, reps = tile_shapes(attrs, shape)
    axis = max((a for a, count in enumerate(reps) if count > 1), default=-1)
    return axis, prod(full[axis:])


def _is_repeated(attrs: TileAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """What is repeated is a vector at least."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if any(map(is_open, data.shape)):
        return False
    axis, period = _period(attrs, data.shape)
    return axis >= 0 and period >= vector_lanes(target, data.dtype) > 1


@register_strategy(
    "tile", name="tile.rows", applies=_is_repeated,
    default=_default, space=loop_space, cost=loop_cost,
)  # fmt: skip
def schedule_repeated_rows(
    problem: Problem, outs: Sequence[te.Tensor], repeated: te.Tensor, knobs: LoopKnobs
) -> te.Schedule:
    """A loop over repetitions, around one over the vectors of what is repeated."""
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = group_lanes(problem.target, output.dtype, knobs.group)
    if shape_of(output) != shape_of(repeated) or lanes < 2:
        return schedule_injective(problem.target, outs, knobs)
    data = problem.in_types[0]
    assert isinstance(data, TensorType)
    axis, _ = _period(problem.attrs, data.shape)
    full, _ = tile_shapes(problem.attrs, data.shape)
    schedule = te.create_schedule(output.op)
    inline_injective(schedule, outs)
    stage: Any = schedule[output]
    loops = Loop.of(stage.op.axis)
    repetition, first = split(stage, loops[axis], full[axis])
    inner = fuse(stage, [first, *loops[axis + 1 :]])
    loops = [*loops[:axis], repetition]
    vectorize(stage, loops, inner, lanes)
    total = prod(shape_of(output))
    if total >= knobs.share_from:
        each = knobs.share_from // 4
        step = total // prod(loop.extent for loop in loops)
        last = loops.pop()
        # Tasks are stretches of one repetition: to take indices of several apart would take
        # divisions for each vector.
        factor = largest_divisor(last.extent, max(1, each // step))
        if factor > 1 and prod(loop.extent for loop in loops) * each < total:
            last, _ = split(stage, last, factor)
        parallel_outer(stage, [*loops, last], total, each)
    return schedule
