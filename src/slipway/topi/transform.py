"""Elements moved: other shapes, other orders, tensors joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.ir import ops
from slipway.te.declare import compute
from slipway.te.reduction import reduce_axis
from slipway.te.reduction import sum as te_sum
from slipway.te.tensor import Tensor
from slipway.topi.elementwise import broadcast_shape, element_of
from slipway.topi.utils import normalize_axis

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Return `a` with its dimensions in the order `axes` (reversed without it)."""
    order = [normalize_axis(x, a.ndim) for x in (axes or range(a.ndim - 1, -1, -1))]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"transpose of {a.ndim} dimensions by {tuple(axes or ())}")

    def element(*i: PrimExpr) -> Any:
        place: list[Any] = [None] * a.ndim
        for index, axis in zip(i, order, strict=True):
            place[axis] = index
        return a(*place)

    return compute(tuple(a.shape[x] for x in order), element, "transpose")  # type: ignore[no-any-return]


def _flat(shape: Sequence[Any], indices: Sequence[Any]) -> Any:
    flat: Any = ops.const(0)
    for extent, index in zip(shape, indices, strict=True):
        flat = ops.add(ops.mul(flat, extent), index)
    return flat


def _unflat(shape: Sequence[Any], flat: Tensor | PrimExprLike) -> list[Any]:
    found: list[Any] = []
    for extent in reversed(shape):
        found.append(ops.floormod(flat, extent))
        flat = ops.floordiv(flat, extent)
    return found[::-1]


def reshape(a: Tensor, newshape: Sequence[Any]) -> Tensor:
    """Return the elements of `a` in row-major order as a tensor of `newshape`."""
    sizes = [[ops.as_int(n) for n in s] for s in (a.shape, newshape)]
    counts = []
    for size in sizes:
        product = 1
        for n in size:
            product = product * n if n is not None and product else 0
        counts.append(product)
    if all(None not in s for s in sizes) and counts[0] != counts[1]:
        raise ValueError(f"reshape of {a.shape} to {tuple(newshape)}: the sizes differ")
    element = lambda *i: a(*_unflat(a.shape, _flat(newshape, i)))  # noqa: E731
    return compute(tuple(newshape), element, "reshape")  # type: ignore[no-any-return]


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """Return `a` with `num_newaxis` dimensions of 1 put in front of dimension `axis`."""
    at = normalize_axis(axis, a.ndim + 1)
    shape = (*a.shape[:at], *[1] * num_newaxis, *a.shape[at:])
    element = lambda *i: a(*i[:at], *i[at + num_newaxis :])  # noqa: E731
    return compute(shape, element, "expand_dims")  # type: ignore[no-any-return]


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """Return `a` without the dimensions `axis`, which are 1 (all such ones without it)."""
    ones = [x for x in range(a.ndim) if ops.as_int(a.shape[x]) == 1]
    given = ones if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    gone = {normalize_axis(x, a.ndim) for x in given}
    if not gone <= set(ones):
        raise ValueError(f"squeeze of {a.shape} along {sorted(gone)}: an extent is not 1")
    kept = [x for x in range(a.ndim) if x not in gone]

    def element(*i: PrimExpr) -> Any:
        place: list[Any] = [0] * a.ndim
        for index, x in zip(i, kept, strict=False):
            place[x] = index
        return a(*place)

    shape = tuple(a.shape[x] for x in kept) or (1,)
    return compute(shape, element, "squeeze")  # type: ignore[no-any-return]


def broadcast_to(a: Tensor, shape: Sequence[Any]) -> Tensor:
    """Return `a` repeated to `shape`."""
    if [str(n) for n in broadcast_shape(a.shape, tuple(shape))] != [str(n) for n in shape]:
        raise ValueError(f"{a.shape} does not broadcast to {tuple(shape)}")
    return compute(tuple(shape), lambda *i: element_of(a, i), "broadcast_to")  # type: ignore[no-any-return]


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """Return `a` with the elements along `axis` in reverse order."""
    at = normalize_axis(axis, a.ndim)
    element = lambda *i: a(*i[:at], a.shape[at] - 1 - i[at], *i[at + 1 :])  # noqa: E731
    return compute(a.shape, element, "flip")  # type: ignore[no-any-return]


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return the tensors joined along `axis`."""
    parts = list(a_tuple)
    at = normalize_axis(axis, parts[0].ndim)
    starts: list[Any] = [ops.const(0)]
    for part in parts:
        starts.append(ops.add(starts[-1], part.shape[at]))

    def element(*i: PrimExpr) -> Any:
        value = parts[-1](*i[:at], ops.sub(i[at], starts[-2]), *i[at + 1 :])
        for number in range(len(parts) - 2, -1, -1):
            mine = parts[number](*i[:at], ops.sub(i[at], starts[number]), *i[at + 1 :])
            value = ops.if_then_else(ops.less(i[at], starts[number + 1]), mine, value)
        return value

    shape = (*parts[0].shape[:at], starts[-1], *parts[0].shape[at + 1 :])
    return compute(shape, element, "concatenate")  # type: ignore[no-any-return]


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return the tensors joined along a new dimension `axis`."""
    return concatenate([expand_dims(t, axis) for t in tensors], axis)


def matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: str = ""
) -> Tensor:
    """Return the matrix product; the sums are of `out_dtype` (that of `a` without it)."""
    k = reduce_axis((0, a.shape[0 if transp_a else 1]), "k")
    dtype = out_dtype or a.dtype
    shape = (a.shape[1 if transp_a else 0], b.shape[0 if transp_b else 1])

    def element(i: PrimExprLike, j: PrimExprLike) -> Any:
        left = a(k, i) if transp_a else a(i, k)
        right = b(j, k) if transp_b else b(k, j)
        return te_sum(ops.mul(ops.cast(left, dtype), ops.cast(right, dtype)), axis=k)

    return compute(shape, element, "matmul")  # type: ignore[no-any-return]
