"""AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.open_padding import average_inside, surrounded_by_lowest
from slipway.frontends.tflite.converters import NodeView, converter, same_padding
from slipway.frontends.tflite.floating import activated, channels_first, channels_last
from slipway.frontends.tflite.quantized import QUANTIZED, out_range


@converter("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool2d(node: NodeView) -> Any:
    """Windows over (N, H, W, C); an average counts only what lies inside the data."""
    if len(node.shape()) != 4:
        raise node.unsupported(f"its data has the shape {node.shape()}, not four axes")
    window = (node.option("filter_height"), node.option("filter_width"))
    strides = (node.option("stride_h"), node.option("stride_w"))
    if min(*window, *strides) < 1:
        raise node.unsupported(f"its window is {window} and its strides are {strides}")
    padding: tuple[int, ...] = (0, 0, 0, 0)
    if node.padding == "same":
        padding = same_padding(node.shape()[1:3], window, strides, (1, 1))
    if node.is_float:
        data = channels_first(node[0])
        if node.kind == "MAX_POOL_2D":
            data, padding = surrounded_by_lowest(data, padding, (2, 3))
            out = relay.nn.max_pool2d(data, window, strides, padding=padding)
        elif node.kind == "AVERAGE_POOL_2D":
            out = average_inside(data, window, strides, (1, 1), padding)
        else:
            squares = relay.multiply(data, data)
            out = relay.sqrt(average_inside(squares, window, strides, (1, 1), padding))
        return channels_last(activated(out, node.activation))
    node.need_dtype(*QUANTIZED)
    if node.kind == "L2_POOL_2D":
        raise node.unsupported("it is supported on floating point data only")
    if node.kind == "AVERAGE_POOL_2D":
        out = relay.qnn.op.avg_pool2d(node[0], window, strides, padding)
    else:
        data, padding = surrounded_by_lowest(node[0], padding, (1, 2))
        out = relay.nn.max_pool2d(data, window, strides, padding=padding, layout="NHWC")
    low, high = out_range(node, node.activation)
    whole = out_range(node)
    return out if (low, high) == whole else relay.clip(out, low, high)
