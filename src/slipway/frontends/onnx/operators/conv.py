"""Convolutions and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.open_padding import same_total, surrounded


def padding_of(
    node: NodeView, size: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:  # fmt: skip
    """Return the padding (all before, then all after) from `pads` or `auto_pad`."""
    count = len(kernel)
    kind = node.attr("auto_pad", "NOTSET")
    if kind in ("NOTSET", ""):
        return tuple(node.attr("pads", (0,) * (2 * count)))
    if kind == "VALID":
        return (0,) * (2 * count)
    before, after = [], []
    for extent, k, s, d in zip(size, kernel, strides, dilation, strict=True):
        total = same_total(extent, k, s, d)
        small = total // 2
        before.append(small if kind == "SAME_UPPER" else total - small)
        after.append(total - small if kind == "SAME_UPPER" else small)
    return (*before, *after)


def _geometry(node: NodeView, kernel: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ones = (1,) * len(kernel)
    return tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))


def _with_bias(node: NodeView, result: Any) -> Any:
    bias = node.optional(2)
    if bias is not None:
        bias = relay.cast(bias, "float32") if node.wide() else bias
        result = relay.nn.bias_add(result, bias)
    return node.narrow(result)


@converter("Conv")
def conv(node: NodeView) -> Any:
    """Convolution over one to three spatial axes, with an optional bias."""
    data, weight = node.input(0), node.input(1)
    kernel = weight.tensor_type.shape[2:]
    count = len(kernel)
    if count not in (1, 2, 3):
        raise node.unsupported(f"convolves {count} spatial axes; 1 to 3 are served")
    strides, dilation = _geometry(node, kernel)
    padding = padding_of(node, node.type().shape[2:], kernel, strides, dilation)
    data, padding = surrounded(data, padding, range(2, 2 + count))
    function = (relay.nn.conv1d, relay.nn.conv2d, relay.nn.conv3d)[count - 1]
    result = function(
        data, weight, strides, padding, dilation, node.attr("group", 1),
        weight.tensor_type.shape[0], kernel, out_dtype=node.wide(),
    )  # fmt: skip
    return _with_bias(node, result)


@converter("ConvTranspose")
def conv_transpose(node: NodeView) -> Any:
    """The transpose; `output_shape` is turned into padding."""
    data, weight = node.input(0), node.input(1)
    kernel = weight.tensor_type.shape[2:]
    count = len(kernel)
    if count not in (1, 2, 3):
        raise node.unsupported(f"convolves {count} spatial axes; 1 to 3 are served")
    strides, dilation = _geometry(node, kernel)
    extra = tuple(node.attr("output_padding", (0,) * count))
    size = node.type().shape[2:]
    wanted = node.attr("output_shape")
    kind = node.attr("auto_pad", "NOTSET")
    if wanted is None and kind in ("SAME_UPPER", "SAME_LOWER"):
        # As ONNX's shape inference has it: what no input reaches is not added.
        wanted = tuple(
            n * s + min(0, e + (k - 1) * d + 1 - s)
            for n, s, e, k, d in zip(size, strides, extra, kernel, dilation, strict=True)
        )
    if wanted is None:
        padding = tuple(node.attr("pads", (0,) * (2 * count)))
    else:
        before, after = [], []
        for n, k, s, d, e, w in zip(
            size, kernel, strides, dilation, extra, wanted[-count:], strict=True
        ):
            total = s * (n - 1) + e + (k - 1) * d + 1 - w
            if total < 0:  # larger than what the inputs reach: the rest is at the end
                before.append(0)
                after.append(total)
                continue
            small = total // 2
            before.append(small if kind == "SAME_UPPER" else total - small)
            after.append(total - small if kind == "SAME_UPPER" else small)
        padding = (*before, *after)
    if any(p < 0 for p in padding):
        # Less than nothing cut off is output padding: the part that no input reaches is zero.
        extra = tuple(e - min(p, 0) for e, p in zip(extra, padding[count:], strict=True))
        padding = tuple(max(p, 0) for p in padding)
    function = (
        relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose,
    )[count - 1]  # fmt: skip
    result = function(
        data,
        weight,
        strides,
        padding,
        dilation,
        groups=node.attr("group", 1),
        output_padding=extra,
        out_dtype=node.wide(),
    )
    return _with_bias(node, result)
