"""What each stage of a computation is to a schedule: a product to tile, something to inline, ..."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from slipway.ir.expr import Call, IterVar, ProducerLoad, Select, Var
from slipway.ir.node import Node
from slipway.ir.visit import walk
from slipway.te.operation import ComputeOp, Operation, PlaceholderOp, loads_in

FEW_POINTS = 64  # fewer results than these: a long reduction is cut into parts
LONG = 64  # a reduction of at least so many steps is worth cutting
FREE_CALLS = ("likely",)  # calls that cost nothing to compute again


class Role(Enum):
    """What a stage is."""

    INPUT = "input"
    INLINE = "inline"  # so cheap that it is computed where it is read
    PLACED = "placed"  # where it is computed is a choice
    TILED = "tiled"  # a reduction that reads elements again and again
    REDUCED = "reduced"  # a reduction that reads each element once
    PLAIN = "plain"  # an elementwise result
    FOLLOWER = "follower"  # an elementwise stage that is computed in the tiles of a product


@dataclass(frozen=True)
class StageRole:
    """The role of operation number `number`; a tiled one's `follower` is computed in its tiles."""

    number: int
    role: Role
    follower: int | None = None


def roles(ops: tuple[Operation, ...], outputs: tuple[Operation, ...]) -> list[StageRole]:
    """Return the role of each operation of a graph, in its order."""
    numbers = {op: n for n, op in enumerate(ops)}
    readers: dict[Operation, list[Operation]] = {op: [] for op in ops}
    for op in ops:
        for source in dict.fromkeys(t.op for t in op.input_tensors):
            readers[source].append(op)
    plain: dict[Operation, Role] = {}
    for op in ops:
        plain[op] = _role(op, op in outputs, readers[op])
    found = [StageRole(numbers[op], plain[op]) for op in ops]
    taken: set[Operation] = set()
    for op in ops:
        if plain[op] is not Role.TILED or op in outputs:
            continue
        follower = _follower(op, readers, plain)
        if follower is None or follower in taken:
            continue
        taken.add(follower)
        found[numbers[op]] = StageRole(numbers[op], Role.TILED, numbers[follower])
        found[numbers[follower]] = StageRole(numbers[follower], Role.FOLLOWER)
    return found


def can_be_cut(op: ComputeOp) -> bool:
    """Return whether a reduction has so few results that its steps should run in parallel."""
    results = math.prod(extent(a) for a in op.axis)
    return results < FEW_POINTS and math.prod(extent(a) for a in op.reduce_axis) >= LONG


def extent(axis: IterVar) -> int:
    """Return the length of an axis of an operation."""
    assert axis.dom is not None
    return int(axis.dom.extent)  # type: ignore[call-overload, no-any-return]


def _role(op: Operation, is_output: bool, readers: list[Operation]) -> Role:
    if isinstance(op, PlaceholderOp) or not isinstance(op, ComputeOp):
        return Role.INPUT
    if op.reduce_axis:
        return Role.TILED if op.axis and op.num_outputs == 1 and _reuses(op) else Role.REDUCED
    if is_output or op.num_outputs > 1 or not all(isinstance(r, ComputeOp) for r in readers):
        return Role.PLAIN
    cheap = not any(_costs(n) for body in op.body for n in walk(body))
    once = len(readers) <= 1 and not any(r.reduce_axis for r in readers)
    return Role.INLINE if cheap or once else Role.PLACED


def _costs(node: Node) -> bool:
    return isinstance(node, Select) or (isinstance(node, Call) and node.name not in FREE_CALLS)


def _reuses(op: ComputeOp) -> bool:
    """Return whether something that is read does not depend on a data axis."""
    loads = [load for body in op.body for load in loads_in(body)]
    mine = {axis.var for axis in op.axis if extent(axis) > 1}
    return any(mine - {n for i in load.indices for n in walk(i) if isinstance(n, Var)}
               for load in loads)  # fmt: skip


def _follower(
    op: Operation, readers: dict[Operation, list[Operation]], plain: dict[Operation, Role]
) -> Operation | None:
    """Return the stage behind a product, and behind what is inlined there, of the same points."""
    at = op
    while True:
        if len(readers[at]) != 1:
            return None
        reader = readers[at][0]
        if not isinstance(reader, ComputeOp) or not is_elementwise(reader, at):
            return None
        if plain[reader] is Role.INLINE:
            at = reader
            continue
        return reader if plain[reader] is Role.PLAIN else None


def is_elementwise(reader: ComputeOp, source: Operation) -> bool:
    """Return whether each point of `reader` reads the same point of `source`, and no other."""
    if reader.reduce_axis or reader.num_outputs > 1:
        return False
    own = [axis.var for axis in reader.axis]
    lengths = [extent(axis) for axis in reader.axis]
    if lengths != [int(n) for n in source.output_shape(0)]:  # type: ignore[call-overload]
        return False
    loads = [n for n in loads_in(reader.body[0]) if n.producer.op is source]
    return bool(loads) and all(_is_same(load, own) for load in loads)


def _is_same(load: ProducerLoad, axes: list[Var]) -> bool:
    return len(load.indices) == len(axes) and all(
        index is axis for index, axis in zip(load.indices, axes, strict=True)
    )
