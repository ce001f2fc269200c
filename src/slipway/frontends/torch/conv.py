"""Convolutions and their transposes."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.torch.converters import NodeView, cast, converter


@converter("convolution", "_convolution")
def convolution(node: NodeView) -> Any:
    """Over one to three spatial axes; a missing batch axis is put in."""
    data, weight = node.input("input"), node.input("weight")
    kernel = weight.tensor_type.shape[2:]
    count = len(kernel)
    if count not in (1, 2, 3):
        raise node.unsupported(f"convolves {count} spatial axes; 1 to 3 are served")
    single = data.tensor_type.rank == count + 1
    if single:
        data = relay.expand_dims(data, 0)
    strides, padding = node.ints("stride", count), node.ints("padding", count) * 2
    dilation, groups = node.ints("dilation", count), int(node.arg("groups", 1))
    wide = node.wide("input")
    if node.arg("transposed", False):
        function = (
            relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose,
        )[count - 1]  # fmt: skip
        result: relay.Expr = function(
            data, weight, strides, padding, dilation, groups=groups,
            output_padding=node.ints("output_padding", count), out_dtype=wide,
        )  # fmt: skip
    else:
        plain = (relay.nn.conv1d, relay.nn.conv2d, relay.nn.conv3d)[count - 1]
        result = plain(
            data, weight, strides, padding, dilation, groups, weight.tensor_type.shape[0], kernel,
            out_dtype=wide,
        )  # fmt: skip
    bias = node.optional("bias")
    if bias is not None:
        result = relay.nn.bias_add(result, cast(bias, result.tensor_type.dtype))
    result = node.narrow(result)
    return relay.squeeze(result, [0]) if single else result
