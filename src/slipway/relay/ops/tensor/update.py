"""dynamic_update_slice: a region of a tensor replaced, at a position that is known at run time.

It is how a key-value cache gets its next rows.  As a pure operator it copies the data and writes
the region; where the data is a state of the model (`compiler/states.py`), its memory is the
result's, and the kernel writes the region alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder, ops
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call, Function
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpPattern,
    as_expr,
    is_call_of,
    register_op,
)
from slipway.relay.ops.checks import need_dtype, need_integral, normal_axes
from slipway.relay.ops.tensor.loops import nest
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class UpdateSliceAttrs(Attrs):
    """The axes that `begin` has positions of; `in_place`: the result's memory holds the data."""

    axes: tuple[int, ...]
    in_place: bool = False


UPDATE_SLICE = register_op(
    "dynamic_update_slice", "data", "update", "begin", attrs=UpdateSliceAttrs,
    pattern=OpPattern.OPAQUE,
    doc="data with the region that begins at `begin` (run-time positions) replaced by an update.",
)  # fmt: skip


@UPDATE_SLICE.type_relation
def _update_type(
    attrs: UpdateSliceAttrs, data: TensorType, update: TensorType, begin: TensorType
) -> Type:
    need_integral("begin", begin)
    need_dtype("update", update, data.dtype, "the data")
    if update.rank != data.rank:
        raise BadArgument("update", f"must have as many axes as the data, {data}; got {update}")
    for axis, (part, whole) in enumerate(zip(update.shape, data.shape, strict=True)):
        if part > whole:
            raise BadArgument(
                "update", f"is {update}: its axis {axis} is longer than that of {data}"
            )
    axes = normal_axes(attrs.axes, data.rank, "axes")
    if begin.shape != (len(axes),):
        raise BadArgument(
            "begin", f"must have shape ({len(axes)},), a position for each of the axes; got {begin}"
        )
    return data


@UPDATE_SLICE.reference
def _update_reference(attrs: UpdateSliceAttrs, data: Array, update: Array, begin: Array) -> Any:
    out = data.copy()
    index = [slice(0, extent) for extent in update.shape]
    for axis, position in zip(attrs.axes, begin.tolist(), strict=True):
        part, whole = update.shape[axis], data.shape[axis]
        first = min(max(position, 0), whole - part)  # all of the update is inside
        index[axis] = slice(first, first + part)
    out[tuple(index)] = update
    return out


@UPDATE_SLICE.compute
def _update_compute(
    attrs: UpdateSliceAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,) = out_types
    whole, part = ([size_of(d) for d in t.shape] for t in inputs[:2])
    axes = [axis % out.rank for axis in attrs.axes]

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        data, update, begin, result = (ib.buffer_ptr(b) for b in (*ins, *outs))
        if not attrs.in_place:
            with nest(ib, whole) as position:
                result[tuple(position)] = data[tuple(position)]
        first = {}
        for number, axis in enumerate(axes):
            # In int64: a position may be beyond what an int32 holds.
            end = te().max(begin[number].astype("int64"), te().const(0, "int64"))
            limit = ops.as_expr(whole[axis] - part[axis]).astype("int64")
            first[axis] = ib.let("first", te().min(end, limit).astype("int32"))
        with nest(ib, part) as position:
            there = [first[a] + p if a in first else p for a, p in enumerate(position)]
            result[tuple(there)] = update[tuple(position)]
        return ib.get()

    made = te().extern([out.shape], inputs, statements, "T_update_slice", [out.dtype])
    return [made]


def in_place_update(function: Function) -> Function | None:
    """Return a kernel that writes a region of its first parameter as one that writes it alone.

    Its result is to lie in the parameter's memory.  None for any other kernel.
    """
    call = function.body
    if not is_call_of(call, "dynamic_update_slice") or call.args[0] is not function.params[0]:
        return None
    if call.args[1] is function.params[0]:
        return None
    body = UPDATE_SLICE(*call.args, attrs=call.attrs.replace(in_place=True))
    return Function(function.params, body, None, function.attrs)


@UPDATE_SLICE.make
def dynamic_update_slice(
    data: ExprLike, update: ExprLike, begin: ExprLike, axes: Sequence[int] | None = None
) -> Call:
    """Return `data` with a region replaced by `update`.

    `begin` holds the first position on each of `axes` (all of them by default), where it is taken
    so far down or up that the whole update lies inside.  On other axes the region begins at 0.
    """
    whole = as_expr(data)
    chosen = range(whole.tensor_type.rank) if axes is None else axes
    attrs = UpdateSliceAttrs(tuple(int(axis) for axis in chosen))
    return UPDATE_SLICE(whole, update, as_expr(begin), attrs=attrs)


def _rows(rng: np.random.Generator) -> list[Any]:
    data, rows = (rng.standard_normal((2, n, 3)).astype(np.float32) for n in (6, 2))
    return [data, rows, rng.integers(-1, 7, 1)]


UPDATE_SLICE.sample_case(attrs=UpdateSliceAttrs((1,)), make=_rows)
UPDATE_SLICE.sample_case(
    attrs=UpdateSliceAttrs((0, 2)),
    make=lambda rng: [
        rng.integers(-9, 9, (4, 2, 5)).astype(np.int8),
        rng.integers(-9, 9, (1, 2, 3)).astype(np.int8),
        np.array([2, 1], np.int32),
    ],
)
