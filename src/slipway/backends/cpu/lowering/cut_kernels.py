"""Kernels lose the taps that meet nothing but padding.

    nn.conv2d(%x: (1, 64, 28, 1), %w: (64, 64, 3, 3), padding 1)
        ->  nn.conv2d(%x, %w[:, :, :, 1:2], padding (1, 0, 1, 0))

So it is with images that are narrower than a window, and with dilated windows that are wider than
the image: of a 3x3 window with dilation 12 over 7x7 pixels one tap is left, a 1x1 convolution.
"""

from __future__ import annotations

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.open_dims import has_open
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.visit import rewrite

_CONVS = tuple(f"nn.conv{count}d" for count in SPATIAL)


def cut_kernels(function: Function) -> Function:
    """Return `function`, whose convolutions by constants multiply no tap by padding alone."""
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(call: Expr) -> Expr | None:
    if not is_call_of(call, *_CONVS) or has_open(call.args[0].tensor_type):
        return None
    attrs, kernel = call.attrs, call.args[1]
    layouts = attrs.data_layout, attrs.kernel_layout
    if not isinstance(kernel, Constant) or not all(layout.isalpha() for layout in layouts):
        return None
    count = len(attrs.strides)
    padding, cuts = list(attrs.padding), [slice(None)] * kernel.array.ndim
    sizes = list(attrs.kernel_size or ())
    for a, letter in enumerate(SPATIAL[count]):
        axis = attrs.kernel_layout.index(letter)
        taps, step = kernel.array.shape[axis], attrs.dilation[a]
        before, after = attrs.padding[a], attrs.padding[a + count]
        extent = call.args[0].tensor_type.shape[attrs.data_layout.index(letter)]
        first, last = _met(extent, taps, step, before, after, attrs.strides[a])
        cuts[axis] = slice(first, last + 1)
        padding[a], padding[a + count] = before - first * step, after - (taps - 1 - last) * step
        if sizes:
            sizes[a] = last + 1 - first
    if tuple(padding) == tuple(attrs.padding):
        return None
    changed = attrs.replace(
        padding=tuple(padding), kernel_size=tuple(sizes) if sizes else attrs.kernel_size
    )
    weight = Constant(kernel.array[tuple(cuts)].copy(order="C"))
    with op_registry.span(call.span):
        return Call(call.op, (call.args[0], weight), changed, call.span)


def _met(
    extent: int, taps: int, step: int, before: int, after: int, stride: int
) -> tuple[int, int]:
    """Return the first and the last tap along an axis that are to stay.

    What is left of the padding is none or more: no pixel is cut off in place of it.
    """
    wanted = (extent + before + after - step * (taps - 1) - 1) // stride + 1
    meets = [
        any(0 <= position < extent for position in range(t * step - before,
            t * step - before + wanted * stride, stride))
        for t in range(taps)
    ]  # fmt: skip
    first, last = 0, taps - 1
    while first < last and not meets[first] and before >= (first + 1) * step:
        first += 1
    while first < last and not meets[last] and after >= (taps - last) * step:
        last -= 1
    return first, last
