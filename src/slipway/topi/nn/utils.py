"""Padding and strides of windows, under classic TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.topi.nn.windows import sides
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike, ShapeLike
    from slipway.te.tensor import Tensor


def get_pad_tuple_generic(
    padding: ShapeLike, kernel: Sequence[PrimExprLike]
) -> tuple[list[int], list[int]]:
    """Return the padding before and after each dimension that a number, numbers or a word mean."""
    return sides(padding, [get_const_int(k) for k in kernel])


def _padding(padding: ShapeLike, kernel: Sequence[PrimExprLike]) -> tuple[int, ...]:
    before, after = get_pad_tuple_generic(padding, kernel)
    return (*before, *after)


def get_pad_tuple(padding: ShapeLike, kernel: Sequence[PrimExprLike]) -> tuple[int, ...]:
    """Return (top, left, bottom, right)."""
    return _padding(padding, list(kernel)[:2])


def get_pad_tuple3d(padding: ShapeLike, kernel: Sequence[PrimExprLike]) -> tuple[int, ...]:
    """Return (front, top, left, back, bottom, right)."""
    return _padding(padding, list(kernel)[:3])


def get_pad_tuple1d(
    padding: ShapeLike, kernel: PrimExprLike | Sequence[PrimExprLike]
) -> tuple[int, ...]:
    """Return (left, right)."""
    items: list[Any] = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    return _padding(padding, items[:1])


def infer_pad(data: Tensor, data_pad: Tensor | None) -> tuple[int, int]:
    """Return the padding of rows and columns between (N, C, H, W) and its padded copy."""
    if data_pad is None:
        return 0, 0
    before, after = data.shape[2:4], data_pad.shape[2:4]
    rows, columns = (
        (get_const_int(b) - get_const_int(a)) // 2 for a, b in zip(before, after, strict=True)
    )
    return rows, columns


def infer_stride(data: Tensor, kernel: Tensor, out: Tensor) -> tuple[int, int]:
    """Return the strides of a convolution of (N, C, H, W) by (O, I, KH, KW) from its shapes."""
    sizes = zip(data.shape[2:4], kernel.shape[2:4], out.shape[2:4], strict=True)
    rows, columns = (
        (get_const_int(a) - get_const_int(k)) // max(get_const_int(o) - 1, 1) for a, k, o in sizes
    )
    return rows, columns
