"""Elements chosen by tensors of indices, and tensors made of indices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import declare
from slipway.te.declare import const
from slipway.te.tensor import Tensor
from slipway.topi.elementwise import broadcast_shape, element_of
from slipway.topi.tag import INJECTIVE
from slipway.topi.transform import reshape
from slipway.topi.utils import get_const_float, get_const_int, normalize_axis
from slipway.topi.utils import prod as product
from slipway.topi.utils import unravel_index as indices_of

compute = functools.partial(declare.compute, tag=INJECTIVE)

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike


def arange(
    start: PrimExprLike, stop: PrimExprLike | None = None, step: PrimExprLike = 1,
    dtype: str = "float32",
) -> Tensor:  # fmt: skip
    """Return the numbers from `start` (0 with one number) to below `stop`, by `step`."""
    first, last = (0, start) if stop is None else (start, stop)
    numbers = [get_const_float(x) for x in (first, last, step)]
    if numbers[2] == 0:
        raise InvalidShapeError("arange by a step of 0")
    count = max(int(np.ceil((numbers[1] - numbers[0]) / numbers[2])), 0)
    low, by = ops.cast(first, dtype), ops.cast(step, dtype)
    element = lambda i: ops.add(low, ops.mul(by, ops.cast(i, dtype)))  # noqa: E731
    return compute((count,), element, "arange")  # type: ignore[no-any-return]


def _wrapped(index: Any, extent: Any) -> Any:
    """Return an index that counts from the end where it is negative."""
    return ops.select(ops.less(index, const(0, index.dtype)), ops.add(index, extent), index)


def _within(index: Any, extent: Any, mode: str) -> Any:
    top = ops.cast(extent, index.dtype)
    if mode == "clip":
        low = ops.maximum(index, const(0, index.dtype))
        return ops.minimum(low, ops.sub(top, const(1, index.dtype)))
    return ops.floormod(index, top) if mode == "wrap" else index


def take(
    a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> Tensor:
    """Return the elements of `a` at `indices` along `axis` (of all elements in a row without it).

    Indices outside are cut to the shape ("clip") or counted around it ("wrap"); "fast" trusts
    them.  The first `batch_dims` dimensions of both belong together.
    """
    if mode not in ("clip", "wrap", "fast"):
        raise InvalidShapeError(f"mode of take is 'clip', 'wrap' or 'fast', not {mode!r}")
    if axis is None:
        return take(reshape(a, (product(a.shape),)), indices, 0, 0, mode)
    at = normalize_axis(axis, a.ndim)
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(at, indices.ndim):
        raise InvalidShapeError(f"take along {at} with batch_dims={batch_dims}")
    own = indices.ndim - batch

    def element(*i: PrimExpr) -> Any:
        index = _within(indices(*i[:batch], *i[at : at + own]), a.shape[at], mode)
        return a(*i[:at], index, *i[at + own :])

    shape = (*a.shape[:at], *indices.shape[batch:], *a.shape[at + 1 :])
    return compute(shape, element, "take")  # type: ignore[no-any-return]


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Return, for every place of `indices`, the element whose index along `axis` it says."""
    at = normalize_axis(axis, data.ndim)
    if indices.ndim != data.ndim:
        raise InvalidShapeError(f"gather from {data.shape} by indices of shape {indices.shape}")

    def element(*i: PrimExpr) -> Any:
        return data(*i[:at], _wrapped(indices(*i), data.shape[at]), *i[at + 1 :])

    return compute(indices.shape, element, "gather")  # type: ignore[no-any-return]


def gather_nd(a: Tensor, indices: Tensor) -> Tensor:
    """Return elements or parts of `a`; ``indices[:, ...]`` are indices of its first dimensions."""
    count = ops.as_int(indices.shape[0])
    if count is None or count > a.ndim:
        raise InvalidShapeError(f"gather_nd of {a.shape} by indices of shape {indices.shape}")
    own = indices.ndim - 1

    def element(*i: PrimExpr) -> Any:
        found = [_wrapped(indices(n, *i[:own]), a.shape[n]) for n in range(count)]
        return a(*found, *i[own:])

    shape = (*indices.shape[1:], *a.shape[count:])
    return compute(shape, element, "gather_nd")  # type: ignore[no-any-return]


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """Return ``data[indices]`` with a tensor of indices for each of the first dimensions."""
    shape = broadcast_shape(*(x.shape for x in indices))
    own = len(shape)

    def element(*i: PrimExpr) -> Any:
        found = [
            _wrapped(element_of(x, i[:own]), n) for x, n in zip(indices, data.shape, strict=False)
        ]
        return data(*found, *i[own:])

    shape = (*shape, *data.shape[len(indices) :])
    return compute(shape, element, "adv_index")  # type: ignore[no-any-return]


