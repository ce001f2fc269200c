"""Paddings that depend on open sizes: "same" of a stride over an image of any height.

A convolution or pool has numbers for its padding.  Where an odd extent is padded otherwise than an
even one, the data is surrounded beforehand (`nn.pad` takes formulas), and the window pads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway import dtypes, relay
from slipway.relay.dims import is_open, larger
from slipway.relay.expr import Expr


def same_total(extent: int, window: int, stride: int, step: int) -> int:
    """Return how many elements "same" adds to an axis, so that ceil(extent / stride) windows fit.

    An open extent gives a formula.
    """
    total = (-(-extent // stride) - 1) * stride + (window - 1) * step + 1 - extent
    return larger(total, 0)  # type: ignore[no-any-return]


def surrounded(
    data: Expr, padding: Sequence[int], axes: Sequence[int], value: float = 0
) -> tuple[Expr, tuple[int, ...]]:
    """Return the data of a window operator, and the padding left to the operator itself.

    `padding` is all before, then all after, of `axes`; it stays as it is where it is of numbers.
    """
    if not any(map(is_open, padding)):
        return data, tuple(padding)
    widths: list[tuple[int, int]] = [(0, 0)] * data.tensor_type.rank
    for position, axis in enumerate(axes):
        widths[axis] = (padding[position], padding[position + len(axes)])
    return relay.nn.pad(data, widths, value), (0,) * len(padding)


def surrounded_by_lowest(
    data: Expr, padding: Sequence[int], axes: Sequence[int]
) -> tuple[Expr, tuple[int, ...]]:
    """`surrounded` by what no maximum is."""
    dtype = data.tensor_type.dtype
    lowest = float("-inf") if dtypes.is_float(dtype) else float(dtypes.int_range(dtype)[0])
    return surrounded(data, padding, axes, lowest)


def average_inside(
    data: Expr,
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
) -> Expr:
    """Return the averages of windows over data (N, C, ...), each of what lies inside the data."""
    count = len(window)
    axes, type_ = range(2, 2 + count), data.tensor_type
    pool = getattr(relay.nn, f"avg_pool{count}d")
    if not any(map(is_open, padding)):
        return pool(data, window, strides, dilation, tuple(padding))  # type: ignore[no-any-return]
    ones = relay.full(relay.const(1, type_.dtype), (1, 1, *type_.shape[2:]))
    total, share = (
        pool(surrounded(each, padding, axes)[0], window, strides, dilation) for each in (data, ones)
    )
    return relay.divide(total, share)  # type: ignore[no-any-return]
