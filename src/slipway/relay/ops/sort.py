"""topk and argsort, by rank counting: the rank of an element is the number that come before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay.expr import Call, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_number, normal_axis
from slipway.relay.ops.tensors import te
from slipway.relay.types import TensorType, TupleType, Type


@node
class TopKAttrs(Attrs):
    """The first `k` along `axis` in falling (or rising) order; `k` 0 sorts all."""

    k: int = 0
    axis: int = -1
    is_ascend: bool = False
    dtype: str = "int64"


TOPK = register_op(
    "topk", "data", attrs=TopKAttrs, pattern=OpPattern.OPAQUE,
    doc="The k greatest (or least) along an axis and their positions; equal ones in order.",
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


@TOPK.compute
def _topk_compute(attrs: TopKAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    values, positions = out_types
    shape = [int(d) for d in x.shape]
    axis = attrs.axis % len(shape)
    other = te().reduce_axis((0, shape[axis]), name="other")

    def before(*i: Any) -> Any:
        mine, theirs = x(*i), x(*i[:axis], other, *i[axis + 1 :])
        better = theirs < mine if attrs.is_ascend else theirs > mine
        tied = te().all(ops.equal(theirs, mine), other < i[axis])
        return te().sum(te().select(te().any(better, tied), 1, 0), axis=[other])

    rank = te().compute(shape, before, name="rank", tag="comm_reduce")
    place = te().reduce_axis((0, shape[axis]), name="place")

    def find(*i: Any) -> Any:
        hit = ops.equal(rank(*i[:axis], place, *i[axis + 1 :]), i[axis])
        return te().sum(te().select(hit, place, 0), axis=[place])

    order = te().compute(positions.shape, find, name="order", tag="comm_reduce")
    taken = te().compute(
        values.shape,
        lambda *i: x(*i[:axis], order(*i), *i[axis + 1 :]),
        name="T_topk",
        tag="injective",
    )
    numbers = te().compute(
        positions.shape,
        lambda *i: order(*i).astype(attrs.dtype),
        name="T_topk_indices",
        tag="elemwise",
    )
    return [taken, numbers]


@TOPK.face
def topk(
    data: Any, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
    dtype: str = "int32",
) -> Any:  # fmt: skip
    """Return the `k` greatest along `axis` ("values", "indices" or "both")."""
    both = TupleWrapper(TOPK(data, attrs=TopKAttrs(int(k), int(axis), bool(is_ascend), dtype)), 2)
    return {"both": both}.get(ret_type) or both[0 if ret_type == "values" else 1]


TOPK.sample_case((3, 6), attrs=TopKAttrs(2))
TOPK.sample_case((4, 3), attrs=TopKAttrs(3, 0, True), dtypes=("int32",), low=0, high=2)


def argsort(
    data: Any, valid_count: Any = None, axis: int = -1, is_ascend: bool = True, dtype: str = "int32"
) -> Call:
    """Return the positions that sort `data` along `axis`."""
    return topk(data, 0, axis, "indices", is_ascend, dtype)  # type: ignore[no-any-return]


def sort(data: Any, axis: int = -1, is_ascend: bool = True) -> Call:
    """Return `data` sorted along `axis`."""
    return topk(data, 0, axis, "values", is_ascend)  # type: ignore[no-any-return]
