"""What the two branches of an If give, made alike: of unequal sizes the larger is the room."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.frontends.onnx.values import Counted, Value
from slipway.relay.dims import ANY, is_open
from slipway.relay.expr import Expr
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.types import TensorType

Pair = tuple[Value, Value]


def alike(one: Value, other: Value) -> Pair:
    """Return two values of one type where they differ along one axis only, as they are elsewhere.

    A detector gives no boxes in one branch and those that it found in the other.  Both become
    counted ones with room for the larger.
    """
    types = [t for t in (_type_of(value) for value in (one, other)) if t is not None]
    if len(types) < 2:
        return one, other
    axis = _axis(types[0], types[1], [v.axis for v in (one, other) if isinstance(v, Counted)])
    room = None if axis is None else _larger(*(type_.shape[axis] for type_ in types))
    if axis is None or room is None:
        return one, other
    return _with_room(one, axis, room), _with_room(other, axis, room)


def _type_of(value: Value) -> TensorType | None:
    if isinstance(value, Counted):
        return value.data.tensor_type
    return value.tensor_type if isinstance(value, Expr) else None


def _axis(one: TensorType, other: TensorType, counted: list[int]) -> int | None:
    """Return the axis along which two tensors become counted; None where there is no such one."""
    if one.rank != other.rank or one.dtype != other.dtype or ANY in (*one.shape, *other.shape):
        return None
    axes = {*counted, *(a for a in range(one.rank) if one.shape[a] != other.shape[a])}
    return axes.pop() if len(axes) == 1 else None


def _larger(one: Any, other: Any) -> Any:
    """Return the larger of two sizes; None where that depends on open ones."""
    for large, small in ((one, other), (other, one)):
        with suppress(TypeInferenceError):
            if large >= small:
                return large
    return None


def _with_room(value: Value, axis: int, room: Any) -> Counted:
    data = value.data if isinstance(value, Counted) else value
    type_ = data.tensor_type
    size = type_.shape[axis]
    if isinstance(value, Counted):
        count = value.count
    elif is_open(size):
        count = relay.strided_slice(relay.shape_of(data, "int64"), [axis], [axis + 1])
    else:
        count = const(np.array([size], np.int64))
    if size != room:
        shape = tuple(room - size if a == axis else d for a, d in enumerate(type_.shape))
        data = relay.concatenate([data, relay.zeros(shape, type_.dtype)], axis)
    return Counted(data, count, axis)
