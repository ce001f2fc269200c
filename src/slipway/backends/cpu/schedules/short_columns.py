"""Reductions across memory of fewer columns than fill a vector: of several positions at once.

    T[i, c] = the sum of A[i, k, c] over k        # 3 columns
        ->  part[i, j, c] = the sum of A[i, 16 k + j, c] over k        # j and c are 3 vectors of 16
            T[i, c] = the sum of part[i, j, c] over j

What positions have lies behind one another and is read as it lies.
"""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.stages import Loop, extent_of, fuse, shape_of
from slipway.ir.expr import ProducerLoad
from slipway.ir.visit import walk
from slipway.relay.dims import is_open, usual

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 8  # vectors of a step
# Cycles: of a vector of a step; of one position after the other, where rows are so short that the
# processor begins with the next before they are done, and where they are not.
_VECTOR, _SHORT, _WAITING = 2, 1.5, 3
_LONG = 64
_APART = 2  # vectors that are computed while one waits for the one before
_BEGUN = 5  # vectors in the time in which several positions are begun with


def positions_at_once(op: te.ComputeOp, lanes: int) -> int:
    """Return how many positions of a reduction are taken in a step; 0 where it takes but one."""
    reduced, inner = list(op.reduce_axis), _columns(op)
    columns = prod(extent_of(axis) for axis in inner)
    length = prod(extent_of(axis) for axis in reduced)
    if not inner or is_open(columns) or is_open(length) or not 1 < columns < lanes:
        return 0
    first = lanes // gcd(columns, lanes)
    while first * columns > _MOST * lanes:
        first //= 2
    counts = [n for n in (first, 2 * first, 4 * first) if 2 * n <= length and n > 1]

    def cycles(count: int) -> int:
        vectors = max(_APART, -(-count * columns // lanes))
        return _VECTOR * (-(-length // count) * vectors + count + _BEGUN)

    best = min(counts, key=cycles, default=0)
    alone = length * (_SHORT if length < _LONG else _WAITING)
    return best if best and cycles(best) < alone else 0


def _columns(op: te.ComputeOp) -> Sequence[te.IterVar]:
    """Return the axes of the result that lie inside of the reduced ones, which are one run.

    Empty where what is read most does not end with both.
    """
    loads = [
        node
        for body in op.body
        for node in walk(body)
        if isinstance(node, ProducerLoad) and node.indices
    ]
    if not loads:
        return []
    load = max(loads, key=lambda node: usual(prod(shape_of(node.producer))))
    shape = shape_of(load.producer)
    first: Any = op.reduce_axis[0].var
    at = next((n for n, index in enumerate(load.indices) if index is first), None)
    if at is None:
        return []
    count = len(op.reduce_axis)
    inner = list(op.axis[len(op.axis) - (len(shape) - at - count) :])
    run = [*op.reduce_axis, *inner]
    whole = len(run) == len(shape) - at and all(
        index is axis.var and extent_of(axis) == extent
        for axis, index, extent in zip(run, load.indices[at:], shape[at:], strict=True)
    )
    return inner if whole else []


def reduce_short_columns(
    schedule: te.Schedule, tensor: te.Tensor, positions: int, shared: bool
) -> None:
    """Reduce `positions` at a time, in vectors of their columns, and then what these have."""
    op = tensor.op
    results = [op.output(number) for number in range(op.num_outputs)]
    inner = len(_columns(op))
    outer = len(op.axis) - inner
    stage: Any = schedule[tensor]
    row = fuse(stage, Loop.of(op.reduce_axis))
    _, position = stage.split(row.axis, factor=positions, tail="shift")
    made = schedule.rfactor(results[0], position, outer)
    partial = made[0] if isinstance(made, list) else made
    stage = schedule[tensor]
    axes = Loop.of(stage.op.axis)
    around = fuse(stage, axes[:outer]).axis if outer else None
    columns = fuse(stage, axes[outer:]).axis
    stage.reorder(*([around] if around is not None else []), *stage.op.reduce_axis, columns)
    stage.vectorize(columns)
    part: Any = schedule[partial]
    if around is not None:
        if shared:
            stage.parallel(around)
        part.compute_at(stage, around)
    part.set_scope("local")
    steps = [a for a in part.leaf_iter_vars if a.kind == "reduce"]
    own = list(part.op.axis)
    part.reorder(*own[:outer], *steps, *own[outer:])
    part.vectorize(part.fuse(*own[outer:]))
