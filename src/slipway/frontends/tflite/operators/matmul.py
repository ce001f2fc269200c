"""BATCH_MATMUL and TRANSPOSE_CONV."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter, same_padding
from slipway.frontends.tflite.floating import (
    activated,
    channels_first,
    channels_last,
    float_weights,
)
from slipway.frontends.tflite.quantized import (
    QUANTIZED,
    bias_of,
    centered,
    plain_weights,
    product_scales,
    requantized,
    sum_dtype,
)
from slipway.relay.expr import Constant

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


@converter("BATCH_MATMUL")
def batch_matmul(node: NodeView) -> Any:
    """Matrix products over broadcast batches; either side may come transposed."""
    batch = node.broadcast(node.shape(0)[:-2], node.shape(1)[:-2])

    def rows(value: Expr) -> Any:
        shape = value.tensor_type.shape
        if shape[:-2] != batch:
            value = relay.broadcast_to(value, (*batch, *shape[-2:]))
        return relay.reshape(value, (prod(batch), *shape[-2:]), True)

    flips = (bool(node.option("adj_x")), bool(node.option("adj_y")))
    if node.is_float:
        if node.tensor(1).dtype != "float32":
            raise node.unsupported("floating point data by integer data is not supported")
        out = relay.nn.batch_matmul(rows(node[0]), rows(node[1]), "", *flips)
        return relay.reshape(out, (*batch, *out.tensor_type.shape[-2:]), True)
    node.need_dtype("int8", "int16")
    wide = node.tensor(0).dtype == "int16"  # whose zero points are 0
    sides = [rows(node[i] if wide else centered(node, i)) for i in (0, 1)]
    out_dtype = "int64" if wide else "int32"
    total = relay.nn.batch_matmul(sides[0], sides[1], out_dtype, flips[0], flips[1])
    total = relay.reshape(total, (*batch, *total.tensor_type.shape[-2:]), True)
    source, other = (np.float32(node.quantization(i).scale) for i in (0, 1))
    return requantized(node, total, float(source * other) / node.out_quantization().scale)


@converter("TRANSPOSE_CONV")
def transpose_conv(node: NodeView) -> Any:
    """Inputs are the output's shape, weights (O, H, W, I), data, perhaps a bias.

    On integers: zero points between the data's elements, then a convolution with flipped weights.
    """
    kernel = node.tensor(1).shape
    size = _result_shape(node, kernel)
    strides = (node.option("stride_h"), node.option("stride_w"))
    if len(size) != 4 or len(kernel) != 4 or len(node.shape(2)) != 4 or min(strides) < 1:
        raise node.unsupported(f"its weights are {kernel}, its output's shape is {size}")
    window = kernel[1:3]
    before: tuple[int, ...] = (0, 0)
    if node.padding == "same":
        before = same_padding(size[1:3], window, strides, (1, 1))[:2]
    if node.tensor(2).dtype == "float32":
        return float_transposed(node, node[2], 1, 3, size, strides, before)
    if node.tensor(2).dtype not in QUANTIZED:
        raise node.unsupported(f"{node.tensor(2).dtype} data is not supported")
    view = _Shifted(node)
    weights = plain_weights(node, 1).transpose(1, 2, 3, 0)[::-1, ::-1]
    zero = view.quantization().zero_point
    data = _spread(node[2], strides, zero)
    padding, ends = [], [data.tensor_type.shape[0], 0, 0, data.tensor_type.shape[3]]
    for axis in (0, 1):
        first = window[axis] - 1 - before[axis]
        extent = data.tensor_type.shape[1 + axis]
        last = size[1 + axis] + window[axis] - 1 - extent - first
        ends[1 + axis] = extent + min(last, 0)
        padding.append((first, max(last, 0)))
        if first < 0:
            raise node.unsupported("its padding is wider than its window")
    if tuple(ends) != data.tensor_type.shape:
        data = relay.strided_slice(data, [0, 0, 0, 0], ends)
    out_dtype = sum_dtype(view, 2)
    total = relay.qnn.op.conv2d_nhwc(
        data,
        array_constant(weights, weights.dtype.name),
        padding=(padding[0][0], padding[1][0], padding[0][1], padding[1][1]),
        pad_value=zero,
        out_dtype=out_dtype,
    )
    bias = bias_of(view, 2, weights, (0, 1, 2))
    if bias is not None:
        total = relay.add(total, array_constant(bias.array, out_dtype))
    return requantized(view, total, product_scales(view, 1), node.activation)


def _result_shape(node: NodeView, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """Return the output's shape: the first input, or what the file states where that is unknown.

    TensorFlow Lite Micro takes the stated shape too.  One that no data of this shape can have come
    from is not believed.
    """
    if isinstance(node[0], Constant):
        return node.integers(0)
    stated, shape = node.out().shape, node.shape(2)
    believed = len(stated) == len(shape) == len(kernel) == 4 and stated[0] == shape[0]
    believed = believed and stated[3] == kernel[0] and min(stated) > 0
    for axis, stride in ((1, node.option("stride_h")), (2, node.option("stride_w"))):
        if believed and stride > 0:
            covered = stated[axis] - (kernel[axis] - 1 if node.padding == "valid" else 0)
            believed = -(-covered // stride) == shape[axis]
    return stated if believed else node.integers(0)


class _Shifted(NodeView):
    """The node with its inputs as a convolution has them: data, weights, bias."""

    def __init__(self, node: NodeView) -> None:
        operator = node.operator
        order = (operator.inputs[2], operator.inputs[1], *operator.inputs[3:])
        super().__init__(operator, node.graph, node._values, node.name, node.rounds_once)
        self.order = order

    def has(self, position: int) -> bool:
        return position < len(self.order) and self.order[position] >= 0

    def tensor(self, position: int = 0) -> Any:
        if not self.has(position):
            raise self.unsupported(f"it has no input {position}")
        return self.graph.tensors[self.order[position]]


def _spread(data: Expr, strides: tuple[int, int], value: int) -> Any:
    """Put stride - 1 elements `value` behind every element of height and width."""
    if strides == (1, 1):
        return data
    n, h, w, c = data.tensor_type.shape
    cut = relay.reshape(data, (n, h, 1, w, 1, c))
    widths = [(0, 0), (0, 0), (0, strides[0] - 1), (0, 0), (0, strides[1] - 1), (0, 0)]
    return relay.reshape(relay.nn.pad(cut, widths, value), (n, h * strides[0], w * strides[1], c))


def float_transposed(
    node: NodeView, data: Expr, weights: int, bias: int, size: tuple[int, ...],
    strides: tuple[int, int], before: tuple[int, ...],
) -> Any:  # fmt: skip
    """Convolve `data` (N, H, W, C) transposed to the shape `size`; weights and bias are inputs."""
    kernel = float_weights(node, weights).transpose(3, 0, 1, 2)
    after, more = [], []
    for axis in (0, 1):
        full = (data.tensor_type.shape[1 + axis] - 1) * strides[axis] + kernel.shape[2 + axis]
        beyond = full - before[axis] - size[1 + axis]
        after.append(max(beyond, 0))
        more.append(max(-beyond, 0))
    out = relay.nn.conv2d_transpose(
        channels_first(data), array_constant(kernel, "float32"), strides, (*before, *after),
        channels=kernel.shape[1], kernel_size=kernel.shape[2:], output_padding=tuple(more),
    )  # fmt: skip
    if node.has(bias):
        added = float_weights(node, bias).reshape(-1, 1, 1)
        out = relay.add(out, array_constant(added, "float32"))
    return channels_last(activated(out, node.activation))
