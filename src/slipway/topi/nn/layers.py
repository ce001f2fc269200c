"""Dense layers, batches of matrix products, flatten and softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute, tag_scope
from slipway.te.tensor import Tensor
from slipway.topi.elementwise import divide, exp, log, subtract
from slipway.topi.products import check_equal
from slipway.topi.products import matmul as product_of
from slipway.topi.reduction import max as max_over
from slipway.topi.reduction import sum as sum_over
from slipway.topi.tag import BROADCAST
from slipway.topi.transform import reshape
from slipway.topi.utils import need_rank

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr


def flatten(data: Tensor) -> Tensor:
    """Return (batch, size) of a tensor with a leading batch dimension."""
    size: Any = ops.const(1)
    for extent in data.shape[1:]:
        size = ops.mul(size, extent)
    return reshape(data, (data.shape[0], size))


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None
) -> Tensor:
    """Return data (batch, in) times weight (out, in), plus bias (out)."""
    with tag_scope("dense"):
        product = product_of(data, weight, transp_b=True, out_dtype=out_dtype or "")
    if bias is None:
        return product
    added = lambda i, j: product(i, j) + bias(j)  # noqa: E731
    return compute(product.shape, added, "dense", BROADCAST)  # type: ignore[no-any-return]


def matmul(
    tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None,
    transpose_a: bool = False, transpose_b: bool = False,
) -> Tensor:  # fmt: skip
    """Return the product of two matrices, each as it is or transposed, plus bias."""
    product = product_of(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype or "")
    if bias is None:
        return product
    added = lambda i, j: product(i, j) + ops.cast(bias(j), product.dtype)  # noqa: E731
    return compute(product.shape, added, "matmul", BROADCAST)  # type: ignore[no-any-return]


def batch_matmul(
    tensor_a: Tensor, tensor_b: Tensor, oshape: Any = None, out_dtype: str | None = None,
    transpose_a: bool = False, transpose_b: bool = True,
) -> Tensor:  # fmt: skip
    """Return the products of matrices of two batches; `tensor_b` is transposed unless told."""
    a, b = tensor_a, tensor_b
    what = f"batch_matmul of {a.shape} and {b.shape}"
    need_rank("the first batch of batch_matmul", a, 3)
    need_rank("the second batch of batch_matmul", b, 3)
    batches = a.shape[0], b.shape[0]
    if 1 not in (ops.as_int(n) for n in batches):
        check_equal(f"{what}: batches", *batches)
    inner = a.shape[1 if transpose_a else 2]
    check_equal(f"{what}: summed dimensions", inner, b.shape[2 if transpose_b else 1])
    k, dtype = R.reduce_axis((0, inner), "k"), out_dtype or a.dtype
    batch = batches[1] if ops.as_int(batches[0]) == 1 else batches[0]
    shape = (batch, a.shape[2 if transpose_a else 1], b.shape[1 if transpose_b else 2])

    def element(n: PrimExpr, i: PrimExpr, j: PrimExpr) -> Any:
        of_a, of_b = (0 if ops.as_int(size) == 1 else n for size in batches)
        left = a(of_a, k.var, i) if transpose_a else a(of_a, i, k.var)
        right = b(of_b, j, k.var) if transpose_b else b(of_b, k.var, j)
        return R.sum(ops.mul(ops.cast(left, dtype), ops.cast(right, dtype)), axis=k)

    return compute(shape, element, "batch_matmul", "batch_matmul")  # type: ignore[no-any-return]


def softmax(x: Tensor, axis: int = -1) -> Any:
    """Return exp(x) divided by its sum along `axis`, computed without overflow."""
    exponentials = exp(subtract(x, max_over(x, axis, keepdims=True)))
    return divide(exponentials, sum_over(exponentials, axis, keepdims=True))


def log_softmax(x: Tensor, axis: int = -1) -> Any:
    """Return the logarithm of the softmax along `axis`, computed without overflow."""
    shifted = subtract(x, max_over(x, axis, keepdims=True))
    return subtract(shifted, log(sum_over(exp(shifted), axis, keepdims=True)))