def one_hot(
    indices: Tensor, on_value: PrimExprLike, off_value: PrimExprLike, depth: int, axis: int,
    dtype: str,
) -> Tensor:  # fmt: skip
    """Return `on_value` where the index along the new dimension `axis` is the element's value."""
    at = normalize_axis(axis, indices.ndim + 1)
    on, off = ops.cast(on_value, dtype), ops.cast(off_value, dtype)

    def element(*i: PrimExpr) -> Any:
        wanted = indices(*i[:at], *i[at + 1 :])
        return ops.select(ops.equal(wanted, ops.cast(i[at], wanted.dtype)), on, off)

    shape: Sequence[PrimExprLike] = (*indices.shape[:at], depth, *indices.shape[at:])
    return compute(shape, element, "one_hot")  # type: ignore[no-any-return]


def sequence_mask(
    data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0
) -> Tensor:
    """Return `data` with `mask_value` from `valid_length` on along `axis` (0 or 1)."""
    if axis not in (0, 1) or data.ndim < 2:
        raise InvalidShapeError(f"sequence_mask of {data.shape} along {axis}: axis is 0 or 1")
    value = const(mask_value, data.dtype)

    def element(*i: PrimExpr) -> Any:
        length = valid_length(i[1 - axis])
        inside = ops.less(ops.cast(i[axis], length.dtype), length)
        return ops.if_then_else(inside, data(*i), value)

    return compute(data.shape, element, "sequence_mask")  # type: ignore[no-any-return]


def reverse_sequence(
    a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> Tensor:
    """Return `a` with the first `seq_lengths` elements along `seq_axis` in reverse order."""
    at, batch = normalize_axis(seq_axis, a.ndim), normalize_axis(batch_axis, a.ndim)

    def element(*i: PrimExpr) -> Any:
        length = ops.cast(seq_lengths(i[batch]), i[at].dtype)
        mirrored = ops.sub(ops.sub(length, 1), i[at])
        position = ops.select(ops.less(i[at], length), mirrored, i[at])
        return a(*i[:at], position, *i[at + 1 :])

    return compute(a.shape, element, "reverse_sequence")  # type: ignore[no-any-return]


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """Return each vector repeated along the dimensions of the others, as NumPy's meshgrid."""
    if indexing not in ("ij", "xy"):
        raise InvalidShapeError(f"indexing of meshgrid is 'ij' or 'xy', not {indexing!r}")
    order = list(range(len(a_tuple)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = tuple(a_tuple[n].shape[0] if a_tuple[n].ndim else 1 for n in order)

    def one(number: int) -> Tensor:
        vector, at = a_tuple[number], order.index(number)
        element = lambda *i: vector(i[at]) if vector.ndim else vector()  # noqa: E731
        return compute(shape, element, "meshgrid")  # type: ignore[no-any-return]

    return [one(n) for n in range(len(a_tuple))]


def unravel_index(indices: Tensor, shape: Sequence[int] | Tensor) -> Tensor:
    """Return the indices (one row per dimension) of elements at flat positions of `shape`."""
    sizes = (
        [shape(n) for n in range(get_const_int(shape.shape[0]))]
        if isinstance(shape, Tensor)
        else shape
    )

    def element(*i: PrimExpr) -> Any:
        found = indices_of(indices(*i[1:]), list(sizes))
        chosen = found[-1]
        for n in range(len(found) - 2, -1, -1):
            chosen = ops.select(ops.equal(i[0], n), found[n], chosen)
        return chosen

    return compute((len(sizes), *indices.shape), element, "unravel_index")  # type: ignore[no-any-return]


def trilu(data: Tensor, k: PrimExprLike, upper: bool) -> Tensor:
    """Return the upper (or lower) triangle from diagonal `k`, 0 elsewhere."""
    zero = const(0, data.dtype)

    def element(*i: PrimExpr) -> Any:
        column, diagonal = i[-1], ops.add(i[-2], k)
        kept = (ops.greater_equal if upper else ops.less_equal)(column, diagonal)
        return ops.if_then_else(kept, data(*i), zero)

    return compute(data.shape, element, "trilu")  # type: ignore[no-any-return]


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """Return the extents of a tensor, as a vector."""

    def element(i: PrimExpr) -> Any:
        value = array.shape[-1]
        for n in range(array.ndim - 2, -1, -1):
            value = ops.select(ops.equal(i, n), array.shape[n], value)
        return ops.cast(value, dtype)

    return compute((array.ndim,), element, "shape")  # type: ignore[no-any-return]


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """Return the number of elements of a tensor, as a scalar."""
    return compute((), lambda: ops.cast(product(array.shape), dtype), "ndarray_size")  # type: ignore[no-any-return]
