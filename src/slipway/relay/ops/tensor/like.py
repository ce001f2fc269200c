"""Operators that take a shape, a size or a dtype from another tensor, or tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.relay.dims import is_open
from slipway.relay.expr import Var
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, known_ints, typed
from slipway.relay.ops.checks import broadcast_shapes, integers, normal_axes
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Axes, ExprLike


def reshape_like(
    data: ExprLike,
    shape_like: ExprLike,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Any:
    """Reshape axes [lhs_begin, lhs_end) of `data` to axes [rhs_begin, rhs_end) of another."""
    (x, own), (_, other) = typed(data), typed(shape_like)
    first, last, _ = slice(lhs_begin, lhs_end).indices(own.rank)
    middle = other.shape[slice(rhs_begin, rhs_end)]
    shape = (*own.shape[:first], *middle, *own.shape[last:])
    if TensorType(shape).size != own.size:
        raise BadArgument("shape_like", f"is {other}: {own} cannot become {shape}")
    return call("reshape", x, shape)


def slice_like(data: ExprLike, shape_like: ExprLike, axes: Axes = None) -> Any:
    """Cut `data` to the extents of `shape_like` along `axes` (none: along its own)."""
    (x, own), (_, other) = typed(data), typed(shape_like)
    chosen = (
        normal_axes(integers("axes", axes), own.rank, "axes") if axes else tuple(range(other.rank))
    )
    if not axes and other.rank > own.rank:
        raise BadArgument("shape_like", f"is {other}, which has more axes than {own}")
    if max(chosen, default=-1) >= other.rank:
        raise BadArgument("shape_like", f"is {other}, which lacks an axis of {own}")
    for axis in chosen:
        if other.shape[axis] > own.shape[axis]:
            raise BadArgument("shape_like", f"is {other}, longer than {own} along axis {axis}")
    ends = [other.shape[a] if a in chosen else d for a, d in enumerate(own.shape)]
    return call("strided_slice", x, [0] * own.rank, ends)


def broadcast_to_like(data: ExprLike, broadcast_type: ExprLike) -> Any:
    """Repeat `data` to the shape of another."""
    return call("broadcast_to", data, typed(broadcast_type)[1].shape)


def collapse_sum_to(data: ExprLike, shape: ExprLike) -> Any:
    """Sum over the axes that broadcasting from `shape` would make: broadcast_to backwards."""
    x, own = typed(data)
    wanted = known_ints("shape", shape)
    if len(wanted) > own.rank or broadcast_shapes(wanted, own.shape, "shape") != own.shape:
        raise BadArgument("shape", f"{wanted} does not broadcast to {own}")
    added = own.rank - len(wanted)
    axes = [*range(added), *(added + i for i, d in enumerate(wanted) if d != own.shape[added + i])]
    return call("reshape", call("sum", x, axes, keepdims=True) if axes else x, wanted)


def collapse_sum_like(data: ExprLike, collapse_type: ExprLike) -> Any:
    """Sum over the axes that broadcasting from another's shape would make."""
    return collapse_sum_to(data, typed(collapse_type)[1].shape)


def cast_like(data: ExprLike, dtype_like: ExprLike) -> Any:
    """Convert to the dtype of another."""
    return call("cast", data, typed(dtype_like)[1].dtype)


def shape_of(data: ExprLike, dtype: str = "int32") -> Any:
    """Return the shape as a tensor: a constant, or where sizes are open what a run computes."""
    x, own = typed(data)
    if any(map(is_open, own.shape)):
        return call("shape_of", x, dtype)
    return const(np.array(own.shape, dtypes.canonical(dtype)))


def ndarray_size(data: ExprLike, dtype: str = "int32") -> Any:
    """Return the number of elements as a rank-0 tensor; see `shape_of`."""
    x, own = typed(data)
    if any(map(is_open, own.shape)):
        return call("prod", call("shape_of", x, dtype))
    return const(np.array(own.size, dtypes.canonical(dtype)))


def reverse_reshape(data: ExprLike, newshape: ExprLike) -> Any:
    """Reshape where the special values of `newshape` are read from the last axis to the first."""
    x, own = typed(data)
    codes = known_ints("newshape", newshape)
    if -4 in codes:
        raise BadArgument("newshape", f"{codes} has -4, which splits an axis: write the sizes")
    flipped = call("reshape", Var("flipped", TensorType(own.shape[::-1])), codes[::-1])
    return call("reshape", x, flipped.tensor_type.shape[::-1])
