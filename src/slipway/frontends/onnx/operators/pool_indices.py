"""MaxPool that also tells where its values come from, and MaxUnpool, which puts them back."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.conv import padding_of
from slipway.frontends.pool_positions import max_pool_with_positions
from slipway.relay.op_registry import const


def max_pool_with_indices(node: NodeView) -> list[Any]:
    """Return the largest of each window and its position in the flattened input."""
    kernel = tuple(node.attr("kernel_shape"))
    ones = (1,) * len(kernel)
    strides, dilation = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
    batch, channels, *spatial = node.type().shape
    padding = padding_of(node, tuple(spatial), kernel, strides, dilation)
    best, where = max_pool_with_positions(
        node.input(0), kernel, strides, dilation, padding, bool(node.attr("ceil_mode", 0)),
        column_major=bool(node.attr("storage_order", 0)),
    )  # fmt: skip
    offset = np.arange(batch * channels, dtype=np.int64) * int(np.prod(spatial, dtype=np.int64))
    return [best, relay.add(where, const(offset.reshape(batch, channels, *ones)))]


@converter("MaxUnpool")
def max_unpool(node: NodeView) -> Any:
    """Values put back where MaxPool took them from, zero elsewhere."""
    return unpooled(node, node.ints(2, "the output shape") if node.has(2) else None)


def unpooled(node: NodeView, wanted: tuple[int, ...] | None) -> Any:
    """Return the result of a MaxUnpool of a shape; None stands for the smallest that fits."""
    kernel = tuple(node.attr("kernel_shape"))
    count = len(kernel)
    strides = tuple(node.attr("strides", (1,) * count))
    pads = tuple(node.attr("pads", (0,) * (2 * count)))
    batch, channels, *spatial = node.type().shape
    extents = [
        (e - 1) * s - pads[a] - pads[a + count] + k
        for a, (e, s, k) in enumerate(zip(spatial, strides, kernel, strict=True))
    ]
    inferred = (batch, channels, *extents)
    total = int(np.prod(inferred, dtype=np.int64))
    flat = relay.scatter_elements(
        relay.zeros((total,), node.type().dtype),
        relay.reshape(node.input(1), (-1,)),
        relay.reshape(node.input(0), (-1,)),
        0,
    )
    result = relay.reshape(flat, inferred)
    if wanted is None:
        return result
    widths = [(0, w - d) for w, d in zip(wanted, inferred, strict=True)]
    if any(after < 0 for _, after in widths):
        raise node.unsupported(f"the output shape {wanted} is smaller than {inferred}")
    return relay.nn.pad(result, widths, 0.0)
