"""sized: the first entries along an axis, as many as a value of the run says.

    out[.., i, ..] = data[.., i, ..]        for i < count

The axis is an open dimension from there on, with a name and a range like one of an input; the
executor gives it its size when `count` is computed (`runtime/graph/graph_sizes.py`).  That is how
what values decide (how many elements are not zero, how long a sentence is spoken) becomes a shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay.dims import SymbolDim, is_open, told_by
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import normal_axis
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class SizedAttrs(Attrs):
    """The dimension that `axis` becomes, and what errors call a size that is known."""

    size: Any = 0
    axis: int = 0
    name: str = ""


SIZED = register_op(
    "sized", "data", "count", attrs=SizedAttrs, pattern=OpPattern.OPAQUE,
    doc="The first entries along an axis, as many as a value says: the axis is open from there on.",
)  # fmt: skip


@SIZED.type_relation
def _type(attrs: SizedAttrs, data: TensorType, count: TensorType) -> Type:
    if not data.rank:
        raise BadArgument("data", "has no axis")
    axis = normal_axis(attrs.axis, data.rank)
    if count.dtype not in ("int32", "int64") or any(d != 1 for d in count.shape):
        raise BadArgument("count", f"is {count}; it is one integer, of int32 or int64")
    return TensorType((*data.shape[:axis], attrs.size, *data.shape[axis + 1 :]), data.dtype)


@SIZED.reference
def _reference(attrs: SizedAttrs, data: Array, count: Array) -> Any:
    first = np.arange(int(count.reshape(())))
    return np.take(data, first, attrs.axis)


@SIZED.compute
def _compute(attrs: SizedAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, _ = inputs
    (out,) = out_types
    axis = attrs.axis % out.rank
    extent = data.shape[axis]
    reaches = isinstance(extent, int) and _most(attrs.size) <= extent

    def element(*at: Any) -> Any:
        position = at[axis]
        if not reaches:  # a count beyond what there is reads the last entry
            position = ops.maximum(ops.minimum(position, extent - 1), 0)
        return data[(*at[:axis], position, *at[axis + 1 :])]

    return [te().compute(out.shape, element, "T_sized")]


@SIZED.make
def sized(data: ExprLike, count: ExprLike, size: Any, axis: int = 0, name: str = "") -> Call:
    """Return the first `count` entries along `axis`, which has the size `size` from there on.

    `size` is a dimension with a name of its own and an upper end, `relay.Dim("found", 0, 100)`, or
    the number that `count` is known to be, which errors call `name`; a run whose `count` is out of
    the range ends in an error that names both.
    """
    is_named = isinstance(size, SymbolDim) and told_by(size) is size.formula
    if not is_named and not isinstance(size, int | np.integer):
        raise BadArgument("size", f"is {size}: it is a relay.Dim with a name and an upper end")
    if _most(size) is None:
        raise BadArgument(
            "size", f"is {size}, which nothing bounds: give it an upper end, as in "
            f'relay.Dim("{size}", {size.low}, 512)'
        )  # fmt: skip
    room = as_expr(data).tensor_type.shape[normal_axis(axis, as_expr(data).tensor_type.rank)]
    if _most(room) is None or _most(size) > _most(room):
        raise BadArgument("size", f"is up to {_most(size)}, and the axis {axis} of the data {room}")
    return SIZED(data, count, attrs=SizedAttrs(size, axis, "" if is_named else name))


def _most(extent: Any) -> Any:
    """Return the largest that an extent can be, None where nothing bounds it."""
    return extent.high if isinstance(extent, SymbolDim) else None if is_open(extent) else extent


def _case(shape: tuple[int, ...], size: int, axis: int, dtype: str) -> None:
    def arrays(rng: np.random.Generator) -> list[Any]:
        return [rng.standard_normal(shape).astype("float32"), np.array([size], dtype)]

    SIZED.sample_case(
        shape, (1,), attrs=SizedAttrs(size, axis), dtypes=("float32", dtype),
        make=arrays,
    )  # fmt: skip


_case((7,), 3, 0, "int32")
_case((2, 5, 3), 4, 1, "int64")
