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
    folded = _in_rows(a, b, out_dtype)
    if folded is not None:
        return folded
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


def _in_rows(a: Expr, b: Expr, out_dtype: str) -> Any:
    """Return the product with batches that share a right matrix as rows of one product.

    None where they do not, or where it takes more to bring them beside each other than to repeat
    the right matrices for each of them.
    """
    left, right = a.tensor_type.shape, b.tensor_type.shape
    count = len(left) - 2
    if len(right) > len(left) or not all(isinstance(n, int) for n in (*left, *right)):
        return None
    wide = (*(1,) * (len(left) - len(right)), *right)
    shared = [n for n in range(count) if wide[n] == 1 < left[n]]
    own = [n for n in range(count) if n not in shared]
    if not shared or prod(wide[:-2]) == 1 or any(wide[n] != left[n] for n in own):
        return None
    rows, depth, units = left[-2], left[-1], right[-1]
    order, together = [*own, *shared], prod(left[n] for n in shared) * rows
    is_moved = order != sorted(order)
    batches = prod(left[:-2])
    if is_moved and batches * rows * (depth + units) > batches * depth * units:
        return None
    if is_moved:
        a = relay.transpose(a, (*order, count, count + 1))
    matrices = prod(left[n] for n in own)
    made = relay.nn.batch_matmul(
        relay.reshape(a, (matrices, together, depth)),
        relay.reshape(b, (matrices, depth, units)), out_dtype, transpose_b=False,
    )  # fmt: skip
    made = relay.reshape(made, (*(left[n] for n in order), rows, units))
    back = [order.index(n) for n in range(count)]
    return relay.transpose(made, (*back, count, count + 1)) if is_moved else made


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
