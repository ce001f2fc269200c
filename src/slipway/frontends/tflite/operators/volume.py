"""CONV_3D on floating point data."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter, same_padding
from slipway.frontends.tflite.floating import activated, float_weights


@converter("CONV_3D")
def conv3d(node: NodeView) -> Any:
    """Data is (N, D, H, W, I), weights (D, H, W, I / groups, O)."""
    node.need_dtype("float32")
    shape, kernel = node.shape(), node.tensor(1).shape
    if len(shape) != 5 or len(kernel) != 5:
        raise node.unsupported(f"its data is {shape} and its weights {kernel}; both need 5 axes")
    strides = tuple(node.option(f"stride_{axis}") for axis in "dhw")
    dilation = tuple(node.option(f"dilation_{axis}_factor", 1) for axis in "dhw")
    groups = shape[4] // kernel[3] if kernel[3] else 0
    if min(*strides, *dilation) < 1 or groups < 1 or groups * kernel[3] != shape[4]:
        raise node.unsupported(
            f"its data {shape}, weights {kernel}, strides {strides} and dilation {dilation} do "
            "not fit together"
        )
    padding: tuple[int, ...] = (0,) * 6
    if node.padding == "same":
        padding = same_padding(shape[1:4], kernel[:3], strides, dilation)
    weights = array_constant(float_weights(node, 1).transpose(4, 3, 0, 1, 2), "float32")
    out = relay.nn.conv3d(
        relay.transpose(node[0], (0, 4, 1, 2, 3)), weights, strides, padding, dilation, groups
    )
    out = relay.transpose(out, (0, 2, 3, 4, 1))
    if node.has(2):
        out = relay.add(out, array_constant(float_weights(node, 2), "float32"))
    return activated(out, node.activation)
