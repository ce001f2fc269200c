"""Rows shorter than a vector: vectors as wide as they fit, where fused rows would be gathers.

    T[a, b, r] = A[b, a, r]    # rows of 13
        ->  for a, b: vectorized r in 0..8: ...; vectorized r in 5..13: ...

Rows that lie after one another on both sides are one long row: fused, whole vectors copy them.
Where they do not, each lane of such a vector would find its own place, with divisions, and be
loaded alone; what is read far across the row takes no vectors at all.  What is computed has a say:
a function of few lanes takes as long as one of many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.arith.slope import slope
from slipway.backends.cpu.knobs import widest_lanes
from slipway.backends.cpu.schedules.load_offset import LoadOffset, row_axis
from slipway.backends.stages import extent_of
from slipway.codegen.math.table import constants_of
from slipway.ir import ops
from slipway.ir.expr import Call, PrimExpr, ProducerLoad, Select, Var
from slipway.ir.visit import children, substitute, walk
from slipway.relay.dims import is_open, usual

if TYPE_CHECKING:
    from slipway.target import Target

_MOST_NODES = 256  # of an expression, with what is inlined expanded
# Instructions: of a lane that finds its own place and is loaded alone; of a step from row to row.
_ALONE, _STEP = 4, 2
# What lies so many elements apart is loaded with all that lies between, by as many lanes.
_MOST_SPREAD, _FEWEST_SPREAD = 4, 4
_PER_CONSTANT = 2  # of a function: its steps, for each constant that it takes


def short_row_lanes(
    schedule: te.Schedule, tensor: te.Tensor, target: Target, lanes: int, first: int
) -> int:
    """Return the lanes of vectors for the rows of a stage that are shorter than `lanes`.

    A row is made of the axes from `first` on, which are one loop (`generic.fused_neighbours`).
    1 where some operand lies across the row: one element after the other.  0 where rows are no
    shorter, or better fused.
    """
    op = tensor.op
    if op.num_outputs != 1 or len(op.axis) < 2 or not target.is_by_llvm:
        return 0
    extents: list[Any] = [extent_of(axis) for axis in op.axis]
    along = row_axis(extents)
    if any(map(is_open, extents[first:])) or usual(prod(extents)) < 4 * lanes:
        return 0
    row = prod(extents[first:])
    if not 2 <= row < lanes:
        return 0
    nodes = list(_expanded(schedule, op))
    own = [axis.var for axis in op.axis[first:]]
    if len(nodes) > _MOST_NODES or any(_chooses(n, own) for n in nodes):
        return 0
    loads = [n for n in nodes if isinstance(n, ProducerLoad)]
    rows = [_Rows(op, extents, load) for load in loads]
    steps = [one.step(along) for one in rows]
    if None in steps:
        return 0
    alone = sum(not one.is_fused(along, lanes) for one in rows)
    if not alone:
        return 0
    work = 1 + sum(_instructions(n) for n in nodes)
    found = {0: work / lanes + _ALONE * alone, 1: work + _STEP / row}
    narrow = widest_lanes(row, lanes)
    most = _MOST_SPREAD if narrow >= _FEWEST_SPREAD else 1
    if all(step in range(-1, most + 1) for step in steps):
        # Loads, and as many shuffles; one where a vector is reversed.
        spread = sum(2 * step - 2 if step > 0 else 1 for step in steps if step)
        found[narrow] = (-(-row // narrow) * (work + spread) + _STEP) / row
    return min(found, key=found.__getitem__)


def rows_are_one(schedule: te.Schedule, tensor: te.Tensor, lanes: int) -> bool:
    """Return whether all operands of a stage go on from row to row as they do within one."""
    op = tensor.op
    extents: list[Any] = [extent_of(axis) for axis in op.axis]
    loads = [n for n in _expanded(schedule, op) if isinstance(n, ProducerLoad)]
    return all(_Rows(op, extents, n).is_fused(row_axis(extents), lanes) for n in loads)


def _expanded(schedule: te.Schedule, op: te.ComputeOp) -> Iterator[PrimExpr]:
    """The nodes that an element is computed from, of what is inlined too; at most some hundred."""
    stack: list[Any] = list(op.body)
    count = 0
    while stack and count <= _MOST_NODES:
        node = stack.pop()
        made = node.producer.op if isinstance(node, ProducerLoad) else None
        if isinstance(made, te.ComputeOp) and schedule[made].attach_type == "inline":
            values = {
                a.var: i if i.dtype == a.var.dtype else ops.cast(i, a.var.dtype)
                for a, i in zip(made.axis, node.indices, strict=True)
            }
            stack.append(substitute(made.body[node.producer.value_index], values))
            continue
        count += 1
        yield node
        if made is None:
            stack.extend(children(node))


def _chooses(node: PrimExpr, own: Sequence[Var]) -> bool:
    """Return whether a node asks something that the place in the row decides."""
    is_choice = isinstance(node, Call) and node.op == "if_then_else"
    condition = node.args[0] if is_choice else None  # type: ignore[attr-defined]
    return condition is not None and any(n is var for n in walk(condition) for var in own)


def _instructions(node: PrimExpr) -> int:
    """About how many a node takes."""
    if isinstance(node, Call):
        return 1 + _PER_CONSTANT * constants_of(node.op)
    return int(isinstance(node, (ProducerLoad, Select)) or bool(list(children(node))))


class _Rows(LoadOffset):
    """The rows of a result, and how far apart their elements are read."""

    def step(self, axis: int) -> int | None:
        """How far one step along an axis goes; None where that is no constant."""
        found = slope(self.an, self.flat, self.an.var_atom(self.variables[axis]))
        return found.const if found is not None and found.is_const else None

    def is_fused(self, along: int, lanes: int) -> bool:
        """Return whether rows lie after one another until they fill a vector."""
        length, step = 1, self.step(along)
        for axis in range(along, -1, -1):
            found = self.step(axis)
            if self.extents[axis] == 1:
                continue
            if found is None or step is None or found != step * length:
                return False
            length *= usual(self.extents[axis])
            if length >= lanes:
                return True
        return True
