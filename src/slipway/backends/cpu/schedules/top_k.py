"""The first few of many rows: each lane of a vector has a row of its own, without a branch.

    for rows.outer, i in range(length):      # a vector of rows
        unrolled j, the last first:
            best[j] = best[j - 1] if new comes before best[j - 1] else
                      new if it comes before best[j] else best[j]

The first k of a row stay in registers, in order, as numbers of 32 bits at least.  A heap takes
fewer steps for an element, most of which are refused at its root; but which are is for nobody to
predict, and one row waits for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.schedules.inlined import shape_of, view
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.schedules.sort_ways import (
    LANES,
    computed_by,
    cost_by,
    extents,
    is_best,
    lane_type,
)
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir import builder, ops
from slipway.relay.ops.tensor.loops import WORTH_SHARING
from slipway.relay.ops.tensor.sort import comes_before
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.relay.ops.tensor.sort import TopKAttrs
    from slipway.target import Target


@dataclass(frozen=True)
class RowsKnobs(Knobs):
    """The rows that are the `lanes` of a vector."""

    lanes: int


def _applies(attrs: TopKAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Vectors of rows, and so few to find that it takes less time than the other ways."""
    return is_best(LANES, attrs, in_types, target)


def _default(problem: Problem) -> RowsKnobs:
    (data,) = problem.in_types
    assert isinstance(data, TensorType)
    return RowsKnobs(vector_lanes(problem.target, lane_type(data.dtype)))


def _space(problem: Problem) -> Space:
    return {"lanes": [_default(problem).lanes]}


def _loops(attrs: TopKAttrs, data: Buffer, outs: Sequence[Buffer], knobs: RowsKnobs) -> Any:
    lanes = knobs.lanes
    around, length, inside = extents(attrs, shape_of(data))
    count = attrs.k or length
    rows = around if inside == 1 else inside
    outer = 1 if inside == 1 else around
    ib = builder.create()
    x = ib.buffer_ptr(view(data, (outer, rows, length) if inside == 1 else (outer, length, rows)))
    results = [
        ib.buffer_ptr(view(b, (outer, rows, count) if inside == 1 else (outer, count, rows)))
        for b in outs
    ]
    wide = lane_type(data.dtype)
    kinds = wide, "int32"
    blocks = -(-rows // lanes)
    kind = "parallel" if around * length * inside >= WORTH_SHARING else "serial"
    with ib.for_range(0, outer * blocks, "block", kind=kind) as block:
        image, first = ops.floordiv(block, blocks), ops.floormod(block, blocks) * lanes
        first = ib.let("first", ops.minimum(first, rows - lanes))
        best = [
            [ib.allocate(k, (lanes,), f"best{j}", scope="local") for j in range(count)]
            for k in kinds
        ]

        def at(index: Any, lane: Any) -> tuple[Any, ...]:
            row = first + lane
            return (image, row, index) if inside == 1 else (image, index, row)

        def take(position: Any, known: int) -> None:
            """Put the elements at `position` in the order of the `known` first ones."""
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                new = ib.let("new", ops.cast(x[at(position, lane)], wide)), position
                before = [
                    ib.let("before", comes_before(attrs.is_ascend, new[0], best[0][j][lane]))
                    for j in range(known)
                ]
                for j in range(min(known, count - 1), -1, -1):
                    for slots, value in zip(best, new, strict=True):
                        moved: Any = value
                        if j:
                            moved = ops.select(before[j - 1], slots[j - 1][lane], moved)
                        if j < known:
                            moved = ops.select(before[j], moved, slots[j][lane])
                        slots[j][lane] = moved

        for position in range(count):
            take(ops.const(position, "int32"), position)
        with ib.for_range(count, length, "i") as i:
            take(i, count)
        for slots, result in zip(best, results, strict=True):
            for j in range(count):
                with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    result[at(j, lane)] = ops.cast(slots[j][lane], result.dtype)
    return ib.get()


register_strategy(
    "topk", name=LANES, compute=computed_by(_loops), applies=_applies,
    default=_default, space=_space, cost=cost_by(LANES),
)(as_they_are(RowsKnobs))  # fmt: skip
