"""Which 3x3 convolutions of a model for a GPU become Winograd's, and with which tile.

A tile of m by m results takes (m + 2)^2 products for each pair of channels in place of 9 m^2, a
quarter for m = 4, but is read and written once more on either side of them::

    nn.conv2d(%x, w)  ->  image(batch_matmul(weights, tiles(%x)))

There are two kernels more, and as many weights for a pair of channels as products.  So it is for
sums that are long beside that: of many channels, over images of many tiles.  An image of float16
that is cast for its sums in float32 is read as it is.
"""

from __future__ import annotations

from typing import Any

from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite
from slipway.target.gpu_costs import ANY_GPU

_TILES = (2, 4)
_NARROW = ("float16", "bfloat16")


def winograd_convolutions(function: Function) -> Function:
    """Return `function` with the convolutions that gain by it in Winograd's form."""
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def winograd_tile(images: int, channels: int, filters: int, height: int, width: int) -> int:
    """Return the m of the F(m x m, 3x3) that costs least for a 3x3 convolution; 0: none does.

    In multiply-adds, of which a launch costs some, and an element that is read from memory or
    written there.
    """
    pairs, pixels = channels * filters, images * height * width

    def cost(m: int) -> float:
        tiles = images * -(-height // m) * -(-width // m)
        elements = (m + 2) ** 2
        between = tiles * 2 * elements * (channels + filters)
        moved = pixels * (channels + filters) + between + elements * pairs
        return tiles * elements * pairs + ANY_GPU.global_cost * moved + 3 * ANY_GPU.launch_cost

    moved = pixels * (channels + filters) + 9 * pairs
    direct = 9 * pixels * pairs + ANY_GPU.global_cost * moved + ANY_GPU.launch_cost
    best = min(_TILES, key=cost)
    return best if cost(best) < direct else 0


def _rule(call: Expr) -> Expr | None:
    if not is_call_of(call, "nn.conv2d") or not isinstance(call.args[1], Constant):
        return None
    attrs: Any = call.attrs
    data, kernel = (argument.tensor_type for argument in call.args)
    layouts = (attrs.data_layout, attrs.kernel_layout)
    first = layouts == ("NCHW", "OIHW")
    if not first and layouts != ("NHWC", "HWIO"):
        return None
    steps = (*attrs.strides, *attrs.dilation)
    window = kernel.shape[2:] if first else kernel.shape[:2]
    if window != (3, 3) or steps != (1, 1, 1, 1) or attrs.groups != 1:
        return None
    if any(map(is_open, data.shape)) or {data.dtype, call.tensor_type.dtype} != {"float32"}:
        return None
    n, *rest = call.tensor_type.shape
    height, width = rest[1:] if first else rest[:2]
    filters, channels = kernel.shape[:2] if first else kernel.shape[:1:-1]
    m = winograd_tile(n, channels, filters, height, width)
    return _made(call, m, (n, height, width), channels, filters) if m else None


def _made(call: Call, m: int, size: tuple[int, int, int], channels: int, filters: int) -> Expr:
    make, attrs = op_registry.make, call.attrs
    layout, elements = attrs.data_layout, (m + 2) ** 2
    with op_registry.span(call.span):
        kernel: Any = call.args[1]
        if layout == "NCHW":
            kernel = make("transpose")(kernel, axes=(2, 3, 1, 0))
        blocked = make("reshape")(kernel, (1, 1, 3, 3, channels, filters))
        made = make("nn.contrib_winograd_weight")(blocked, m)
        weights = make("reshape")(made, (elements, channels, filters))
        data: Any = call.args[0]
        narrow = is_call_of(data, "cast") and data.args[0].tensor_type.dtype in _NARROW
        image, dtype = (data.args[0], data.tensor_type.dtype) if narrow else (data, "")
        tiles = make("nn.contrib_winograd_tiles")(image, attrs.padding, m, layout, dtype)
        product = make("nn.batch_matmul")
        if layout == "NCHW":
            products = product(weights, tiles, transpose_a=True, transpose_b=False)
        else:
            products = product(tiles, weights, transpose_b=False)
        return make("nn.contrib_winograd_image")(products, size, m, layout)  # type: ignore[no-any-return]
