"""topk and argsort, by a heap of the first k: the one that comes last among them is its root.

An element that comes before the root takes its place.  In the end the roots are taken one by one,
and fill the result from its end.  The heap lies where the result will be.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir import builder, ops
from slipway.ir.node import node
from slipway.relay.dims import is_open, size_of, usual
from slipway.relay.expr import Call, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_number, normal_axis
from slipway.relay.ops.dyn import sizes_may_be_tensors, unknown_along
from slipway.relay.ops.tensor.loops import WORTH_SHARING, nest
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import ExprLike


@node
class TopKAttrs(Attrs):
    """The first `k` along `axis` in falling (or rising) order; `k` 0 sorts all."""

    k: int = 0
    axis: int = -1
    is_ascend: bool = False
    dtype: str = "int64"


TOPK = register_op(
    "topk", "data", attrs=TopKAttrs, pattern=OpPattern.OPAQUE,
    doc="The k largest (or smallest) along an axis and their positions; equal ones in order.",
)  # fmt: skip


@TOPK.type_relation
def _topk_type(attrs: TopKAttrs, data: TensorType) -> Type:
    need_number("data", data)
    axis = normal_axis(attrs.axis, data.rank)
    count = attrs.k or data.shape[axis]
    if not 0 <= count <= data.shape[axis]:
        raise BadArgument("k", f"is {attrs.k}, but axis {axis} has {data.shape[axis]} elements")
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return TupleType((TensorType(shape, data.dtype), TensorType(shape, attrs.dtype)))


@TOPK.reference
def _topk_reference(attrs: TopKAttrs, data: Any) -> Any:
    count = attrs.k or data.shape[attrs.axis]
    if attrs.is_ascend:
        order = np.argsort(data, axis=attrs.axis, kind="stable")
    else:
        flipped = np.argsort(np.flip(data, attrs.axis), axis=attrs.axis, kind="stable")
        order = data.shape[attrs.axis] - 1 - np.flip(flipped, attrs.axis)
    order = order.take(range(count), axis=attrs.axis)
    return np.take_along_axis(data, order, attrs.axis), order.astype(attrs.dtype)


def comes_before(rises: bool, value: PrimExpr, other: PrimExpr) -> Any:
    """Return whether a value comes before another in the result; a NaN is above all numbers."""
    less = value < other if rises else value > other
    if not dtypes.is_float(value.dtype):
        return less
    one, two = (other, value) if rises else (value, other)  # `one` may be the NaN
    return te().any(less, te().all(te().isnan(one), ops.logical_not(te().isnan(two))))


class Heap:
    """Statements on a heap of (value, position) pairs, in rows of two buffers."""

    def __init__(self, ib: Any, rises: bool, values: Any, positions: Any, at: Any) -> None:
        self.ib, self.rises = ib, rises
        self.values, self.positions, self.at = values, positions, at
        self.hole = ib.allocate("int32", (1,), "hole", scope="local")
        self.child = ib.allocate("int32", (1,), "child", scope="local")

    def value(self, position: Any) -> Any:
        """Return the value of a pair."""
        return self.values[self.at(position)]

    def position(self, index: Any) -> Any:
        """Return the position that a pair holds."""
        return self.positions[self.at(index)]

    def put(self, index: Any, value: Any, position: Any) -> None:
        """Write a pair."""
        self.values[self.at(index)] = value
        self.positions[self.at(index)] = position

    def before(self, value: Any, other: Any) -> Any:
        """Return whether a value comes before another in the result."""
        return comes_before(self.rises, value, other)

    def comes_later(self, value: Any, position: Any, other: Any, other_position: Any) -> Any:
        """Return whether a pair follows another in the result: equal values keep their order."""
        tied = te().all(ops.logical_not(self.before(value, other)), position > other_position)
        return te().any(self.before(other, value), tied)

    def sift(self, hole: Any, size: Any, value: Any, position: Any) -> None:
        """Put a pair where the hole `hole` of a heap of `size` is, below all that come later."""
        ib = self.ib
        self.hole[0] = hole
        self.child[0] = 2 * hole + 1
        with ib.while_loop(self.child[0] < size):
            right = ib.let("right", te().min(self.child[0] + 1, size - 1))
            later = self.comes_later(
                self.value(right), self.position(right),
                self.value(self.child[0]), self.position(self.child[0]),
            )  # fmt: skip
            child = ib.let("child", te().select(later, right, self.child[0]))
            above = ib.let("above", self.value(child))
            index = ib.let("index", self.position(child))
            rises = self.comes_later(above, index, value, position)
            with ib.if_scope(rises):
                self.put(self.hole[0], above, index)
                self.hole[0] = child
                self.child[0] = 2 * child + 1
            with ib.else_scope():
                self.child[0] = size
        self.put(self.hole[0], value, position)


@TOPK.compute
def _topk_compute(attrs: TopKAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    values_type, positions_type = out_types
    shape = tuple(size_of(d) for d in inputs[0].shape)
    axis = attrs.axis % len(shape)
    length, count = shape[axis], values_type.shape[axis]
    others = [extent for a, extent in enumerate(shape) if a != axis]

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        x, values, positions = (ib.buffer_ptr(b) for b in (*ins, *outs))
        shared = prod(map(usual, shape)) >= WORTH_SHARING
        if not prod(values_type.shape):
            return ib.get()
        with nest(ib, others, shared) as row:

            def at(index: Any) -> tuple[Any, ...]:
                return (*row[:axis], index, *row[axis:])

            heap = Heap(ib, attrs.is_ascend, values, positions, at)
            with ib.for_range(0, count, "i") as i:
                heap.put(i, x[at(i)], i)
            with ib.for_range(0, count // 2, "i") as i:
                hole = ib.let("parent", count // 2 - 1 - i)
                value = ib.let("value", heap.value(hole))
                heap.sift(hole, count, value, ib.let("position", heap.position(hole)))
            with ib.for_range(count, length, "i") as i:
                value = ib.let("value", x[at(i)])
                with ib.if_scope(heap.before(value, heap.value(0))):
                    heap.sift(0, count, value, i.astype(positions_type.dtype))
            with ib.for_range(0, count - 1, "i") as i:
                end = ib.let("end", count - 1 - i)
                value = ib.let("value", heap.value(end))
                position = ib.let("position", heap.position(end))
                heap.put(end, heap.value(0), heap.position(0))
                heap.sift(0, end, value, position)
        return ib.get()

    made = te().extern(
        [values_type.shape, positions_type.shape], inputs, statements, "T_topk",
        [values_type.dtype, positions_type.dtype],
    )  # fmt: skip
    return list(made)


def _topk_any(data: TensorType, axis: int | None, ret_type: str | None, dtype: str | None) -> Type:
    axis = -1 if axis is None else axis
    values, positions = unknown_along(data, [axis]), unknown_along(data, [axis], dtype or "int32")
    found = {"values": values, "indices": positions}
    return found.get(ret_type or "both", TupleType((values, positions)))


@TOPK.make
@sizes_may_be_tensors("k", result=_topk_any)
def topk(
    data: ExprLike, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
    dtype: str = "int32",
) -> Any:  # fmt: skip
    """Return the `k` largest along `axis` ("values", "indices" or "both")."""
    count = k if is_open(k) else int(k)
    both = TupleWrapper(TOPK(data, attrs=TopKAttrs(count, int(axis), bool(is_ascend), dtype)), 2)
    return {"both": both}.get(ret_type) or both[0 if ret_type == "values" else 1]


TOPK.sample_case((3, 6), attrs=TopKAttrs(2))
TOPK.sample_case((4, 3), attrs=TopKAttrs(3, 0, True), dtypes=("int32",), low=0, high=2)


def argsort(
    data: ExprLike,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: str = "int32",
    valid_count: ExprLike | None = None,
) -> Call:
    """Return the positions that sort `data` along `axis`."""
    if valid_count is not None:
        raise BadArgument(
            "valid_count", "is given, but whole axes are sorted: slice the data first"
        )
    return topk(data, 0, axis, "indices", is_ascend, dtype)  # type: ignore[no-any-return]


def sort(data: ExprLike, axis: int = -1, is_ascend: bool = True) -> Call:
    """Return `data` sorted along `axis`."""
    return topk(data, 0, axis, "values", is_ascend)  # type: ignore[no-any-return]
