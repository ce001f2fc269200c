"""Joins of many tensors, or of narrow rows: each part is copied to its place, some at a time.

    for row: out[row, 0:3] = p0[row]; out[row, 3:8] = p1[row]; ...       for the first parts
    for row: out[row, 64:66] = p20[row]; ...                             for the next

As any injective operator each element would ask in which part it lies, ten questions for a thousand
parts, or the loop would be cut at each part's end, by a compiler whose time is not linear in that.
The parts of a loop are so few that a code generator may make a function of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from slipway import dtypes, te
from slipway.backends.cpu.knobs import (
    COPY_SPACE,
    RowKnobs,
    copy_knobs,
    streamed_cycles,
    vector_lanes,
)
from slipway.backends.cpu.schedules.generic import schedule_elementwise_stage
from slipway.backends.cpu.schedules.inlined import shape_of, view
from slipway.backends.cpu.schedules.reduction import schedule_opaque
from slipway.backends.stages import producers
from slipway.backends.strategy import Problem, register_strategy
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.relay.open_dims import has_open
from slipway.relay.types import TensorType, Type, flatten
from slipway.transform.graph.split_joins import WIDE

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.relay.ops.tensor.join import JoinAttrs
    from slipway.target import Target

SHORTEST = 4  # elements of a stretch that is copied by itself
TOGETHER = 20  # parts of one loop over rows
UNROLLED = 4  # vectors of a part without a loop


def _is_wide(attrs: JoinAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Many parts, all of sizes that are known."""
    parts = [t for given in in_types for t in flatten(given)]
    return len(parts) > WIDE and not any(map(has_open, parts))


def _is_in_parts(attrs: JoinAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Many parts, or stretches of narrow rows, all of sizes that are known.

    A vector of narrow elements that lies in several stretches asks each of many lanes.
    """
    parts = [t for given in in_types for t in flatten(given)]
    narrow = not any(map(has_open, parts)) and _joins_narrow_rows(attrs, parts, target)
    return narrow or _is_wide(attrs, in_types, target)


def _joins_narrow_rows(attrs: JoinAttrs, parts: Sequence[TensorType], target: Target) -> bool:
    """Whether rows of bytes or halves are joined, whose vectors would lie in several parts."""
    first, rank = parts[0], parts[0].rank
    if len(parts) < 2 or dtypes.bits_of(first.dtype) not in (8, 16) or not rank:
        return False
    axis = attrs.axis % rank
    if prod(first.shape[:axis]) < 2:
        return False  # each part is copied as one
    lanes, rows = vector_lanes(target, first.dtype), [prod(part.shape[axis:]) for part in parts]
    return min(rows) >= SHORTEST and any(row % lanes for row in rows[:-1])


def _cost(problem: Problem, knobs: RowKnobs) -> float:
    return streamed_cycles(problem, knobs.lanes, 2)


def _join(problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs) -> list[te.Tensor]:
    (out,) = problem.out_types
    rows = prod(out.shape[: problem.attrs.axis % out.rank])

    def statements(ins: list[Buffer], outs: list[Buffer]) -> S.Stmt:
        return S.seq(_loops(ins, outs[0], rows, knobs))

    return [te.extern(out.shape, inputs, statements, f"T_{problem.op}", out.dtype)]


@register_strategy(
    "stack", name="join.parts", applies=_is_wide, compute=_join, default=copy_knobs,
    space=lambda problem: COPY_SPACE, cost=_cost,
)  # fmt: skip
@register_strategy(
    "concatenate", name="join.parts", applies=_is_in_parts, compute=_join, default=copy_knobs,
    space=lambda problem: COPY_SPACE, cost=_cost,
)  # fmt: skip
def schedule_join(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: RowKnobs
) -> te.Schedule:
    """The statements are scheduled already; what they read is computed before."""
    schedule = schedule_opaque(problem.target, outs)
    last = {id(t.op) for t in outs}
    for op in producers(outs):
        computed = isinstance(op, te.ComputeOp) and not op.reduce_axis and id(op) not in last
        if computed and schedule[op.output(0)].attach_type != "inline":
            schedule_elementwise_stage(schedule, op.output(0), problem.target)
    return schedule


def _loops(ins: Sequence[Buffer], out: Buffer, rows: int, knobs: RowKnobs) -> Iterator[S.Stmt]:
    """Yield a loop over the rows for some parts, and for the next, until all are copied."""
    if not rows:
        return
    width = prod(shape_of(out)) // rows
    whole = view(out, (rows * width,))
    offset = 0
    for first in range(0, len(ins), TOGETHER):
        parts = ins[first : first + TOGETHER]
        begin, row = offset, E.Var("row", "int32")
        copies: list[S.Stmt] = []
        for part in parts:
            size = prod(shape_of(part)) // rows
            there = ops.add(ops.mul(row, ops.const(width)), ops.const(offset))
            here = ops.mul(row, ops.const(size))
            source = view(part, (rows * size,))
            share_from = knobs.share_from if rows == 1 else 0
            copies += _copies(source, here, whole, there, size, knobs.lanes, share_from)
            offset += size
        if copies:
            shared = rows > 1 and rows * (offset - begin) >= knobs.share_from
            yield _loop(row, rows, S.seq(copies), S.ForKind.PARALLEL if shared else "serial")


def _copies(
    source: Buffer,
    here: E.PrimExpr,
    out: Buffer,
    there: E.PrimExpr,
    size: int,
    lanes: int,
    share_from: int,
) -> Iterator[S.Stmt]:
    """Yield the copy of `size` elements: whole vectors, and the rest in shorter ones.

    Cores share the vectors where there are `share_from` elements, unless that is 0.
    """
    done = 0
    while done < size:
        steps = (size - done) // lanes
        if not steps:
            lanes //= 2
            continue
        step = E.Var("step", "int32")
        at = ops.add(ops.mul(step, ops.const(lanes)), ops.const(done))
        body = _vector(source, ops.add(here, at), out, ops.add(there, at), lanes)
        kind = S.ForKind.PARALLEL if 0 < share_from <= size else S.ForKind.SERIAL
        if steps <= UNROLLED:
            kind = S.ForKind.UNROLLED
        yield _loop(step, steps, body, kind)
        done += steps * lanes


def _vector(source: Buffer, here: E.PrimExpr, out: Buffer, there: E.PrimExpr, lanes: int) -> S.Stmt:
    lane = E.Var("lane", "int32")
    value = E.BufferLoad(source, (ops.add(here, lane),))
    store = S.BufferStore(out, value, (ops.add(there, lane),))
    return _loop(lane, lanes, store, S.ForKind.VECTORIZED)


def _loop(variable: E.Var, extent: int, body: S.Stmt, kind: str) -> S.Stmt:
    return S.For(variable, ops.const(0, "int32"), ops.const(extent, "int32"), kind, body)
