"""Tensors as the positions and values of their elements (COO): reshaped, and with no empty row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Tuple, TupleWrapper
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.ops.build import call, typed
from slipway.relay.ops.checks import need_integral, need_rank
from slipway.relay.ops.dyn import length_of, needs_sizes, sizes_may_be_tensors
from slipway.relay.ops.tensor.sets import positions_of
from slipway.relay.types import ANY, TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Expr, ExprLike


def _steps(shape: Expr, rank: int) -> list[Any]:
    """Return how many elements one step along each axis goes over, as vectors of one."""
    found = [call("cast", const([1]), "int64")]
    for axis in range(rank - 1, 0, -1):
        extent = call("strided_slice", shape, [axis], [axis + 1])
        found.append(call("multiply", found[-1], extent))
    return found[::-1]


@needs_sizes
def sparse_reshape(sparse_indices: ExprLike, prev_shape: ExprLike, new_shape: ExprLike) -> Any:
    """Return the positions of elements in another shape, and that shape; one -1 is what remains."""
    (positions, kind), (before, old), (after, new) = map(
        typed, (sparse_indices, prev_shape, new_shape)
    )
    need_integral("sparse_indices", kind)
    need_rank("sparse_indices", kind, 2)
    before, after = call("cast", before, "int64"), call("cast", after, "int64")
    one = call("cast", const(1), "int64")
    is_free = call("less", after, call("cast", const(0), "int64"))
    given = call("prod", call("where", is_free, one, after))
    whole = call("prod", before)
    shape = call("where", is_free, call("floor_divide", whole, call("maximum", given, one)), after)
    steps = call("concatenate", _steps(before, length_of("prev_shape", old)), 0)
    flat = call("sum", call("multiply", call("cast", positions, "int64"), steps), (1,))
    columns = []
    for step in _steps(shape, length_of("new_shape", new)):
        columns.append(call("floor_divide", flat, call("maximum", step, one)))
        flat = call("floor_mod", flat, call("maximum", step, one))
    made = call("cast", call("stack", columns, 1), kind.dtype)
    return TupleWrapper(as_expr([made, call("cast", shape, new.dtype)]), 2)


def _filled_any(sparse_indices: TensorType, sparse_values: TensorType) -> Type:
    need_rank("sparse_indices", sparse_indices, 2)
    depth = sparse_indices.shape[1]
    return TupleType((
        TensorType((ANY, depth), sparse_indices.dtype),
        TensorType((ANY,), sparse_values.dtype),
        TensorType((ANY,), "bool"),
    ))  # fmt: skip


@sizes_may_be_tensors(
    "dense_shape",
    tensors=("sparse_indices", "sparse_values", "default_value"),
    result=_filled_any,
    needs_shapes=True,
)
def fill_empty_rows(
    sparse_indices: ExprLike,
    sparse_values: ExprLike,
    dense_shape: ExprLike,
    default_value: ExprLike,
) -> Any:
    """Return what `sparse_fill_empty_rows` does, for a shape that is known."""
    positions, kind = typed(sparse_indices)
    need_rank("sparse_indices", kind, 2)
    if not np.size(np.asarray(dense_shape)):
        raise BadArgument("dense_shape", "is empty; write the extents of the tensor")
    rows = int(np.ravel(np.asarray(dense_shape))[0])
    row = call("cast", call("take", positions, const(0), 1), "int32")
    zeros = call("full", const(0, "int32"), (rows,), "int32")
    ones = call("full", const(1, "int32"), (kind.shape[0],), "int32")
    counts = call("scatter_elements", zeros, row, ones, 0, "add") if kind.shape[0] else zeros
    is_empty = call("equal", counts, const(0, "int32"))
    count = call("sum", call("cast", is_empty, "int32"))
    return filled_rows(positions, sparse_values, is_empty, default_value, count)


def sparse_fill_empty_rows(
    sparse_indices: ExprLike,
    sparse_values: ExprLike,
    dense_shape: ExprLike,
    default_value: ExprLike,
) -> Tuple:
    """Put the default into the first column of each row that has no element.

    Returns the positions, ordered by row, the values, and for each row whether it had none.
    """
    return Tuple(tuple(fill_empty_rows(sparse_indices, sparse_values, dense_shape, default_value)))


def _rows_filled_any(
    sparse_indices: TensorType, sparse_values: TensorType, is_empty: TensorType
) -> Type:
    first, second, _ = _filled_any(sparse_indices, sparse_values).fields  # type: ignore[attr-defined]
    return TupleType((first, second, is_empty))


@sizes_may_be_tensors(
    "count",
    tensors=("sparse_indices", "sparse_values", "is_empty", "default_value"),
    result=_rows_filled_any,
    needs_shapes=True,
)
def filled_rows(
    sparse_indices: ExprLike,
    sparse_values: ExprLike,
    is_empty: ExprLike,
    default_value: ExprLike,
    count: int,
) -> Any:
    """Return what `sparse_fill_empty_rows` does, for `count` rows that are empty."""
    (positions, kind), (values, own) = typed(sparse_indices), typed(sparse_values)
    (empty, rows), fill = typed(is_empty), as_expr(default_value)
    found = positions_of(empty, int(count))  # (count, 1)
    others = call("full", const(0, "int32"), (int(count), kind.shape[1] - 1))
    added = call("cast", call("concatenate", [found, others], 1), kind.dtype)
    every = call("concatenate", [positions, added], 0)
    value = call("reshape", call("cast", fill, own.dtype), (1,))
    data = call("concatenate", [values, call("broadcast_to", value, (int(count),))], 0)
    size = kind.shape[0] + int(count)
    order = call("topk", call("take", every, const(0), 1), size, 0, "indices", True)
    results = [call("take", every, order, 0, mode="fast"),
               call("take", data, order, 0, mode="fast"), empty]  # fmt: skip
    del rows
    return TupleWrapper(as_expr(results), 3)
