"""Sliding windows: layouts, output extents, padding; shared by convolution and pooling.

A layout is a string of axis letters: N batch, C channel, W / HW / DHW the spatial axes for
data, and O, I for a kernel.  Channels may lie in blocks: NCHW16c, OIHW16i16o.  The references
bring everything to N C spatial, O I spatial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import floordiv, mod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ArgumentValueError
from slipway.ir.expr import PrimExpr
from slipway.relay.layout import has_blocks, parse_layout, source_index
from slipway.relay.op_registry import BadArgument
from slipway.relay.ops.checks import need_count, need_rank, need_steps
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Array
    from slipway.te.tensor import Tensor

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def check_layout(argument: str, layout: str, letters: str, given: TensorType, name: str) -> None:
    """The layout must be an order of `letters`, and the tensor must have as many axes."""
    try:
        axes = parse_layout(layout).axes
    except ArgumentValueError:
        axes = ()
    plain = sorted(axis.letter for axis in axes if not axis.block)
    if plain != sorted(letters) or any(axis.block and axis.letter in "DHW" for axis in axes):
        raise BadArgument(name, f"is {layout!r}, which is no order of the axes {letters!r}")
    need_rank(argument, given, len(axes))


def pick(shape: Sequence[Any], layout: str, letters: str) -> tuple[Any, ...]:
    """Return the extents of the axes `letters`, with all blocks, of a tensor of `shape`."""
    if has_blocks(layout):
        whole = parse_layout(layout).whole_shape(shape)
        return tuple(whole[letter] for letter in letters)
    return tuple(shape[layout.index(letter)] for letter in letters)


def arrange(values: dict[str, Any], layout: str) -> tuple[Any, ...]:
    """Return the extents (keyed by axis letter) in the order of `layout`."""
    blocked = parse_layout(layout) if has_blocks(layout) else None
    if sorted(values) != sorted(blocked.letters if blocked else layout):
        raise BadArgument(
            "out_layout", f"is {layout!r}, which is no order of the axes {''.join(values)!r}"
        )
    if blocked is None:
        return tuple(values[letter] for letter in layout)
    try:
        return blocked.shape_of(values)
    except ArgumentValueError as error:
        raise BadArgument("out_layout", f"is {layout!r}: {error}") from None


def indices_in(layout: str, letters: str) -> Callable[..., tuple[Any, ...]]:
    """Return f(indices of the axes `letters`) -> those of a tensor in `layout`."""
    return source_index(layout, letters, floordiv, mod)


def window_extent(kernel: int, dilation: int) -> int:
    """Elements that a dilated window spans."""
    return (kernel - 1) * dilation + 1


def conv_extents(
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:
    """Return the output's spatial extents.  Raises BadArgument when a window does not fit."""
    count = len(spatial)
    need_count("padding", padding, 2 * count)
    need_count("kernel_size", kernel, count)
    need_steps("strides", strides, count)
    need_steps("dilation", dilation, count)
    out = []
    for a in range(count):
        padded = spatial[a] + padding[a] + padding[a + count]
        span = window_extent(kernel[a], dilation[a])
        if span > padded:
            raise BadArgument(
                "data",
                f"has {spatial[a]} elements along spatial axis {a} ({padded} with padding), "
                f"but the window spans {span}",
            )
        out.append((padded - span) // strides[a] + 1)
    return tuple(out)


def taps_inside(
    extent: int, size: int, kernel: int, stride: int, dilation: int, before: int
) -> list[range]:
    """Return, for each tap of a window along one axis, the positions at which it is inside.

    The axis has `size` elements with a padding of `before` in front, and `extent` positions.
    """
    found = []
    for tap in range(kernel):
        shift = before - tap * dilation
        first = min(extent, max(0, -(-shift // stride)))
        last = min(extent, (size - 1 + shift) // stride + 1)
        found.append(range(first, max(first, last)))
    return found


def pad_array(array: Any, padding: Sequence[int], value: Any) -> Any:
    """Return an N C spatial array padded along its spatial axes."""
    count = len(padding) // 2
    widths = [(0, 0)] * (array.ndim - count)
    widths += [(padding[a], padding[a + count]) for a in range(count)]
    if not any(padding):
        return array
    return np.pad(array, widths, constant_values=value)


def windows(
    array: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Any:
    """Return the view of an N C spatial array with axes N, C, out..., kernel...."""
    count = len(kernel)
    spans = tuple(window_extent(k, d) for k, d in zip(kernel, dilation, strict=True))
    axes = tuple(range(array.ndim - count, array.ndim))
    view = np.lib.stride_tricks.sliding_window_view(array, spans, axis=axes)
    steps = (slice(None),) * (array.ndim - count)
    steps += tuple(slice(None, None, s) for s in strides)
    steps += tuple(slice(None, None, d) for d in dilation)
    return view[steps]


def pad_stage(
    tensor: Tensor, before: Sequence[int], after: Sequence[int], value: Any, name: str = "pad_temp"
) -> Any:
    """Return a te stage that surrounds `tensor` with `value`; the tensor when nothing is added.

    `value` is a number, or an expression of the tensor's dtype. `before` and `after` count elements
    along every axis. The stage reads behind `if_then_else`, so it may be inlined into its consumer.
    """
    if not any(before) and not any(after):
        return tensor
    shape = shape_of(tensor)
    padded = tuple(d + b + a for d, b, a in zip(shape, before, after, strict=True))
    fill = value if isinstance(value, PrimExpr) else te().const(value, tensor.dtype)

    def element(*indices: Any) -> Any:
        inside, source = [], []
        for index, extent, low, high in zip(indices, shape, before, after, strict=True):
            source.append(index - low if low else index)
            if low:
                inside.append(index >= low)
            if high:
                inside.append(index < extent + low)
        return te().if_then_else(te().all(*inside), tensor(*source), fill)

    return te().compute(padded, element, name=name, tag="injective,pad")
