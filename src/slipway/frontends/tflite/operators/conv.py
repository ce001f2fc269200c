"""CONV_2D and DEPTHWISE_CONV_2D."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.open_padding import surrounded
from slipway.frontends.tflite.converters import NodeView, array_constant, converter, same_padding
from slipway.frontends.tflite.floating import (
    activated,
    channels_first,
    channels_last,
    float_weights,
)
from slipway.frontends.tflite.hybrid import has_one_scale, is_hybrid, quantized_rows, scaled_sums
from slipway.frontends.tflite.quantized import (
    QUANTIZED,
    bias_of,
    plain_weights,
    product_scales,
    requantized,
    sum_dtype,
)
from slipway.relay.expr import Expr


def geometry(node: NodeView, kernel: tuple[int, int]) -> dict[str, Any]:
    """Return strides, padding and dilation of a convolution with the given kernel extents."""
    strides = (node.option("stride_h"), node.option("stride_w"))
    dilation = (node.option("dilation_h_factor", 1), node.option("dilation_w_factor", 1))
    if min(*strides, *dilation) < 1:
        raise node.unsupported(f"its strides are {strides} and its dilation is {dilation}")
    padding = (0, 0, 0, 0)
    if node.padding == "same":
        padding = same_padding(node.shape()[1:3], kernel, strides, dilation)  # type: ignore[assignment]
    return {"strides": strides, "padding": padding, "dilation": dilation}


@converter("CONV_2D")
def conv2d(node: NodeView) -> Any:
    """Weights are (O, H, W, I / groups) in the file."""
    shape = node.tensor(1).shape
    if len(shape) != 4 or len(node.shape()) != 4:
        raise node.unsupported(
            f"its data is {node.shape()} and its weights {shape}; both need 4 axes"
        )
    options = geometry(node, (shape[1], shape[2]))
    groups = node.shape()[3] // shape[3] if shape[3] else 0
    if groups < 1 or groups * shape[3] != node.shape()[3]:
        raise node.unsupported(f"its weights {shape} do not fit the data {node.shape()}")
    options["groups"] = groups
    if is_hybrid(node):
        # Only weights with a scale per channel go with a zero point in the data.
        rows = quantized_rows(node[0], symmetric=has_one_scale(node))
        weights = plain_weights(node, 1).transpose(1, 2, 3, 0)
        data, options["padding"] = surrounded(rows.data, options["padding"], (1, 2))
        total = relay.qnn.op.conv2d_nhwc(data, array_constant(weights, "int8"), **options)
        return activated(scaled_sums(node, total, rows, 1, 2), node.activation)
    if node.is_float:
        kernel = float_weights(node, 1).transpose(0, 3, 1, 2)
        data, options["padding"] = surrounded(channels_first(node[0]), options["padding"], (2, 3))
        out = relay.nn.conv2d(
            data, array_constant(kernel, "float32"),
            kernel_size=kernel.shape[2:], **options,
        )  # fmt: skip
        return channels_last(activated(_biased(node, out), node.activation))
    node.need_dtype(*QUANTIZED)
    weights = plain_weights(node, 1).transpose(1, 2, 3, 0)
    out_dtype = sum_dtype(node, 2)
    zero = node.quantization().zero_point
    data, options["padding"] = surrounded(node[0], options["padding"], (1, 2), zero)
    total = relay.qnn.op.conv2d_nhwc(
        data, array_constant(weights, weights.dtype.name), pad_value=zero, out_dtype=out_dtype,
        **options,
    )  # fmt: skip
    return _finished(node, total, bias_of(node, 2, weights, (0, 1, 2)), out_dtype)


@converter("DEPTHWISE_CONV_2D")
def depthwise_conv2d(node: NodeView) -> Any:
    """Weights are (1, H, W, C * multiplier) in the file."""
    shape = node.tensor(1).shape
    if len(shape) != 4 or shape[0] != 1 or len(node.shape()) != 4:
        raise node.unsupported(f"its data is {node.shape()} and its weights {shape}")
    channels = node.shape()[3]
    options = geometry(node, (shape[1], shape[2]))
    if shape[3] % channels:
        raise node.unsupported(f"its {shape[3]} filters are no multiple of {channels} channels")
    if is_hybrid(node):
        rows = quantized_rows(node[0])
        weights = plain_weights(node, 1)[0]
        data, options["padding"] = surrounded(rows.data, options["padding"], (1, 2))
        total = relay.qnn.op.depthwise_conv2d_nhwc(data, array_constant(weights, "int8"), **options)
        return activated(scaled_sums(node, total, rows, 1, 2), node.activation)
    if node.is_float:
        kernel = float_weights(node, 1)[0].transpose(2, 0, 1)[:, None]
        data, options["padding"] = surrounded(channels_first(node[0]), options["padding"], (2, 3))
        out = relay.nn.conv2d(
            data, array_constant(kernel, "float32"), groups=channels,
            kernel_size=kernel.shape[2:], **options,
        )  # fmt: skip
        return channels_last(activated(_biased(node, out), node.activation))
    node.need_dtype(*QUANTIZED)
    weights = plain_weights(node, 1)[0]
    out_dtype = sum_dtype(node, 2)
    zero = node.quantization().zero_point
    data, options["padding"] = surrounded(node[0], options["padding"], (1, 2), zero)
    total = relay.qnn.op.depthwise_conv2d_nhwc(
        data, array_constant(weights, weights.dtype.name), pad_value=zero, out_dtype=out_dtype,
        **options,
    )  # fmt: skip
    return _finished(node, total, bias_of(node, 2, weights, (0, 1)), out_dtype)


def _biased(node: NodeView, out: Expr) -> Any:
    """Add a float bias to channels-first data."""
    if not node.has(2):
        return out
    bias = float_weights(node, 2).reshape(-1, 1, 1)
    return relay.add(out, array_constant(bias, "float32"))


def _finished(node: NodeView, total: Expr, bias: Expr | None, out_dtype: str) -> Any:
    if bias is not None:
        if bias.tensor_type.dtype != out_dtype:
            bias = array_constant(np.asarray(bias.array), out_dtype)  # type: ignore[attr-defined]
        total = relay.add(total, bias)
    return requantized(node, total, product_scales(node, 1), node.activation)
