"""Products of matrices and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te.declare import compute
from slipway.te.reduction import reduce_axis
from slipway.te.reduction import sum as te_sum
from slipway.te.tensor import Tensor
from slipway.topi.utils import need_rank, normalize_axis

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike


def check_equal(what: str, left: Any, right: Any) -> None:
    """Raise InvalidShapeError when two extents are different numbers."""
    sizes = ops.as_int(left), ops.as_int(right)
    if None not in sizes and sizes[0] != sizes[1]:
        raise InvalidShapeError(f"{what}: {left} and {right} differ")


def matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: str = ""
) -> Tensor:
    """Return the matrix product; the sums are of `out_dtype` (that of `a` without it)."""
    need_rank("the first matrix of matmul", a, 2)
    need_rank("the second matrix of matmul", b, 2)
    inner = a.shape[0 if transp_a else 1], b.shape[1 if transp_b else 0]
    check_equal(f"matmul of {a.shape} and {b.shape} sums over one dimension", *inner)
    k = reduce_axis((0, a.shape[0 if transp_a else 1]), "k")
    dtype = out_dtype or a.dtype
    shape = (a.shape[1 if transp_a else 0], b.shape[0 if transp_b else 1])

    def element(i: PrimExprLike, j: PrimExprLike) -> Any:
        left = a(k, i) if transp_a else a(i, k)
        right = b(j, k) if transp_b else b(k, j)
        return te_sum(ops.mul(ops.cast(left, dtype), ops.cast(right, dtype)), axis=k)

    return compute(shape, element, "matmul")  # type: ignore[no-any-return]


def tensordot(a: Tensor, b: Tensor, axes: Any = 2) -> Tensor:
    """Return the sums of products over pairs of dimensions, as NumPy's tensordot.

    `axes` is how many of the last of `a` and the first of `b`, or a list for each.
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise InvalidShapeError(f"tensordot over {axes} axes of {a.shape} and {b.shape}")
        pairs = [(a.ndim - axes + n, n) for n in range(axes)]
    else:
        if not isinstance(axes, list | tuple) or len(axes) != 2:
            raise InvalidShapeError(
                f"the axes of tensordot are {axes!r}; write how many, or a list for each tensor"
            )
        left, right = ([x] if isinstance(x, int) else list(x) for x in axes)
        if len(left) != len(right):
            raise InvalidShapeError(f"tensordot over {left} of one tensor and {right} of the other")
        pairs = [
            (normalize_axis(x, a.ndim), normalize_axis(y, b.ndim))
            for x, y in zip(left, right, strict=True)
        ]
    for x, y in pairs:
        normalize_axis(x, a.ndim), normalize_axis(y, b.ndim)
        what = f"tensordot of {a.shape} and {b.shape} over dimensions {x} and {y}"
        check_equal(what, a.shape[x], b.shape[y])
    over = [reduce_axis((0, a.shape[x]), f"k{x}") for x, _ in pairs]
    free_a = [x for x in range(a.ndim) if x not in [p[0] for p in pairs]]
    free_b = [y for y in range(b.ndim) if y not in [p[1] for p in pairs]]

    def element(*i: PrimExpr) -> Any:
        of_a, of_b = (
            dict(zip(free_a, i, strict=False)),
            dict(zip(free_b, i[len(free_a) :], strict=True)),
        )
        for (x, y), axis in zip(pairs, over, strict=True):
            of_a[x] = of_b[y] = axis.var
        product = ops.mul(
            a(*(of_a[x] for x in range(a.ndim))), b(*(of_b[y] for y in range(b.ndim)))
        )
        return te_sum(product, axis=over) if over else product

    shape = (*(a.shape[x] for x in free_a), *(b.shape[y] for y in free_b))
    return compute(shape, element, "tensordot")  # type: ignore[no-any-return]
