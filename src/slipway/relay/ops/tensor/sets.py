"""Where elements are, and which there are: argwhere and unique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.expr import TupleWrapper
from slipway.relay.op_registry import as_expr, const
from slipway.relay.ops.build import call, typed
from slipway.relay.ops.checks import need_rank
from slipway.relay.ops.dyn import needs_sizes, sizes_may_be_tensors
from slipway.relay.types import ANY, TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike


def argwhere(condition: ExprLike) -> Any:
    """Return the positions of the elements that are not zero, one a row, in row-major order.

    How many there are is known when the model runs.
    """
    x = as_expr(condition)
    zero = call("cast", const(0), x.tensor_type.dtype)
    count = call("sum", call("cast", call("not_equal", x, zero), "int32"))
    return positions_of(x, count)


@sizes_may_be_tensors(
    "count",
    tensors=("condition",),
    result=lambda condition: TensorType((ANY, condition.rank), "int32"),
    needs_shapes=True,
)
def positions_of(condition: ExprLike, count: int) -> Any:
    """Return the first `count` positions of elements that are not zero."""
    x, own = typed(condition)
    flat = call("reshape", x, (own.size,))
    held = call("not_equal", flat, call("cast", const(0), own.dtype))
    after = const(own.size, "int32")
    every = call("arange", 0, own.size, 1, "int32")
    found = call("topk", call("where", held, every, after), own.size, 0, "values", True)
    first = call("strided_slice", found, [0], [int(count)])
    columns = []
    for extent in own.shape[::-1]:
        columns.append(call("floor_mod", first, const(max(extent, 1), "int32")))
        first = call("floor_divide", first, const(max(extent, 1), "int32"))
    if not columns:
        return call("full", const(0, "int32"), (int(count), 0))
    return call("stack", columns[::-1], 1)


@needs_sizes
def unique(data: ExprLike, is_sorted: bool = True, return_counts: bool = False) -> Any:
    """Return the different elements of a vector, and where they are.

    The results: the elements, ascending (or in order of first appearance), the position of the
    first of each, for each element of the data its place among them, their number as a vector of
    one, and with `return_counts` how often each is there.  All but that number are as long as the
    data; what lies behind the different elements means nothing.
    """
    x, own = typed(data)
    need_rank("data", own, 1)
    size = own.shape[0]
    every = call("arange", 0, size, 1, "int32")
    order = call("topk", x, size, 0, "indices", True)
    ordered = call("take", x, order, 0, mode="fast")
    ones = const(1, "int32")
    is_new = call("concatenate", [
        call("full", ones, (min(size, 1),), "int32"),
        call("cast", call("not_equal", call("strided_slice", ordered, [1], [size]),
                          call("strided_slice", ordered, [0], [max(size - 1, 0)])), "int32"),
    ], 0)  # fmt: skip
    group = call("subtract", call("cumsum", is_new, 0, "int32"), ones)
    number = call("sum", is_new, (0,), keepdims=True)
    nothing = call("full", const(size, "int32"), (size,), "int32")
    inverse = call("scatter_elements", nothing, order, group, 0)
    first = call("scatter_elements", nothing, group, order, 0, "min")
    if not is_sorted:  # the empty places have `size` as the first position, and stay behind
        by_position = call("topk", first, size, 0, "indices", True)
        new_position = call("scatter_elements", nothing, by_position, every, 0)
        first = call("take", first, by_position, 0, mode="fast")
        inverse = call("take", new_position, inverse, 0, mode="fast")
    found = call("take", x, first, 0, mode="clip")
    results = [found, first, inverse, number]
    if return_counts:
        zeros = call("full", const(0, "int32"), (size,), "int32")
        added = call("full", ones, (size,), "int32")
        results.append(call("scatter_elements", zeros, inverse, added, 0, "add"))
    return TupleWrapper(as_expr(results), len(results))
