"""The matrix product of any ranks, as importers need it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.relay.ops.checks import broadcast_shapes
from slipway.relay.types import ANY

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def product_of(a: Expr, b: Expr, out_dtype: str = "") -> Any:
    """Return ``np.matmul(a, b)`` of two expressions: dense for 2-D weights, else batch_matmul."""
    left, right = a.tensor_type.shape, b.tensor_type.shape
    if len(left) == 1 or len(right) == 1:
        one = relay.expand_dims(a, 0) if len(left) == 1 else a
        two = relay.expand_dims(b, 1) if len(right) == 1 else b
        result = product_of(one, two, out_dtype)
        axes = ([-2] if len(left) == 1 else []) + ([-1] if len(right) == 1 else [])
        return relay.squeeze(result, axes)
    if _is_uncounted(left, right):
        return _unnamed(a, b, out_dtype)
    if len(right) == 2:
        # nn.dense takes (units, depth); transposing a constant costs nothing at run time.
        flat = a if len(left) == 2 else relay.reshape(a, (-1, left[-1]))
        result = relay.nn.dense(flat, relay.transpose(b, (1, 0)), out_dtype=out_dtype)
        return result if len(left) == 2 else relay.reshape(result, (*left[:-1], right[-1]))
    batch = broadcast_shapes(left[:-2], right[:-2], "other")
    count = element_count(batch)

    def flattened(x: Expr, shape: tuple[int, ...]) -> Any:
        own = element_count(shape[:-2])
        if own not in (1, count):
            x = relay.broadcast_to(x, (*batch, *shape[-2:]))
            own = count
        return x if len(shape) == 3 and shape[0] == own else relay.reshape(x, (own, *shape[-2:]))

    result = relay.nn.batch_matmul(
        flattened(a, left), flattened(b, right), out_dtype, transpose_b=False
    )
    out = (*batch, left[-2], right[-1])
    return result if result.tensor_type.shape == out else relay.reshape(result, out)


def _is_uncounted(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Return whether a reshape would have several sizes that are open without a name."""
    if len(left) == len(right) == 3 or max(len(left), len(right)) < 3:
        return False  # no reshape is needed
    if len(right) == 2:
        return left[-1] is ANY or (*left[:-1], right[-1]).count(ANY) > 1
    return any(shape.count(ANY) > 1 for shape in (left, right, (*left[:-1], right[-1])))


def _unnamed(a: Expr, b: Expr, out_dtype: str) -> Any:
    """Return the product where sizes are open without a name, which no reshape can count."""
    if out_dtype:
        a, b = relay.cast(a, out_dtype), relay.cast(b, out_dtype)
    return relay.einsum((a, b), "...ij,...jk->...ik")


def element_count(shape: tuple[int, ...]) -> int:
    """The product of the sizes; open where one of them is."""
    return ANY if ANY in shape else prod(shape)
